"""Refusals from settings and data alone, before a run folder is made or a model is loaded."""

from __future__ import annotations

import importlib.util
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from mixwright import catalog
from mixwright.config import ADAPTER_FILES, PLANNER_BY_OBJECTIVE, CorpusConfig, ModelConfig, RunConfig, TrainConfig
from mixwright.corpus import Corpus
from mixwright.corpus.rows import pc
from mixwright.corpus.trainable import NEEDED_COLUMNS, check_training
from mixwright.errors import InputError, join_some, missing_extra, unknown_name
from mixwright.estimates.readings import GRADED_OUTCOMES, outcome_of
from mixwright.learner.bases import TINY_PREFIX, find_builder
from mixwright.learner.checkpoint_checks import check_files
from mixwright.learner.engines import check_engine
from mixwright.learner.sources import SMOLLM2, is_gguf
from mixwright.mine.own_answers import check_rehearsal
from mixwright.records import Plan, Stage, from_data, to_data
from mixwright.trial.arm_roles import choose_arms, make_branch

COMPETENCE_PROBE = "competence"
"""Probe that success is read from."""
TRAINING_PACKAGES = ("torch", "transformers", "trl", "datasets")


def check_settings(config: RunConfig, corpus: Corpus) -> None:
    """Everything that can be refused from settings and corpus alone.

    Raises:
        InputError: an unknown plug-in or option, packages missing, a grader that cannot be loaded, no such model folder.
    """
    for name in config.measure.probes:
        catalog.find_entry("probes", name)
    for name in (*config.trial.arms, *config.trial.nulls):
        catalog.find_entry("arms", name)
    catalog.create("planners", config.planner, dict(config.plan.options))
    check_planner(config.planner, config.train.objective)
    check_training_packages()
    for name, options in config.measure.options.items():
        if name not in config.measure.probes:
            raise unknown_name("probe of measure.probes", name, config.measure.probes)
        catalog.create("probes", name, dict(options))
    if config.train.objective not in NEEDED_COLUMNS:
        raise InputError("train.objective grpo, sft or dpo", repr(config.train.objective), "Correct train.objective.")
    for name, task in corpus.tasks.items():
        if task.kind == "verifiable":
            corpus.grader(name)
    try:  # whether all options can be written down
        free_options = [config.measure.options, config.plan.options, config.train.settings]
        json.dumps(to_data(free_options), allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        remedy = "Correct measure.options, plan.options or train.settings."
        raise InputError("options of finite numbers, texts, lists and mappings", str(error)[:120], remedy) from None
    check_model(config.model)
    check_engine(config.measure)


def check_trial(config: RunConfig, corpus: Corpus) -> None:
    """Whether a trial can come of these settings and data, as far as it is known before a plan. Raises InputError."""
    for name, arms in (("arms", config.trial.arms), ("nulls", config.trial.nulls)):
        if len(set(arms)) < len(arms) or not config.trial.arms:
            raise InputError("at least one arm, and each arm once", ", ".join(arms) or "none", f"Correct trial.{name}.")
    if outcome_of(config.measure.probes, config.measure.decoding) is None:
        got = ", ".join(config.measure.probes) or "none"
        remedy = "Add it to measure.probes. If no answer can be graded, add held_out_loss (SFT) or preference (DPO) instead."
        raise InputError(f"the probe {COMPETENCE_PROBE}, which measures success", got, remedy)
    for split, expected in (("train", "training examples"), ("eval", "held-out examples to measure on")):
        if len(corpus.select(split=split)) == 0:
            remedy = "Add rows to corpus.train, and set corpus.eval or corpus.eval_share."
            raise InputError(expected, "none", remedy)
    measured = {name for cell in corpus.measured().cells() for name in (cell.task, cell.key)}
    for name in config.trial.protect:
        if name not in measured:
            raise unknown_name("task or TASK@LEVEL of the held-out rows (trial.protect)", name, measured)
    arms = choose_arms(config)
    for name in (*config.train.adapters, *([config.train.adapter] if config.train.adapter else [])):
        options = dict(config.train.adapters.get(name, {}))
        if "learning_rate" in options:  # judged as that of all weights is
            from_data(TrainConfig, {"learning_rate": options.pop("learning_rate")})
        catalog.create("adapters", name, options)
    tasks = sorted({cell.task for cell in corpus.cells()})
    stage = Stage("training", config.train.objective, 1, {task: 1 / len(tasks) for task in tasks})  # type: ignore[arg-type]
    for arm in arms.always_run:
        make_branch(arm, Plan("any", (stage,)), corpus)


def check_training_packages() -> None:
    """Raises InputError where a package of the extra `train` is not installed."""
    if missing_packages := [name for name in TRAINING_PACKAGES if importlib.util.find_spec(name) is None]:
        raise missing_extra("measuring and training", missing_packages, "train")


def check_planner(name: str, objective: str) -> None:
    """Whether a planner can plan for an objective. Raises InputError."""
    objectives = catalog.load("planners", name).OBJECTIVES
    if objective not in objectives:
        expected = f"a planner for {objective} (plan.planner), such as {PLANNER_BY_OBJECTIVE.get(objective)}"
        raise InputError(expected, f"{name}, which is for {', '.join(objectives)}", "Leave plan.planner out.")


def check_keep(options: Mapping[str, Any], corpus: Corpus) -> None:
    """Whether a plan's tasks to keep are in the data, before anything is measured. Raises InputError."""
    keep = options.get("keep", ())
    for task in (keep,) if isinstance(keep, str) else keep:
        if task not in corpus.tasks:
            raise unknown_name("task to keep (--keep, plan.options)", str(task), corpus.tasks)


def check_rows(config: RunConfig, corpus: Corpus) -> None:
    """Whether the rows are such that they can be trained on, measured and planned for. Raises InputError."""
    table = corpus.table
    train = table.filter(pc.equal(table["split"], "train"))
    check_training(config.train.objective, corpus)
    check_rehearsal(config.train.objective, corpus)
    if config.planner == "rehearsal":
        check_keep(config.plan.options, corpus)
    evidence = catalog.load("planners", config.planner).EVIDENCE
    readers = ["measure.decoding: sampled"] if config.measure.decoding == "sampled" else []
    if COMPETENCE_PROBE in evidence and COMPETENCE_PROBE in config.measure.probes:
        readers.append(f"the planner {config.planner}")
    if not config.measure.samples and readers:
        raise InputError(f"samples, which {readers[0]} needs", "measure.samples: 0", "Raise measure.samples.")
    outcome, graded = outcome_of(config.measure.probes, config.measure.decoding), set[str]()
    if outcome in GRADED_OUTCOMES:
        graded = check_items(corpus)
    else:  # whether what is read instead is held out
        column = "chosen" if outcome == "preference" else "target"
        held_out = table.filter(pc.equal(table["split"], "eval"))
        if held_out[column].null_count == len(held_out):
            remedy = "Hold some out (corpus.eval, corpus.eval_share), or choose another probe in measure.probes."
            raise InputError(f"held-out rows with {column!r}, on which the outcome is measured", "none", remedy)
    for probe in evidence:
        if probe not in config.measure.probes:
            remedy = f"Add {probe} to measure.probes, or plan with a baseline: plan.planner: proportional."
            raise InputError(f"the probe {probe}, which the planner {config.planner} needs", "none", remedy)
    lacking = sorted(set(pc.unique(train["task"]).to_pylist()) - graded) if COMPETENCE_PROBE in evidence else []
    if lacking:
        remedy = "Hold rows of it out (corpus.eval), leave the task out, or set plan.planner: proportional."
        expected = f"held-out rows with answers for every training task, which the planner {config.planner} needs"
        raise InputError(expected, f"none of {join_some(list(map(repr, lacking)))}", remedy)


def check_items(corpus: Corpus) -> set[str]:
    """Tasks of which something is held out that can be graded. Raises InputError when there is none."""
    held_out = corpus.measured().table
    graded = set(pc.unique(held_out.filter(pc.is_valid(held_out["answer"]))["task"]).to_pylist())
    if not graded:
        remedy = (
            "Name the answers' column (corpus.columns), hold out rows with answers (corpus.eval), or set measure.probes: "
        )
        remedy += "[held_out_loss] for SFT, [preference] for DPO."
        raise InputError("held-out rows with answers, which success is measured on", "none", remedy)
    return graded


def check_model(model: ModelConfig) -> None:
    """Whether the model can be there, as far as that is known without loading it. Raises InputError."""
    folder, gguf = Path(model.path), is_gguf(model.path)
    for path in (folder, *([Path(model.adapter)] if model.adapter else [])):
        if path.is_dir():
            check_files(path)
    may_be_at_hub = model.path.count("/") == 1 and not model.path.startswith((".", "/", "~", TINY_PREFIX))
    if model.path != TINY_PREFIX and not folder.is_dir() and not gguf and not may_be_at_hub:  # the hub is not asked
        expected = f"the folder of a model, a GGUF file, {SMOLLM2}, or OWNER/NAME at the hub"
        raise InputError(expected, f"{model.path!r}, which is none of these", "Correct the name of the model.")
    if folder.is_dir() and not gguf and not any((folder / name).is_file() for name in ("config.json", *ADAPTER_FILES)):
        raise InputError("the folder of a model", f"{model.path!r} without config.json", "Correct the path of the model.")
    if model.adapter is not None and not any((Path(model.adapter) / name).is_file() for name in ADAPTER_FILES):
        got = f"no {' and no '.join(ADAPTER_FILES)}"
        raise InputError("the folder of an adapter", got, "Correct --adapter, or model.adapter.", file=model.adapter)
    if model.path == TINY_PREFIX and model.width % (2 * model.heads):
        got = f"width {model.width}, heads {model.heads}"
        raise InputError("a width that is an even multiple of the heads", got, "Correct model.width or model.heads.")


def check_warmup(model: ModelConfig, settings: CorpusConfig, corpus: Corpus, relative_to: Path) -> None:
    """Check the rows that a tiny model is warmed up on. Raises InputError as its worker would."""
    if model.path == TINY_PREFIX and model.warmup is not None:
        find_builder().check_warmup(model, settings, corpus, relative_to)
