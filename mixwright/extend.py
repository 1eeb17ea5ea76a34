"""All that the packages of `mixwright_extras` may import of Mixwright; others may, too, but names here may change.

Imported on first use, so that what a plug-in does not use is not loaded.
"""

# ruff: noqa: F401 - the names are here for others

from __future__ import annotations

import ast
import functools
import importlib
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mixwright import catalog
    from mixwright.audit.chance import chance_explains, format_expected
    from mixwright.audit.cues import common_start
    from mixwright.audit.leaks import Leaks, find_leaks
    from mixwright.audit.rows import (
        EXCERPT_CHARACTERS,
        MAX_NAMES_SHOWN,
        Listing,
        Reader,
        Row,
        draw_sample,
        has_held_out,
        hash64,
        positions_by_code,
        rows,
        rows_by_task,
        sample_training_rows,
    )
    from mixwright.audit.steps.equations import Equation, read_equations
    from mixwright.audit.steps.wrong_values import (
        LARGEST,
        Step,
        Values,
        digit_rules,
        is_masked,
        number_rules,
        observe_values,
        read_mask,
    )
    from mixwright.audit.text import BRIEF_ANSWER_CHARACTERS, read_conclusion, to_visible
    from mixwright.behaviours import BEHAVIOURS, count_hedges, read_behaviours
    from mixwright.catalog import create
    from mixwright.config import MAX_LEARNING_RATE, CorpusConfig, MeasureConfig, ModelConfig, RunConfig, WarmupConfig
    from mixwright.contracts import Adapter, Arm, Check, Miner, Monitor, Planner, Probe
    from mixwright.corpus import Corpus, read_corpus, read_source, texts
    from mixwright.corpus.identity import prompt_key
    from mixwright.corpus.masks import UNTRAINED_TURNS, is_trained, mask_of
    from mixwright.corpus.rows import pc
    from mixwright.corpus.timed_grades import TimedGrades
    from mixwright.errors import InputError, check_range, join_some, missing_extra, told_as, unknown_name
    from mixwright.estimates.chance import RIGHT_FROM_SCORE
    from mixwright.estimates.crossed import MIN_PROMPTS, Estimate, compare_prompts, estimate_crossed
    from mixwright.estimates.intervals import (
        COVERAGE,
        Z,
        binomial_tail,
        gauss_legendre,
        holm,
        hypergeometric_tail,
        jackknife,
        mean_interval,
        rate,
        share_interval,
        wilson,
    )
    from mixwright.estimates.readings import READINGS
    from mixwright.final_answer import find_stated_answers
    from mixwright.graders import Grader
    from mixwright.learner.adapting import WEIGHTS_FILE, matrices, read_settings, write_settings
    from mixwright.learner.bases import BaseJob, base_of, build_base
    from mixwright.learner.batches import left_padded, pass_token_limit, reading_mode, right_padded, token_batches
    from mixwright.learner.learner import Learner
    from mixwright.learner.load import load_base, load_learner, plain_source
    from mixwright.learner.prompt_form import TINY_TEMPLATE
    from mixwright.learner.training_rows import TrainingRow, read_training_rows, row_token_limit, row_tokens, target_of
    from mixwright.learner.vllm_engine import run_engine
    from mixwright.measure.bases import base_name
    from mixwright.measure.passes import ExampleRollouts, Passes
    from mixwright.measure.row_losses import RowLosses
    from mixwright.mine.choosing import TrainRows, check_row_count
    from mixwright.mine.short_trainings import Losses, copy_with_adapter, draw_batches, train_on
    from mixwright.plan.baseline import as_shares, task_counts, weights_only
    from mixwright.records import (
        Alarm,
        Cell,
        Example,
        GroupOutcome,
        Interval,
        Measurement,
        MinedRow,
        MiningResult,
        Observation,
        PairOutcome,
        Plan,
        Severity,
        SFTOutcome,
        Signals,
        Stage,
        Text,
        TrainingSetup,
        TrialResult,
        cell_key,
        plain,
    )
    from mixwright.records.corpus import Message
    from mixwright.run.checked import CheckedRun
    from mixwright.run.folder import RunFolder, check_regular, read_json, replacing, replacing_folder, write_table
    from mixwright.run.opening import open_with_workers
    from mixwright.run.progress import report_share
    from mixwright.run.workers import Job, Workers
    from mixwright.skeleton import skeleton
    from mixwright.steer.checkpointable import Checkpointable
    from mixwright.tool_calls import text_of
    from mixwright.verbs import output
    from mixwright.verbs.direct import prepare, read_rows
    from mixwright.verbs.options import EVAL_OPTION, PLACING, Folder, Json, Measuring, Placing, open_settings
    from mixwright.verbs.ready import PreparedModels


@functools.cache
def _find_modules() -> dict[str, str]:
    """Return the module of each name, as the imports above say, which only type checkers run."""
    imports = [node for node in ast.walk(ast.parse(Path(__file__).read_bytes())) if isinstance(node, ast.ImportFrom)]
    return {alias.name: str(node.module) for node in imports for alias in node.names}


def __getattr__(name: str) -> Any:
    """Import a name, or a module that is one of the names. Raises AttributeError for any other."""
    if name.startswith("_") or name not in (modules := _find_modules()):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module = importlib.import_module(modules[name])
    return getattr(module, name) if hasattr(module, name) else importlib.import_module(f"{modules[name]}.{name}")
