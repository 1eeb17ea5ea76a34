"""Check of the chat template in training: tokens and turns that it doubles or adds, and another prompt than the model gets.

Source: TRL's `SFTTrainer` renders the rows; the faults are those of public reports.
Unit: training rows, the first 2,000 of the file.
Cost: shared with `targets`; only with `--model`.
Blind spot: a template that is wrong in training and when the model is asked alike.
"""

from __future__ import annotations

from mixwright.audit.learnt import Learnt


class Template(Learnt):
    """Compares the rendered rows with the prompts that the model is asked with."""

    NAME = "template"
