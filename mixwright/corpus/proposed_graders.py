"""Proposal of a grader for each task, from the form of its answers alone."""

from __future__ import annotations

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
from mixwright.graders.json_fields import parse
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
_STRING = re.compile(r'"((?:[^"\\]|\\.)*)"')


@dataclass(frozen=True, slots=True)
class ProposedGrader:
    """A grader that fits a task's answers, or none."""

    grader: str | None
    """Name of the grader; None where nothing can be graded, so that only supervised training and pairs are left."""
    form: str
    """What the answers are or do; where none are counted, another reason."""
    count: int = 0
    """Answers of this form."""
    total: int = 0
    """Answers that were looked at; 0 where none are counted."""

    @property
    def reason(self) -> str:
        """The form, with counts."""
        return f"{self.count:,} of {self.total:,} answers {self.form}" if self.total else self.form

    @property
    def why(self) -> str:
        """One sentence: the grader, and the reason."""
        return f"{self.grader or 'nothing to grade'}: {self.reason}"


def proposed_graders(corpus: Corpus) -> Mapping[str, ProposedGrader]:
    """A grader for each task of the corpus, by the form of its answers; those of its targets where it has no answers.

    A completion that is the answer and nothing else earns 1 under each of them; `final_answer` also judges a model that
    explains itself first, so it is proposed wherever its comparison loses nothing that tells answers apart, and the answer
    is one thing: it finds no list of words in a sentence.
    """
    groups = rows_by(corpus, np.arange(len(corpus)), "task")
    rows_by_task = read_groups(corpus.table, (rows[_spread(len(rows))] for rows in groups.values()))
    return {name: propose_grader(rows) for (name,), rows in zip(groups, rows_by_task, strict=True)}


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


def _spread(count: int) -> NDArray[np.int64]:
    """Places of the rows that are looked at, among so many."""
    return np.arange(count) if count <= MAX_ROWS_READ else np.unique(np.linspace(0, count - 1, MAX_ROWS_READ).astype(int))


def propose_grader(rows: Sequence[Example]) -> ProposedGrader:
    """The same for the rows of one task, of which up to `MAX_ROWS_READ` are looked at."""
    rows = [rows[place] for place in _spread(len(rows)).tolist()]
    if pair_count := sum(row.chosen is not None for row in rows):
        return ProposedGrader(None, f"{pair_count:,} of {len(rows):,} rows are pairs")
    texts = [(row, (row.answer if row.answer is not None else plain(row.target)).strip()) for row in rows]
    texts = [(row, text) for row, text in texts if text]
    total = len(texts)
    if not texts:
        return ProposedGrader(None, "the rows have neither answers nor completions")
    called = sum(_calls_tools(row, text) for row, text in texts)
    declined = sum(_declines_tools(row, text) for row, text in texts)
    if called + declined >= MIN_FORM_SHARE * total and called >= declined:
        none_text = f", and {declined:,} of {total:,} answer a request with tools without a call" if declined else ""
        return ProposedGrader("tool_call", f"are tool calls{none_text}", called, total)
    for grader, has_form, words in ANSWER_FORMS:
        count = sum(has_form(row, text) for row, text in texts)
        if count >= MIN_FORM_SHARE * total:
            return ProposedGrader(grader, words, count, total)
    if all(row.answer is None for row, _ in texts):
        return ProposedGrader(None, f"the {total:,} completions have no common answer format")
    answers = [text for _, text in texts]
    prose = sum(len(text) > SHORT_ANSWER_CHARACTERS or "\n" in text or _is_sentence(text) for text in answers)
    if prose > (1 - MIN_FORM_SHARE) * total:
        return ProposedGrader(None, f"are sentences or longer than {SHORT_ANSWER_CHARACTERS} characters", prose, total)
    return _propose_for_words(answers)


def _propose_for_words(answers: Sequence[str]) -> ProposedGrader:
    """For short texts: exact for lists of words, and where case or outer marks may tell answers apart."""
    total, lists = len(answers), list(map(_words_in_list, answers))
    several = sum(words > 1 for words in lists)
    if several >= MIN_FORM_SHARE * total and max(lists) > 2:
        return ProposedGrader("exact", "are lists of words in a fixed order", several, total)
    distinct_answers = set(answers)
    mixed_case_count = sum(
        not (text.islower() or text.isupper() or text.istitle() or text.capitalize() == text) for text in answers
    )
    readings = Counter(final_answer_of(text).casefold().strip(" .,;:!?\"'`*_") for text in distinct_answers)
    clash = sum(count for text, count in readings.items() if count > 1 or not text)
    if mixed_case_count > (1 - MIN_FORM_SHARE) * total or clash:
        mixed = f"{mixed_case_count:,} of {total:,} mix upper and lower case"
        clash_text = mixed if mixed_case_count else f"{clash:,} differ only by case or punctuation"
        return ProposedGrader("exact", f"all answers are short, and {clash_text}")
    repeated_text = "one text" if len(distinct_answers) == 1 else f"one of {len(distinct_answers)} texts"
    words = repeated_text if len(distinct_answers) <= MAX_LABELS else "short texts"
    return ProposedGrader(FINAL_ANSWER_GRADER, f"are {words}", total, total)


def _calls_tools(row: Example, text: str) -> bool:
    """Find whether an answer calls tools: as a structure, between tags, or as any text of a row that has tools."""
    turns = row.target if isinstance(row.target, tuple) else ()
    if row.tools or not text.startswith("<tool_call>"):
        return any(turn.get("tool_calls") for turn in turns) or (bool(row.tools) and bool(find_calls(text, row.tools)))
    return all(call.name for call in find_calls(text))


def _declines_tools(row: Example, text: str) -> bool:
    """Find whether an answer to a request with tools calls none."""
    is_asked = isinstance(row.prompt, tuple) and row.prompt[-1]["role"] == "user"
    return is_asked and bool(row.tools) and not find_calls(text, row.tools)


def _is_sentence(text: str) -> bool:
    return text.endswith((".", "!", "?")) and len(text.split()) >= MIN_SENTENCE_WORDS


def _is_json_object(text: str) -> bool:
    """Find whether a short text is JSON with named fields, none of which holds a sentence that could be worded otherwise."""
    data = parse(text) if len(text) <= SHORT_ANSWER_CHARACTERS else None
    has_fields = isinstance(data, dict) or (isinstance(data, list) and any(isinstance(part, dict) for part in data))
    return has_fields and not any(map(_is_sentence, _STRING.findall(text)))


def _words_in_list(text: str) -> int:
    """How many words or short phrases a text lists, parted by commas, semicolons or bars; 1 for any other text."""
    entries = [entry.strip(" \t'\"`[](){}") for entry in re.split(r"[,;|]", text)]
    is_list = all(0 < len(entry.split()) <= MAX_WORDS_OF_ENTRY and re.search(r"[^\W\d_]", entry) for entry in entries)
    return len(entries) if is_list else 1


ANSWER_FORMS: tuple[tuple[str, Callable[[Example, str], bool], str], ...] = (
    ("follows", lambda row, text: row.answer is not None and are_rules(text), "are rules to keep"),
    ("json_fields", lambda _, text: _is_json_object(text), "are JSON"),
    (FINAL_ANSWER_GRADER, lambda _, text: "####" in text and final_answer_of(text) != text, "end in `#### answer`"),
    (FINAL_ANSWER_GRADER, lambda _, text: "\\boxed" in text and final_answer_of(text) != text, r"hold `\boxed{answer}`"),
    (
        FINAL_ANSWER_GRADER,
        lambda _, text: any(statement.kind == "marked" for statement in find_stated_answers(text)),
        'say "the answer is ..."',
    ),
    (FINAL_ANSWER_GRADER, lambda row, text: answer_kind(row, text) == "number", "are one number"),
    (
        FINAL_ANSWER_GRADER,
        lambda row, text: answer_kind(row, text) == "letter",
        "are the letter of an option that the prompt lists",
    ),
)
"""Grader of a form of answers, the form, and the words for it, the most telling first."""
