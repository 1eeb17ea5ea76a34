"""Worlds: one file = one generated task family with a known ground truth."""
