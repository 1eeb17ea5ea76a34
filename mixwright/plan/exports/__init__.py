"""Exports of a plan to other trainers: one file, one format."""
