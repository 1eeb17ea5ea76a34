"""Page section of success predicted from prompts: its numbers by hand, its sentence, and where it says nothing."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from _example_run import build, predict

from mixwright.errors import InputError
from mixwright.estimates.intervals import clustered_share, mean_interval
from mixwright.run.folder import RunFolder
from mixwright.verdict.page.blocks import Block, Paragraph, Table, keep_filled
from mixwright.verdict.sections.predicted import Predicted


def branch(run: RunFolder, seed: int, draws: Sequence[tuple[float | None, bool | None, float | None]], **found: Any) -> None:
    """A branch of the arm `steered` with these draws (predicted, even, success) and this prediction in proof.json."""
    folder = run.branch("steered", seed)
    folder.mkdir(parents=True)
    columns = dict(zip(("predicted", "even", "success"), zip(*draws, strict=True), strict=True))
    kinds = {"predicted": pa.float32(), "even": pa.bool_(), "success": pa.float32()}
    pq.write_table(pa.table({name: pa.array(columns[name], kind) for name, kind in kinds.items()}), folder / "draws.parquet")
    (folder / "proof.json").write_text(json.dumps({"prediction": found} if found else {}))
    line = {"step": 0, "groups": 2, "success": {"t": [3.0, 8]}}
    (folder / "steps.jsonl").write_text(json.dumps(line) + "\n")


def shown(run: RunFolder) -> tuple[str, list[Block]]:
    first, *rest = keep_filled(Predicted().blocks(run))
    assert isinstance(first, Paragraph)
    return first.text, rest


EVEN = [(0.12, True, 0.0), (0.18, True, 0.25), (0.85, True, 1.0), (1.0, True, 0.75)]
OTHERS = [(0.5, False, 0.0), (0.5, False, 1.0), (None, None, 0.5), (0.5, True, None)]


def test_only_even_draws_whose_group_came_back_are_counted(tmp_path: Path) -> None:
    run = RunFolder(tmp_path)
    branch(run, 0, [*EVEN, *OTHERS], gain=[0.2, 0.05], judged=4)
    text, (table,) = shown(run)
    assert "told prompts apart: +0.200 nats per group against the task alone [+0.102, +0.298] over groups" in text
    assert "on 4 groups drawn evenly" in text
    assert "33 % of the draws of these tasks followed the prediction" in text, "2 of 6"
    assert isinstance(table, Table)
    assert [row[:3] for row in table.rows] == [
        ("10 to 20 %", "2", "15 %"),
        ("80 to 90 %", "1", "85 %"),
        ("90 to 100 %", "1", "100 %"),
    ]
    first = clustered_share(np.array([0.0, 0.25]), 4)  # 8 completions in 2 groups
    assert table.rows[0][3] == f"12 % [{100 * first.low:.0f}, {100 * first.high:.0f}]"
    assert [row[3].partition(" [")[0] for row in table.rows] == ["12 %", "100 %", "75 %"]


@pytest.mark.parametrize(
    ("gains", "told"),
    [
        ((0.20, 0.22, 0.24), "The prediction told prompts apart: +0.220"),
        ((-0.1, 0.0, 0.2), "The prediction is not shown to tell prompts apart: +0.033"),
        ((-0.20, -0.22, -0.24), "The prediction told prompts apart worse than the task alone does: \N{MINUS SIGN}0.220"),
    ],
)
def test_over_seeds_the_interval_is_that_of_their_means(tmp_path: Path, gains: tuple[float, ...], told: str) -> None:
    run = RunFolder(tmp_path)
    for seed, gain in enumerate(gains):
        branch(run, seed, EVEN, gain=[gain, 9.0], judged=4)
    text, _ = shown(run)
    assert text.startswith(told)
    found = mean_interval(np.array(gains))
    ends = ", ".join(f"{end:+.3f}".replace("-", "\N{MINUS SIGN}") for end in (found.low, found.high))
    assert f"[{ends}] over 3 seeds, on 12 groups drawn evenly" in text


def test_without_judged_groups_nothing_is_claimed(tmp_path: Path) -> None:
    run = RunFolder(tmp_path)
    branch(run, 0, OTHERS, gain=None, judged=0)
    text, rest = shown(run)
    assert text.startswith("Too few groups were drawn evenly")
    assert rest == []


def test_no_section_where_nothing_was_predicted(tmp_path: Path) -> None:
    run = RunFolder(tmp_path)
    assert Predicted().blocks(run) == []
    branch(run, 0, [(None, None, 0.5), (None, None, None)])
    assert Predicted().blocks(run) == []
    (run.branch("steered", 0) / "draws.parquet").write_bytes(b"PAR1 nothing")
    with pytest.raises(InputError, match="a Parquet file of draws"):
        Predicted().blocks(run)


def test_predictions_that_say_nothing_are_called_so(tmp_path: Path) -> None:
    run = build(tmp_path, seeds=3)
    for seed in range(3):
        predict(run.branch("steered", seed), seed, skill=0.0)
    text, (table,) = shown(run)
    assert "told prompts apart:" not in text
    assert isinstance(table, Table)
    ends = [row[3].partition("[")[2].rstrip("]").split(", ") for row in table.rows]
    assert max(int(low) for low, _ in ends) < min(int(high) for _, high in ends), "one line fits all: a flat one"


@pytest.mark.parametrize("draw", [(5.0, True, 1.0), (-0.5, True, 1.0), (float("inf"), True, 1.0), (0.5, True, float("inf"))])
def test_shares_outside_zero_to_one_are_named(tmp_path: Path, draw: tuple[float, bool, float]) -> None:
    run = RunFolder(tmp_path)
    branch(run, 0, [*EVEN, draw])
    with pytest.raises(InputError, match=r"draws\.parquet: expected predicted and success of 0 to 1"):
        Predicted().blocks(run)


@pytest.mark.parametrize("entry", [[0, "<b>"], [0, 1e308], [0, float("nan")], [0, -1], [0, None], "8"])
def test_lines_that_count_no_completions_are_left_out(tmp_path: Path, entry: Any) -> None:
    run = RunFolder(tmp_path)
    branch(run, 0, EVEN)
    _, rest = shown(run)
    with (run.branch("steered", 0) / "steps.jsonl").open("a") as file:
        file.write(json.dumps({"step": 1, "groups": 0, "success": {"t": entry}}) + "\n")
        file.write(json.dumps({"step": 2, "groups": 1e-300, "success": {"t": [1.0, 8]}}) + "\n")
    assert shown(run)[1] == rest


def test_where_all_groups_came_out_alike_nothing_is_told_apart(tmp_path: Path) -> None:
    run = RunFolder(tmp_path)
    branch(run, 0, [(0.1, True, 0.0), (0.2, True, 0.0), (0.3, False, 1.0)], gain=[0.03, 0.001], judged=2)
    text, _ = shown(run)
    assert text.startswith("All groups drawn evenly had the same success (0 %): there was nothing to tell apart.")
