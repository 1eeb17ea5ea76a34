"""Values that code states in its comments."""
