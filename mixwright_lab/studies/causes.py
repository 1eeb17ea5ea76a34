"""Study of causes: is the planted reason of a loss named first, and nothing where nothing on the list is the reason?

Plants are made of real answers by an author who had not read the rules (`cause_plants`): fourteen listed causes, ten that
are not on the list, mixtures of two, and comparisons in which nothing is lost beyond chance. What `verdict` does is done:
forms are tested, damaged tasks are those that fell by ten points and more beyond chance, and their causes are shared out.
Rivals: to say of every loss that it was forgotten, which names no cause, and the first form change of a damaged task, as the
page has it without causes.

On seeds 101 to 113 the first cause was right for 124 of 140 listed ones, and none was named for 48 of 50 others. Then a
referee put one more sentence behind all later answers of plants that are not listed, lost and right alike: a cause was named
for 30 of 30. Since then a kind has to be commoner among lost answers than among those that stayed right. The seeds below are
new, and such plants are among them.

Then the committed answers of three SFT studies are read, five to eight seeds each: which share of what each arm lost has
which cause. Nothing is trained.

Source: `real_sft`, `real_skill_sft`, `real_all_weights` for the committed answers.
Unit: one plant; one arm of one study.
Cost: three minutes of one core.
Blind spot: plants change texts, and no model; whether a remedy helps is another study.

    MIXWRIGHT_PUBLIC=FOLDER python -m mixwright_lab.studies.causes [--quick]
"""

from __future__ import annotations

import os
import tempfile
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from mixwright.estimates.chance import RIGHT_FROM_SCORE
from mixwright.estimates.intervals import share_interval, sign_test
from mixwright.records import AnswerPair, Cause, FormChange
from mixwright.verdict.rules.answer_forms import form_changes
from mixwright.verdict.rules.causes import find_causes
from mixwright_lab.studies import real_all_weights, real_sft, real_skill_sft
from mixwright_lab.studies.cause_plants import Plant, make_plants, read_source
from mixwright_lab.studies.jobs import read_rows
from mixwright_lab.studies.real_models import FROZEN, TOOL_CALLS, NewTask, PublicPlace, RealModels
from mixwright_lab.studies.report import RESULTS, Goal, Result, run

SEEDS, TUNING = (127, 131, 137, 139, 149), (1, 2, 3)
"""Seeds of the plants that decide, and those that the rules were looked at on."""
LEAST_FALL, ALPHA = 0.1, 0.05
TAIL = " Would you like to know more?"
LEAST_RIGHT, LEAST_NONE, LEAST_BOTH, MOST_FALSE = 0.8, 0.7, 0.6, 0.05
FIRST_FORM = {
    "form of another task": "other format", "new form": "new format", "own form gone": "new format", "data": "new format",
    "empty": "empty", "cut": "cut", "repeating": "repeating", "prompt copied": "prompt copied", "shorter": "shorter",
    "other language": "other language", "one answer": "one answer", "longer": "longer",
}  # fmt: skip
"""Feature of the rival -> the cause that it would be taken for."""
STUDIES = {
    "tool calls, LoRA": (real_sft, TOOL_CALLS),
    "a skill, LoRA": (real_skill_sft, real_skill_sft.MIDDLE_NUMBER),
    "tool calls, all weights": (real_all_weights, real_all_weights.TASK),
}
"""Study of committed answers -> its module, and what it taught."""


def as_pairs(items: Sequence[Mapping[str, Any]]) -> list[AnswerPair]:
    """Answers to items as a verdict has them."""
    return [
        AnswerPair(
            item["task"], None, item["prompt"], item["answer"], item["before"], item["after"],
            float(item["score_before"]), float(item["score_after"]), (item["cut_before"], item["cut_after"]),
        )
        for item in items
    ]  # fmt: skip


def test_forms(items: Sequence[Mapping[str, Any]]) -> list[FormChange]:
    """Test the forms of the answers to items."""
    same = ("task", "example", "prompt", "answer")
    return form_changes(
        {name: item[name] for name in same}
        | {"when": when, "completion": item[when], "score": item[f"score_{when}"], "cut": item[f"cut_{when}"]}
        for item in items
        for when in ("before", "after")
    )


def find_damaged(pairs: Sequence[AnswerPair]) -> set[str]:
    """Tasks that fell by ten points and more, beyond chance."""
    by_task: dict[str, list[int]] = defaultdict(list)
    for pair in pairs:
        by_task[pair.task].append((pair.score_after >= RIGHT_FROM_SCORE) - (pair.score_before >= RIGHT_FROM_SCORE))
    return {
        task
        for task, moves in by_task.items()
        if sum(moves) <= -LEAST_FALL * len(moves) and sign_test(moves.count(-1), moves.count(1)) < ALPHA
    }


def judge(plant: Plant, items: Sequence[Mapping[str, Any]], seed: int) -> dict[str, Any]:
    """Return what is said of a plant, and of its rival."""
    pairs, changes = as_pairs(items), test_forms(items)
    damaged = find_damaged(pairs)
    causes = find_causes(pairs, damaged)
    own = [cause for cause in causes if cause.task == plant.task]
    rival = [change for change in changes if change.task == plant.task and change.reported]
    first = min(rival, key=lambda change: change.adjusted_p, default=None)
    return {
        "seed": seed,
        "plant": plant.name,
        "truth": list(plant.truth),
        "found": [[cause.kind, cause.items, cause.lost] for cause in own if cause.is_specific],
        "style": [cause.kind for cause in own if not cause.is_specific],
        "elsewhere": sorted({cause.task for cause in causes if cause.task != plant.task and cause.is_specific}),
        "damaged": plant.task in damaged,
        "rival": FIRST_FORM.get(first.feature, first.feature) if first is not None and plant.task in damaged else "",
    }


def judge_plants(seeds: Sequence[int]) -> list[dict[str, Any]]:
    """Return a row per plant."""
    source = read_source(RESULTS / "grader_readings.rows.jsonl")
    rows = []
    for seed in seeds:
        for plant, items in make_plants(source, seed):
            rows.append(judge(plant, items, seed))
            if plant.truth == ("none",):
                rows.append(judge(plant, add_style(items, plant.task), seed) | {"truth": ["style"]})
    return rows


def add_style(items: Sequence[Mapping[str, Any]], task: str) -> list[dict[str, Any]]:
    """Put the same sentence behind all later answers of a task, whether right or lost."""
    return [{**item, "after": item["after"] + TAIL * (item["task"] == task)} for item in items]


def is_right(row: Mapping[str, Any]) -> bool:
    """Whether what is named first is what was planted; nothing may be named where nothing on the list was."""
    found = [kind for kind, _, _ in row["found"]]
    if row["truth"] in (["none"], ["style"], ["clean"]):
        return not found
    return {*found[: len(row["truth"])]} == {*row["truth"]}


def is_rival_right(row: Mapping[str, Any]) -> bool:
    """Whether the first form change is what was planted."""
    return row["rival"] in row["truth"] or (not row["rival"] and row["truth"] in (["none"], ["style"], ["clean"]))


def read_study(study: Any, task: NewTask, public: PublicPlace) -> dict[str, dict[str, Any]]:
    """Arm -> how many of its lost answers have which cause, over the published seeds and all tasks that fell."""
    by_seed: dict[int, dict[str, Any]] = defaultdict(dict)
    for row in read_rows(study.ROWS_FILE):
        if row["seed"] in study.SEEDS:
            by_seed[row["seed"]][row["arm"]] = row["answers"]
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    for seed, arms in by_seed.items():
        with tempfile.TemporaryDirectory() as name:
            models = RealModels(Path(name), seed, public, task=task)
            asked = {row["id"]: row for row in models.rows["test"]}
        before = {item: answer for _, item, *answer in arms[FROZEN]}
        for arm, answers in arms.items():
            if arm == FROZEN:
                continue
            items = [
                {
                    "task": task_name, "example": item, "prompt": asked[item]["prompt"], "answer": asked[item]["answer"],
                    "before": before[item][1], "after": text, "score_before": before[item][0], "score_after": score,
                    "cut_before": before[item][2], "cut_after": cut,
                }
                for task_name, item, score, text, cut in answers
                if item in asked and item in before
            ]  # fmt: skip
            pairs = as_pairs(items)
            causes = find_causes(pairs, damaged := find_damaged(pairs))
            counts[arm].update(count_causes(causes, pairs, damaged))
    return {arm: dict(found) for arm, found in sorted(counts.items())}


def count_causes(causes: Sequence[Cause], pairs: Sequence[AnswerPair], damaged: set[str]) -> Counter[str]:
    """Count the lost answers of damaged tasks by their cause; `none` for those that no cause explains."""
    lost = sum(pair.task in damaged and pair.score_before >= RIGHT_FROM_SCORE > pair.score_after for pair in pairs)
    found, style = Counter[str](), Counter[str]()
    for cause in causes:
        if cause.is_specific:
            found[cause.kind] += cause.items
        else:
            style[f"style: {cause.kind}"] += cause.items
    return found + Counter({"none": lost - found.total()}) + style


def measure(quick: bool) -> Result:
    """Judge all plants, and read the committed studies."""
    rows = judge_plants(TUNING[:1] if quick else SEEDS)
    kinds = {
        "listed": [row for row in rows if row["truth"] not in (["none"], ["style"], ["clean"]) and len(row["truth"]) == 1],
        "not listed": [row for row in rows if row["truth"] == ["none"]],
        "not listed, with a change of style": [row for row in rows if row["truth"] == ["style"]],
        "two at once": [row for row in rows if len(row["truth"]) == 2],
        "clean": [row for row in rows if row["truth"] == ["clean"]],
    }
    shares = {name: share_interval(sum(map(is_right, found)), len(found)) for name, found in kinds.items()}
    rival = {name: share_interval(sum(map(is_rival_right, found)), len(found)) for name, found in kinds.items()}
    false_causes = share_interval(
        sum(not is_right(row) or bool(row["elsewhere"]) for row in kinds["clean"]), len(kinds["clean"])
    )
    listed, not_listed, both = (shares[name] for name in ("listed", "not listed", "two at once"))
    other = rival["listed"]
    goals = [
        Goal("right cause first", listed, f">= {LEAST_RIGHT}", listed.value >= LEAST_RIGHT),
        Goal("nothing for what is not listed", not_listed, f">= {LEAST_NONE}", not_listed.value >= LEAST_NONE),
        Goal("both of two among the first two", both, f">= {LEAST_BOTH}", both.value >= LEAST_BOTH),
        Goal("a cause in clean comparisons", false_causes, f"<= {MOST_FALSE}", false_causes.value <= MOST_FALSE),
        Goal("better than the first form change", listed, f"> {other.value:.3f}", listed.low > other.value),
    ]
    by_cause: dict[str, list[bool]] = defaultdict(list)
    for row in kinds["listed"]:
        by_cause[row["truth"][0]].append(is_right(row))
    figures: dict[str, Any] = {
        "right": {name: [found.value, found.low, found.high, found.n] for name, found in shares.items()},
        "rival, first form change": {name: [found.value, found.low, found.high, found.n] for name, found in rival.items()},
        "by cause": {name: [sum(found), len(found)] for name, found in sorted(by_cause.items())},
        "not damaged enough to be asked": sum(not row["damaged"] for row in rows if row["truth"] != ["clean"]),
    }
    if not quick and os.environ.get("MIXWRIGHT_PUBLIC"):
        public = PublicPlace.from_environment()
        figures["committed studies"] = {name: read_study(study, task, public) for name, (study, task) in STUDIES.items()}
    settings = {"alpha": ALPHA, "least fall": LEAST_FALL, "tuned on": TUNING}
    return Result(
        shares["listed"], "share of planted causes that are named first", SEEDS, rows, figures, settings, goals=goals
    )


if __name__ == "__main__":
    run("causes", __doc__, measure)
