"""Which groups may teach: one file, one gate."""
