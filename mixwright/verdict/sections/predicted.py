"""Section of success predicted from prompts, where tasks have no levels: what was expected of a group, and what came.

Source: draws.parquet, steps.jsonl and proof.json of every branch of the leading arm (or of steering/ in the run folder).
Unit: success of a group, 0..1, with 95 % intervals in which groups are the unit; nats per group.
Cost: reads one table per branch.
Blind spot: shows whether prompts were told apart, on evenly drawn groups; whether training gained by it, the arms show.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any, NamedTuple, TypeGuard

import numpy as np

from mixwright.contracts import Section
from mixwright.errors import InputError
from mixwright.estimates.intervals import Z, clustered_share, mean_interval
from mixwright.records import Interval
from mixwright.run.folder import RunFolder, read_json
from mixwright.verdict.page.blocks import Block, Paragraph, Table
from mixwright.verdict.page.evidence import leading_folders, read_json_lines
from mixwright.verdict.page.text import MINUS_SIGN, count, percent

CALIBRATION_BINS = 10
MOST_COUNT = 1e12


class _Draws(NamedTuple):
    """Draws of which something was predicted and whose group came back; the fields are columns of draws.parquet."""

    predicted: np.ndarray
    even: np.ndarray
    success: np.ndarray


class Predicted(Section):
    """One sentence, the share of draws that followed, and predicted against observed success of even draws."""

    ORDER = 42
    TITLE = "Success predicted from prompts"

    def blocks(self, run: RunFolder) -> list[Block]:
        """Nothing where no success was predicted."""
        single_folders = [path for path in (run.path / "steering", run.path) if (path / "draws.parquet").is_file()][:1]
        folders = [path for path in leading_folders(run) or single_folders if (path / "draws.parquet").is_file()]
        branch_draws = [_read_draws(folder / "draws.parquet") for folder in folders]
        if not sum(len(draws.predicted) for draws in branch_draws):
            return []
        draws = _Draws(*(np.concatenate(column) for column in zip(*branch_draws, strict=True)))
        return [
            Paragraph(
                _format_sentence([gain for folder_with_draws in folders if (gain := _read_gain(folder_with_draws))], draws)
            ),
            _table(draws, _count_rollouts_per_group(folders)),
        ]


def _read_draws(path: Path) -> _Draws:
    """What a branch predicted and saw."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        table = pq.read_table(path, columns=list(_Draws._fields))
        known_draws = table.filter(
            pa.array(~np.isnan(table["predicted"].to_numpy()) & ~np.isnan(table["success"].to_numpy()))
        )
        predicted, even, success = (known_draws[name].to_numpy() for name in _Draws._fields)
    except (OSError, pa.ArrowException, ValueError, TypeError) as error:
        raise InputError("a Parquet file of draws", str(error)[:120], "Run the trial again.", file=path) from None
    shares = np.concatenate([predicted, success])
    if ((shares < 0) | (shares > 1)).any():
        got = f"{float(shares.min()):g} to {float(shares.max()):g}"
        raise InputError("predicted and success of 0 to 1", got, "Run the trial again.", file=path)
    return _Draws(predicted.astype(float), even.astype(bool), success.astype(float))


def _read_gain(folder: Path) -> tuple[float, float, float] | None:
    """Mean nats per evenly drawn group against the task alone, its standard error, and how many groups; None if unknown."""
    path = folder / "proof.json"
    prediction: Any = read_json(path, dict[str, Any]).get("prediction") if path.is_file() else None
    gain = prediction.get("gain") if isinstance(prediction, dict) else None
    numbers = [*gain, prediction.get("judged")] if isinstance(gain, list) and len(gain) == 2 else []
    is_complete = len(numbers) == 3 and all(isinstance(number, int | float) and math.isfinite(number) for number in numbers)
    return (float(numbers[0]), float(numbers[1]), float(numbers[2])) if is_complete else None


def _format_sentence(gains: list[tuple[float, float, float]], draws: _Draws) -> str:
    """Whether prompts were told apart, and how many draws followed the prediction."""
    followed_text = f"{percent(float((~draws.even).mean()))} of the draws of these tasks followed the prediction"
    even_success = draws.success[draws.even]
    if len(even_success) and not np.ptp(even_success):
        common_success = percent(float(even_success[0]))
        nothing_text = f"All groups drawn evenly had the same success ({common_success}): there was nothing to tell apart."
        return f"{nothing_text} {followed_text}."
    if not gains:
        return f"Too few groups were drawn evenly to say whether the prediction told prompts apart; {followed_text}."
    if len(gains) > 1:
        gain_interval, unit = mean_interval(np.array([mean for mean, _, _ in gains])), f"over {count(len(gains), 'seed')}"
    else:
        mean, error, groups = gains[0]
        gain_interval, unit = Interval(mean, mean - Z * error, mean + Z * error, int(groups)), "over groups"
    verdict = "The prediction is not shown to tell prompts apart"
    if gain_interval.low > 0:
        verdict = "The prediction told prompts apart"
    elif gain_interval.high < 0:
        verdict = "The prediction told prompts apart worse than the task alone does"
    value, low, high = (
        f"{number:+.3f}".replace("-", MINUS_SIGN) for number in (gain_interval.value, gain_interval.low, gain_interval.high)
    )
    groups = count(int(sum(groups for _, _, groups in gains)), "group")
    return (
        f"{verdict}: {value} nats per group against the task alone [{low}, {high}] {unit}, on {groups} drawn evenly. "
        f"{followed_text}; the others were made evenly, and only they are counted here."
    )


def _count_rollouts_per_group(folders: list[Path]) -> int:
    """Completions scored per group, rounded; 1 where no line says."""
    scored = groups = 0.0
    for entry in (entry for folder in folders for entry in read_json_lines(folder / "steps.jsonl")):
        cells, group_count = entry.get("success"), entry.get("groups")
        if isinstance(cells, dict) and _is_count(group_count):
            pairs = [pair for pair in cells.values() if isinstance(pair, list) and len(pair) == 2]
            scored += sum(pair[1] for pair in pairs if _is_count(pair[1]))
            groups += group_count
    return max(1, round(scored / groups)) if groups else 1


def _is_count(value: Any) -> TypeGuard[float]:
    """Whether a number of a line can be a count; the lines are a file that anybody may have edited."""
    return isinstance(value, int | float) and 0 <= value <= MOST_COUNT and value == round(value)


def _table(draws: _Draws, rollouts: int) -> Table:
    """Observed against predicted success of even draws, per tenth of predicted success; empty ones are left out."""
    predicted, success = draws.predicted[draws.even], draws.success[draws.even]
    bin_of_draw, rows = np.minimum((predicted * CALIBRATION_BINS).astype(int), CALIBRATION_BINS - 1), []
    for tenth in np.unique(bin_of_draw).tolist():
        in_bin = bin_of_draw == tenth
        share = clustered_share(success[in_bin], rollouts)
        observed = f"{percent(share.value)} [{100 * share.low:.0f}, {100 * share.high:.0f}]"
        predicted_text = percent(round(float(predicted[in_bin].mean()), 3))
        rows.append((f"{10 * tenth} to {10 * tenth + 10} %", str(int(in_bin.sum())), predicted_text, observed))
    columns = ("predicted success", "groups", "mean predicted", "mean observed")
    return Table("Groups drawn evenly, by what was predicted of them", columns, rows, (1, 2, 3))
