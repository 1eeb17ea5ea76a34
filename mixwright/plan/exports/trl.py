"""Export to TRL: one file with the rows in the order of the plan's draws, and settings for TRL's own scripts.

TRL's mixtures repeat no row, so that a small task would bound them. Here rows are repeated and left out as the weights have
it, so any script of TRL takes them: `trl sft --config trl.yaml`, or your own by `load_dataset("parquet", ...)`. For GRPO the
settings have the group and the room of the run, too.

Source: TRL, Scripts Utilities, class DatasetMixtureConfig (huggingface.co/docs/trl/script_utils), as in 1.16.
Unit: rows.
Cost: one Parquet file of as many rows as the plan draws, 100,000 at most.
Blind spot: SFT and DPO shuffle the rows: the shares are kept, the order is not.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from mixwright.contracts import Export
from mixwright.plan.mix import Mix, trl_rows, with_own_ids, write_rows, write_settings

ROWS_FILE = "rows.parquet"


class Trl(Export):
    """Rows repeated by weight."""

    def write(self, mix: Mix, folder: Path) -> list[str]:
        """rows.parquet and trl.yaml."""
        write_rows(folder / ROWS_FILE, list(with_own_ids(trl_rows(mix))))
        order_note = "Do not shuffle them." if mix.objective == "grpo" else "TRL shuffles them: the shares are kept."
        notes = [
            f"{ROWS_FILE} has the rows in the order of the plan, repeated or left out according to their weights: "
            f"{len(mix.order):,} rows. {order_note}",
            *mix.unlearned_calls(),
        ]
        if mix.masked:
            notes.append(
                f"{mix.masked:,} rows have masked parts that must not be trained on. mixwright.SteeredSFTTrainer "
                "respects masks, also with steering=None; TRL's own trainer does not."
            )
        entry = {"path": "parquet", "data_files": str(folder / ROWS_FILE), "split": "train"}
        settings: dict[str, Any] = {"datasets": [entry], "max_steps": mix.steps}
        settings |= {"per_device_train_batch_size": mix.num_generations or 1, "gradient_accumulation_steps": mix.batch}
        settings |= mix.rollout_settings | ({"shuffle_dataset": False} if mix.objective == "grpo" else {})
        write_settings(folder / "trl.yaml", [*mix.notes, *notes], settings)
        return [*notes, f"Add {folder / 'trl.yaml'} to the YAML of a `trl` script, or load {ROWS_FILE} in your own."]
