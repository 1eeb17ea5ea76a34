"""Reasoning Gym as a source: seeds, levels, splits, and tasks that run out."""

from __future__ import annotations

import hashlib
import itertools
import re
from collections import Counter

import pytest

from mixwright.config import CorpusConfig
from mixwright.corpus import Corpus, read_corpus
from mixwright.corpus.identity import prompt_key
from mixwright.errors import InputError
from mixwright.records import Example

TASKS = ("chain_sum", "spell_backward", "products", "gcd", "count_bits")


def fresh(task: str, seed: int, **settings: object) -> dict[str, object]:
    """The first item of a fresh data set with this seed."""
    from reasoning_gym.factory import create_dataset

    return create_dataset(task, seed=seed, size=1, **settings)[0]


def read(spec: str, **config: object) -> Corpus:
    return read_corpus(CorpusConfig(train=f"reasoning-gym:{spec}", **config))  # type: ignore[arg-type]


@pytest.mark.gym
def test_specification() -> None:
    corpus = read("gcd@1x20, chain_sum@3 x 3,\nspell_backwardx7", eval_share=0.0)
    counts = Counter((row.task, row.level) for row in corpus)
    assert counts == {("gcd", 1.0): 20, ("chain_sum", 3.0): 3, ("spell_backward", None): 7}


@pytest.mark.parametrize("spec", ["gcd", "gcd@1", "gcd@1x0", "gcd@-1x5", "gcd@1x5,", ""])
def test_specifications_that_cannot_be_read_are_refused(spec: str) -> None:
    with pytest.raises(InputError, match="TASK@LEVELxCOUNT"):
        read(spec)


@pytest.mark.gym
@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("gdc@1x5", "Nearest: gcd"),
        ("compositex5", "Reasoning Gym task"),
        ("gcd@9x5", "level of gcd from 0 to 3, got 9"),
        ("count_bits@4x5", "that differs from the level below"),
        ("acre@1x5", "without a level"),
        ("graph_color@0x5", "one right answer"),
        ("caesar_cipher@3x5", "items of caesar_cipher@3|caesar_cipher"),
    ],
)
def test_specifications_that_are_refused(spec: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        read(spec)


@pytest.mark.gym
def test_seeds_have_nothing_in_common_with_their_neighbours() -> None:
    seeds = []
    for row in read("gcd@1x3000"):
        split, index = row.id.removeprefix("gcd@1-").split("-")
        seeds.append(seed_of(row))
        assert f"{seeds[-1]:08x}" == hashlib.sha256(f"gcd\n1\n{split}\n{index}".encode()).hexdigest()[:8]
    assert len(set(seeds)) == len(seeds) == 3000
    assert sum(abs(one - other) < 1000 for one, other in itertools.pairwise(seeds)) < 5


@pytest.mark.gym
def test_an_item_is_the_first_of_a_fresh_data_set_with_its_seed() -> None:
    for row in read(",".join(f"{task}x3" for task in (*TASKS, "acre", "gsm_symbolic"))):
        item = fresh(row.task, seed_of(row))
        assert (row.prompt, row.answer) == (item["question"], item["answer"])


def seed_of(row: Example) -> int:
    return int(row.source.rpartition("seed ")[2])


@pytest.mark.gym
def test_splits_share_nothing_and_nothing_is_twice() -> None:
    spec = ",".join(f"{task}@{level}x120" for task in TASKS for level in (0, 1, 2))
    train, held_out = f"reasoning-gym:{spec}", f"reasoning-gym:{spec.replace('x120', 'x60')}"
    corpus = read_corpus(CorpusConfig(train=train, eval=held_out))
    prompts = {split: [prompt_key(row.prompt) for row in corpus if row.split == split] for split in ("train", "eval")}
    assert not set(prompts["train"]) & set(prompts["eval"])
    assert max(Counter(prompts["train"] + prompts["eval"]).values()) == 1
    assert len(corpus) + sum(_missing(note) for note in corpus.notes) == 15 * 180
    assert all(corpus.grade(row, row.answer or "") == 1.0 for row in corpus)
    again = read_corpus(CorpusConfig(train=train, eval=held_out))
    assert again.digest() == corpus.digest()


def _missing(note: str) -> int:
    found, _, wanted = note.split(": ")[1].split(" items")[0].split()[:3]
    return int(wanted) - int(found)


@pytest.mark.gym
def test_one_source_is_split_cell_by_cell() -> None:
    corpus = read("gcd@0x50,gcd@1x30", eval_share=0.2)
    counts = Counter((row.level, row.split) for row in corpus)
    assert counts == {(0.0, "train"): 40, (0.0, "eval"): 10, (1.0, "train"): 24, (1.0, "eval"): 6}


@pytest.mark.gym
def test_a_prompt_has_one_split_for_ever() -> None:
    for row in read("lcm@0x100"):
        assert row.split == ("eval" if prompt_key(row.prompt) < 0.25 * 2**64 else "train")


@pytest.mark.gym
def test_a_small_task_gives_what_it_has_and_says_so() -> None:
    corpus = read("coin_flip@0x300")
    prompts = {str(fresh("coin_flip", seed, min_trials=3, max_trials=3)["question"]) for seed in range(300)}
    assert {str(row.prompt) for row in corpus} == prompts
    assert len(corpus) == len(prompts) == 8
    assert len(corpus.notes) == 2
    assert "coin_flip@0: 6 of 240 train items" in corpus.notes[0]


@pytest.mark.gym
def test_levels_are_pure() -> None:
    corpus = read("chain_sum@0x40,chain_sum@2x40,spell_backward@1x40")
    for row in corpus:
        text = str(row.prompt)
        if row.task == "spell_backward":
            lengths = {len(text.split()[-1])}
            assert row.knobs == {"word_len_min": 5.0, "word_len_max": 5.0} == {name: float(*lengths) for name in row.knobs}
        else:
            terms = text.split(":")[1].strip(" =").replace("-", "+").split("+")
            assert (len(terms), {len(term.strip()) for term in terms}) == ((2, {1}) if row.level == 0 else (4, {3}))


@pytest.mark.gym
def test_what_an_item_carries() -> None:
    [row] = read("products@1x1", eval_share=0.0)
    assert (row.task, row.level, row.target) == ("products", 1.0, row.answer)
    assert re.fullmatch(r"products@1-train-[0-9]", row.id)
    assert "products@1, seed" in row.source
    assert row.knobs == {"num_terms_min": 3.0, "num_terms_max": 3.0, "num_digits_min": 2.0, "num_digits_max": 2.0}
    assert row.extra["reasoning_gym"]["task"] == "products"
    corpus = read("products@1x3,coin_flip@0x3", grader="reasoning_gym", eval_share=0.0)
    assert [corpus.grade(row, row.answer or "") for row in corpus] == [1.0] * 6


@pytest.mark.gym
def test_items_whose_answer_is_empty_are_left_out() -> None:
    corpus = read("ab@0x40")
    assert len(corpus) == 40
    assert all(row.answer for row in corpus)


def test_without_reasoning_gym_the_remedy_is_pip(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "reasoning_gym.factory", None)
    with pytest.raises(InputError, match=r"pip install 'mixwright\[gym\]'"):
        read("gcd@1x5")


@pytest.mark.gym
def test_reading_the_task_twice_gives_new_items() -> None:
    corpus = read("gcd@1x20,gcd@1x20", eval_share=0.0)
    assert len({row.id for row in corpus}) == len({row.prompt for row in corpus}) == 40
