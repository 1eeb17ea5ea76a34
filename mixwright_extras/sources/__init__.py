"""Rows that are made in place of being read."""
