"""Records that cross a stage border, frozen. Left out on purpose: behaviour; a record only holds.

Flow: Example, Task, Cell -> Observation -> Measurement -> Plan -> outcomes, actions, decisions -> TrialResult -> Claim.
Small records are JSON, tables are Parquet, the plan is YAML; `to_data` and `from_data` are the only way in and out.
"""

from mixwright.records.corpus import SEVERITIES as SEVERITIES
from mixwright.records.corpus import Cell as Cell
from mixwright.records.corpus import Example as Example
from mixwright.records.corpus import Message as Message
from mixwright.records.corpus import MinedRow as MinedRow
from mixwright.records.corpus import MiningResult as MiningResult
from mixwright.records.corpus import MiningSummary as MiningSummary
from mixwright.records.corpus import Observation as Observation
from mixwright.records.corpus import Severity as Severity
from mixwright.records.corpus import Task as Task
from mixwright.records.corpus import TaskRows as TaskRows
from mixwright.records.corpus import Text as Text
from mixwright.records.corpus import cell_key as cell_key
from mixwright.records.corpus import plain as plain
from mixwright.records.finding import Curve as Curve
from mixwright.records.finding import Expectation as Expectation
from mixwright.records.finding import Plot as Plot
from mixwright.records.finding import Term as Term
from mixwright.records.finding import difference as difference
from mixwright.records.plan import TRAINING_ONLY_FIELDS as TRAINING_ONLY_FIELDS
from mixwright.records.plan import CellAssessment as CellAssessment
from mixwright.records.plan import CellState as CellState
from mixwright.records.plan import EngineOptions as EngineOptions
from mixwright.records.plan import Measurement as Measurement
from mixwright.records.plan import Objective as Objective
from mixwright.records.plan import Plan as Plan
from mixwright.records.plan import Stage as Stage
from mixwright.records.plan import TrainingSetup as TrainingSetup
from mixwright.records.serial import from_data as from_data
from mixwright.records.serial import to_data as to_data
from mixwright.records.steering import Action as Action
from mixwright.records.steering import ActionKind as ActionKind
from mixwright.records.steering import Alarm as Alarm
from mixwright.records.steering import CanaryOutcome as CanaryOutcome
from mixwright.records.steering import Decision as Decision
from mixwright.records.steering import GroupOutcome as GroupOutcome
from mixwright.records.steering import PairOutcome as PairOutcome
from mixwright.records.steering import SFTOutcome as SFTOutcome
from mixwright.records.steering import Signals as Signals
from mixwright.records.verdict import ChangeWord as ChangeWord
from mixwright.records.verdict import Claim as Claim
from mixwright.records.verdict import ClaimKind as ClaimKind
from mixwright.records.verdict import Effect as Effect
from mixwright.records.verdict import Interval as Interval
from mixwright.records.verdict import Judgement as Judgement
from mixwright.records.verdict import LeverWord as LeverWord
from mixwright.records.verdict import Power as Power
from mixwright.records.verdict import Proof as Proof
from mixwright.records.verdict import RunManifest as RunManifest
from mixwright.records.verdict import SeedRow as SeedRow
from mixwright.records.verdict import Selection as Selection
from mixwright.records.verdict import SelectionAdvice as SelectionAdvice
from mixwright.records.verdict import TrialResult as TrialResult
