"""Decide what a language model trains on, and prove what that did to it."""

__version__ = "0.1.0"
