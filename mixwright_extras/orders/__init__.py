"""Orders of tasks: what training on one does to others."""
