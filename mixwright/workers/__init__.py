"""Worker processes that every heavy stage shares, and how they say how far they are."""
