"""Thoughts before an answer are no part of it; templates are told about them; what is mixed or dropped is named."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from cli_call import Call, sums, write
from datasets import Dataset
from hypothesis import given
from hypothesis import strategies as st
from trainers_tiny import model as make_model
from trainers_tiny import sft_config
from trainers_tiny import tokenizer as make_tokenizer
from transformers import AutoTokenizer, PreTrainedTokenizerBase
from trl.trainer.sft_trainer import SFTTrainer

from mixwright.answers.table import Answers
from mixwright.audit.checks.formats import Formats
from mixwright.behaviours import BEHAVIOURS, read_behaviours
from mixwright.corpus import Corpus
from mixwright.errors import InputError
from mixwright.learner.load import load_learner
from mixwright.learner.prompt_form import PromptForm, parse_arguments
from mixwright.records import Example
from mixwright.run.folder import RunFolder
from mixwright.thoughts import drop_thoughts, find_open_tag, split_thoughts
from mixwright.trainers.gate_callback import GateCallback


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("<think>\n2 and 2\n</think>\n\n4", ("closed", "2 and 2", "\n\n4")),
        ("2 and 2\n</think>4", ("closed", "2 and 2", "4")),  # the template wrote the opening tag
        ("<think>\n\n</think>\n\n4", ("empty", "", "\n\n4")),
        ("<think>2 and", ("open", "2 and", "")),
        ("<reasoning>a</reasoning>b", ("closed", "a", "b")),
        ("4", ("none", "", "4")),
        ("I write <think> in HTML", ("none", "", "I write <think> in HTML")),
    ],
)
def test_thoughts_are_split_from_the_answer(text: str, found: tuple[str, str, str]) -> None:
    assert split_thoughts(text) == found


@given(st.text())
def test_an_answer_behind_thoughts_is_the_answer(answer: str) -> None:
    if split_thoughts(answer)[0] == "none":
        assert drop_thoughts(f"<think>so</think>{answer}") == answer


@pytest.mark.parametrize("grader", ["exact", "numeric", "includes", "final_answer", "choice"])
def test_graders_read_what_follows_the_thoughts(grader: str) -> None:
    gold = "B" if grader == "choice" else "7"
    example = Example("1", "t", "Which? A) 6 B) 7", answer=gold)
    corpus = Corpus.from_examples([example], {"t": grader})
    wrong = "A" if grader == "choice" else "6"
    assert corpus.grade(example, f"<think>It could be {wrong}.</think>\n\n{gold}") == 1.0
    assert corpus.grade(example, f"<think>It is {gold}.</think>\n\n{wrong}") == 0.0
    assert corpus.grade(example, f"<think>It is {gold}, so", cut=True) == 0.0


def test_functions_of_the_user_see_the_thoughts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "own_thoughts.py").write_text("def reward(completion, answer, **row):\n    return '<think>' in completion\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    example = Example("1", "t", "Which?", answer="7")
    corpus = Corpus.from_examples([example], {"t": "own_thoughts:reward"})
    assert corpus.grade(example, "<think>a</think>7") == 1.0


def test_behaviours_of_thoughts() -> None:
    def shown(text: str) -> set[str]:
        return {name for name, is_shown in zip(BEHAVIOURS, read_behaviours(text), strict=True) if is_shown}

    assert shown("<think>Is it 4?</think>It is 4.") == {"thinks"}  # the question is asked of itself
    assert shown("<think></think>Which one?") == {"asks"}
    assert shown(f"<think>{'so ' * 201}") == {"thinks", "thinks at length", "stops in a thought"}


def test_an_open_tag_at_the_end_of_a_prompt() -> None:
    assert find_open_tag("<|assistant|>\n<think>\n") == "<think>\n"
    assert find_open_tag("<think>\n\n</think>\n\n") == find_open_tag("what is <think>?") == ""


def test_arguments_of_the_template_are_typed_as_they_are_read() -> None:
    arguments = parse_arguments(["enable_thinking=false", "effort=low", "budget=3"])
    assert arguments == {"enable_thinking": False, "effort": "low", "budget": 3}
    assert PromptForm(arguments=arguments).list_arguments() == ["budget=3", 'effort="low"', "enable_thinking=false"]
    row = PromptForm(True, arguments={"enable_thinking": False}).row({"prompt": "a", "completion": "b"})
    assert row["chat_template_kwargs"] == {"enable_thinking": False}
    assert "chat_template_kwargs" not in PromptForm(arguments={"x": 1}).row({"prompt": "a", "completion": "b"})
    for typed in (["thinking"], ["a=1", "a=2"], ["a b=1"]):
        with pytest.raises(InputError, match="NAME=VALUE"):
            parse_arguments(typed)
    with pytest.raises(InputError, match="messages"):
        parse_arguments(["messages=1"])


THINKING = (
    "{% for m in messages %}{{ m.role[0] }} {{ m.content }} {% endfor %}{% if add_generation_prompt %}a "
    "{% if enable_thinking is defined and not enable_thinking %}<think></think>{% else %}<think>{% endif %}{% endif %}"
)
"""A template of a model that thinks, unless it is told not to."""


@pytest.fixture
def checkpoint(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A tiny model whose tokenizer knows the tags."""
    tokenizer, found = make_tokenizer(), tmp_path / "model"
    tokenizer.add_tokens(["<think>", "</think>"])
    tokenizer.chat_template = THINKING
    built = make_model()
    built.resize_token_embeddings(len(tokenizer))
    built.save_pretrained(found)
    tokenizer.save_pretrained(found)
    monkeypatch.chdir(tmp_path)
    return found


def test_what_a_model_writes_begins_with_the_tag_of_its_prompt(checkpoint: Path) -> None:
    thinking = load_learner(str(checkpoint))
    silent = load_learner(str(checkpoint), form=PromptForm(arguments={"enable_thinking": False}))
    texts = [
        learner.sample(["1+1="], count=1, temperature=0, max_new_tokens=3, seed=0)[0][0].text
        for learner in (thinking, silent)
    ]
    assert split_thoughts(texts[0])[0] == "open"
    assert split_thoughts(texts[1])[0] == "none"


def test_verbs_take_the_arguments_of_the_template(checkpoint: Path, call: Call) -> None:
    """Both settings; both are kept with the answers."""
    write("eval.jsonl", sums(30))
    model, few = str(checkpoint), ("--samples", "0", "--max-new-tokens", "4")
    for value in ("true", "false"):
        how = ("--template", f"enable_thinking={value}")
        code, _, told = call(
            "verdict", model, model, "--eval", "eval.jsonl", *few, *how, "--no-suite", "--folder", f"v-{value}"
        )
        assert code in (0, 4), told
        for side in ("before", "after"):
            answers = Answers.read(RunFolder(Path(f"v-{value}")).answers(side))
            assert answers.header.template == (f"enable_thinking={value}",)
            assert {split_thoughts(text)[0] for text in answers.table["text"].to_pylist() if text is not None} == {
                "open" if value == "true" else "none"
            }
        assert call("measure", model, "--eval", "eval.jsonl", *few, *how, "--folder", f"m-{value}")[0] == 0
    assert call("measure", model, "--eval", "eval.jsonl", *few, "--no-chat-template", "--template", "a=1")[0] == 1


@pytest.mark.filterwarnings("ignore:.*gradient_checkpointing.*:FutureWarning")  # TRL sets the older name
@pytest.mark.parametrize("value", ["true", "false"])
@pytest.mark.parametrize("verb", ["preview", "measure", "verdict", "plan", "gate callback"])
def test_whatever_renders_hands_the_arguments_to_the_template(
    verb: str, value: str, checkpoint: Path, call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each way in which rows reach the chat template, under both settings, on a model that thinks."""
    seen, render = set[str](), PreTrainedTokenizerBase.apply_chat_template

    def spy(self: PreTrainedTokenizerBase, conversation: Any, *args: Any, **given: Any) -> Any:
        seen.add(str(given.get("enable_thinking")).lower())
        return render(self, conversation, *args, **given)

    monkeypatch.setattr(PreTrainedTokenizerBase, "apply_chat_template", spy)
    user, model = {"role": "user", "content": "1+1="}, str(checkpoint)
    answers = [{"role": "assistant", "content": str(number)} for number in range(70)]
    train = write("train.jsonl", [{"prompt": [user], "completion": [answer]} for answer in answers])
    held_out, how = write("eval.jsonl", sums(8)), ("--template", f"enable_thinking={value}")
    few = ("--eval", held_out, "--samples", "0", "--max-new-tokens", "3", *how)
    commands = {
        "preview": ("preview", train, "--model", model, *how),
        "measure": ("measure", model, *few),
        "verdict": ("verdict", model, model, *few, "--no-suite"),
        "plan": ("plan", model, train, "--max-new-tokens", "3", *how),
    }
    if verb in commands:
        call(*commands[verb])
    else:
        callback = GateCallback(held_out, every=1, max_new_tokens=3, template={"enable_thinking": value == "true"})
        rows = Dataset.from_list([{"prompt": f"{n}+1=", "completion": str(n)} for n in range(16)])
        tokenizer = AutoTokenizer.from_pretrained(model)
        args = sft_config(Path("out"), max_steps=1)
        SFTTrainer(model=model, args=args, train_dataset=rows, processing_class=tokenizer, callbacks=[callback]).train()
    assert seen == {value}


def test_the_audit_names_a_task_that_mixes_thoughts() -> None:
    answers = ["<think>I add.</think>4"] * 30 + ["<think></think>4"] * 10 + ["4"] * 20 + ["<think>I add"] * 2
    rows = [Example(str(n), "sums", f"{n}+1", target=answer) for n, answer in enumerate(answers)]
    found = [seen for seen in Formats().check(Corpus.from_examples(rows)) if "thoughts" in seen.message]
    assert [(seen.severity, seen.message) for seen in found] == [
        ("warning", "32 of 62 answers begin with thoughts, 10 with empty ones, 20 without."),
    ]
    assert not [seen for seen in Formats().check(Corpus.from_examples(rows[:30])) if "thoughts" in seen.message]
