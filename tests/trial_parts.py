"""Run folders with a corpus, a plan and a tiny model to start from, and trials in them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from mixwright.config import ModelConfig, RunConfig
from mixwright.corpus import Corpus
from mixwright.records import Plan, TrialResult
from mixwright.run.checked import CheckedRun
from mixwright.run.folder import RunFolder, write_plan
from mixwright.run.preflight import check_trial
from mixwright.trial.stage import checked_trial, run_trial
from mixwright_extras.tiny.model import build_tiny


def start_run(folder: Path, corpus: Corpus, plan: Plan, model: ModelConfig) -> RunFolder:
    """Make a run folder with this corpus, this plan and a new model, `bases/base-0`."""
    run = RunFolder(folder)
    corpus.save(run.corpus)
    write_plan(run.plan, plan)
    texts = [f"{row.prompt}{row.target or row.answer or row.chosen}" for row in corpus]
    build_tiny(texts, model, 0).save(run.path / "bases" / "base-0")
    return run


def try_folder(run: RunFolder, config: RunConfig, **how: Any) -> TrialResult:
    """The result, after the checks that a command makes; what else is given is set in the trial."""
    corpus = Corpus.load(run.corpus)
    check_trial(config, corpus)
    return run_trial(replace(checked_trial(CheckedRun(config, run, corpus)), **how))
