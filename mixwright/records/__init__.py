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
)
from mixwright.records.plan import (
    CellPlan,
    CellState,
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
    Claim,
    ClaimKind,
    Effect,
    Interval,
    RunManifest,
    SeedRow,
    TrialResult,
    VerdictWord,
)

__all__ = [
    "Action",
    "ActionKind",
    "Alarm",
    "CanaryOutcome",
    "Cell",
    "CellPlan",
    "CellState",
    "Claim",
    "ClaimKind",
    "Decision",
    "Effect",
    "Example",
    "Forecast",
    "GroupOutcome",
    "Interval",
    "Measurement",
    "Message",
    "Observation",
    "Outcome",
    "PairOutcome",
    "Plan",
    "RunManifest",
    "SeedRow",
    "Severity",
    "Signals",
    "Stage",
    "Task",
    "Text",
    "TrialResult",
    "VerdictWord",
    "cell_key",
    "from_data",
    "to_data",
]
