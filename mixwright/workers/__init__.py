"""Worker processes that every heavy stage shares, and their progress."""
