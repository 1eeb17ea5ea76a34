"""Measurement of what the model can do now: one file is one probe; the passes they share are made once."""
