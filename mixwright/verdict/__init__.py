"""Verdict: what was learnt, what was damaged, and whether the levers worked; one file is one section of the page.

Sections read the run folder and return blocks as data; `page/page.py` writes them as one HTML file, `page/terminal.py`
prints them.
Left out on purpose: torch. A page can be rendered again from an old folder with the core packages alone.
"""
