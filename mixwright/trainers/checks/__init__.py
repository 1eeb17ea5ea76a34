"""Checks before and while a trainer runs: versions, settings, numbers, processes."""
