"""Verdict: what was learned, what was damaged, and whether the levers worked.

`rules/evidence.py` and `read_parts.py` read the run folder, `judge.py` makes the verdict, and every report is a function of
it. Left out on purpose: torch. A page can be rendered again from an old folder with the core packages alone.
"""
