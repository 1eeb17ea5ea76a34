"""The one command that uses a storage: a file there says who it is, and changes as long as it lives.

No object store has locks. A command that finds another's file looks for a minute whether it changes, which needs no clock
that both share. Two commands that begin in the same second both go on until one of them sees the other's file.
"""

from __future__ import annotations

import contextlib
import json
import logging
import os
import platform
import threading
import time
import uuid
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field, replace

from mixwright.errors import InputError, one_line
from mixwright.run.remote_files import RemoteFiles

USER_FILE = ".user.json"
SECONDS_BETWEEN_SIGNS, SECONDS_WITHOUT_SIGN = 15.0, 60.0
"""How often a command says that it lives, and how long one that says nothing is waited for."""

_log = logging.getLogger("mixwright")


@dataclass(frozen=True, slots=True)
class StorageUser:
    """A command that uses a storage."""

    folder: str
    """Its run folder."""
    name: str = field(default_factory=lambda: uuid.uuid4().hex)
    machine: str = field(default_factory=platform.node)
    process: int = field(default_factory=os.getpid)
    signs: int = 0
    """How often it said that it lives."""


class Usage:
    """A storage in use by one command of this process."""

    def __init__(self, files: RemoteFiles, folder: str) -> None:
        self._files, self.user = files, StorageUser(folder)
        self._other: StorageUser | None = None

    @contextlib.contextmanager
    def held(self, last: str) -> Iterator[None]:
        """Use the storage, and say so, until the end of the block.

        Args:
            last: name of the user that is known to be dead, because it held the lock that this command holds.

        Raises:
            InputError: another command uses it.
        """
        self._wait_for_others(last)
        self._write()
        ended = threading.Event()
        thread = threading.Thread(target=self._give_signs, args=(ended,), daemon=True)
        thread.start()
        try:
            yield
        finally:
            ended.set()
            thread.join()
            with contextlib.suppress(InputError):  # who comes next looks for a minute, then
                if self._read() == self.user:
                    self._files.remove(USER_FILE)

    def check(self) -> None:
        """Raises InputError where another command took the storage."""
        if self._other is not None:
            raise self._in_use(self._other)

    def _wait_for_others(self, last: str) -> None:
        found = self._read()
        if found is None or found.name == last:
            return
        said = f"process {found.process} of {one_line(found.machine, 80)}"
        _log.warning("%s: looking for %g s whether %s still uses it", self._files.address, SECONDS_WITHOUT_SIGN, said)
        until = time.monotonic() + SECONDS_WITHOUT_SIGN
        while time.monotonic() < until:
            time.sleep(min(1.0, SECONDS_WITHOUT_SIGN))
            if (now := self._read()) is None:
                return
            if now != found:
                raise self._in_use(now)

    def _in_use(self, user: StorageUser) -> InputError:
        got = one_line(f"one that process {user.process} of {user.machine} uses for {user.folder}", 300)
        remedy = "Wait for it, or stop it and give the command again a minute later; or name another --storage."
        return InputError("a storage that no other command uses", got, remedy, file=self._files.address)

    def _give_signs(self, ended: threading.Event) -> None:
        """Say again and again that this command lives, until another one took over."""
        while not ended.wait(SECONDS_BETWEEN_SIGNS):
            with contextlib.suppress(InputError):  # a storage that is gone is told by who puts something there
                found = self._read()
                if found is not None and found.name != self.user.name:
                    self._other = found
                    return
                self.user = replace(self.user, signs=self.user.signs + 1)
                self._write()

    def _read(self) -> StorageUser | None:
        with contextlib.suppress(ValueError, TypeError):  # none, or one that was cut
            found = json.loads(self._files.read(USER_FILE))
            return StorageUser(**found) if "name" in found else None
        return None

    def _write(self) -> None:
        self._files.write(USER_FILE, json.dumps(asdict(self.user)).encode())
