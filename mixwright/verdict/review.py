"""Review of a run: five questions in a sentence or two each, and 28 findings. A pure function of the records of the run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass

from mixwright.behaviours import IN_WORDS
from mixwright.errors import join_some
from mixwright.estimates.readings import format_unit
from mixwright.verdict.page.text import format_change, format_count, percent
from mixwright.verdict.rules.findings import FINDINGS, NEEDS, NO_TEACHING, NO_VERDICT, Fact, Finding, RunParts, State, decide
from mixwright.verdict.words import LOSSES, SAMPLES, list_rows, name_task

MAX_FACTS = 2
"""Facts that an answer tells of what is shown or excluded."""


@dataclass(frozen=True, slots=True)
class FindingRow:
    """One of the 28 findings, as the files of a run have it."""

    name: str
    """Short name; that of the laboratory's card where there is one."""
    question: str
    """Question that it belongs to."""
    title: str
    """What is true of the run if it is shown."""
    state: State
    """What the files say of it."""
    figure: str
    """The figure and what it is compared with, or why there is none."""
    needs: str = ""
    """File that would tell, and the command that makes it; empty where it is decided."""
    remedy: str = ""
    """What to do about it; empty where it is not shown."""
    laboratory: str = ""
    """Word of the laboratory's card; empty without one."""


@dataclass(frozen=True, slots=True)
class Review:
    """Five questions about a run, and the findings below them."""

    answers: Mapping[str, str]
    """Question -> its answer."""
    rows: tuple[FindingRow, ...]
    """All findings, in the order of the questions."""


def answer_questions(parts: RunParts) -> Review:
    """Return what the files of a run say of it. The order of tasks and findings in them does not matter."""
    rows = {question: [_make_row(question, one, parts) for one in findings] for question, findings in FINDINGS.items()}
    answers = {question: _answer(question, own, parts) for question, own in rows.items()}
    return Review(answers, tuple(row for own in rows.values() for row in own))


def _answer(question: str, rows: Sequence[FindingRow], parts: RunParts) -> str:
    """Say what is shown, else what is excluded, and how to learn more where the question's first finding lacks its file."""
    decided = [(finding, *decide(finding.rule(parts))) for finding in FINDINGS[question]]
    texts = [
        _say(finding.figure, fact) for finding, state, facts in decided if state == "shown" for fact in facts[:MAX_FACTS]
    ]
    texts = [*texts[:MAX_FACTS], *_list_context(question, parts, told=texts)]
    texts = texts or [row.figure for row in rows if row.state == "excluded"][:MAX_FACTS]
    is_open = rows[0].state == "needs a file" or not texts
    command = f" To know more: {rows[0].needs.partition(': ')[2]}" if is_open and rows[0].needs else ""
    return " ".join(f"{text.partition('; null: ')[0].rstrip('.')}." for text in texts or [rows[0].figure]) + command


def _make_row(question: str, finding: Finding, parts: RunParts) -> FindingRow:
    state, facts = decide(finding.rule(parts))
    missing = [name for name in finding.source.split() if getattr(parts, name, ()) in ((), NO_VERDICT, NO_TEACHING)]
    needs = NEEDS[missing[0]].format(name=finding.name) if missing and state == "cannot tell" else ""
    state = "needs a file" if needs and not facts else state
    fact = facts[0] if facts else Fact(other="No figure in these files bears on it")
    figure = _say(finding.figure, fact).rstrip(".") + (f"; null: {fact.null}" if fact.null else "")
    figure += f" (one of {len(facts)})" if len(facts) > 1 else ""
    remedy = (fact.remedy or finding.remedy) if state == "shown" else ""
    return FindingRow(finding.name, question, finding.title, state, figure, needs, remedy)


def _say(sentence: str, fact: Fact) -> str:
    """Fill in the fields of a fact."""
    behaviour, fields = SAMPLES.get(fact.other) or IN_WORDS.get(fact.other, ("",))[0], asdict(fact)
    written = {"value": percent(fact.value), "against": percent(fact.against), "change": format_change(fact.change)}
    return (sentence if fact.task else "{other}").format(**fields | written, behaviour=behaviour)


def _list_context(question: str, parts: RunParts, *, told: Sequence[str]) -> Iterator[str]:
    """Yield what a question asks about and no finding tells."""
    tasks, unit = sorted(list_rows(parts.verdict), key=lambda one: (one.change.value, name_task(one))), parts.verdict.unit
    measured = [one for one in tasks if one.after is not None and one.word != "too few items"]
    shares, lost = parts.shares, [one for one in measured if one.word in LOSSES]
    learned = [one for one in tasks if one.word == "learned"]
    success = {name_task(one): max(one.before or 0.0, one.after or 0.0) for one in measured}
    if question == "What competes?" and len(shares) > 1:
        task = max(shares, key=lambda task: (shares[task][1], task))
        yield f"{task} has about {percent(shares[task][1])} of the target tokens ({percent(shares[task][0])} of the rows)"
    if question == "What competes?" and lost and not any(name_task(lost[0]) in text for text in told):
        others = f"; {format_count(len(lost) - 1, 'other task')} got worse, too" if len(lost) > 1 else ""
        gained = f"raised {name_task(learned[-1])} and " if learned else ""
        changed = f"{format_change(lost[0].change, unit)} {format_unit(unit)}"
        yield f"Training {gained}changed {name_task(lost[0])} by {changed}{others}"
    if question == "What is too hard?" and (idle := [one.group for one in parts.teaching.taught if one.word == "nothing"]):
        yield f"Short trainings taught nothing on {join_some(idle)}"
    if question == "What is too hard?" and success and parts.verdict.graded:
        hardest = min(success, key=lambda task: (success[task], task))
        yield f"{hardest} is right least often, {percent(success[hardest])} at best (before or after training)"
    if question == "What is not covered?" and (rest := {one.task: 0 for one in tasks if shares and one.task not in shares}):
        yield f"No training row belongs to {join_some(list(rest))}, {'which was' if len(rest) == 1 else 'which were'} tested"
    if question == "What can these rows teach?" and learned:
        yield f"Training raised {name_task(learned[-1])} by {format_change(learned[-1].change, unit)} {format_unit(unit)}"
