"""The 28 findings: what each would mean for a run, which facts of its files bear on it, and which file would tell.

A rule returns facts, each with the word of its own test; the state of a finding follows from them alone, and a fact bears on
one finding. What excludes one is an interval that leaves no room for it, or a check whose documentation says that it finds
this.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Literal

from mixwright.audit.checks.frequency import RARE_PART
from mixwright.behaviours import LEAST_CHANGE
from mixwright.errors import join_some
from mixwright.estimates.intervals import wilson_ends
from mixwright.estimates.judgement import NO_CHANGE_MARGIN
from mixwright.records import Interval, Observation, Plan, Teaching, Verdict
from mixwright.verdict.rules.behaviours import ANY_RIGHT, DISTINCT
from mixwright.verdict.words import LOSSES

State = Literal["shown", "excluded", "cannot tell", "needs a file"]
"""What a run's files say of a finding: shown and excluded take a figure with its test; otherwise a file that could tell is
missing, or is there and does not tell."""
Bearing = Literal["for", "against", "open"]
NO_VERDICT, NO_TEACHING = Verdict("", "", "", "", "inconclusive", "nothing compared", 0, "", ""), Teaching(0, 0, (), ())
NO_PLAN = Plan("", ())
"""What stands for records that are not there."""
SELDOM = 0.25
"""Success up to which samples are right seldom."""
TAKEOVER = 0.5
"""Share of a task's answers from which on a form has taken over, as in `answer_forms.py`."""


@dataclass(frozen=True, slots=True)
class RunParts:
    """What was found in the folders of a run; empty where it was not there."""

    verdict: Verdict = NO_VERDICT
    """The verdict."""
    audit: tuple[Observation, ...] = ()
    """Findings of the audit."""
    rollouts: tuple[Observation, ...] = ()
    """Findings of `diagnose`."""
    teaching: Teaching = NO_TEACHING
    """What short trainings showed."""
    plan: Plan = NO_PLAN
    """The plan."""
    shares: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    """Task -> its shares of the training rows and of their target tokens (estimated), 0..1."""


@dataclass(frozen=True, slots=True)
class Fact:
    """One figure of a run that bears on a finding, whose `figure` says which of these fields it has."""

    bears: Bearing = "open"
    """Whether its test shows the finding, excludes it, or neither."""
    task: str = ""
    """Task or group that it is about; empty where a check says it in its message."""
    other: str = ""
    """Another task, a behaviour, a word, or the message of a check."""
    change: Interval | None = None
    """Change with its 95 % interval, a share."""
    value: float = 0.0
    """A share without an interval, 0..1."""
    against: float = 0.0
    """Share that it is compared with."""
    count: int = 0
    """Items, rows or tests that show it."""
    total: int = 0
    """Of how many."""
    null: str = ""
    """What a check compared it with."""
    remedy: str = ""
    """What a check says to do."""


Rule = Callable[[RunParts], Iterable[Fact]]


@dataclass(frozen=True, slots=True)
class Finding:
    """One of the 28."""

    name: str
    """Short name; that of the laboratory's card where there is one."""
    title: str
    """What is true of the run if it is shown."""
    source: str
    """Where its facts are from: a key of `NEEDS`; empty where nothing tells."""
    rule: Rule
    """Returns the facts that bear on it."""
    figure: str = "{other}"
    """Sentence of a fact of a task and what it is compared with; a check has a message in its place."""
    remedy: str = ""
    """What to do about it, where no check says it; `{tasks}` are those of the facts."""


def bear(shown: bool, excluded: bool) -> Bearing:
    """Return what a test says of a finding."""
    return "for" if shown else "against" if excluded else "open"


def told(text: str) -> Rule:
    """Return a rule that says why there is no figure."""
    return lambda parts: (Fact(other=text),)


def checked(*names: str, excludes: bool = False, faults: Bearing = "for") -> Rule:
    """Return a rule on checks of rows, or of rollouts.

    Args:
        names: of the checks.
        excludes: whether they find all of it by their own documentation, so that a note of nothing excludes it.
        faults: what a warning says of the finding.
    """

    def rule(parts: RunParts) -> Iterator[Fact]:
        seen = [one for one in (*parts.audit, *parts.rollouts) if one.check in names]
        notes = [one for one in seen if one.task is None and one.severity == "info"]
        is_whole = all(one.total and one.count in (0, one.total) for one in notes)
        has_doubts = any(one.evidence for one in seen if one.task is not None)  # what chance may explain
        faulty = [one for one in seen if one.severity != "info"]
        bears = faults if faulty else bear(False, excludes and is_whole and not has_doubts)
        for one in faulty or notes or seen:
            text = one.message if one.task is None else f"{one.task}: {one.message}"
            yield Fact(bears, "", text, count=one.count, total=one.total, null=one.null, remedy=one.remedy)

    return rule


def fallen(*names: str) -> Rule:
    """Return a rule on behaviours that are shown less often, and checks; what no answer showed before cannot fall."""

    def rule(parts: RunParts) -> Iterator[Fact]:
        yield from checked(*names)(parts)
        for one in parts.verdict.behaviours:
            if one.behaviour in names and one.before > 0 and one.task not in list_explained(parts.verdict):
                bears = bear(one.shown and one.change.value < 0, one.change.low > -LEAST_CHANGE)
                yield Fact(bears, one.task, one.behaviour, one.change, one.before, one.after)

    return rule


def list_explained(verdict: Verdict) -> set[str]:
    """Tasks whose answers changed as wanted, since they were learned, or into another task's format."""
    learned = {change.task for change in verdict.tasks if change.word == "learned"}
    return learned | {task for form in verdict.forms for task in form.tasks}


def find_rare(parts: RunParts) -> Iterator[Fact]:
    """Rare tasks, and what became of them; the rarest where none is."""
    words = {change.task: change.word for change in parts.verdict.tasks}
    equal = 1 / max(len(parts.shares), 1)
    rare = {task for task, (rows, _) in parts.shares.items() if rows < RARE_PART * equal}
    for task in rare or sorted(parts.shares, key=lambda task: (parts.shares[task], task))[:1]:
        word = words.get(task, "not measured")
        bears = bear(task in rare and word in LOSSES, task not in rare or word in ("learned", "kept"))
        yield Fact(bears, task, word, value=parts.shares[task][0], against=equal)


def find_costs(parts: RunParts) -> Iterator[Fact]:
    """Losses of a task by short trainings on another one, and by the whole training of tasks that it had no rows of."""
    learned = join_some([change.task for change in parts.verdict.tasks if change.word == "learned"])
    for one in parts.verdict.tasks if learned and parts.shares else ():
        if one.task not in {*parts.shares, *list_explained(parts.verdict)}:
            yield Fact(bear(one.word == "lost", one.word == "kept"), one.task, learned, one.change)
    for pull in parts.teaching.pulls:
        bears = bear(pull.shown and pull.change.value < 0, pull.change.low > -NO_CHANGE_MARGIN)
        yield Fact(bears, pull.read_on, pull.trained_on, pull.change)


def find_hopeless(parts: RunParts) -> Iterator[Fact]:
    """Prompts of RL that are never right, or by luck; and cells that a plan of RL draws from, by their success before."""
    yield from checked("too hard", "hard groups", "shortcut", "luck", "one answer")(parts)
    drawn = {task for stage in parts.plan.stages if stage.objective == "grpo" for task in stage.weights}
    for cell in parts.plan.cells:
        if cell.task in drawn and cell.success is not None:
            bears = bear(cell.state == "hopeless", cell.state != "unknown")
            yield Fact(bears, cell.key, value=cell.success, total=cell.n)


def find_taken(parts: RunParts) -> Iterator[Fact]:
    """Formats that spread, and how many answers to each other task have one that was not its own."""
    for form in parts.verdict.forms:
        yield Fact("for", ", ".join(sorted(form.tasks)), f"the format of {form.owner}", count=form.answers, total=form.items)
    for task in {change.task for change in parts.verdict.form_changes} - list_explained(parts.verdict):
        own = [change for change in parts.verdict.form_changes if change.task == task]
        marks = [change for change in own if change.feature in ("new form", "form of another task")]
        marks += [change for change in own if change.feature == "data" and change.reported]  # JSON or code, where it spread
        count, items = max([change.after for change in marks], default=0), own[0].items
        bears = bear(any(change.reported for change in marks), wilson_ends(count, items)[1] < TAKEOVER)
        yield Fact(bears, task, "a format that they did not have before", count=count, total=items)


def find_taught(parts: RunParts) -> Iterator[Fact]:
    """What short trainings say that rows of each group teach."""
    for one in parts.teaching.taught:
        change = one.trained_over_dealt if one.word == "facts" else one.over_dealt
        yield Fact(bear(one.word in ("skill", "facts", "format only"), False), one.group, one.word, change)


def find_latent(parts: RunParts) -> Iterator[Fact]:
    """Tasks of which most items are right in some sample, and few samples are."""
    by_task = {change.task: change for change in parts.verdict.whole_tasks}
    for one in parts.verdict.behaviours:
        task = by_task.get(one.task)
        success = None if task is None else task.sampled[1] if task.sampled else task.after
        if one.behaviour == ANY_RIGHT and task is not None and success is not None:
            guessed = task.chance.high if task.chance else 0.0
            bears = bear(guessed < success <= SELDOM and one.after >= TAKEOVER, success > SELDOM or one.after < SELDOM)
            yield Fact(bears, one.task, value=one.after, against=success)


def find_weak_parts(parts: RunParts) -> Iterator[Fact]:
    """The part of each task's answers that is right least often, where it keeps whole answers below all other parts."""
    for change in parts.verdict.tasks:
        common = [part for part in change.parts if 2 * part.after.n >= change.items]  # others are in few answers
        weak, *others = sorted(common, key=lambda part: (part.after.value, part.name)) or (None,)
        if weak is not None and others and change.after is not None:
            is_held = max(weak.after.high, change.after) < others[0].after.low
            yield Fact(bear(is_held, False), change.task, weak.name, value=weak.after.value, against=others[0].after.value)


def find_noise(parts: RunParts) -> Iterator[Fact]:
    """Labels that disagree; shown where success ended above the most that they can be right."""
    yield from checked("conflicts", faults="open")(parts)
    by_task = {change.task: change for change in parts.verdict.whole_tasks}
    for one in parts.audit:
        task = by_task.get(one.task or "")
        if one.check == "conflicts" and one.severity != "info" and task is not None and task.after is not None:
            most = 1 - len(one.evidence) / max(one.total, 1)
            is_above = wilson_ends(round(task.after * task.items), max(task.items, 1))[0] > most
            yield Fact(bear(is_above, False), task.task, value=task.after, against=most)


NEEDS = {
    "verdict": "verdict.json: mixwright verdict BEFORE AFTER --eval EVAL",
    "audit": "observations.json: mixwright audit TRAIN --eval EVAL --out audit",
    "teaching": "teaching.json: mixwright plan MODEL TRAIN --minutes 20",
    "instructions": "observations.json: mixwright audit TRAIN --check instructions --out instructions",
    "rollouts": "diagnosis.json of an RL run: mixwright diagnose ROLLOUTS --json > RUN/diagnosis.json",
    "samples": "verdict.json with samples: mixwright verdict BEFORE AFTER --eval EVAL --no-suite --samples 8",
    "fresh": "what it prints: mixwright measure MODEL --eval EVAL --fresh FRESH --full",
    "dial": "what it prints: mixwright dial BASE TUNED --eval EVAL --keep TASK",
    "svf": "its report: mixwright run RUN.YAML (with svf among trial.arms)",
    "mined": "its report: mixwright mine RUN.YAML --miner {name} --try",
}
"""Source of facts -> the file that holds them, and the command that makes it, the next first; `{name}` is the finding's."""
NOT_SEEN, NOT_JUDGED = told("Mixwright does not look at this"), told("Not judged here")
BEHAVIOUR = "{task}: {behaviour} in {value} before, {against} after ({change} points); null: sides exchanged"
FINDINGS: dict[str, tuple[Finding, ...]] = {
    "What competes?": (
        Finding("orders", "Training on one task costs another", "teaching", find_costs,
                "Training on {other} changed {task} by {change} points; null: no change", "Replay {tasks}"),
        Finding("rare_tasks", "A rare task was lost", "audit", find_rare,
                "{task} ({other}) has {value} of the rows; null: an equal share, {against}",
                "Give all tasks the same number of rows"),
        Finding("adapters", "Training singular values (svf) keeps more", "svf", NOT_JUDGED),
        Finding("proxy", "A weaker dose of the tuning keeps more", "dial", NOT_JUDGED),
        Finding("plasticity", "The weights moved far, for little", "rollouts", checked("drift")),
    ),
    "What is too hard?": (
        Finding("latent", "The model can do what it hardly ever shows", "verdict samples", find_latent,
                "{value} of the items of {task} are right in some sample, {against} of the samples; null: guessing",
                "Train on its right samples (SFT or RL)"),
        Finding("too_hard", "RL draws prompts out of reach", "rollouts", find_hopeless,
                "{task}: {value} of {total} samples were right before; null: the band of the plan", "Leave it out of RL"),
        Finding("difficulty", "Prompts that taught at first no longer do", "rollouts", checked("stale prompts")),
        Finding("sparsity", "Few active neurons mark what is hard", "", NOT_SEEN),
    ),
    "Where is the model lopsided?": (
        Finding("formats", "One answer format takes over", "verdict", find_taken,
                "{count} of {total} answers to {task} have {other}; null: sides exchanged", "Replay answers of {tasks}"),
        Finding("instructions", "Rows teach to ignore the instruction", "instructions", checked("instructions")),
        Finding("self_conditioning", "Wrong steps stand together", "audit", checked("error_clusters", excludes=True)),
        Finding("cues", "A surface cue gives the answer away", "audit", checked("cues", excludes=True)),
        Finding("grounding", "It asks back or acknowledges less often", "verdict", fallen("asks", "acknowledges"),
                BEHAVIOUR, "Add rows on which it is right to ask"),
        Finding("embers", "Unlikely answers are wrong because they are unlikely", "", NOT_SEEN),
        Finding("diversity", "Samples become alike", "verdict", fallen(DISTINCT, ANY_RIGHT, "same", "distinct completions"),
                BEHAVIOUR, "Lower the learning rate, or stop earlier"),
    ),
    "What is not covered?": (
        Finding("composition", "Test items need what no training row has", "audit", checked("coverage")),
        Finding("subtasks", "One part of a task holds it back", "verdict", find_weak_parts,
                "{other} is right in {value} of the answers to {task}; null: the next part, {against}",
                "Add rows that vary that part"),
        Finding("contamination", "Rows hold test items or templates", "audit fresh", checked("contamination", "reworded")),
    ),
    "What can these rows teach?": (
        Finding("skills_or_facts", "Rows teach a skill, facts, or only a format", "teaching", find_taught,
                "{task}: {other} ({change} points more than the same rows with answers dealt out)",
                "Replay true rows for skills, own answers for facts"),
        Finding("preference_pairs", "Pairs differ by more than an error", "audit", checked("preferences", excludes=True)),
        Finding("pruning", "Fewer rows, chosen by difficulty, do", "mined", NOT_JUDGED),
        Finding("teacher_context", "Rows show what only their author knew", "audit", checked("unseen", "styles")),
        Finding("influence", "Rows chosen by gradients teach more", "mined", NOT_JUDGED),
        Finding("frontier", "Rows that the model can just follow teach more", "mined", NOT_JUDGED),
        Finding("traces", "Steps or calls are wrong", "audit", checked("traces", "code_comments", excludes=True)),
        Finding("noisy_labels", "Labels disagree, and training evens it out", "audit verdict", find_noise,
                "{value} of {task} are right after training; null: at most {against} of its labels are",
                "Leave these labels, or let most of them decide"),
        Finding("self_edits", "Facts are learned from rewrites", "mined", NOT_JUDGED),
    ),
}  # fmt: skip
"""Question -> its findings, the one of its main figure first."""


def decide(facts: Iterable[Fact]) -> tuple[State, list[Fact]]:
    """Return the state that facts, in any order, give to a finding, and those that decide it, the worst first."""
    found = sorted({*facts}, key=lambda fact: (_rank(fact), fact.task, fact.other))
    if shown := [fact for fact in found if fact.bears == "for"]:
        return "shown", shown
    return ("excluded" if found and all(fact.bears == "against" for fact in found) else "cannot tell"), found


def _rank(fact: Fact) -> float:
    return fact.change.low if fact.change else fact.value - fact.count / max(fact.total, 1)
