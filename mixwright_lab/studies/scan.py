"""Cost of the scan, agreement of its gradient sketches with the gradients, and its table after kill -9.

The passes: tokens of prompt and target per CPU second with all log-probability passes together, against one plain forward
pass of the same rows in the same batches, and against each group of columns with passes of its own. The sketch: CPU time
against a plain forward and backward pass, and Spearman's rank correlation of cosines with those of the gradients of one row
at a time over all weights, of pairs of rows and of rows with the mean of a task. Arms take turns in one process of one
thread; intervals are over rounds, so their width is the noise. kill -9: the command is killed in the middle and given again;
every file must be the same to the byte as from a scan that was left alone.
"""

from __future__ import annotations

import itertools
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from mixwright.config import CorpusConfig, MeasureConfig, ModelConfig, RunConfig, WarmupConfig
from mixwright.corpus import Corpus, read_corpus
from mixwright.learner.learner import Learner
from mixwright.records import Interval, to_data
from mixwright.run.folder import write_text, yaml_text
from mixwright_lab.studies.report import Goal, Result, interval, run

SOURCE = "reasoning-gym:chain_sum@1x300,spell_backward@1x300,calendar_arithmetic@0x300,count_bits@1x300"
LOGPROBS = ("likelihood", "entropy", "el2n", "ifd", "reverse_ifd")
"""Groups of columns that read log-probabilities."""
COLUMNS = "nll,entropy,el2n,ifd,r_ifd,sketch,hidden,form"
"""What is scanned and killed."""
SIZES = {"0.2M": (64, 4), "1M": (128, 5)}
"""Width and depth of the models."""
BATCH_TOKENS = 2048
"""Padded tokens of a batch of the plain passes: those of the scan."""
ALL, PLAIN, SINGLE, SKETCH, BACKWARD = "all passes", "plain forward", "one by one", "sketch", "plain backward"


def trained(corpus: Corpus, size: str, steps: int) -> Learner:
    """A tiny model after a short SFT."""
    from mixwright.learner.tiny import build_tiny
    from mixwright.learner.warmup import warm_up

    width, depth = SIZES[size]
    texts = [f"{example.prompt} {example.answer}" for example in corpus]
    learner = build_tiny(texts, ModelConfig(width=width, depth=depth), seed=0)
    warm_up(learner, corpus, WarmupConfig(steps=steps, batch_size=32), seed=0)
    return learner


def plain(learner: Learner, rows: Sequence[Any], *, backward: bool) -> None:
    """The same rows in batches of the same size through the model; with `backward` the gradient of the mean loss."""
    import torch

    order = sorted(range(len(rows)), key=lambda i: (len(rows[i].prompt) + len(rows[i].target), i))
    for batch in batches([rows[i] for i in order]):
        longest = max(len(row.prompt) + len(row.target) for row in batch)
        pads = [longest - len(row.prompt) - len(row.target) for row in batch]
        ids = torch.tensor([[*row.prompt, *row.target, *[0] * pad] for row, pad in zip(batch, pads, strict=True)])
        with torch.set_grad_enabled(backward):
            logits = learner.model(input_ids=ids, use_cache=False).logits
        if backward:
            labels = [[-100] * len(r.prompt) + [*r.target] + [-100] * pad for r, pad in zip(batch, pads, strict=True)]
            wanted = torch.tensor(labels)[:, 1:].flatten()
            torch.nn.functional.cross_entropy(logits[:, :-1].flatten(0, 1), wanted).backward()
    learner.model.zero_grad()


def batches(rows: Sequence[Any]) -> list[list[Any]]:
    """Sorted rows, at most `BATCH_TOKENS` padded tokens at a time."""
    found: list[list[Any]] = [[]]
    for row in rows:
        if found[-1] and (len(found[-1]) + 1) * (len(row.prompt) + len(row.target)) > BATCH_TOKENS:
            found.append([])
        found[-1].append(row)
    return found


def scanned(learner: Learner, rows: Sequence[Any], names: Sequence[str], calibration: Any = None) -> None:
    """These groups of columns, over shared passes."""
    from mixwright.scan.passes import ScanPasses
    from mixwright.scan.table import column_groups

    groups = column_groups(names)
    asked: Any = frozenset(name for group in groups.values() for name in group.PASSES)
    passes = ScanPasses(learner, rows, asked, calibration=calibration)
    for group in groups.values():
        group.compute(rows, passes)


def costs(size: str, learner: Learner, rows: Sequence[Any], calibration: Any, rounds: int) -> list[dict[str, Any]]:
    """CPU seconds of every arm, in turns whose order changes."""

    def one_by_one() -> None:
        for name in LOGPROBS:
            scanned(learner, rows, [name])

    arms: dict[str, Callable[[], None]] = {
        ALL: lambda: scanned(learner, rows, LOGPROBS),
        PLAIN: lambda: plain(learner, rows, backward=False),
        SINGLE: one_by_one,
        SKETCH: lambda: scanned(learner, rows, ["sketch"], calibration),
        BACKWARD: lambda: plain(learner, rows, backward=True),
    }
    orders, found = list(itertools.permutations(arms)), []
    for number in range(-1, rounds):
        row: dict[str, Any] = {"size": size, "round": number}
        for arm in orders[(number * 37) % len(orders)]:
            began = time.process_time()
            arms[arm]()
            row[arm] = time.process_time() - began
        if number >= 0:  # the first round warms up
            found.append(row)
    return found


def agreement(learner: Learner, rows: Sequence[Any], calibration: Any) -> dict[str, float]:
    """Spearman's correlation of the sketches' cosines with those of whole gradients, all weights and norms included."""
    import torch

    found = []
    for row in rows:
        learner.model.zero_grad()
        logits = learner.model(input_ids=torch.tensor([[*row.prompt, *row.target]])).logits[0, len(row.prompt) - 1 : -1]
        torch.nn.functional.cross_entropy(logits, torch.tensor(row.target)).backward()
        found.append(torch.cat([p.grad.flatten() for p in learner.model.parameters() if p.grad is not None]).clone())
    learner.model.zero_grad(set_to_none=True)
    whole = torch.stack(found).numpy()
    small = np.concatenate(
        [calibration.sketch(learner).sketch_rows(learner, rows[i : i + 32]).numpy() for i in range(0, len(rows), 32)]
    )
    small = small.astype(np.float16).astype(np.float32)
    pairs = np.triu_indices(len(rows), 1)
    products = [(unit @ unit.T)[pairs] for unit in map(normal, (whole, small))]
    tasks = np.array([row.example.task for row in rows])
    scores = [spearman(score(whole, tasks == task), score(small, tasks == task)) for task in sorted(set(tasks.tolist()))]
    return {"pairs": spearman(*products), "task means": float(np.mean(scores)), "worst task": min(scores)}


def normal(vectors: np.ndarray) -> np.ndarray:
    """Each of length 1."""
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


def score(vectors: np.ndarray, task: np.ndarray) -> np.ndarray:
    """Cosine of each other row with the mean of half of a task's rows."""
    unit, members = normal(vectors), np.nonzero(task)[0]
    chosen = members[: len(members) // 2]
    return np.delete(unit @ unit[chosen].mean(0), chosen)


def spearman(one: np.ndarray, other: np.ndarray) -> float:
    """Correlation of ranks; there are no ties among these numbers."""
    return float(np.corrcoef(np.argsort(np.argsort(one)), np.argsort(np.argsort(other)))[0, 1])


def killed(learner: Learner, corpus: Corpus, kills: int) -> list[dict[str, Any]]:
    """Scans that are killed after so many shards and given again, against one that was left alone."""
    with tempfile.TemporaryDirectory() as name:
        place = Path(name)
        learner.save(place / "model")
        lines = [json.dumps({"id": e.id, "task": e.task, "prompt": e.prompt, "target": e.answer}) for e in corpus]
        write_text(place / "rows.jsonl", "\n".join(lines) + "\n")
        config = RunConfig(
            CorpusConfig("rows.jsonl", eval_share=0.2), ModelConfig(str(place / "model")), MeasureConfig(items=2)
        )
        write_text(
            place / "run.yaml", yaml_text({**to_data(config), "train": {"objective": "sft"}, "trial": {"workers": 1}})
        )
        command(place, "whole").wait()
        wanted, found = contents(place / "whole"), []
        for number in range(kills):
            parts = killed_after(place, f"cut-{number}", number)
            command(place, f"cut-{number}").wait()
            same = contents(place / f"cut-{number}") == wanted
            found.append({"kill": number, "shards when killed": parts, "shards": len(wanted) - 1, "same": same})
    return found


def command(place: Path, folder: str) -> subprocess.Popen[bytes]:
    """`mixwright scan` of its own."""
    given = ["scan", "run.yaml", "--folder", folder, "--columns", COLUMNS]
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    asked = [sys.executable, "-m", "mixwright", *given]
    away = subprocess.DEVNULL
    return subprocess.Popen(asked, cwd=place, env=environment, stdout=away, stderr=away)


def killed_after(place: Path, folder: str, least: int) -> int:
    """Kill a scan once more than `least` shards are there; how many there were."""

    def parts() -> int:
        return len(list((place / folder).glob("scan/*/part-*.parquet")))

    process = command(place, folder)
    while parts() <= least and process.poll() is None:
        time.sleep(0.02)
    process.send_signal(signal.SIGKILL)
    process.wait()
    time.sleep(1)  # its worker ends itself when it sees that its parent is gone
    return parts()


def contents(place: Path) -> dict[str, bytes]:
    """Every file of a scan."""
    return {path.name: path.read_bytes() for path in sorted(place.glob("scan/*/*")) if path.is_file()}


def figures(rows: Sequence[Mapping[str, Any]], tokens: int) -> dict[str, Any]:
    """Tokens per CPU second and ratios of one size."""

    def ratio(above: str, below: str) -> Interval:
        return interval([row[above] / row[below] for row in rows])

    return {
        "tokens per CPU second, all log-probability passes": interval([tokens / row[ALL] for row in rows]),
        "tokens per CPU second, one plain forward pass": interval([tokens / row[PLAIN] for row in rows]),
        "all passes over one plain forward pass": ratio(ALL, PLAIN),
        "passes one by one over all passes": ratio(SINGLE, ALL),
        "sketch over a plain backward pass": ratio(SKETCH, BACKWARD),
        "noise of one round, %": 100
        * float(np.std([row[BACKWARD] for row in rows]) / np.mean([row[BACKWARD] for row in rows])),
    }


def measure(quick: bool) -> Result:
    """Both sizes (the small one when quick); the headline is the sketch's cost on the small one."""
    from mixwright.scan.rows import scan_rows
    from mixwright.scan.sketch_calibration import SketchSettings, calibrate, calibration_rows

    corpus = read_corpus(CorpusConfig(SOURCE.replace("x300", "x150") if quick else SOURCE, eval_share=0.0))
    rounds, compared, every = (3, 96, ["0.2M"]) if quick else (6, 192, list(SIZES))
    raw, found, agreed = [], {}, {}
    for size in every:
        learner = trained(corpus, size, 100 if quick else 500)
        rows = [row for row in scan_rows(learner, corpus) if row.target]
        began = time.process_time()
        calibration = calibrate(learner, calibration_rows(rows, 0), SketchSettings())
        calibrating = time.process_time() - began
        timed = costs(size, learner, rows, calibration, rounds)
        kept = {row.example.id for row in calibration_rows(rows, 0)}
        others = [row for row in rows if row.example.id not in kept]
        agreed[size] = agreement(learner, others[:: max(1, len(others) // compared)][:compared], calibration)
        tokens = sum(len(row.prompt) + len(row.target) for row in rows)
        whole = interval([(row[SKETCH] + calibrating) / row[BACKWARD] for row in timed])
        found[size] = figures(timed, tokens) | {"sketch with its calibration over a plain backward pass": whole}
        found[size] |= {"rows": len(rows), "tokens": tokens, "Spearman": agreed[size]}
        raw += timed
        print(size, found[size], flush=True)
    small = trained(corpus, "0.2M", 20)
    kills = killed(small, corpus, 1 if quick else 2)
    print(kills, flush=True)
    head = found["0.2M"]["sketch over a plain backward pass"]
    return Result(
        head,
        "CPU time of gradient sketches over that of a plain backward pass, 0.2M parameters",
        range(rounds),
        [*raw, *kills],
        figures={name: to_data(values) for name, values in found.items()},
        settings={"source": SOURCE, "rounds": rounds, "compared rows": compared, "sizes": SIZES, "columns": COLUMNS},
        kind="ratio",
        goals=goals(found, agreed, kills),
    )


def goals(found: Mapping[str, Any], agreed: Mapping[str, Any], kills: Sequence[Mapping[str, Any]]) -> list[Goal]:
    """Fixed before the run."""
    made = []
    for size, values in found.items():
        cost, gain = values["sketch over a plain backward pass"], values["passes one by one over all passes"]
        made.append(Goal(f"sketch over a plain backward pass, {size}", cost, "<= 1.25, upper end too", cost.high <= 1.25))
        made.append(Goal(f"passes one by one over all passes, {size}", gain, "> 1, lower end too", gain.low > 1))
        for name in ("pairs", "task means"):
            value = agreed[size][name]
            goal = Goal(
                f"Spearman with exact gradients, {name}, {size}", Interval(value, value, value, 1), ">= 0.97", value >= 0.97
            )
            made.append(goal)
    same = float(np.mean([row["same"] for row in kills]))
    made.append(Goal("same table to the byte after kill -9", Interval(same, same, same, len(kills)), "= 1", same == 1))
    return made


if __name__ == "__main__":
    run("scan", __doc__, measure)
