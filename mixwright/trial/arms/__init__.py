"""Arms of a trial: one file, one arm."""
