"""The frozen records that cross a stage border. Left out on purpose: behaviour; a record only holds.

Flow: Example, Task, Cell -> Observation -> Measurement -> Plan -> outcomes, actions, decisions -> TrialResult -> Claim.
Small records are JSON, tables are Parquet, the plan is YAML; `to_data` and `from_data` are the only way in and out.
"""

from mixwright.records.corpus import (
    Cell,
    Example,
    Message,
    Observation,
    Severity,
    Task,
    Text,
    cell_key,
    plain,
)
from mixwright.records.plan import (
    CellPlan,
    CellState,
    EngineOptions,
    Forecast,
    Measurement,
    Plan,
    Stage,
)
from mixwright.records.serial import from_data, to_data
from mixwright.records.steering import (
    Action,
    ActionKind,
    Alarm,
    CanaryOutcome,
    Decision,
    GroupOutcome,
    Outcome,
    PairOutcome,
    Signals,
)
from mixwright.records.verdict import (
    ChangeWord,
    Claim,
    ClaimKind,
    Effect,
    Interval,
    Judgement,
    LeverWord,
    Proof,
    RunManifest,
    SeedRow,
    TrialResult,
)

__all__ = [
    "Action",
    "ActionKind",
    "Alarm",
    "CanaryOutcome",
    "Cell",
    "CellPlan",
    "CellState",
    "ChangeWord",
    "Claim",
    "ClaimKind",
    "Decision",
    "Effect",
    "EngineOptions",
    "Example",
    "Forecast",
    "GroupOutcome",
    "Interval",
    "Judgement",
    "LeverWord",
    "Measurement",
    "Message",
    "Observation",
    "Outcome",
    "PairOutcome",
    "Plan",
    "Proof",
    "RunManifest",
    "SeedRow",
    "Severity",
    "Signals",
    "Stage",
    "Task",
    "Text",
    "TrialResult",
    "cell_key",
    "from_data",
    "plain",
    "to_data",
]
