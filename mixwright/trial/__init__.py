"""Trial of a lever by paired arms and their nulls: one file = one arm."""
