"""Controllers of coefficients and learning-rate factors: one file, one controller."""
