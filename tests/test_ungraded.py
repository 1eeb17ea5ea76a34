"""Runs in which nothing is graded: held-out loss for SFT, preference accuracy for DPO, in their own units."""

import math
from pathlib import Path
from typing import Any

import pytest
import torch
from cli_call import Call, write

from mixwright.answers.score import scores_of_items
from mixwright.config import MeasureConfig, ModelConfig
from mixwright.corpus import Corpus
from mixwright.estimates.judgement import change_word, format_word
from mixwright.estimates.outcome import Change, ItemScores, estimate_change
from mixwright.estimates.readings import Outcome, format_change, outcome_of
from mixwright.measure.stage import measure_learner
from mixwright.records import Example, TrialResult
from mixwright.run.folder import RunFolder, read_json
from mixwright_extras.tiny.model import build_tiny

SEEDS = 5


def moved(before: float, after: float, outcome: Outcome, name: str) -> Change:
    """The change where every item of 40 moves alike, but for a little that differs by item."""
    sides = [
        [ItemScores.of({name: {("t", None, str(i)): value + step * (i % turn) for i in range(40)}})] * SEEDS
        for value, step, turn in ((before, 0.001, 5), (after, 0.002, 7))
    ]
    found = estimate_change(*sides, outcome=outcome)
    assert found is not None
    return found


def flat(value: float) -> ItemScores:
    return ItemScores.of({"loss": {("t", None, str(i)): value for i in range(40)}})


def test_the_interval_of_nats_is_that_of_their_spread_alone() -> None:
    """Half an item more and less keeps shares of 0 and 1 honest; a tenth of a nat would drown in it."""
    sides = ([flat(2.0)], [ItemScores.of({"loss": {("t", None, str(i)): 1.9 - 0.01 * (-1) ** i for i in range(40)}})])
    found = estimate_change(*sides, outcome="loss")
    assert found is not None
    assert found.estimate.value == pytest.approx(0.1)
    assert found.estimate.error == pytest.approx(math.sqrt(40 * 0.01**2 / 39 / 40))


@pytest.mark.parametrize(
    ("probes", "expected"),
    [
        (("competence", "held_out_loss"), "sampled"),
        (("held_out_loss", "preference"), "preference"),
        (("held_out_loss",), "loss"),
        (("formats",), None),
    ],
)
def test_the_primary_outcome_follows_from_the_probes(probes: tuple[str, ...], expected: str | None) -> None:
    assert outcome_of(probes, "sampled") == expected


def test_a_loss_that_fell_improves_and_is_told_as_a_fall_in_nats() -> None:
    found = moved(2.31, 1.98, "loss", "loss")
    mean = sum(0.002 * (i % 7) - 0.001 * (i % 5) for i in range(40)) / 40
    assert found.estimate.value == pytest.approx(0.33 - mean)
    assert change_word(found) == "improves"
    assert format_change(found.estimate, "loss").startswith("-0.326 nats per token [-0.3")
    assert change_word(moved(1.98, 2.31, "loss", "loss")) == "worsens"
    sides = [[flat(2.0)] * SEEDS] * 2
    still = estimate_change(*sides, outcome="loss")
    assert still is not None
    assert (still.estimate.value, still.estimate.p, change_word(still)) == (0.0, 1.0, "no change")
    assert format_word("no change", 0.05, "loss") == "no change beyond 0.05 nats per token"
    assert format_word("no change", 0.05) == "no change beyond 5 points"


def test_a_rise_of_success_without_dependence_still_does_not_improve() -> None:
    assert change_word(moved(0.2, 0.6, "greedy", "greedy")) != "improves"
    assert change_word(moved(0.2, 0.6, "preference", "preference")) == "improves"


def pairs(count: int, split: str) -> list[Example]:
    return [
        Example(f"{split}{n}", "t", f"Say {n}: ", chosen=f"yes {n}", rejected="no", split=split, source="x")
        for n in range(count)
    ]


def learner_of(texts: list[str]) -> Any:
    return build_tiny(texts, ModelConfig(width=16, depth=1, heads=2, vocabulary=264), 0)


def nats(learner: Any, prompt: str, completion: str) -> list[float]:
    """Log-probability of each token of a completion and its end, by one plain forward pass."""
    first = learner.tokenizer(prompt)["input_ids"]
    rest = [*learner.tokenizer(completion, add_special_tokens=False)["input_ids"], learner.tokenizer.eos_token_id]
    with torch.no_grad():
        table = torch.log_softmax(learner.model(torch.tensor([first + rest])).logits[0].float(), -1)
    return [float(table[len(first) + place - 1, token]) for place, token in enumerate(rest)]


def test_held_out_loss_is_the_mean_over_the_tokens_of_the_target_and_its_end() -> None:
    rows = [Example(f"r{n}", "t", f"Say {n}: ", target="a word " * (n + 1), split="eval", source="x") for n in range(3)]
    rows.append(Example("long", "t", "Say it: ", target="0" * 3000, split="eval", source="x"))
    learner = learner_of([str(row.prompt) + str(row.target) for row in rows[:3]])
    found = measure_learner(learner, Corpus.from_examples(rows), MeasureConfig(probes=("held_out_loss",)), seed=0)
    own = {item: value for (_, _, item), value in scores_of_items(found.answers).by_item("loss").items()}
    expected = {row.id: -sum(each := nats(learner, str(row.prompt), str(row.target))) / len(each) for row in rows[:3]}
    assert own == pytest.approx(expected, abs=1e-4)
    (task,) = (row for row in found.measurements if row.name == "loss")
    assert task.value == pytest.approx(sum(expected.values()) / 3, abs=1e-4)
    (lost,) = (row for row in found.measurements if row.name == "too_long")
    assert (lost.value, lost.n) == (1, 4)
    assert len(found.answers) == 0


def test_a_pair_is_right_when_its_chosen_answer_is_likelier() -> None:
    rows = pairs(6, "eval")
    learner = learner_of([f"{row.prompt}{row.chosen}" for row in rows])
    found = measure_learner(learner, Corpus.from_examples(rows), MeasureConfig(probes=("preference",)), seed=0)
    margins = {
        row.id: sum(nats(learner, str(row.prompt), str(row.chosen))) - sum(nats(learner, str(row.prompt), str(row.rejected)))
        for row in rows
    }
    known = scores_of_items(found.answers)
    scores = {name: known.by_item(name) for name in known.columns}
    own = {name: {item: value for (_, _, item), value in values.items()} for name, values in scores.items()}
    assert own["margin"] == pytest.approx(margins, abs=1e-3)
    assert own["preference"] == {name: float(margin > 0) for name, margin in margins.items()}
    assert set(own["chance"].values()) == {0.5}


SETTINGS = """
corpus: {{train: rows.jsonl, eval_share: 0.4}}
model: {{width: 16, depth: 1, heads: 2, vocabulary: 264, warmup: {{steps: 2, batch_size: 4}}}}
measure: {{items: 12, probes: [{probe}]}}
plan: {{planner: proportional}}
train: {{objective: {objective}, steps: 2, prompts: 4, learning_rate: 0.01}}
trial: {{arms: [uniform], nulls: [], seeds: 2, workers: 1}}
"""


@pytest.mark.parametrize("objective", ["sft", "dpo"])
def test_a_run_without_graded_answers_reaches_a_verdict_in_its_own_unit(objective: str, call: Call) -> None:
    if objective == "sft":
        rows = [{"instruction": f"Say {n}", "output": f"The word {n} is said as it is written."} for n in range(40)]
        probe, name, unit = "held_out_loss", "loss", "nats per token"
    else:
        rows = [{"prompt": f"Say {n}: ", "chosen": f"yes {n}", "rejected": f"no {n}"} for n in range(40)]
        probe, name, unit = "preference", "preference", "share"
    write("rows.jsonl", rows)
    Path("run.yaml").write_text(SETTINGS.format(objective=objective, probe=probe), encoding="utf-8")
    code, _, err = call("run", "run.yaml")
    assert code == 0, err
    run = RunFolder(Path("runs/run"))
    result = read_json(run.result, TrialResult)
    assert result.decoding == name
    rows_of = {(row.arm, row.seed): row for row in result.rows if row.name == name}
    assert {row.unit for row in rows_of.values()} == {unit}
    (effect,) = (effect for effect in result.effects if effect.name == name)
    differences = [(rows_of["uniform", s].value or 0) - (rows_of["frozen", s].value or 0) for s in result.seeds]
    assert effect.difference.value == pytest.approx(sum(differences) / 2)
    task = read_json(run.verdict_data, dict)["tasks"][0]
    assert task["after"] - task["before"] == pytest.approx(task["change"]["value"])
    assert not any(effect.name.startswith("success") for effect in result.effects)
    page = run.page.read_text(encoding="utf-8")
    assert "the trial ran 2 seeds, and fewer than 5 decide nothing" in page
    assert "success" not in page.split("</style>")[-1].lower()
    assert call("verdict", "runs/run")[0] == 4
    assert math.isfinite(effect.p)
