"""Held-out items that several processes write answers for: what comes out is what one process measures."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from cli_call import sums, write

from mixwright.answers.table import Answers
from mixwright.config import CorpusConfig, MeasureConfig, ModelConfig, RunConfig, TrialConfig
from mixwright.corpus import Corpus, read_corpus
from mixwright.learner.bases import bases_of
from mixwright.learner.learner import Learner
from mixwright.measure import bases
from mixwright.measure.bases import (
    MeasureJob,
    base_name,
    count_parts,
    measure_base,
    measure_bases,
)
from mixwright.measure.kept_folder import ANSWERS_FOLDER, drop_kept
from mixwright.run.folder import RunFolder, read_measurements
from mixwright.run.opening import open_with_workers

CONFIG = RunConfig(
    CorpusConfig("train.jsonl", "eval.jsonl"),
    model=ModelConfig(width=32, depth=2),
    measure=MeasureConfig(items=60, samples=2, max_new_tokens=6, probes=("competence",)),
)


def measured(run: RunFolder, name: str) -> tuple[list[Any], list[Any]]:
    """Measurements and completions, log-probabilities aside, which may have been read in other batches."""
    rows = [{k: v for k, v in row.items() if k != "logprob"} for row in Answers.read(run.answers(name)).first_rows()]
    return read_measurements(run.measurements(name)), rows


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> RunFolder:
    """A run whose starting model one process has measured."""
    folder = tmp_path_factory.mktemp("whole")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        write("train.jsonl", sums(100, 40))
        write("eval.jsonl", sums(40))
        run = RunFolder(folder / "out")
        with open_with_workers(replace(CONFIG, trial=TrialConfig(workers=1)), run) as (workers, checked):
            measure_bases(checked, workers)
    return run


def job_of(run: RunFolder, config: RunConfig, **options: Any) -> MeasureJob:
    (base,) = bases_of(config.model, run)
    return MeasureJob(str(run.path), base, base_name(base), config, **options)


def test_parts_and_a_whole_measuring_are_the_same(whole: RunFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    name = job_of(whole, CONFIG).name
    expected = measured(whole, name)
    for number in (2, 0, 1):
        measure_base(job_of(whole, CONFIG, part=(number, 3)))
    assert len(list((whole.path / ANSWERS_FOLDER).glob("parts-*/*.jsonl"))) == 3

    def generate(_: Learner, jobs: Sequence[Any], *__: Any) -> Iterator[Any]:
        assert not jobs, "everything was written"
        return iter(())

    monkeypatch.setattr("mixwright.learner.learner.generate", generate)
    measure_base(job_of(whole, CONFIG))
    assert measured(whole, name) == expected


def test_a_part_that_was_written_is_not_written_again(whole: RunFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    drop_kept(whole.path)
    measure_base(job_of(whole, CONFIG, part=(0, 2)))
    prompts: list[int] = []
    generate = Learner.generate

    def counted(self: Learner, jobs: Any, *how: Any) -> Any:
        prompts.append(len(jobs))
        return generate(self, jobs, *how)

    monkeypatch.setattr(Learner, "generate", counted)
    measure_base(job_of(whole, CONFIG, part=(1, 4)))  # items 1, 5, ...: none of them is in part 0 of 2
    assert sum(prompts) > 0
    prompts.clear()
    measure_base(job_of(whole, CONFIG, part=(2, 4)))  # items 2, 6, ...: all of them are
    assert sum(prompts) == 0


def test_a_command_with_workers_divides_the_items(whole: RunFolder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(whole.path.parent)
    monkeypatch.setattr(bases, "ITEMS_PER_PART", 20)
    config, run, names = replace(CONFIG, trial=TrialConfig(workers=2)), RunFolder(tmp_path / "out"), []
    with open_with_workers(config, run) as (workers, checked):
        begin = workers.run
        monkeypatch.setattr(workers, "run", lambda jobs, **named: names.extend(j.name for j in jobs) or begin(jobs, **named))
        measure_bases(checked, workers)
    (name,) = [name.removeprefix("measure ") for name in names if name.startswith("measure ")]
    assert [each for each in names if "part" in each] == [f"{name}, part {number} of 2" for number in (0, 1)]
    assert measured(run, name) == measured(whole, name)
    assert not (run.path / ANSWERS_FOLDER).exists()


@pytest.mark.parametrize(
    ("trial", "probes", "workers", "models", "expected"),
    [
        (TrialConfig(workers=8), ("competence",), 8, 1, 5),  # 320 items, at least 64 each
        (TrialConfig(workers=8), ("competence",), 8, 3, 2),
        (TrialConfig(cluster="ray"), ("competence",), 3, 1, 3),
        (TrialConfig(), ("competence",), 8, 1, 1),  # nobody named workers: copies of the model may not fit
        (TrialConfig(workers=8), ("loss",), 8, 1, 1),  # nothing is written
        (TrialConfig(workers=8), ("competence",), 8, 20, 1),
    ],
)
def test_parts_follow_workers_and_items(
    tmp_path: Path, trial: TrialConfig, probes: tuple[str, ...], workers: int, models: int, expected: int
) -> None:
    nothing_to_grade = [{"task": "talk", "prompt": f"{n}?", "completion": f"{n}."} for n in range(400)]
    write(str(tmp_path / "a.jsonl"), [*sums(400), *nothing_to_grade])
    corpus: Corpus = read_corpus(CorpusConfig(str(tmp_path / "a.jsonl"), eval_share=0.8))
    config = replace(CONFIG, trial=trial, measure=replace(CONFIG.measure, items=400, probes=probes))
    assert count_parts(config, corpus, workers, models) == expected
