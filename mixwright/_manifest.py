"""What is checked before a run folder is made, and what is noted in it about the run as a whole."""

from __future__ import annotations

import hashlib
import importlib.util
import json
import platform
import shlex
import sys
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from mixwright import catalog
from mixwright.config import ModelConfig, RunConfig
from mixwright.corpus._rows import pc
from mixwright.errors import InputError, missing_extra, unknown_name
from mixwright.plan._asked import check_asked
from mixwright.records import RunManifest, to_data
from mixwright.runs import RunFolder, read_json, read_yaml, write_json, write_text

if TYPE_CHECKING:
    from mixwright.corpus import Corpus

PACKAGES = (
    "mixwright",
    "numpy",
    "pyarrow",
    "torch",
    "transformers",
    "trl",
    "datasets",
    "peft",
    "accelerate",
    "reasoning-gym",
)
TRAINING = ("torch", "transformers", "trl", "datasets")
FREE = ("trial",)
"""Sections of the settings that may change in a folder that was begun: finished branches are taken over."""


def settings_file(folder: RunFolder) -> Path:
    """The settings the run was begun with, as resolved."""
    return folder.path / "run.yaml"


def same_settings(config: RunConfig, folder: RunFolder, base: Path) -> None:
    """Refuse a folder that was begun with other settings, or with data that changed since.

    Raises:
        InputError: naming the sections that differ, or the file that changed.
    """
    path = settings_file(folder)
    if not path.exists():
        return
    old, new = to_data(read_yaml(path, RunConfig)), to_data(config)
    differing = [name for name in new if name not in FREE and old[name] != new[name]]
    if differing:
        raise InputError(
            "the settings that this run was begun with",
            f"another {', '.join(differing)}",
            "Choose another --folder, or remove this one.",
            file=folder.path,
        )
    if folder.manifest.exists():
        noted = read_json(folder.manifest, RunManifest).inputs
        for name, digest in file_digests(config, base).items():
            if noted.get(name, digest) != digest:
                raise InputError(
                    f"the {name} data that this run was begun with",
                    "a file that changed since",
                    "Choose another --folder, or remove this one.",
                    file=folder.path,
                )


def file_digests(config: RunConfig, base: Path) -> dict[str, str]:
    """SHA-256 of the source files, by split; generated and hub sources have none."""
    from mixwright.corpus import GENERATED

    found = {}
    for name, source in (("train", config.corpus.train), ("eval", config.corpus.eval)):
        if source and not source.startswith(GENERATED) and (base / source).is_file():
            with (base / source).open("rb") as file:
                found[name] = hashlib.file_digest(file, "sha256").hexdigest()
    return found


def check_settings(config: RunConfig, corpus: Corpus) -> None:
    """Everything that can be refused from settings and corpus alone.

    Raises:
        InputError: an unknown plug-in or option, packages missing, a grader that cannot be loaded, no such model folder.
    """
    for kind, names in (
        ("probes", config.measure.probes),
        ("planners", (config.plan.planner,)),
        ("arms", (*config.trial.arms, *config.trial.nulls)),
    ):
        entries = catalog.listing(kind)
        for name in names:
            if name not in entries:
                raise unknown_name(kind.rstrip("s"), name, entries)
    catalog.create("planners", config.plan.planner, dict(config.plan.options))
    check_asked(config.plan.stage, corpus.cells(), config.train.objective)
    missing = [name for name in TRAINING if importlib.util.find_spec(name) is None]
    if missing:
        raise missing_extra("measuring and training", missing, "train")
    for name, options in config.measure.options.items():
        if name not in config.measure.probes:
            raise unknown_name("probe of measure.probes", name, config.measure.probes)
        catalog.create("probes", name, dict(options))
    if config.train.objective not in ("grpo", "sft", "dpo"):
        raise InputError("train.objective grpo, sft or dpo", repr(config.train.objective), "Correct train.objective.")
    for name, task in corpus.tasks.items():
        if task.kind == "verifiable":
            corpus.grader(name)
    if config.train.objective == "grpo":
        _check_answers(corpus)
    try:
        json.dumps(
            to_data([config.measure.options, config.plan.options, config.plan.stage, config.train.settings]), allow_nan=False
        )
    except (TypeError, ValueError, RecursionError) as error:
        remedy = "Correct measure.options, plan.options, plan.stage or train.settings."
        raise InputError("options of finite numbers, texts, lists and mappings", str(error)[:120], remedy) from None
    _check_model(config.model)


def _check_answers(corpus: Corpus) -> None:
    """Refuse training rows that nothing can grade, of tasks whose held-out rows have answers."""
    train = corpus.table.filter(pc.equal(corpus.table["split"], "train"))
    for row in train.group_by("task").aggregate([("id", "count"), ("answer", "count")]).to_pylist():
        name, lacking = row["task"], row["id_count"] - row["answer_count"]
        if lacking and corpus.tasks[name].kind == "verifiable":
            raise InputError(
                f"an answer in every training row of task {name!r}, which GRPO grades",
                f"{lacking} rows without",
                "Add the answers, or train with objective sft.",
            )


def _check_model(model: ModelConfig) -> None:
    """Whether the model can be there, as far as that is known without loading it."""
    folder = Path(model.path)
    if not model.path or (model.path.startswith("tiny:") and model.path != "tiny:"):
        raise InputError("a checkpoint folder, a hub name, or tiny:", repr(model.path), "Correct model.path.")
    if model.path.startswith((".", "/", "~")) and not folder.is_dir():
        raise InputError("the folder of a model", f"{model.path!r}, which does not exist", "Correct model.path.")
    if folder.is_dir() and not any((folder / name).is_file() for name in ("config.json", "adapter_config.json")):
        raise InputError("the folder of a model", f"{model.path!r} without config.json", "Correct model.path.")
    if model.adapter is not None and not (Path(model.adapter) / "adapter_config.json").is_file():
        raise InputError("the folder of a PEFT adapter", "no adapter_config.json", "Correct the path.", file=model.adapter)
    if model.path == "tiny:" and model.width % (2 * model.heads):
        got = f"width {model.width}, heads {model.heads}"
        raise InputError("a width that is an even multiple of the heads", got, "Correct model.width or model.heads.")


def write_settings(config: RunConfig, folder: RunFolder) -> None:
    """Note the resolved settings, unless they are there already: an untouched file keeps its time."""
    path = settings_file(folder)
    text = yaml.safe_dump(to_data(config), sort_keys=False, allow_unicode=True)
    if not path.exists() or path.read_text(encoding="utf-8") != text:
        write_text(path, text)


def write_manifest(config: RunConfig, folder: RunFolder, corpus: Corpus, base: Path) -> None:
    """Note seeds, versions, input hashes and settings.

    Args:
        config: the settings.
        folder: where to.
        corpus: hashed.
        base: folder that relative paths in the settings start from.
    """
    train = config.train
    known: dict[str, Any] = {
        "objective": train.objective,
        "beta": train.beta,
        "learning_rate": train.learning_rate,
        "num_generations": train.generations,
        "max_completion_length": train.max_new_tokens,
        "temperature": train.temperature,
        "steps": train.steps,
        "prompts_per_step": train.prompts,
        "planner": config.plan.planner,
        **to_data(train.settings),
    }
    write_json(
        folder.manifest,
        RunManifest(
            seeds={"run": config.seed, "trial seeds": config.trial.seeds, "bases": config.model.bases},
            versions={"python": platform.python_version(), **_versions()},
            inputs={"corpus": corpus.digest(), **file_digests(config, base)},
            settings=known,
            parent=config.model.path,
            command=shlex.join(["mixwright", *sys.argv[1:]]) if Path(sys.argv[0]).stem in ("mixwright", "__main__") else "",
            created=datetime.now(UTC).isoformat(timespec="seconds"),
        ),
    )


def note_settings(folder: RunFolder, settings: Mapping[str, Any]) -> None:
    """Add what the trainer made of the settings, its defaults included, once that is known."""
    manifest = read_json(folder.manifest, RunManifest)
    write_json(folder.manifest, replace(manifest, settings={**manifest.settings, **settings}))


def _versions() -> dict[str, str]:
    found = {}
    for name in PACKAGES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found
