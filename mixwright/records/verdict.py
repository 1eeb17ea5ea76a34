"""The verdict on a model: everything that a page, a terminal, Markdown, JUnit, JSON or an exit code says."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from mixwright.records.corpus import Observation
from mixwright.records.plan import Plan
from mixwright.records.trial import Interval, RunManifest, TrialResult

GateOutcome = Literal["passed", "damaged", "inconclusive"]
Reason = Literal[
    "one format took over", "answers were lost", "a task was lost", "the average fell", "prompts matter less",
    "the commonest answer", "nothing right", "nothing right greedily", "a task was not judged", "nothing was graded",
    "too few items", "nothing to protect", "kept", "not learned", "not measured", "trial", "nothing compared",
    "a behaviour changed", "the same", "not the same",
]  # fmt: skip
"""Why the outcome is what it is; `trial`: the recommendation of a trial decides (`Verdict.advice`)."""
TaskWord = Literal[
    "learned", "lost", "kept", "higher", "lower", "not shown", "less dependent", "commonest", "sharper", "never right",
    "too few items", "too few right", "not measured", "not graded",
]  # fmt: skip
"""What became of a task:

- learned: success rose, by answers that depend on their prompts, to above the chance level.
- lost: success fell.
- kept: the whole interval lies within the margin.
- higher, lower: its own interval is above or below 0, but the reading is not: luck, or chance among several tasks, is not
  ruled out.
- not shown: none of these is shown.
- less dependent: what the answers earn beyond answers to other prompts fell. It counts as damage.
- commonest: success rose because the commonest answer is given more often.
- sharper: sampled success rose, greedy success did not.
- never right: no answer was right before or after.
- too few items: fewer than a judgement needs.
- too few right: so little was right before that a loss could not be seen; it counts in no mean, and no bound is printed.
- not measured: nothing was measured after on the same items.
- not graded: no grader judges its answers, and nothing shows that they are lost.
"""


Feature = Literal[
    "empty", "cut", "repeating", "prompt copied", "other language", "data", "one answer", "shorter", "longer",
    "own form gone", "new form", "form of another task",
]  # fmt: skip
"""What an answer can show that needs no grader."""
RecalledWord = Literal["covered", "partly", "gone", "hidden", ""]
"""What a later model still knows of lost answers, as `verdict/rules/recalled.py` has it; hidden: behind a new form."""
CauseKind = Literal[
    "empty", "other format", "new format", "format lost", "repeating", "cut", "prompt copied", "other language", "refuses",
    "asks back", "one answer", "other label", "unread", "wrong step", "shorter", "longer",
]  # fmt: skip
"""What can explain that a right answer was lost, as `verdict/rules/causes.py` tests it, the most specific first:

- other format, new format, format lost: the form of another task's answers, one that no task had, or the task's own gone.
- refuses, asks back: instead of answering.
- one answer, other label: the same answer to everything; answers of one kind now always named as one other kind.
- unread: the right answer stands in it, and the grader does not take it.
- wrong step: it is worked out, and a step on the way is computed wrong.
- shorter, longer: at most half, or at least double, the length of the earlier answer.
"""


@dataclass(frozen=True, slots=True)
class PartChange:
    """A part of a task's greedy answers, such as one field of JSON, and the share of answers in which it is right."""

    name: str
    """`valid JSON`, `same keys`, or a field of the JSON."""
    before: Interval
    """Share before."""
    after: Interval
    """Share after."""


@dataclass(frozen=True, slots=True)
class TaskChange:
    """One task, or one level of it, before and after."""

    task: str
    """Task name."""
    level: float | None
    """Level; None for a task without levels, and for a whole task of several levels."""
    word: TaskWord
    """What became of it."""
    before: float | None
    """Mean of the outcome over items (and seeds), in its unit; None where no grader judges the task."""
    after: float | None
    """The same after; None where it was not measured."""
    change: Interval
    """After minus before, in the outcome's unit; n is 0 where it was not measured."""
    items: int = 0
    """Items that both models answered."""
    whole: bool = False
    """A whole task of several levels."""
    gained: int = 0
    """Items that only the later model got right; 0 where answers are not right or wrong."""
    lost: int = 0
    """Items that only the earlier model got right."""
    parts: tuple[PartChange, ...] = ()
    """Parts of its answers, such as the fields of JSON."""
    protected: bool = False
    """Whether the gate protects it."""
    loss_limit: float | None = None
    """Loss that it has to exclude by itself, a share; None where its items can exclude none."""
    limit_excluded: bool = True
    """Whether that loss is excluded."""
    chance: Interval | None = None
    """Success of a rule without the skill on these items."""
    shuffled: Interval | None = None
    """Change of the success of the same answers with prompts shuffled (S)."""
    dependence: Interval | None = None
    """Change of the success that depends on the prompt (D)."""
    sampled: tuple[float, float] | None = None
    """Success of sampled answers before and after, where greedy answers are judged."""
    detectable: float = 0.0
    """Size of a change that these items would show in 80 % of cases."""
    adjusted_p: float | None = None
    """p value after Holm's correction over all tasks and levels; None where it was not judged."""


@dataclass(frozen=True, slots=True)
class TotalChange:
    """The primary outcome over all held-out items, mean over tasks."""

    word: TaskWord
    """What became of it."""
    change: Interval
    """After minus before."""
    items: int
    """Items."""
    gained: int = 0
    """Items that only the later model got right."""
    lost: int = 0
    """Items that only the earlier model got right."""
    shuffled: Interval | None = None
    """Change of success with prompts shuffled."""
    dependence: Interval | None = None
    """Change of the success that depends on the prompt."""
    sampled: Interval | None = None
    """Change of sampled success."""
    detectable: float = 0.0
    """Size of a change that these items would show in 80 % of cases."""


@dataclass(frozen=True, slots=True)
class Ring:
    """A group of tasks that was judged by itself."""

    name: str
    """What its tasks have in common."""
    outcome: GateOutcome
    """passed, damaged or inconclusive."""
    mean: Interval | None
    """Mean change over its tasks."""


@dataclass(frozen=True, slots=True)
class Gate:
    """Non-inferiority of the protected tasks."""

    mean: Interval | None
    """Mean change over the protected tasks and levels, each counted once; None where none could be compared."""
    margin: float
    """Mean loss that had to be excluded, a share."""
    protected: tuple[str, ...]
    """Tasks with protected items."""
    averaged: int
    """Protected tasks and levels in the mean: those that both models answered; without names, those that did not rise."""
    cells: int
    """Protected tasks, levels counted each."""
    named: bool
    """Whether the user named them; otherwise they are all tasks with a right answer before."""
    dependence: Interval | None = None
    """Mean change of the success that depends on the prompt."""
    cell_loss_limit: float | None = None
    """Least loss that a single task or level had to exclude."""
    unseen_loss: float | None = None
    """Largest loss of one task or level that would pass in more than one of 20 cases."""
    items_needed: int | None = None
    """Items per task and level that would pass an unharmed model in about nine of ten cases."""
    look: str = ""
    """Which of the planned interim analyses decided; empty where all items were measured at once."""
    rings: tuple[Ring, ...] = ()
    """Groups of tasks that were judged each; the worst of them decides, and its mean is the mean here."""
    request_forms: Mapping[str, Interval] = field(default_factory=dict)
    """Form of general requests -> their mean change, which decides nothing."""
    behaviours: tuple[str, ...] = ()
    """Behaviours that the user protects."""
    same: bool = False
    """Whether a change in either direction was judged: both are to be one model."""


@dataclass(frozen=True, slots=True)
class FormTaken:
    """Tasks whose answers now have the format of another task's answers."""

    owner: str
    """The other task."""
    tasks: tuple[str, ...]
    """Tasks that took it over."""
    answers: int
    """Their answers that have it now."""
    items: int
    """Their answers."""
    lost: int = 0
    """Their items that were right before and are wrong now."""
    lost_with_form: int = 0
    """Those of them whose answer has the format."""


@dataclass(frozen=True, slots=True)
class FormChange:
    """One feature of one task's answers, before and after."""

    task: str
    """Name of the task."""
    feature: Feature
    """What an answer shows; of `shorter` and `longer`: at most half, or at least double, the length of its counterpart."""
    before: int
    """Items whose answer before shows it."""
    after: int
    """Items whose answer after shows it; of `own form gone` both count those that still have the form."""
    items: int
    """Items that were answered before and after."""
    p: float
    """One-sided exact p value."""
    adjusted_p: float
    """The same after Holm's correction."""
    reported: bool = False
    """Whether it is shown: significant, in half of the items where the feature is a form, and not what the task asks for."""
    pattern: str = ""
    """The answer, skeleton or mark that it is about; empty for other features."""
    other_task: str = ""
    """The task whose form it is; of `form of another task` alone."""


@dataclass(frozen=True, slots=True)
class AnswerPair:
    """The answers of both models to one prompt."""

    task: str
    """Task name."""
    level: float | None
    """Level of the item."""
    prompt: str
    """Text of the prompt."""
    gold: str
    """Gold answer; empty where there is none."""
    before: str
    """Answer of the earlier model."""
    after: str
    """Answer of the later model."""
    score_before: float
    """0..1; 1 is right."""
    score_after: float
    """The same of the later model."""
    cut: tuple[bool, bool] = (False, False)
    """Whether each answer ran into the token limit."""
    graded: bool = True
    """Whether a grader judged the answers."""

    @property
    def texts(self) -> tuple[str, str]:
        """Both answers."""
        return self.before, self.after


@dataclass(frozen=True, slots=True)
class Cause:
    """Something that explains lost answers of one task; each lost answer counts for the first kind that it shows."""

    task: str
    """Name of the task."""
    kind: CauseKind
    """What the lost answers are now."""
    items: int
    """Lost answers that it explains."""
    lost: int
    """Answers of the task that were right before and are wrong now."""
    kept_with: int = 0
    """Answers that are right before and after, and show it too."""
    kept: int = 0
    """Answers that are right before and after."""
    is_specific: bool = True
    """Whether it is commoner among lost answers than among those that stayed right; else it explains nothing."""
    pattern: str = ""
    """The task whose format it is, the one answer, or the label and what it is called now."""
    p: float = 1.0
    """Exact p value that answers which were right show it no more often now."""
    examples: tuple[AnswerPair, ...] = ()
    """Up to three of the lost answers."""


@dataclass(frozen=True, slots=True)
class ColumnChange:
    """Items with one value of a column that changed unlike the other items of their tasks."""

    column: str
    """Column of the test items."""
    value: str
    """Its value."""
    gap: Interval
    """Their change of success minus that of the others, 95 %."""
    change: float
    """Their own mean change."""
    items: int
    """How many there are."""
    adjusted_p: float
    """p value after Holm's correction over all values of all columns."""


@dataclass(frozen=True, slots=True)
class Recalled:
    """What the later model still knows of a task's lost answers, begun as the earlier model began them."""

    task: str
    """Name of the task."""
    items: int
    """Lost answers that were read."""
    completed: int
    """Those that it would end rightly."""
    beaten: float | None
    """Mean share of other right answers of the task that are less probable than the right one; None where there is none."""
    word: RecalledWord = ""
    """What that says of them; empty where too few were read."""


@dataclass(frozen=True, slots=True)
class BehaviourChange:
    """How many of a task's answers do something beside answering, before and after."""

    task: str
    """Name of the task."""
    behaviour: str
    """One of `mixwright.behaviours.BEHAVIOURS`, or `distinct samples` or `right in any sample` of sampled answers."""
    before: float
    """Share of items before."""
    after: float
    """Share of them after."""
    change: Interval
    """After minus before, 95 % over items; n is the number of items."""
    adjusted_p: float
    """Two-sided exact p value after Holm's correction."""
    shown: bool
    """Whether it changed by more than chance and by at least ten points."""
    protected: bool = False
    """Whether the gate protects it."""


@dataclass(frozen=True, slots=True)
class AnswersKept:
    """How much of what a task's answers said the later model still says, by words that tell its answers apart."""

    task: str
    """Name of the task."""
    kept: Interval
    """0: no more than answers to other questions do, 1: all of it."""
    lost: bool
    """Whether it is shown to be gone, and what the targets say is not said more often than before."""


@dataclass(frozen=True, slots=True)
class FormerAnswers:
    """How probable a task's former answers became."""

    task: str
    """Name of the task."""
    items: int
    """Answers that were read."""
    tokens: int
    """Tokens of them, the end token included where they ended."""
    before: float
    """Log-probability of them under the model that gave them, nats a token."""
    change: float
    """After minus before, nats a token; negative: they became less probable."""
    low: float
    """Lower end of the 95 % interval over items."""
    high: float
    """Upper end of it."""


@dataclass(frozen=True, slots=True)
class DecisionGroup:
    """Decisions of one kind, or alarms of one monitor, that a steered run took."""

    name: str
    """Kind of the decision and what it is about."""
    is_alarm: bool
    """Whether a monitor raised it."""
    times: int
    """How often, over all seeds."""
    seeds: int
    """Seeds in which it was taken."""
    first_step: float
    """Step of the first one."""
    last_step: float
    """Step of the last one."""
    old: str
    """Value before the first one, as text."""
    new: str
    """Value after the last one, as text."""
    because: str
    """Reason of the last one."""


@dataclass(frozen=True, slots=True)
class Step:
    """Something to do next."""

    text: str
    """What it is for, in words."""
    command: str
    """A line to copy."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """What became of a model, why, and what to do next."""

    name: str
    """Name of the run or comparison."""
    about: str
    """How it was trained and measured, in one line."""
    before: str
    """Name of the earlier model."""
    after: str
    """Name of the later model, or of the arm of a trial."""
    outcome: GateOutcome
    """The gate's answer."""
    reason: Reason
    """Why."""
    exit_code: int
    """0 passed, 3 damaged, 4 inconclusive; 0 where the gate was left out."""
    headline: str
    """The answer as one sentence (`verdict/words.py`)."""
    measure: str
    """Name of the outcome: success, held-out loss, preference accuracy."""
    unit: str = "share"
    """Of the outcome and its changes."""
    decoding: Literal["greedy", "sampled", "loss", "preference", "margin"] = "greedy"
    """What the outcome is read from."""
    graded: bool = True
    """Whether answers were graded."""
    lower_is_better: bool = False
    """Whether a lower outcome is better."""
    total: TotalChange | None = None
    """Over all held-out items; None where nothing could be compared."""
    gate: Gate | None = None
    """What was protected, and what is excluded."""
    tasks: tuple[TaskChange, ...] = ()
    """Every task and level, the worst first."""
    forms: tuple[FormTaken, ...] = ()
    """Answer formats that spread to other tasks."""
    not_learned: tuple[str, ...] = ()
    """Tasks that were not protected, and are not shown to be above chance after, where nothing else was learned."""
    not_judged: Mapping[str, str] = field(default_factory=dict)
    """Task -> why nothing says what became of it."""
    lost_answers: Mapping[str, str] = field(default_factory=dict)
    """Task that no grader judges -> what its answers are now, where they are lost."""
    same_answers: bool = False
    """Whether both models gave the same answers."""
    pairs: tuple[AnswerPair, ...] = ()
    """Up to three pairs of answers that changed, lost ones first."""
    why: tuple[str, ...] = ()
    """What explains the outcome, one sentence each, the most important first."""
    next: tuple[Step, ...] = ()
    """What to do next, the first thing first."""
    advice: str = ""
    """Rule that decided a trial's recommendation (`verdict/rules/trial.py`)."""
    notes: tuple[Observation, ...] = ()
    """Faults and facts of how it was measured."""
    audit: tuple[Observation, ...] = ()
    """Findings of the run's audit."""
    trial: TrialResult | None = None
    """Arms, effects and judgements of a trial."""
    plan: Plan | None = None
    """The plan that was trained."""
    manifest: RunManifest | None = None
    """Settings, versions, seeds and inputs."""
    form_changes: tuple[FormChange, ...] = ()
    """Every feature of the answers that was tested without a grader."""
    causes: tuple[Cause, ...] = ()
    """What explains the lost answers of damaged tasks, per task the largest share first."""
    by_column: tuple[ColumnChange, ...] = ()
    """Values of other columns of the items, such as a source, whose items changed unlike others, the worst first."""
    recalled: tuple[Recalled, ...] = ()
    """What is still known of lost answers, of tasks of which a model could be asked."""
    behaviours: tuple[BehaviourChange, ...] = ()
    """What answers do beside answering, of every task and behaviour that any answer shows."""
    answers_kept: tuple[AnswersKept, ...] = ()
    """What the answers of each task still say of what they said before."""
    former: tuple[FormerAnswers, ...] = ()
    """Likelihood of the earlier model's answers under the later one."""
    decisions: tuple[DecisionGroup, ...] = ()
    """What a steered run decided, and its alarms."""
    stages: Mapping[str, tuple[float | None, ...]] = field(default_factory=dict)
    """Task -> success after each stage of the plan, mean over seeds; empty for plans of one stage."""
    extra: Mapping[str, Any] = field(default_factory=dict)
    """Section -> the blocks that it adds to the page."""
    format: int = 2
    """Version of this record: rises when a field changes its meaning or goes away."""

    @property
    def whole_tasks(self) -> list[TaskChange]:
        """The change of each task over all of its levels; of one with a single level, that of the level."""
        joined = {change.task for change in self.tasks if change.whole}
        return [change for change in self.tasks if change.whole or change.task not in joined]
