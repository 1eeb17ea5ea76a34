"""Records of an evaluation log, the same whichever harness wrote it; a record only holds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from mixwright.corpus.reading import RowLocation


@dataclass(frozen=True, slots=True)
class LoggedAnswer:
    """One answer to one item, as a log has it."""

    task: str
    """Name of the task."""
    item: str
    """Id of the item within its task and its log."""
    scores: Mapping[str, float | None]
    """Metric -> its value in the metric's own unit; None where the harness gave none, NaN included."""
    location: RowLocation
    """Where it stands."""
    sample: str = ""
    """Which of several answers to the item it is: a sample, an epoch, a seed; empty where there is one."""
    prompt: str | None = None
    """What the model was given; None where the log does not say."""
    gold: str | None = None
    """The right answer."""
    completion: str | None = None
    """What the model wrote; None where nothing was written, or the log does not say."""
    readings: Mapping[str, str] = field(default_factory=dict)
    """Metric -> what of the completion it judged, or the option that was likeliest, where the log says."""
    options: tuple[str, ...] = ()
    """Texts of the options, in order, where there are any."""
    level: float | None = None
    """Difficulty; None without one."""
    cut: bool = False
    """Whether the completion is known to have been cut at a limit of tokens."""


@dataclass(frozen=True, slots=True)
class LoggedTask:
    """How the answers of one task came about, as far as a log says."""

    metrics: tuple[str, ...] = ()
    """Names of its metrics, in the order of the log; the first that can be judged is."""
    settings: Mapping[str, str] = field(default_factory=dict)
    """What must be equal before and after (few-shot examples, temperature, version ...), in words; only what is known."""
    sampled: bool | None = None
    """Whether answers were drawn at random; None where nobody knows."""
    unread_value_by_metric: Mapping[str, str] = field(default_factory=dict)
    """Metric without a number per answer -> words on what stands there."""
    lower_is_better: frozenset[str] = frozenset()
    """Metrics of which less is better."""
    groups: frozenset[str] = frozenset()
    """Groups of the harness that the task belongs to, such as `mmlu`."""
    counted: int | None = None
    """Items that the harness says it judged; None where it says nothing."""


@dataclass(frozen=True, slots=True)
class EvaluationLog:
    """What one model answered."""

    source: str
    """File or folder, as the user named it."""
    form: str
    """Name of the form of log."""
    model: str
    """Name of the model; empty where the log does not say."""
    tasks: Mapping[str, LoggedTask]
    """By name."""
    answers: tuple[LoggedAnswer, ...]
    """All of them; their order means nothing."""
    files: tuple[str, ...]
    """Files that were read."""
    unread: Mapping[str, str] = field(default_factory=dict)
    """File, or task, of which nothing could be read -> words on why, which follow the name of the log."""
