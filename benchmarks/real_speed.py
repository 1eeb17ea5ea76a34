"""Benchmark of speed on SmolLM2-135M-Instruct: what CPU seconds buy, beside the library that one would use instead.

Generation: completions per CPU second of `Learner.sample` and of transformers' `generate(num_return_sequences=8)`, for the
same prompts, the same number of tokens (no completion ends early) and plain sampling, in turns in one process on one thread.

Weights are Q4_1, dequantised. Each finished row is kept in `results/real_speed.rows.jsonl`; a run that was stopped goes on.

    python -m benchmarks.real_speed [--quick]
"""

from __future__ import annotations

import json
import random
import resource
import statistics
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from benchmarks._report import RESULTS, Goal, Result, interval, run

MODEL = "smollm2"
ROWS_FILE = RESULTS / "real_speed.rows.jsonl"
SEEDS = (11, 23, 37, 53, 71)
COUNT = 8
"""Completions per prompt."""
PROMPTS = 16
CASES = ((150, 16, 2.5), (150, 64, 1.5), (30, 16, None), (30, 64, None))
"""Tokens of a prompt, tokens of a completion, and the ratio that is the goal; None: only reported."""
QUICK_CASES = ((20, 4, None),)


def cpu_seconds() -> float:
    """Of this process, user and system."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


class Writers:
    """Both ways to write the same completions."""

    def __init__(self) -> None:
        from mixwright.learner.load import load_learner

        self.learner = load_learner(MODEL)
        self.learner.check_template()

    def ours(self, prompts: Sequence[Sequence[int]], room: int, seed: int) -> int:
        """Completions written by Mixwright's own generation."""
        from mixwright.learner.batches import reading_mode
        from mixwright.learner.generation import Decoding, GenerationJob, generate

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


def measure_generation(
    cases: Sequence[tuple[int, int, float | None]], seeds: Sequence[int], prompts: int, known: Sequence[Mapping[str, Any]]
) -> Iterator[dict[str, Any]]:
    """A row per case and seed; those that are known are left out."""
    done = {(row["prompt_tokens"], row["room"], row["seed"]) for row in known}
    left = [(case, seed) for seed in seeds for case in cases if (*case[:2], seed) not in done]
    writers = Writers() if left else None
    for (size, room, _), seed in left:
        assert writers is not None
        rng = random.Random(seed)
        asked = [[rng.randint(100, 40_000) for _ in range(size)] for _ in range(prompts)]
        sides: dict[str, Callable[[], int]] = {
            "ours": lambda w=writers, a=asked, r=room, s=seed: w.ours(a, r, s),
            "generate, 8 prompts": lambda w=writers, a=asked, r=room, s=seed: w.rival(a, r, s, 8),
            "generate, 16 prompts": lambda w=writers, a=asked, r=room, s=seed: w.rival(a, r, s, 16),
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
    own = [row for row in rows if (row["prompt_tokens"], row["room"]) == (size, room)]
    return [row["ours"] / max(value for name, value in row.items() if name.startswith("generate")) for row in own]


def measure(quick: bool) -> Result:
    """Measure what is left, and give the ratios."""
    cases, seeds, prompts = (QUICK_CASES, SEEDS[:2], 4) if quick else (CASES, SEEDS, PROMPTS)
    kept = None if quick else ROWS_FILE
    rows = [json.loads(line) for line in kept.read_text().splitlines()] if kept is not None and kept.is_file() else []
    for row in measure_generation(cases, seeds, prompts, rows):
        rows.append(row)
        print(json.dumps(row), file=sys.stderr, flush=True)
        if kept is not None:
            kept.write_text("".join(json.dumps(one) + "\n" for one in rows), encoding="utf-8")
    found = {(size, room): interval(ratios_of(rows, size, room)) for size, room, _ in cases}
    goals = [
        Goal(
            f"completions per CPU second over generate(num_return_sequences=8), {size} + {room} tokens",
            found[size, room],
            f">= {goal}",
            found[size, room].value >= goal,
        )
        for size, room, goal in cases
        if goal is not None
    ]
    first = cases[0]
    return Result(
        found[first[:2]],
        f"times the completions per CPU second of transformers, {first[0]} + {first[1]} tokens",
        seeds,
        rows,
        figures={
            f"{size} + {room} tokens": round(statistics.median(ratios_of(rows, size, room)), 3) for size, room, _ in cases
        },
        settings={"model": "SmolLM2-135M-Instruct, Q4_1 weights, dequantised", "prompts": prompts, "samples": COUNT},
        kind="ratio",
        goals=goals,
    )


if __name__ == "__main__":
    run("real_speed", __doc__, measure)
