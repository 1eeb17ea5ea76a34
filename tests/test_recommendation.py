"""The recommendation: every rule of both tables, its order, its sentence, and what it says of few seeds and missing arms."""

from __future__ import annotations

import dataclasses
import json
import re
from pathlib import Path

import pytest
from _example_run import build_pair, item_rows

from mixwright.records import ChangeWord, Claim, Interval, RunManifest, Selection
from mixwright.run.folder import RunFolder, write_json, write_measurements
from mixwright.verdict.rules.basis import recommend_run
from mixwright.verdict.rules.next_steps import _list_steps_after_comparison, list_next_steps
from mixwright.verdict.rules.recommendation import PAIR_RULES, TRIAL_RULES, Contrast, PairBasis, TrialBasis, recommend
from mixwright.verdict.stage import render, sections

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
    (
        trial(right=False, word="helps"),
        "check the grader",
        "no answer was right before or after; nothing was learned, or the grader misreads.",
        "plain",
    ),
    (trial(any_right=False), "none right", "by the declared decoding, only samples were.", "plain"),
    (trial(any_right=False, selection=REFUSED), "mined rows", "the interval includes 0.", "plain"),
    (
        trial(HELPS, seeds=1, word="helps"),
        "too few seeds",
        "1 seed, and nothing is judged with fewer than 5; take 8",
        "plain",
    ),
    (trial(seeds=4, seeds_needed=11, damaged=EVERYWHERE), "too few seeds", "take 11 seeds.", "plain"),
    (
        trial(damaged=EVERYWHERE, word="helps"),
        "stop",
        "Stop: task gcd is being damaged by every arm (uniform, equal_shares",
        "bad",
    ),
    (trial(against_frozen("worsens")), "do not train", "not training is better than every arm.", "bad"),
    (trial(selection=TAKEN, word="helps", proof="beats its nulls"), "mined rows", "Train on best (5 of 100 rows)", "good"),
    (
        trial(selection=TAKEN, word="helps", proof="beats its nulls", damaged={"steered": (lost("lcm"),)}),
        "mined rows",
        "against all rows. It damages lcm level 1 (no other arm is shown to spare it).",
        "plain",
    ),
    (trial(selection=REFUSED), "mined rows", "Not recommended: best: the interval includes 0.", "plain"),
    (
        trial(HELPS, word="helps"),
        "train",
        "Train with this plan: success is better by 10, 10 and 10 points than with",
        "plain",
    ),
    (trial(HELPS, word="helps", proof="beats its nulls"), "train", "frozen, uniform and equal_shares.", "good"),
    (
        trial(HELPS, word="helps", proof="beats its nulls", damaged={"steered": (lost("lcm"),)}),
        "train with losses",
        "Train with this plan only if a loss on lcm level 1 is acceptable",
        "plain",
    ),
    (
        trial(HELPS, word="helps", gate="damaged", damage_text="gcd@1 is damaged"),
        "gate",
        "Do not use this plan yet: gcd@1 is damaged.",
        "bad",
    ),
    (trial(HELPS, word="helps", gate="cannot tell"), "gate", "Cannot tell whether this plan is safe", "bad"),
    (trial(HELPS, word="helps", gate="passed"), "train", "Train with this plan: ", "plain"),
    (trial(EQUAL), "equal shares", "Use equal shares: ", "plain"),
    (trial(EQUAL, lever="", word=None), "equal shares", "beats not training and uniform sampling.", "plain"),
    (trial(UNIFORM), "keep uniform", "Keep uniform: nothing here beats it.", "plain"),
    (
        trial(UNIFORM, trained=("uniform",), lever="", word=None),
        "keep uniform",
        "it is better than not training, and no other arm was tried.",
        "plain",
    ),
    (trial(UNIFORM, word="harms"), "keep uniform", "nothing here beats it", "plain"),
    (trial(against_frozen("no change")), "no gain", "No gain: no arm gains 5 points over not training.", "plain"),
    (trial({("steered", "uniform"): "worsens"}, word="harms"), "not this plan", "this plan: uniform did better.", "bad"),
    (trial(missing=("equal_shares",)), "missing", "Cannot tell: equal_shares did not run", "plain"),
    (trial(seeds_needed=15), "cannot tell", "8 seeds see a difference of 7.2 points; take 15 seeds.", "plain"),
    (trial(), "cannot tell", "more seeds alone would not see one of 5; take more held-out items.", "plain"),
    (trial(contrasts=(), lever="", word=None), "cannot tell", "Cannot tell: nothing was compared.", "plain"),
    (trial(contrasts=(), trained=(), lever="", word=None), "cannot tell", "nothing was compared", "plain"),
]


@pytest.mark.parametrize(("seen", "advice", "words", "tone"), TRIALS)
def test_every_rule_of_a_trial(seen: TrialBasis, advice: str, words: str, tone: str) -> None:
    found = recommend(seen)
    assert (found.advice, found.tone) == (advice, tone)
    assert words in found.sentence


def test_what_is_not_graded_is_told_in_its_unit_and_is_not_shipped() -> None:
    loss = {"outcome": "held-out loss", "unit": "nats per token", "lower_is_better": True}
    found = recommend(trial(HELPS, word="helps", **loss))
    assert found.sentence.startswith("Train with this plan: held-out loss is lower by 0.1, 0.1 and 0.1 nats per token than")
    seen = pair(word="improves", graded=False, protected=0, right=True, **loss)
    assert recommend(seen).advice == "may replace"
    assert "held-out loss is lower by 0.02 nats per token. Whether its answers are right" in recommend(seen).sentence
    worse = dataclasses.replace(seen, word="worsens", difference=Interval(-0.2, -0.3, -0.1, 9))
    assert recommend(worse).sentence == "Do not ship step-500: held-out loss is higher by 0.2 nats per token."


def test_the_next_step_after_no_graded_answers_is_not_a_gate_that_refuses_them(tmp_path: Path) -> None:
    seen = pair(word="improves", graded=False, protected=0)
    (step,) = list_next_steps(RunFolder(tmp_path), recommend(seen), seen)
    assert "answers that can be graded" in step.caption
    assert step.text == "mixwright verdict BEFORE AFTER --corpus FILE --gate"


def test_several_tasks_are_damaged_in_the_plural() -> None:
    both = {arm: (lost("gcd", arm=arm), lost("lcm", arm=arm)) for arm in ARMS}
    assert "Stop: task gcd and task lcm are being damaged" in recommend(trial(damaged=both)).sentence
    two = pair(damaged=(lost("gcd"), lost("lcm")))
    assert recommend(two).sentence == "Do not ship step-500: gcd level 1 and lcm level 1 are damaged."


def test_every_rule_has_a_case() -> None:
    assert {name for name, _ in TRIAL_RULES} == {advice for _, advice, _, _ in TRIALS}
    assert {name for name, _ in PAIR_RULES} == {advice for _, advice, _, _ in PAIRS}


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
    known = {"right": True, "word": "cannot tell", "difference": Interval(0.02, -0.06, 0.1, 200), "detectable": 0.11}
    return PairBasis(**known | {"gate": "cannot tell", "protected": 2, "after": "step-500", "items": 200} | fields)


PAIRS = [
    (
        pair(right=False, gate="passed"),
        "check the grader",
        "no answer was right before or after; nothing was learned, or the grader misreads.",
        "plain",
    ),
    (pair(any_right=False), "none right", "by the declared decoding, only samples were.", "plain"),
    (
        pair(word="improves", gate="passed", damaged=(lost("gcd"),)),
        "do not ship",
        "step-500: gcd level 1 is damaged.",
        "bad",
    ),
    (pair(gate="damaged"), "do not ship", "Do not ship step-500: what was mastered is damaged.", "bad"),
    (
        pair(word="worsens", difference=Interval(-0.02, -0.03, -0.01, 9)),
        "do not ship",
        "success is worse by 2 points.",
        "bad",
    ),
    (pair(word="commonest", gate="passed"), "do not ship", "gives the commonest answer more often", "bad"),
    (pair(word="less dependent", gate="passed"), "do not ship", "depend less on their prompts", "bad"),
    (
        pair(word="improves", gate="passed"),
        "ship",
        "better by 2 points, and a mean loss of 5 points on what was mastered is",
        "good",
    ),
    (
        pair(word="improves", gate="passed", tasks_without_right_answer=("lcm",)),
        "unjudged",
        "but nothing says what became of lcm",
        "plain",
    ),
    (
        pair(word="improves", gate="passed", tasks_left_out=("lcm",)),
        "unjudged",
        "became of lcm, where nothing can be graded",
        "plain",
    ),
    (
        pair(word="improves", protected=0, tasks_without_right_answer=("lcm",)),
        "unjudged",
        "Cannot tell: success is better by 2 points",
        "plain",
    ),
    (
        pair(word="improves", gate="passed", tasks_without_right_answer=("lcm",), named=True, margin=0.1),
        "may replace",
        "may be shipped, and success is better by 2 points: a mean loss of 10 points on what was named is excluded. "
        "Not learned, since no answer was right before or after: lcm.",
        "plain",
    ),
    (
        pair(gate="passed", tasks_not_learned=("intents (0 of 24 right after)",), named=True, margin=0.15, asked=True),
        "not learned",
        "not shown to have learned intents (0 of 24 right after); a mean loss of 15 points on what was named is excluded.",
        "plain",
    ),
    (
        pair(word="improves", gate="passed", tasks_not_learned=("intents (0 of 24 right after)",)),
        "ship",
        "Ship step-500",
        "good",
    ),
    (pair(gate="damaged", tasks_not_learned=("intents",)), "do not ship", "is damaged", "bad"),
    (pair(word="improves", protected=0, asked=True), "cannot tell", "Cannot tell", "plain"),
    (
        pair(
            word="improves", gate="passed", tasks_without_right_answer=("gcd", "lcm"), tasks_never_right=("lcm",), named=True
        ),
        "unjudged",
        "but nothing says what became of lcm, where no answer was right",
        "plain",
    ),
    (
        pair(
            right=False,
            gate="passed",
            answers_became_unlikely="its own former answers to lcm became far less likely",
            named=True,
        ),
        "do not ship",
        "step-500: its own former answers to lcm became far less likely, and no grader",
        "bad",
    ),
    (
        pair(word="improves", graded=False, asked=True),
        "unjudged",
        "is shown to be damaged, and no answer was graded.",
        "plain",
    ),
    (pair(word="worsens", graded=False, asked=True), "unjudged", "no answer was graded.", "plain"),
    (
        pair(right=False, form_change="58 of 58 answers look like those of t"),
        "do not ship",
        "step-500: 58 of 58 answers look",
        "bad",
    ),
    (
        pair(gate="damaged", damage_text="answers depend less on their prompts, by 9 points"),
        "do not ship",
        "Do not ship step-500: answers depend less on their prompts, by 9 points.",
        "bad",
    ),
    (
        pair(word="worsens", gate="passed", named=True, damage_elsewhere=(lost("gcd"),)),
        "may replace",
        "and damaged: gcd level 1.",
        "plain",
    ),
    (pair(word="improves", protected=0), "ship", "nothing was mastered before that could be lost.", "plain"),
    (
        pair(gate="passed"),
        "may replace",
        "step-500 may be shipped, though no gain in the mean of all tasks is shown",
        "plain",
    ),
    (
        pair(word="no change", graded=False),
        "no gain",
        "Nothing is gained by step-500: success changed by less than 5 points.",
        "plain",
    ),
    (pair(word="no change"), "cannot tell", "200 items can only show a change", "plain"),
    (
        pair(word="improves"),
        "cannot tell",
        "200 items can only show a change of 11 points or more; take more items.",
        "plain",
    ),
    (pair(items_needed=1200), "cannot tell", "of 5 points takes about 1,200 items per task and level.", "plain"),
    (
        pair(items_needed=1200, all_items_measured=True),
        "cannot tell",
        "Cannot tell: all 200 items of the file can only show",
        "plain",
    ),
]


@pytest.mark.parametrize(("seen", "advice", "words", "tone"), PAIRS)
def test_every_rule_of_two_checkpoints(seen: PairBasis, advice: str, words: str, tone: str) -> None:
    found = recommend(seen)
    assert (found.advice, found.tone) == (advice, tone)
    assert words in found.sentence


@pytest.mark.parametrize(("seen", "advice"), [(seen, advice) for seen, advice, *_ in (*TRIALS, *PAIRS)])
def test_every_advice_has_a_next_step(tmp_path: Path, seen: TrialBasis | PairBasis, advice: str) -> None:
    step, *more = list_next_steps(RunFolder(tmp_path), recommend(seen), seen)
    assert step.text
    assert [step.text for step in more] == (
        ["mixwright plan run.yaml --export FORMAT"]
        if advice.startswith("train")
        else ["mixwright plan BEFORE --corpus TRAIN --eval FILE --objective sft --rehearse REQUESTS"]
        if advice == "do not ship" and seen.graded
        else []
    )
    if advice == "keep uniform":
        assert step.text == "steering=None"
    if getattr(seen, "items_needed", None) == 1200:
        assert step.text.endswith("--items 1200")


def wrong(run: RunFolder, *, right: int = 0) -> RunFolder:
    """Both checkpoints answer 40 items of one task; `right` of them after."""
    for name, count in (("before", 0), ("after", right)):
        values = [1.0] * count + [0.0] * (400 - count)
        columns = {"greedy": values, "pass@1": values, "greedy.swapped": [0.0] * 400, "pass@1.swapped": [0.0] * 400}
        write_measurements(run.measurements(name), item_rows(("t", None), columns | {"chance": [0.0] * 400}))
    return run


def test_where_no_answer_was_right_nothing_is_called_unchanged(tmp_path: Path) -> None:
    run = wrong(RunFolder(tmp_path / "none"))
    text = render(run).read_text(encoding="utf-8")
    assert '<h1 class="tone-plain">Cannot tell: no answer was right before or after; ' in text
    assert "no change" not in re.sub(r"<style>.*?</style>", "", text, flags=re.DOTALL)
    (claim,) = json.loads(run.claims.read_text(encoding="utf-8"))
    assert claim["kind"] == "cannot tell"
    assert "grader misreads" in claim["evidence"]
    some = wrong(RunFolder(tmp_path / "some"), right=1)
    assert "grader misreads" not in render(some).read_text(encoding="utf-8")
    assert json.loads(some.claims.read_text(encoding="utf-8"))[0]["kind"] == "unchanged"


def test_the_name_and_the_command_are_those_of_the_manifest(tmp_path: Path) -> None:
    run = build_pair(tmp_path)
    command = "mixwright verdict base out/step-500 --corpus eval.jsonl"
    write_json(run.manifest, RunManifest({}, {}, {}, {"checkpoint after": "out/step-500"}, "base", command))
    found, seen = recommend_run(run)
    assert found is not None
    assert found.sentence == "Do not ship step-500: products level 1 is damaged."
    kept = "mixwright plan base --corpus TRAIN --eval eval.jsonl --objective sft --rehearse REQUESTS"
    assert [step.text for step in list_next_steps(run, found, seen)] == [f"{command} --full", kept]


def test_what_was_taken_over_stays_in_the_command_or_is_named_in_its_place() -> None:
    command = "mixwright verdict a b --corpus c --measured d --gate"
    settings = {"items": 80, "samples": 0, "max_new_tokens": 48, "grader": "includes"}
    seen = PairBasis(True, "cannot tell", Interval(0.0, -0.1, 0.1, 9), 0.1, "cannot tell", 1)
    (ship, *_) = _list_steps_after_comparison("ship", command, seen, settings)
    assert ship.text == command
    (more, *_) = _list_steps_after_comparison("cannot tell", command, seen, settings)
    anew = "mixwright verdict a b --corpus c --gate --items 80 --samples 0 --max-new-tokens 48 --grader includes"
    assert more.text == anew


def test_the_command_of_a_run_that_was_not_started_by_one_is_that_of_its_folder(tmp_path: Path) -> None:
    run, seen = RunFolder(tmp_path / "a run"), trial(word="cannot tell", seeds_needed=12)
    run.path.mkdir()
    (run.path / "run.yaml").touch()
    (step,) = list_next_steps(run, recommend(seen), seen)
    assert step.text == f"mixwright run '{run.path}/run.yaml' --folder '{run.path}'"


def test_a_comparison_that_stopped_half_way_says_so(tmp_path: Path) -> None:
    run = build_pair(tmp_path)
    write_json(run.manifest, RunManifest({}, {}, {}, {"checkpoint after": "out/step-500"}, "base", ""))
    run.measurements("after").unlink()
    found, seen = recommend_run(run)
    assert (found and found.sentence, seen) == (
        "Cannot tell yet: the later checkpoint was not measured; run the comparison again.",
        None,
    )


def test_a_run_that_only_measured_has_no_recommendation(tmp_path: Path) -> None:
    run = build_pair(tmp_path)
    run.measurements("after").unlink()
    assert recommend_run(run) == (None, None)
    assert "headline" not in [name for name, *_ in sections(run)]


def test_where_the_simple_rule_does_as_well_its_rows_are_named(tmp_path: Path) -> None:
    """Mined rows that beat all rows, and not the rows of the rule, send the reader to these."""
    for does, words in ((True, "best.simple_rule.parquet"), (False, "MINER")):
        seen = trial(selection=dataclasses.replace(REFUSED, simple_rule_does=does))
        (step,) = list_next_steps(RunFolder(tmp_path), recommend(seen), seen)
        assert step.text.endswith(words)
