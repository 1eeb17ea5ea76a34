"""Miners: one file, one way to choose or make examples."""
