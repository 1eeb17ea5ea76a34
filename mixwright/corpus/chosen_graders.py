"""Choice of a task's grader from the completions of a model, beside the one that the form of its answers proposes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from mixwright.errors import one_line
from mixwright.estimates.chance import RIGHT_FROM_SCORE
from mixwright.graders import Grader, load_grader
from mixwright.graders.includes import is_data
from mixwright.records import Example, plain
from mixwright.words import contains_words, words_in

CANDIDATE_GRADERS = ("exact", "numeric", "final_answer", "includes", "json_fields")
"""Graders that are tried on the completions; all of them give the gold answer 1."""
SENTENCE_GRADER = "includes"
"""The one that reads an answer out of a sentence."""
MIN_MORE_ACCEPTED, SHARE_MORE_ACCEPTED = 2, 1 / 6
"""Completions, and share of them, that `includes` has to accept beyond the other grader to be taken."""
MAX_COMPLETIONS_SHOWN = 3
"""Completions that are shown."""
SHOWN_CHARACTERS = 80
"""Characters of one that are shown."""
CUT_MARK = " (cut off)"
"""Behind a completion that ran into the limit of tokens."""


@dataclass(frozen=True, slots=True)
class FirstAnswer:
    """What a model wrote for an example."""

    example: Example
    completion: str
    cut: bool
    """Whether it ran into the limit of tokens."""

    @property
    def quoted(self) -> str:
        """Its beginning, and the right answer."""
        return f"{quoted_start(self.completion, cut=self.cut)} for {quoted_start(self.example.answer or '')}"


@dataclass(frozen=True, slots=True)
class ChosenGrader:
    """The grader to judge a task by, and what it rests on."""

    task: str
    grader: str
    """The one to take."""
    proposed_grader: str
    """The one that the form of the answers proposed, or that the user named."""
    accepted: Mapping[str, int]
    """Candidate -> how many completions it gives full marks."""
    total: int
    """Completions that were read."""
    examples: tuple[FirstAnswer, ...]
    """Up to three that state the answer where `proposed_grader` accepts nothing of them; else the first ones."""
    remedy: str
    """How to name another grader, on the command line and in run.yaml."""
    refused: tuple[FirstAnswer, ...]
    """Those that `grader` gives nothing, although the words of the answer stand in them."""
    answers_in_sentences: bool
    """Whether the answers are in sentences for many of which `proposed_grader` gives nothing."""

    @property
    def changed(self) -> bool:
        """Whether another grader is taken than `proposed_grader`."""
        return self.grader != self.proposed_grader

    def describe(self) -> list[str]:
        """Say what is taken and why, and what it cannot read: up to three completions, and what other graders accept."""
        lines = [f"grader of {self.task}: {self.reason}; to change it: {self.remedy}"]
        if not self.refused:
            return lines
        shown = [answer.quoted for answer in self.refused[:MAX_COMPLETIONS_SHOWN]]
        counts = ", ".join(f"{name} {count}" for name, count in self.accepted.items())
        line = f"grader of {self.task}: rejects {len(self.refused)} of {self.total} completions that contain the answer: "
        return [*lines, f"{line}{'; '.join(shown)}. If they are right, choose another grader; accepted: {counts}"]

    @property
    def reason(self) -> str:
        """What is taken, and why."""
        return f"{self.grader.partition('?')[0]}, because {self.why}" if self.changed else self.why

    @property
    def why(self) -> str:
        """One sentence: what the choice rests on."""
        proposed = self.proposed_grader
        if not self.total:
            return f"keeping {proposed}: there is no completion to test it on"
        in_sentences = self.accepted[SENTENCE_GRADER]
        if self.answers_in_sentences:
            counts = f"{in_sentences} of {self.total} completions and {proposed} {self.accepted[proposed]}"
            return f"{SENTENCE_GRADER} accepts {counts}, such as {self.examples[0].quoted}"
        if proposed not in self.accepted:
            return f"keeping {proposed}: other graders are not compared with it"
        if not max(self.accepted.values()):
            return f"keeping {proposed}: no grader accepts any of {self.total} completions"
        others = f" ('{SENTENCE_GRADER}' accepts {in_sentences})" if proposed != SENTENCE_GRADER else ""
        few_text = ", too few more to switch" if in_sentences > self.accepted[proposed] else ""
        return f"{proposed}, which accepts {self.accepted[proposed]} of {self.total} completions{others}{few_text}"


def choose_grader(
    task: str,
    proposed_grader: str,
    answers: Sequence[FirstAnswer],
    *,
    named_by_user: bool = False,
    labels: Sequence[str] = (),
) -> ChosenGrader:
    """The grader for a task: `proposed_grader`, unless `includes` accepts clearly more.

    A grader that the user named is never replaced, and none is where the rows' own completions, or their answers, are JSON
    or code: there a sentence is another form than the one that is trained.

    Args:
        task: its name.
        proposed_grader: the grader proposed, or named by the user.
        answers: what the model wrote for a few of its examples, all of which have answers.
        named_by_user: whether the user named it.
        labels: all answers of the task, where these are few; `includes` then also takes the one that is named first.
    """
    judges = {name: load_grader(name) for name in CANDIDATE_GRADERS}
    with_labels = f"{SENTENCE_GRADER}?among={'|'.join(labels)}" if labels else SENTENCE_GRADER
    judges[SENTENCE_GRADER] = load_grader(with_labels)

    def right(judge: Grader, answer: FirstAnswer) -> bool:
        return (judge.grade_cut if answer.cut else judge.grade)(answer.example, answer.completion) >= RIGHT_FROM_SCORE

    accepted_answers = {name: [answer for answer in answers if right(judge, answer)] for name, judge in judges.items()}
    accepted = {name: len(accepted_of_grader) for name, accepted_of_grader in accepted_answers.items()}
    more_accepted = accepted[SENTENCE_GRADER] - accepted.get(proposed_grader, 0)
    comparable = proposed_grader.partition("?")[0] != SENTENCE_GRADER and (
        named_by_user or proposed_grader in CANDIDATE_GRADERS
    )
    is_data_task = any(is_data(plain(answer.example.target)) or is_data(answer.example.answer or "") for answer in answers)
    accepts_clearly_more = more_accepted >= max(MIN_MORE_ACCEPTED, SHARE_MORE_ACCEPTED * len(answers))
    answers_in_sentences = comparable and not is_data_task and accepts_clearly_more
    chosen = with_labels if answers_in_sentences and not named_by_user else proposed_grader
    examples_shown = list(answers)
    if answers_in_sentences:
        examples_shown = [
            answer for answer in accepted_answers[SENTENCE_GRADER] if answer not in accepted_answers.get(proposed_grader, [])
        ]
    judge = judges.get(chosen) or load_grader(chosen)
    refused = tuple(answer for answer in answers if not right(judge, answer) and _holds_answer(answer))
    name = SENTENCE_GRADER if named_by_user else "NAME"
    remedy = f"--grader {task}={name}, or in run.yaml corpus.graders: {{{task}: {name}}}"
    shown = tuple(examples_shown[:MAX_COMPLETIONS_SHOWN])
    return ChosenGrader(task, chosen, proposed_grader, accepted, len(answers), shown, remedy, refused, answers_in_sentences)


def _holds_answer(answer: FirstAnswer) -> bool:
    """Whether the words of the gold answer stand somewhere in a completion, one after the other."""
    gold = words_in(answer.example.answer or "")
    return bool(gold) and contains_words(words_in(answer.completion), gold)


def quoted_start(text: str, *, cut: bool = False) -> str:
    """The beginning of a text on one line, quoted; a completion that ran into the limit of tokens is marked."""
    line = " ".join(one_line(text).split())
    return repr(line if len(line) <= SHOWN_CHARACTERS else f"{line[:SHOWN_CHARACTERS]} ...") + CUT_MARK * cut
