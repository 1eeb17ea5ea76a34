"""Run: its folder and files, the checks before it begins, its line of stages, and its worker processes."""
