"""Familiarity: likelihood of held-out items beside fresh ones, its rank test, and a model that was trained on them."""

import itertools
import json
from pathlib import Path

import numpy as np
import pytest
import torch
from cli_call import Call, sums, write
from comparisons import checkpoint

from mixwright.config import MeasureConfig, ModelConfig
from mixwright.corpus import Corpus
from mixwright.errors import InputError
from mixwright.learner.learner import Learner
from mixwright.measure.stage import MeasureResult, measure_learner
from mixwright.records import Example
from mixwright_extras.probes.familiarity import (
    BesideFresh,
    auroc,
    compare,
    note_familiarity,
    rank_p,
    read,
    read_texts,
    word_of,
)
from mixwright_extras.tiny.model import build_tiny


def name(found: BesideFresh) -> str:
    return word_of(found.p, found.auroc.high, None if found.fresh_gain is None else found.fresh_gain.low)


def test_a_text_is_read_from_its_less_likely_half() -> None:
    assert read(np.array([-1.0, -4.0, -2.0, -0.5])) == -3.0


def test_auroc_counts_pairs_and_ties_by_half() -> None:
    found = auroc(np.array([3.0, 1.0]), np.array([2.0, 1.0, 0.0]))
    assert found.value == pytest.approx((3 + 1.5) / 6)
    shares, other = np.array([1, 0.5]), np.array([0.5, 0.75, 1])
    error = np.sqrt(shares.var(ddof=1) / 2 + other.var(ddof=1) / 3)
    assert found.low == pytest.approx(found.value - 1.959964 * error)


def test_the_p_is_that_of_all_orders() -> None:
    """Against every way to call 6 of 12 numbers, two of them alike, the first."""
    rng = np.random.default_rng(3)
    values = np.round(rng.normal(size=12), 1)
    values[0] = values[7]
    orders = [np.isin(np.arange(12), chosen) for chosen in itertools.combinations(range(12), 6)]
    wins = [
        (values[one][:, None] > values[~one]).sum() + 0.5 * (values[one][:, None] == values[~one]).sum() for one in orders
    ]
    for one in (0, 100, 400, 923):
        exact = np.mean(np.array(wins) >= wins[one])
        assert rank_p(values[orders[one]], values[~orders[one]]) == pytest.approx(exact, abs=0.015)


def test_items_like_fresh_ones_are_called_seen_about_once_in_a_hundred() -> None:
    rng = np.random.default_rng(0)
    words = [name(compare(rng.normal(size=40), rng.normal(size=60))) for _ in range(2000)]
    assert 0.004 < words.count("item seen") / len(words) < 0.018


def test_what_the_starting_model_explains_is_taken_away() -> None:
    """Items that are likelier by themselves look seen without a starting model, and are not with it; and seen ones are."""
    rng = np.random.default_rng(1)
    items_then, fresh_then = rng.normal(1, 1, 40), rng.normal(0, 1, 60)
    items, fresh = items_then + 0.5 + rng.normal(0, 0.2, 40), fresh_then + 0.5 + rng.normal(0, 0.2, 60)
    assert name(compare(items, fresh)) == "item seen"
    found = compare(items, fresh, (items_then, fresh_then))
    assert name(found) == "task seen"
    assert found.fresh_gain is not None
    assert found.fresh_gain.value == pytest.approx(0.5, abs=0.1)
    assert name(compare(items - 0.5, fresh - 0.5, (items_then, fresh_then))) == "clean"
    assert name(compare(items + 0.5, fresh, (items_then, fresh_then))) == "item seen"


def text(rng: np.random.Generator) -> str:
    return "".join(rng.choice(list("abcdefgh"), 24))


def train(learner: Learner, texts: list[str], steps: int) -> None:
    start = learner.encode("")
    tokens = [start + learner.tokenizer(one, add_special_tokens=False)["input_ids"] for one in texts]
    ids = torch.tensor([one[: min(map(len, tokens))] for one in tokens])
    optimizer = torch.optim.Adam(learner.model.parameters(), lr=1e-2)
    for _ in range(steps):
        learner.model(input_ids=ids, labels=ids).loss.backward()
        optimizer.step()
        optimizer.zero_grad()


@pytest.fixture(scope="module")
def read_twice(tmp_path_factory: pytest.TempPathFactory) -> list[MeasureResult]:
    """Measured with the starting model beside: before training on the held-out items, and after."""
    rng = np.random.default_rng(0)
    items, fresh = ([text(rng) for _ in range(30)] for _ in range(2))
    path = tmp_path_factory.mktemp("fresh") / "fresh.jsonl"
    path.write_text("".join(json.dumps({"task": "t", "prompt": one}) + "\n" for one in [*fresh, items[0]]), encoding="utf-8")
    corpus = Corpus.from_examples(Example(f"e{n}", "t", one, answer="a", split="eval") for n, one in enumerate(items))
    learner = build_tiny([*items, *fresh], ModelConfig(width=64, depth=2, heads=2, vocabulary=264), 0)
    learner.save(path.parent / "start")
    options = {"fresh": str(path), "start": str(path.parent / "start")}
    config = MeasureConfig(probes=("familiarity",), options={"familiarity": options})
    found = []
    for steps in (0, 120):
        train(learner, items, steps)
        found.append(measure_learner(learner, corpus, config, seed=0))
    return found


def test_a_model_that_was_trained_on_the_items_is_told_and_one_that_was_not_is_not(read_twice: list[MeasureResult]) -> None:
    before, after = (note_familiarity(result.measurements)[0] for result in read_twice)
    assert before.message.startswith("t: clean;")
    assert before.severity == "info"
    assert after.message.startswith("t: item seen")
    assert after.severity == "warning"
    gain = {row.name: row.value for row in read_twice[0].measurements}["fresh_gain"]
    assert gain == pytest.approx(0, abs=1e-6)


def test_readings_are_those_of_a_plain_pass_over_the_text() -> None:
    texts = ["abcabc", "hello there"]
    learner = build_tiny(texts, ModelConfig(width=16, depth=1, heads=2, vocabulary=264), 0)
    for one, found in zip(texts, read_texts(learner, texts), strict=True):
        ids = learner.encode("") + learner.tokenizer(one, add_special_tokens=False)["input_ids"]
        with torch.no_grad():
            table = torch.log_softmax(learner.model(torch.tensor([ids])).logits[0].float(), -1)
        own = sorted(float(table[at, token]) for at, token in enumerate(ids[1:]))
        assert found == pytest.approx(np.mean(own[: round(len(own) / 2)]), abs=1e-5)


def test_fresh_rows_that_stand_in_the_corpus_are_not_fresh(tmp_path: Path) -> None:
    rows = [Example(f"e{n}", "t", f"item {n}", split="eval") for n in range(12)]
    learner = build_tiny(["item"], ModelConfig(width=16, depth=1, heads=2, vocabulary=264), 0)
    path = tmp_path / "fresh.jsonl"
    for new, found in ((9, 0), (10, 2)):
        prompts = [*(row.prompt for row in rows), *(f"new {n}" for n in range(new))]
        path.write_text("".join(json.dumps({"task": "t", "prompt": one}) + "\n" for one in prompts), encoding="utf-8")
        config = MeasureConfig(probes=("familiarity",), options={"familiarity": {"fresh": str(path)}})
        if found:
            result = measure_learner(learner, Corpus.from_examples(rows), config, seed=0)
            assert [row.name for row in result.measurements] == ["auroc", "p"]
        else:
            with pytest.raises(InputError, match=r"fresh\.jsonl: expected a task with 10 .* 10 fresh"):
                measure_learner(learner, Corpus.from_examples(rows), config, seed=0)


def test_measure_takes_fresh_rows_beside_a_checkpoint_alone(call: Call) -> None:
    corpus, fresh = write("a.jsonl", sums(12)), write("fresh.jsonl", sums(12, 40))
    asked = ("measure", checkpoint("one"), "--eval", corpus, "--samples", "0", "--max-new-tokens", "4")
    code, out, err = call(*asked, "--fresh", fresh, "--json")
    assert code == 0, err
    names = {row["name"] for row in json.loads(out)["measurements"] if row["probe"] == "familiarity"}
    assert names == {"auroc", "p"}
    assert "the model finds the held-out item likelier than the fresh one in" in err
    code, out, err = call(*asked, "--fresh", fresh, "--start", checkpoint("two", 1), "--json")
    assert code == 0, err
    names = {row["name"] for row in json.loads(out)["measurements"] if row["probe"] == "familiarity"}
    assert names == {"auroc", "p", "fresh_gain"}
    code, _, err = call(*asked, "--fresh", "none.jsonl")
    assert code != 0
    assert "none.jsonl" in err
    code, _, err = call(*asked, "--start", checkpoint("two", 1))
    assert code != 0
    assert "--fresh FILE with --start" in err
    Path("run.yaml").write_text("corpus: {train: a.jsonl}\n", encoding="utf-8")
    code, _, err = call("measure", "run.yaml", "--fresh", fresh)
    assert code != 0
    assert "with --fresh" in err
