"""Sections of the page of a verdict."""
