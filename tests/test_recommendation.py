"""The recommendation: every rule of both tables, their order, and the next command of each advice."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest
from _example_run import build_pair, item_rows
from answer_rows import write_measured

from mixwright.records import ChangeWord, Claim, Interval, RunManifest, Selection
from mixwright.run.folder import RunFolder, write_json
from mixwright.verdict.rules.basis import recommend_run
from mixwright.verdict.rules.evidence import Evidence
from mixwright.verdict.rules.gate_run import ask_gate
from mixwright.verdict.rules.next_steps import _list_steps_after_comparison, list_next_steps
from mixwright.verdict.rules.recommendation import (
    PAIR_RULES,
    TRIAL_RULES,
    Contrast,
    PairBasis,
    Recommendation,
    TrialBasis,
    recommend,
)
from mixwright.verdict.rules.run_claims import judge_claims
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


def lost(task: str, level: float | None = 1.0, arm: str = "steered") -> Claim:
    return Claim("damaged", task, level, 0.9, 0.5, Interval(-0.4, -0.5, -0.3, 8), "8 seeds", arm)


def trial(words: dict[tuple[str, str], ChangeWord] | None = None, **fields) -> TrialBasis:
    """Eight seeds, nothing shown, nothing damaged, unless told otherwise."""
    said = {pair: (words or {}).get(pair, "cannot tell") for pair in CONTRASTS}
    found = tuple(Contrast(*pair, word, Interval(*VALUES[word], 8), 0.072) for pair, word in said.items())
    known = {"seeds": 8, "right": True, "trained": ARMS, "contrasts": found, "lever": "steered", "word": "cannot tell"}
    return TrialBasis(**known | fields)


def against_frozen(word: ChangeWord) -> dict[tuple[str, str], ChangeWord]:
    return {(arm, "frozen"): word for arm in ARMS}


HELPS = {("steered", name): "improves" for name in ("frozen", "uniform", "equal_shares")}
EQUAL = {("equal_shares", "frozen"): "improves", ("equal_shares", "uniform"): "improves"}
UNIFORM = {("uniform", "frozen"): "improves", ("steered", "uniform"): "no change", ("equal_shares", "uniform"): "worsens"}
EVERYWHERE = {arm: (lost("gcd", arm=arm),) for arm in ARMS}
WHY = "Train on best (5 of 100 rows): +9 points against all rows."
TAKEN = Selection("best", "train on it", WHY, 5, 100, made=False, trained_on={}, price="", beats_random=True)
REFUSED = dataclasses.replace(TAKEN, advice="not recommended", sentence="Not recommended: best: the interval includes 0.")
TRIALS = [
    (trial(right=False, word="helps"), "check the grader"),
    (trial(any_right=False), "none right"),
    (trial(any_right=False, selection=REFUSED), "mined rows"),
    (trial(HELPS, seeds=1, word="helps"), "too few seeds"),
    (trial(seeds=4, seeds_needed=11, damaged=EVERYWHERE), "too few seeds"),
    (trial(damaged=EVERYWHERE, word="helps"), "stop"),
    (trial(against_frozen("worsens")), "do not train"),
    (trial(selection=TAKEN, word="helps", proof="beats its nulls"), "mined rows"),
    (trial(HELPS, word="helps"), "train"),
    (trial(HELPS, word="helps", proof="beats its nulls", damaged={"steered": (lost("lcm"),)}), "train with losses"),
    (trial(HELPS, word="helps", gate="damaged", damage_text="gcd@1 is damaged"), "gate"),
    (trial(HELPS, word="helps", gate="inconclusive"), "gate"),
    (trial(HELPS, word="helps", gate="passed"), "train"),
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
    found = recommend(seen)
    assert found.advice == advice
    assert found.sentence


def test_every_rule_has_a_case() -> None:
    assert {name for name, _ in TRIAL_RULES} == {advice for _, advice in TRIALS}
    assert {name for name, _ in PAIR_RULES} == {advice for _, advice in PAIRS}


def test_damage_by_every_arm_but_one_is_not_stop() -> None:
    some = {arm: (lost("gcd", arm=arm),) for arm in ("uniform", "equal_shares")}
    assert recommend(trial(HELPS, word="helps", damaged=some)).advice == "train", "the plan spares what the others damage"
    other = some | {"steered": (lost("lcm"),)}
    assert recommend(trial(HELPS, word="helps", damaged=other)).advice == "train with losses"


@pytest.mark.parametrize("arm", ARMS)
def test_one_arm_that_may_gain_is_enough_not_to_give_up(arm: str) -> None:
    for word in ("worsens", "no change"):
        assert recommend(trial(against_frozen(word) | {(arm, "frozen"): "cannot tell"})).advice == "cannot tell"


def test_uniform_is_kept_only_where_a_gain_of_the_others_is_excluded() -> None:
    for change in ({("steered", "uniform"): "cannot tell"}, {("uniform", "frozen"): "no change"}):
        assert recommend(trial(UNIFORM | change)).advice == "cannot tell"
    without = trial(UNIFORM)
    left = tuple(found for found in without.contrasts if found.against != "uniform")
    assert recommend(dataclasses.replace(without, contrasts=left)).advice == "cannot tell", (
        "what was not compared is unknown"
    )


def pair(**fields) -> PairBasis:
    known = {"right": True, "word": "cannot tell", "gate": "inconclusive", "protected": 2, "items": 200}
    return PairBasis(**known | fields)


NOT_LEARNED = ("intents (0 of 24 right after)",)
PAIRS = [
    (pair(right=False, gate="passed"), "check the grader"),
    (pair(any_right=False), "none right"),
    (pair(word="improves", gate="passed", damaged=(lost("gcd"),)), "do not ship"),
    (pair(gate="damaged"), "do not ship"),
    (pair(gate="damaged", tasks_not_learned=("intents",)), "do not ship"),
    (pair(word="worsens"), "do not ship"),
    (pair(word="commonest", gate="passed"), "do not ship"),
    (pair(word="less dependent", gate="passed"), "do not ship"),
    (pair(right=False, form_change=True), "do not ship"),
    (pair(right=False, gate="passed", lost_answers=True, named=True), "do not ship"),
    (pair(word="worsens", graded=False, protected=0), "do not ship"),  # preference pairs, which no gate judges
    (pair(word="improves", gate="passed"), "ship"),
    (pair(gate="passed"), "ship"),
    (pair(word="worsens", gate="passed", named=True), "ship"),
    (pair(word="improves", gate="passed", tasks_not_learned=NOT_LEARNED), "ship"),
    (pair(word="improves", gate="passed", tasks_without_right_answer=("lcm",), named=True), "ship"),
    (pair(gate="passed", tasks_not_learned=NOT_LEARNED, named=True), "not learned"),
    (pair(word="improves", gate="passed", tasks_without_right_answer=("lcm",)), "unjudged"),
    (pair(word="improves", gate="passed", tasks_left_out=("lcm",)), "unjudged"),
    (pair(gate_reason="2 % was right", named=True, protected_left_out=("lcm",)), "unjudged"),
    (pair(word="improves", gate="passed", tasks_never_right=("lcm",), named=True), "unjudged"),
    (pair(word="improves", graded=False), "unjudged"),
    (pair(word="worsens", graded=False), "unjudged"),
    (pair(word="improves", protected=0), "cannot tell"),
    (pair(word="no change"), "cannot tell"),
    (pair(items_needed=1200), "cannot tell"),
    (pair(items_needed=1200, all_items_measured=True), "cannot tell"),
]


@pytest.mark.parametrize(("seen", "advice"), PAIRS)
def test_every_rule_of_two_models(seen: PairBasis, advice: str) -> None:
    assert recommend(seen).advice == advice


@pytest.mark.parametrize(("seen", "advice"), [*TRIALS, *PAIRS])
def test_every_advice_has_a_next_step(tmp_path: Path, seen: TrialBasis | PairBasis, advice: str) -> None:
    steps = [step.text for step in list_next_steps(Evidence(RunFolder(tmp_path)), recommend(seen), seen)]
    assert all(steps)
    if advice.startswith("train"):
        assert steps[1:] == ["mixwright plan run.yaml --export FORMAT"]
    if advice == "do not ship" and seen.graded:
        assert steps[0] == "mixwright plan BEFORE TRAIN"
    if advice == "keep uniform":
        assert steps == ["steering=None"]
    if getattr(seen, "items_needed", None) == 1200:
        assert steps[-1].endswith("--items 1200")


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


def test_what_was_taken_over_stays_in_the_command_or_is_named_in_its_place() -> None:
    command = "mixwright verdict a b --eval c --beside d"
    settings = {"items": 80, "samples": 0, "max_new_tokens": 48, "grader": "includes"}
    seen = pair(protected=1)
    (ship, *_) = _list_steps_after_comparison("ship", command, seen, settings)
    assert ship.text == command.replace(" b ", " LATER "), "the same question, of another model"
    (more, *_) = _list_steps_after_comparison("cannot tell", command, seen, settings)
    anew = "mixwright verdict a b --eval c --items 80 --samples 0 --max-new-tokens 48 --grader includes"
    assert more.text == anew


def test_the_command_of_a_run_that_was_not_started_by_one_is_that_of_its_folder(tmp_path: Path) -> None:
    run, seen = RunFolder(tmp_path / "a run"), trial(word="cannot tell", seeds_needed=12)
    run.path.mkdir()
    (run.path / "run.yaml").touch()
    (step,) = list_next_steps(Evidence(run), recommend(seen), seen)
    assert step.text == f"mixwright run '{run.path}/run.yaml' --folder '{run.path}'"


def recommended(run: RunFolder) -> tuple[Recommendation | None, TrialBasis | PairBasis | None]:
    evidence = Evidence(run)
    return recommend_run(evidence, judge_claims(evidence), ask_gate(evidence))


def test_a_comparison_that_stopped_half_way_says_so(tmp_path: Path) -> None:
    run = build_pair(tmp_path)
    write_json(run.manifest, RunManifest({}, {}, {}, {"checkpoint after": "out/step-500"}, "base", ""))
    run.measurements("after").unlink()
    found, seen = recommended(run)
    assert (found and found.sentence, seen) == (
        "Inconclusive so far: the later checkpoint was not measured; run the comparison again.",
        None,
    )


def test_a_run_that_only_measured_has_no_recommendation(tmp_path: Path) -> None:
    run = build_pair(tmp_path)
    run.measurements("after").unlink()
    assert recommended(run) == (None, None)


def test_where_the_simple_rule_does_as_well_its_rows_are_named(tmp_path: Path) -> None:
    """Mined rows that beat all rows, and not the rows of the rule, send the reader to these."""
    for does, words in ((True, "best.simple_rule.parquet"), (False, "MINER")):
        seen = trial(selection=dataclasses.replace(REFUSED, simple_rule_does=does))
        (step,) = list_next_steps(Evidence(RunFolder(tmp_path)), recommend(seen), seen)
        assert step.text.endswith(words)
