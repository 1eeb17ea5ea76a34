"""Checks of the data and what they stand on: one file = one `Check`, no torch, a million rows in bounded memory.

Left out on purpose: changing the data. A check says what to do; the user does it.
"""
