"""Room from answers that end by themselves, and continued completions: by hand on models of known answers."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import torch
from cli_call import Call, write
from trainers_tiny import model, tokenizer
from verdicts import inconclusive

from mixwright.config import MeasureConfig, RunConfig
from mixwright.learner.learner import Completion, Learner
from mixwright.measure import room as room_module
from mixwright.measure.passes import Passes
from mixwright.measure.room import CompletionLimit, FreeAnswers, choose_room, complete_freely, spread_items
from mixwright.records import Example, Observation, RunManifest
from mixwright.run.folder import read_yaml
from mixwright.verdict.rules.next_steps import list_steps_after_comparison

OTHERWISE = CompletionLimit(40, "the longest answer of 3 items has 31 tokens")


class Ends:
    """A model whose answer to a prompt that is a number has so many tokens; it counts what it wrote."""

    def __init__(self) -> None:
        self.written, self.sizes, self.device = 0, [], torch.device("cpu")

    def sample(
        self, prompts: Sequence[str], *, max_new_tokens: int, prefixes: Any = None, **_: Any
    ) -> list[list[Completion]]:
        made = []
        for prompt, start in zip(prompts, prefixes or [()] * len(prompts), strict=True):
            length = min(int(prompt), max_new_tokens)
            self.written += length - len(start)
            made.append([Completion("", tuple(range(length)), (0.0,) * length, int(prompt) <= max_new_tokens)])
        self.sizes.append((max_new_tokens, len(prompts)))
        return made


def items(*lengths: int, task: str = "t") -> list[Example]:
    return [Example(f"{task}{n}", task, str(length), answer="x") for n, length in enumerate(lengths)]


def completed(*lengths: int, seconds_per_token: float = 0.01, most: int = 2048) -> tuple[FreeAnswers, Ends]:
    says = Ends()
    found = complete_freely(says, items(*lengths), most, clock=lambda: says.written * seconds_per_token)  # pyright: ignore
    return found, says


def test_answers_get_twice_the_room_until_all_have_ended_and_nothing_is_written_twice() -> None:
    found, says = completed(5, 40, 70)
    assert (found.lengths, found.ended) == ((5, 40, 70), (True, True, True))
    assert says.sizes == [(32, 3), (64, 2), (128, 1)]
    assert says.written == 115
    assert found.needed_tokens == 70


def test_completing_stops_where_more_would_take_too_long_or_there_is_no_more_room() -> None:
    found, says = completed(5, 1000, seconds_per_token=0.5)
    assert says.sizes == [(32, 2), (64, 1)], "37 tokens took 18.5 s, 32 more take 34.5, and 64 more would take 66.5"
    assert (found.lengths, found.ended) == ((5, 64), (True, False))
    found, says = completed(5, 1000, most=50)
    assert says.sizes[-1] == (50, 1)
    assert found.lengths == (5, 50)


def test_how_far_completing_goes_does_not_depend_on_the_speed_of_the_machine() -> None:
    for seconds in (0.0001, 0.01):
        found, says = completed(*[5000] * 16, seconds_per_token=seconds)
        assert [size for size, _ in says.sizes] == [32, 64, 128], "16 x 128 = 2,048 tokens on a CPU"
        assert set(found.lengths) == {128}


def test_room_is_what_the_models_need_and_a_quarter_more_never_under_the_gold_answers() -> None:
    short, long = completed(5, 40)[0], completed(5, 70)[0]
    room = choose_room([short], OTHERWISE, gold=3)
    assert (room.tokens, room.continued) == (56, 4 * 56), "40 x 1.25 = 50, in steps of 8"
    assert choose_room([short, long], OTHERWISE, gold=3).tokens == 88, "the larger of two: 70 x 1.25 = 87.5"
    assert choose_room([short], OTHERWISE, gold=90).tokens == 91
    assert choose_room([completed(2, 3)[0]], OTHERWISE, gold=1).tokens == 16, "never less than that"
    room = choose_room([long], OTHERWISE, gold=3, limit=100)
    assert (room.tokens, room.continued) == (88, 100), "continued as far as the context allows"
    room = choose_room([long], OTHERWISE, gold=3, limit=60)
    assert (room.tokens, room.continued) == (60, 0), "nothing is left to continue in"


def test_a_model_that_never_ends_its_answers_gets_the_room_of_the_data_and_no_more() -> None:
    endless = completed(9999, 9999, 5, seconds_per_token=1.0)[0]
    assert endless.needed_tokens is None
    room = choose_room([endless], OTHERWISE, gold=31)
    assert (room.tokens, room.continued) == (32, 0)
    assert "do not stop" in room.why
    assert choose_room([endless], CompletionLimit(512, "a worked solution"), gold=3).tokens == 32, "as much as was written"
    assert choose_room([endless, completed(5, 40)[0]], OTHERWISE, gold=3).tokens == 56, "one of two models ends them"


def test_items_are_taken_in_turn_from_every_task() -> None:
    rows = [*items(*range(50), task="a"), *items(1, 2, task="b"), *items(*range(9), task="c")]
    found = spread_items(rows, 8)
    assert [row.task for row in found] == ["a", "b", "c", "a", "b", "c", "a", "c"]
    assert len({row.id for row in found}) == 8
    assert spread_items(rows[:3]) == rows[:3]


def learner(**settings: Any) -> Learner:
    return Learner(model().eval(), tokenizer(), "chars", **settings)


PROMPTS = ["1+1=", "12+3=", "7", "99+1="]


def test_a_continued_greedy_completion_is_the_one_with_more_room() -> None:
    one = learner()
    how: dict[str, Any] = {"count": 1, "temperature": 0, "seed": 1}
    whole = one.sample(PROMPTS, max_new_tokens=12, **how)
    parts = one.sample(PROMPTS, max_new_tokens=3, continue_up_to=12, **how)
    for (a,), (b,) in zip(whole, parts, strict=True):
        assert (a.text, a.token_ids, a.finished) == (b.text, b.token_ids, b.finished)
        assert b.logprobs == pytest.approx(a.logprobs, abs=1e-4)
    assert any(len(a.token_ids) > 3 for (a,) in whole)


@pytest.mark.parametrize("size", [None, 1, 3])
def test_continued_samples_begin_as_they_were_and_do_not_depend_on_the_batch(size: int | None) -> None:
    how: dict[str, Any] = {"count": 3, "temperature": 1.0, "seed": 1, "max_new_tokens": 2}
    short, long = learner().sample(PROMPTS, **how), learner().sample(PROMPTS, continue_up_to=9, **how)
    batched = learner(batch_size=size).sample(PROMPTS, continue_up_to=9, **how)
    assert [[c.token_ids for c in row] for row in batched] == [[c.token_ids for c in row] for row in long]
    for one, other in zip((c for row in short for c in row), (c for row in long for c in row), strict=True):
        assert other.token_ids[: len(one.token_ids)] == one.token_ids
        assert (one.finished and other == one) or (
            len(other.token_ids) > 2 and (other.finished or len(other.token_ids) == 9)
        )
    ends = {c.token_ids[2:] for row in long for c in row if len(c.token_ids) > 2}
    assert len(ends) > 3, "samples of one prompt go on with numbers of their own"


def test_what_was_cut_is_told_with_the_length_it_was_cut_at_and_more_is_advised() -> None:
    assert MeasureConfig(max_new_tokens=48).longest_completion == 48
    assert MeasureConfig(max_new_tokens=48, continued_tokens=192).longest_completion == 192
    settings = {"max_new_tokens": 48, "continued_tokens": 192}
    manifest = RunManifest({}, {}, {}, settings, "a", "mixwright verdict a b --eval c")
    cut = Observation("cut", None, "warning", 50, 100, "cut", "")
    first = list_steps_after_comparison(inconclusive(manifest=manifest, notes=(cut,)))[0]
    assert "--max-new-tokens 384" in first.command, "as asked is not continued: 96 would be less than what was too little"
    assert "192 tokens" in first.text


def test_measuring_continues_what_reaches_the_room_before_it_is_graded() -> None:
    from mixwright.corpus import Corpus

    corpus = Corpus.from_examples([Example(f"{n}", "t", prompt, answer="1") for n, prompt in enumerate(PROMPTS)])

    def lengths(**settings: Any) -> list[int]:
        passes = Passes(learner(), MeasureConfig(items=9, samples=0, **settings), corpus)
        return [len(item.greedy.token_ids) for item in passes.rollouts.values()]

    assert lengths(max_new_tokens=2, continued_tokens=9) == lengths(max_new_tokens=9)
    assert max(lengths(max_new_tokens=2)) == 2


def test_a_comparison_says_the_room_first(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    for seed, name in enumerate(("before", "after")):
        model(seed).save_pretrained(name)
        tokenizer().save_pretrained(name)
    rows = write("a.jsonl", [{"task": "t", "prompt": f"{n}+1=", "answer": f"{n + 1}"} for n in range(12)])
    found = FreeAnswers((5, 20), (True, True))
    monkeypatch.setattr(room_module, "complete_freely", lambda *_, **__: found)
    asked = ("--eval", rows, "--samples", "1", "--items", "12")
    code, _, err = call(
        "verdict", "--no-suite", "before", "after", *asked, "--grader", "exact", "--folder", "one", "--no-gate"
    )
    assert code == 0, err
    assert err.index("completions: up to 32 tokens") < err.index("measure before")
    kept = read_yaml(Path("one/run.yaml"), RunConfig).measure
    assert (kept.max_new_tokens, kept.continued_tokens) == (32, 59), "a context of 64, prompts of 5 characters"
    call(
        "verdict", "--no-suite", "before", "after", *asked, "--grader", "exact", "--max-new-tokens", "4", "--folder", "three"
    )
    assert read_yaml(Path("three/run.yaml"), RunConfig).measure.continued_tokens == 0
