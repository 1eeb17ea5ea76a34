"""Graders of tasks that the extras make."""
