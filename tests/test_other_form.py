"""Chat template wherever there is one: said where plain text does better, refused where it shows nothing of the prompt."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from answer_rows import to_answers

from mixwright.config import ModelConfig
from mixwright.corpus import Corpus
from mixwright.learner.learner import Completion, Learner
from mixwright.learner.prompt_form import PromptForm
from mixwright.measure.other_form import other_form_notes
from mixwright.measure.stage import MeasureResult
from mixwright.records import Example
from mixwright_extras.tiny.model import build_tiny

TEMPLATE = (
    "{% for m in messages %}<{{ m['role'] }}>{{ m['content'] }}</>{% endfor %}{% if add_generation_prompt %}<a>{% endif %}"
)
ROWS = [Example(f"{n}", "ab"[n % 2], f"say {n}", answer=str(n), split="eval") for n in range(12)]


class TwoForms:
    """A model that knows the first `plain` items as plain text."""

    def __init__(self, plain: int, form: PromptForm) -> None:
        self.plain, self.form, self.asked = plain, form, 0

    def with_form(self, form: PromptForm) -> TwoForms:
        assert form.template is False
        return self

    def sample(self, prompts: Sequence[Any], **_: Any) -> list[list[Completion]]:
        self.asked += len(prompts)
        right = [str(prompt).removeprefix("say ") if n < self.plain else "no" for n, prompt in enumerate(prompts)]
        return [[Completion(text, (1,), (0.0,), True)] for text in right]


def found(right: int) -> MeasureResult:
    rows = [{"example": row.id, "task": row.task, "score": float(n < right)} for n, row in enumerate(ROWS)]
    return MeasureResult((), to_answers(rows))


@pytest.mark.parametrize(("plain", "told"), [(8, True), (4, True), (3, False), (0, False)])
def test_a_large_difference_is_a_warning_and_nothing_is_switched(plain: int, told: bool) -> None:
    model = TwoForms(plain, PromptForm(template=True))
    notes = other_form_notes(model, Corpus.from_examples(ROWS), found(0), 8, chosen=False)  # type: ignore[arg-type]
    assert model.asked == 8
    assert [note.severity for note in notes] == ["warning"] * told
    assert not told or f"of 8 items {plain} are right" in notes[0].message
    assert model.form == PromptForm(template=True)


def test_who_chose_a_form_is_not_asked() -> None:
    corpus = Corpus.from_examples(ROWS)
    for form, chosen in ((PromptForm(template=True), True), (PromptForm(template=False), False), (PromptForm(), False)):
        model = TwoForms(8, form)
        assert other_form_notes(model, corpus, found(0), 8, chosen=chosen) == []  # type: ignore[arg-type]
        assert model.asked == 0


def learner(template: str | None, form: PromptForm | None = None) -> Learner:
    tiny = build_tiny(["say 1", "user assistant <a> <user> </>"], ModelConfig(width=16, depth=1, heads=2), 0)
    tiny.tokenizer.chat_template = template
    return Learner(tiny.model, tiny.tokenizer, "tiny", form=form)


def test_plain_prompts_go_through_a_template_wherever_there_is_one() -> None:
    """As in training: the row that TRL gets has the tokens that are measured, and the answer is the assistant's."""
    with_template = learner(TEMPLATE)
    assert with_template.tokenizer.decode(with_template.encode("say 1")) == "<user>say 1</><a>"
    assert with_template.form.row({"task": "t", "prompt": "say 1", "completion": "1"}) == {
        "task": "t",
        "prompt": [{"role": "user", "content": "say 1"}],
        "completion": [{"role": "assistant", "content": "1"}],
    }
    empty = with_template.form.row({"prompt": "say 1", "completion": ""})["completion"]
    assert empty == [{"role": "assistant", "content": ""}]
    plain = learner(TEMPLATE, PromptForm(template=False))
    assert plain.tokenizer.decode(plain.encode("say 1")) == "say 1"
    chat = [{"role": "user", "content": "say 1"}]
    assert plain.form.row({"prompt": chat, "completion": [{"role": "assistant", "content": "1"}]}) == {
        "prompt": "say 1",
        "completion": "1",
    }
    bare = learner(None)
    assert bare.form.row({"prompt": "say 1", "completion": "1"}) == {"prompt": "say 1", "completion": "1"}
    with_system = learner(TEMPLATE, PromptForm(system="Be brief."))
    assert with_system.tokenizer.decode(with_system.encode("say 1")).startswith("<system>Be brief.</><user>say 1")


def test_the_template_of_tiny_models_is_taken_only_where_somebody_asks() -> None:
    tiny = build_tiny(["say 1"], ModelConfig(width=16, depth=1, heads=2), 0)
    assert tiny.tokenizer.decode(tiny.encode("say 1")) == "say 1"
    asked = tiny.with_form(PromptForm(template=True))
    assert asked.tokenizer.decode(asked.encode("say 1")) == "user: say 1\nassistant: "
