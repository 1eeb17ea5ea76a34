"""What the audit found, in files: the observations, and for each check every row behind them.

Left out on purpose: the page (`mixwright/verdict/audit_page.py`), and what can be done about rows (`cleaned.py`).
"""

from __future__ import annotations

import difflib
import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from mixwright.catalog import listing
from mixwright.errors import InputError
from mixwright.records import SEVERITIES, Observation
from mixwright.run.folder import read_list, replacing, write_json

OBSERVATIONS, ROWS = "observations.json", "rows"
"""Names of the file and of the folder."""
MAX_DIFFERENCES = 5
"""Places named where two texts differ."""


def worst_first(observations: Sequence[Observation]) -> list[Observation]:
    """Errors, warnings, infos; errors and warnings that concern the largest share of their rows first."""

    def badness(one: Observation) -> tuple[int, float]:
        share = 0.0 if one.severity == "info" else one.count / max(one.total, 1)
        return SEVERITIES.index(one.severity), -share

    return sorted(observations, key=badness)


def two_sides(evidence: Mapping[str, Any]) -> list[tuple[str, dict[str, Any]]]:
    """The rows of one piece of evidence, each with what it is called (`eval`, `train`, `repeat`, `first`, ...).

    Empty for evidence that is no row, such as a form of answers.
    """
    names = [name.removesuffix("_source") for name in evidence if name.endswith("_source")]
    if not names:
        return [("row", dict(evidence))] if "source" in evidence else []
    return [
        (name, {key.removeprefix(f"{name}_"): value for key, value in evidence.items() if key.startswith(f"{name}_")})
        for name in names
    ]


def what_differs(first: str, second: str) -> list[list[str]]:
    """Up to `MAX_DIFFERENCES` places where the words of two texts differ, each as what stands in either.

    Examples:
        >>> what_differs("Mia has 3 pens.", "Mia has three pens.")
        [['3', 'three']]
    """
    words = first.split(), second.split()
    parts = difflib.SequenceMatcher(None, *words, autojunk=False).get_opcodes()
    differing = [[" ".join(words[0][a:b]), " ".join(words[1][c:d])] for name, a, b, c, d in parts if name != "equal"]
    return differing[:MAX_DIFFERENCES]


def finding_rows(observations: Sequence[Observation]) -> Iterator[dict[str, Any]]:
    """Every row or pair of rows behind the observations, with what differs where both prompts are known."""
    for one in observations:
        about = {"severity": one.severity, "task": one.task, "what": one.message}
        for evidence in one.evidence:
            sides = [side for _, side in two_sides(evidence)]
            prompts = [side["prompt"] for side in sides if "prompt" in side]
            differs = {"differs": what_differs(*prompts)} if len(prompts) == 2 else {}
            yield {"check": one.check, **about, **evidence, **differs}


def write_findings(observations: Sequence[Observation], folder: Path) -> None:
    """Write `observations.json` and `rows/CHECK.jsonl` under `folder`.

    Raises:
        InputError: a folder that holds something else.
    """
    check_findings_folder(folder)
    write_json(folder / OBSERVATIONS, worst_first(observations))  # first: after a kill it shows whose folder this is
    for check in listing("checks"):
        path, of_check = folder / ROWS / f"{check}.jsonl", [one for one in worst_first(observations) if one.check == check]
        if not any(one.evidence for one in of_check):
            path.unlink(missing_ok=True)
            continue
        with replacing(path) as temporary, temporary.open("w", encoding="utf-8") as file:
            file.writelines(json.dumps(row, default=str) + "\n" for row in finding_rows(of_check))


def check_findings_folder(folder: Path) -> None:
    """Raises InputError for a folder that holds other things than an earlier audit's findings."""
    if not folder.exists() and not folder.is_symlink():
        return
    is_ours = folder.is_dir()
    if is_ours and any(folder.iterdir()):
        try:
            read_list(folder / OBSERVATIONS, Observation)
        except InputError:  # no findings of an earlier audit
            is_ours = False
    if not is_ours or (folder / ROWS).is_symlink():
        raise InputError("a new or empty folder", "something else", "Name another one.", file=folder)
