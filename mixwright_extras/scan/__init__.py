"""Scan of the examples: one row each, one column per value; one file in `columns/` is one kind of column."""
