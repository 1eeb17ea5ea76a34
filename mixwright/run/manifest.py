"""Manifest of a run folder: notes on the run as a whole, and whether other settings may go on in it."""

from __future__ import annotations

import contextlib
import hashlib
import platform
import shlex
import sys
from collections.abc import Collection, Mapping
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from mixwright.config import CorpusConfig, RunConfig, TrainConfig, sources_of
from mixwright.corpus import Corpus
from mixwright.errors import InputError
from mixwright.graders import code_digest
from mixwright.records import RunManifest, to_data
from mixwright.run.folder import RunFolder, read_json, read_yaml, write_json, write_text, yaml_text

NOTED_PACKAGES = ("mixwright", "numpy", "pyarrow", "torch", "transformers", "trl")
NOTED_PACKAGES += ("datasets", "peft", "accelerate", "reasoning-gym")
"""Packages whose versions are noted."""


def check_changed_sections(config: RunConfig, folder: RunFolder, relative_to: Path) -> frozenset[str]:
    """Sections that differ from those the folder was begun with, where nothing that was finished rests on them.

    Args:
        config: the settings now; `trial` may always differ, because finished branches are taken over.
        folder: the run folder.
        relative_to: folder that relative paths in the settings start from.

    Returns:
        `corpus` among them also when the data changed since; empty for a new folder.

    Raises:
        InputError: naming what differs, or the file that changed, and what was finished with it.
    """
    path = folder.settings
    if not path.exists():
        return frozenset()
    old, new = to_data(read_yaml(path, RunConfig)), to_data(config)
    difference_by_section = {
        section: _list_differing_fields(old[section], new[section])
        for section in new
        if section != "trial" and old[section] != new[section]
    }
    noted_digests = read_json(folder.manifest, RunManifest).inputs if folder.manifest.exists() else {}
    for source, digest in file_digests(config.corpus, relative_to).items() if "corpus" not in difference_by_section else ():
        if noted_digests.get(source, digest) != digest:
            difference_by_section["corpus"] = f"in the file of {source}, which has changed since"
    for section, field_names in difference_by_section.items():
        if finished := _find_output_resting_on(folder, section):
            expected, got = "the settings and data that this run was started with", f"another {section} ({field_names})"
            remedy = f"{finished} was made with the old one: choose another --folder, or remove this one."
            raise InputError(expected, got, remedy, file=folder.path)
    return frozenset(difference_by_section)


def _list_differing_fields(old: Any, new: Any, section_path: str = "") -> str:
    """Which fields of a section differ, a few of them by name."""
    if not (isinstance(old, dict) and isinstance(new, dict)):
        return section_path
    prefix = f"{section_path}." if section_path else ""
    names = [name for name in sorted({*old, *new}) if old.get(name) != new.get(name)]
    differences = [_list_differing_fields(old.get(name), new.get(name), prefix + name) for name in names[:3]]
    return ", ".join(differences) + (f" and {len(names) - 3} more" if len(names) > 3 else "")


def _find_output_resting_on(folder: RunFolder, section: str) -> str:
    """What was finished that rests on a section of the settings; empty when nothing was."""
    if section == "mine":  # a table is mined anew each time, and branches name the table that they trained on
        return ""
    plan_outputs = [path for path in (folder.plan, *(branch for _, _, branch in folder.branches())) if path.exists()]
    measured = sorted((folder.path / "measure").glob("*.parquet"))
    bases = sorted((folder.path / "bases").glob("base-*"))
    resting_paths = {"plan": [], "train": [], "measure": measured}.get(section, [*measured, *bases])
    return next((str(path.relative_to(folder.path)) for path in (*plan_outputs, *resting_paths)), "")


def file_digests(data: CorpusConfig, relative_to: Path) -> dict[str, str]:
    """SHA-256 of the source files, by split, and of the user's graders; generated and hub sources have none."""
    from mixwright.corpus import find_generator
    from mixwright.corpus.reading import files_of

    digests: dict[str, str] = {}
    for name, source in (("train", data.train), ("eval", data.eval), ("rehearse", data.rehearse)):
        if source is None or find_generator(source) is not None:
            continue
        if len(sources_of(source)) == 1 and (relative_to / source).is_file():
            digests[name] = file_digest(relative_to / source)
        elif files := files_of(source, relative_to):
            names_and_digests = "".join(f"{path.name} {file_digest(path)}\n" for path in files)
            digests[name] = hashlib.sha256(names_and_digests.encode()).hexdigest()
    for grader in {data.grader, *data.graders.values()}:
        if code := code_digest(grader):
            digests[f"grader {grader}"] = code
    return digests


def file_digest(path: Path) -> str:
    """SHA-256 of a file, in hex."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def write_settings(config: RunConfig, folder: RunFolder, sections: Collection[str] = ()) -> None:
    """Note the resolved settings, unless they are there already: an untouched file keeps its time.

    Args:
        config: the settings.
        folder: where to.
        sections: those that anything was done by; empty for all.
    """
    path = folder.settings
    text = yaml_text({name: value for name, value in to_data(config).items() if not sections or name in sections})
    if not path.exists() or path.read_bytes() != text.encode():
        write_text(path, text)


def settings_for_reader(train: TrainConfig, planner: str, resolved: Mapping[str, Any]) -> dict[str, Any]:
    """The settings of a run that matter to its reader; `resolved`: what the trainer makes of them, its defaults included."""
    return {
        "objective": train.objective,
        "beta": train.beta,
        "learning_rate": train.learning_rate,
        "num_generations": train.generations,
        "max_completion_length": train.max_new_tokens,
        "temperature": train.temperature,
        "steps": train.steps,
        "prompts_per_step": train.prompts,
        "planner": planner,
        **to_data(train.settings),
        **resolved,
    }


def digests_of(corpus: Corpus, data: CorpusConfig, relative_to: Path = Path()) -> dict[str, str]:
    """Digests of the rows, of the files that they were read from, and of the user's graders."""
    return {"corpus": corpus.digest(), **file_digests(data, relative_to)}


def write_manifest(
    folder: RunFolder, inputs: Mapping[str, str], model: str, *, settings: Mapping[str, Any], seeds: Mapping[str, int]
) -> None:
    """Note seeds, versions, digests of the inputs and settings.

    Args:
        folder: where to.
        inputs: name of an input -> its SHA-256.
        model: where the model is, or its log.
        settings: those that something was done by, and no others.
        seeds: the same.
    """
    versions = {"python": platform.python_version()}
    for name in NOTED_PACKAGES:
        with contextlib.suppress(PackageNotFoundError):
            versions[name] = version(name)
    typed = ["mixwright", *(word for word in sys.argv[1:] if word != "--quiet")]
    command = shlex.join(typed) if Path(sys.argv[0]).stem in ("mixwright", "__main__") else ""
    now = datetime.now(UTC).isoformat(timespec="seconds")
    write_json(folder.manifest, RunManifest(seeds, versions, inputs, settings, model, command, now))
