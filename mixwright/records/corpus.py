"""Records of the data: examples, tasks, cells, and what a check saw in them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from mixwright.tool_calls import text_of

Message = Mapping[str, Any]
"""Its role and its content, both text; of one that is not trained on `"train": False`, too; of the assistant's calls
`tool_calls`, and of the first one of a prompt the row's `tools`."""
Text = str | tuple[Message, ...]
Severity = Literal["info", "warning", "error"]
SEVERITIES: tuple[Severity, ...] = ("error", "warning", "info")
"""The worst first."""


def plain(text: Text | None) -> str:
    """What a `Text` says, as one string: chat messages, with their tool calls, joined by newlines; empty for None."""
    if text is None or isinstance(text, str):
        return text or ""
    return "\n".join(map(text_of, text))


def messages(text: Text) -> str | list[dict[str, Any]]:
    """Return a text as trainers read it: the string itself, or a list of messages without the tools that come with them."""
    return text if isinstance(text, str) else list_messages(text)


def list_messages(turns: Iterable[Message]) -> list[dict[str, Any]]:
    """Return chat messages as trainers read them, without the tools that come with them."""
    return [{name: value for name, value in message.items() if name != "tools"} for message in turns]


@dataclass(frozen=True, slots=True)
class Example:
    """One thing to learn from."""

    id: str
    """Unique in its corpus."""
    task: str
    """Name of its `Task`."""
    prompt: Text
    """Plain text, or chat messages ({"role", "content"}) when the source was conversational."""
    target: Text | None = None
    """What SFT trains on after the prompt (TRL's `completion`); None where the row has none."""
    answer: str | None = None
    """The gold answer a grader compares with."""
    level: float | None = None
    """Difficulty as one number, larger is harder; None where the source says nothing."""
    knobs: Mapping[str, float] = field(default_factory=dict)
    """The difficulty settings behind the level, by name."""
    skills: tuple[str, ...] = ()
    """What it exercises, for coverage."""
    chosen: Text | None = None
    """Preferred completion (DPO)."""
    rejected: Text | None = None
    """Dispreferred completion (DPO)."""
    source: str = ""
    """Where it came from: file and line, or generator."""
    split: str = "train"
    """train, eval, or rehearse: rows of `corpus.rehearse`, which only a plan that names their task draws."""
    extra: Mapping[str, Any] = field(default_factory=dict)
    """Other columns of the row, for graders that need them; JSON values only."""

    @property
    def tools(self) -> list[dict[str, Any]]:
        """Schemas of the tools that the prompt offers; it carries them, wherever it goes."""
        return [] if isinstance(self.prompt, str) else list(self.prompt[0].get("tools") or ())


@dataclass(frozen=True, slots=True)
class Task:
    """A named family of examples that one grader can judge."""

    name: str
    """Unique in its corpus."""
    grader: str = "exact"
    """Name of a grader (`mixwright list graders`) or `package.module:function`."""
    kind: Literal["verifiable", "text", "preference"] = "verifiable"
    """verifiable: has answers; text: has targets only; preference: has chosen and rejected."""
    share: float = 0.0
    """Share of the corpus's rows, 0..1."""


@dataclass(frozen=True, slots=True)
class Cell:
    """task x level: the unit that competence, band and evidence are kept for."""

    task: str
    """Task name."""
    level: float | None
    """Level, or None for a task without levels."""
    count: int
    """Examples of the corpus in it."""
    chance: float = 0.0
    """Chance level, 0..1: success of the best rule without the skill, chosen on other rows (`estimates/chance.py`)."""
    rule: str = ""
    """The rule: a constant answer, a position, blind choice, a number of the prompt."""
    rehearsal_rows: int = 0
    """Rows of it beside the training rows that may be trained on to keep it: those of `corpus.rehearse`."""

    @property
    def key(self) -> str:
        """The cell's name in files and tables: `task@level`."""
        return cell_key(self.task, self.level)


def cell_key(task: str, level: float | None) -> str:
    """`gcd@2` for task gcd at level 2, `gcd` for a task without levels. Raises nothing."""
    return task if level is None else f"{task}@{level:g}"


@dataclass(frozen=True, slots=True)
class Observation:
    """What a check saw in the data."""

    check: str
    """Name of the check."""
    task: str | None
    """Task it is about; None when it is about the corpus."""
    severity: Severity
    """info: good to know; warning: look at it; error: do not train or evaluate on this."""
    count: int
    """How many rows (or cells, or pairs) show it."""
    total: int
    """Of how many; 0 where nothing could be checked."""
    message: str
    """One sentence."""
    remedy: str
    """What to do; empty for info."""
    null: str = ""
    """What it was compared with: what would be seen by chance or in a healthy corpus."""
    evidence: tuple[Mapping[str, Any], ...] = ()
    """Rows, or pairs of rows, that show it: all of them up to a bound that the message names; JSON values."""
    drop: str | None = None
    """Which row of each piece of evidence can be left out of train, if it is the same to the character: what its fields'
    names begin with (`train_`, `repeat_`, or nothing for evidence of single rows). None where somebody has to look."""


@dataclass(frozen=True, slots=True)
class MinedRow:
    """A training row that was chosen."""

    id: str
    """Of the example in the corpus."""
    reason: str
    """One sentence: what speaks for it."""


@dataclass(frozen=True, slots=True)
class MiningResult:
    """What a miner found: chosen rows, or new ones."""

    miner: str
    """Name of the plug-in."""
    rows: tuple[MinedRow, ...] = ()
    """Chosen training rows; empty where new rows are made."""
    new_rows: tuple[Example, ...] = ()
    """New rows; `extra` has `parents` (ids of the examples they come from) and `provenance` (one sentence)."""
    null_rows: tuple[Example, ...] = ()
    """As many new rows made without what the miner knows; empty where random rows of the corpus are the null."""
    simple_rule_rows: tuple[MinedRow, ...] = ()
    """Rows that the simplest rule with the same knowledge takes; empty where that rule is all rows or random ones."""
    simple_rule_description: str = ""
    """What that rule is, in words that follow "against"."""
    rollouts: int = 0
    """Completions that were sampled for it, which are charged."""
    notes: tuple[str, ...] = ()
    """What a reader has to know before it is used; one sentence each."""


@dataclass(frozen=True, slots=True)
class TaskRows:
    """Rows of one task before and after mining."""

    training_rows: int
    """That were there."""
    mined_rows: int
    """That were chosen or made."""


@dataclass(frozen=True, slots=True)
class MiningSummary:
    """What a miner leaves beside its table, for whoever shows it or tries it."""

    miner: str
    """Name of the plug-in."""
    kind: Literal["chosen rows", "new rows"]
    """What the table holds."""
    rows: int
    """Of the table."""
    training_rows: int
    """That there are."""
    tasks: Mapping[str, TaskRows]
    """By task."""
    simple_rule: str
    """What the simplest rule with the same knowledge is; empty where there is none."""
    notes: tuple[str, ...]
    """What a reader has to know."""
    price: str
    """What mining cost."""
    mined_from: str = ""
    """Digest of all that the table was mined from, by which it is known that it need not be mined again."""
