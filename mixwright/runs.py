"""The run folder: where each stage reads and writes its records, so that any stage can be re-run or hand-edited alone.

Layout:
    manifest.json  corpus/  audit.json  measure/<name>.parquet  plan.yaml
    trial/result.json  trial/<arm>-<seed>/{steps.jsonl,decisions.jsonl,draws.parquet,before.parquet,after.parquet,
    completions.parquet,model/}  claims.json  verdict.html
Files are written whole or not at all; a lock stops two runs in one folder.
"""

from __future__ import annotations

import contextlib
import dataclasses
import fcntl
import json
import os
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, TypeVar

from mixwright.errors import InputError
from mixwright.records import Measurement, Plan, TrialResult, from_data, to_data

T = TypeVar("T")
NEWEST: dict[type, tuple[str, str]] = {
    TrialResult: (
        "judgements",
        "Run `mixwright trial` again: its branches are trained and judged anew, or choose a new folder.",
    ),
}
"""Record -> a field that earlier versions did not write, and what to do about their files."""


def write_text(path: Path, text: str) -> None:
    """Write `text` to `path` atomically: readers see the old file or the new one, never a part."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text)
        Path(temporary).replace(path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


def write_json(path: Path, records: Any) -> None:
    """Write a record, or a list of them, as JSON. Raises ValueError on NaN: it is not JSON."""
    write_text(path, json.dumps(to_data(records), indent=1, allow_nan=False) + "\n")


def read_json(path: Path, cls: type[T]) -> T:
    """Read one record. Raises InputError with file and line on broken JSON, a wrong field or an earlier version's file."""
    data = _parse(path)
    field, remedy = NEWEST.get(cls, ("", ""))
    if field and isinstance(data, dict) and field not in data:
        raise InputError(
            f"a {cls.__name__} of this version", f"one of an earlier version, without {field}", remedy, file=path
        )
    return from_data(cls, data, file=path)


def read_list(path: Path, cls: type[T]) -> list[T]:
    """Read a list of records. Raises InputError as `read_json` does."""
    data = _parse(path)
    if not isinstance(data, list):
        raise InputError(
            "a JSON list", type(data).__name__, "Correct the file or re-run the stage that writes it.", file=path
        )
    return [from_data(cls, item, file=path) for item in data]


def _parse(path: Path) -> Any:
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise InputError("a file", "nothing", "Run the stage that writes it first.", file=path) from None
    except (ValueError, RecursionError, IsADirectoryError) as error:  # a number of 5000 digits is a ValueError
        line = getattr(error, "lineno", None)
        raise InputError(
            "JSON", str(error), "Correct the file or re-run the stage that writes it.", file=path, line=line
        ) from None


def write_measurements(path: Path, rows: Iterable[Measurement]) -> None:
    """Write measurements as one long-format Parquet table, atomically."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    number, text = pa.float64(), pa.string()
    kinds = {f.name: text for f in dataclasses.fields(Measurement)}
    kinds |= {"value": number, "low": number, "high": number, "n": pa.int64(), "level": number, "null": number}
    schema = pa.schema(list(kinds.items()))
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    pq.write_table(pa.Table.from_pylist([to_data(row) for row in rows], schema=schema), temporary)
    temporary.replace(path)


def read_measurements(path: Path) -> list[Measurement]:
    """Read what `write_measurements` wrote. Raises InputError when it is missing or not such a table."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        return [Measurement(**row) for row in pq.read_table(path).to_pylist()]
    except FileNotFoundError:
        raise InputError("a file of measurements", "nothing", "Run `mixwright measure` first.", file=path) from None
    except (OSError, pa.ArrowException, TypeError) as error:
        raise InputError(
            "a Parquet file of measurements", str(error)[:120], "Run `mixwright measure` again.", file=path
        ) from None


def write_plan(path: Path, plan: Plan) -> None:
    """Write a plan as YAML, each number's reason under `why`."""
    import yaml

    write_text(path, yaml.safe_dump(to_data(plan), sort_keys=False, allow_unicode=True, width=120))


def read_yaml(path: Path, cls: type[T]) -> T:
    """Read a hand-editable record. Raises InputError with file and line on broken YAML, unknown fields and wrong values."""
    import yaml

    try:
        text = path.read_text(encoding="utf-8")
        data = yaml.safe_load(text)
    except FileNotFoundError:
        raise InputError("a file", "nothing", f"Write it first ({cls.__name__}).", file=path) from None
    except (yaml.YAMLError, ValueError, RecursionError, IsADirectoryError) as error:  # 2020-99-99 is a ValueError
        mark = getattr(error, "problem_mark", None)
        line = mark.line + 1 if mark else None
        raise InputError("YAML", str(getattr(error, "problem", error)), "Correct that line.", file=path, line=line) from None
    cells = data.get("cells") if cls is Plan and isinstance(data, dict) else None
    if isinstance(cells, list) and any(isinstance(cell, dict) and "luck" in cell for cell in cells):
        got = "one of an earlier version, whose cells have luck"
        raise InputError("a plan of this version", got, "Measure again and make it anew with `mixwright plan`.", file=path)
    return from_data(cls, data, file=path, line_of=lambda keys: _line_of(text, keys))


def _line_of(text: str, keys: Sequence[str | int]) -> int | None:
    """Line (1-based) of the value that `keys` lead to in a YAML text; the deepest that exists."""
    import yaml

    node = yaml.compose(text, Loader=yaml.SafeLoader)
    line = None
    for key in keys:
        if isinstance(node, yaml.MappingNode):
            found = next(((k, v) for k, v in node.value if k.value == str(key)), None)
            if found is None:
                break
            line, node = found[0].start_mark.line + 1, found[1]
        elif isinstance(node, yaml.SequenceNode) and isinstance(key, int) and key < len(node.value):
            node = node.value[key]
            line = node.start_mark.line + 1
    return line


def read_plan(path: Path) -> Plan:
    """Read a plan. Raises InputError as `read_yaml` does, for an earlier version's, and when weights do not sum to 1."""
    plan = read_yaml(path, Plan)
    for stage in plan.stages:
        total = sum(stage.weights.values())
        if not stage.weights or any(not 0 <= weight <= 1 for weight in stage.weights.values()) or abs(total - 1) > 1e-3:
            raise InputError(
                f"weights of stage {stage.name!r} between 0 and 1, summing to 1", f"{total:g}", "Correct them.", file=path
            )
    return plan


class RunFolder:
    """Paths of one run. Makes the folder on first write, never on reading."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self.manifest = self.path / "manifest.json"
        self.corpus = self.path / "corpus"
        self.audit = self.path / "audit.json"
        self.plan = self.path / "plan.yaml"
        self.result = self.path / "trial" / "result.json"
        self.claims = self.path / "claims.json"
        self.page = self.path / "verdict.html"

    def measurements(self, name: str) -> Path:
        """`measure/<name>.parquet`; name is before, after ..."""
        return self.path / "measure" / f"{name}.parquet"

    def branch(self, arm: str, seed: int) -> Path:
        """Folder of one arm and seed of the trial."""
        return self.path / "trial" / f"{arm}-{seed}"

    def branches(self) -> list[tuple[str, int, Path]]:
        """(arm, seed, folder) of every branch there is, sorted."""
        found = []
        for folder in sorted((self.path / "trial").glob("*-*")) if (self.path / "trial").is_dir() else []:
            arm, _, seed = folder.name.rpartition("-")
            if folder.is_dir() and seed.isdigit():
                found.append((arm, int(seed), folder))
        return sorted(found)

    @contextlib.contextmanager
    def lock(self) -> Iterator[None]:
        """Hold the folder. Raises InputError when another process holds it; the lock dies with its process."""
        self.path.mkdir(parents=True, exist_ok=True)
        with (self.path / ".lock").open("a") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                raise InputError(
                    "a run folder nobody else is using", str(self.path), "Wait for the other run or choose another folder."
                ) from None
            yield
