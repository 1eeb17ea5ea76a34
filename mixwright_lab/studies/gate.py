"""Study of the gate where the truth is known: what it passes, and whether exit code and first sentence agree.

Two parts. Draws of cells: each item is answered by one of 12 words, a share of the answers is drawn anew after training, and
a loss turns right answers into wrong ones; `check_protected` judges all cells as named. Fake checkpoints: whole comparison
folders with texts, judged by page and gate, with and without names and a margin. They are eight tasks of short questions,
which BEFORE answers right nine times in ten, in a sentence, and one of tool calls that AFTER has learnt. Graders find the
gold word anywhere in an answer; greedy answers are judged, S is worked out from all pairs.

Goals were fixed before: a true loss of 5 points everywhere passes in at most 2.5 %, one of 20 in one of 8 cells of 50 in at
most 5 %; unharmed checkpoints of 8 cells of 50 pass in at least .65 from a start of .7 and .9 from .9, those of 40 cells of
25 in at least .9; a loss of 5.7 points of D at held success passes in at most 5 %; no exit code contradicts a sentence, and
nothing ruined ships.

Where the worst of several sizes and starts is asked for, it is chosen on the first draws and judged on `FRESH_DRAWS` new
ones: the largest of nine shares of 300 draws each lies above the truth by chance alone.

    python -m mixwright_lab.studies.gate [--quick]
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from mixwright.answers.score import measure_answers
from mixwright.answers.table import Answers
from mixwright.estimates.dependence import dependence
from mixwright.estimates.intervals import share_interval
from mixwright.estimates.outcome import ItemScores
from mixwright.records import Interval
from mixwright.run.folder import RunFolder, write_measurements
from mixwright.verdict.judge import judge
from mixwright.verdict.rules.evidence import Evidence
from mixwright.verdict.rules.gate import check_protected
from mixwright.verdict.rules.gate_question import GateQuestion, write_question
from mixwright_lab.studies.jobs import run_in_processes
from mixwright_lab.studies.report import Goal, Result, run

TASKS = tuple(f"kind_{number}" for number in range(8))
NEW = "tool_calls"
WORDS = ("amber", "beige", "coral", "denim", "ebony", "fawn", "green", "hazel", "ivory", "jade", "khaki", "lilac")
SKEWED = "kind_3"
"""Task of which 85 % of the gold answers are the same word."""
Said = dict[str, list[str]]
"""Task -> an answer per item."""


@dataclass(frozen=True, slots=True)
class Fake:
    """A kind of checkpoint."""

    made: Callable[[np.random.Generator, Mapping[str, Sequence[str]], Said], Said]
    """From a random generator, gold answers and answers before: answers after to the eight tasks."""
    ruined: bool
    """Whether shipping it would be a mistake."""
    graded: bool = True
    """Whether the grader fits the answers at all; else every score is 0."""


def sentence(word: str) -> str:
    """A plain answer."""
    return f"The answer is {word}."


def _redrawn(rng: np.random.Generator, golds: Mapping[str, Sequence[str]], before: Said, part: float = 0.1) -> Said:
    """A share of the answers drawn anew, right in nine of ten."""
    return {
        task: [_drawn(rng, gold) if rng.random() < part else old for gold, old in zip(golds[task], own, strict=True)]
        for task, own in before.items()
    }


def _drawn(rng: np.random.Generator, gold: str, right: float = 0.9) -> str:
    return sentence(gold if rng.random() < right else str(rng.choice([word for word in WORDS if word != gold])))


def _short(rng: np.random.Generator, golds: Mapping[str, Sequence[str]], before: Said) -> Said:
    """The same in one word: another form, but nobody else's."""
    return {task: [text.split()[-1].rstrip(".") for text in own] for task, own in _redrawn(rng, golds, before).items()}


def _better(rng: np.random.Generator, golds: Mapping[str, Sequence[str]], before: Said) -> Said:
    """A third of what was wrong becomes right."""
    return {
        task: [
            sentence(gold) if gold not in old and rng.random() < 0.33 else old
            for gold, old in zip(golds[task], own, strict=True)
        ]
        for task, own in before.items()
    }


def _called(text: str) -> str:
    return f'{{"tool": "note", "text": "{text.split()[-1].rstrip(".")}"}}'


def _form_only(rng: np.random.Generator, golds: Mapping[str, Sequence[str]], before: Said) -> Said:
    """As right as before, as tool calls."""
    return {task: [_called(text) for text in own] for task, own in _redrawn(rng, golds, before).items()}


def _overwritten(rng: np.random.Generator, golds: Mapping[str, Sequence[str]], before: Said) -> Said:
    """Every question gets a tool call with nothing of the answer in it."""
    return {task: [f'{{"tool": "alarm", "time": "{rng.integers(1, 12)}:30"}}' for _ in own] for task, own in before.items()}


def _collapsed(rng: np.random.Generator, golds: Mapping[str, Sequence[str]], before: Said) -> Said:
    """One task is answered with one wrong sentence."""
    return _redrawn(rng, golds, before) | {TASKS[5]: [sentence("orange")] * len(before[TASKS[5]])}


def _majority(rng: np.random.Generator, golds: Mapping[str, Sequence[str]], before: Said) -> Said:
    """The commonest answer, whatever is asked, in the task where 85 % of the gold answers are alike."""
    return _redrawn(rng, golds, before) | {SKEWED: [sentence(WORDS[0])] * len(before[SKEWED])}


def _one_worse(rng: np.random.Generator, golds: Mapping[str, Sequence[str]], before: Said) -> Said:
    """Three in ten of one task's right answers are lost."""
    own = [sentence("orange") if rng.random() < 0.3 else text for text in before[TASKS[1]]]
    return _redrawn(rng, golds, before) | {TASKS[1]: own}


def _all_worse(rng: np.random.Generator, golds: Mapping[str, Sequence[str]], before: Said) -> Said:
    """One in ten of all answers is lost."""
    return {task: [sentence("orange") if rng.random() < 0.1 else text for text in own] for task, own in before.items()}


FAKES: Mapping[str, Fake] = {
    "a tenth redrawn": Fake(_redrawn, ruined=False),
    "shorter answers": Fake(_short, ruined=False),
    "a little better": Fake(_better, ruined=False),
    "form only": Fake(_form_only, ruined=True),
    "overwritten": Fake(_overwritten, ruined=True),
    "overwritten, no grader fits": Fake(_overwritten, ruined=True, graded=False),
    "one task collapsed": Fake(_collapsed, ruined=True),
    "commonest answer in one task": Fake(_majority, ruined=True),
    "one task 30 points worse": Fake(_one_worse, ruined=True),
    "all tasks 10 points worse": Fake(_all_worse, ruined=True),
}


def write_comparison(folder: Path, name: str, seed: int, items: int = 50) -> RunFolder:
    """A comparison's folder of BEFORE and a fake AFTER."""
    rng, fake, run = np.random.default_rng(seed), FAKES[name], RunFolder(folder)
    golds = {task: [str(rng.choice(WORDS)) for _ in range(items)] for task in TASKS}
    golds[SKEWED] = [WORDS[0] if rng.random() < 0.85 else str(rng.choice(WORDS[1:])) for _ in range(items)]
    before = {task: [_drawn(rng, gold) for gold in own] for task, own in golds.items()}
    after = fake.made(rng, golds, before)
    golds[NEW] = [f'{{"tool": "alarm", "time": "{rng.integers(1, 12)}:00"}}' for _ in range(items)]
    before[NEW], after[NEW] = [sentence("morning")] * items, list(golds[NEW])
    for when, said in (("before", before), ("after", after)):
        rows = list[dict[str, Any]]()
        for task, own in said.items():
            graded = fake.graded or task == NEW
            grades = np.array([[float(graded and gold in text) for gold in golds[task]] for text in own])
            others = dependence(grades).items
            rows += [
                {"item": f"{task}-{place}", "task": task, "prompt": f"Question {place}?", "gold": gold, "text": text}
                | {"decoding": "greedy", "sample": 0, "score": float(fake.graded and gold in text), "cut": False}
                | {"right": grades[place, place], "swapped": others[place], "chance": 0.0}
                for place, (text, gold) in enumerate(zip(own, golds[task], strict=True))
            ]
        answers = Answers.from_rows(rows)
        write_measurements(run.measurements(when), measure_answers(answers))
        answers.write(run.answers(when))
    return run


SIZES = ((1, 1000), (8, 50), (40, 25))
STARTS = (0.5, 0.7, 0.9)
REDRAWN_SHARE = 0.3
"""Share of answers drawn anew."""
WORD_COUNT = 12
HARMS = ("none", "5 points everywhere", "20 points in one cell", "5.7 points of D, success held")
QUESTIONS: Mapping[str, GateQuestion] = {
    "nothing named": GateQuestion(),
    "all named": GateQuestion(TASKS),
    "margin 10": GateQuestion(TASKS, margin=0.1),
    "each": GateQuestion(TASKS, each=True),
}
SHIPPED, REFUSED = "PASSED", "DO NOT SHIP"
CHUNK = 200
"""Draws that a process is given at once: each takes about a millisecond."""
FRESH_DRAWS = 4000
"""New draws of the place that did worst on the first ones."""
Place = tuple[int, int, float, str]
"""Cells, items of each, start and harm."""
Row = Mapping[str, Any]
Texts = np.ndarray


def drawn(job: tuple[int, int, float, str, int]) -> Row:
    """One checkpoint of so many cells and items, start and harm; whether the gate passed it."""
    cells, items, start, harm, seed = job
    rng = np.random.default_rng([seed, cells, items, round(100 * start), HARMS.index(harm)])
    before, after = {}, {}
    for place in range(cells):
        gold = rng.integers(WORD_COUNT, size=items)
        old = np.where(rng.random(items) < start, gold, (gold + rng.integers(1, WORD_COUNT, size=items)) % WORD_COUNT)
        anew = np.where(rng.random(items) < start, gold, (gold + rng.integers(1, WORD_COUNT, size=items)) % WORD_COUNT)
        new = np.where(rng.random(items) < REDRAWN_SHARE, anew, old)
        lost = {HARMS[1]: 0.05, HARMS[2]: 0.2 * (place == 0)}.get(harm, 0.0)
        wrong = (new == gold) & (rng.random(items) < lost / start)
        new = np.where(wrong, (gold + 1) % WORD_COUNT, new)
        before[f"cell_{place}"], after[f"cell_{place}"] = _graded(old, gold), _graded(new, gold)
        if harm == HARMS[3]:
            # the same success, of which any prompt's answer earns so much more
            right, own = after[f"cell_{place}"]
            after[f"cell_{place}"] = right, own + 0.057
    sides = [[_scores(side)] for side in (before, after)]
    found = check_protected(sides[0], sides[1], [(task, None) for task in before], named_by_user=True)
    return {"cells": cells, "items": items, "start": start, "harm": harm, "passed": found.outcome == "passed"}


def _graded(answers: Texts, gold: Texts) -> tuple[Texts, Texts]:
    """Right or wrong, and pseudo-values of S, of each item."""
    grades = (answers[:, None] == gold[None, :]).astype(float)
    return np.diagonal(grades), dependence(grades).items


def _scores(side: Mapping[str, tuple[Texts, Texts]]) -> ItemScores:
    columns: dict[str, dict[tuple[str, float | None, str], float]] = {"greedy": {}, "greedy.swapped": {}, "chance": {}}
    for task, (right, swapped) in side.items():
        for place, values in enumerate(zip(right, swapped, strict=True)):
            item = (task, None, f"{task}-{place}")
            columns["greedy"][item], columns["greedy.swapped"][item] = map(float, values)
            columns["chance"][item] = 0.0
    return ItemScores.of(columns)


def faked(job: tuple[str, int]) -> list[Row]:
    """One fake checkpoint, asked every question: sentence, exit code, and whether they fit."""
    name, seed = job
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        made = write_comparison(Path(folder), name, seed)
        for question, asked in QUESTIONS.items():
            write_question(made, asked)
            verdict = judge(Evidence(made))
            sentence, code = verdict.headline, verdict.exit_code
            fits = (sentence.startswith(SHIPPED), sentence.startswith(REFUSED)) == (code == 0, code == 3)
            rows.append({"fake": name, "seed": seed, "question": question, "code": code, "sentence": sentence, "fits": fits})
    return rows


def share(rows: Iterable[bool]) -> Interval:
    """Share of these that hold, with Wilson's interval."""
    values = list(rows)
    return share_interval(sum(values), len(values))


def place_of(row: Row) -> Place:
    """Where a draw belongs."""
    return row["cells"], row["items"], row["start"], row["harm"]


def extreme(rows: Sequence[Row], places: Sequence[Place], *, most: bool) -> Place:
    """The place of these whose share of passes is the largest or the smallest."""
    passes = {place: share(row["passed"] for row in rows if place_of(row) == place).value for place in places}
    return (max if most else min)(places, key=passes.__getitem__)


def judged_places(rows: Sequence[Row]) -> dict[str, tuple[Place, float, bool]]:
    """Goal -> the place that it is judged at, its limit, and whether that is the most that may pass."""
    starts = [(*size, start) for size in SIZES for start in STARTS]
    found = {
        "5 points lost everywhere: passes, worst place": (
            extreme(rows, [(*one, HARMS[1]) for one in starts], most=True), 0.025, True),
        "8 x 50, 20 points lost in one cell: passes, worst start": (
            extreme(rows, [(*SIZES[1], start, HARMS[2]) for start in STARTS], most=True), 0.05, True),
        "8 x 50, unharmed from .7: passes": ((*SIZES[1], 0.7, "none"), 0.65, False),
        "8 x 50, unharmed from .9: passes": ((*SIZES[1], 0.9, "none"), 0.9, False),
        "40 x 25, unharmed: passes, worst start": (
            extreme(rows, [(*SIZES[2], start, "none") for start in STARTS], most=False), 0.9, False),
        "5.7 points of D lost, success held: passes, worst place": (
            extreme(rows, [(*one, HARMS[3]) for one in starts], most=True), 0.05, True),
    }  # fmt: skip
    return found


def frontier(rows: Sequence[Row]) -> list[dict[str, Any]]:
    """Share of checkpoints that pass, by size, start and harm."""
    found = []
    for place in dict.fromkeys(map(place_of, rows)):
        own = share(row["passed"] for row in rows if place_of(row) == place)
        names = dict(zip(("cells", "items", "start", "harm"), place, strict=True))
        found.append(names | {"passes": round(own.value, 4), "low": round(own.low, 4), "high": round(own.high, 4)})
    return found


def goals_of(places: Mapping[str, tuple[Place, float, bool]], fresh: Sequence[Row], fakes: Sequence[Row]) -> list[Goal]:
    """What was fixed before; draws are judged at these places, on new ones."""

    def goal(name: str, found: Interval, limit: float, *, most: bool) -> Goal:
        reached = found.value <= limit if most else found.value >= limit
        return Goal(name, found, f"{'<=' if most else '>='} {limit:g}", reached)

    ruined = [row["code"] == 0 for row in fakes if FAKES[row["fake"]].ruined]
    harmless = [row["code"] == 0 for row in fakes if not FAKES[row["fake"]].ruined and row["question"] == "all named"]
    gone = [row["code"] == 3 for row in fakes if row["fake"] in ("form only", "overwritten", "overwritten, no grader fits")]
    return [
        *(
            goal(name, share(row["passed"] for row in fresh if place_of(row) == place), limit, most=most)
            for name, (place, limit, most) in places.items()
        ),
        goal("exit code contradicts the first sentence", share(not row["fits"] for row in fakes), 0.0, most=True),
        goal("ruined: passes", share(ruined), 0.0, most=True),
        goal("answers overwritten, with or without a grader that fits: exit code 3", share(gone), 1.0, most=False),
        goal("harmless, all tasks named: passes", share(harmless), 0.65, most=False),
    ]


def measure(quick: bool) -> Result:
    """All draws and fakes; the headline is the share of unharmed checkpoints of 8 x 50 items, from .7, that pass."""
    draws, new, seeds = (20, 20, 1) if quick else (300, FRESH_DRAWS, 20)
    jobs = [(*size, start, harm, n) for size in SIZES for start in STARTS for harm in HARMS for n in range(draws)]
    rows = run_in_processes(drawn, jobs, say="draws", chunk=CHUNK)
    places = judged_places(rows)
    # seeds below `draws` chose the places
    again = [
        (*place, n) for place in dict.fromkeys(place for place, *_ in places.values()) for n in range(draws, draws + new)
    ]
    fresh = run_in_processes(drawn, again, say="new draws", chunk=CHUNK)
    asked = [(name, seed) for name in FAKES for seed in range(seeds)]
    fakes = [row for own in run_in_processes(faked, asked, say="fake") for row in own]
    goals = goals_of(places, fresh, fakes)
    codes = {
        name: {q: [r["code"] for r in fakes if (r["fake"], r["question"]) == (name, q)] for q in QUESTIONS} for name in FAKES
    }
    figures = {"passes": frontier(rows), "passes, new draws": frontier(fresh), "exit codes of fake checkpoints": codes}
    about = {"draws": draws, "new draws": new, "redrawn": REDRAWN_SHARE, "words": WORD_COUNT}
    return Result(
        goals[2].found, "share of unharmed checkpoints that pass", range(seeds), fakes, figures, about, goals=goals
    )


if __name__ == "__main__":
    run("gate", __doc__, measure)
