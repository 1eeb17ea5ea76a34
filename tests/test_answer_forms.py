"""Form and likelihood of answers in a comparison's folder: what is kept, taken over, and read."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from answer_rows import write_sides
from cli_call import Call, sums, write
from comparisons import FAST, checkpoint
from test_form_changes import city, rows, sentence, ticket, tool

from mixwright.answers.table import Answers
from mixwright.errors import InputError
from mixwright.measure.former import MAX_ANSWERS_PER_TASK, FormerAnswers, former_file, read_former_answers, rows_to_read
from mixwright.records import Example
from mixwright.run.folder import RunFolder, read_list
from mixwright.verbs.compare import clear
from mixwright.verdict.rules.answer_forms import group_takeovers, known_forms_file, write_known_forms
from mixwright.verdict.rules.evidence import Evidence


def folder(path: Path, made: list[dict[str, Any]]) -> RunFolder:
    run = RunFolder(path)
    write_sides(run.path / "measure", made)
    return run


def spilled() -> list[dict[str, Any]]:
    hostile = "\x1b[31m<b>capitals</b>"
    return rows("ticket", sentence, ticket, ticket) + rows(hostile, sentence, lambda i: "SALES|normal")


def test_the_folder_tells_which_tasks_went_over_and_nothing_without_completions(tmp_path: Path) -> None:
    run = folder(tmp_path / "run", spilled())
    (group,) = group_takeovers(Evidence(run).form_changes)
    assert (group.owner, group.answers, group.items, len(group.tasks)) == ("ticket", 15, 15, 1)
    assert group_takeovers(Evidence(RunFolder(tmp_path / "none")).form_changes) == []
    run.answers("after").write_bytes(b"PAR1cut")
    with pytest.raises(InputError, match="answers"):
        group_takeovers(Evidence(run).form_changes)


def test_completions_of_the_corpus_excuse_their_form(tmp_path: Path) -> None:
    made = rows("b", sentence, lambda i: f"Answer: {city(i)}") + rows("a", sentence, lambda i: f"Answer: {i}", tool)
    run = folder(tmp_path / "run", made)
    examples = [Example(f"{task}{i}", task, "?", target=f"Answer: {i}") for task in "ab" for i in range(4)]
    write_known_forms(run, examples[:4])
    assert [task for form in group_takeovers(Evidence(run).form_changes) for task in form.tasks] == ["b"]
    write_known_forms(run, examples)
    assert group_takeovers(Evidence(run).form_changes) == []
    known_forms_file(run).unlink()
    write_known_forms(run, [Example("a", "a", "?", answer="x|y"), Example("b", "b", "?", target="plain words")])
    assert not known_forms_file(run).exists()


class Reader:
    """Stands for a learner: each token of a prompt has the log-probability that the prompt says."""

    def logprobs(self, prompts: list[str], completions: list[list[int]]) -> list[list[float]]:
        return [[-float(prompt)] * len(tokens) for prompt, tokens in zip(prompts, completions, strict=True)]


def test_the_change_is_summed_over_tokens_with_an_interval_over_items() -> None:
    examples = [Example(f"n{i}", "t", str(i + 1), answer="7") for i in range(3)] + [Example("u0", "u", "5", answer="7")]
    tokens = [[4], [4, 5], [4, 5, 6]]
    before = [{"example": f"n{i}", "task": "t", "tokens": tokens[i], "logprob": -0.5 * len(tokens[i])} for i in range(3)]
    before += [{"example": "u0", "task": "u", "tokens": [1], "logprob": -1.0}]
    before += [{"example": "n9", "task": "t", "tokens": None, "logprob": None}, {"example": "n8", "task": "t"}]
    prompts = {item.id: item.prompt for item in examples}
    (found,) = read_former_answers(Reader(), prompts, rows_to_read(before))  # pyright: ignore[reportArgumentType]
    # by hand: -1, -2 and -3 nats a token after, so -(1 + 4 + 9) over 6 tokens, from -0.5
    assert (found.task, found.items, found.tokens, found.before) == ("t", 3, 6, -0.5)
    assert found.change == pytest.approx(-14 / 6 + 0.5)
    assert found.low < found.change < found.high
    many = [{"example": str(i), "task": "t", "tokens": [1], "logprob": -1.0} for i in range(MAX_ANSWERS_PER_TASK + 50)]
    assert len(rows_to_read(many)) == MAX_ANSWERS_PER_TASK
    assert rows_to_read(many) == rows_to_read(many[::-1])


def test_a_comparison_reads_former_answers(call: Call) -> None:
    for seed, name in enumerate(("before", "after")):
        checkpoint(name, seed)
    asked = ("--eval", write("a.jsonl", sums(12)), *FAST)
    code, _, err = call("verdict", "--no-suite", "before", "after", *asked, "--folder", "one")
    assert code == 4, err
    (found,) = read_list(former_file(RunFolder("one")), FormerAnswers)
    made = Answers.read(RunFolder("one").answers("before")).first_rows()
    assert (found.items, found.tokens) == (12, sum(len(row["tokens"]) for row in made))
    assert found.before == pytest.approx(sum(row["logprob"] for row in made) / found.tokens)
    assert found.change < -1e-3, "another model finds what the first one wrote less probable"
    code, _, err = call("verdict", "--no-suite", "before", "before", *asked, "--folder", "two")
    assert code == 4, err
    (same,) = read_list(former_file(RunFolder("two")), FormerAnswers)
    assert same.before == found.before
    assert same.change == pytest.approx(0, abs=1e-4), "a model reads what it wrote as it wrote it"
    clear(RunFolder("two"))
    assert not former_file(RunFolder("two")).exists()
