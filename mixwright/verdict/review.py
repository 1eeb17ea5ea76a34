"""Review of a run: five questions in a sentence or two each, and 28 findings. A pure function of the records of the run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass

from mixwright.behaviours import IN_WORDS
from mixwright.errors import join_some
from mixwright.estimates.readings import format_unit
from mixwright.records import TaskChange
from mixwright.verdict.page.text import format_change, format_count, percent
from mixwright.verdict.rules.findings import FINDINGS, NEEDS, NO_TEACHING, NO_VERDICT, Fact, Finding, RunParts, State, decide
from mixwright.verdict.words import LOSSES, SAMPLES, list_rows, name_task

MAX_FACTS, MAX_NAMED = 2, 3
"""Facts that an answer tells of what is shown, and tasks that it names with their change."""
EASY = 0.5
"""Success from which on a task is not called hard."""


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
    told = {one.change for one in parts.verdict.tasks}  # one sentence has them all
    texts = list[str]()
    for finding in FINDINGS[question]:
        state, facts = decide(finding.rule(parts))
        facts = [fact for fact in facts if fact.change not in told][:MAX_FACTS] if state == "shown" else []
        texts += [_say(finding.figure, fact) for fact in facts]
    texts = [*texts[:MAX_FACTS], *_list_context(question, parts)]
    texts = texts or [f"Nothing found: {row.figure}" for row in rows if row.state == "excluded"][:1]
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
    tasks = join_some(list(dict.fromkeys(one.task for one in facts if one.task)))
    remedy = (fact.remedy or finding.remedy.format(tasks=tasks)) if state == "shown" else ""
    return FindingRow(finding.name, question, finding.title, state, figure, needs, remedy)


def _say(sentence: str, fact: Fact) -> str:
    """Fill in the fields of a fact."""
    behaviour, fields = SAMPLES.get(fact.other) or IN_WORDS.get(fact.other, ("",))[0], asdict(fact)
    written = {"value": percent(fact.value), "against": percent(fact.against), "change": format_change(fact.change)}
    return (sentence if fact.task else "{other}").format(**fields | written, behaviour=behaviour)


def _list_context(question: str, parts: RunParts) -> Iterator[str]:
    """Yield what a question asks about and no finding is about."""
    tasks, unit = sorted(list_rows(parts.verdict), key=lambda one: (one.change.value, name_task(one))), parts.verdict.unit
    measured = [one for one in tasks if one.after is not None and one.word != "too few items"]
    shares, lost = parts.shares, [one for one in measured if one.word in LOSSES]
    learned = [one for one in tasks if one.word == "learned"]
    if question == "What competes?" and lost:
        on = f"on {join_some(sorted(shares))} " if shares else ""
        gained = f"raised {_name_changes(learned[::-1], unit)} and " if learned else ""
        yield f"Training {on}{gained}lowered {_name_changes(lost, unit)} ({format_unit(unit)})"
    if question == "What competes?" and len(shares) > 1:
        task = max(shares, key=lambda task: (shares[task][1], task))
        yield f"{task} has about {percent(shares[task][1])} of the target tokens ({percent(shares[task][0])} of the rows)"
    if question == "What competes?" and lost and len(shares) > 1 and not parts.teaching.pulls:
        yield f"To tell which of the {len(shares)} did it: {NEEDS['teaching'].partition(': ')[2]}"
    if question == "What is too hard?" and (idle := [one.group for one in parts.teaching.taught if one.word == "nothing"]):
        yield f"Short trainings taught nothing on {join_some(idle)}"
    if question == "What is too hard?" and parts.verdict.graded and (rest := [one for one in measured if one not in lost]):
        hardest = min(rest, key=lambda one: (max(one.before or 0.0, one.after or 0.0), name_task(one)))
        success = f"{percent(hardest.before or 0.0)} before training, {percent(hardest.after or 0.0)} after"
        found = "Nothing found: of" if max(hardest.before or 0.0, hardest.after or 0.0) >= EASY else "Of"
        yield f"{found} the tasks that were not lost, {name_task(hardest)} is right least often ({success})"
    if question == "What is not covered?" and (rest := {one.task: 0 for one in tasks if shares and one.task not in shares}):
        worse = len({one.task for one in lost if one.task in rest})
        yield f"No training row belongs to {join_some(list(rest))}" + (f"; {worse} of these got worse" if worse else "")
    if question == "What can these rows teach?" and learned:
        yield f"They raised {_name_changes(learned[::-1], unit)} ({format_unit(unit)})"


def _name_changes(changes: Sequence[TaskChange], unit: str) -> str:
    """Name the first few tasks with their changes, and count the others."""
    named = ", ".join(f"{name_task(one)} {format_change(one.change, unit)}" for one in changes[:MAX_NAMED])
    others = len(changes) - MAX_NAMED
    return f"{named} and {format_count(others, 'other task')}" if others > 0 else named
