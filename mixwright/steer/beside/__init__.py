"""Run beside a trainer: its files, its log lines and its saved state. Knows no TRL."""
