"""Check of how much of the training each task is: rows and target tokens.

Source: own; target tokens because SFT averages over them.
Unit: rows, shares 0..1; tokens are estimated without a tokenizer as words + digits + signs.
Cost: one pass.
Blind spot: the order of the rows, which trainers shuffle, and real token counts (long words are several tokens).
"""

from __future__ import annotations

from collections import Counter

from mixwright.audit.rows import rows
from mixwright.audit.text import count_tokens
from mixwright.contracts import Check
from mixwright.corpus import Corpus
from mixwright.records import Observation

RARE_PART, LOPSIDED_RATIO = 0.25, 3.0
"""Part of the uniform share below which a task is rare; ratio between its share of target tokens and that of rows, either
way, from which on they are said to differ."""
LEAST_LOPSIDED = 0.01
"""Share of rows, or of target tokens, below which such a difference is of no weight."""


class Frequency(Check):
    """Shares of the train split's tasks."""

    def check(self, corpus: Corpus) -> list[Observation]:
        """One info per task; warnings for rare tasks, and for token shares unlike row shares."""
        counts, tokens = Counter[str](), Counter[str]()
        for batch in corpus.batches():
            for row, prompt in zip(rows([batch]), batch.column("prompt").to_pylist(), strict=True):
                if row.split != "eval":
                    counts[row.task] += 1
                    tokens[row.task] += count_tokens(row.written if prompt else row.prompt)  # without a prompt it is a text
        return [one for name in sorted(counts) for one in _observe_shares(name, counts, tokens)]


def _observe_shares(name: str, counts: Counter[str], tokens: Counter[str]) -> list[Observation]:
    """Report the share of one task, given the training rows and the target tokens of each."""
    count, total, tasks = counts[name], counts.total(), len(counts)
    share, token_share = count / total, tokens[name] / max(tokens.total(), 1)
    text = f"{count} rows ({share:.1%}), about {tokens[name]} target tokens ({token_share:.1%})."
    null = f"uniform: {1 / tasks:.1%} of rows for each of {tasks} tasks"
    evidence = ({"share_of_rows": share, "share_of_target_tokens": token_share},)
    observations = [Observation("frequency", name, "info", count, total, text, "", null, evidence)]
    if share < RARE_PART / tasks:
        text = f"The task is rare: {share:.2%} of rows; an equal share is {1 / tasks:.1%}."
        remedy = "Raise its weight (planner temperature or equal_shares)."
        observations.append(Observation("frequency", name, "warning", count, total, text, remedy, null))
    is_large = max(share, token_share) >= LEAST_LOPSIDED
    if is_large and token_share and not share / LOPSIDED_RATIO < token_share < share * LOPSIDED_RATIO:
        text = f"The task has {share:.1%} of rows but {token_share:.1%} of target tokens, which weigh in the loss of SFT."
        remedy = "Weight by tokens, or average the loss per example. GRPO is not affected."
        observations.append(Observation("frequency", name, "warning", count, total, text, remedy, "equal shares of both"))
    return observations
