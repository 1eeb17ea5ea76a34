"""Study of the graders against readers: answers of SmolLM2 to questions by authors who had seen no code.

Parts 1 and 2 are twelve tasks of 25 questions by one author, parts 3 and 4 ten tasks of 15 each by two others; wordings of
their own, 40 tokens, greedy. Authors and readers are large language models. The questions were asked of SmolLM2 and of three
LoRA adapters of it: trained on its own answers (`harmless`), on answers of one word (`terse`), and on tool calls alone
(`ruined`, not asked part 2). Two readers judged every answer without its model and without a program. Answers on which they
disagree count in no share, and as a half in the changes.

`includes` was mended on parts 1 to 3; before that it had accepted .85 [.79, .89] of the right answers of part 3, and .007 of
the wrong ones. Part 4 was asked and read afterwards and decided the goals, which were written before its answers were: .70
[.62, .77] of the right ones and .036 [.022, .057] of the wrong ones. Then `includes` was mended on some of its misses, so
that what this prints is no figure of an author whom it has not met.

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
from mixwright.records import Example, Interval
from mixwright_lab.studies.report import RESULTS, Goal, Result, rounded, run

ROWS = "grader_readings.rows.jsonl"
BEFORE, AFTER = "before", ("harmless", "terse", "ruined")
HELD_OUT = 4
"""Part that decides."""
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


def share_accepted(judged: Sequence[Mapping[str, Any]]) -> tuple[Interval, Interval]:
    """Share of the answers read as right that were accepted, and of those read as wrong."""
    counts = Counter((sum(row["readers"]), row["score"]) for row in judged)
    right, wrong = (share_interval(counts[read, 1], counts[read, 0] + counts[read, 1]) for read in (2, 0))
    return right, wrong


def measure(quick: bool) -> Result:
    """All answers; quick takes the held-out part."""
    text = (RESULTS / ROWS).read_text(encoding="utf-8")
    rows = [row for row in map(json.loads, text.splitlines()) if not quick or row["part"] == HELD_OUT]
    judged = judge(rows)
    held_out = [row for row in judged if row["part"] == HELD_OUT]
    accepted, mistaken = share_accepted(held_out)
    goals = [
        Goal("right answers accepted", accepted, f">= {LEAST_ACCEPTED}", accepted.value >= LEAST_ACCEPTED),
        Goal("wrong answers accepted", mistaken, f"<= {MOST_MISTAKEN}", mistaken.value <= MOST_MISTAKEN),
    ]
    changes = compare_changes(judged)
    for name, off in changes.items():
        if not name.startswith(f"part {HELD_OUT}"):
            continue
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
    groups = {f"part {part}": [row for row in judged if row["part"] == part] for part in sorted({r["part"] for r in judged})}
    groups["held out, sentences"] = [row for row in held_out if row["model"] in (BEFORE, "harmless")]
    figures: dict[str, Any] = {}
    for name, group in groups.items():
        shares = zip(("right", "wrong"), share_accepted(group), strict=True)
        figures[f"accepted, {name}"] = {read: [share.value, share.low, share.high, share.n] for read, share in shares}
    figures |= {"by task": by_task, "change off": {name: rounded(off.tolist()) for name, off in changes.items()}}
    unit = "share of right answers that `includes` accepts"
    return Result(accepted, unit, (), judged, figures=figures, settings={"answers": ROWS}, goals=goals)


if __name__ == "__main__":
    run("grader_readings", __doc__, measure)
