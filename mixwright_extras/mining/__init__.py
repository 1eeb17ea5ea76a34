"""Parts of the miners."""
