"""Proposal of a grader for each task, from the form of its answers alone."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mixwright.corpus.cells import rows_by
from mixwright.corpus.corpus import Corpus
from mixwright.corpus.rows import read_groups
from mixwright.final_answer import find_stated_answers
from mixwright.graders.final_answer import answer_kind, final_answer_of
from mixwright.graders.follows import are_rules
from mixwright.records import Example, plain
from mixwright.tool_calls import find_calls

MAX_ROWS_READ = 2000
"""Rows of a task that are looked at, evenly spread."""
MIN_FORM_SHARE = 0.95
"""Share of a task's answers that must have a form."""
SHORT_ANSWER_CHARACTERS = 300
"""Characters up to which a line that is no sentence is an answer that can be compared as text."""
MIN_SENTENCE_WORDS = 5
"""Words from which a text that ends like a sentence is one."""
MAX_WORDS_OF_ENTRY = 3
"""Words of one entry of a list of words."""
MAX_LABELS, MIN_ROWS_PER_LABEL = 12, 3
"""Different answers up to which words are labels, such as yes and no, and rows for each of them."""
FINAL_ANSWER_GRADER = "final_answer"
_WRAPPED = re.compile(r"(?:```\w*\s|<\w+>)?(.*?)(?:```|</\w+>)?", re.DOTALL)
"""A text, and the marks of a block of code or of a tool call around it."""
_STRING = re.compile(r'"((?:[^"\\]|\\.)*)"')


@dataclass(frozen=True, slots=True)
class ProposedGrader:
    """A grader that fits a task's answers, or none."""

    grader: str | None
    """Name of the grader; None where nothing can be graded, so that only supervised training and pairs are left."""
    why: str
    """One sentence with counts."""
    form: str = ""
    """What the answers are or do, without counts; empty where something else decided."""
    count: int = 0
    """Answers of this form."""
    total: int = 0
    """Answers that were looked at."""


def proposed_graders(corpus: Corpus) -> Mapping[str, ProposedGrader]:
    """A grader for each task of the corpus, by the form of its answers; those of its targets where it has no answers.

    A completion that is the answer and nothing else earns 1 under each of them; `final_answer` also judges a model that
    explains itself first, so it is proposed wherever its comparison loses nothing that tells answers apart, and the answer
    is one thing: it finds no list of words in a sentence.
    """
    groups = rows_by(corpus, np.arange(len(corpus)), "task", "task")
    names = [name for name, _ in groups]
    rows_by_task = read_groups(corpus.table, (rows[_spread(len(rows))] for rows in groups.values()))
    return {name: _propose(rows) for name, rows in zip(names, rows_by_task, strict=True)}


def find_labels(corpus: Corpus, task: str) -> tuple[str, ...]:
    """Return the answers of a task that has few different ones, each several times; empty for any other task.

    Args:
        corpus: up to `MAX_ROWS_READ` of its rows are looked at.
        task: name of the task.
    """
    own = corpus.select(tasks=[task])
    (examples,) = read_groups(own.table, [_spread(len(own))])
    counts = Counter(row.answer.strip() for row in examples if row.answer and row.answer.strip())
    is_closed = 1 < len(counts) <= MAX_LABELS and counts.total() >= MIN_ROWS_PER_LABEL * len(counts)
    is_words = all(re.fullmatch(r"[^\W\d_]+(?:[ -][^\W\d_]+){0,3}", label) for label in counts)
    return tuple(sorted(counts)) if is_closed and is_words else ()


def propose_grader(rows: Sequence[Example]) -> ProposedGrader:
    """The same for the rows of one task."""
    return _propose([rows[place] for place in _spread(len(rows)).tolist()])


def _spread(count: int) -> NDArray[np.int64]:
    """Places of the rows that are looked at, among so many."""
    return np.arange(count) if count <= MAX_ROWS_READ else np.unique(np.linspace(0, count - 1, MAX_ROWS_READ).astype(int))


def _propose(rows: Sequence[Example]) -> ProposedGrader:
    if any(row.chosen is not None for row in rows):
        return ProposedGrader(
            None, f"nothing to grade: {_share_text(sum(r.chosen is not None for r in rows), rows)} rows are pairs"
        )
    texts = [(row, (row.answer if row.answer is not None else plain(row.target)).strip()) for row in rows]
    texts = [(row, text) for row, text in texts if text]
    if not texts:
        return ProposedGrader(None, "nothing to grade: the rows have neither answers nor completions")
    answers = [text for _, text in texts]
    called = sum(_calls_tools(row, text) for row, text in texts)
    declined = sum(_declines_tools(row, text) for row, text in texts)
    if called + declined >= MIN_FORM_SHARE * len(texts) and called >= declined:
        none_text = f", and {_share_text(declined, texts)} answer a request with tools without a call" if declined else ""
        return ProposedGrader("tool_call", f"tool_call: {_share_text(called, texts)} answers are tool calls{none_text}")
    rules_count = sum(row.answer is not None and are_rules(text) for row, text in texts)
    if rules_count >= MIN_FORM_SHARE * len(texts):
        return ProposedGrader("follows", f"follows: {_share_text(rules_count, texts)} answers are rules to keep")
    json_count = sum(map(_is_json_object, answers))
    if json_count >= MIN_FORM_SHARE * len(answers):
        return ProposedGrader("json_fields", f"json_fields: {_share_text(json_count, answers)} answers are JSON")
    for form, words in ANSWER_FORMS:
        count = sum(form(row, text) for row, text in texts)
        if count >= MIN_FORM_SHARE * len(texts):
            return _propose_by_form(words, count, texts)
    if all(row.answer is None for row, _ in texts):
        return ProposedGrader(None, f"nothing to grade: the {len(texts):,} completions have no common answer format")
    prose = sum(len(text) > SHORT_ANSWER_CHARACTERS or "\n" in text or _is_sentence(text) for text in answers)
    if prose > (1 - MIN_FORM_SHARE) * len(texts):
        why = f"{_share_text(prose, texts)} answers are sentences or longer than {SHORT_ANSWER_CHARACTERS} characters"
        return ProposedGrader(None, f"nothing to grade: {why}")
    return _propose_for_words(answers)


def _propose_for_words(answers: Sequence[str]) -> ProposedGrader:
    """For short texts: exact for lists of words, and where case or outer marks may tell answers apart."""
    lists = list(map(_words_in_list, answers))
    several = sum(words > 1 for words in lists)
    if several >= MIN_FORM_SHARE * len(answers) and max(lists) > 2:
        return ProposedGrader("exact", f"exact: {_share_text(several, answers)} answers are lists of words in a fixed order")
    distinct_answers = set(answers)
    mixed_case_count = sum(
        not (text.islower() or text.isupper() or text.istitle() or text.capitalize() == text) for text in answers
    )
    readings = Counter(final_answer_of(text).casefold().strip(" .,;:!?\"'`*_") for text in distinct_answers)
    clash = sum(count for text, count in readings.items() if count > 1 or not text)
    if mixed_case_count > (1 - MIN_FORM_SHARE) * len(answers) or clash:
        mixed = f"{mixed_case_count:,} of {len(answers):,} mix upper and lower case"
        clash_text = mixed if mixed_case_count else f"{clash:,} differ only by case or punctuation"
        return ProposedGrader("exact", f"exact: all answers are short, and {clash_text}")
    repeated_text = "one text" if len(distinct_answers) == 1 else f"one of {len(distinct_answers)} texts"
    return _propose_by_form(
        f"are {repeated_text if len(distinct_answers) <= MAX_LABELS else 'short texts'}", len(answers), answers
    )


def _propose_by_form(form: str, count: int, answers: Sequence[object]) -> ProposedGrader:
    why = f"{FINAL_ANSWER_GRADER}: {_share_text(count, answers)} answers {form}"
    return ProposedGrader(FINAL_ANSWER_GRADER, why, form, count, len(answers))


def _calls_tools(row: Example, text: str) -> bool:
    """Find whether an answer calls tools: as a structure, or as text in a row that has tools."""
    turns = row.target if isinstance(row.target, tuple) else ()
    return any(turn.get("tool_calls") for turn in turns) or (bool(row.tools) and bool(find_calls(text)))


def _declines_tools(row: Example, text: str) -> bool:
    """Find whether an answer to a request with tools calls none."""
    is_asked = isinstance(row.prompt, tuple) and row.prompt[-1]["role"] == "user"
    return is_asked and bool(row.tools) and not find_calls(text)


def _is_sentence(text: str) -> bool:
    return text.endswith((".", "!", "?")) and len(text.split()) >= MIN_SENTENCE_WORDS


def _is_json_object(text: str) -> bool:
    """Find whether a short text is JSON with named fields, none of which holds a sentence that could be worded otherwise."""
    if len(text) > SHORT_ANSWER_CHARACTERS:
        return False
    wrapped = _WRAPPED.fullmatch(text)
    try:
        data = json.loads(wrapped[1] if wrapped else text)
    except ValueError:
        return False
    has_fields = isinstance(data, dict) or (isinstance(data, list) and any(isinstance(part, dict) for part in data))
    return has_fields and not any(map(_is_sentence, _STRING.findall(text)))


def _words_in_list(text: str) -> int:
    """How many words or short phrases a text lists, parted by commas, semicolons or bars; 1 for any other text."""
    entries = [entry.strip(" \t'\"`[](){}") for entry in re.split(r"[,;|]", text)]
    is_list = all(0 < len(entry.split()) <= MAX_WORDS_OF_ENTRY and re.search(r"[^\W\d_]", entry) for entry in entries)
    return len(entries) if is_list else 1


ANSWER_FORMS: tuple[tuple[Callable[[Example, str], bool], str], ...] = (
    (lambda _, text: "####" in text and final_answer_of(text) != text, "end in `#### answer`"),
    (lambda _, text: "\\boxed" in text and final_answer_of(text) != text, r"hold `\boxed{answer}`"),
    (lambda _, text: any(statement.kind == "marked" for statement in find_stated_answers(text)), 'say "the answer is ..."'),
    (lambda row, text: answer_kind(row, text) == "number", "are one number"),
    (lambda row, text: answer_kind(row, text) == "letter", "are the letter of an option that the prompt lists"),
)
"""Form of an answer, and the words for it, the most telling first."""


def _share_text(count: int, total: Sequence[object]) -> str:
    return f"{count:,} of {len(total):,}"
