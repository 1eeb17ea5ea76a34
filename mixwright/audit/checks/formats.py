"""Check of answer formats per task: their skeletons, and rare formats that a commoner one is likely to replace.

Source: own; that RL lets one of several formats take over: Zhao et al. 2025 (arXiv 2504.07912).
Unit: share of training rows per form; evenness is normalised entropy, 0 (one form) to 1 (all equally common).
Cost: one pass; at most 256 forms kept per task.
Blind spot: what the prompt asks for, and forms inside long answers (of those above 200 characters the last line is read).
"""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict

from mixwright.audit.rows import MOST_NAMES_SHOWN, rows
from mixwright.contracts import Check
from mixwright.corpus import Corpus
from mixwright.records import Observation
from mixwright.skeleton import skeleton

FORM_LEGEND = "(9 stands for a number, a for a word or several; a repetition is written once)"
"""How a form is read; see `coarse_form`."""
NOISE_SHARE, MINORITY_SHARE, COVERED_SHARE = 0.02, 0.2, 0.9
"""Forms below the first share of their task's rows are not reported, those below the second are in danger; and forms are a
choice of formats where the five commonest cover the third, else they are content."""
MOST_FORMS_KEPT = 256
LONG_ANSWER_CHARACTERS = 200
_NUMBER = re.compile(r"[+-]?9(?:[.,]9)*")
_RUN = re.compile(r"[9a]*9[9a]*")
_MARKUP = re.compile(r"</?[A-Za-z][\w-]*/?>|\\[A-Za-z]+|[a-z ]*(?:answer|result|solution|output) ?(?::|=|is)|[#$*_`{}\"']")


class Formats(Check):
    """Finds the forms of answers in the train split."""

    def check(self, corpus: Corpus) -> list[Observation]:
        """One info per task, a warning for tasks with a minority form, and one for tasks that disagree with each other."""
        counts: dict[str, FormCounts] = defaultdict(FormCounts)
        for row in rows(corpus.batches()):
            if row.split != "eval" and row.answer:
                counts[row.task].add(coarse_form(row.answer))
        seen = [one for name, forms in sorted(counts.items()) for one in _observe_task(name, forms)]
        return seen + _observe_disagreement({name: forms.kept.most_common(1)[0][0] for name, forms in counts.items()})


def _observe_task(name: str, forms: FormCounts) -> list[Observation]:
    common, total = forms.kept.most_common(MOST_NAMES_SHOWN), forms.total
    top, count = common[0]
    text = f"All answers have one format, {top!r} {FORM_LEGEND}."
    if len(forms.kept) > 1 or forms.spilled:
        text = f"Answers have {forms.count_text} different formats; {top!r} is the commonest, {count / total:.1%} of them "
        text += f"{FORM_LEGEND}. Their normalised entropy is {forms.evenness():.2f}."
    if forms.spilled:
        text += f" The rarest formats, {forms.spilled} rows together, are counted as one."
    shown = tuple({"form": form, "rows": rows_, "share": round(rows_ / total, 4)} for form, rows_ in common)
    null = "one format for all answers: share 100 %, entropy 0"
    seen = [Observation("formats", name, "info", count, total, text, "", null, shown)]
    few = [(form, n) for form, n in common[1:] if NOISE_SHARE <= n / total < MINORITY_SHARE and n >= 3]
    if few and sum(n for _, n in common) >= COVERED_SHARE * total:
        rare = sum(n for _, n in few)
        names = ", ".join(f"{form!r} ({n / total:.1%})" for form, n in few)
        text = f"Answer formats are mixed: {names} beside {top!r} ({count / total:.1%}). Training may drop the rarer ones."
        remedy = "Write all answers in one format; if the question asks for the format, evaluate these rows separately."
        seen.append(Observation("formats", name, "warning", rare, total, text, remedy, null, shown))
    return seen


def _observe_disagreement(top: dict[str, str]) -> list[Observation]:
    """One warning per kind of answer that tasks write in several ways, given the commonest form of each task."""
    groups: dict[str, dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
    for name, form in sorted(top.items()):
        groups[form_without_markup(form)][form].append(name)
    seen = []
    for kind, by_form in sorted(groups.items()):
        if len(by_form) < 2 or not kind:
            continue
        tasks, most = sum(map(len, by_form.values())), max(map(len, by_form.values()))
        first = sorted(by_form.items())[:MOST_NAMES_SHOWN]
        ways = ", ".join(f"{form!r} ({', '.join(names[:3])})" for form, names in first)
        text = f"Answers of the same kind ({kind!r}) are written in {len(by_form)} ways: {ways}."
        remedy = "Use one format in all tasks, or name the wanted one in each prompt; else one may replace the others."
        null, shown = "one format for one kind of answer", tuple({"form": form, "tasks": names} for form, names in first)
        seen.append(Observation("formats", None, "warning", tasks - most, tasks, text, remedy, null, shown))
    return seen


class FormCounts:
    """Rows per form in bounded memory: above `MOST_FORMS_KEPT` forms the rarer half is let go and counted together.

    Counts of kept forms are then lower bounds, short by at most `spilled`.
    """

    def __init__(self) -> None:
        self.kept: Counter[str] = Counter()
        self.total = 0
        self.spilled = 0

    def add(self, form: str) -> None:
        """Count one row."""
        self.total += 1
        self.kept[form] += 1
        if len(self.kept) > MOST_FORMS_KEPT:
            common = Counter(dict(self.kept.most_common(MOST_FORMS_KEPT // 2)))
            self.spilled += self.kept.total() - common.total()
            self.kept = common

    @property
    def count_text(self) -> str:
        """Number of forms; with a plus where some were let go."""
        return f"{len(self.kept)}+" if self.spilled else str(len(self.kept))

    def evenness(self) -> float:
        """Entropy of the shares over that of as many equal ones, 0..1; spilled rows count as one form."""
        return evenness([*self.kept.values(), *([self.spilled] if self.spilled else [])])


def evenness(counts: list[int]) -> float:
    """Normalised entropy of counts: 0 for one form, 1 for equal ones."""
    total = sum(counts)
    entropy = -sum(n / total * math.log(n / total) for n in counts if n)
    return entropy / math.log(len(counts)) if len(counts) > 1 else 0.0


def coarse_form(answer: str) -> str:
    """The skeleton of an answer without what is content: signs and decimals of numbers, how many words."""
    text = answer.strip()
    if len(text) > LONG_ANSWER_CHARACTERS:
        text = text.splitlines()[-1]
    short = skeleton(text).replace("…", "").replace("a+", "a")
    return _RUN.sub("9", _NUMBER.sub("9", short))


def form_without_markup(form: str) -> str:
    """A form without markup: what kind of answer it is."""
    return " ".join(_MARKUP.sub(" ", form).strip().rstrip(".").split())
