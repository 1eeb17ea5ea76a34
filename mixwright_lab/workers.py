"""Workers for many one-thread runs: each job in a fresh process of a few, answers in the order of the jobs."""

from __future__ import annotations

import multiprocessing
import os
import sys
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from typing import Any, TypeVar

WORKER_COUNT = 2
Job = TypeVar("Job")
Answer = TypeVar("Answer")


def run_in_processes(work: Callable[[Job], Answer], jobs: Sequence[Job], *, say: str = "") -> list[Answer]:
    """What `work` answers for each job. `work` and jobs are sent to processes, so `work` is a function of a module.

    Args:
        work: done once per job, in a process with one thread.
        jobs: in any order; seeds belong into them.
        say: what to call a finished job on stderr; nothing is said without it.
    """
    os.environ["OMP_NUM_THREADS"] = "1"
    answers: list[Any] = []
    with ProcessPoolExecutor(
        WORKER_COUNT, mp_context=multiprocessing.get_context("spawn"), initializer=_one_thread
    ) as workers:
        for number, answer in enumerate(workers.map(work, jobs), 1):
            answers.append(answer)
            if say:
                sys.stderr.write(f"{say} {number} of {len(jobs)}\n")
    return answers


def _one_thread() -> None:
    import torch

    torch.set_num_threads(1)
