"""Miners."""
