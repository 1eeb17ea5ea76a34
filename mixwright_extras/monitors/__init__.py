"""Monitors of steered runs: what raises an alarm."""
