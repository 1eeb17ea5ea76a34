"""What is in the data: one file = one `Check`. No model, no torch; a million rows in bounded memory.

Left out on purpose: changing the data. A check says what to do; the user does it.
"""
