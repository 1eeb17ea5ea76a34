"""Verb `replicates`: how far a ranking of candidates can be believed."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import pyarrow as pa
import pyarrow.csv
import pyarrow.json
import pyarrow.parquet
import typer

from mixwright.extend import READINGS, InputError, Json, RunFolder, TrialResult, check_regular, output, read_json
from mixwright_extras.mining.replicates import Ranking, format_ranking, ranking

Scores = list[list[list[float]]]
"""Group, candidate, run."""
READERS = {".parquet": pyarrow.parquet.read_table, ".jsonl": pyarrow.json.read_json, ".json": pyarrow.json.read_json}
"""End of a table's name -> its reader; any other is CSV."""
COLUMNS_TEXT = "columns candidate and score, and optionally group and run (the seed)"
MAX_SCORE = 1e150
"""Largest score, above and below 0: the squares of as many as fit into memory still have a finite sum."""


def replicates(
    scores: Annotated[str | Path, typer.Argument(metavar="RUN|SCORES")],
    *,
    target: Annotated[float, typer.Option(min=0.01, max=0.99)] = 0.8,
) -> Ranking:
    """Check whether a ranking of candidates is noise. Says how many runs of each would make it reliable.

    Examples:
        >>> replicates("scores.csv").word
        'reliable'

    Args:
        scores: A run folder with a trial, or a CSV, JSONL or Parquet table: candidate, score, and optionally group and run.
        target: Reliability to reach.

    Raises:
        InputError: no such table or trial, no numbers as scores or too large ones, too few runs, or a wrong target.
    """
    if not 0 < target < 1:
        raise InputError("a reliability above 0 and below 1 as the target", repr(target), "Correct it.")
    path = Path(scores)
    found, paired = _read_trial_scores(RunFolder(path)) if path.is_dir() else _read_table_scores(path)
    _check_runs(found, paired, path)
    return ranking(found, paired=paired, target=target)


def show(found: Ranking, *, as_json: Json = False) -> None:
    """Print what the ranking is worth."""
    if as_json:
        output.out_json({"ranking": found, "word": found.word})
        return
    for line in format_ranking(found):
        output.out(line)


def _check_runs(scores: Scores, paired: bool, path: Path) -> None:
    """Raises InputError where there are too few candidates or runs, or paired runs of unequal number."""
    counts = sorted({len(runs) for group in scores for runs in group})
    got = f"{sum(map(len, scores))} candidates in {len(scores)} groups, with {counts} runs"
    if not scores or min(map(len, scores)) < 2 or counts[0] < 2:
        raise InputError("two candidates in each group, each with two runs or more", got, "Add runs.", file=path)
    if paired and any(len({len(runs) for runs in group}) > 1 for group in scores):
        raise InputError("as many seeds of every arm, which are paired", got, "Finish the trial.", file=path)


def _check_score(score: object, score_name: str, path: Path) -> float:
    """The score of one row. Raises InputError, naming its place, for what is no number or too large to be squared."""
    if not isinstance(score, int | float) or not abs(score) <= MAX_SCORE:  # NaN is not below any number
        expected = f"{score_name}: a number between {-MAX_SCORE:g} and {MAX_SCORE:g}"
        raise InputError(expected, repr(score)[:80], "Correct it.", file=path)
    return float(score)


def _read_trial_scores(run: RunFolder) -> tuple[Scores, bool]:
    """The primary outcome of every arm that trains, paired by seed."""
    result = read_json(run.result, TrialResult)
    name = READINGS[result.decoding].name
    arms: dict[str, list[float]] = {}
    for number, row in sorted(enumerate(result.rows), key=lambda numbered: numbered[1].seed):
        if row.name == name and row.value is not None and row.arm != "frozen" and row.arm not in result.nulls:
            arms.setdefault(row.arm, []).append(_check_score(row.value, f"rows.{number}.value", run.result))
    return [list(arms.values())], True


def _read_table_scores(path: Path) -> tuple[Scores, bool]:
    """Scores of a table; paired where it has runs, and every candidate of a group has the same ones."""
    check_regular(path)
    try:
        table: pa.Table = READERS.get(path.suffix, pyarrow.csv.read_csv)(path)
    except (OSError, pa.ArrowException) as error:
        expected = f"a run folder, or a CSV, JSONL or Parquet table with {COLUMNS_TEXT}"
        raise InputError(expected, str(error)[:120], "Name one.", file=path) from None
    missing_columns = [name for name in ("candidate", "score") if name not in table.column_names]
    if missing_columns:
        got = ", ".join(table.column_names[:8])
        raise InputError(COLUMNS_TEXT, f"{got}: no {missing_columns[0]}", "Rename the columns.", file=path)
    rows: list[dict[str, Any]] = table.to_pylist()
    groups: dict[Any, dict[Any, list[tuple[Any, float]]]] = {}
    for number, row in enumerate(rows, start=1):
        score = _check_score(row["score"], f"score in row {number}", path)
        candidate_runs = groups.setdefault(row.get("group"), {}).setdefault(row["candidate"], [])
        candidate_runs.append((row.get("run", len(candidate_runs)), score))
    for group in groups.values():
        for runs in group.values():
            runs.sort(key=lambda run: str(run[0]))
    runs_match = all(len({tuple(name for name, _ in runs) for runs in group.values()}) == 1 for group in groups.values())
    scores = [[[score for _, score in runs] for runs in group.values()] for group in groups.values()]
    return scores, runs_match and "run" in table.column_names
