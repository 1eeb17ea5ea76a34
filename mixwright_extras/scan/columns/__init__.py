"""Columns of the scan: one file, one group of columns, a value per example."""
