"""Arms of a trial."""
