"""Graders chosen by a model's first completions, too: when another one is taken, when not, and what is said of it."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from answer_rows import to_answers
from cli_call import Call, write
from trainers_tiny import model, tokenizer

from mixwright.config import CorpusConfig, MeasureConfig, RunConfig
from mixwright.corpus import Corpus
from mixwright.corpus.chosen_graders import FirstAnswer, choose_grader
from mixwright.corpus.graded import Graded
from mixwright.learner.learner import Completion, Learner
from mixwright.measure.bases import MeasureJob, measure_base
from mixwright.measure.first_answers import ITEMS_PER_TASK, note_of_choice, with_first_answers
from mixwright.measure.notes import UNREAD_NOTE, list_notes, note_nothing_right
from mixwright.measure.stage import MeasureResult
from mixwright.records import Example, Measurement, Observation
from mixwright.run.folder import RunFolder, read_list, read_yaml

CITIES = {"France": "Paris", "Italy": "Rome", "Peru": "Lima", "Egypt": "Cairo", "Cuba": "Havana", "Japan": "Tokyo"}
SENTENCE = "The capital of {} is {}."


def example(land: str, **changes: Any) -> Example:
    fields: dict[str, Any] = {"task": "capitals", "prompt": f"What is the capital of {land}?", "answer": CITIES[land]}
    return Example(land, **(fields | changes))


def answers(*texts: str, cut: bool = False, **changes: Any) -> list[FirstAnswer]:
    """A text for each land, in turn; {} are the land and its city."""
    return [
        FirstAnswer(example(one, **changes), text.format(one, CITIES[one]), cut)
        for one, text in zip(CITIES, texts, strict=False)
    ]


def test_what_the_grader_cannot_read_is_told_with_three_examples() -> None:
    texts = ["{1}"] * 2 + ["Some say {1}, some do not."] * 4
    found = choose_grader("capitals", "exact", answers(*texts))
    line = found.describe()[-1]
    assert (found.grader, len(found.refused)) == ("exact", 4)
    assert "rejects 4 of 6 completions that contain the answer: 'Some say Lima, some do not.' for 'Lima'" in line
    assert line.count("' for '") == 3
    assert line.endswith("accepted: exact 2, numeric 2, final_answer 2, includes 2, json_fields 2")
    assert len(choose_grader("capitals", "exact", answers(*["{1}"] * 6)).describe()) == 1


@pytest.mark.parametrize(
    ("texts", "grader", "accepted"),
    [
        ([SENTENCE] * 6, "includes", (0, 6)),
        ([SENTENCE] * 3 + ["No idea about {}"] * 3, "includes", (0, 3)),
        ([SENTENCE] * 2 + ["No idea about {}"] * 4, "includes", (0, 2)),
        ([SENTENCE] + ["No idea about {}"] * 5, "final_answer", (0, 1)),
        (["{1}"] * 6, "final_answer", (6, 6)),
        (["{1}"] * 2 + [SENTENCE] * 4, "includes", (2, 6)),
        (["{1}"] * 5 + [SENTENCE], "final_answer", (5, 6)),
        (["No idea about {}"] * 6, "final_answer", (0, 0)),
        (['{{"tool": "note", "text": "{1}"}}'] * 6, "final_answer", (0, 0)),
    ],
)
def test_the_proposed_grader_stays_unless_includes_accepts_clearly_more(
    texts: list[str], grader: str, accepted: tuple[int, int]
) -> None:
    found = choose_grader("capitals", "final_answer", answers(*texts))
    assert found.grader == grader
    assert (found.accepted["final_answer"], found.accepted["includes"]) == accepted
    assert found.total == 6
    assert len(found.examples) <= 3
    named = choose_grader("capitals", "final_answer", answers(*texts), named_by_user=True)
    assert (named.grader, named.changed) == ("final_answer", False)
    assert named.answers_in_sentences == (grader == "includes")
    assert "--grader capitals=includes" in named.remedy
    assert "corpus.graders: {capitals: includes}" in named.remedy


def test_rows_whose_own_completions_are_data_keep_their_grader() -> None:
    called = choose_grader("capitals", "exact", answers(*[SENTENCE] * 6, target='{"text": "x"}'))
    assert (called.grader, called.accepted["includes"]) == ("exact", 6)
    gold = choose_grader("capitals", "exact", answers(*['So: {{"a": 1}}'] * 6, answer='{"a": 1}'))
    assert (gold.grader, gold.accepted["includes"]) == ("exact", 0)


def test_what_a_cut_may_have_changed_is_not_counted() -> None:
    texts = ["The capital of {} is {}"] * 6
    assert choose_grader("capitals", "exact", answers(*texts)).grader == "includes"
    assert choose_grader("capitals", "exact", answers(*texts, cut=True)).grader == "exact"


def test_a_completion_that_was_cut_is_shown_as_such() -> None:
    text = "The capital of {} is {}. It has been so for"
    found = choose_grader("capitals", "exact", answers(*[text] * 6, cut=True))
    assert found.grader == "includes"
    assert "for'" + " (cut off) for 'Paris'" in found.why
    assert note_of_choice(found).evidence[0]["completion"].endswith("so for' (cut off)")
    assert "cut off" not in choose_grader("capitals", "exact", answers(*[text] * 6)).why
    corpus: Any = SimpleNamespace(tasks={"capitals": SimpleNamespace(grader="exact")})
    (note,) = note_nothing_right([result("It may be {0} or", cut="France")], corpus)
    assert note.message.endswith("the completions look like 'It may be France or' (cut off)")
    assert note.evidence[0]["completion"] == "It may be France or (cut off)"


def test_nothing_to_read_and_graders_that_are_not_compared_change_nothing() -> None:
    assert choose_grader("capitals", "exact", []).grader == "exact"
    for given in ("includes", "choice", "numeric?tolerance=0.1"):
        found = choose_grader("capitals", given, answers(*[SENTENCE] * 6))
        assert (found.grader, found.answers_in_sentences) == (given, False)


class Says:
    """A model that answers with sentences."""

    def __init__(self, text: str) -> None:
        self.text, self.asked, self.name, self.context = text, [], "now", None
        self.tokenizer = lambda texts, **_: {"input_ids": [[1] * len(text) for text in texts]}

    def encode(self, prompt: Any) -> list[int]:
        return [1] * len(prompt)

    def sample(self, prompts: list[str], *, count: int, temperature: float, **_: Any) -> list[list[Completion]]:
        assert (count, temperature) == (1, 0)
        self.asked += prompts
        lands = [prompt.removesuffix("?").rpartition(" ")[2] for prompt in prompts]
        return [[Completion(self.text.format(land, CITIES.get(land, "x")), (1, 2), (0.0, 0.0), True)] for land in lands]


def graded(extra: int = 0) -> Graded:
    rows = [example(land) for land in CITIES]
    rows += [Example(f"w{n}", "words", f"Say word {n}?", answer=f"word{n}") for n in range(extra)]
    corpus = Corpus.from_examples(
        rows, {"capitals": "final_answer", "words": "exact"} if extra else {"capitals": "final_answer"}
    )
    return Graded(corpus, CorpusConfig("x.jsonl", graders={"capitals": "final_answer"}), ())


def test_a_model_answers_a_few_items_of_each_task_and_the_graders_follow() -> None:
    says, lines = Says(SENTENCE), list[str]()
    found, notes = with_first_answers(graded(40), says, MeasureConfig(), say=lines.append)  # pyright: ignore
    assert len(says.asked) == len(CITIES) + ITEMS_PER_TASK
    assert {name: task.grader for name, task in found.corpus.tasks.items()} == {"capitals": "includes", "words": "exact"}
    assert found.config.graders["capitals"] == "includes"
    assert [(note.task, note.count, note.total, note.severity) for note in notes] == [("capitals", 6, 6, "info")]
    assert "18 completions" in lines[0]
    assert any(line.startswith("grader of capitals: includes, because") and "final_answer 0" in line for line in lines)
    assert any(line.startswith("grader of words: keeping exact") for line in lines)
    same, none = with_first_answers(graded(), says, MeasureConfig(), tasks_with_named_grader=["capitals"], say=lines.append)  # pyright: ignore
    assert (same.corpus.tasks["capitals"].grader, none) == ("final_answer", [])


def result(text: str, cut: str = "") -> MeasureResult:
    made = [Measurement("competence", "capitals", name, 0.0, 0, 1, 6, "share") for name in ("greedy", "pass@1")]
    rows = [
        {"example": land, "task": "capitals", "prompt": f"What is the capital of {land}?", "answer": city,
         "completion": text.format(land, city), "cut": land == cut}
        for land, city in CITIES.items()
    ]  # fmt: skip
    return MeasureResult(tuple(made), to_answers(rows))


def test_a_named_grader_that_reads_no_sentence_is_warned_of_with_the_one_that_does() -> None:
    corpus: Any = SimpleNamespace(tasks={"capitals": SimpleNamespace(grader="exact")})
    (note,) = list_notes({"before": result(SENTENCE)}, corpus, 16)
    assert (note.severity, note.total) == ("warning", 6)
    assert "includes accepts 6 of 6" in note.message
    assert "--grader capitals=includes" in note.remedy
    assert note.evidence[0]["completion"] == "The capital of France is Paris."
    (plain,) = list_notes({"before": result("It is not {1}.")}, corpus, 16)
    assert (plain.severity, "check the grader (exact)" in plain.remedy) == ("info", True)  # a new task is like that


def test_checkpoints_are_judged_by_one_grader_chosen_before_measuring(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    for seed, name in enumerate(("before", "after")):
        model(seed).save_pretrained(name)
        tokenizer().save_pretrained(name)
    rows = [
        {"task": "capitals", "prompt": f"What is the capital of {land}?", "answer": city} for land, city in CITIES.items()
    ]

    def sample(self: Learner, prompts: list[str], *, count: int, **_: Any) -> list[list[Completion]]:
        text = SENTENCE if self.name == "before" else "{1}"
        return [made * count for made in Says(text).sample(prompts, count=1, temperature=0)]

    monkeypatch.setattr(Learner, "sample", sample)
    asked = ("--eval", write("a.jsonl", rows), "--samples", "1", "--max-new-tokens", "16")
    code, _, err = call("verdict", "--no-suite", "before", "after", *asked, "--no-gate")
    assert code == 0, err
    assert "grader of capitals: includes, because includes accepts 6 of 6 completions and final_answer 0" in err
    assert err.index("grader of capitals: includes") < err.index("measure before")
    run = RunFolder("runs/comparison")
    assert read_yaml(run.path / "run.yaml", RunConfig).corpus.graders["capitals"] == "includes"
    assert [note.check for note in read_list(run.notes, Observation)] == ["grader chosen"]
    assert "The grader of task &#39;capitals&#39; is includes" in run.page.read_text(encoding="utf-8")
    code, _, err = call("verdict", "--no-suite", "before", "before", *asked, "--grader", "final_answer")
    assert "graders: chosen" not in err
    assert "--grader capitals=includes" in err
    code, _, err = call("run", "a.jsonl", "--init", "--model", "before")
    assert code == 0, err
    assert read_yaml(Path("run.yaml"), RunConfig).corpus.graders == {"capitals": "includes"}


def test_a_base_of_a_run_is_warned_of_where_its_sentences_are_not_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model().save_pretrained(tmp_path / "now")
    tokenizer().save_pretrained(tmp_path / "now")
    run = RunFolder(tmp_path / "run")
    Corpus.from_examples([example(land, split="eval") for land in CITIES], {"capitals": "exact"}).save(run.corpus)

    def sample(self: Learner, prompts: list[str], *, count: int, **_: Any) -> list[list[Completion]]:
        return [made * count for made in Says(SENTENCE).sample(prompts, count=1, temperature=0)]

    monkeypatch.setattr(Learner, "sample", sample)
    config = RunConfig(CorpusConfig("x.jsonl"), measure=MeasureConfig(probes=("competence",), samples=1))
    cut, notes = measure_base(MeasureJob(str(run.path), str(tmp_path / "now"), config))
    assert (cut, [(note.check, note.task, note.severity) for note in notes]) == (0.0, [(UNREAD_NOTE, "capitals", "warning")])
    assert "corpus.graders: {capitals: includes}" in notes[0].remedy
