"""Mining: choose or make examples for training."""
