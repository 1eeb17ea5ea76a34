"""Recommendation of a trial, outcome of a comparison: every rule, their order, and the next command of each."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest
from _example_run import build_pair, item_rows
from _scores import scores
from answer_rows import write_measured
from verdicts import cell, judge_run

from mixwright.estimates.items import TaskLevel
from mixwright.records import (
    ChangeWord,
    Effect,
    FormTaken,
    GateOutcome,
    Interval,
    Reason,
    RunManifest,
    Selection,
    TaskWord,
    TotalChange,
    Verdict,
)
from mixwright.run.folder import RunFolder, write_json
from mixwright.verdict.judge import NOT_ASKED, decide
from mixwright.verdict.rules.cells import CellChange
from mixwright.verdict.rules.gate import GateResult
from mixwright.verdict.rules.next_steps import list_steps_after_comparison, list_steps_after_trial
from mixwright.verdict.rules.trial import TRIAL_RULES, TrialBasis, advise, say_advice
from mixwright.verdict.stage import write_verdict

ARMS = ("uniform", "equal_shares", "steered")
CONTRASTS = (
    ("steered", "frozen"),
    ("steered", "uniform"),
    ("steered", "equal_shares"),
    ("uniform", "frozen"),
    ("equal_shares", "frozen"),
    ("equal_shares", "uniform"),
)
VALUES: dict[ChangeWord, tuple[float, float, float]] = {
    "improves": (0.10, 0.06, 0.14),
    "worsens": (-0.10, -0.14, -0.06),
    "no change": (0.0, -0.02, 0.02),
    "cannot tell": (0.02, -0.06, 0.10),
}


def trial(words: dict[tuple[str, str], ChangeWord] | None = None, **fields) -> TrialBasis:
    """Eight seeds, nothing shown, nothing damaged, unless told otherwise."""
    said = {pair: (words or {}).get(pair, "cannot tell") for pair in CONTRASTS}
    found = tuple(
        Effect(*pair, "success", Interval(*VALUES[word], 8), word, detectable=0.072) for pair, word in said.items()
    )
    known = {"seeds": 8, "right": True, "trained": ARMS, "contrasts": found, "lever": "steered", "word": "cannot tell"}
    return TrialBasis(**known | fields)


def against_frozen(word: ChangeWord) -> dict[tuple[str, str], ChangeWord]:
    return {(arm, "frozen"): word for arm in ARMS}


HELPS = {("steered", name): "improves" for name in ("frozen", "uniform", "equal_shares")}
EQUAL = {("equal_shares", "frozen"): "improves", ("equal_shares", "uniform"): "improves"}
UNIFORM = {("uniform", "frozen"): "improves", ("steered", "uniform"): "no change", ("equal_shares", "uniform"): "worsens"}
EVERYWHERE = {arm: (cell("gcd"),) for arm in ARMS}
WHY = "Train on best (5 of 100 rows): +9 points against all rows."
TAKEN = Selection("best", "train on it", WHY, 5, 100, made=False, trained_on={}, price="")
REFUSED = dataclasses.replace(TAKEN, advice="not recommended", sentence="Not recommended: best: the interval includes 0.")
TRIALS = [
    (trial(right=False, word="helps"), "check the grader"),
    (trial(any_right=False), "none right"),
    (trial(any_right=False, selection=REFUSED), "mined rows"),
    (trial(HELPS, seeds=1, word="helps"), "too few seeds"),
    (trial(seeds=4, seeds_needed=11, changes=EVERYWHERE), "too few seeds"),
    (trial(changes=EVERYWHERE, word="helps"), "stop"),
    (trial(against_frozen("worsens")), "do not train"),
    (trial(selection=TAKEN, word="helps"), "mined rows"),
    (trial(HELPS, word="helps"), "train"),
    (trial(HELPS, word="helps", changes={"steered": (cell("lcm"),)}), "train with losses"),
    (trial(HELPS, word="helps", gate=GateResult("damaged", None, (), None)), "gate"),
    (trial(HELPS, word="helps", gate=GateResult("inconclusive", None, (), None)), "gate"),
    (trial(HELPS, word="helps", gate=GateResult("passed", None, (), None)), "train"),
    (trial(EQUAL), "equal shares"),
    (trial(EQUAL, lever="", word=None), "equal shares"),
    (trial(UNIFORM), "keep uniform"),
    (trial(UNIFORM, trained=("uniform",), lever="", word=None), "keep uniform"),
    (trial(UNIFORM, word="harms"), "keep uniform"),
    (trial(against_frozen("no change")), "no gain"),
    (trial({("steered", "uniform"): "worsens"}, word="harms"), "not this plan"),
    (trial(missing=("equal_shares",)), "missing"),
    (trial(seeds_needed=15), "cannot tell"),
    (trial(contrasts=(), lever="", word=None), "cannot tell"),
    (trial(contrasts=(), trained=(), lever="", word=None), "cannot tell"),
]


@pytest.mark.parametrize(("seen", "advice"), TRIALS)
def test_every_rule_of_a_trial(seen: TrialBasis, advice: str) -> None:
    assert advise(seen) == advice
    assert say_advice(advise(seen), seen)


def test_every_rule_has_a_case() -> None:
    assert {name for name, _ in TRIAL_RULES} == {advice for _, advice in TRIALS}


def test_damage_by_every_arm_but_one_is_not_stop() -> None:
    some = {arm: (cell("gcd"),) for arm in ("uniform", "equal_shares")}
    assert advise(trial(HELPS, word="helps", changes=some)) == "train", "the plan spares what the others damage"
    other = some | {"steered": (cell("lcm"),)}
    assert advise(trial(HELPS, word="helps", changes=other)) == "train with losses"


@pytest.mark.parametrize("arm", ARMS)
def test_one_arm_that_may_gain_is_enough_not_to_give_up(arm: str) -> None:
    for word in ("worsens", "no change"):
        assert advise(trial(against_frozen(word) | {(arm, "frozen"): "cannot tell"})) == "cannot tell"


def test_uniform_is_kept_only_where_a_gain_of_the_others_is_excluded() -> None:
    for change in ({("steered", "uniform"): "cannot tell"}, {("uniform", "frozen"): "no change"}):
        assert advise(trial(UNIFORM | change)) == "cannot tell"
    without = trial(UNIFORM)
    left = tuple(found for found in without.contrasts if found.against != "uniform")
    assert advise(dataclasses.replace(without, contrasts=left)) == "cannot tell", "what was not compared is unknown"


def gate(
    outcome: GateOutcome = "inconclusive",
    *cells: CellChange,
    named: bool = False,
    weak: bool = False,
    graded: bool = True,
    behaviours: bool = False,
) -> GateResult:
    """Two protected tasks, unless told otherwise."""
    kept = cells or (cell("sums", None, word="no change"), cell("gcd", None, word="no change"))
    return GateResult(
        outcome,
        None,
        kept,
        None,
        named_by_user=named,
        lacks_right_answers=weak,
        graded=graded,
        decided_by_behaviours=behaviours,
    )


def pair(word: TaskWord = "not shown", *, right: tuple[int, int] = (1, 1), **fields) -> tuple[Verdict, tuple[int, int]]:
    """A comparison, and whether answers of either side were right, greedy (1) or sampled alone (2)."""
    known = {"total": TotalChange(word, Interval(0.0, -0.1, 0.1, 200), 200), "measure": "success"}
    return Verdict("", "", "a", "b", "inconclusive", "nothing compared", 0, "", **known | fields), right


LCM = {"lcm": "no answer was right before or after"}
TAKEN_OVER = (FormTaken("json", ("gcd",), 10, 10),)
PAIRS: list[tuple[tuple[Verdict, tuple[int, int]], GateResult | None, tuple[CellChange, ...], Reason, GateOutcome]] = [
    (pair(right=(0, 0)), gate("passed"), (), "nothing right", "inconclusive"),
    (pair(right=(2, 2)), gate(), (), "nothing right greedily", "inconclusive"),
    (pair("learned"), gate("passed"), (cell("gcd", None),), "a task was lost", "damaged"),
    (pair("learned"), gate("passed", named=True), (cell("lcm", None),), "kept", "passed"),
    (pair(), gate("damaged"), (), "prompts matter less", "damaged"),
    (pair(), gate("damaged", cell("gcd", None, word="less dependent")), (), "a task was lost", "damaged"),
    (pair(not_learned=("intents",)), gate("damaged"), (), "prompts matter less", "damaged"),
    (pair("lost"), gate(), (), "the average fell", "damaged"),
    (pair("commonest"), gate("passed"), (), "the commonest answer", "damaged"),
    (pair("less dependent"), gate("passed"), (), "prompts matter less", "damaged"),
    (pair(right=(0, 0), forms=TAKEN_OVER), gate(), (), "one format took over", "damaged"),
    (pair(forms=TAKEN_OVER), gate("passed", cell("sums", None, word="no change"), named=True), (), "kept", "passed"),
    (pair(right=(0, 0), lost_answers={"gcd": "are empty"}), gate(named=True), (), "answers were lost", "damaged"),
    (pair("lost", graded=False), None, (), "the average fell", "damaged"),  # preference pairs, which no gate judges
    (pair("learned"), gate("passed"), (), "kept", "passed"),
    (pair(), gate("passed"), (), "kept", "passed"),
    (pair("lost"), gate("passed", named=True), (), "kept", "passed"),
    (pair("learned", not_learned=("intents",)), gate("passed"), (), "kept", "passed"),
    (pair("learned", not_judged=LCM), gate("passed", named=True), (), "kept", "passed"),
    (pair(not_learned=("intents",)), gate("passed", named=True), (), "not learned", "passed"),
    (pair("learned", not_judged=LCM), gate("passed"), (), "a task was not judged", "inconclusive"),
    (pair(not_judged={"gcd": "-"}), gate(named=True, weak=True), (), "a task was not judged", "inconclusive"),
    (pair("learned", not_judged={"gcd": "-"}), gate("passed", named=True), (), "a task was not judged", "inconclusive"),
    (pair(), gate(weak=True), (), "a task was not judged", "inconclusive"),
    (pair("learned", graded=False), gate(graded=False), (), "nothing was graded", "inconclusive"),
    (pair("lost", graded=False), gate(graded=False), (cell("gcd", None),), "nothing was graded", "inconclusive"),
    (pair("learned"), None, (), "too few items", "inconclusive"),
    (pair(right=(0, 1)), gate(), (), "nothing to protect", "inconclusive"),
    (pair("kept"), gate(), (), "too few items", "inconclusive"),
    (pair(), gate("damaged", behaviours=True), (), "a behaviour changed", "damaged"),
    (pair(), gate(behaviours=True), (), "a behaviour changed", "inconclusive"),
]


@pytest.mark.parametrize(("seen", "gated", "cells", "reason", "outcome"), PAIRS)
def test_every_rule_of_two_models(
    seen: tuple[Verdict, tuple[int, int]],
    gated: GateResult | None,
    cells: tuple[CellChange, ...],
    reason: Reason,
    outcome: GateOutcome,
) -> None:
    verdict, right = seen
    key: TaskLevel = ("t", None)
    before, after = ([scores({key: [side == 1] * 4}, sampled={key: [side > 0] * 4})] for side in right)
    verdict = dataclasses.replace(verdict, decoding="greedy" if verdict.graded else "loss")
    assert decide(verdict, gated or NOT_ASKED, cells, (before, after)) == (reason, outcome)
    told = dataclasses.replace(verdict, reason=reason, outcome=outcome)
    steps = list_steps_after_comparison(told)
    assert all(step.command for step in steps)
    if outcome == "damaged" and verdict.graded:
        assert steps[0].command == "mixwright plan BEFORE TRAIN"


@pytest.mark.parametrize(("seen", "advice"), TRIALS)
def test_every_advice_has_a_next_step(tmp_path: Path, seen: TrialBasis, advice: str) -> None:
    steps = [step.command for step in list_steps_after_trial(RunFolder(tmp_path), None, advise(seen), seen)]
    assert all(steps)
    if advice.startswith("train"):
        assert steps[1:] == ["mixwright plan run.yaml --export FORMAT"]
    if advice == "keep uniform":
        assert steps == ["steering=None"]


def wrong(run: RunFolder, *, right: int = 0) -> RunFolder:
    """Both checkpoints answer 40 items of one task; `right` of them after."""
    for name, count in (("before", 0), ("after", right)):
        values = [1.0] * count + [0.0] * (400 - count)
        columns = {"greedy": values, "pass@1": values, "greedy.swapped": [0.0] * 400, "pass@1.swapped": [0.0] * 400}
        write_measured(run.measurements(name), item_rows(("t", None), columns | {"chance": [0.0] * 400}))
    return run


def test_where_no_answer_was_right_nothing_is_called_unchanged(tmp_path: Path) -> None:
    none, some = (write_verdict(wrong(RunFolder(tmp_path / str(right)), right=right)) for right in (0, 1))
    assert (none.reason, none.exit_code, none.tasks[0].word) == ("nothing right", 4, "never right")
    assert some.tasks[0].word == "kept"


def test_the_next_command_names_what_the_manifest_does(tmp_path: Path) -> None:
    run = build_pair(tmp_path)
    command = "mixwright verdict base out/step-500 --eval eval.jsonl"
    write_json(run.manifest, RunManifest({}, {}, {}, {"checkpoint after": "out/step-500"}, "base", command))
    verdict = write_verdict(run)
    assert (verdict.before, verdict.after, verdict.reason) == ("base", "step-500", "a task was lost")
    kept = "mixwright plan base TRAIN"
    assert [step.command for step in verdict.next] == [kept, f"{command} --full"]
    write_json(run.manifest, RunManifest({}, {}, {}, {"checkpoint after": "out/step-500"}, "base", f"{command} --full"))
    assert [step.command for step in write_verdict(run).next] == [kept], "the whole report was printed"


def test_the_command_of_a_run_that_was_not_started_by_one_is_that_of_its_folder(tmp_path: Path) -> None:
    run, seen = RunFolder(tmp_path / "a run"), trial(word="cannot tell", seeds_needed=12)
    run.path.mkdir()
    (run.path / "run.yaml").touch()
    (step,) = list_steps_after_trial(run, None, advise(seen), seen)
    assert step.command == f"mixwright run '{run.path}/run.yaml' --folder '{run.path}'"


def test_a_comparison_that_stopped_half_way_says_so(tmp_path: Path) -> None:
    run = build_pair(tmp_path)
    write_json(run.manifest, RunManifest({}, {}, {}, {"checkpoint after": "out/step-500"}, "base", ""))
    run.measurements("after").unlink()
    verdict = judge_run(run)
    unfinished = "Inconclusive so far: the later checkpoint was not measured; run the comparison again."
    assert (verdict.headline, verdict.reason) == (unfinished, "not measured")


def test_a_run_that_only_measured_has_no_recommendation(tmp_path: Path) -> None:
    run = build_pair(tmp_path)
    run.measurements("after").unlink()
    verdict = judge_run(run)
    assert (verdict.reason, verdict.next) == ("nothing compared", ())


def test_where_the_simple_rule_does_as_well_its_rows_are_named(tmp_path: Path) -> None:
    """Mined rows that beat all rows, and not the rows of the rule, send the reader to these."""
    for does, words in ((True, "best.simple_rule.parquet"), (False, "MINER")):
        seen = trial(selection=dataclasses.replace(REFUSED, simple_rule_does=does))
        (step,) = list_steps_after_trial(RunFolder(tmp_path), None, advise(seen), seen)
        assert step.command.endswith(words)
