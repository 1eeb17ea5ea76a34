"""Case of a miner: data in which its source says that it helps, or does not, and the tool's own answer to them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mixwright.records import TrialResult, to_data
from mixwright.runs import RunFolder, read_json


@dataclass(frozen=True)
class Case:
    """Data and settings, drawn anew for each seed."""

    name: str
    miner: str
    helps: bool
    """Whether the source says that the miner's rows beat as many random ones here."""
    why: str
    """One sentence: what is in the data."""
    write: Callable[[Path, int], Path]
    """Writes rows and run.yaml into a folder for a seed, returns the path of run.yaml; its trial has 8 seeds or more."""


def tried(case: Case, folder: Path, seed: int, log: Path) -> dict[str, Any]:
    """What `mixwright mine --try` says of one draw of a case: advice, sentence, effects, price, CPU seconds.

    Raises:
        RuntimeError: the command failed.
    """
    settings = case.write(folder, seed)
    before = os.times()
    command = [sys.executable, "-m", "mixwright", "mine", str(settings), "--miner", case.miner, "--try"]
    with log.open("w", encoding="utf-8") as out:
        done = subprocess.run(command, stdout=out, stderr=subprocess.STDOUT, check=False, cwd=folder)
    after = os.times()
    if done.returncode:
        raise RuntimeError(f"{case.name}, seed {seed}: {log.read_text(encoding='utf-8')[-2000:]}")
    spent = after.children_user + after.children_system - before.children_user - before.children_system
    run = next(path.parent for path in sorted(folder.rglob("rows.parquet")) if path.parent.name == "corpus").parent
    return {
        "case": case.name,
        "miner": case.miner,
        "seed": seed,
        "cpu_seconds": round(spent, 1),
        **_advice_and_effects(RunFolder(run), case),
    }


def _advice_and_effects(run: RunFolder, case: Case) -> dict[str, Any]:
    """Advice and every effect of the mined rows; where the miner kept all rows nothing was tried."""
    mined = json.loads((run.path / "mine" / f"{case.miner}.json").read_text(encoding="utf-8"))
    if not run.result.is_file():
        advice = {"advice": "keep all rows", "sentence": "The miner keeps all rows: there is no choice to try."}
        return {"selection": advice, "effects": [], "notes": mined["notes"]}
    result = read_json(run.result, TrialResult)
    effects = [to_data(effect) for effect in result.effects if effect.arm == "mined"]
    return {"selection": to_data(result.selection), "effects": effects, "notes": mined["notes"]}
