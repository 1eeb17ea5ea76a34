"""What raises an alarm: one file, one monitor."""
