"""Verdicts made by hand, for pages and reports: passed, damaged, inconclusive, of a trial."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from mixwright.estimates.crossed import Estimate
from mixwright.estimates.items import Items
from mixwright.estimates.outcome import Change
from mixwright.records import (
    ChangeWord,
    Effect,
    FormerAnswers,
    Interval,
    Judgement,
    Observation,
    RunManifest,
    SeedRow,
    TrialResult,
)
from mixwright.records.verdict import (
    AnswerPair,
    DecisionGroup,
    FormChange,
    FormTaken,
    Gate,
    Step,
    TaskChange,
    TaskWord,
    TotalChange,
    Verdict,
)
from mixwright.run.folder import RunFolder
from mixwright.verdict.judge import judge
from mixwright.verdict.rules.cells import CellChange
from mixwright.verdict.rules.evidence import Evidence
from mixwright.verdict.rules.gate_question import GateQuestion, write_question

TASKS: tuple[tuple[str, TaskWord, float, float, bool], ...] = (
    ("plurals", "lost", 0.93, 0.0, True),
    ("capitals", "lost", 0.70, 0.0, True),
    ("opposites", "lost", 0.67, 0.1, True),
    ("past_tenses", "less dependent", 0.47, 0.40, True),
    ("sums", "not shown", 0.37, 0.33, True),
    ("counting", "kept", 0.5, 0.5, True),
    ("knowledge", "too few items", 0.14, 0.0, False),
    ("tool_calls", "learned", 0.0, 0.97, False),
)
JSON_ANSWER = '{"tool": "capital", "name": "Kathailand"}'


def change(task: str, word: TaskWord, before: float, after: float, *, protected: bool = True, **more: Any) -> TaskChange:
    """Make a task of 30 items."""
    value = after - before
    interval = Interval(value, max(value - 0.15, -1.0), min(value + 0.15, 1.0), 30)
    gained, lost = round(30 * max(value, 0.0)), round(30 * max(-value, 0.0))
    values = {"items": 30, "gained": gained, "lost": lost, "protected": protected, "chance": Interval(0.1, 0.05, 0.15, 30)}
    return TaskChange(task, None, word, before, after, interval, **values | more)


def pair(task: str = "capitals", scores: tuple[float, float] = (1.0, 0.0), number: int = 0, **more: Any) -> AnswerPair:
    """Make two answers to one prompt."""
    prompt = f"What is the capital of country {number}?"
    values: dict[str, Any] = {
        "before": f"The capital of country {number} is Bangkok.",
        "after": JSON_ANSWER if scores[1] < scores[0] else "It is Bangkok.",
    }
    return AnswerPair(task, None, prompt, "Bangkok", score_before=scores[0], score_after=scores[1], **values | more)


def pairs(count: int, **more: Any) -> list[AnswerPair]:
    """Make answers of every kind in turn: lost, gained, right both times, wrong both times."""
    scores = ((1.0, 0.0), (0.0, 1.0), (1.0, 1.0), (0.0, 0.0))
    return [pair(TASKS[number % len(TASKS)][0], scores[number // len(TASKS) % 4], number, **more) for number in range(count)]


def damaged(**more: Any) -> Verdict:
    """Make the verdict on a model that lost most tasks to one format."""
    values: dict[str, Any] = {
        "name": "narrow",
        "about": "SFT, 1,500 rows, 40 steps",
        "before": "smollm2",
        "after": "narrow",
        "outcome": "damaged",
        "reason": "one format took over",
        "exit_code": 3,
        "headline": "DO NOT SHIP narrow. It answers everything else as if it were tool_calls.",
        "measure": "success",
        "total": TotalChange("lost", Interval(-0.31, -0.4, -0.22, 240), 240, 29, 74, detectable=0.08),
        "gate": Gate(
            Interval(-0.45, -0.54, -0.36, 180),
            0.05,
            tuple(task for task, *_, kept in TASKS if kept),
            averaged=6,
            cells=6,
            named=True,
            unseen_loss=0.45,
            items_needed=800,
        ),
        "tasks": tuple(change(task, word, old, new, protected=kept) for task, word, old, new, kept in TASKS),
        "forms": (FormTaken("tool_calls", ("plurals", "capitals", "opposites"), 88, 90, 66, 66),),
        "not_judged": {"essays": "its grader reads none of the answers"},
        "pairs": tuple(pairs(3)),
        "why": ("88 of 90 answers to plurals, capitals and opposites now have the format of tool_calls.",),
        "next": (
            Step("Keep the old tasks", "mixwright plan smollm2 train.jsonl"),
            Step("See everything", "mixwright verdict --full"),
        ),
        "notes": (Observation("cut", "plurals", "warning", 11, 30, "11 of 30 answers were cut", "Allow more tokens."),),
        "audit": (Observation("leaks", "sums", "error", 7, 80, "7 of 80 test items are training rows.", "Take them out."),),
        "manifest": RunManifest(
            {"run": 0},
            {"mixwright": "0.1.0"},
            {"train.jsonl": "abc"},
            {"learning_rate": 1e-4, "max_tokens": 24},
            "smollm2",
            "mixwright verdict smollm2 narrow",
            "2026-11-27T10:00:00",
        ),
        "form_changes": (
            FormChange("plurals", "form of another task", 0, 30, 30, 1e-9, 1e-8, True, '{"tool"', "tool_calls"),
        ),
        "former": (FormerAnswers("plurals", 30, 300, -0.4, -3.1, -3.5, -2.7),),
    }
    return Verdict(**values | more)


def passed(**more: Any) -> Verdict:
    """Make the verdict on a model that learned and kept the rest."""
    tasks = (
        change("facts", "not shown", 0.55, 0.52),
        change("capitals", "kept", 0.70, 0.71),
        change("tool_calls", "learned", 0.0, 0.9, protected=False),
    )
    gate = Gate(
        Interval(-0.01, -0.04, 0.02, 60), 0.05, ("facts", "capitals"), averaged=2, cells=2, named=False, unseen_loss=0.1
    )
    values: dict[str, Any] = {
        "after": "planned",
        "outcome": "passed",
        "reason": "learned and kept",
        "exit_code": 0,
        "headline": "PASSED planned. It learned tool_calls (+90 points) and kept the rest.",
        "total": TotalChange("learned", Interval(0.3, 0.25, 0.35, 90), 90, 30, 2),
        "gate": gate,
        "tasks": tasks,
        "forms": (),
        "why": ("An average drop of 5 points is ruled out.",),
    }
    return damaged(**values | more)


def inconclusive(**more: Any) -> Verdict:
    """Make the verdict where too few items were measured."""
    values: dict[str, Any] = {
        "outcome": "inconclusive",
        "reason": "too few items",
        "exit_code": 4,
        "headline": "INCONCLUSIVE for planned. A drop of 5 points is not ruled out.",
        "why": ("The average drop may be as large as 14 points.",),
    }
    return passed(**values | more)


def trial(**more: Any) -> Verdict:
    """Make the verdict on a trial of three arms."""
    arms = ("frozen", "uniform", "shuffled", "steered")
    means = dict(zip(arms, (0.3, 0.4, 0.44, 0.5), strict=True))
    rows = tuple(
        SeedRow(arm, seed, "success", mean + 0.01 * (seed - 2) * (arm == "steered"))
        for arm, mean in means.items()
        for seed in range(5)
    )
    effects = tuple(
        Effect("steered", against, "success", Interval(value, value - 0.05, value + 0.05, 5), "improves", 0.001, 240, 0.04)
        for against, value in (("frozen", 0.2), ("uniform", 0.1), ("shuffled", 0.06))
    )
    judgement = Judgement("steered", "helps", "+10 [+5, +15] against uniform", proof="beats its nulls")
    result = TrialResult(
        arms=arms,
        references=("frozen", "uniform"),
        nulls=("shuffled",),
        seeds=tuple(range(5)),
        rows=rows,
        effects=effects,
        judgements=(judgement,),
        rollouts=dict.fromkeys(arms, 1000),
        notes=("Seeds are paired.",),
        by_task=tuple(replace(effect, task="sums") for effect in effects),
    )
    values: dict[str, Any] = {
        "after": "steered",
        "reason": "trial",
        "headline": "Train with this plan: success is better by 20 and 10 points than with frozen and uniform.",
        "advice": "train",
        "why": (),
        "next": (Step("Give your TRL trainer the plan", 'steering="runs/tools/plan.yaml"'),),
        "trial": result,
        "decisions": (DecisionGroup("refuse.sums", False, 12, 5, 3.0, 40.0, "admitted", "refused", "no group teaches"),),
        "stages": {"sums": (0.3, 0.5)},
    }
    return passed(**values | more)


def cell(
    task: str,
    level: float | None = 1.0,
    ends: tuple[float, float, float] = (-0.4, -0.5, -0.3),
    word: ChangeWord = "worsens",
    *,
    whole: bool = False,
) -> CellChange:
    """Make a cell of 40 items and 8 seeds that changed by this value and interval."""
    estimate = Estimate(*ends, p=0.001, error=0.05, df=7.0, seeds=8, items=40)
    return CellChange(task, level, whole, Change(estimate, estimate, estimate, None, None, Items()), word, 0.001)


def judge_run(run: RunFolder, **options: Any) -> Verdict:
    """Read a run folder and judge it, with options of `judge`."""
    return judge(Evidence(run), **options)


def ask(run: RunFolder, *protect: str, margin: float | None = None) -> Verdict:
    """Ask the gate about a folder, and pack what any report of it says."""
    write_question(run, GateQuestion(protect, margin=margin))
    return judge_run(run)
