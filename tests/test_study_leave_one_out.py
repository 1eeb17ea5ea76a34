"""Leaving parts out through TRL: the task without information is one, and rows hold all that the figures need."""

import json
import math
from collections import Counter

import pytest

from mixwright.config import CorpusConfig
from mixwright.corpus import read_corpus
from mixwright.estimates.outcome import ItemScores
from mixwright_lab.studies import leave_one_out as study


def problems(place, split, first, count):
    """A file with the greatest common divisors of `count` pairs of numbers."""
    pairs = [(a, b) for a in range(first, first + 20) for b in range(a + 1, a + 21)][:count]
    rows = [{"task": "gcd", "level": 0, "prompt": f"gcd of {a} and {b}?", "answer": str(math.gcd(a, b))} for a, b in pairs]
    path = place / f"{split}-{first}.jsonl"
    path.write_text("".join(json.dumps(row | {"split": split}) + "\n" for row in rows), encoding="utf-8")
    return str(path)


def test_answers_of_the_blind_task_are_permuted_and_no_other_row_is_touched(tmp_path, monkeypatch):
    sides = {"train": problems(tmp_path, "train", 30, 320), "eval": problems(tmp_path, "eval", 60, 80)}
    monkeypatch.setattr(study, "ROWS", sides)
    own = CorpusConfig(train=problems(tmp_path, "train", 31, 60), eval=problems(tmp_path, "eval", 100, 20))
    made = list(read_corpus(CorpusConfig(train=str(study.with_blind_task(own, tmp_path)))))
    true = {str(e.prompt): e.answer for e in read_corpus(CorpusConfig(**study.ROWS))}
    blind = [e for e in made if e.task == study.BLIND]
    for split, least in (("train", 200), ("eval", 40)):
        rows = [e for e in blind if e.split == split]
        assert len(rows) >= least
        assert Counter(e.answer for e in rows) == Counter(true[str(e.prompt)] for e in rows)
    assert sum(e.answer != true[str(e.prompt)] for e in blind) > len(blind) / 3
    kept = [e for e in made if e.task == "gcd"]
    assert len(kept) == 80
    assert all(e.answer == true.get(str(e.prompt), e.answer) for e in kept)
    assert not {str(e.prompt) for e in kept} & {str(e.prompt) for e in blind}


def test_settings_ask_for_every_part_in_turn(tmp_path, monkeypatch):
    monkeypatch.setattr(study, "with_blind_task", lambda corpus, folder: folder / "rows.jsonl")
    for case, (_, seeds, _, parts) in study.CASES.items():
        config = study.settings(case, tmp_path)
        assert config.trial.arms == (*study.REFERENCES, *parts)
        assert config.trial.seeds == seeds >= 5


ITEMS = [("a", None, str(n)) for n in range(20)] + [("b", 1.0, str(n)) for n in range(20, 40)]


def branch(arm, seed, right):
    values = {"greedy": right, "greedy.swapped": 0.0, "pass@1": right, "pass@1.swapped": 0.0}
    scores = ItemScores.of({name: dict.fromkeys(ITEMS, value) for name, value in values.items()})
    columns = {name: str(scores.column(name, scores.items).tolist()) for name in study.NAMES}
    return {"case": "eight", "arm": arm, "seed": seed} | columns


def test_figures_come_from_the_rows():
    order = ItemScores.of({"greedy": dict.fromkeys(ITEMS, 0.0)}).items
    rows = [{"case": "eight", "items": [list(item) for item in order]}]
    for seed in range(5):
        rows += [branch("frozen", seed, 0.0), branch("steered", seed, 0.5), branch("without_gates", seed, 0.75)]
    figures = study.compare(rows)
    assert set(figures) == {"steered - frozen", "without_gates - frozen", "steered - without_gates"}
    assert figures["steered - frozen"]["success"][0] == pytest.approx(0.5)
    assert figures["steered - without_gates"]["success"][0] == pytest.approx(-0.25)
    assert figures["steered - without_gates"]["tasks"]["b"]["D"][0] == pytest.approx(-0.25)
    goals = {goal.name: goal.reached for goal in study.goals_of({"refusing": {}, "eight": figures})}
    assert goals == {
        "eight: steered - frozen, greedy success, all held-out items": True,
        "eight: steered - without_gates, greedy success, all held-out items": False,
    }
