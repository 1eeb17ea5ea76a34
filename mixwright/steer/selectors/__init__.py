"""Selectors of items within a task: one file, one selector."""
