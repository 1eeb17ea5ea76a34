import itertools
import json
from collections import Counter

import pytest

pytest.importorskip("reasoning_gym")

from mixwright.api import audit
from mixwright.config import CorpusConfig
from mixwright_lab.demo import settings
from mixwright_lab.demo_pool import LEAKED, ROWS, write_pool


def read(path):
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    return write_pool(tmp_path_factory.mktemp("pool"), 3)


def test_the_same_seed_gives_the_same_bytes_and_another_other_items(files, tmp_path):
    again, other = write_pool(tmp_path / "again", 3), write_pool(tmp_path / "other", 4)
    for name in ("delivered", "train", "held_out", "text"):
        assert getattr(again, name).read_bytes() == getattr(files, name).read_bytes()
    prompts = {row["prompt"] for row in read(files.held_out)}
    assert len(prompts & {row["prompt"] for row in read(other.held_out)}) < len(prompts) / 4


def test_no_prompt_stands_in_two_files_and_the_counts_are_those_of_the_table(files):
    train, held_out, text = (read(path) for path in (files.train, files.held_out, files.text))
    prompts = [{row["prompt"] for row in rows} for rows in (train, held_out, text)]
    assert [len(one & other) for one, other in itertools.combinations(prompts, 2)] == [0, 0, 0]
    for rows, place in ((train, 0), (held_out, 1)):
        counted = Counter((row["task"], row["level"]) for row in rows)
        assert counted == {cell: counts[place] for cell, counts in ROWS.items()}


def test_three_fifths_of_the_sums_are_restated_and_the_others_right(files):
    sums = [row for row in read(files.text) if row["task"] == "chain_sum"]
    again = [row for row in sums if row["target"] != row["answer"]]
    assert all(f": {row['target']} =" in row["prompt"] for row in again)
    assert 0.57 < len(again) / len(sums) < 0.63


def test_the_audit_names_what_was_leaked_as_delivered_and_nothing_after(files):
    seen = {}
    for name in ("delivered", "train"):
        config = CorpusConfig(str(getattr(files, name)), eval=str(files.held_out))
        seen[name] = [one for one in audit(config, checks=["contamination"]) if one.severity == "error"]
    assert [(one.task, one.count) for one in seen["delivered"]] == [(LEAKED[0], ROWS[LEAKED].held_out)]
    assert seen["train"] == []


def test_the_settings_take_the_files_and_the_seed(files):
    config = settings(files, 2)
    assert (config.corpus.train, config.corpus.eval) == (str(files.train), str(files.held_out))
    assert config.model.warmup is not None
    assert config.model.warmup.source == str(files.text)
    assert (config.seed, settings(files, 2, full=True).trial.seeds) == (2000, 12)
