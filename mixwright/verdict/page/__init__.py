"""Page of the verdict: its blocks, their words and numbers, as HTML and in a terminal."""
