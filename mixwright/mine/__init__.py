"""Mining: choose or make examples from what the scan says."""
