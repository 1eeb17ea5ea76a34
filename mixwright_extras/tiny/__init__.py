"""Tiny models with random weights, warmed up by SFT: what `tiny:` in run.yaml is, for trying things out and for tests."""
