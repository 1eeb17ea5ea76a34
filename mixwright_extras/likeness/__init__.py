"""Test items that stand in training rows in other words."""
