"""Storages for tests: a folder of this machine, and a bucket of an S3 server of this process, on a port of its own."""

from __future__ import annotations

import contextlib
import importlib.util
import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

HAS_S3 = all(importlib.util.find_spec(name) is not None for name in ("s3fs", "moto", "flask_cors"))
needs_s3 = pytest.mark.skipif(not HAS_S3, reason="no s3fs, or no moto (make ray)")
BUCKET = "runs"


@contextlib.contextmanager
def s3_server(patch: pytest.MonkeyPatch, port: int = 0) -> Iterator[Any]:
    """A server with an empty bucket, which the environment names."""
    from moto.server import ThreadedMotoServer

    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    server = ThreadedMotoServer("127.0.0.1", port, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    patch.setenv("AWS_ENDPOINT_URL", f"http://{host}:{port}")
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        patch.setenv(name, "made-up")
    patch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    try:
        import fsspec

        fsspec.get_filesystem_class("s3").clear_instance_cache()  # it knows the port of the test before
        with contextlib.suppress(FileExistsError):
            fsspec.filesystem("s3", skip_instance_cache=True).mkdir(BUCKET)
        yield server
    finally:
        server.stop()


@pytest.fixture(params=["file", pytest.param("s3", marks=needs_s3)])
def storage_address(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """An empty storage of each kind."""
    if request.param == "file":
        yield f"file://{tmp_path / 'storage'}"
    else:
        with s3_server(monkeypatch):
            yield f"s3://{BUCKET}/{tmp_path.name}"
