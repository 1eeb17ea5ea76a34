"""Check of answer formats per task: their skeletons, and rare formats that a commoner one is likely to replace.

Source: own; that RL lets one of several formats take over: Zhao et al. 2025 (arXiv 2504.07912).
Unit: share of training rows per form; evenness is normalised entropy, 0 (one form) to 1 (all equally common).
Cost: one pass; at most 256 forms kept per task.
Blind spot: what the prompt asks for, and forms inside long answers (of those above 200 characters the last line is read).
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict

from mixwright.audit.forms import FormCounts, coarse_form
from mixwright.audit.rows import MAX_NAMES_SHOWN, rows
from mixwright.contracts import Check
from mixwright.corpus import Corpus
from mixwright.records import Observation
from mixwright.thoughts import split_thoughts

FORM_LEGEND = "(9 stands for a number, a for a word or several; a repetition is written once)"
"""How a form is read; see `coarse_form`."""
NOISE_SHARE, MINORITY_SHARE = 0.02, 0.2
"""Forms below the first share of their task's rows are not reported, those below the second are in danger."""
_MARKUP = re.compile(r"</?[A-Za-z][\w-]*/?>|\\[A-Za-z]+|[a-z ]*(?:answer|result|solution|output) ?(?::|=|is)|[#$*_`{}\"']")


class Formats(Check):
    """Finds the forms of answers in the train split."""

    def check(self, corpus: Corpus) -> list[Observation]:
        """Infos: one per task, one for tasks with a minority form, and one for tasks that disagree with each other.

        In public sets one of 21 mixed formats that were told was a problem, so they are no warnings.
        """
        counts: dict[str, FormCounts] = defaultdict(FormCounts)
        thoughts: dict[str, Counter[str]] = defaultdict(Counter)
        for row in rows(corpus.batches()):
            if row.split != "eval" and row.written:
                counts[row.task].add(coarse_form(row.written))
                thoughts[row.task][split_thoughts(row.written)[0]] += 1
        observations = [observation for name, forms in sorted(counts.items()) for observation in _observe_task(name, forms)]
        observations += [seen for name, kinds in sorted(thoughts.items()) for seen in _observe_thoughts(name, kinds)]
        return observations + _observe_disagreement(
            {name: forms.rows_by_form.most_common(1)[0][0] for name, forms in counts.items()}
        )


def _observe_task(name: str, forms: FormCounts) -> list[Observation]:
    common, total = forms.rows_by_form.most_common(MAX_NAMES_SHOWN), forms.total
    top_form, count = common[0]
    text = f"All answers have one format, {top_form!r} {FORM_LEGEND}."
    if len(forms.rows_by_form) > 1 or forms.spilled:
        text = f"Answers have {forms.count_text} different formats; {count / total:.1%} have {top_form!r} {FORM_LEGEND}."
    if forms.spilled:
        text += f" The rarest formats ({forms.spilled} rows) are counted as one."
    evidence = tuple({"form": form, "rows": row_count, "share": round(row_count / total, 4)} for form, row_count in common)
    null = "one format for all answers: share 100 %, entropy 0"
    observations = [Observation("formats", name, "info", count, total, text, "", null, evidence)]
    rare_forms = [(form, n) for form, n in common[1:] if NOISE_SHARE <= n / total < MINORITY_SHARE and n >= 3]
    if rare_forms and forms.are_formats():
        rare_rows = sum(n for _, n in rare_forms)
        names = ", ".join(f"{form!r} ({n / total:.1%})" for form, n in rare_forms)
        text = f"Answer formats are mixed: {names} and {top_form!r} ({count / total:.1%}). Training may drop the rarer ones."
        remedy = "Write all answers in one format; if the question asks for the format, evaluate these rows separately."
        observations.append(Observation("formats", name, "info", rare_rows, total, text, remedy, null, evidence))
    return observations


def _observe_thoughts(name: str, kinds: Counter[str]) -> list[Observation]:
    """Report a task whose answers begin with thoughts in some rows and without in others."""
    total, thinking = kinds.total(), kinds["closed"] + kinds["open"]
    found = []
    if min(thinking, total - thinking) >= NOISE_SHARE * total:
        text = (
            f"{thinking} of {total} answers begin with thoughts, {kinds['empty']} with empty ones, {kinds['none']} without."
        )
        remedy = "Keep one kind, or let the prompt or the template say which: the model cannot know when to think."
        found.append(Observation("formats", name, "warning", min(thinking, total - thinking), total, text, remedy))
    return found


def _observe_disagreement(top: dict[str, str]) -> list[Observation]:
    """Report each kind of answer that tasks write in several ways, given the most frequent form of each task."""
    groups: dict[str, dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
    for name, form in sorted(top.items()):
        groups[form_without_markup(form)][form].append(name)
    observations = []
    for kind, by_form in sorted(groups.items()):
        if len(by_form) < 2 or not kind:
            continue
        task_count, agreeing_tasks = sum(map(len, by_form.values())), max(map(len, by_form.values()))
        shown_forms = sorted(by_form.items())[:MAX_NAMES_SHOWN]
        ways = ", ".join(f"{form!r} ({', '.join(names[:3])})" for form, names in shown_forms)
        text = f"Answers of the same kind ({kind!r}) are written in {len(by_form)} ways: {ways}."
        remedy = "Use one format in all tasks, or name it in each prompt; otherwise one may replace the others."
        null = "one format for one kind of answer"
        evidence = tuple({"form": form, "tasks": names} for form, names in shown_forms)
        observations.append(
            Observation("formats", None, "info", task_count - agreeing_tasks, task_count, text, remedy, null, evidence)
        )
    return observations


def form_without_markup(form: str) -> str:
    """Return a form without markup, the kind of answer."""
    return " ".join(_MARKUP.sub(" ", form).strip().rstrip(".").split())
