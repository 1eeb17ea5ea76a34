"""Rows to rehearse: own answers that ended, room that grows, and nothing that stands in the held-out rows."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from mixwright.config import CorpusConfig
from mixwright.corpus import Corpus, read_corpus
from mixwright.corpus.graded import read_graded
from mixwright.corpus.identity import build_table
from mixwright.errors import InputError
from mixwright.learner.learner import Completion
from mixwright.mine.own_answers import (
    answer_prompts,
    check_rehearsal,
    read_rows,
    rehearsal_rows,
    usable_prompts,
)
from mixwright.records import Example, plain
from mixwright.run.folder import write_table


class Answers:
    """A model whose answers are as long as the prompt says, in words: `12 x` is answered by twelve words.

    A prompt has a token for each of its characters.
    """

    name = "told"

    def __init__(self, context: int | None = None, before: str = "") -> None:
        self.rooms: list[tuple[int, int]] = []
        self.context, self.before = context, before

    def encode(self, prompt: Any) -> list[int]:
        return list(range(len(plain(prompt))))

    def sample(self, prompts: Sequence[Any], *, max_new_tokens: int, **_: Any) -> list[list[Completion]]:
        self.rooms.append((len(prompts), max_new_tokens))
        made = []
        for prompt in prompts:
            words = int(plain(prompt).split()[0])
            ended = words < max_new_tokens
            text = self.before + " ".join("so" + str(n) * (n > 2) for n in range(min(words, max_new_tokens)))
            made.append([Completion(text, (1,), (0.0,), ended)])
        return made


def rows(task: str, lengths: Sequence[int]) -> list[Example]:
    return [Example(f"{task}{n}", task, f"{words} {task} {n}", split="rehearse") for n, words in enumerate(lengths)]


def test_tasks_whose_answers_are_cut_get_twice_the_room_and_others_do_not() -> None:
    """short: 3 of 4 end within 32, so no more is tried; long: two end within 64, all four within 128."""
    model = Answers()
    found = answer_prompts(model, rows("short", (3, 5, 7, 90)) + rows("long", (40, 60, 100, 100)), max_new_tokens=256)  # type: ignore[arg-type]
    assert model.rooms == [(8, 32), (4, 64), (2, 128)]
    assert Counter(row.task for row in found.rows) == {"short": 3, "long": 4}
    assert found.notes == ("7 of 8 own answers ended within 128 tokens; the others are left out (short 3 of 4).",)
    assert [plain(row.target).count("so") for row in found.rows] == [3, 5, 7, 40, 60, 100, 100]
    assert {row.extra["parents"][0] for row in found.rows} == {row.id.removesuffix(":own") for row in found.rows}


def test_no_request_is_asked_for_which_no_time_is_left() -> None:
    """40 requests in three parts of 14, 13 and 13 take .1 s a token: 44.8 s, and 41.6 s of the 60 - 44.8 left are too many;
    with 100 s two parts are answered, and the third is not.
    """
    for seconds, sizes, unasked in ((60, [14], 26), (100, [14, 13], 13), (1000, [14, 13, 13], 0)):
        model = Answers()

        def left(model: Answers = model, seconds: int = seconds) -> float:
            return seconds - sum(0.1 * count * tokens for count, tokens in model.rooms)

        found = answer_prompts(model, rows("short", [3] * 40), max_new_tokens=256, seconds_left=left)  # type: ignore[arg-type]
        assert [count for count, _ in model.rooms] == sizes
        assert len(found.rows) == sum(sizes)
        assert any(f"{unasked} of 40 requests are not answered" in note for note in found.notes) == (unasked > 0)


def test_the_room_ends_at_the_limit_and_empty_answers_are_none() -> None:
    model = Answers()
    found = answer_prompts(model, rows("endless", (500, 500, 0)), max_new_tokens=100)  # type: ignore[arg-type]
    assert model.rooms == [(3, 32), (2, 64), (2, 100)]
    assert found.rows == ()
    assert "0 of 3 own answers ended within 100 tokens" in found.notes[0]


def test_an_answer_that_repeats_itself_is_none_and_gets_no_more_room() -> None:
    class Stuck(Answers):
        def sample(self, prompts: Sequence[Any], *, max_new_tokens: int, **_: Any) -> list[list[Completion]]:
            self.rooms.append((len(prompts), max_new_tokens))
            return [
                [
                    Completion(
                        "1. the end 1. the end 1. the end 1. the end 1. the end 1. the end", (1,), (0.0,), finished=True
                    )
                ]
                for _ in prompts
            ]

    model = Stuck()
    assert answer_prompts(model, rows("list", (9, 9)), max_new_tokens=256).rows == ()  # type: ignore[arg-type]
    assert model.rooms == [(2, 32)]


def test_an_answer_that_merely_copies_its_prompt_is_none_and_is_counted() -> None:
    request = "Name three things to pack for a rainy day in Oslo."

    class Echo(Answers):
        def sample(self, prompts: Sequence[Any], *, max_new_tokens: int, **_: Any) -> list[list[Completion]]:
            texts = [
                request,
                f"  {request.upper()}\n",
                f"{request} Take a raincoat, warm boots and an umbrella with you.",
                "Boots.",
            ]
            return [[Completion(text, (1,), (0.0,), finished=True)] for text in texts]

    chat = ({"role": "system", "content": "Be brief."}, {"role": "user", "content": request})
    asked = [
        Example(f"pack{n}", "pack", prompt, split="rehearse") for n, prompt in enumerate((request, chat, request, chat))
    ]
    found = answer_prompts(Echo(), asked, max_new_tokens=256)  # type: ignore[arg-type]
    assert [row.extra["parents"] for row in found.rows] == [["pack2"], ["pack3"]], (
        "a request that is repeated and answered is"
    )
    assert found.notes[0] == "2 of 4 own answers are left out because they copy their prompt."


def test_answers_stay_as_they_were_written_and_blank_ones_are_none() -> None:
    """After plain text a model answers ` Peru`; `Peru` would be another answer than its own."""
    found = answer_prompts(Answers(before=" "), rows("old", (2, 0)), max_new_tokens=32)  # type: ignore[arg-type]
    assert [row.target for row in found.rows] == [" so so"]


def test_prompts_without_room_are_left_out_and_no_answer_gets_more_than_there_is() -> None:
    """Prompts of 10, 12 and 66 tokens in a context of 80: the last has no room for 32, and none but the first for 70."""
    asked = [Example(f"p{n}", "old", text) for n, text in enumerate(("60 " + "x" * 7, "99 " + "x" * 9, "3 " + "x" * 64))]
    model = Answers(context=80)
    found = answer_prompts(model, asked, max_new_tokens=70)  # type: ignore[arg-type]
    assert model.rooms == [(2, 32), (2, 64), (1, 70)] or model.rooms == [(2, 32), (2, 64)]
    assert [row.id for row in found.rows] == ["p0:own"]
    assert "1 of 3 requests to replay are left out" in found.notes[0]
    assert "0 of 0" not in " ".join(answer_prompts(model, asked[2:]).notes)  # type: ignore[arg-type]


def test_a_task_to_rehearse_may_have_answers_in_some_rows(tmp_path: Path) -> None:
    asked = '{"task": "old", "prompt": "3 x", "completion": "x"}\n{"task": "old", "prompt": "4 x"}\n'
    made = rehearsal_rows(corpus(tmp_path, asked), Answers)  # type: ignore[arg-type]
    assert [(row.prompt, row.target) for row in made.rows] == [("3 x", "x"), ("4 x", "so so so so3")]


def test_pairs_to_rehearse_stay_pairs(tmp_path: Path) -> None:
    pair = '{{"task": "{}", "prompt": "{} x", "chosen": "yes", "rejected": "no"}}\n'
    asked = "".join(pair.format("new", n).replace("}", ', "answer": "yes"}') for n in range(4))
    (tmp_path / "train.jsonl").write_text(asked)  # graded answers are completions, too
    (tmp_path / "more.jsonl").write_text(pair.format("old", 9))
    read = read_corpus(CorpusConfig(str(tmp_path / "train.jsonl"), rehearse=str(tmp_path / "more.jsonl"), eval_share=0.0))
    check_rehearsal("dpo", read)
    with pytest.raises(InputError, match="1 of 1 that are pairs"):
        check_rehearsal("sft", read)
    model = Answers()
    (made,) = rehearsal_rows(read, lambda: model).rows  # type: ignore[arg-type,return-value]
    assert (made.chosen, made.rejected, made.target, model.rooms) == ("yes", "no", None, [])


@pytest.mark.parametrize("row", ['{"prompt": [{"role": "user", "content": "3 x"}]}', '{"text": "3 x and so on"}'])
def test_rows_to_rehearse_have_the_form_of_the_training_rows(tmp_path: Path, row: str) -> None:
    with pytest.raises(InputError, match=r"training rows, prompts as plain text, got (prompts as chat|text without)"):
        check_rehearsal("sft", corpus(tmp_path, row + "\n"))


def corpus(tmp_path: Path, prompts: str) -> Corpus:
    (tmp_path / "train.jsonl").write_text('{"task": "new", "prompt": "Call Anna now", "completion": "{call}"}\n' * 3)
    held = "".join(
        f'{{"task": "old", "prompt": "What is the capital city of the country {name}?", "answer": "x{name}"}}\n'
        for name in ("Peru", "Chile", "Ghana")
    )
    (tmp_path / "eval.jsonl").write_text(held)
    (tmp_path / "prompts.jsonl").write_text(prompts)
    places = [str(tmp_path / name) for name in ("train.jsonl", "eval.jsonl", "prompts.jsonl")]
    return read_corpus(CorpusConfig(*places))


def test_no_row_to_rehearse_stands_in_the_held_out_rows_or_twice(tmp_path: Path) -> None:
    asked = [
        '{"task": "old", "prompt": "what is the capital  city of the country PERU?"}',  # held out, in other letters
        '{"task": "old", "prompt": "Please tell me. What is the capital city of the country Chile? Thank you very much."}',
        '{"task": "old", "prompt": "What is the capital city of the country Italy?"}',
        '{"task": "old", "prompt": "What is the capital city of the country Italy?"}',
        '{"task": "new", "prompt": "Call Anna now"}',
        '{"task": "chat", "prompt": "Say hello to me", "completion": "Hello!"}',
    ]
    read = corpus(tmp_path, "\n".join(asked) + "\n")
    ready, prompts, notes = usable_prompts(read)
    assert [plain(row.prompt) for row in prompts] == ["What is the capital city of the country Italy?"]
    assert [plain(row.target) for row in ready] == ["Hello!"]
    assert [note.split(" rows")[0] for note in notes] == ["2 of 6", "2 of 6"]
    assert {cell.key: cell.count for cell in read.cells()} == {"new": 3}  # they are no training rows


def test_rows_to_rehearse_are_trained_on_where_a_plan_names_their_task(tmp_path: Path) -> None:
    read = corpus(
        tmp_path, '{"task": "chat", "prompt": "Say hello", "completion": "Hello!"}\n{"task": "old", "prompt": "3 x"}\n'
    )
    made = rehearsal_rows(read, Answers)  # type: ignore[arg-type]
    assert ([plain(row.target) for row in made.rows].count("Hello!"), len(made.rows)) == (1, 2)
    whole = read.with_rehearsal(made.rows)
    assert {cell.key: (cell.count, cell.rehearsal_rows) for cell in whole.cells_with_rehearsal()} == {
        "chat": (0, 1),
        "new": (3, 0),
        "old": (0, 1),
    }
    assert sorted(row.task for row in whole.training(["old"])) == ["new", "new", "new", "old"]
    assert [plain(row.target) for row in whole.training(["old"]) if row.task == "old"] == ["so so so"]
    assert len(whole.training()) == 3
    write_table(tmp_path / "rows.parquet", build_table(made.rows))
    assert [row.id for row in read_rows(tmp_path / "rows.parquet")] == [row.id for row in made.rows]
    assert whole.without_rehearsal().digest() == read.without_rehearsal().digest()


class Wheels(Answers):
    """A model that says `A bicycle has 2 wheels.`, and of everything else that it has 5."""

    def sample(self, prompts: Sequence[Any], *, max_new_tokens: int, **_: Any) -> list[list[Completion]]:
        self.rooms.append((len(prompts), max_new_tokens))
        things = [plain(prompt).removeprefix("How many wheels has a ").rstrip("?") for prompt in prompts]
        texts = [f"A {thing} has {2 if thing == 'bicycle' else 5} wheels." for thing in things]
        return [[Completion(text, (1,), (0.0,), True)] for text in texts]


@pytest.mark.parametrize("form", ["plain", "chat"])
def test_own_answers_that_are_graded_wrong_are_left_out_and_counted(tmp_path: Path, form: str) -> None:
    """Of four prompts three have gold answers, and the sentence for one of these is right; without one nothing is graded."""
    answers: dict[str, dict[str, Any]] = {
        "bicycle": {"answer": "2"},
        "car": {"answer": "4"},
        "cart": {"answer": "4"},
        "bus": {},
    }
    train: dict[str, Any] = {"task": "new", "prompt": "Call Anna now", "completion": "{call}"}
    if form == "chat":
        train = {"task": "new", "messages": [{"role": "user", "content": "Go"}, {"role": "assistant", "content": "Gone"}]}
    asked = [{"task": "wheels", "prompt": f"How many wheels has a {thing}?"} | gold for thing, gold in answers.items()]
    (tmp_path / "train.jsonl").write_text(f"{json.dumps(train)}\n")
    (tmp_path / "asked.jsonl").write_text("".join(json.dumps(row) + "\n" for row in asked))
    read = read_corpus(CorpusConfig(str(tmp_path / "train.jsonl"), rehearse=str(tmp_path / "asked.jsonl"), eval_share=0.0))
    model = Wheels()
    made = rehearsal_rows(read, lambda: model)  # type: ignore[arg-type,return-value]
    assert model.rooms == [(4, 32)]  # all of them are answered by the model, none by its gold answer
    assert [plain(row.target) for row in made.rows] == ["A bicycle has 2 wheels.", "A bus has 5 wheels."]
    assert made.notes[-1].startswith("2 of 4 ")
    assert "wheels 2" in made.notes[-1]
    assert "left out" not in made.notes[0]  # all four ended


def test_an_answer_that_cannot_be_graded_is_trained_on_as_it_is(tmp_path: Path) -> None:
    prose = "Because the air scatters blue light much more than red light."
    read = corpus(tmp_path, json.dumps({"task": "why", "prompt": "3 why is the sky blue", "answer": prose}) + "\n")
    model = Answers()
    (made,) = rehearsal_rows(read, lambda: model).rows  # type: ignore[arg-type,return-value]
    assert (made.target, model.rooms) == (prose, [])


def test_rewards_and_pairs_have_no_use_for_own_answers(tmp_path: Path) -> None:
    read = corpus(tmp_path, '{"task": "old", "prompt": "3 x"}\n')
    check_rehearsal("sft", read)
    with pytest.raises(InputError, match="for SFT"):
        check_rehearsal("grpo", read)
    with pytest.raises(InputError, match="1 of 1 rows to replay without a rejected answer"):
        check_rehearsal("dpo", read)


def test_rows_to_rehearse_that_name_no_task_are_one_of_their_own(tmp_path: Path) -> None:
    (tmp_path / "train.jsonl").write_text('{"instruction": "Sort 3 1 2", "output": "1 2 3"}\n')
    (tmp_path / "prompts.jsonl").write_text('{"instruction": "Say hello"}\n')
    read = read_corpus(CorpusConfig(str(tmp_path / "train.jsonl"), rehearse=str(tmp_path / "prompts.jsonl"), eval_share=0.0))
    assert {(row.task, row.split) for row in read} == {("all", "train"), ("rehearse", "rehearse")}


def test_requests_without_answers_leave_rows_that_nothing_can_grade_as_they_are(tmp_path: Path) -> None:
    """Prose cannot be graded and is compared by its loss; requests have no targets and are not measured."""
    prose = [f"This is the long story number {n}, and it has no answer at all in it, only words." for n in range(30)]
    train = [{"prompt": f"Tell me story {n} in your own words.", "completion": text} for n, text in enumerate(prose)]
    files = {"train": train, "asked": [{"prompt": f"Who made the painting {n} in this house?"} for n in range(5)]}
    for name, rows in files.items():
        (tmp_path / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    config = CorpusConfig(str(tmp_path / "train.jsonl"), None, str(tmp_path / "asked.jsonl"), eval_share=0.0)
    found = read_graded(config, graders_are_named=False, ungraded=True)
    assert found.probe == "held_out_loss"
    assert Counter(row.split for row in found.corpus) == {"train": 30, "rehearse": 5}


def test_prompts_with_tools_are_left_out_and_chats_of_several_turns_answered() -> None:
    """What the model would call is not shown to it here; the words of a chat's first turn say how long its answer is."""
    chat = [
        {"role": "user", "content": "3 of chats"},
        {"role": "assistant", "content": "yes"},
        {"role": "user", "content": "go on"},
    ]
    prompts = [
        Example("a", "calls", "2 words", split="rehearse", extra={"tools": [{"name": "add"}]}),
        Example("b", "calls", "2 words more", split="rehearse", extra={"tools": []}),
        Example("c", "chats", tuple(chat), split="rehearse"),
    ]
    found = answer_prompts(Answers(), prompts)  # pyright: ignore[reportArgumentType]
    assert [(row.id, row.target) for row in found.rows] == [("b:own", "so so"), ("c:own", "so so so")]
    assert found.notes[0].startswith("1 of 3 requests to replay are left out: they have tools")
