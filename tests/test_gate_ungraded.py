"""The gate where no answer is graded: what is damage, what is not, and that nothing passes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest
from cli_call import Call
from mixwright.verdict.rules.gate_words import gate_lines
from test_form_changes import rows, sentence, ticket, tool
from trainers_tiny import model, tokenizer

from mixwright.config import CorpusConfig
from mixwright.corpus.graded import read_graded
from mixwright.measure.bases import write_completion_rows
from mixwright.measure.former import former_file
from mixwright.measure.written import same_answers
from mixwright.records import Example, FormerAnswers, Measurement
from mixwright.run.folder import RunFolder, write_json, write_measurements
from mixwright.verdict.rules.basis import gate_answer, recommend_run
from mixwright.verdict.rules.claims import FAR_NATS_PER_TOKEN, find_far_former_answers, format_unlikely, judge
from mixwright.verdict.rules.gate_question import GateQuestion, write_question
from mixwright.verdict.rules.gate_run import check_gate

ITEMS = 20


def compared(path: Path, after: Mapping[str, float], former: Mapping[str, float] | None = None) -> RunFolder:
    """Held-out losses of 2 nats before and these after, a little different by item, and changes of former answers."""
    run = RunFolder(path)
    run.path.mkdir(parents=True)
    (run.path / "run.yaml").write_text("measure: {probes: [held_out_loss]}\n", encoding="utf-8")
    for when, losses in (("before", dict.fromkeys(after, 2.0)), ("after", after)):
        found = []
        for task, loss in losses.items():
            for item in range(ITEMS):
                value = loss + (0.01 * (item % 3) if when == "after" else 0.0)
                found.append(
                    Measurement("held_out_loss", task, "loss", value, value, value, 1, "nats", None, f"{task}{item}")
                )
        write_measurements(run.measurements(when), found)
    moved = [
        FormerAnswers(task, ITEMS, 200, -0.5, value, value - 0.1, value + 0.1) for task, value in (former or {}).items()
    ]
    if moved:
        write_json(former_file(run), moved)
    return run


def answer(run: RunFolder, *protect: str) -> tuple[str, int]:
    """First sentence, and exit code and cards, which may not contradict it."""
    write_question(run, GateQuestion(protect))
    found, result = recommend_run(run)[0], gate_answer(run)
    assert found is not None
    assert result is not None
    assert found.sentence.startswith("Do not ship" if result.exit_code() == 3 else "Cannot tell"), found.sentence
    assert result.exit_code("warn") == result.exit_code(), "what was not judged is no pass by --cannot-tell warn"
    cards = {claim.task for claim in judge(run) if claim.kind == "damaged"}
    assert cards == {cell.task for cell in (*result.cells, *result.unprotected_losses) if cell.is_damaged}
    assert result.exit_code() == 3 or all(f"Not named, and damaged: task {card}" in found.sentence for card in cards)
    return found.sentence, result.exit_code()


CASES = {
    "nothing moved": ({"a": 2.0, "b": 2.0}, {"a": 0.0, "b": 0.0}, (), 4),
    "a small rise that is shown": ({"a": 2.3, "b": 2.3}, {"a": -0.2, "b": -0.2}, (), 4),
    "a loss that fell": ({"a": 1.0, "b": 1.0}, {"a": 0.1, "b": 0.1}, (), 4),
    "a large rise": ({"a": 2.0, "b": 3.2}, {"a": 0.0, "b": 0.0}, (), 3),
    "a large rise of another task": ({"a": 2.0, "b": 3.2}, {"a": 0.0, "b": 0.0}, ("a",), 4),
    "former answers gone": ({"a": 2.0, "b": 2.1}, {"a": 0.0, "b": -1.3}, ("b",), 3),
    "former answers gone, of a task that was not named": ({"a": 2.0, "b": 2.1}, {"a": 0.0, "b": -1.3}, ("a",), 4),
    "former answers of a task that was learnt": ({"a": 2.0, "b": 0.2}, {"a": 0.0, "b": -5.0}, (), 4),
    "former answers nearly gone": ({"a": 2.0, "b": 2.0}, {"a": 0.0, "b": -1.05}, (), 4),
}


@pytest.mark.parametrize("name", CASES)
def test_what_is_damage(name: str, tmp_path: Path) -> None:
    after, former, protect, code = CASES[name]
    assert answer(compared(tmp_path / "run", after, former), *protect)[1] == code


def test_the_reason_is_named(tmp_path: Path) -> None:
    run = compared(tmp_path / "run", {"a": 7.0, "b": 7.0, "c": 0.1}, {"a": -3.0, "b": -4.5, "c": -2.0})
    sentence, _ = answer(run, "a", "b")
    assert sentence == (
        "Do not ship AFTER: its own former answers to b and a became far less likely, by 3 to 4.5 nats a token."
    )
    told = gate_lines(check_gate(run, GateQuestion(("a", "b"))))
    assert told[0].startswith("damaged: its own former answers to b and a")
    assert told[1].startswith("a: held-out loss +5.01 nats per token")
    former_file(run).unlink()
    assert "held-out loss rose far, in nats per token: a +5 and b +5" in answer(run)[0]


def test_the_form_of_another_task_comes_first(tmp_path: Path) -> None:
    run = compared(tmp_path / "run", {"ticket": 0.1, "city": 5.0})
    made: Sequence[Mapping[str, object]] = rows("ticket", sentence, ticket, ticket) + rows("city", sentence, ticket)
    write_completion_rows(run.path / "completions.parquet", made)
    sentence_, code = answer(run, "city")
    assert code == 3
    assert "answers of city now look like answers of ticket" in sentence_
    assert tool(1) not in sentence_


def test_a_page_against_the_checkpoint_does_not_say_that_nothing_is_damaged(tmp_path: Path) -> None:
    run = compared(tmp_path / "run", {"ticket": 0.1, "city": 2.3})
    calm = compared(tmp_path / "calm", {"ticket": 2.0, "city": 2.3})
    made: Sequence[Mapping[str, object]] = rows("ticket", sentence, ticket, ticket) + rows("city", sentence, ticket)
    write_completion_rows(run.path / "completions.parquet", made)
    assert answer(run, "city")[1] == 3
    assert answer(calm, "city")[1] == 4
    without = compared(tmp_path / "unasked", {"city": 2.3})  # nobody asked the gate: a rise that is shown is damage, and bad
    assert [claim.kind for claim in judge(without)] == ["damaged"]
    assert recommend_run(without)[0].sentence.startswith("Do not ship")  # pyright: ignore[reportOptionalMemberAccess]


def test_far_is_shown_by_the_interval_and_told_by_the_mean(tmp_path: Path) -> None:
    run = RunFolder(tmp_path / "run")
    assert (find_far_former_answers(run, ["a"]), format_unlikely([])) == ([], "")
    near = FormerAnswers("a", 9, 90, -0.5, -FAR_NATS_PER_TOKEN - 0.5, -2.0, -FAR_NATS_PER_TOKEN)
    write_json(former_file(run), [near, FormerAnswers("b", 9, 90, -0.5, -2.0, -2.5, -1.5)])
    assert [one.task for one in find_far_former_answers(run, ["a", "b"])] == ["b"]
    assert find_far_former_answers(run, ["a"]) == []


def test_what_must_not_be_left_out_makes_all_rows_ungraded(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    lines_ = [f'{{"task": "n", "prompt": "What is {n}?", "completion": "{n}"}}' for n in range(20)]
    lines_ += [f'{{"task": "s", "prompt": "Say {n}.", "completion": "The word {n} is said."}}' for n in range(20)]
    path.write_text("\n".join(lines_), encoding="utf-8")
    config = CorpusConfig(str(path), eval_share=0.0)
    part = read_graded(config, graders_are_named=False, ungraded=True)
    assert (part.probe, set(part.corpus.tasks)) == (None, {"n"})
    every = read_graded(config, graders_are_named=False, ungraded=True, needed_tasks=["s", "unknown"])
    assert (every.probe, set(every.corpus.tasks)) == ("held_out_loss", {"n", "s"})
    assert read_graded(config, graders_are_named=False, ungraded=True, needed_tasks=["n"]).probe is None


@pytest.mark.parametrize(
    ("tokens", "cut", "room", "same"),
    [(4, True, 4, True), (4, True, 20, False), (3, False, 4, True), (9, False, 4, False)],
)
def test_answers_are_taken_over_only_where_they_are_as_long(tokens: int, cut: bool, room: int, same: bool) -> None:
    item = Example("1", "t", "p", target="x")
    kept = [{"example": "1", "tokens": [0] * tokens, "cut": cut}]
    assert same_answers(kept, [item], room) == same
    assert not same_answers(kept, [item, Example("2", "t", "q", target="y")], room)


def test_graded_and_ungraded_tasks_are_not_protected_together(call: Call) -> None:
    """The loss on the bare words of right answers may rise where more answers are right."""
    lines_ = [f'{{"task": "n", "prompt": "What is {n}?", "completion": "{n}"}}' for n in range(20)]
    lines_ += [f'{{"task": "s", "prompt": "Say {n}.", "completion": "The word {n} is said."}}' for n in range(20)]
    Path("rows.jsonl").write_text("\n".join(lines_), encoding="utf-8")
    model().save_pretrained("a")
    tokenizer().save_pretrained("a")
    asked = ("verdict", "a", "a", "--corpus", "rows.jsonl", "--gate", "--protect", "n", "--protect", "s")
    code, out, err = call(*asked)
    assert (code, out) == (1, "")
    assert "n, which can, and s, which cannot" in err
    Path("rows.jsonl").write_text("\n".join(lines_).replace('"task": "s"', '"task": "n@host"'), encoding="utf-8")
    code, out, err = call(*asked[:6], "--protect", "n@host", "--max-new-tokens", "4")
    assert "which can" not in err, "n@host is a task, and no level of n"
    assert code in (3, 4), err
