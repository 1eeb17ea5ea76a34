"""A trial in a folder that a test filled: corpus, plan and starting models stand there."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from mixwright.config import RunConfig
from mixwright.corpus import Corpus
from mixwright.records import TrialResult
from mixwright.run.checked import CheckedRun
from mixwright.run.folder import RunFolder
from mixwright.run.preflight import check_trial
from mixwright.trial.arm_roles import Replanner
from mixwright.trial.stage import checked_trial, run_trial


def try_folder(run: RunFolder, config: RunConfig, *, replan: Replanner | None = None, **how: Any) -> TrialResult:
    """The result, after the checks that a command makes; what else is given is set in the trial."""
    corpus = Corpus.load(run.corpus)
    check_trial(config, corpus)
    return run_trial(replace(checked_trial(CheckedRun(config, run, corpus)), **how), replan=replan)
