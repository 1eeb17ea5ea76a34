"""Lost answers asked again with their first word: who is asked, what is never given, the null, and what is said of it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from mixwright.config import MeasureConfig
from mixwright.corpus import Corpus
from mixwright.learner.learner import Completion
from mixwright.measure.passes import Passes
from mixwright.measure.returned import MOST_ASKED, Returned, first_word, lost_answers, returned, returned_file
from mixwright.records import Example
from mixwright.run.folder import RunFolder, write_json
from mixwright.verdict.page.blocks import Paragraph
from mixwright.verdict.sections.returned import ReturnedSection, format_returned


class Speller:
    """Stands for a learner: a token per letter; begun with `The-` and its prompt it is right, but for n4 and n5."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, str]] = []

    def tokenizer(self, text: str, **_: Any) -> Any:
        return {"input_ids": [ord(letter) for letter in text]}

    def sample(self, prompts, *, count, temperature, max_new_tokens, seed, prefixes):
        made = []
        for prompt, tokens in zip(prompts, prefixes, strict=True):
            start = "".join(map(chr, tokens))
            self.asked.append((prompt, start))
            knows = start == f"The-{prompt}" and prompt not in ("n4", "n5")
            text = f"{start} answer is 7{prompt[1:]}." if knows or prompt == "n3" else f"{start} answer is 0."
            made.append([Completion(text, tuple(tokens), (), True)])
        return made


def passes(answers: dict[str, str], items: int = 300) -> tuple[Passes, Speller]:
    rows = [Example(name, "t", name, answer=answer) for name, answer in answers.items()]
    corpus = Corpus.from_examples(rows, {"t": "final_answer"})
    speller = Speller()
    return Passes(speller, None, MeasureConfig(items=items, samples=0, max_new_tokens=40), corpus), speller  # pyright: ignore


def rows(texts: dict[str, str], score: float) -> list[dict[str, Any]]:
    return [{"example": name, "task": "t", "completion": text, "score": score} for name, text in texts.items()]


NAMES = [f"n{place}" for place in range(9)]
GOLD = {name: f"7{name[1:]}" for name in NAMES}
BEFORE = {name: f"The-{name} answer is {GOLD[name]}." for name in NAMES} | {"n6": "76", "n7": f"{'x' * 50} is 77"}


def test_lost_answers_are_asked_with_their_first_word_and_with_anothers() -> None:
    made, speller = passes(GOLD)
    after = rows(dict.fromkeys(NAMES[:8], "0"), 0.0) + rows({"n8": "78"}, 1.0)
    found = returned(made, rows(BEFORE, 1.0), after)
    # by hand: n8 is not lost, n6 would be told its answer, n7 has no room; n0 to n3 return, and n3 whatever it is told
    assert found == Returned(lost=8, asked=6, returned=4, not_askable=2, other_asked=6, other_returned=1)
    own, other = dict(speller.asked[:6]), dict(speller.asked[6:])
    assert own == {name: f"The-{name}" for name in NAMES[:6]}
    assert set(other) == set(own)
    assert all(word in {first_word(text) for text in BEFORE.values()} and word != own[name] for name, word in other.items())
    assert other["n5"] == "76", "the next answer of the task, which is not this item's"


def test_few_lost_answers_are_not_asked_and_many_only_in_part() -> None:
    made, speller = passes(GOLD)
    assert returned(made, rows(BEFORE, 1.0), rows(dict.fromkeys(NAMES[:4], "0"), 0.0)) is None
    assert speller.asked == []
    many = {f"n{place}": f"7{place}" for place in range(MOST_ASKED + 40)}
    made, speller = passes(many)
    before = rows({name: f"The-{name} answer is {gold}." for name, gold in many.items()}, 1.0)
    found = returned(made, before, rows(dict.fromkeys(many, "0"), 0.0))
    assert found is not None
    assert found.lost == MOST_ASKED + 40
    assert found.asked + found.not_askable == MOST_ASKED


def test_what_was_wrong_before_or_is_right_after_is_not_lost() -> None:
    before = rows({"a": "1", "b": "2", "c": "3"}, 1.0) + rows({"d": "4"}, 0.0)
    after = rows({"a": "1"}, 1.0) + rows({"b": "0", "c": "0", "d": "0"}, 0.0)
    assert sorted(lost_answers(before, after)) == ["b", "c"]


def test_the_first_word_keeps_its_spaces() -> None:
    assert [first_word(text) for text in (" Paris is", "The\ncapital", "", "  \n", "x" * 500)] == [
        " Paris",
        "The",
        "",
        "",
        "x" * 200,
    ]


def test_the_page_says_what_was_lost_and_what_is_not_shown(tmp_path: Path) -> None:
    run = RunFolder(tmp_path / "run")
    assert ReturnedSection().blocks(run) == []
    found = Returned(96, 92, 71, 4, 91, 60)
    write_json(returned_file(run), found)
    (block,) = ReturnedSection().blocks(run)
    assert isinstance(block, Paragraph)
    assert block.lead == "Answers lost"
    assert block.text == format_returned(found)
    for part in ("96 answers were lost; of 92 asked again, 71 return", "60 of 91 return", "4 answers were not asked again"):
        assert part in block.text
    assert "of 0" not in format_returned(Returned(9, 0, 0, 9, 0, 0))
    assert "knows nothing" not in format_returned(Returned(9, 9, 2, 0, 0, 0)), "no null, where no other word fits"
