"""Section of success predicted from prompts, where tasks have no levels: what was expected of a group, and what came.

Source: draws.parquet, steps.jsonl and proof.json of every branch of the leading arm (or of steering/ in the run folder).
Unit: success of a group, 0..1, with 95 % intervals in which groups are the unit; nats per group.
Cost: reads one table per branch.
Blind spot: shows whether prompts were told apart, on evenly drawn groups; whether training gained by it, the arms show.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any, ClassVar, NamedTuple, TypeGuard

import numpy as np

from mixwright.contracts import Section
from mixwright.errors import InputError
from mixwright.estimates.intervals import Z, clustered_share, mean_interval
from mixwright.records import Interval
from mixwright.runs import RunFolder, read_json
from mixwright.verdict.blocks import Block, Lines, Paragraph, Series, Table
from mixwright.verdict.evidence import arm_branches, headline_arm, json_lines
from mixwright.verdict.text import MINUS_SIGN, count, percent

CALIBRATION_BINS = 10
MOST_COUNT = 1e12
COLUMNS = ["predicted", "even", "success"]


class _Draws(NamedTuple):
    """Draws of all branches of which something was predicted and whose group came back."""

    predicted: np.ndarray
    even: np.ndarray
    success: np.ndarray


class Predicted(Section):
    """One sentence, the share of draws that followed, and predicted against observed success of even draws."""

    ORDER: ClassVar[int] = 42
    TITLE: ClassVar[str] = "Success predicted from prompts"

    def blocks(self, run: RunFolder) -> list[Block]:
        """Nothing where no success was predicted."""
        folders = [folder for _, folder in arm_branches(run).get(headline_arm(run), [])]
        folders = folders or [path for path in (run.path / "steering", run.path) if (path / "draws.parquet").is_file()][:1]
        found = [draws for folder in folders if (draws := _draws(folder / "draws.parquet")) is not None]
        if not sum(len(draws.predicted) for draws in found):
            return []
        draws = _Draws(*(np.concatenate(column) for column in zip(*found, strict=True)))
        said: list[Block] = [Paragraph(_sentence([_worth(folder) for folder in folders], draws))]
        even = draws.predicted[draws.even], draws.success[draws.even]
        if not len(even[0]):
            return said
        return [*said, *_reliability(*even, _rollouts(folders))]


def _draws(path: Path) -> _Draws | None:
    """What a branch predicted and saw; None where it predicted nothing."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    if not path.is_file():
        return None
    try:
        table = pq.read_table(path, columns=COLUMNS)
        known = table.filter(pa.array(~np.isnan(table["predicted"].to_numpy()) & ~np.isnan(table["success"].to_numpy())))
        columns = [known[name].to_numpy() for name in COLUMNS]
    except (OSError, pa.ArrowException, ValueError, TypeError) as error:
        raise InputError("a Parquet file of draws", str(error)[:120], "Run the trial again.", file=path) from None
    shares = np.concatenate([columns[0], columns[2]])
    if ((shares < 0) | (shares > 1)).any():
        least, most = float(shares.min()), float(shares.max())
        raise InputError("predicted and success of 0 to 1", f"{least:g} to {most:g}", "Run the trial again.", file=path)
    return _Draws(columns[0].astype(float), columns[1].astype(bool), columns[2].astype(float))


def _worth(folder: Path) -> tuple[float, float, float] | None:
    """Mean nats per evenly drawn group against the task alone, its standard error, and how many groups; None if unknown."""
    path = folder / "proof.json"
    known: Any = read_json(path, dict[str, Any]).get("prediction") if path.is_file() else None
    gain = known.get("gain") if isinstance(known, dict) else None
    numbers = [*gain, known.get("judged")] if isinstance(gain, list) and len(gain) == 2 else []
    good = len(numbers) == 3 and all(isinstance(n, int | float) and math.isfinite(n) for n in numbers)
    return (float(numbers[0]), float(numbers[1]), float(numbers[2])) if good else None


def _sentence(worths: list[tuple[float, float, float] | None], draws: _Draws) -> str:
    """Whether prompts were told apart, and how many draws followed the prediction."""
    known = [worth for worth in worths if worth is not None]
    followed = f"{percent(float((~draws.even).mean()))} of the draws of these tasks followed the prediction"
    rest = "the others were made evenly, and only they are counted here"
    if draws.even.any() and not np.ptp(draws.success[draws.even]):
        alike = percent(float(draws.success[draws.even][0]))
        return f"All groups drawn evenly had the same success ({alike}): there was nothing to tell apart. {followed}."
    if not known:
        return f"Too few groups were drawn evenly to say whether the prediction told prompts apart; {followed}."
    if len(known) > 1:
        found, unit = mean_interval(np.array([mean for mean, _, _ in known])), f"over {count(len(known), 'seed')}"
    else:
        mean, error, groups = known[0]
        found, unit = Interval(mean, mean - Z * error, mean + Z * error, int(groups)), "over groups"
    shown = f"{_nats(found.value)} nats per group against the task alone [{_nats(found.low)}, {_nats(found.high)}] {unit}"
    groups = count(int(sum(groups for _, _, groups in known)), "group")
    if found.low > 0:
        return f"The prediction told prompts apart: {shown}, on {groups} drawn evenly. {followed}; {rest}."
    if found.high < 0:
        told = "The prediction told prompts apart worse than the task alone does"
    else:
        told = "The prediction is not shown to tell prompts apart"
    return f"{told}: {shown}, on {groups} drawn evenly. {followed}; {rest}."


def _nats(value: float) -> str:
    return f"{value:+.3f}".replace("-", MINUS_SIGN)


def _rollouts(folders: list[Path]) -> int:
    """Completions scored per group, rounded; 1 where no line says."""
    scored = groups = 0.0
    for folder in folders:
        for line in json_lines(folder / "steps.jsonl"):
            cells, size = line.get("success"), line.get("groups")
            if isinstance(cells, dict) and _counts(size):
                pairs = [entry for entry in cells.values() if isinstance(entry, list) and len(entry) == 2]
                scored += sum(entry[1] for entry in pairs if _counts(entry[1]))
                groups += size
    return max(1, round(scored / groups)) if groups else 1


def _counts(value: Any) -> TypeGuard[float]:
    """Whether a number of a line can be a count; the lines are a file that anybody may have edited."""
    return isinstance(value, int | float) and 0 <= value <= MOST_COUNT and value == round(value)


def _reliability(predicted: np.ndarray, success: np.ndarray, rollouts: int) -> list[Block]:
    """Observed against predicted success, per tenth of predicted success; empty ones are left out."""
    place = np.minimum((predicted * CALIBRATION_BINS).astype(int), CALIBRATION_BINS - 1)
    rows, x, came = [], [], []
    for tenth in np.unique(place).tolist():
        here = place == tenth
        found = clustered_share(success[here], rollouts)
        x.append(round(100 * float(predicted[here].mean()), 1))
        came.append(found)
        observed = f"{percent(found.value)} [{100 * found.low:.0f}, {100 * found.high:.0f}]"
        name = f"{10 * tenth} to {10 * tenth + 10} %"
        rows.append((name, str(int(here.sum())), percent(x[-1] / 100), observed))
    y, low, high = (tuple(getattr(found, end) for found in came) for end in ("value", "low", "high"))
    line = (0.0, 1.0)
    series = Series("observed", tuple(x), y, low, high), Series("as predicted", (0.0, 100.0), line, line, line)
    ends = f"from {percent(y[0])} where {percent(x[0] / 100)} was predicted to {percent(y[-1])} at {percent(x[-1] / 100)}"
    caption = "Predicted and observed success of groups drawn evenly"
    chart = Lines(caption, f"Observed success rises {ends}.", "predicted success, %", "observed success, %", series)
    if y[-1] <= y[0]:
        chart = Lines(caption, f"Observed success goes {ends}.", "predicted success, %", "observed success, %", series)
    columns = ("predicted success", "groups", "mean predicted", "mean observed")
    return [chart, Table("Groups drawn evenly, by what was predicted of them", columns, rows, (1, 2, 3))]
