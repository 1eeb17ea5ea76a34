"""Sections of the page: one file, one section."""
