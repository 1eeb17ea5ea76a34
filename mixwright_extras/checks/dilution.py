"""Check of diluted completions: a fixed frame around few words that vary, so that few words of the loss decide anything.

Source: Lin et al. 2024 (arXiv 2404.07965): a loss on chosen tokens alone taught more than one on all; the test is our own.
Unit: words of a task's completions that vary between rows, of all of them; signs are not counted.
Cost: 500 completions of a task and 50,000 in all are read, 8,000 characters and 1,000 words of each.
Blind spot: several frames in one task; words that vary and decide nothing; what a trainer masks; completions all the same.
"""

from __future__ import annotations

from mixwright.extend import Check, Corpus, Observation
from mixwright_extras.instructions.frames import Frame, find_frames

WARNED_SHARE = 0.05
"""Share of words that vary, under which a frame is warned of."""
LEAST_ROWS = 0.95
"""Share of the completions that must have the frame."""
FRAME_CHARACTERS = 120
"""Characters of a frame that are shown."""
REMEDY = "Shorten or remove the fixed part. Masking it in the loss does not help: the model then writes something else."


class Dilution(Check):
    """Checks the completions of training rows."""

    def check(self, corpus: Corpus) -> list[Observation]:
        """Return a warning for each task whose completions are nearly all frame, and a note if half of the words are."""
        return [_observe(frame) for frame in find_frames(corpus) if frame.with_frame >= LEAST_ROWS * frame.rows]


def _observe(frame: Frame) -> Observation:
    share = frame.varying / frame.words
    shown = frame.text if len(frame.text) <= FRAME_CHARACTERS else frame.text[:FRAME_CHARACTERS] + "\u2026"
    text = (
        f"Only {share:.1%} of the words in {frame.rows:,} completions vary; {frame.with_frame:,} share the frame {shown!r}."
    )
    severity, remedy = ("warning", REMEDY) if share < WARNED_SHARE else ("info", "")
    null = "a frame of at most half of the words"
    return Observation("dilution", frame.task, severity, frame.varying, frame.words, text, remedy, null)
