"""Check of rows that are cut or left out for their length, and of packed rows that read each other.

Source: TRL's `SFTTrainer`, and Axolotl's `excess_length_strategy`.
Unit: training rows, the first 2,000 of the file.
Cost: shared with `targets`; only with `--model`.
Blind spot: a length that the audit isn't given: it takes TRL's default of 1,024 tokens (`preview --max-length` for another).
"""

from __future__ import annotations

from mixwright.audit.learnt import Learnt


class Truncation(Learnt):
    """Compares the tokens of a row with those that are left."""

    NAME = "truncation"
