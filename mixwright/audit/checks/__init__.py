"""Checks of the data: one file, one check."""
