"""Checkpoints: what a steered run saves beside them, and how it goes on from one."""
