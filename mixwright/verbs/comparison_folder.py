"""Folder of a comparison: what may be written over, and what of an earlier comparison goes."""

from __future__ import annotations

from mixwright.errors import InputError
from mixwright.measure.former import former_file
from mixwright.run.folder import RunFolder, check_own_folder
from mixwright.verdict.rules.answer_forms import known_forms_file
from mixwright.verdict.rules.gate_question import question_file


def check_folder(folder: RunFolder) -> None:
    """Raises InputError for a folder that holds something else than an earlier comparison: nothing of it may be lost."""
    path = folder.path
    run_files = [file for file in (folder.corpus, folder.plan, folder.result, path / "bases") if file.exists()]
    if run_files:
        got = f"a run, which has {run_files[0].name}"
        raise InputError("a new folder, or that of an earlier comparison", got, "Choose another --folder.", file=path)
    check_own_folder(path, ".lock", folder.manifest.name)  # a run.yaml there would be replaced


def clear(folder: RunFolder) -> None:
    """Remove what an earlier comparison measured in this folder, and what was asked and said of it."""
    names = ("before", "after")
    tables = [path for name in names for path in (folder.measurements(name), folder.answers(name))]
    for path in (
        *tables,
        folder.notes,
        question_file(folder),
        known_forms_file(folder),
        former_file(folder),
        folder.page,
        folder.verdict_data,
    ):
        path.unlink(missing_ok=True)
