"""Files of a branch whose plan has several stages: each stage's own under stages/, and those of the whole branch."""

from __future__ import annotations

import json
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from mixwright.answers.table import Answers
from mixwright.corpus.rows import pc
from mixwright.records import Stage
from mixwright.run.folder import answers_file, read_json, read_json_lines, write_json, write_table, write_text
from mixwright.trial.seed_rows import measuring_rollouts

MEASURED_FILE = "measured.parquet"
"""What was measured after a stage; written last."""
STAGE_FILES = ("steps.jsonl", "decisions.jsonl", "proof.json", "draws.parquet", MEASURED_FILE, "measured.answers.parquet")


def stage_folder(folder: Path, number: int) -> Path:
    """Return the folder of a stage, numbered from 0, in that of its branch; its name may hold what paths must not."""
    return folder / "stages" / str(number + 1)


def join_stages(stages: Sequence[Stage], folder: Path) -> None:
    """Write lines and counts of all stages as those of one run, counted on, and keep of each stage its own."""
    last_model = stage_folder(folder, len(stages) - 1) / "model"
    if last_model.is_dir():  # else it was moved before an interruption
        last_model.rename(folder / "model")
    lines: dict[str, list[dict[str, Any]]] = {"steps.jsonl": [], "decisions.jsonl": []}
    draws, proof, steps, rollouts = [], {}, 0, 0
    for number, stage in enumerate(stages):
        own_folder = stage_folder(folder, number)
        for path in own_folder.iterdir():
            if path.is_dir():
                shutil.rmtree(path)
            elif path.name not in STAGE_FILES:
                path.unlink()
        counts = {"step": steps, "rollouts": rollouts}
        for name, joined_lines in lines.items():
            for line in read_json_lines(own_folder / name):
                joined_lines.append(line | {key: line[key] + before for key, before in counts.items() if key in line})
        if (own_folder / "draws.parquet").is_file():
            table = pq.read_table(own_folder / "draws.parquet")
            place = table.column_names.index("step")
            draws.append(table.set_column(place, "step", pc.add(table["step"], steps)))
        proof = read_json(own_folder / "proof.json", dict[str, Any])
        steps += stage.steps
        rollouts += proof.get("rollouts", 0)
        if number + 1 < len(stages):
            rollouts += measuring_rollouts(Answers.read(answers_file(own_folder / MEASURED_FILE)))
    for name, joined_lines in lines.items():
        write_text(folder / name, "".join(json.dumps(line) + "\n" for line in joined_lines))
    write_json(folder / "proof.json", {**proof, "rollouts": rollouts})
    if draws:
        write_table(folder / "draws.parquet", pa.concat_tables(draws))
