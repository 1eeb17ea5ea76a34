"""Room for completions, the form of prompts, and batches of sampling: by hand on a tokenizer of characters."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from answer_rows import to_answers
from tokenizers.processors import TemplateProcessing
from trainers_tiny import model, tokenizer

from mixwright.answers.nulls import grade_swapped, texts_of
from mixwright.config import MeasureConfig
from mixwright.corpus import Corpus
from mixwright.errors import InputError
from mixwright.learner.learner import Completion, Learner
from mixwright.learner.prompt_form import PromptForm, plain_marks
from mixwright.measure.notes import list_notes
from mixwright.measure.passes import Passes
from mixwright.measure.room import count_left_tokens, keep_fitting_corpus, longest_answer, room_of_data
from mixwright.measure.stage import MeasureResult, measure_learner
from mixwright.records import Example, Measurement

USER, SYSTEM = ({"role": "user", "content": "1+1="},), {"role": "system", "content": "add"}


def learner(context: int = 4096, **settings: Any) -> Learner:
    """One token per character."""
    made = model()
    made.config.max_position_embeddings = context
    return Learner(made.eval(), tokenizer(), "chars", **settings)


def rows(*answers: str, prompt: str = "12345", target: str | None = None) -> list[Example]:
    return [Example(f"{n}", "t", f"{prompt}{n}", answer=answer, target=target) for n, answer in enumerate(answers)]


def room(examples: Sequence[Example] | Corpus, context: int = 4096, grader: str = "exact") -> tuple[int, str]:
    corpus = examples if isinstance(examples, Corpus) else Corpus.from_examples(examples, {"t": grader})
    longest, items = longest_answer([learner(context)], corpus, MeasureConfig(items=99))
    found = room_of_data(corpus, items, longest, count_left_tokens([learner(context)], items))
    return found.tokens, found.why


def test_room_is_the_longest_answer_a_quarter_more_and_an_end() -> None:
    assert room(rows("7", "77"))[0] == 16, "never less than that"
    assert room(rows("7", "7" * 40))[0] == 56, "40 * 1.25 + 1 = 51, in steps of 8"
    assert room(rows("7", target="so " * 20 + "7"))[0] == 80, "61 * 1.25 + 1 = 77.25: the target is what is written"
    assert room(rows("7" * 3000))[0] == 2048
    assert "the longest answer to 2 items has 40 tokens" in room(rows("7", "7" * 40))[1]


def test_a_reader_of_final_answers_gets_room_for_a_worked_solution() -> None:
    function = "mixwright.graders.exact:Exact"
    tokens, why = room(rows("7"), grader=function)
    assert tokens == 512
    assert function in why
    assert room(rows("7" * 600), grader=function)[0] == 752, "600 * 1.25 + 1 = 751: the data says more"


def test_room_ends_with_the_context_of_the_model() -> None:
    tokens, why = room(rows("7" * 40), context=50)
    assert tokens == 50 - 6, "prompts of 6 characters"
    assert "the context leaves 44 tokens behind the longest prompt; " in why
    tokens, why = room(rows("7" * 40), context=40)
    assert tokens == 34
    assert "less than the longest answer and its end" in why
    assert room(rows("7" * 40), context=5)[0] == 1, "sampling says that the prompt is too long"


def long_prompts(*lengths: int, split: str = "train", task: str = "t") -> list[Example]:
    return [Example(f"{task}{n}", task, "p" * n, answer="7", split=split) for n in lengths]  # pyright: ignore


def test_rows_whose_prompts_leave_no_room_are_left_out_and_counted() -> None:
    config = MeasureConfig(items=99)
    corpus = Corpus.from_examples([*long_prompts(10, 47, 48), *long_prompts(49, 60, 80, task="u"), *long_prompts(5, 6, 7)])
    kept, (note,) = keep_fitting_corpus([learner(64)], corpus, config)
    assert [len(str(row.prompt)) for row in kept] == [10, 47, 48, 5, 6, 7], "64 less a quarter of it, 16"
    assert note.startswith(
        "3 of 9 rows are left out, because their prompts leave no room for an answer of 16 tokens in a context of 64"
    )
    assert "u (3); the first: u49 of task 'u' with 49 tokens" in note
    assert note.endswith("left of u")
    assert room(kept, 64)[0] == 16
    kept, (note,) = keep_fitting_corpus([learner(4096), learner(64)], corpus, config, asked_tokens=4)
    assert [len(str(row.prompt)) for row in kept] == [10, 47, 48, 49, 60, 5, 6, 7], "as asked; the tightest model counts"
    assert "left of" not in note
    assert keep_fitting_corpus([learner(4096)], corpus, config) == (corpus, [])


def test_only_rows_that_are_measured_must_leave_room_and_most_of_them_must() -> None:
    held = [*long_prompts(10, 11, split="eval"), *long_prompts(90, 91, 92, 93)]
    corpus = Corpus.from_examples(held)
    assert keep_fitting_corpus([learner(64)], corpus, MeasureConfig(items=9))[1] == []
    with pytest.raises(InputError, match=r"got 4 of 6 .*; the first: t90 of task 't' with 90 tokens"):
        keep_fitting_corpus(
            [learner(64)], Corpus.from_examples([dataclasses.replace(row, split="train") for row in held]), MeasureConfig()
        )
    assert count_left_tokens([learner(100)], corpus) == 7, "training writes to all prompts: 93 of 100"


FORMS = {
    PromptForm(): ("1+1=", USER),
    PromptForm(template=True): (USER, USER),
    PromptForm(template=False): ("1+1=", "1+1="),
    PromptForm(system="add"): ((SYSTEM, *USER), (SYSTEM, *USER)),
}


@pytest.mark.parametrize("form", FORMS)
def test_plain_strings_and_messages_take_the_asked_form(form: PromptForm) -> None:
    assert (form.format_prompt("1+1="), form.format_prompt(USER)) == FORMS[form]


def test_a_system_message_replaces_the_one_of_the_data_and_what_is_done_is_told() -> None:
    assert PromptForm(system="add").format_prompt(({"role": "system", "content": "old"}, *USER)) == (SYSTEM, *USER)
    assert PromptForm().describe(["a"]) == "plain text"
    assert PromptForm().describe([USER]) == "chat template of the tokenizer"
    assert "others as plain text" in PromptForm().describe(["a", USER])
    assert PromptForm(template=True).describe(["a", USER]) == "chat template of the tokenizer"


def test_the_form_reaches_the_tokenizer() -> None:
    plain, chat = learner(), learner(form=PromptForm(system="add"))
    with pytest.raises(InputError, match="chat template"):
        chat.encode("1+1=")
    chat.tokenizer.chat_template = "{% for m in messages %}{{ m['role'][0] + '=' + m['content'] }}{% endfor %}"
    assert chat.encode("1+1=") == plain.encode("s=addu=1+1=")


def test_the_marks_of_plain_text_are_what_the_tokenizer_puts_before_it_and_its_end_token() -> None:
    made = tokenizer()
    assert plain_marks(made) == ("", "<eos>")
    made.backend_tokenizer.post_processor = TemplateProcessing("<unk> $A", special_tokens=[("<unk>", 2)])
    assert plain_marks(made) == ("<unk>", "<eos>")


def in_order(shares: Sequence[float]) -> bool:
    return all(one <= other + 1e-9 for one, other in itertools.pairwise(shares))


def test_the_batch_size_changes_no_completion_and_progress_ends_at_all() -> None:
    prompts, seen = [f"{n}+1=" + "1" * n for n in range(5)], []

    def drawn(size: int | None) -> list[list[tuple[int, ...]]]:
        seen.clear()
        one = learner(batch_size=size)
        found = one.sample(prompts, count=3, temperature=1.0, max_new_tokens=6, seed=3, progress=seen.append)
        return [[sample.token_ids for sample in row] for row in found]

    whole = drawn(None)
    assert in_order(seen)
    assert len(seen) > 2, "told while the one batch is written"
    assert seen[-1] == 1.0
    assert drawn(6) == whole
    assert {0.4, 0.8, 1.0} <= set(seen), "two prompts of three samples at a time"
    assert in_order(seen)
    assert drawn(2) == whole, "fewer than the samples of one prompt"
    assert {0.2, 0.4, 0.6, 0.8, 1.0} <= {round(share, 9) for share in seen}
    assert in_order(seen)


def test_measuring_tells_how_far_it_is_and_how_much_was_cut() -> None:
    corpus, seen = Corpus.from_examples(rows("7", "8", "9")), []
    config = MeasureConfig(items=9, samples=2, max_new_tokens=1)
    found = measure_learner(learner(), corpus, config, seed=0, report_done=seen.append)
    assert in_order(seen)
    assert seen[-1] == pytest.approx(1.0)
    assert len(found.answers) == 9
    passes = Passes(learner(), config, corpus, 0)
    ended = [c.finished for item in passes.rollouts.values() for c in (item.greedy, *item.samples)]
    assert found.cut == 1 - sum(ended) / 9


def test_a_completion_that_was_cut_earns_nothing_by_its_last_number() -> None:
    """The same text after every prompt: the greedy one was ended and earns, samples were cut and do not, nor in swaps."""

    class Writes:
        form = PromptForm()

        def sample(self, prompts: Sequence[Any], *, count: int, **_: Any) -> list[list[Completion]]:
            made = Completion("She counts them. " * 9 + "So it is 7", (1, 2), (0.0, 0.0), count == 1)
            return [[made] * count for _ in prompts]

    corpus = Corpus.from_examples(rows("7", "7", "7", "7"), {"t": "final_answer"})
    passes = Passes(Writes(), MeasureConfig(items=9, samples=2), corpus)  # pyright: ignore
    assert [item.greedy_score for item in passes.rollouts.values()] == [1.0] * 4
    assert [item.scores for item in passes.rollouts.values()] == [(0.0, 0.0)] * 4
    for decoding, score in (("greedy", 1.0), ("sampled", 0.0)):
        texts = texts_of(passes.answers, decoding)
        assert grade_swapped(passes.items, texts, passes.grades.grade, {}, np.arange(4)).tolist() == [[score] * 4] * 4


def result(cut: float, values: dict[str, float]) -> MeasureResult:
    """Greedy and sampled success of one item per task."""
    names = ("greedy", "pass@1")
    made = [
        Measurement("competence", task, name, value, 0, 1, 1, "share") for task, value in values.items() for name in names
    ]
    shown = [
        {"task": task, "example": f"{task}-1", "prompt": "3 + 4?", "answer": "7", "completion": "it is 8"} for task in values
    ]
    drawn = [shown[0] | {"decoding": "sampled", "cut": number < round(100 * cut)} for number in range(100 - len(shown))]
    return MeasureResult(tuple(made), to_answers([*shown, *drawn]))


def test_notes_tell_tasks_without_a_right_answer_and_completions_that_were_cut() -> None:
    corpus: Any = SimpleNamespace(tasks={name: SimpleNamespace(grader="exact") for name in ("a", "b")})
    sides = {"before": result(0.0, {"a": 0.0, "b": 0.0}), "after": result(0.06, {"a": 0.0, "b": 1.0})}
    first, second = list_notes(sides, corpus, 16)
    assert (first.check, first.task, first.count) == ("nothing right", "a", 1)
    assert "the answers look like '7', the completions look like 'it is 8'" in first.message
    assert (second.check, second.severity, second.count, second.total) == ("cut", "warning", 6, 100)
    assert second.message.startswith("6.0% of completions after were cut at 16 tokens")
    (little,) = list_notes({"before": result(0.05, {"b": 1.0})}, corpus, 16)
    assert (little.severity, little.remedy) == ("info", "")
