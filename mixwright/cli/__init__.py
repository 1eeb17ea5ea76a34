"""Command line: what its verbs need beyond the pipeline. Nothing below imports it."""
