"""Probes of the model: one file, one probe."""
