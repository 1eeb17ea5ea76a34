"""Choice of a task's grader from the completions of a model, beside the one that the form of its answers proposes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from mixwright.errors import one_line
from mixwright.estimates.chance import RIGHT_FROM_SCORE
from mixwright.graders import Grader, load_grader
from mixwright.graders.includes import is_data
from mixwright.records import Example, plain

CANDIDATE_GRADERS = ("exact", "numeric", "final_answer", "includes")
"""Graders that are tried on the completions; all of them give the gold answer 1."""
SENTENCE_GRADER = "includes"
"""The one that reads an answer out of a sentence."""
FEWEST_MORE_ACCEPTED, SHARE_MORE_ACCEPTED = 2, 1 / 6
"""Completions, and share of them, that `includes` has to accept beyond the other grader to be taken."""
ALMOST_NOTHING_SHARE = 0.1
"""Share of completions up to which a grader accepts almost nothing."""
MOST_COMPLETIONS_SHOWN = 3
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


@dataclass(frozen=True, slots=True)
class ChosenGrader:
    """The grader to judge a task by, and what it rests on."""

    task: str
    grader: str
    """The one to take."""
    given: str
    """The one that the form of the answers proposed, or that the user named."""
    accepted: Mapping[str, int]
    """Candidate -> how many completions it gives full marks."""
    total: int
    """Completions that were read."""
    examples: tuple[FirstAnswer, ...]
    """Up to three that state the answer where `given` accepts nothing of them; else the first ones."""
    why: str
    """One sentence."""
    remedy: str
    """How to name another grader, on the command line and in run.yaml."""
    answers_in_sentences: bool
    """Whether the answers stand in sentences that `given` gives almost nothing for."""

    @property
    def changed(self) -> bool:
        """Whether another grader is taken than `given`."""
        return self.grader != self.given

    @property
    def reason(self) -> str:
        """What is taken, and why."""
        return f"{self.grader}, because {self.why}" if self.changed else self.why


def choose_grader(task: str, given: str, answers: Sequence[FirstAnswer], *, named: bool = False) -> ChosenGrader:
    """The grader for a task: `given`, unless it accepts almost nothing and `includes` clearly more.

    A grader that the user named is never replaced, and none is where the rows' own completions, or their answers, are JSON
    or code: there a sentence is another form than the one that is trained.

    Args:
        task: its name.
        given: the grader proposed, or named by the user.
        answers: what the model wrote for a few of its examples, all of which have answers.
        named: whether the user named it.
    """
    judges = {name: load_grader(name) for name in CANDIDATE_GRADERS}

    def right(judge: Grader, one: FirstAnswer) -> bool:
        return (judge.grade_cut if one.cut else judge.grade)(one.example, one.completion) >= RIGHT_FROM_SCORE

    full = {name: [one for one in answers if right(judge, one)] for name, judge in judges.items()}
    accepted = {name: len(found) for name, found in full.items()}
    total, more = len(answers), accepted[SENTENCE_GRADER] - accepted.get(given, 0)
    comparable = given.partition("?")[0] != SENTENCE_GRADER and (named or given in CANDIDATE_GRADERS)
    own_form = any(is_data(plain(one.example.target)) or is_data(one.example.answer or "") for one in answers)
    accepts_almost_nothing = accepted.get(given, 0) <= ALMOST_NOTHING_SHARE * total
    accepts_clearly_more = more >= max(FEWEST_MORE_ACCEPTED, SHARE_MORE_ACCEPTED * total)
    answers_in_sentences = comparable and not own_form and accepts_almost_nothing and accepts_clearly_more
    chosen = SENTENCE_GRADER if answers_in_sentences and not named else given
    shown = list(answers)
    if answers_in_sentences:
        shown = [one for one in full[SENTENCE_GRADER] if one not in full.get(given, [])]
    why = _why(given, accepted, total, shown, answers_in_sentences=answers_in_sentences)
    name = SENTENCE_GRADER if named else "NAME"
    remedy = f"--grader {task}={name}, or in run.yaml corpus.graders: {{{task}: {name}}}"
    examples = tuple(shown[:MOST_COMPLETIONS_SHOWN])
    return ChosenGrader(task, chosen, given, accepted, total, examples, why, remedy, answers_in_sentences)


def quoted_start(text: str, *, cut: bool = False) -> str:
    """The beginning of a text on one line, quoted; a completion that ran into the limit of tokens is marked."""
    line = " ".join(one_line(text).split())
    return repr(line if len(line) <= SHOWN_CHARACTERS else f"{line[:SHOWN_CHARACTERS]} ...") + CUT_MARK * cut


def _why(
    given: str, accepted: Mapping[str, int], total: int, shown: Sequence[FirstAnswer], *, answers_in_sentences: bool
) -> str:
    if not total:
        return f"{given} stays: there was no completion to read"
    if answers_in_sentences:
        example = f"{quoted_start(shown[0].completion, cut=shown[0].cut)} for {quoted_start(shown[0].example.answer or '')}"
        counts = f"{accepted[SENTENCE_GRADER]} of {total} completions and {given} {accepted[given]}"
        return f"{SENTENCE_GRADER} accepts {counts}, such as {example}"
    if given not in accepted:
        return f"{given} stays: it was not tried on the completions"
    if not max(accepted.values()):
        return f"{given} stays: neither it nor another grader accepts any of {total} completions"
    others = f" and {SENTENCE_GRADER} {accepted[SENTENCE_GRADER]}" if given != SENTENCE_GRADER else ""
    return f"{given} stays: it accepts {accepted[given]} of {total} completions{others}"
