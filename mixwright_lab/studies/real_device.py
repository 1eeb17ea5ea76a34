"""Jobs of the studies of a real model side by side on one accelerator, for as long as it is lent.

Each job is that of its study, at the same settings and in float32, and appends to the rows of its study with the name of the
device; the studies' own commands then finish what is left and write the results. What has a row, on whichever device, is not
done again. The waves come in the order in which they are named, or all of them in this one: `grpo`; of `real_sft` `first`
(the arms of the primary question), `harmless` and `others`; `skills`, the candidates, `skill`, the study of one, and `gate`,
its models for the study of the gate; `mine`; `weights`, all weights in place of LoRA. A job that fails is reported and left.
Nothing is timed here: processes share the device, at the same time where NVIDIA's MPS runs (`nvidia-cuda-mps-control -d`).
MIXWRIGHT_COMMIT names the commit where the tree is a copy.

    MIXWRIGHT_PUBLIC=FOLDER python -m mixwright_lab.studies.real_device --minutes 8 [--waves ...] [--workers 14] [--quick]
"""

from __future__ import annotations

import argparse
import gc
import multiprocessing
import os
import sys
import time
import traceback
from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, Future, ProcessPoolExecutor, wait
from dataclasses import dataclass
from functools import partial
from typing import Any

from mixwright_lab.studies import real_all_weights, real_grpo, real_mine, real_sft, real_skill_sft, real_skills
from mixwright_lab.studies.real_models import HARMLESS
from mixwright_lab.studies.sft_study import SFTStudy

BYTES_PER_WORKER = 8 * 2**30
"""Of the accelerator: weights, activations and logits of one training."""


@dataclass(frozen=True)
class Task:
    """One job of a study."""

    name: str
    function: Callable[..., None]
    arguments: tuple[Any, ...]
    after: str = ""
    """Name of a task that makes what this one begins with."""


def grpo_tasks(quick: bool) -> list[Task]:
    """Every arm that is left, after the model that all arms of its seed begin from."""
    seeds = real_grpo.QUICK if quick else real_grpo.SEEDS
    known = set() if quick else {(row["seed"], row["arm"]) for row in real_grpo.kept_rows()}
    others = [
        Task(f"grpo {seed} {arm}", real_grpo.do_arm, (arm, seed, quick), f"grpo {seed} {real_grpo.FROZEN}")
        for seed in seeds
        for arm in real_grpo.ARMS[1:]
        if (seed, arm) not in known
    ]
    lacking = sorted(
        {task.arguments[1] for task in others} | {seed for seed in seeds if (seed, real_grpo.FROZEN) not in known}
    )
    firsts = [Task(f"grpo {seed} {real_grpo.FROZEN}", real_grpo.do_arm, (real_grpo.FROZEN, seed, quick)) for seed in lacking]
    return [*firsts, *others]


def sft_tasks(
    study: SFTStudy, quick: bool, *, seeds: Sequence[int] | None = None, arms: Collection[str] | None = None
) -> list[Task]:
    """Trainings of a study of SFT that have no row, of these seeds and arms or of all."""
    jobs = study.jobs_left(quick, seeds, arms)
    return [Task(f"{study.name} {job.seed} {job.name} {job.arms[0]}", study.do_job, (job,)) for job in jobs]


def skill_tasks(quick: bool) -> list[Task]:
    """Every candidate for a new skill."""
    return [
        Task(f"skill {job.skill} {job.rate:g} {job.shuffled}", real_skills.do_job, (job,))
        for job in real_skills.jobs_left(quick)
    ]


def mine_tasks(quick: bool) -> list[Task]:
    """Arms that have no row."""
    return [Task(f"mine {job.world} {job.seed} {job.arm}", real_mine.do_job, (job,)) for job in real_mine.jobs_left(quick)]


WAVES: Mapping[str, Callable[[bool], list[Task]]] = {
    "grpo": grpo_tasks,
    "first": partial(sft_tasks, real_sft.STUDY, arms=real_sft.FIRST_ARMS),
    "harmless": partial(sft_tasks, real_sft.STUDY, arms=HARMLESS),
    "others": partial(sft_tasks, real_sft.STUDY, arms=set(real_sft.STUDY.arms) - {*real_sft.FIRST_ARMS}),
    "skills": skill_tasks,
    "skill": partial(sft_tasks, real_skill_sft.STUDY),
    "gate": partial(sft_tasks, real_skill_sft.STUDY, seeds=real_skill_sft.STUDY.gate_seeds),
    "mine": mine_tasks,
    "weights": partial(sft_tasks, real_all_weights.STUDY),
}
"""Name -> what is left of it; a flag says that the small version is meant."""


def all_tasks(waves: Sequence[str], quick: bool) -> list[Task]:
    """In the order in which they are begun."""
    return [task for name in waves for task in WAVES[name](quick)]


def work(task: Task) -> str:
    """Do it, and give its memory back; what went wrong, or nothing."""
    import torch

    try:
        task.function(*task.arguments)
    except Exception:  # one arm that fails is no reason to lose the others
        return traceback.format_exc()
    finally:
        gc.collect()
        if torch.cuda.is_available():
            torch.cuda.empty_cache()
    return ""


def count_workers() -> int:
    """As many as the accelerator's memory and the cores allow."""
    import torch

    cores = max(1, (os.cpu_count() or 1) - 2)
    if not torch.cuda.is_available():
        return cores
    return min(cores, torch.cuda.get_device_properties(0).total_memory // BYTES_PER_WORKER)


def main() -> None:
    """Begin tasks in order while the minutes last; at their end whatever is under way is dropped."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, required=True)
    parser.add_argument(
        "--waves", nargs="+", choices=tuple(WAVES), default=tuple(WAVES), metavar="WAVE", help=", ".join(WAVES)
    )
    parser.add_argument("--workers", type=int, default=0)
    parser.add_argument("--quick", action="store_true")
    given = parser.parse_args()
    end = time.monotonic() + 60 * given.minutes
    os.environ |= {"OMP_NUM_THREADS": "1", "TOKENIZERS_PARALLELISM": "false"}
    waiting, done = all_tasks(given.waves, given.quick), set[str]()
    workers = given.workers or count_workers()
    report(f"{len(waiting)} jobs, {workers} workers")
    going: dict[Future[str], Task] = {}
    executor = start(workers)
    while (waiting or going) and time.monotonic() < end:
        ready = [task for task in waiting if not task.after or task.after in done][: workers - len(going)]
        waiting = [task for task in waiting if task not in ready]
        going |= {executor.submit(work, task): task for task in ready}
        if not going:
            break
        for future in wait(going, timeout=1.0, return_when=FIRST_COMPLETED).done:
            task = going.pop(future)
            try:
                error = future.result()
            except BrokenExecutor:  # a process died, and the others with it
                report(f"{task.name} and {len(going)} others: a process died")
                waiting, going, executor = [*going.values(), *waiting], {}, start(workers)
                break
            done |= set() if error else {task.name}
            report(f"{task.name}: {error[-1500:] if error else f'done, {end - time.monotonic():.0f} s left'}")
    report(f"{len(done)} done, {len(waiting) + len(going)} left")
    for process in multiprocessing.active_children():
        process.kill()
    sys.stderr.flush()
    os._exit(0)  # threads of the executor would wait for what was dropped


def start(workers: int) -> ProcessPoolExecutor:
    """Processes that begin anew: an accelerator cannot be used after a fork."""
    return ProcessPoolExecutor(workers, multiprocessing.get_context("spawn"))


def report(line: str) -> None:
    """A line on stderr."""
    print(line, file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
