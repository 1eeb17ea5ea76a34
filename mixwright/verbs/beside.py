"""Earlier comparison of the same checkpoint BEFORE, taken over: `mixwright verdict BEFORE AFTER --beside FOLDER`."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from mixwright.answers.table import Answers
from mixwright.config import RunConfig
from mixwright.errors import InputError
from mixwright.measure.stage import MeasureResult
from mixwright.records import RunManifest
from mixwright.run.folder import RunFolder, read_json, read_measurements, read_yaml, write_json, write_measurements
from mixwright.run.manifest import file_digests, settings_file
from mixwright.verbs.options import Measuring
from mixwright.verbs.ready import NOTED_SETTINGS, PreparedModels
from mixwright.verdict.page.answers import BESIDE_NAME
from mixwright.verdict.page.beside import OtherCheckpoint, beside_file

READING_SETTINGS = ("grader", "probe", "prompts", "system message", "template", "adapter", "engine")
"""Settings of how prompts and answers are read; where the rows lie may differ, and their digest may not."""
TAKEN_OVER = {name: name for name in ("items", "samples", "temperature", "template")}
TAKEN_OVER |= {"system": "system message"}
"""Options that the earlier comparison decides where they are not given, and their names in its manifest."""
UNNAMED_GRADER = "exact"
"""Grader of a measuring's settings where nobody named one for all tasks."""


@dataclass(frozen=True, slots=True)
class EarlierComparison:
    """What an earlier comparison measured."""

    folder: Path
    """Where it lies."""
    manifest: RunManifest
    """How it was measured."""
    before: MeasureResult
    """Its checkpoint BEFORE."""
    after: MeasureResult
    """Its checkpoint AFTER, which stands beside the new one."""

    @property
    def name(self) -> str:
        """The other checkpoint, as it was given; empty where there is none."""
        return str(self.manifest.settings.get("checkpoint after", ""))

    @property
    def room(self) -> tuple[int, int] | None:
        """Longest completion, and to how many tokens those that reached it were continued; None where none were written."""
        settings = self.manifest.settings
        max_new_tokens = settings.get("max_new_tokens")
        return None if max_new_tokens is None else (int(max_new_tokens), int(settings.get("continued_tokens", 0)))

    def with_options(self, measuring: Measuring) -> Measuring:
        """The options, those that were not given as this comparison had them. Raises InputError for a budget."""
        if measuring.budget is not None:
            remedy = "Leave one out: a budget would choose other items than those of the earlier comparison."
            raise InputError("--budget or --beside", "both", remedy)
        taken_over = {
            field: self.manifest.settings[name]
            for field, name in TAKEN_OVER.items()
            if getattr(measuring, field) is None and name in self.manifest.settings
        }
        corpus = read_yaml(settings_file(RunFolder(self.folder)), RunConfig).corpus
        if not measuring.grader and corpus.graders:
            taken_over["grader"] = [f"{task}={grader}" for task, grader in corpus.graders.items()]
        elif not measuring.grader and corpus.grader != UNNAMED_GRADER:
            taken_over["grader"] = [corpus.grader]
        return replace(measuring, **taken_over)

    def check_same_measuring(self, ready: PreparedModels) -> None:
        """Whether BEFORE would be measured on the same rows in the same way. Raises InputError, naming what differs."""
        if not ready.graded:
            raise InputError("answers that can be graded, with --beside", "none", "Leave --beside out.")
        settings, inputs = self.manifest.settings, self.manifest.inputs
        graders = {
            name: text for name, text in file_digests(ready.config.corpus, Path()).items() if name.startswith("grader ")
        }
        compared = {"rows with the digest": (inputs.get("corpus"), ready.corpus.digest())}
        compared |= {name: (inputs.get(name), digest) for name, digest in graders.items()}
        compared |= {name: (settings.get(name), ready.settings.get(name)) for name in (*NOTED_SETTINGS, *READING_SETTINGS)}
        compared |= {"seed": (self.manifest.seeds.get("measuring"), ready.config.seed)}
        for name, (earlier, now) in compared.items():
            if earlier != now:
                expected = f"{name}: {earlier}, as in the earlier comparison"
                remedy = "Name the same rows and options, or leave --beside out."
                raise InputError(expected, f"{now}", remedy, file=self.folder)


def read_earlier(folder: Path, before: str, target: RunFolder) -> EarlierComparison:
    """The earlier comparison, whole, so that nothing of it is read again.

    Args:
        folder: of the earlier comparison.
        before: the checkpoint that the new one starts from.
        target: folder of the new comparison.

    Raises:
        InputError: it is none, it is of another BEFORE, or it would be overwritten.
    """
    run = RunFolder(folder)
    if folder.resolve() == target.path.resolve():
        got = "the folder of the new comparison"
        raise InputError("the folder of an earlier comparison (--beside)", got, "Choose another --folder.", file=folder)
    sides = ("before", "after")
    needed_files = (run.manifest, *map(run.measurements, sides), *map(run.answers, sides))
    missing_files = [path for path in needed_files if not path.is_file()]
    manifest = None if missing_files else read_json(run.manifest, RunManifest)
    if manifest is None or "checkpoint after" not in manifest.settings:
        got = f"a folder without {missing_files[0].name}" if missing_files else "a run of one checkpoint"
        remedy = "Write one first: mixwright verdict BEFORE OTHER --eval FILE --folder FOLDER."
        raise InputError("the folder of an earlier comparison (--beside)", got, remedy, file=folder)
    if manifest.parent != before and Path(manifest.parent).resolve() != Path(before).resolve():
        remedy = "Name the same BEFORE, or compare again without --beside."
        raise InputError(f"measurements of {before}", f"those of {manifest.parent}", remedy, file=folder)
    results = [
        MeasureResult(tuple(read_measurements(run.measurements(side))), Answers.read(run.answers(side))) for side in sides
    ]
    return EarlierComparison(folder, manifest, *results)


def write_beside(folder: RunFolder, earlier: EarlierComparison) -> None:
    """Keep in the new comparison what its page needs of the other checkpoint."""
    write_measurements(folder.measurements(BESIDE_NAME), earlier.after.measurements)
    earlier.after.answers.write(folder.answers(BESIDE_NAME))
    write_json(beside_file(folder), OtherCheckpoint(earlier.name, str(earlier.folder)))
