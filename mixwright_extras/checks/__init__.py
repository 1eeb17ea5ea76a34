"""Checks: run when they are named (`audit --check NAME`)."""
