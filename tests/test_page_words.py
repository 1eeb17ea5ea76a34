"""Sentences of a page that must be true of the run at hand: directions, reasons, units, and what does not apply."""

from __future__ import annotations

import io
import json
import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from _example_run import build, item_rows
from rich.console import Console

from mixwright.estimates.outcome import Item, ItemScores
from mixwright.estimates.readings import Outcome
from mixwright.records import Claim, Interval, Observation, Plan, RunManifest, Stage, TrialResult
from mixwright.run.folder import RunFolder, read_json, write_json, write_measurements, write_plan
from mixwright.verdict.page.blocks import Block, Code, Headline, Paragraph, Terms
from mixwright.verdict.page.terminal import show
from mixwright.verdict.page.terms import explain_once
from mixwright.verdict.page.text import format_p
from mixwright.verdict.rules.basis import LARGEST_CELL_ROWS_SETTING, PACE_SETTING, recommend_run
from mixwright.verdict.rules.claims import claims_between, explain_undecided, format_family
from mixwright.verdict.rules.next_steps import list_next_steps, with_option, without_option
from mixwright.verdict.rules.recommendation import Contrast, Recommendation, TrialBasis, recommend
from mixwright.verdict.sections.arms import Arms
from mixwright.verdict.sections.decisions import Decisions
from mixwright.verdict.sections.settings import Settings
from mixwright.verdict.stage import sections, to_json_ready


def moved(outcome: Outcome, before: float, after: float, seeds: int) -> Claim:
    """Forty items of one task, each from `before` to `after`, in every seed, give or take a little that differs by item."""
    chance: dict[Item, float] = {("t", None, str(i)): 0.5 for i in range(40)}
    sides = [
        [ItemScores({outcome: {item: value + 0.001 * (int(item[2]) % 5) * spread for item in chance}, "chance": chance})]
        * seeds
        for value, spread in ((before, -1), (after, 1))
    ]
    (claim,) = claims_between((sides[0], sides[1]), outcome)
    return claim


FEW = "nothing is judged with fewer than 5 seeds"
REASONS = [
    ("loss", 2.0, 1.78, 3, f"held-out loss fell, but {FEW}"),
    ("loss", 1.78, 2.0, 3, f"held-out loss rose, but {FEW}"),
    ("preference", 0.7, 0.2, 4, f"held-out preference accuracy fell, but {FEW}"),
    ("loss", 2.002, 1.998, 2, FEW),
    ("preference", 0.1, 0.4, 5, "held-out preference accuracy rose, but is not shown to be above the chance level (50 %)"),
]


@pytest.mark.parametrize(("outcome", "before", "after", "seeds", "reason"), REASONS)
def test_the_reason_of_an_ungraded_claim_has_its_direction(
    outcome: Outcome, before: float, after: float, seeds: int, reason: str
) -> None:
    claim = moved(outcome, before, after, seeds)
    assert claim.kind == "cannot tell"
    assert claim.evidence == f"{seeds} seeds x 40 items, paired; {reason}"


def test_too_few_seeds_are_no_fault_of_the_items() -> None:
    claims = [moved("loss", 2.0, 1.78, 3)]
    assert explain_undecided(claims, 3) == "Nothing is judged with fewer than 5 seeds, and there were 3."
    assert explain_undecided(claims, 8) == "1 of 1 claim cannot be decided by these items."
    assert explain_undecided([moved("loss", 2.0, 1.78, 5)], 5) == ""


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        ("mixwright verdict a b --items 60 --samples 4", "mixwright verdict a b --items 266 --samples 4"),
        ("mixwright verdict a b --items=60", "mixwright verdict a b --items 266"),
        ("mixwright verdict 'a b' c --items 1 --items 2", "mixwright verdict 'a b' c --items 266"),
        ("mixwright verdict a b", "mixwright verdict a b --items 266"),
    ],
)
def test_an_option_stands_once_in_a_command(command: str, expected: str) -> None:
    assert with_option(command, "--items", "266") == expected


ASKED = "mixwright verdict BEFORE AFTER --corpus eval.jsonl --items 40"


def compared(folder: Path, *, items: int, rows: int, cut: int = 0, command: str = ASKED) -> RunFolder:
    """Two checkpoints on 40 items of one task, of which one more was right after; 100 completions, some of them cut."""
    run = RunFolder(folder)
    for name, right in (("before", 10), ("after", 11)):
        values = [1.0] * right + [0.0] * (40 - right)
        columns: dict[str, Sequence[float]] = {
            "greedy": values,
            "pass@1": values,
            "greedy.swapped": [0.0] * 40,
            "pass@1.swapped": [0.0] * 40,
        }
        write_measurements(run.measurements(name), item_rows(("t", None), columns | {"chance": [0.0] * 40}))
    settings = {"items": items, LARGEST_CELL_ROWS_SETTING: rows, "max_new_tokens": 32}
    write_json(run.manifest, RunManifest({}, {}, {}, settings, "base", command))
    if cut:
        write_json(run.notes, [Observation("cut", None, "warning", cut, 100, "cut", "raise it")])
    return run


def next_of(run: RunFolder) -> tuple[str, list[tuple[str, str]]]:
    found, seen = recommend_run(run)
    assert found is not None
    return found.sentence, [(step.caption, step.text) for step in list_next_steps(run, found, seen)]


def test_more_items_are_asked_for_where_the_file_has_more(tmp_path: Path) -> None:
    sentence, [(caption, text)] = next_of(compared(tmp_path, items=40, rows=101))
    needed = int(sentence.split(" items per task and level.")[0].rsplit(" ", 1)[1])
    assert needed > 40
    assert sentence.startswith("Cannot tell: 40 items can only show a change of ")
    assert (caption, text) == (
        "Measure more items",
        f"mixwright verdict BEFORE AFTER --corpus eval.jsonl --items {needed}",
    )


def test_more_items_have_a_price_where_the_speed_was_noted(tmp_path: Path) -> None:
    run = compared(tmp_path, items=40, rows=101)
    manifest = read_json(run.manifest, RunManifest)
    write_json(run.manifest, replace(manifest, settings=dict(manifest.settings) | {PACE_SETTING: 1.5}))
    sentence, [(caption, _)] = next_of(run)
    needed = int(sentence.split(" items per task and level.")[0].rsplit(" ", 1)[1])
    assert f"about {math.ceil(needed * 1.5 / 60)} minutes" in caption  # one cell


@pytest.mark.parametrize(
    ("command", "more"),
    [
        (ASKED, "mixwright verdict BEFORE AFTER --corpus FILE_WITH_MORE_ROWS --items {}"),
        (
            f"{ASKED} --eval e.jsonl",
            "mixwright verdict BEFORE AFTER --corpus eval.jsonl --items {} --eval FILE_WITH_MORE_ROWS",
        ),
    ],
)
def test_where_all_items_were_measured_rows_must_be_added(tmp_path: Path, command: str, more: str) -> None:
    sentence, [(caption, text)] = next_of(compared(tmp_path, items=40, rows=40, command=command))
    assert sentence.startswith("Cannot tell: all 40 items of the file can only show a change of ")
    needed = int(sentence.split(" items per task and level.")[0].rsplit(" ", 1)[1])
    assert caption == f"All 40 items of the file were measured: add about {needed - 40:,} rows per task and level to it"
    assert text == more.format(needed)


def test_completions_that_were_cut_come_first(tmp_path: Path) -> None:
    assert len(next_of(compared(tmp_path / "few", items=40, rows=101, cut=4))[1]) == 1
    _, steps = next_of(compared(tmp_path / "many", items=40, rows=101, cut=5))
    assert steps[0] == (
        "Raise --max-new-tokens: 5 % of completions were cut at 32 tokens and graded as they are",
        f"{ASKED} --max-new-tokens 64",
    )
    assert steps[1][0] == "Measure more items"
    assert steps[1][1].endswith(" --max-new-tokens 64")


@pytest.mark.parametrize("exhausted", [True, False])
def test_a_trial_on_more_items_is_another_run(tmp_path: Path, exhausted: bool) -> None:
    found = (Contrast("steered", "frozen", "cannot tell", Interval(0.0, -0.1, 0.1, 8), 0.1),)
    seen = TrialBasis(8, True, ("steered",), found, lever="steered", items=60, all_items_measured=exhausted)
    run = RunFolder(tmp_path / "run")
    run.path.mkdir()
    write_json(run.manifest, RunManifest({}, {}, {}, {}, "base", "mixwright run run.yaml --folder runs/run"))
    (step,) = list_next_steps(run, Recommendation("cannot tell", "", "plain"), seen)
    assert ("All 60 held-out items were measured: add rows" in step.caption) == exhausted
    assert ("more held-out items than 60 (measure.items" in step.caption) != exhausted
    assert step.text == f"mixwright run run.yaml --folder {run.path}-2"


def trained(low: float, high: float, **fields) -> TrialBasis:
    """Five seeds of one arm against not training."""
    found = (Contrast("uniform", "frozen", "cannot tell", Interval((low + high) / 2, low, high, 5), 0.05),)
    return replace(TrialBasis(5, True, ("uniform",), found, steps=6, draws=24, rows=300), **fields)


LOST = {"uniform": (Claim("damaged", "t", None, 0.9, 0.8, Interval(-0.1, -0.15, -0.05, 5), "5 seeds", "uniform"),)}
LOSS = {"outcome": "held-out loss", "unit": "nats per token", "lower_is_better": True, "graded": False}
SLOWER, REACH = "Take a fifth of train.learning_rate in the settings", "out of reach"
REMEDIES = [
    (trained(-0.043, 0.030), "nothing moved: take more steps", False),
    (trained(-0.043, 0.030, graded=False), "nothing moved: take more steps", False),
    (trained(-0.06, 0.030), SLOWER, True),
    (trained(-0.06, 0.030, **LOSS), SLOWER, False),
    (trained(-0.043, 0.030, damaged=LOST), SLOWER, True),
]


@pytest.mark.parametrize(("seen", "remedy", "reach"), REMEDIES)
def test_a_fifth_of_the_learning_rate_is_no_remedy_for_nothing(
    tmp_path: Path, seen: TrialBasis, remedy: str, reach: bool
) -> None:
    (step,) = list_next_steps(RunFolder(tmp_path / "run"), Recommendation("no gain", "", "plain"), seen)
    assert remedy in step.caption
    assert (REACH in step.caption) == reach
    assert step.text == f"mixwright run run.yaml --folder {tmp_path}/run-2"


def test_no_gain_says_how_much_was_drawn() -> None:
    head = "No gain: no arm "
    drawn = " over not training in 6 steps, which drew 24 times from 300 training rows."
    assert recommend(trained(-0.04, 0.03)).sentence == f"{head}gains 5 points{drawn}"
    assert recommend(trained(-0.04, 0.03, **LOSS)).sentence == (f"{head}lowers held-out loss by 0.05 nats per token{drawn}")
    assert recommend(trained(-0.04, 0.03, rows=0)).sentence == f"{head}gains 5 points over not training in 6 steps."


@pytest.mark.parametrize(
    ("p", "plain", "named"),
    [
        (0.0, "< 0.001", "p < 0.001"),
        (0.00099, "< 0.001", "p < 0.001"),
        (0.001, "0.001", "p = 0.001"),
        (0.0132, "0.013", "p = 0.013"),
    ],
)
def test_no_p_value_is_0(p: float, plain: str, named: str) -> None:
    assert (format_p(p), format_p(p, "p")) == (plain, named)


@pytest.mark.parametrize(
    ("outcome", "over", "meaning"),
    [
        ("greedy", "seeds and items", "95 % interval over seeds and items, in percentage points"),
        ("loss", "items", "95 % interval over items, in nats per token"),
        ("preference", "items", "95 % interval over items, in the unit shown"),
    ],
)
def test_an_interval_is_over_what_there_was_and_in_its_unit(outcome: Outcome, over: str, meaning: str) -> None:
    blocks: list[Block] = [Terms(("[low, high]",))]
    ((*_, (found,)),) = explain_once([("headline", "", 0, blocks)], outcome, over)
    assert isinstance(found, Terms)
    assert found.meanings == (meaning,)


def text_of(run: RunFolder) -> str:
    """The whole page as JSON."""
    return json.dumps([to_json_ready(block) for *_, blocks in sections(run) for block in blocks], ensure_ascii=False)


def test_two_checkpoints_have_no_seeds(tmp_path: Path) -> None:
    assert "95 % interval over items, in" in text_of(compared(tmp_path, items=40, rows=40))
    assert "95 % interval over seeds and items, in" in text_of(build(tmp_path / "trial", seeds=2))


@pytest.mark.parametrize(("objective", "shown"), [("grpo", True), ("sft", False), ("dpo", False)])
def test_settings_that_did_nothing_are_not_shown(tmp_path: Path, objective: str, shown: bool) -> None:
    run = RunFolder(tmp_path)
    idle = {"beta": 0.0, "num_generations": 8, "max_completion_length": 8, "temperature": 1.0}
    settings = {"objective": objective, "learning_rate": 0.001, **idle}
    write_json(run.manifest, RunManifest({}, {}, {}, settings, "base", ""))
    page = json.dumps([to_json_ready(block) for block in Settings().blocks(run)])
    assert "learning_rate" in page
    assert [name for name in idle if name in page] == (list(idle) if shown else [])
    write_json(run.manifest, RunManifest({}, {}, {}, settings | {"beta": 0.3}, "base", ""))
    assert "beta" in json.dumps([to_json_ready(block) for block in Settings().blocks(run)]), "DPO's own"


def test_rollouts_and_their_target_are_left_out_where_there_were_none(tmp_path: Path) -> None:
    run = build(tmp_path, seeds=2)
    result = read_json(run.result, TrialResult)
    page = json.dumps([to_json_ready(block) for block in Arms().blocks(run)])
    assert "Targets, fixed before the run" in page
    assert '"rollouts"' in page
    rows = tuple(replace(row, value=0.0) if row.name == "rollouts" else row for row in result.rows)
    write_json(run.result, replace(result, decoding="loss", rows=rows))
    page = json.dumps([to_json_ready(block) for block in Arms().blocks(run)])
    assert "Targets, fixed before the run" not in page
    assert '"rollouts"' not in page


@pytest.mark.parametrize(
    ("weights", "level", "told"), [({"t": 1.0}, None, True), ({"t": 0.5, "u": 0.5}, None, False), ({"t": 1.0}, 2.0, False)]
)
def test_one_task_without_levels_leaves_nothing_to_steer(
    tmp_path: Path, weights: dict[str, float], level: float | None, told: bool
) -> None:
    run = build(tmp_path, seeds=2)
    write_plan(run.plan, Plan("proportional", (Stage("all", "sft", 6, weights),)))
    result = read_json(run.result, TrialResult)
    write_json(run.result, replace(result, judgements=(), arms=("frozen", "uniform"), references=("frozen",)))
    write_json(run.claims, [Claim("unchanged", "t", level, 0.5, 0.5, Interval(0.0, -0.01, 0.01, 5), "5 seeds", "uniform")])
    page = text_of(run)
    assert "No lever was tried." in page
    assert ("One task without levels: there was nothing to steer" in page) == told


def test_items_gained_and_lost_stand_beside_their_difference(tmp_path: Path) -> None:
    run = compared(tmp_path, items=40, rows=40)
    facts = [fact for *_, blocks in sections(run) for block in blocks if isinstance(block, Headline) for fact in block.facts]
    assert facts[0].label == "change of success"
    assert facts[0].note.endswith("]; 1 gained, 0 lost of 40")
    assert not any("gained" in fact.note for fact in facts[1:])


def test_the_correction_is_told_in_plain_words() -> None:
    told = format_family([moved("loss", 2.0, 1.78, 5)])
    assert told.startswith("With several claims, the chance that any claim of one word (any learnt, say) is wrong is kept")
    assert "corrected by Holm over 1 claim," in told


@pytest.mark.parametrize(
    ("what", "told"),
    [("skip_step", "steps that were not taken"), ("lr_factor", ""), ("refuse.t@1", "for groups of cell X"), ("beta", "")],
)
def test_decisions_that_need_a_word_get_one(tmp_path: Path, what: str, told: str) -> None:
    line = {"step": 3, "what": what, "old": 1.0, "new": 0.0, "because": "2 skipped"}
    (tmp_path / "decisions.jsonl").write_text(json.dumps(line) + "\n", encoding="utf-8")
    blocks = Decisions().blocks(RunFolder(tmp_path))
    said = [block.text for block in blocks if isinstance(block, Paragraph)][1:]
    assert len(said) == bool(told)
    assert told in "".join(said)


def test_an_option_is_taken_out_with_its_value() -> None:
    command = "mixwright verdict a b --measured 'old place' --gate"
    assert without_option(command, "--measured") == "mixwright verdict a b --gate"
    assert without_option("mixwright verdict a b --measured=m", "--measured") == "mixwright verdict a b"
    assert without_option("mixwright verdict a b --gate", "--measured") == "mixwright verdict a b --gate"


def test_a_command_is_printed_without_a_break() -> None:
    shown = io.StringIO()
    command = f"mixwright verdict a b --protect {'x ' * 40}--gate"
    show(Console(file=shown, width=40), "", [Code("Ask again", command)])
    assert shown.getvalue() == f"Ask again: {command}\n"
