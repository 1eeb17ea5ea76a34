"""A grader that hangs is named, and its answer is wrong or the end: in measuring, in trials and when rows are read."""

from __future__ import annotations

import json
import re
import signal
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from trainers_tiny import model, tokenizer

from mixwright.config import CorpusConfig, MeasureConfig, TrainConfig
from mixwright.contracts import Branch
from mixwright.corpus import Corpus, read_corpus
from mixwright.errors import InputError
from mixwright.learner.learner import Completion, Learner
from mixwright.learner.prompt_form import PromptForm
from mixwright.measure.stage import measure_learner
from mixwright.records import Example, Plan, Stage
from mixwright.time_limit import TooSlow, call_with_timeout
from mixwright.trial.training import make_trainer

pytestmark = pytest.mark.filterwarnings("ignore:.*gradient_checkpointing.*:FutureWarning")  # TRL sets the older name
HANGS = {"asleep": "time.sleep(3600)", "busy": "while True: pass", "matching": "re.fullmatch('(a|aa)+', 'a' * 200 + 'b')"}


@pytest.fixture(params=HANGS)
def grader(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """A grader that hangs on `hang` and takes every exception for a wrong answer."""
    name = f"hangs_{request.param}"
    (tmp_path / f"{name}.py").write_text(
        "import re, time\n\ndef judge(completion, answer, **row):\n    try:\n        if completion == 'hang':\n"
        f"            {HANGS[request.param]}\n    except Exception:\n        return 0.0\n"
        "    return float(completion == answer)\n"
    )
    monkeypatch.chdir(tmp_path)
    yield f"{name}:judge"
    sys.modules.pop(name, None)


class Script:
    """Stands for a learner: answers `hang` to the first of its prompts, and rightly to all others."""

    form = PromptForm()

    def sample(self, prompts: Any, *, count: int, **settings: Any) -> Any:
        texts = ["hang" if prompt == "0=" else prompt[:-1] for prompt in prompts]
        return [[Completion(text, (5,), (0.0,), True)] * count for text in texts]


def corpus(grader: str, count: int = 4) -> Corpus:
    return Corpus.from_examples((Example(f"row-{n}", "t", f"{n}=", answer=str(n)) for n in range(count)), {"t": grader})


def test_measuring_goes_on_and_counts_what_was_late(grader: str, caplog: pytest.LogCaptureFixture) -> None:
    config = MeasureConfig(items=3, samples=1, probes=("competence",), grader_seconds=0.2)
    found = measure_learner(Script(), corpus(grader, 3), config, seed=0)  # type: ignore[arg-type]
    rows = {(row.probe, row.name): row for row in found.measurements if row.task == "t"}
    assert rows["competence", "greedy"].value == pytest.approx(2 / 3)
    late = rows["graders", "late"]
    assert (late.value, late.unit) == (2 + 2 * 2, "answers")  # its own, then of both decodings on each other item
    said = [record.getMessage() for record in caplog.records if record.name == "mixwright"]
    assert any(
        re.search(rf"No score within 0.2 s: grader {grader}, example 'row-0', task t\. .* wrong", line) for line in said
    )
    assert len(said) == len(set(said)) == 3, "each example is named once"
    assert not any(row.name == "late" for row in measured_without_a_hang(grader))


def measured_without_a_hang(grader: str) -> Any:
    rows = (Example(f"row-{n}", "t", f"{n}=", answer=str(n)) for n in range(1, 5))
    config = MeasureConfig(items=4, samples=2, probes=("competence",), grader_seconds=0.2)
    return measure_learner(Script(), Corpus.from_examples(rows, {"t": grader}), config, seed=0).measurements  # type: ignore[arg-type]


def test_or_measuring_stops(grader: str) -> None:
    config = MeasureConfig(items=4, samples=2, probes=("competence",), grader_seconds=0.2, slow_grader="stop")
    with pytest.raises(InputError, match=rf"a score within 0.2 s, got none \(grader {grader}, example 'row-0', task t\)"):
        measure_learner(Script(), corpus(grader), config, seed=0)  # type: ignore[arg-type]


def test_a_trial_writes_it_into_the_branch(grader: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mixwright.trial.training.text_of", lambda completion: "hang")
    plan = Plan("test", (Stage("grpo", "grpo", 1, {"t": 1.0}),))
    settings = (TrainConfig(prompts=1, generations=2, max_new_tokens=2), MeasureConfig(grader_seconds=0.1))
    learner, rows = Learner(model(), tokenizer(), "tiny"), corpus(grader)
    trainer = make_trainer(learner, rows, Branch(plan), *settings, seed=0, folder=tmp_path / "branch")
    trainer.train()
    (line,) = [json.loads(line) for line in (tmp_path / "branch" / "steps.jsonl").read_text().splitlines()]
    assert line["success"] == {"t": [0.0, 2]}
    decisions = [json.loads(line) for line in (tmp_path / "branch" / "decisions.jsonl").read_text().splitlines()]
    assert [grader in line["because"] for line in decisions if line["what"] == "grader too slow"] == [True]


def test_a_gold_answer_that_hangs_is_refused_when_rows_are_read(
    grader: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mixwright.corpus.corpus.SECONDS_PER_GRADE", 0.2)
    path = tmp_path / "data" / "a.jsonl"
    path.parent.mkdir()
    path.write_text('{"id": "row-0", "prompt": "p", "answer": "hang"}\n')
    with pytest.raises(InputError, match=r"a score within 0\.2 s"):
        read_corpus(CorpusConfig(str(path), grader=grader))


def test_without_a_limit_nothing_is_interrupted() -> None:
    assert call_with_timeout(0, lambda: time.sleep(0.05) or 7) == 7


def test_alarms_of_others_are_put_back_and_do_not_lift_the_limit() -> None:
    rung: list[int] = []

    def busy() -> None:
        signal.signal(signal.SIGALRM, lambda *_: rung.append(2))
        signal.setitimer(signal.ITIMER_REAL, 0)  # as graders do that have a limit of their own
        while True:
            pass

    kept = signal.signal(signal.SIGALRM, lambda *_: rung.append(1))
    try:
        signal.setitimer(signal.ITIMER_REAL, 30)
        with pytest.raises(TooSlow):
            call_with_timeout(0.2, busy)
        left = signal.setitimer(signal.ITIMER_REAL, 0)[0]
        assert 0 < left < 30
        signal.raise_signal(signal.SIGALRM)
        assert rung == [1]
        assert signal.getsignal(signal.SIGVTALRM) is signal.SIG_DFL
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, kept)


def test_what_swallows_the_first_interrupt_gets_another() -> None:
    caught: list[int] = []

    def stubborn() -> None:
        while True:
            try:
                while True:
                    pass
            except BaseException:
                caught.append(1)
                if len(caught) > 1:
                    raise

    with pytest.raises(TooSlow):
        call_with_timeout(0.1, stubborn)
    assert len(caught) == 2


def test_one_limit_inside_another() -> None:
    def inner() -> str:
        with pytest.raises(TooSlow):
            call_with_timeout(0.1, lambda: time.sleep(3600))
        time.sleep(3600)
        return ""

    with pytest.raises(TooSlow):
        call_with_timeout(0.4, inner)


def test_in_another_thread_it_is_named_and_waited_for() -> None:
    told, found = threading.Event(), []
    thread = threading.Thread(target=lambda: found.append(call_with_timeout(0.05, lambda: told.wait(60), told.set)))
    thread.start()
    thread.join()
    assert found == [True]
