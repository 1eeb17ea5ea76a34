"""Planners: one file, one planner."""
