"""Run folder: where each stage reads and writes its records, so that any stage can be re-run or hand-edited alone.

Layout:
    manifest.json  corpus/  audit.json  measure/<name>.parquet  measure/notes.json  scan/<base>/part-00000.parquet  plan.yaml
    trial/result.json  trial/<arm>-<seed>/{steps.jsonl,decisions.jsonl,draws.parquet,before.parquet,after.parquet,
    *.answers.parquet,model/}  verdict.html  verdict.json
Files are written whole or not at all; a lock stops two runs in one folder.
"""

from __future__ import annotations

import contextlib
import dataclasses
import fcntl
import json
import os
import shutil
import stat
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import yaml

from mixwright.errors import InputError, system_error
from mixwright.records import Measurement, Plan, from_data, to_data

T = TypeVar("T")
BAD_VALUES = (ValueError, KeyError, AttributeError, TypeError, RecursionError)
"""What PyYAML raises for a value of a tag or a form that it cannot be: 2020-99-99, `!!bool maybe`."""
MAX_ALIASES = 30
"""Aliases of a YAML file: each may stand for others, so that a few dozen can stand for more values than memory holds."""
MAX_DEPTH = 100
"""Levels of a YAML file, one in the other."""
STORE_VARIABLE = "MIXWRIGHT_STORE"
"""Names another folder than `.mixwright` in the current one."""
REMEDY_BROKEN = "Correct the file, or run the stage again that writes it."


def cache_folder() -> Path:
    """Folder of what commands keep for each other: MIXWRIGHT_CACHE, else `mixwright` in the user's cache."""
    users = Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache") / "mixwright"
    return Path(os.environ.get("MIXWRIGHT_CACHE") or users).expanduser()


def find_store() -> Path:
    """Return the folder of what is kept for later commands. All of it can be deleted at any time.

    `measure`, `plan` and `verdict` of a checkpoint keep what a model answered there, for each other and for later: a command
    that was stopped goes on from there.
    """
    return Path(os.environ.get(STORE_VARIABLE) or ".mixwright")


@contextlib.contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """A temporary path beside `path`, moved there at the end: readers see the old file or the new one, never a part.

    Raises:
        InputError: `path` is a device or a pipe, which a rename would replace, or what the system refused (a full disk, a
            read-only file system); nothing half-written stays.
    """
    path = path.resolve() if path.is_symlink() else path
    check_regular(path)
    temporary = path.with_name(f".{path.name[:64]}.{os.getpid()}")  # the longest name that is allowed has no room for more
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        yield temporary
        temporary.replace(path)
    except OSError as error:
        raise system_error(error, path) from error
    finally:
        with contextlib.suppress(OSError):
            temporary.unlink(missing_ok=True)


@contextlib.contextmanager
def replacing_folder(folder: Path) -> Iterator[Path]:
    """An empty folder beside `folder`, moved there at the end; what is there before, which is not whole, is removed.

    Raises:
        OSError: as the system does, also where another process made the folder meanwhile.
    """
    partial_folder = folder.with_name(f".{folder.name}.{os.getpid()}.partial")
    shutil.rmtree(folder, ignore_errors=True)
    try:
        partial_folder.mkdir(parents=True, exist_ok=True)
        yield partial_folder
        partial_folder.rename(folder)
    finally:
        shutil.rmtree(partial_folder, ignore_errors=True)


def write_text(path: Path, text: str) -> None:
    """Write `text` to `path` atomically. Raises InputError when the system refuses."""
    with replacing(path) as temporary:
        temporary.write_text(text, encoding="utf-8", errors="backslashreplace")  # halves of characters cannot be written


def write_table(path: Path, table: Any) -> None:
    """Write an Arrow table as Parquet, atomically. Raises InputError when the system refuses."""
    import pyarrow.parquet as pq

    with replacing(path) as temporary:
        pq.write_table(table, temporary)


def append_lines(path: Path, lines: Sequence[str]) -> None:
    """Write lines at the end of a file, on a new one where a stop has cut the last.

    Raises:
        InputError: the system refuses; what stood there stays, to the byte.
    """
    text, size_before = "".join(f"{line}\n" for line in lines), None
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        size_before = path.stat().st_size if path.is_file() else 0
        with path.open("ab+") as file:
            if size_before:
                file.seek(-1, os.SEEK_END)
                text = text if file.read(1) == b"\n" else f"\n{text}"
            file.write(text.encode("utf-8"))
    except OSError as error:
        if size_before is not None:  # the part that was written is taken back
            with contextlib.suppress(OSError):
                os.truncate(path, size_before)
        raise system_error(error, path) from error


def write_json(path: Path, records: Any) -> None:
    """Write a record, or a list of them, as JSON. Raises ValueError on NaN: it is not JSON."""
    write_text(path, json.dumps(to_data(records), indent=1, allow_nan=False) + "\n")


def read_json(path: Path, cls: type[T]) -> T:
    """Read one record. Raises InputError with file and line on broken JSON or a wrong field."""
    return from_data(cls, _parse(path), file=path, texts_are_numbers=False)


def read_list(path: Path, cls: type[T]) -> list[T]:
    """Read a list of records. Raises InputError as `read_json` does."""
    data = _parse(path)
    if not isinstance(data, list):
        raise InputError("a JSON list", type(data).__name__, REMEDY_BROKEN, file=path)
    return [from_data(cls, item, file=path, texts_are_numbers=False) for item in data]


def _parse(path: Path) -> Any:
    check_file(path)
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise InputError("a file", "nothing", "Run the stage that writes it first.", file=path) from None
    except (ValueError, RecursionError) as error:  # a number of 5000 digits is a ValueError
        line = getattr(error, "lineno", None)
        raise InputError("JSON", str(error), REMEDY_BROKEN, file=path, line=line) from None


def read_json_lines(
    path: Path, *, check: Callable[[Mapping[str, Any]], None] = lambda item: None, remedy: str = "Remove the line."
) -> Iterator[dict[str, Any]]:
    """The objects of a JSON-lines file, one at a time; none when there is no file. Empty lines are passed over.

    Args:
        path: of the file.
        check: raises ValueError for an object that does not belong there.
        remedy: what to do about a broken line.

    Raises:
        InputError: a line is broken, with file and line, a folder stands there, or the system refuses.
    """
    check_file(path)
    if not path.is_file():
        return
    try:
        with path.open(encoding="utf-8", errors="replace") as file:
            for number, text in enumerate(file, start=1):
                if not text.strip():
                    continue
                try:
                    item = json.loads(text)
                    if not isinstance(item, dict):
                        raise ValueError(type(item).__name__)
                    check(item)
                except (ValueError, RecursionError) as error:
                    got = str(error)[:120] or type(error).__name__
                    raise InputError("one JSON object per line", got, remedy, file=path, line=number) from None
                yield item
    except OSError as error:
        raise system_error(error, path) from error


def read_kept(path: Path) -> Iterator[dict[str, Any]]:
    """The objects of a JSON-lines file that was appended to; a line that a stop cut is as if it had not been written."""
    for line in path.read_text(encoding="utf-8", errors="replace").splitlines() if path.is_file() else ():
        with contextlib.suppress(ValueError, RecursionError):
            if isinstance(item := json.loads(line), dict):
                yield item


def answers_file(measurements: Path) -> Path:
    """Return where the answers lie that a table of measurements was computed from."""
    return measurements.with_suffix(".answers.parquet")


def write_measurements(path: Path, rows: Iterable[Measurement]) -> None:
    """Write measurements as one long-format Parquet table, atomically."""
    import pyarrow as pa

    number, text = pa.float64(), pa.string()
    kinds = {f.name: text for f in dataclasses.fields(Measurement)}
    kinds |= {"value": number, "low": number, "high": number, "n": pa.int64(), "level": number, "null": number}
    schema = pa.schema(list(kinds.items()))
    rows = list(rows)
    write_table(path, pa.table([[getattr(row, name) for row in rows] for name in kinds], schema=schema))


def read_measurements(path: Path) -> list[Measurement]:
    """Read what `write_measurements` wrote. Raises InputError where there is no such table."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    check_file(path)  # a folder would be read as a table of all files in it
    try:
        table = pq.read_table(path, columns=[field.name for field in dataclasses.fields(Measurement)])
        return [Measurement(*row) for row in zip(*table.to_pydict().values(), strict=True)]
    except FileNotFoundError:
        raise InputError("a file of measurements", "nothing", "Run `mixwright measure` first.", file=path) from None
    except (OSError, pa.ArrowException, TypeError, ValueError) as error:
        remedy = "Run `mixwright measure` again."
        raise InputError("a Parquet file of measurements", str(error)[:120], remedy, file=path) from None


def write_plan(path: Path, plan: Plan) -> None:
    """Write a plan as YAML, each number's reason under `why`."""
    write_text(path, yaml_text(to_data(plan), width=120))


def yaml_text(data: Any, **layout: Any) -> str:
    """YAML of JSON-ready values; letters of any script stay readable, line breaks that YAML would read otherwise do not."""
    text = yaml.safe_dump(data, sort_keys=False, allow_unicode=True, **layout)
    hidden = any(mark in text for mark in "\x85\u2028\u2029")
    return yaml.safe_dump(data, sort_keys=False, allow_unicode=False, **layout) if hidden else text


def read_yaml(path: Path, cls: type[T]) -> T:
    """Read a hand-editable record. Raises InputError with file and line on broken YAML, unknown fields and wrong values."""
    check_file(path)
    try:
        root, data = compose_yaml(path.read_text(encoding="utf-8"), path)
    except FileNotFoundError:
        remedy = "Make it with `mixwright plan`." if cls is Plan else "Write it first: mixwright run --init."
        raise InputError("a file", "nothing", remedy, file=path) from None
    except (yaml.YAMLError, *BAD_VALUES) as error:
        mark = getattr(error, "problem_mark", None)
        line = mark.line + 1 if mark else None
        raise InputError("YAML", str(getattr(error, "problem", error)), "Correct that line.", file=path, line=line) from None
    return from_data(cls, data, file=path, line_of=lambda keys: _line_of(root, keys))


def check_own_folder(folder: Path, *marks: str, option: str = "--folder") -> None:
    """Raises InputError for a folder that holds something, unless a file of such a name marks it as an earlier output.

    Args:
        folder: that is to be written.
        marks: names of files.
        option: which names the folder.
    """
    if not folder.exists() or any((folder / mark).is_file() for mark in marks):
        return
    if not folder.is_dir() or {path.name for path in folder.iterdir()} - {".lock"}:
        expected = "a new or empty folder, or one of an earlier output" if marks else "a new or empty folder"
        got = "a folder with other files" if folder.is_dir() else "a file"
        raise InputError(expected, got, f"Name another {option}.", file=folder)


def check_regular(*paths: Path) -> None:
    """Raises InputError for a pipe, a socket or a device, which would be waited for without end."""
    _check_kinds(paths, {stat.S_IFREG, stat.S_IFDIR})


def check_file(*paths: Path) -> None:
    """Raises InputError as `check_regular` does, and for a folder in the place of a file, which would count as no file."""
    _check_kinds(paths, {stat.S_IFREG})


def _check_kinds(paths: Iterable[Path], kinds: Collection[int]) -> None:
    for path in paths:
        with contextlib.suppress(OSError, ValueError):  # what is not there is told by who reads it
            kind = stat.S_IFMT(path.stat().st_mode)
            if kind not in kinds:
                is_folder = kind == stat.S_IFDIR
                got = "a folder" if is_folder else "a pipe, a socket or a device"
                remedy = "Move the folder away, or name a file." if is_folder else "Name a file."
                raise InputError("a file", got, remedy, file=path)


def compose_yaml(text: str, path: Path) -> tuple[Any, Any]:
    """The nodes of a YAML text, and its data. Raises InputError for what PyYAML would take in silence, or never finish."""
    aliases = depth = 0
    for event in yaml.parse(text, yaml.SafeLoader):  # as it is read: PyYAML takes time quadratic in the depth
        aliases += isinstance(event, yaml.AliasEvent)
        depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
        if aliases > MAX_ALIASES or depth > MAX_DEPTH:
            expected = f"at most {MAX_ALIASES} aliases (*name) and {MAX_DEPTH} levels"
            raise InputError(expected, "more", "Write the values out.", file=path, line=event.start_mark.line + 1)
    loader = yaml.SafeLoader(text)
    try:
        root = loader.get_single_node()
        if root is None:
            return None, None
        _check_keys(root, path)
        return root, loader.construct_document(root)  # pyright: ignore[reportArgumentType] - stubs want one class of node
    finally:
        loader.dispose()


def _check_keys(root: Any, path: Path) -> None:
    """Raises InputError for a key that stands twice in a mapping: the first value would be lost."""
    waiting, seen = [root], set[int]()
    while waiting:
        node = waiting.pop()
        if id(node) in seen or not isinstance(node, yaml.CollectionNode):
            continue
        seen.add(id(node))
        if not isinstance(node, yaml.MappingNode):
            waiting += node.value
            continue
        known = set[str]()
        for key, value in node.value:
            name = str(key.value)
            if name in known and name != "<<":
                line = key.start_mark.line + 1
                raise InputError("each key once", f"{name!r} twice", "Remove one of them.", file=path, line=line)
            known.add(name)
            waiting.append(value)


def _line_of(root: Any, keys: Sequence[str | int]) -> int | None:
    """Line (1-based) of the value that `keys` lead to among YAML nodes; the deepest that exists."""
    node, line = root, None
    for key in keys:
        if isinstance(node, yaml.MappingNode):
            child = next(((k, v) for k, v in node.value if k.value == str(key)), None)
            if child is None:
                break
            line, node = child[0].start_mark.line + 1, child[1]
        elif isinstance(node, yaml.SequenceNode) and isinstance(key, int) and key < len(node.value):
            node = node.value[key]
            line = node.start_mark.line + 1
    return line


def read_plan(path: Path) -> Plan:
    """Read a plan. Raises InputError as `read_yaml` does, and when weights do not sum to 1."""
    plan = read_yaml(path, Plan)
    for stage in plan.stages:
        total = sum(stage.weights.values())
        if not stage.weights or any(not 0 <= weight <= 1 for weight in stage.weights.values()) or abs(total - 1) > 1e-3:
            expected = f"weights of stage {stage.name!r} between 0 and 1, summing to 1"
            raise InputError(expected, f"{total:g}", "Correct them.", file=path)
    return plan


class RunFolder:
    """Paths of one run. Makes the folder on first write, never on reading."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self._is_kept = False
        self._keeper: contextlib.ExitStack | None = None
        self.manifest = self.path / "manifest.json"
        self.settings = self.path / "run.yaml"
        self.corpus = self.path / "corpus"
        self.audit = self.path / "audit.json"
        self.notes = self.path / "measure" / "notes.json"
        self.plan = self.path / "plan.yaml"
        self.result = self.path / "trial" / "result.json"
        self.page = self.path / "verdict.html"
        self.verdict_data = self.path / "verdict.json"

    def measurements(self, name: str) -> Path:
        """`measure/<name>.parquet`; name is before, after ..."""
        return self.path / "measure" / f"{name}.parquet"

    def answers(self, name: str) -> Path:
        """Path of the answers of a base, or of one side of a comparison."""
        return answers_file(self.measurements(name))

    def kept_answers(self, name: str) -> Path:
        """File of what a model of the run answered so far, until it is measured: nothing is written twice."""
        return self.path / "answers" / f"{name}.jsonl"

    def drop_kept(self) -> None:
        """Remove the kept answers, last, after all that was made of them is written."""
        shutil.rmtree(self.path / "answers", ignore_errors=True)

    def branch(self, arm: str, seed: int) -> Path:
        """Folder of one arm and seed of the trial."""
        return self.path / "trial" / f"{arm}-{seed}"

    def branches(self) -> list[tuple[str, int, Path]]:
        """(arm, seed, folder) of every branch there is, sorted."""
        branches = []
        for folder in sorted((self.path / "trial").glob("*-*")) if (self.path / "trial").is_dir() else []:
            arm, _, seed = folder.name.rpartition("-")
            if folder.is_dir() and seed.isdecimal() and seed.isascii():
                branches.append((arm, int(seed), folder))
        return sorted(branches)

    @contextlib.contextmanager
    def lock(self) -> Iterator[None]:
        """Hold the folder. Raises InputError when another process holds it; the lock dies with its process."""
        with contextlib.ExitStack() as stack:
            if self._keeper is None:
                self._take_lock(stack)
            elif not self._is_kept:
                self._take_lock(self._keeper)
                self._is_kept = True
            yield

    @contextlib.contextmanager
    def keep_lock(self) -> Iterator[None]:
        """Keep a lock that is taken inside until the end: nobody else writes between measuring and judging."""
        with contextlib.ExitStack() as self._keeper:
            self._keeper.callback(vars(self).update, _keeper=None, _is_kept=False)
            yield

    def _take_lock(self, stack: contextlib.ExitStack) -> None:
        self.path.mkdir(parents=True, exist_ok=True)
        check_regular(self.path / ".lock")
        file = stack.enter_context((self.path / ".lock").open("a"))
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            remedy = "Wait for the other run, or choose another folder."
            raise InputError("a run folder nobody else is using", str(self.path), remedy) from None
