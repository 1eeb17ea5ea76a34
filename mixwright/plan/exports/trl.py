"""Export to TRL: a file of each task and level, a `datasets` section with fractions, and a script that interleaves.

`mixture.yaml` is for TRL's own scripts (`trl grpo --config ...`): the fractions of `DatasetMixtureConfig`. There no row
stands twice, so the smallest pool bounds the mixture; each pool gives one row at least. `interleave.py` draws by
`datasets.interleave_datasets` with the plan's shares, repeating small pools (`all_exhausted`), for scripts of your own.

For GRPO the settings have the group and the room of the run, too.

Source: TRL, Scripts Utilities, class DatasetMixtureConfig (huggingface.co/docs/trl/script_utils), `fraction` as in 1.16;
    datasets, interleave_datasets (huggingface.co/docs/datasets/process#interleave).
Unit: share of rows, 0..1.
Cost: one Parquet file per task and level.
Blind spot: rows of a pool come in the order of its file, and tasks by chance, not evenly spread as in a steered run.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from mixwright.contracts import Export
from mixwright.plan.mix import Mix, trl_rows, write_rows, write_settings
from mixwright.run.folder import write_json, write_text

STOPPING_STRATEGY = "all_exhausted"
SCRIPT = '''"""Rows interleaved by the shares of interleave.json. In your script: from interleave import train_dataset."""

import json
from pathlib import Path

from datasets import Dataset, interleave_datasets, load_dataset

HERE = Path(__file__).resolve().parent


def train_dataset(seed: int = 0) -> Dataset:
    """The data set that the trainer takes as train_dataset."""
    mix = json.loads((HERE / "interleave.json").read_text(encoding="utf-8"))
    names = [str(HERE / source["file"]) for source in mix["sources"]]
    sources = [load_dataset("parquet", data_files=name, split="train") for name in names]
    shares = [source["probability"] for source in mix["sources"]]
    return interleave_datasets(sources, probabilities=shares, seed=seed, stopping_strategy=mix["stopping_strategy"])


if __name__ == "__main__":
    print(train_dataset())
'''


class Trl(Export):
    """Shares as they are."""

    def write(self, mix: Mix, folder: Path) -> list[str]:
        """sources/, mixture.yaml, interleave.json and interleave.py."""
        for part in mix.parts:
            write_rows(folder / _source_file(part.name), list(trl_rows(mix, part.rows)))
        sizes = [len(part.rows) / part.share for part in mix.parts]
        smallest_mixture, largest_mixture = min(sizes), max(sizes)
        rare = sum(part.share * smallest_mixture < 1 for part in mix.parts)  # TRL rounds what is below a half to no row
        counts = [max(1, round(part.share * smallest_mixture)) for part in mix.parts]
        used_rows = sum(counts)
        all_rows = sum(len(part.rows) for part in mix.parts)
        repeats = f"mixture.yaml repeats no rows, so its fractions keep {used_rows:,} of {all_rows:,} rows; "
        repeats += "interleave.py repeats the"
        draws = f"The plan takes {mix.steps * mix.batch:,} (max_steps: {mix.steps})."
        note = f"{repeats} rows of small files and yields about {largest_mixture:,.0f} rows. {draws}"
        notes = [note, *mix.unlearned_calls()]
        if rare:
            notes.append(f"In mixture.yaml {rare:,} of {len(counts):,} files give 1 row, which is more than their share.")
        if mix.masked:
            notes.append(
                f"{mix.masked:,} rows have masked parts that must not be trained on. mixwright.SteeredSFTTrainer "
                "respects masks, also with steering=None; TRL's own trainer does not."
            )
        sections: list[dict[str, Any]] = [
            {
                "path": "parquet",
                "data_files": str(folder / _source_file(part.name)),
                "split": "train",
                "fraction": count / used_rows if rare else part.share,
            }
            for part, count in zip(mix.parts, counts, strict=True)
        ]
        settings: dict[str, Any] = {"datasets": sections, "max_steps": mix.steps}
        settings |= {"per_device_train_batch_size": mix.num_generations or 1, "gradient_accumulation_steps": mix.batch}
        settings |= mix.rollout_settings
        write_settings(folder / "mixture.yaml", [*mix.notes, *notes], settings)
        sources = [
            {"file": _source_file(part.name), "task": part.task, "level": part.level, "probability": part.share}
            for part in mix.parts
        ]
        write_json(folder / "interleave.json", {"sources": sources, "stopping_strategy": STOPPING_STRATEGY})
        write_text(folder / "interleave.py", SCRIPT)
        instruction = f"Add {folder / 'mixture.yaml'} to the YAML of a `trl` script, or import interleave.py."
        return [*notes, instruction]


def _source_file(name: str) -> str:
    return f"sources/{name}.parquet"
