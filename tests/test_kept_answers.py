"""Answers that are kept while something is measured: a stopped command goes on, and the result is that of one run."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from cli_call import Call, sums, write
from trainers_tiny import model, tokenizer

from mixwright.answers.table import Answers
from mixwright.learner.generation import GenerationJob
from mixwright.learner.learner import Completion, Learner
from mixwright.learner.prompt_form import PromptForm
from mixwright.learner.shared_generation import generate
from mixwright.measure.kept_answers import KeepingLearner
from mixwright.run.folder import STORE_VARIABLE, RunFolder, read_measurements

PROMPTS = [f"{n}+1=" for n in range(9)]


def learner(seed: int = 0, **settings: Any) -> Learner:
    return Learner(model(seed).eval(), tokenizer(), "chars", **settings)


def same(one: Sequence[Sequence[Completion]], other: Sequence[Sequence[Completion]]) -> None:
    """The same tokens; log-probabilities may have been read in other batches."""
    for made, expected in zip(itertools.chain(*one), itertools.chain(*other), strict=True):
        assert (made.token_ids, made.finished) == (expected.token_ids, expected.finished)
        assert made.logprobs == pytest.approx(expected.logprobs, abs=1e-4)


@pytest.mark.parametrize("place", [0, 1, 1023, 2047])
def test_a_model_that_differs_in_one_value_is_another_model(place: int, tmp_path: Path) -> None:
    """An export may be damaged in one row: answers of the sound model must not be found for it."""
    sound, damaged = learner(), learner()
    damaged.model.model.layers[1].mlp.up_proj.weight.data.flatten()[place] += 1e-3
    first = KeepingLearner(sound, tmp_path / "answers.jsonl")
    first.remember(["asked"], lambda: {"value": 1})
    assert KeepingLearner(learner(), tmp_path / "answers.jsonl").knows(["asked"])
    assert not KeepingLearner(damaged, tmp_path / "answers.jsonl").knows(["asked"])
    assert KeepingLearner(damaged, None).digest != first.digest


class Stops(Exception):
    """Raised where the process would be killed."""


def count_written(monkeypatch: pytest.MonkeyPatch, stop_after: int | None = None) -> list[int]:
    """Jobs of each call that reaches the model; stops once completions have come back so many times."""
    written: list[int] = []
    times = itertools.count()

    def counted(learner: Learner, jobs: Sequence[GenerationJob], *how: Any) -> Any:
        if jobs:
            written.append(len(jobs))
        for made in generate(learner, jobs, *how):
            if next(times) == stop_after:
                raise Stops
            yield made

    monkeypatch.setattr("mixwright.learner.learner.generate", counted)
    return written


@pytest.mark.parametrize("temperature", [0.0, 1.0])
def test_what_was_written_before_a_stop_is_not_written_again_and_nothing_changes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, temperature: float
) -> None:
    how: dict[str, Any] = {"count": 3, "temperature": temperature, "max_new_tokens": 4, "continue_up_to": 8, "seed": 5}
    whole = learner().sample(PROMPTS, **{**how, "continue_up_to": None})
    path = tmp_path / "answers" / "before.jsonl"
    stopped = KeepingLearner(learner(batch_size=2 if temperature == 0 else 6), path)
    with monkeypatch.context() as patch:
        count_written(patch, stop_after=2)
        with pytest.raises(Stops):
            stopped.sample(PROMPTS, **{**how, "continue_up_to": None})
    rows = 1 if temperature == 0 else 3
    before = path.read_text().count("\n") // rows
    assert 2 <= before < len(PROMPTS), "those that had ended were kept"
    kept = KeepingLearner(learner(), path)
    written, shares = count_written(monkeypatch), list[float]()
    found = kept.sample(PROMPTS, progress=shares.append, **{**how, "continue_up_to": None})
    assert [[one.token_ids for one in row] for row in found] == [[one.token_ids for one in row] for row in whole]
    assert written == [len(PROMPTS) - before]
    assert shares[-1] == 1.0
    KeepingLearner(learner(1), path).sample(PROMPTS[:2], **{**how, "continue_up_to": None})
    assert written[1:] == [2], "another model finds nothing"
    assert path.read_text().count("\n") == rows * (len(PROMPTS) + 2)
    longer = KeepingLearner(learner(), path).sample(PROMPTS, **how)
    same(longer, learner().sample(PROMPTS, **how))
    written.clear()
    assert KeepingLearner(learner(), path).sample(PROMPTS, **how) == longer
    assert written == []


def test_samples_of_other_seeds_places_and_lengths_are_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    one = KeepingLearner(learner(), tmp_path / "a.jsonl")
    how: dict[str, Any] = {"count": 2, "temperature": 1.0, "max_new_tokens": 4, "seed": 5}
    first = one.sample(["7", "7"], **how)
    assert first[0] != first[1], "the same prompt at another place"
    written = count_written(monkeypatch)
    assert one.sample(["7", "7"], **how) == first
    assert written == []
    for other in ({"seed": 6}, {"count": 3}, {"max_new_tokens": 5}, {"continue_up_to": 9}, {"temperature": 0.5}):
        written.clear()
        one.sample(["7", "7"], **{**how, **other})
        assert written[0] == (4 if "continue_up_to" in other else 2), other  # the beginnings are known then
    assert [row[0] for row in one.sample(["7"], **{**how, "temperature": 0})] == [
        learner().sample(["7"], **{**how, "temperature": 0})[0][0]
    ]


def test_without_a_file_answers_are_kept_in_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    one, written = KeepingLearner(learner(), None), count_written(monkeypatch)
    how: dict[str, Any] = {"count": 1, "temperature": 0, "max_new_tokens": 4, "seed": 5}
    assert one.sample(PROMPTS, **how) == one.sample(PROMPTS, **how)
    assert written == [len(PROMPTS)]


def test_what_was_timed_once_is_remembered(tmp_path: Path) -> None:
    path, made = tmp_path / "a.jsonl", iter(range(9))
    asked = ["free answers", [1, 2]]
    assert KeepingLearner(learner(), path).remember(asked, lambda: {"seconds": next(made)}) == {"seconds": 0}
    assert KeepingLearner(learner(), path).remember(asked, lambda: {"seconds": next(made)}) == {"seconds": 0}
    assert KeepingLearner(learner(1), path).remember(asked, lambda: {"seconds": next(made)}) == {"seconds": 1}


def checkpoints() -> tuple[str, str]:
    for seed, name in enumerate(("before", "after")):
        model(seed).save_pretrained(name)
        tokenizer().save_pretrained(name)
    return "before", "after"


def tables(folder: str, *names: str) -> list[Any]:
    run = RunFolder(folder)
    return [[row for row in read_measurements(run.measurements(name)) if row.probe == "competence"] for name in names]


def test_measure_goes_on_after_a_stop_and_leaves_what_one_run_leaves(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    before, _ = checkpoints()
    asked = (
        "measure",
        before,
        "--eval",
        write("a.jsonl", sums(30)),
        "--samples",
        "2",
        "--max-new-tokens",
        "4",
        "--batch-size",
        "12",
    )
    assert call(*asked, "--folder", "whole")[0] == 0
    monkeypatch.setenv(STORE_VARIABLE, "empty")
    with monkeypatch.context() as patch:
        count_written(patch, stop_after=6)
        assert call(*asked, "--folder", "cut")[0] == 2
    assert not Path("cut").exists()
    written = count_written(monkeypatch)
    code, _, err = call(*asked, "--folder", "cut")
    assert code == 0, err
    assert tables("cut", "before") == tables("whole", "before")
    one, other = (Answers.read(RunFolder(name).answers("before")).first_rows() for name in ("cut", "whole"))
    assert [row["completion"] for row in one] == [row["completion"] for row in other]
    written.clear()
    assert call(*asked, "--folder", "cut")[0] == 1, "a finished measuring is not written over"


def test_a_comparison_goes_on_after_a_stop(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    models = checkpoints()
    asked = (
        "verdict",
        "--no-suite",
        *models,
        "--eval",
        write("a.jsonl", sums(30)),
        "--samples",
        "1",
        "--max-new-tokens",
        "4",
        "--batch-size",
        "8",
        "--no-gate",
    )
    assert call(*asked, "--folder", "whole")[0] == 0
    monkeypatch.setenv(STORE_VARIABLE, "empty")
    with monkeypatch.context() as patch:
        written = count_written(patch, stop_after=9)
        assert call(*asked, "--folder", "cut")[0] == 2
        first = sum(written)
    written = count_written(monkeypatch)
    code, _, err = call(*asked, "--folder", "cut")
    assert code == 0, err
    assert tables("cut", "before", "after") == tables("whole", "before", "after")
    assert first > 0


def test_the_first_completions_are_not_written_again_when_measuring(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    before, _ = checkpoints()
    rows = write("a.jsonl", [{"prompt": f"{n}+1=", "answer": f"{n + 1}"} for n in range(12)])
    written = count_written(monkeypatch)
    code, _, err = call("measure", before, "--eval", rows, "--samples", "0", "--max-new-tokens", "4")
    assert code == 0, err
    assert "graders: chosen by 12 completions" in err
    assert written.count(12) == 1, written


def test_a_greedy_answer_that_ended_is_taken_over_wherever_it_fits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    how: dict[str, Any] = {"count": 1, "temperature": 0, "seed": 5}
    alone = learner().sample(PROMPTS, max_new_tokens=9, **how)
    lengths = [len(row[0].token_ids) for row in alone]
    ended = [row[0].finished for row in alone]
    path = tmp_path / "answers" / "before.jsonl"
    kept = KeepingLearner(learner(), path)
    first = kept.sample(PROMPTS, max_new_tokens=3, **how)
    begun = [row[0].token_ids for row in first]
    cut = [place for place, row in enumerate(first) if not row[0].finished]
    kept.sample([PROMPTS[i] for i in cut], max_new_tokens=9, prefixes=[begun[i] for i in cut], **how)
    assert cut, "some of these answers are longer than three tokens"
    for again in (kept, KeepingLearner(learner(), path)):
        written = count_written(monkeypatch)
        found = again.sample(PROMPTS, max_new_tokens=9, **how)
        assert [row[0].token_ids for row in found] == [row[0].token_ids for row in alone]
        for one, other in zip(found, alone, strict=True):
            assert one[0].logprobs == pytest.approx(other[0].logprobs, abs=1e-4)
        assert written == [], "what did not end is cut where it is asked"
        written.clear()
        short = again.sample(PROMPTS, max_new_tokens=4, **how)
        assert [len(row[0].token_ids) for row in short] == [min(length, 4) for length in lengths]
        assert [row[0].finished for row in short] == [e and n <= 4 for e, n in zip(ended, lengths, strict=True)]


def test_an_answer_that_was_begun_with_other_words_is_never_taken_for_the_models_own() -> None:
    how: dict[str, Any] = {"count": 1, "temperature": 0, "seed": 5, "max_new_tokens": 6}
    kept = KeepingLearner(learner(), None)
    own = learner().sample(PROMPTS, **how)
    other = [[next(t for t in range(4, 12) if t != row[0].token_ids[0])] for row in own]
    kept.sample(PROMPTS, prefixes=other, **how)
    assert [row[0].token_ids for row in kept.sample(PROMPTS, **how)] == [row[0].token_ids for row in own]


@pytest.mark.parametrize("temperature", [0.0, 1.0])
def test_what_was_to_be_continued_is_not_written_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, temperature: float
) -> None:
    how: dict[str, Any] = {"count": 2, "temperature": temperature, "max_new_tokens": 2, "continue_up_to": 6, "seed": 5}
    path = tmp_path / "answers" / "before.jsonl"
    whole, rows = learner().sample(PROMPTS, **how), 1 if temperature == 0 else 2
    cut = sum(len(one.token_ids) > 2 for row in whole for one in row[:rows])
    assert cut > 2, "some of these answers are longer than two tokens"
    with monkeypatch.context() as patch:
        count_written(patch, stop_after=1 + len(PROMPTS))
        with pytest.raises(Stops):  # after one continuation
            KeepingLearner(learner(batch_size=rows), path).sample(PROMPTS, **how)
    written = count_written(monkeypatch)
    same(KeepingLearner(learner(batch_size=rows), path).sample(PROMPTS, **how), whole)
    assert 0 < sum(written) <= cut, "no prompt is begun again"


def test_the_other_form_of_prompts_is_kept_in_the_same_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tiny = learner()
    tiny.tokenizer.chat_template = "{% for m in messages %}9{{ m['content'] }}{% endfor %}"
    path = tmp_path / "a.jsonl"
    how: dict[str, Any] = {"count": 1, "temperature": 0, "max_new_tokens": 3, "seed": 5}
    kept = KeepingLearner(Learner(tiny.model, tiny.tokenizer, "chars"), path)
    plain = kept.with_form(PromptForm(template=False))
    assert kept.encode("7") != plain.encode("7") == learner().encode("7")
    first, written = plain.sample(PROMPTS, **how), count_written(monkeypatch)
    again = KeepingLearner(Learner(tiny.model, tiny.tokenizer, "chars"), path)
    assert again.with_form(PromptForm(template=False)).sample(PROMPTS, **how) == first
    assert written == []
    again.sample(PROMPTS, **how)
    assert sum(written) == len(PROMPTS), "the model's own form is another question"


def stop_in(patch: pytest.MonkeyPatch, place: str) -> None:
    def stop(*_: Any, **__: Any) -> None:
        raise Stops

    patch.setattr(place, stop)


@pytest.mark.parametrize("place", ["mixwright.verbs.verdict.write_verdict", "mixwright.verbs.output.conclude"])
def test_a_comparison_that_was_stopped_at_its_page_measures_nothing_again(
    call: Call, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    models = checkpoints()
    asked = (
        "verdict",
        "--no-suite",
        *models,
        "--eval",
        write("a.jsonl", sums(9)),
        "--samples",
        "0",
        "--max-new-tokens",
        "3",
        "--no-gate",
    )
    with monkeypatch.context() as patch:
        stop_in(patch, place)
        assert call(*asked, "--folder", "cut")[0] == 2
    written = count_written(monkeypatch)
    assert call(*asked, "--folder", "cut")[0] == 0
    assert written == []


@pytest.mark.parametrize("place", ["mixwright.verbs.direct.write_manifest", "mixwright.verbs.direct.write_json"])
def test_a_measuring_that_was_stopped_while_it_was_written_goes_on(
    call: Call, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    before, _ = checkpoints()
    asked = ("measure", before, "--eval", write("a.jsonl", sums(9)), "--samples", "0", "--max-new-tokens", "3")
    with monkeypatch.context() as patch:
        stop_in(patch, place)
        assert call(*asked, "--folder", "cut")[0] == 2
    written = count_written(monkeypatch)
    code, _, err = call(*asked, "--folder", "cut")
    assert code == 0, err
    assert written == []


def test_what_was_measured_is_found_by_later_commands_and_a_finished_folder_is_not_written_over(
    call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    before, after = checkpoints()
    options = ("--eval", write("a.jsonl", sums(9)), "--samples", "0", "--max-new-tokens", "3")
    assert call("measure", before, *options, "--folder", "one")[0] == 0
    code, _, err = call("measure", before, *options, "--folder", "one")
    assert (code, "Name another --folder" in err) == (1, True)
    written = count_written(monkeypatch)
    assert call("measure", before, *options, "--folder", "two")[0] == 0
    assert written == []
    assert call("verdict", "--no-suite", before, after, *options, "--no-gate")[0] == 0
    assert sum(written) == 9, "of the later model alone"
