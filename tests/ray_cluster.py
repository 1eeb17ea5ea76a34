"""A Ray cluster of this machine for tests: a head, and perhaps further raylets, each ended by its process id."""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

QUIET = {
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_gcs_rpc_server_reconnect_timeout_s": "5",  # how long others live on without the head
    "RAY_health_check_period_ms": "500",
    "RAY_health_check_failure_threshold": "4",
}
"""Environment of all parts of the cluster, and of who gives it jobs."""


class Cluster:
    """A head with some raylets; `with` ends all of them."""

    def __init__(self, cores: int = 2) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="mw-", dir="/tmp"))  # sockets have short paths
        own = {"RAY_TMPDIR": str(self.folder), "RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": secrets.token_hex(32)}
        self.settings = {**QUIET, **own}
        self.environment = {**os.environ, **self.settings}
        self.port = free_port()
        self.address = f"127.0.0.1:{self.port}"
        self.parts: list[subprocess.Popen[bytes]] = []
        self._start("--head", f"--port={self.port}", "--include-dashboard=false", f"--num-cpus={cores}")
        until = time.monotonic() + 60
        while not answers(self.port):
            assert self.parts[0].poll() is None and time.monotonic() < until, "no Ray head"  # noqa: PT018
            time.sleep(0.1)

    def __enter__(self) -> Cluster:
        return self

    def __exit__(self, *_: object) -> None:
        for part in reversed(self.parts):
            end(part)
        shutil.rmtree(self.folder, ignore_errors=True)

    def add(self, cores: int = 1) -> subprocess.Popen[bytes]:
        """One more raylet; returns its process, whose group has all that belongs to it."""
        return self._start(f"--address={self.address}", f"--num-cpus={cores}")

    def _start(self, *options: str) -> subprocess.Popen[bytes]:
        program = [str(Path(sys.executable).parent / "ray"), "start", "--block", "--node-ip-address=127.0.0.1"]
        memory = "--object-store-memory=100000000"
        with (self.folder / f"part{len(self.parts)}.log").open("wb") as log:
            part = subprocess.Popen(
                [*program, memory, *options], env=self.environment, stdout=log, stderr=log, start_new_session=True
            )
        self.parts.append(part)
        return part


def end(part: subprocess.Popen[bytes]) -> None:
    """Kill a part of a cluster with all its processes, those of its own session."""
    session = os.getsid(part.pid) if part.poll() is None else part.pid
    for pid in processes_of(session):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    part.wait()


def processes_of(session: int) -> list[int]:
    """Ids of the processes of a session."""
    found = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            if int(path.read_text().rpartition(")")[2].split()[3]) == session:
                found.append(int(path.parent.name))
    return found


def answers(port: int) -> bool:
    """Whether somebody listens."""
    with socket.socket() as line:
        return line.connect_ex(("127.0.0.1", port)) == 0


def free_port() -> int:
    """A port that nobody uses now."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]
