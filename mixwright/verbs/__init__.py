"""Command line verbs' needs beyond the pipeline. Nothing below imports it."""
