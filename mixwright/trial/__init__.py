"""Does the lever work here? Paired arms and their nulls. One file = one arm."""
