"""Study of speed on SmolLM2-135M-Instruct: what CPU seconds buy, beside the library that one would use instead.

Generation: completions per CPU second of `Learner.sample` and of transformers' `generate(num_return_sequences=8)`, for the
same prompts, the same number of tokens (no completion ends early) and plain sampling, in turns in one process on one thread.

Steered steps: CPU seconds inside our own code over those of TRL in the same step, for GRPO, SFT and DPO, with LoRA and
with all weights. The committed rows also hold canary passes, which steering no longer has.

Scan: CPU seconds of all log-probability columns over one plain forward pass of the same rows, and of gradient sketches over
one plain forward and backward pass; and the most memory that the process held in each.

Weights are Q4_1, dequantised. Each finished row is kept in `real_speed.rows.jsonl`; a run that was stopped goes on.

    python -m mixwright_lab.studies.real_speed [--quick]
"""

from __future__ import annotations

import itertools
import json
import random
import resource
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from mixwright.config import CorpusConfig
from mixwright.records import Interval, to_data
from mixwright_lab.studies.jobs import append_row, read_rows
from mixwright_lab.studies.questions import write_files
from mixwright_lab.studies.report import RESULTS, Goal, Result, interval, run

MODEL = "smollm2"
ROWS_FILE = RESULTS / "real_speed.rows.jsonl"
SEEDS = (11, 23, 37, 53, 71)
COUNT = 8
"""Completions per prompt."""
PROMPTS = 8
CASES = ((150, 16, 2.5), (150, 64, 1.5), (30, 16, None), (30, 64, None))
"""Tokens of a prompt, tokens of a completion, and the ratio that is the goal; None: only reported."""
QUICK_CASES = ((20, 4, None),)
STEP_SEEDS = (5, 17, 29, 41, 67)
STEPS = tuple((objective, lora) for objective in ("grpo", "sft", "dpo") for lora in (True, False))
"""Objective, and whether an adapter is trained or all weights."""
SCAN_ROWS, SCAN_ROUNDS = 60, 3
MOST_BOOKKEEPING, MOST_LOGPROBS, MOST_SKETCH = 1.0, 2.5, 1.25


def cpu_seconds() -> float:
    """Of this process, user and system."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


class Writers:
    """Both ways to write the same completions."""

    def __init__(self) -> None:
        from mixwright.learner.load import load_learner

        self.learner = load_learner(MODEL)

    def ours(self, prompts: Sequence[Sequence[int]], room: int, seed: int) -> int:
        """Completions written by Mixwright's own generation."""
        from mixwright.learner.batches import reading_mode
        from mixwright.learner.generation import Decoding, GenerationJob
        from mixwright.learner.shared_generation import generate

        jobs = [GenerationJob(ids, COUNT, (), (place, COUNT, 0)) for place, ids in enumerate(prompts)]
        with reading_mode(self.learner.model), _Endless(self.learner):
            made = [rows for part in generate(self.learner, jobs, Decoding(1.0, room, seed)) for rows in part.values()]
        return _count([row.token_ids for rows in made for row in rows], room)

    def rival(self, prompts: Sequence[Sequence[int]], room: int, seed: int, together: int) -> int:
        """Completions written by transformers, `together` prompts in a batch."""
        import torch

        torch.manual_seed(seed)
        found: list[list[int]] = []
        for first in range(0, len(prompts), together):
            ids = torch.tensor([list(one) for one in prompts[first : first + together]])
            plain: dict[str, Any] = {"do_sample": True, "top_k": 0, "top_p": 1.0, "temperature": 1.0, "pad_token_id": 0}
            with torch.no_grad():
                made = self.learner.model.generate(
                    ids,
                    attention_mask=torch.ones_like(ids),
                    num_return_sequences=COUNT,
                    max_new_tokens=room,
                    min_new_tokens=room,
                    **plain,
                )
            found += made[:, ids.shape[1] :].tolist()
        return _count(found, room)


class _Endless:
    """The learner without end tokens: every completion is as long as it may be."""

    def __init__(self, learner: Any) -> None:
        self.learner, self.kind = learner, type(learner)

    def __enter__(self) -> None:
        self.learner.__class__ = type("Endless", (self.kind,), {"end_ids": frozenset()})

    def __exit__(self, *_: object) -> None:
        self.learner.__class__ = self.kind


def _count(found: Sequence[Sequence[int]], room: int) -> int:
    """Raises ValueError where one has another length, so that no side writes less."""
    if any(len(row) != room for row in found):
        raise ValueError("a completion is shorter than it should be")
    return len(found)


def measure_steps(seeds: Sequence[int], known: Sequence[Mapping[str, Any]], *, quick: bool) -> Iterator[dict[str, Any]]:
    """A row per objective, kind of training and seed; those that are known are left out."""
    from mixwright_lab.studies import gpu
    from mixwright_lab.studies.gpu_pieces import TINY, Size, load, turns

    done = {(row["objective"], row["lora"], row["seed"]) for row in known if row["part"] == "steps"}
    left = [(objective, lora, seed) for seed in seeds for objective, lora in STEPS if (objective, lora, seed) not in done]
    learner = load("" if quick else MODEL) if left else None
    size = TINY if quick else Size(prompts=2, tokens=8, steps=3, warmup=1)
    for objective, lora, seed in left:
        assert learner is not None
        found = turns(learner, objective, seed, size, lora=lora, seconds=time.process_time)
        kept = gpu.bookkeeping_share(found)
        yield {"part": "steps", "objective": objective, "lora": lora, "seed": seed, "bookkeeping, %": kept, **found}


def measure_scan(known: Sequence[Mapping[str, Any]], *, quick: bool) -> Iterator[dict[str, Any]]:
    """A row per round; nothing where they are known."""
    if any(row["part"] == "scan" for row in known):
        return
    from mixwright.corpus import read_corpus
    from mixwright.learner.training_rows import read_training_rows
    from mixwright_extras.scan.sketch_calibration import SketchSettings, calibrate, calibration_rows
    from mixwright_lab.studies import scan_costs
    from mixwright_lab.studies.gpu_pieces import load

    learner = load("" if quick else MODEL)
    with tempfile.TemporaryDirectory() as place:
        corpus = read_corpus(CorpusConfig(str(write_files(Path(place), SEEDS[0]).train)))
    rows = list(read_training_rows(learner, corpus))[: 40 if quick else SCAN_ROWS]
    calibration = calibrate(learner, calibration_rows(rows, 0), SketchSettings())
    for row in scan_costs.costs("SmolLM2", learner, rows, calibration, 2 if quick else SCAN_ROUNDS):
        yield {"part": "scan", "peak_bytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024, **row}


def measure_generation(
    cases: Sequence[tuple[int, int, float | None]], seeds: Sequence[int], prompts: int, known: Sequence[Mapping[str, Any]]
) -> Iterator[dict[str, Any]]:
    """A row per case and seed; those that are known are left out."""
    done = {(row["prompt_tokens"], row["room"], row["seed"]) for row in known if row["part"] == "generation"}
    left = [(case, seed) for seed in seeds for case in cases if (*case[:2], seed) not in done]
    writers = Writers() if left else None
    for (size, room, _), seed in left:
        assert writers is not None
        rng = random.Random(seed)
        asked = [[rng.randint(100, 40_000) for _ in range(size)] for _ in range(prompts)]
        sides: dict[str, Callable[[], int]] = {
            "ours": lambda w=writers, a=asked, r=room, s=seed: w.ours(a, r, s),
            "generate, 4 prompts": lambda w=writers, a=asked, r=room, s=seed: w.rival(a, r, s, 4),
            "generate, 8 prompts": lambda w=writers, a=asked, r=room, s=seed: w.rival(a, r, s, 8),
        }
        order = list(sides)
        rng.shuffle(order)
        row: dict[str, Any] = {"part": "generation", "prompt_tokens": size, "room": room, "seed": seed}
        for name in order:
            began = cpu_seconds()
            made = sides[name]()
            row[name] = made / (cpu_seconds() - began)
        yield row


def ratios_of(rows: Sequence[Mapping[str, Any]], size: int, room: int) -> list[float]:
    """Ours over the faster of the rival's batch sizes, one per seed."""
    own = [row for row in rows if (row.get("prompt_tokens"), row.get("room")) == (size, room)]
    return [row["ours"] / max(value for name, value in row.items() if name.startswith("generate")) for row in own]


def measure(quick: bool) -> Result:
    """Measure what is left, and give the ratios."""
    import torch

    torch.set_num_threads(1)
    cases, seeds, prompts = (QUICK_CASES, SEEDS[:2], 4) if quick else (CASES, SEEDS, PROMPTS)
    kept = None if quick else ROWS_FILE
    rows = [] if kept is None else read_rows(kept)
    parts = (
        measure_generation(cases, seeds, prompts, list(rows)),
        measure_scan(list(rows), quick=quick),
        measure_steps(STEP_SEEDS[:2] if quick else STEP_SEEDS, list(rows), quick=quick),
    )
    for row in itertools.chain(*parts):
        rows.append(row)
        print(json.dumps(row), file=sys.stderr, flush=True)
        if kept is not None:
            append_row(kept, rows[-1])
    first, made = cases[0], generation_figures(rows, cases)
    return Result(
        made[_named(first)],
        f"times the completions per CPU second of transformers, {_named(first)} tokens",
        seeds,
        rows,
        figures={name: to_data(value) for name, value in {**made, **scan_figures(rows), **step_figures(rows)}.items()},
        settings={"model": "SmolLM2-135M-Instruct, Q4_1 weights, dequantised", "prompts": prompts, "samples": COUNT}
        | {"threads": 1},
        kind="ratio",
        goals=goals_of(rows, cases),
    )


def _named(case: tuple[int, int, float | None]) -> str:
    return f"{case[0]} + {case[1]}"


def generation_figures(
    rows: Sequence[Mapping[str, Any]], cases: Sequence[tuple[int, int, float | None]]
) -> dict[str, Interval]:
    """Ours over the rival's, by tokens of prompt and completion."""
    return {_named(case): interval(ratios_of(rows, *case[:2])) for case in cases}


def scan_figures(rows: Sequence[Mapping[str, Any]]) -> dict[str, Interval]:
    """CPU seconds over those of plain passes."""
    from mixwright_lab.studies import scan_costs

    own = [row for row in rows if row["part"] == "scan"]
    return {
        "log-probability columns over a forward pass": interval(
            [row[scan_costs.ALL] / row[scan_costs.PLAIN] for row in own]
        ),
        "sketches over a forward and backward pass": interval(
            [row[scan_costs.SKETCH] / row[scan_costs.BACKWARD] for row in own]
        ),
        "peak memory, GB": interval([row["peak_bytes"] / 1e9 for row in own]),
    }


def step_figures(rows: Sequence[Mapping[str, Any]]) -> dict[str, Interval]:
    """Shares of a step, percent, by objective and what is trained."""
    found = {}
    for objective, lora in STEPS:
        own = [row for row in rows if row["part"] == "steps" and (row["objective"], row["lora"]) == (objective, lora)]
        name = f"bookkeeping, {objective}, {'LoRA' if lora else 'all weights'}, % of a step"
        found[name] = interval([row["bookkeeping, %"] for row in own])
    return found


def goals_of(rows: Sequence[Mapping[str, Any]], cases: Sequence[tuple[int, int, float | None]]) -> list[Goal]:
    """What was fixed before the run: ratios of generation by their value, all others by the upper end of their interval."""
    made, read, steps = generation_figures(rows, cases), scan_figures(rows), step_figures(rows)
    goals = [
        Goal(
            f"completions per CPU second over generate(num_return_sequences=8), {_named(case)} tokens",
            made[_named(case)],
            f">= {case[2]}",
            made[_named(case)].value >= case[2],
        )
        for case in cases
        if case[2] is not None
    ]
    limits = dict.fromkeys(steps, MOST_BOOKKEEPING)
    limits |= dict(zip(read, (MOST_LOGPROBS, MOST_SKETCH), strict=False))
    found = {**steps, **read}
    return goals + [
        Goal(name, found[name], f"<= {limit:g}, upper end too", found[name].high <= limit) for name, limit in limits.items()
    ]


if __name__ == "__main__":
    run("real_speed", __doc__, measure)
