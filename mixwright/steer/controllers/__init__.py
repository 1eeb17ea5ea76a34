"""Coefficients and learning-rate factors: one file, one controller."""
