"""Copy of a run folder behind an address, such as `s3://bucket/prefix`: what is finished outlives its machine, and moves.

A run works in its folder on this machine, where locks and renames are. `Storage.opened` takes the storage for one command,
gets what is there and not here, and puts what is new here: at the end, and whenever somebody calls `push`. A branch and a
starting model are whole or not there: the file that says that they are finished goes first and comes last. `.storage.json`
knows how files were when both were the same: size and time here, size and version there. What is older than what stays so,
in either direction, because stages go by the times of files: `.times.json` there has those of the command that put last.
"""

from __future__ import annotations

import contextlib
import fcntl
import filecmp
import functools
import json
import os
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from mixwright.errors import InputError, join_some
from mixwright.run.folder import read_json, write_json
from mixwright.run.remote_files import RemoteFile, RemoteFiles
from mixwright.run.storage_user import Usage

T = TypeVar("T")
STATE_FILE, LOCK_FILE = ".storage.json", ".storage.lock"
MARK_FILES = {"trial": "branch.json", "bases": "config.json"}
"""Folder -> the file by which each folder in it is known to be whole."""
TIMES_FILE = ".times.json"
"""In the storage, from its first use on."""
PAGES = ("verdict.html", "verdict.json", "claims.json")
"""What is made of other files: the storage's are as good as those here."""
NOT_KEPT = ("answers/", "trial/logs/", "trial/stages/", "bases/log.txt", "spent.json")
"""What belongs to work under way, beside names that begin with a point."""
SECONDS_BETWEEN_SAVES = 5.0


@dataclass(frozen=True, slots=True)
class Place:
    """A storage, for workers on other machines."""

    address: str
    folder: str
    """Run folder, absolute: the same path on every machine."""
    user: str
    """Of the command: where `.storage.json` names it, the folder is the command's own."""


@dataclass(frozen=True, slots=True)
class Known:
    """A file as it was when it was the same here and there."""

    version: str
    size: int
    time_ns: int
    """Of its last change here."""


@dataclass(frozen=True, slots=True)
class State:
    """What a folder knows of its storage."""

    address: str
    user: str
    """Command that used it last."""
    is_copy: bool
    """Whether a worker made the folder: nothing of it is anybody's own."""
    files: Mapping[str, Known] = field(default_factory=dict)


def mark_of(name: str) -> str | None:
    """The file that says that the branch or model which a file belongs to is whole; None for one that stands for itself."""
    parts = name.split("/")
    return "/".join([*parts[:2], MARK_FILES[parts[0]]]) if len(parts) > 2 and parts[0] in MARK_FILES else None


def finished_files(files: Mapping[str, T]) -> dict[str, T]:
    """The files of a run folder, by their names in it, that a storage keeps: what is finished, and nothing hidden."""
    return {
        name: file
        for name, file in files.items()
        if not any(part.startswith(".") or not part for part in name.split("/"))
        and "\0" not in name
        and not name.startswith(NOT_KEPT)
        and not name.endswith(".spent.json")
        and ((mark := mark_of(name)) is None or mark in files)
    }


def in_order(moments: Mapping[str, float]) -> list[str]:
    """Names by when their files were written; those of a branch stand together, the file that says it is whole last."""
    ends: dict[str, float] = {}
    for name, moment in moments.items():
        unit = mark_of(name) or name
        ends[unit] = max(moment, ends.get(unit, moment))

    def place(name: str) -> tuple[float, str, bool, float, str]:
        mark = mark_of(name)
        return ends[mark or name], mark or "", name == mark, moments[name], name

    return sorted(moments, key=place)


class Storage:
    """The copy of one run folder."""

    def __init__(self, address: str, folder: Path) -> None:
        """Raises InputError where no package knows the address, or one of storage and folder lies in the other."""
        self.folder, self._files = folder.absolute(), RemoteFiles(address)
        if (root := self._files.local_root) is not None:
            here, there = self.folder.resolve(), root.resolve()
            if here == there or here in there.parents or there in here.parents:
                remedy = "Name a place that is neither in the run folder nor around it."
                raise InputError("a storage beside the run folder", f"{there} and {here}", remedy, file=address)
        self._usage: Usage | None = None
        self._known: dict[str, Known] = {}

    @property
    def place(self) -> Place:
        """For workers on other machines."""
        return Place(self._files.address, str(self.folder), self._user_name)

    @property
    def _user_name(self) -> str:
        return self._usage.user.name if self._usage is not None else ""

    @contextlib.contextmanager
    def opened(self) -> Iterator[Storage]:
        """Use the storage for one command, whose folder is locked: get what is new there first, and put what is new here at
        the end, after an error, too.

        Raises:
            InputError: another command uses it, it holds another run's files, or it cannot be used.
        """
        state = _read_state(self.folder)
        self._usage = Usage(self._files, str(self.folder))
        self._check_place()
        with self._usage.held("" if state is None else state.user):
            self.pull()
            try:
                yield self
            except Exception:
                with contextlib.suppress(InputError):  # what stopped the command is told
                    self.push()
                raise
            self.push()

    def _check_place(self) -> None:
        """Mark an empty place as a storage. Raises InputError where it holds files, and no run."""
        if TIMES_FILE in (files := self._files.list()):
            return
        if (found := finished_files(files)) and "manifest.json" not in files:
            got = f"one that holds {join_some(sorted(found))}, and no run"
            raise InputError("an empty storage, or that of a run", got, "Name another --storage.", file=self._files.address)
        self._files.write(TIMES_FILE, b"{}")  # first, so that a stop in the middle of the first put is no obstacle

    def pull(self) -> None:
        """Get what is there and not here, or changed there alone, and forget what was replaced there.

        A branch or starting model that changed on both sides under the same mark is taken from there.

        Raises:
            InputError: anything else changed on both sides (nothing is written then), or the storage cannot be used.
        """
        with self._locked() as is_copy:
            there, here = finished_files(self._files.list()), self._look()
            wanted, times = self._choose(there, here, is_copy=is_copy), self._read_times()
            replaced = {
                name for name, known in self._known.items() if name in there and known.version != there[name].version
            }
            for name in [name for name in self._known if name not in there]:
                is_unchanged = name in here and not self._is_changed(name, here[name])
                if is_unchanged and (is_copy or mark_of(name) in replaced):  # a part that another branch of that name lacks
                    (self.folder / name).unlink(missing_ok=True)
                del self._known[name]  # else it was lost there, and is put again
            marks = {mark for name in wanted if (mark := mark_of(name)) is not None and name in here}
            for mark in marks:  # first: nothing looks whole while it is replaced
                (self.folder / mark).unlink(missing_ok=True)
            moments = {
                name: times[name][1] / 1e9 if name in times and times[name][0] == there[name].size else there[name].moment
                for name in {*wanted, *marks}
            }
            shift = time.time() - max(moments.values(), default=0.0)
            saved = time.monotonic()
            for name in in_order(moments):
                known = self._known.get(name)
                is_restored = known is not None and known.version == there[name].version
                time_ns = known.time_ns if known is not None and is_restored else int((moments[name] + shift) * 1e9)
                self._get(name, there[name], time_ns)
                if time.monotonic() > saved + SECONDS_BETWEEN_SAVES:
                    self._save(is_copy)
                    saved = time.monotonic()

    def _choose(self, there: Mapping[str, RemoteFile], here: Mapping[str, Known], *, is_copy: bool) -> list[str]:
        """Files to get. Raises InputError where others than those of one branch changed on both sides."""
        wanted, torn = list[str](), list[str]()

        def is_changed_here_alone(name: str) -> bool:
            known = self._known.get(name)
            return known is not None and known.version == there[name].version and self._is_changed(name, here[name])

        @functools.cache
        def is_same(name: str) -> bool:
            return self._is_same(name, there[name], here[name])

        for name, file in there.items():
            known, mark = self._known.get(name), mark_of(name)
            if name not in here:
                if mark is None or mark not in here or not is_changed_here_alone(mark):  # else it was replaced here
                    wanted.append(name)
            elif known is not None and known.version == file.version:
                continue  # changed here alone, or not at all
            elif not self._is_changed(name, here[name]) or is_copy:
                wanted.append(name)
            elif is_same(name):
                self._known[name] = Known(file.version, here[name].size, here[name].time_ns)
            elif name in PAGES or (mark is not None and mark in here and is_same(mark)):
                wanted.append(name)
            else:
                torn.append(name)
        if torn:
            remedy = f"Nothing was changed. Move {self.folder} away to go on with the storage's, or name another --storage."
            got = f"two that differ in {join_some(sorted(torn))}"
            raise InputError("a storage and a run folder of the same run", got, remedy, file=self._files.address)
        return wanted

    def push(self) -> None:
        """Put what is new or changed here, and remove there what was removed here, since both were last the same.

        Raises:
            InputError: another command took the storage, or it cannot be used.
        """
        if self._usage is not None:
            self._usage.check()
        with self._locked():
            here = self._look()
            changed = {name for name, file in here.items() if self._is_changed(name, file)}
            gone = self._known.keys() - here.keys()
            if not changed and not gone:
                return
            there = self._files.list()
            marks = {mark for name in changed | gone if (mark := mark_of(name)) is not None}
            changed |= marks & here.keys()
            for name in sorted(marks & there.keys()):  # first: nothing looks whole while it is replaced
                self._files.remove(name)
            for name in there:
                if name not in here and (name in gone or mark_of(name) in marks):
                    self._files.remove(name)
            for name in in_order({name: here[name].time_ns / 1e9 for name in changed}):
                if (self.folder / name).is_file():
                    self._files.put(self.folder / name, name)
            there = self._files.list()
            self._known = {name: known for name, known in self._known.items() if name in here}
            for name in changed & there.keys():
                self._known[name] = Known(there[name].version, here[name].size, here[name].time_ns)
            if self._usage is not None:  # the one command; workers leave the times to it
                times = {name: (known.size, known.time_ns) for name, known in self._known.items()}
                self._files.write(TIMES_FILE, json.dumps(times).encode())

    def _is_changed(self, name: str, file: Known) -> bool:
        """Whether a file of the folder is another one than when it was the same here and there."""
        known = self._known.get(name)
        return known is None or (file.size, file.time_ns) != (known.size, known.time_ns)

    @contextlib.contextmanager
    def _locked(self) -> Iterator[bool]:
        """Hold the folder against other jobs of this machine; yields whether workers alone use it."""
        self.folder.mkdir(parents=True, exist_ok=True)
        with (self.folder / LOCK_FILE).open("a") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            state = _read_state(self.folder)
            if state is not None and state.address != self._files.address:
                state = None
            self._known = {} if state is None else dict(state.files)
            is_copy = not self._user_name and (not self._look() if state is None else state.is_copy)
            self._save(is_copy)
            try:
                yield is_copy
            finally:
                self._save(is_copy)

    def _save(self, is_copy: bool) -> None:
        write_json(self.folder / STATE_FILE, State(self._files.address, self._user_name, is_copy, self._known))

    def _read_times(self) -> dict[str, tuple[int, int]]:
        """Size and time, ns, of files as the command had them that put something last."""
        with contextlib.suppress(ValueError, TypeError, AttributeError):  # none, or one that was cut
            return {
                name: (int(size), int(time_ns)) for name, (size, time_ns) in json.loads(self._files.read(TIMES_FILE)).items()
            }
        return {}

    def _look(self) -> dict[str, Known]:
        """Finished files of the folder, those behind links among them, of no version."""
        found: dict[str, Known] = {}
        seen: set[str] = set()
        for directory, folders, names in os.walk(self.folder, followlinks=True):
            if (real := os.path.realpath(directory)) in seen:  # a link that leads back
                folders.clear()
                continue
            seen.add(real)
            folders[:] = [name for name in folders if not name.startswith(".")]
            for path in (Path(directory, name) for name in names):
                with contextlib.suppress(OSError):
                    stat = path.stat()
                    found[path.relative_to(self.folder).as_posix()] = Known("", stat.st_size, stat.st_mtime_ns)
        return finished_files(found)

    def _get(self, name: str, file: RemoteFile, time_ns: int) -> None:
        path = self.folder / name
        with self._files.fetched(name, file, path) as part:
            os.utime(part, ns=(time_ns, time_ns))
            part.replace(path)
        self._known[name] = Known(file.version, file.size, path.stat().st_mtime_ns)

    def _is_same(self, name: str, there: RemoteFile, here: Known) -> bool:
        """Whether a file holds the same here and there."""
        if there.size != here.size:
            return False
        with self._files.fetched(name, there, self.folder / name) as part:
            return filecmp.cmp(part, self.folder / name, shallow=False)


def _read_state(folder: Path) -> State | None:
    try:
        return read_json(folder / STATE_FILE, State)
    except InputError:  # none, or one that a full disk cut
        return None


def work_beside(place: Place, function: Callable[[Any], T], argument: Any) -> T:
    """Do a job on a machine that may see the run folder by its storage alone: get what is new, work, put what it wrote."""
    state = _read_state(Path(place.folder))
    if state is not None and state.user == place.user:  # the command's own folder
        return function(argument)
    storage = Storage(place.address, Path(place.folder))
    storage.pull()
    result = function(argument)
    storage.push()
    return result
