"""What all tests share: one thread, no network, reproducible hypothesis, the command line."""

import contextlib
import functools
import gc
import importlib.util
import multiprocessing
import os
import sys
from collections.abc import Callable, Iterator
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("HF_DATASETS_OFFLINE", "1")
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")

import pytest
from cli_call import Call
from forked import as_a_program
from hypothesis import HealthCheck, settings
from older_trl import expect

from mixwright.run import workers
from mixwright.run.folder import STORE_VARIABLE

settings.register_profile("mixwright", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("mixwright")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    expect(items)
    if importlib.util.find_spec("reasoning_gym") is None:
        for item in items:
            if item.get_closest_marker("gym"):
                item.add_marker(pytest.mark.skip(reason="no Reasoning Gym (make optional)"))


@pytest.fixture(scope="module", autouse=True)
def few_objects_to_collect() -> Iterator[None]:
    """Every `Trainer.train` collects garbage twice; with all imported objects on the heap that is half a trainer test."""
    gc.freeze()
    yield
    gc.unfreeze()


@pytest.fixture(autouse=True)
def own_store(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """No test finds what another one measured."""
    monkeypatch.setenv(STORE_VARIABLE, str(tmp_path_factory.mktemp("store")))


@pytest.fixture(scope="session", autouse=True)
def other_weights() -> Iterator[None]:
    """Add `TORCH_SEED` to every seed of torch: what a test says is learnt must be learnt from other weights, too."""
    shift = int(os.environ.get("TORCH_SEED", "0"))
    if not shift:
        yield
        return
    import torch

    seed = torch.manual_seed
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(torch, "manual_seed", lambda number: seed(number + shift))
        yield


@pytest.fixture(scope="session", autouse=True)
def trainers_start_fast() -> Iterator[None]:
    """Without what accelerate and datasets do for every trainer, which takes as long as so short a run.

    They look up which packages there are, collect garbage, and make names for caches that rows in memory have not.
    """
    with pytest.MonkeyPatch.context() as patch:
        if imports := sys.modules.get("accelerate.utils.imports"):
            patch.setattr(imports, "_is_package_available", functools.cache(imports._is_package_available))
        if memory := sys.modules.get("accelerate.utils.memory"):
            patch.setattr(memory, "clear_device_cache", lambda garbage_collection=False: None)
        if prints := sys.modules.get("datasets.fingerprint"):
            patch.setattr(prints, "update_fingerprint", lambda *_: prints.generate_random_fingerprint())
        yield


def forked(link: Connection, other_end: Connection) -> None:
    """Body of a worker that was forked; it sees its link close only if it does not hold the other end too."""
    other_end.close()
    as_a_program()
    workers._work(link)


def fork() -> workers._Worker:
    """A worker that need not import what the tests have imported: torch and TRL alone take seconds."""
    context = multiprocessing.get_context("fork")
    ours, theirs = context.Pipe()
    process = context.Process(target=forked, args=(theirs, ours), daemon=True)
    process.start()
    theirs.close()
    return workers._Worker(process, ours)


@pytest.fixture(scope="session", autouse=True)
def workers_fork() -> Iterator[Callable[[], workers._Worker]]:
    """Workers fork in all tests; gives what starts one as a user's does."""
    with pytest.MonkeyPatch.context() as patch:
        spawn = workers._start
        patch.setattr(workers, "_start", fork)
        yield spawn


@pytest.fixture(autouse=True)
def workers_spawn(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, workers_fork: Callable[[], workers._Worker]
) -> None:
    """Workers start anew in tests marked `spawned`."""
    if request.node.get_closest_marker("spawned") is not None:
        monkeypatch.setattr(workers, "_start", workers_fork)


@pytest.fixture(autouse=True)
def no_heartbeat(monkeypatch: pytest.MonkeyPatch) -> None:
    """A command in this process writes no line because the machine is busy."""
    if "mixwright.__main__" in sys.modules:
        monkeypatch.setattr("mixwright.__main__.heartbeat", contextlib.nullcontext)


@pytest.fixture
def call(capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Call:
    """Run a command in an empty folder; returns exit code, stdout, stderr."""
    from mixwright.__main__ import main

    monkeypatch.setattr("mixwright.__main__.heartbeat", contextlib.nullcontext)
    monkeypatch.chdir(tmp_path)

    def run(*arguments: str) -> tuple[int, str, str]:
        code: Any = 0
        try:
            main(arguments)
        except SystemExit as leaving:
            code = leaving.code or 0
        said = capsys.readouterr()
        return code, said.out, said.err

    return run
