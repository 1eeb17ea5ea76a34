"""Parts of a run folder that a verdict packs: by hand, with broken files, and as the sections of the page show them."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import verdicts
from _example_run import build
from answer_rows import ItemValue, write_measured
from comparisons import example

from mixwright.catalog import create
from mixwright.errors import InputError
from mixwright.records import Plan, Stage, TrialResult, Verdict
from mixwright.run.folder import RunFolder, read_json, write_json, write_plan
from mixwright.verdict.page.blocks import Table
from mixwright.verdict.page.text import NO_VALUE_SIGN
from mixwright.verdict.read_parts import read_decisions, read_pairs, read_stages, shorten_paths
from mixwright.verdict.rules.evidence import Evidence


def cells_of(verdict: Verdict, section: str) -> list[tuple[str, ...]]:
    """Return the rows of all tables of a section."""
    blocks = create("sections", section).blocks(verdict)
    return [row for block in blocks if isinstance(block, Table) for row in block.rows]


def line(step: float, what: str, old: Any, new: Any, **more: Any) -> str:
    return json.dumps({"step": step, "what": what, "old": old, "new": new, "because": f"at {step}", **more}) + "\n"


def test_decisions_are_grouped_alarms_first(tmp_path: Path) -> None:
    lines = [line(3, "beta", 0.1, 0.2), line(9, "beta", 0.2, 0.4), line(5, "alarm.kl", None, True)]
    (tmp_path / "decisions.jsonl").write_text("".join(lines), encoding="utf-8")
    alarm, beta = read_decisions(Evidence(RunFolder(tmp_path)))
    assert (alarm.name, alarm.is_alarm, alarm.old, alarm.new) == ("alarm.kl", True, "", "True")
    assert (beta.times, beta.seeds, beta.first_step, beta.last_step) == (2, 1, 3.0, 9.0)
    assert (beta.old, beta.new, beta.because) == ("0.1", "0.4", "at 9")
    rows = cells_of(verdicts.trial(decisions=(alarm, beta)), "decisions")
    assert [row[0] for row in rows] == ["alarm.kl", "beta"]
    assert "0.1 → 0.4" in rows[1]
    assert read_decisions(Evidence(RunFolder(tmp_path / "none"))) == ()


def test_decisions_of_a_trial_are_those_of_all_seeds_and_a_broken_line_is_named(tmp_path: Path) -> None:
    run = build(tmp_path, seeds=2)
    assert max(group.seeds for group in read_decisions(Evidence(run))) == 2
    path = run.branch("steered", 0) / "decisions.jsonl"
    whole_lines = len(path.read_text(encoding="utf-8").splitlines())
    with path.open("a") as file:
        file.write("{broken\n")
    with pytest.raises(InputError, match=rf"decisions\.jsonl, line {whole_lines + 1}"):
        read_decisions(Evidence(run))


def test_stages_are_means_over_seeds(tmp_path: Path) -> None:
    run = build(tmp_path, seeds=2)
    assert read_stages(Evidence(run)) == {}, "a plan of one stage"
    stages = tuple(Stage(name, "grpo", 5, {"gcd": 1.0}, expected={"gcd": 0.5}) for name in ("first", "second"))
    write_plan(run.plan, Plan("proportional", stages))
    for seed in range(2):
        folder = run.branch("steered", seed) / "stages" / "1"
        row = ItemValue("gcd", "greedy", 0.25 + 0.5 * seed, None, "gcd-0", 8)
        write_measured(folder / "measured.parquet", [row])
    success = read_stages(Evidence(run))
    assert success == {"gcd": (0.5, None)}
    verdict = verdicts.trial(stages=success, plan=Plan("proportional", stages))
    assert cells_of(verdict, "stages") == [("gcd", "50 % (50 %)", f"{NO_VALUE_SIGN} (50 %)")]


def test_pairs_are_the_answers_of_both_models(tmp_path: Path) -> None:
    pairs = read_pairs(Evidence(example(tmp_path / "run")))
    assert len(pairs) == 60
    first = next(pair for pair in pairs if pair.score_after < pair.score_before)
    assert (first.prompt, first.before, first.after) == ("capitals 29?", "yes", "no <b>after</b>")
    assert (first.gold, first.score_before, first.score_after) == ("yes", 1.0, 0.0)
    assert read_pairs(Evidence(RunFolder(tmp_path / "none"))) == []


def test_the_leading_arm_is_known_by_its_role_not_by_its_name(tmp_path: Path) -> None:
    result = read_json(build(tmp_path / "run", seeds=2).result, TrialResult)
    run = RunFolder(tmp_path / "roles")
    for arms, references, expected in (
        (("uniform", "permuted_easy", "steered"), ("uniform", "steered"), "permuted_easy"),
        (("steered", "other"), (), "steered"),
        (("frozen", "uniform"), ("frozen", "uniform"), "uniform"),
    ):
        effects = (replace(result.effects[0], arm="uniform", against="frozen"),)
        write_json(run.result, replace(result, arms=arms, references=references, nulls=(), effects=effects))
        assert Evidence(run).arm == expected


def test_names_are_last_parts_and_longer_where_they_end_alike() -> None:
    assert shorten_paths(("hub/smollm2", "runs/narrow", "runs/planned/")) == ["smollm2", "narrow", "planned"]
    assert shorten_paths(("base", "a/model", "b/model")) == ["base", "a/model", "b/model"]
    assert shorten_paths(("x", "x", "x")) == ["x", "x", "x"]
