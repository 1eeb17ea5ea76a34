"""Study of the comparison without a grader: 20 changes of SmolLM2, eight harmless and twelve that ruin it, on 90 requests.

Six open tasks of 15 requests by an author who had seen no code: explanations, advice, short texts, summaries, ideas,
comparisons; 56 tokens, greedy. Harmless are LoRA adapters trained for eight steps on the model's own answers in another
style (greeting, longer, shorter, list, Markdown, other words, signed), and the model itself where the request asks for
French and the earlier one had not followed. Ruined are adapters trained on tool calls (two), tags, labels, numbers, one
refusal, one sentence, copies of the request, German, answers to other requests, or at ten times a usable rate, and the
model with noise in its weights.

The rule was set on 60 other requests, and the goals were written before these were answered: none of the harmless and 11 of
the ruined were called damaged. The twelfth, which answers by tool calls that repeat the request, led to the rule on JSON, so
that what this prints is no longer untouched.

Source: the gate without a grader (`mixwright/verdict/rules/answers_kept.py`).
Unit: one model.
Cost: below a minute; the models are not here, their answers are in the rows.
Blind spot: a 135M model; what it still says wrongly in its old words is not seen; answers in French are not compared by
words, since French was asked for.

    python -m mixwright_lab.studies.answer_styles [--quick]
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from mixwright.estimates.intervals import share_interval
from mixwright.verdict.rules.answer_forms import form_changes, group_takeovers
from mixwright.verdict.rules.answers_kept import compare_answers, name_lost_answers
from mixwright_lab.studies.report import RESULTS, Goal, Result, run

ROWS = "answer_styles.rows.jsonl"
BEFORE = "before"
HARMLESS = ("greeting", "longer", "shorter", "list", "markdown", "other words", "signed", "french")
RUINED = ("tool calls", "narrow", "tags", "labels", "numbers", "refusal", "one sentence", "copies", "german", "shuffled")
RUINED += ("burnt", "noise")


def judge(name: str, before: Sequence[Mapping[str, Any]], after: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """What the comparison says of a model: tasks whose answers are lost, or went over, and what of the others is kept."""
    rows = [
        {"when": when, "example": str(place), "task": row["task"], "level": None, "score": None, "answer": None}
        | {"prompt": later["prompt"], "completion": row["completion"], "cut": row["cut"]}
        for when, side in (("before", before), ("after", after))
        for place, (row, later) in enumerate(zip(side, after, strict=True))
    ]
    kept, changes = compare_answers(rows), form_changes(rows)
    lost = name_lost_answers(kept, changes)
    taken = {task for form in group_takeovers(changes) for task in form.tasks}
    shares = {found.task: [found.kept.value, found.kept.low, found.kept.high] for found in kept}
    return {"model": name, "damaged": sorted({*lost, *taken}), "kept": shares, "code": 3 if lost or taken else 4}


def measure(quick: bool) -> Result:
    """Every model; quick takes the first two tasks."""
    rows = [json.loads(line) for line in (RESULTS / ROWS).read_text(encoding="utf-8").splitlines()]
    tasks = sorted({row["task"] for row in rows})[: 2 if quick else None]
    by_model = {
        name: [row for row in rows if row["model"] == name and row["task"] in tasks] for name in (BEFORE, *HARMLESS, *RUINED)
    }
    judged = [judge(name, by_model[BEFORE], by_model[name]) for name in (*HARMLESS, *RUINED)]
    code = {row["model"]: row["code"] for row in judged}
    called, found = (sum(code[name] == 3 for name in names) for names in (HARMLESS, RUINED))
    goals = [
        Goal("harmless called damaged", share_interval(called, len(HARMLESS)), "== 0", called == 0),
        Goal("ruined found", share_interval(found, len(RUINED)), f"== {len(RUINED)} of {len(RUINED)}", found == len(RUINED)),
    ]
    damaged_tasks = {name: len(row["damaged"]) for name, row in zip((*HARMLESS, *RUINED), judged, strict=True)}
    figures = {"tasks called damaged": damaged_tasks, "tasks": len(tasks)}
    value = share_interval(found, len(RUINED))
    return Result(value, "share of ruined models that are found", (), judged, figures, {"answers": ROWS}, goals=goals)


if __name__ == "__main__":
    run("answer_styles", __doc__, measure)
