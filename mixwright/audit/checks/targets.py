"""Check of the tokens that a training takes its loss on: none, all, words of the prompt, or no end of the answer.

Source: TRL's `SFTTrainer` labels the rows; the faults are those of public reports (huggingface/trl 1623, 6668).
Unit: training rows, the first 2,000 of the file.
Cost: about ten seconds for 2,000 rows; only with `--model`, whose tokenizer is loaded and no weights.
Blind spot: settings of the training that are not TRL's defaults (`preview --config` takes them), and other trainers.
"""

from __future__ import annotations

from mixwright.audit.learnt import Learnt


class Targets(Learnt):
    """Compares the targets with the assistant's words."""

    NAME = "targets"
