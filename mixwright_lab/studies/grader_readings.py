"""Study of the graders against readers: 1,050 answers of SmolLM2 to questions by an author who had seen no code.

Twelve tasks of 25 questions each, in wordings of their own; 40 tokens, greedy. Author and readers are large language
models. The questions were asked of SmolLM2 and of three LoRA adapters of it: trained on its own answers (`harmless`), on
answers of one word (`terse`), and on tool calls alone (`ruined`, only of the first half of the questions). Two readers
judged every answer without its model and without a program. Answers on which they disagree (21) count in no share, and as a
half in the changes.

The first half was looked at while `includes` was mended. The second half was asked and read afterwards; what stood then
accepted 120 of 143 right answers and 15 of 302 wrong ones, and it was mended once more on these. So no half is untouched.

    python -m mixwright_lab.studies.grader_readings [--quick]
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from mixwright.corpus import Corpus
from mixwright.corpus.proposed_graders import find_labels
from mixwright.estimates.intervals import mean_interval, share_interval
from mixwright.graders import load_grader
from mixwright.records import Example
from mixwright_lab.studies.report import RESULTS, Goal, Result, rounded, run

ROWS = "grader_readings.rows.jsonl"
BEFORE, AFTER = "before", ("harmless", "terse", "ruined")
LEAST_ACCEPTED, MOST_MISTAKEN, MOST_POINTS_OFF = 0.9, 0.03, 3.0
"""Goals: share of right answers that are accepted, share of wrong ones, and points by which a change may be off."""


def judge(rows: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Grade every row; tasks of few answers with these, as `measure` does."""
    asked = {row["prompt"]: Example(row["prompt"], row["task"], row["prompt"], answer=row["answer"]) for row in rows}
    corpus = Corpus.from_examples(list(asked.values()))
    graders = {task: load_grader("includes", {"among": find_labels(corpus, task)}) for task in corpus.tasks}
    judged = []
    for row in rows:
        grader = graders[row["task"]]
        example = Example("i", row["task"], row["prompt"], answer=row["answer"])
        score = (grader.grade_cut if row["cut"] else grader.grade)(example, row["completion"])
        judged.append({name: row[name] for name in ("part", "model", "task", "prompt", "readers")} | {"score": score})
    return judged


def compare_changes(judged: Sequence[Mapping[str, Any]]) -> dict[str, np.ndarray]:
    """Part and model -> graded minus read change of every question, in points."""
    at = {(row["part"], row["model"], row["prompt"]): row for row in judged}

    def off(row: Mapping[str, Any]) -> float:
        return 100 * (row["score"] - sum(row["readers"]) / 2)

    changes: dict[str, list[float]] = defaultdict(list)
    for (part, model, prompt), row in at.items():
        if model in AFTER:
            changes[f"part {part}, {model}"].append(off(row) - off(at[part, BEFORE, prompt]))
    return {name: np.array(values) for name, values in changes.items()}


def measure(quick: bool) -> Result:
    """All answers; quick takes the first half."""
    text = (RESULTS / ROWS).read_text(encoding="utf-8")
    rows = [row for row in map(json.loads, text.splitlines()) if not quick or row["part"] == 1]
    judged = judge(rows)
    counts = Counter((sum(row["readers"]), row["score"]) for row in judged)
    sentences = Counter((sum(row["readers"]), row["score"]) for row in judged if row["model"] in ("before", "harmless"))
    right, wrong = (counts[read, 0] + counts[read, 1] for read in (2, 0))
    accepted, mistaken = share_interval(counts[2, 1], right), share_interval(counts[0, 1], wrong)
    goals = [
        Goal("right answers accepted", accepted, f">= {LEAST_ACCEPTED}", accepted.value >= LEAST_ACCEPTED),
        Goal("wrong answers accepted", mistaken, f"<= {MOST_MISTAKEN}", mistaken.value <= MOST_MISTAKEN),
    ]
    changes = compare_changes(judged)
    for name, off in changes.items():
        found = mean_interval(off)
        reached = abs(found.value) <= MOST_POINTS_OFF
        goals.append(Goal(f"change off, {name}", found, f"within {MOST_POINTS_OFF:g} points", reached))
    tasks = sorted({row["task"] for row in judged})
    by_task = {
        task: {
            f"{read} {name}": sum(
                row["task"] == task and (sum(row["readers"]), row["score"]) == (value, score) for row in judged
            )
            for read, value in (("right", 2), ("wrong", 0))
            for name, score in (("accepted", 1), ("refused", 0))
        }
        for task in tasks
    }
    in_sentences = {
        "right": share_interval(sentences[2, 1], sentences[2, 0] + sentences[2, 1]),
        "wrong": share_interval(sentences[0, 1], sentences[0, 0] + sentences[0, 1]),
    }
    figures = {"accepted, before and harmless": {name: [x.value, x.low, x.high] for name, x in in_sentences.items()}}
    figures |= {"by task": by_task, "change off": {name: rounded(off.tolist()) for name, off in changes.items()}}
    unit = "share of right answers that `includes` accepts"
    return Result(accepted, unit, (), judged, figures=figures, settings={"answers": ROWS}, goals=goals)


if __name__ == "__main__":
    run("grader_readings", __doc__, measure)
