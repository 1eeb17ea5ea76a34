"""Thoughts that a model writes before its answer, between tags such as `<think>`; they are no part of the answer."""

from __future__ import annotations

THOUGHT_TAGS = ("think", "thinking", "thought", "reasoning", "scratchpad")


def drop_thoughts(text: str) -> str:
    """Return what follows the thoughts of a model that thinks aloud; nothing if it was cut before it came to an answer."""
    for name in THOUGHT_TAGS:
        _, end, after_thought = text.rpartition(f"</{name}>")
        if end:
            return after_thought
        if text[:64].lstrip().startswith(f"<{name}>"):
            return ""
    return text
