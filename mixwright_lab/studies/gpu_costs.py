"""What SmolLM2 and a model of seven billion parameters cost on one GPU: writing, reading and training.

Figures of `cost_example` that were assumed: seconds of a pass that writes, and how much of the device's peak a training
step and a reading pass reach. The large model has the shape of Mistral 7B and random weights, in bfloat16: what it writes is
noise, and takes as long as sense. SmolLM2 is in float32. Completions are written with the share of the GPU's memory that is
the default for keys and values, with others, and with 16,384 tokens together, which was the default before; rounds change
the order. Greedy completions of SmolLM2 are compared. Training is TRL's SFT (AdamW, recomputed activations) of all weights.

Goals, fixed before any of it ran on a GPU: with the default share completions are written at least 2 times (SmolLM2) and
1.5 times (7 billion) as fast as with 16,384 tokens, and take at most an eighth of the GPU beside the weights; 99 % of the
greedy completions are equal; a pass of the large model takes at most 40 ms, the .03 s of `cost_example` and a third; its
training reaches 30 % of the peak, and reading, too.

Each piece is a process of its own, whose rows are kept; one that has rows is not run again. When the device was lent, time
was short: reading and the training of 8 rows ran side by side (`beside` in their rows), so that each slowed the other, and
the large model did not write (`not run` in the figures, and no goal).

    python -m mixwright_lab.studies.gpu_costs [--quick] [--report]

`--quick` takes tiny models on whatever there is.
"""

from __future__ import annotations

import itertools
import json
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from mixwright.records import Interval
from mixwright_lab.conditions import device
from mixwright_lab.studies.jobs import append_row, read_rows
from mixwright_lab.studies.report import RESULTS, Goal, Result, run

ROWS = RESULTS / "gpu_costs.rows.jsonl"
SMALL, LARGE = "SmolLM2", "7 billion"
SHAPE = {"hidden_size": 4096, "num_hidden_layers": 32, "num_attention_heads": 32, "num_key_value_heads": 8}
SHAPE |= {"intermediate_size": 14336, "max_position_embeddings": 4096}
QUICK_SHAPE = {"hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2}
QUICK_SHAPE |= {"intermediate_size": 128, "max_position_embeddings": 4096}
SHARES = (0.0, 1 / 16, 1 / 8, 1 / 4)
"""Of the GPU's memory for keys and values; 0 leaves 16,384 tokens."""
WRITING = {SMALL: (256, 8, 60, 64), LARGE: (192, 1, 560, 32)}
"""Model -> prompts, completions of each, words of a prompt, tokens of a completion."""
READ_ROWS, READ_WORDS = 64, 250
"""Rows that are read, and words of prompt and answer each; a word of this file is 2.4 tokens in the mean."""
TRAINED = (8, 16)
"""Rows of a training step; one that does not fit is told."""
STEPS = 5
"""Of training; the first is not counted."""
PEAKS = {"NVIDIA H100 80GB HBM3": 989e12, "NVIDIA H200": 989e12}
"""Dense bfloat16 operations per second, by the data sheets."""
PIECES = ("write-small", "write-large", "read-large", *(f"train-large-{rows}" for rows in TRAINED))
WORDS = (Path(__file__).parent / "everyday.py").read_text(encoding="utf-8").split()


def load(which: str, quick: bool) -> Any:
    """One of the two models, on the device that there is."""
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM

    from mixwright.learner.learner import Learner
    from mixwright.learner.load import load_learner
    from mixwright.learner.settings import find_device

    small = load_learner("smollm2")
    if which == SMALL and not quick:
        return small
    shape: dict[str, Any] = dict(QUICK_SHAPE if quick else SHAPE)
    size = small.model.config.vocab_size
    config = LlamaConfig(**shape, vocab_size=size, dtype=torch.float32 if quick else torch.bfloat16)
    config.eos_token_id = small.model.config.eos_token_id
    torch.manual_seed(0)
    with find_device():
        model: Any = LlamaForCausalLM._from_config(config, dtype=config.dtype)
    return Learner(model.eval(), small.tokenizer, which)


def texts(count: int, words: int, seed: int) -> list[str]:
    """Any words, so many each."""
    rng = random.Random(seed)
    return [" ".join(rng.choices(WORDS, k=words)) for _ in range(count)]


def seconds_of(work: Callable[[], Any]) -> tuple[float, float, Any]:
    """Seconds of the clock, most bytes of the device beside what was taken before, and what came out."""
    import torch

    on_gpu = torch.cuda.is_available()
    if on_gpu:
        torch.cuda.synchronize()
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated() if on_gpu else 0
    began = time.perf_counter()
    made = work()
    if on_gpu:
        torch.cuda.synchronize()
    peak = torch.cuda.max_memory_allocated() - before if on_gpu else 0
    return time.perf_counter() - began, peak, made


def write(which: str, quick: bool) -> list[dict[str, Any]]:
    """A row per share and round; the first call, which also loads kernels, is not counted."""
    import hashlib

    import torch

    from mixwright.learner import batches

    learner = load(which, quick)
    prompts, count, words, room = (4, 2, 10, 4) if quick else WRITING[which]
    asked = texts(prompts, words, 7)
    passes = [0]
    learner.model.register_forward_pre_hook(lambda *_: passes.__setitem__(0, passes[0] + 1))
    learner.sample(asked[:2], count=count, temperature=0, max_new_tokens=4, seed=0)

    def sample_all() -> Any:
        return learner.sample(asked, count=count, temperature=1.0, max_new_tokens=room, seed=1)

    rows = []
    for number, shares in enumerate((SHARES, SHARES[::-1])):
        for share in shares:
            batches.GPU_SHARE_FOR_WRITING = share
            passes[0] = 0
            seconds, peak, made = seconds_of(sample_all)
            row = {"piece": "write", "model": which, "share": share, "round": number, "seconds": seconds, "peak": peak}
            row |= {"completions": sum(map(len, made)), "passes": passes[0]}
            row["tokens"] = sum(len(one.token_ids) for found in made for one in found)
            if which == SMALL:
                greedy = learner.sample(asked, count=1, temperature=0, max_new_tokens=room, seed=0)
                digests = [hashlib.blake2b(str(one.token_ids).encode(), digest_size=4).hexdigest() for (one,) in greedy]
                row["greedy"] = digests
            rows.append(row)
    properties = torch.cuda.get_device_properties(0) if torch.cuda.is_available() else None
    return [row | {"device bytes": properties.total_memory if properties else 0} for row in rows]


def operations(learner: Any, tokens: int, length: int) -> float:
    """Of a forward pass, as `cost_example` counts them; the embedding is looked up."""
    config = learner.model.config
    parameters = sum(one.numel() for one in learner.model.parameters()) - config.vocab_size * config.hidden_size
    return 2 * tokens * (parameters + 2 * config.num_hidden_layers * config.hidden_size * length)


def read(quick: bool) -> list[dict[str, Any]]:
    """Rows through the default columns of a scan, twice."""
    from mixwright.config import CorpusConfig
    from mixwright.corpus import read_corpus
    from mixwright.scan.rows import scan_rows
    from mixwright_lab.studies.scan import scanned

    learner, rows = load(LARGE, quick), []
    count = 4 if quick else READ_ROWS
    with tempfile.TemporaryDirectory() as name:
        path = Path(name) / "rows.jsonl"
        pairs = zip(texts(count, READ_WORDS, 1), texts(count, READ_WORDS, 2), strict=True)
        path.write_text("".join(json.dumps({"prompt": p, "completion": c}) + "\n" for p, c in pairs), encoding="utf-8")
        corpus = read_corpus(CorpusConfig(str(path), eval_share=0.0))
    targets = list(scan_rows(learner, corpus))
    sizes = [len(row.prompt) + len(row.target) for row in targets]
    scanned(learner, targets[:2], ("likelihood", "entropy"))
    for number in range(2):
        seconds, peak, _ = seconds_of(lambda: scanned(learner, targets, ("likelihood", "entropy")))
        row = {"piece": "read", "model": LARGE, "round": number, "seconds": seconds, "peak": peak, "tokens": sum(sizes)}
        rows.append(row | {"operations": sum(operations(learner, size, size) for size in sizes)})
    return rows


def train(batch: int, quick: bool) -> list[dict[str, Any]]:
    """Steps of SFT with so many rows each; seconds of all but the first."""
    import torch
    from datasets import Dataset
    from transformers import TrainerCallback
    from trl.trainer.sft_config import SFTConfig
    from trl.trainer.sft_trainer import SFTTrainer

    learner = load(LARGE, quick)
    length = 2 * READ_WORDS
    asked = [learner.tokenizer(text)["input_ids"][:length] for text in texts(batch * STEPS, length, 3)]
    moments: list[float] = []

    class Clock(TrainerCallback):
        """Notes when a step ended."""

        def on_step_end(self, *_: Any, **__: Any) -> None:
            if torch.cuda.is_available():
                torch.cuda.synchronize()
            moments.append(time.perf_counter())

    with tempfile.TemporaryDirectory() as name:
        own: dict[str, Any] = {"use_cpu": True, "bf16": False} if quick else {}
        settings: dict[str, Any] = {"output_dir": name, "max_steps": STEPS, "per_device_train_batch_size": batch}
        settings |= {"save_strategy": "no", "logging_steps": 1, "report_to": "none", "max_length": length}
        dataset = Dataset.from_list([{"input_ids": ids} for ids in asked])
        trainer = SFTTrainer(
            learner.model,
            args=SFTConfig(**(settings | own)),
            train_dataset=dataset,
            processing_class=learner.tokenizer,
            callbacks=[Clock()],
        )
        _, peak, _ = seconds_of(trainer.train)
    tokens = sum(map(len, asked[:batch]))
    checkpointing = any(getattr(trainer.args, f"{word}_checkpointing", False) for word in ("gradient", "activation"))
    steps = [later - earlier for earlier, later in itertools.pairwise(moments)]
    row = {"piece": "train", "model": LARGE, "rows": batch, "seconds": steps, "peak": peak, "tokens": tokens}
    row |= {"operations": 3 * operations(learner, tokens, length), "recomputed": checkpointing}
    losses = [line["loss"] for line in trainer.state.log_history if "loss" in line]
    return [row | {"loss": losses, "weights": str(learner.model.dtype)}]


def make_piece(name: str, quick: bool) -> list[dict[str, Any]]:
    """The rows of one piece."""
    kind, which, *rest = name.split("-")
    if kind == "write":
        return write(SMALL if which == "small" else LARGE, quick)
    return read(quick) if kind == "read" else train(2 if quick else int(rest[0]), quick)


def run_piece(name: str, quick: bool) -> list[dict[str, Any]]:
    """In a process of its own; what went wrong is a row, too."""
    command = [sys.executable, "-m", "mixwright_lab.studies.gpu_costs", "--piece", name, *(["--quick"] if quick else [])]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    if done.returncode:
        print(done.stderr[-1500:], file=sys.stderr)
        memory = "OutOfMemoryError" in done.stderr
        return [{"piece": name, "error": "out of memory" if memory else done.stderr[-600:]}]
    return json.loads(done.stdout.splitlines()[-1])


def measure(quick: bool, begin: bool = True) -> Result:
    """Every piece that has no row; the result of all."""
    rows = [] if quick else read_rows(ROWS)
    known = {row["name"] for row in rows}
    for name in [name for name in PIECES if begin and name not in known]:
        began = time.perf_counter()
        made = [{"name": name, "device": device(), **row} for row in run_piece(name, quick)]
        print(name, f"{time.perf_counter() - began:.0f} s", file=sys.stderr, flush=True)
        for row in made:
            if not quick:
                append_row(ROWS, row)
        rows += made
    return judge(rows)


def single(value: float, times: int) -> Interval:
    """A ratio of few runs has no interval."""
    return Interval(value, value, value, times)


def judge(rows: Sequence[Mapping[str, Any]]) -> Result:
    """Ratios, shares of the peak, and the goals."""
    from mixwright.learner.batches import GPU_SHARE_FOR_WRITING

    figures: dict[str, Any] = {"errors": {row["name"]: row["error"] for row in rows if "error" in row}}
    figures["not run"] = [name for name in PIECES if name not in {row["name"] for row in rows}]
    goals = []
    for which, least in ((SMALL, 2.0), (LARGE, 1.5)):
        written = [row for row in rows if row.get("piece") == "write" and row["model"] == which]
        speeds: dict[float, list[float]] = {}
        for row in written:
            speeds.setdefault(row["share"], []).append(row["completions"] / row["seconds"])
        if not written:
            continue
        mean = {share: sum(found) / len(found) for share, found in speeds.items()}
        figures[f"completions per second, {which}, by share"] = mean
        figures[f"seconds of a pass, {which}, by share"] = {
            row["share"]: row["seconds"] / row["passes"] for row in written if row["round"] == 1
        }
        ratio = mean[GPU_SHARE_FOR_WRITING] / mean[0.0]
        name = f"completions per second with the default share over 16,384 tokens, {which}"
        goals.append(Goal(name, single(ratio, 2), f">= {least:g}", ratio >= least))
        default = [row for row in written if row["share"] == GPU_SHARE_FOR_WRITING]
        taken = max(row["peak"] / max(row["device bytes"], 1) for row in default)
        goals.append(
            Goal(f"memory beside the weights, share of the GPU, {which}", single(taken, 2), "<= 0.125", taken <= 1 / 8)
        )
        if which == SMALL:
            before = next(row["greedy"] for row in written if row["share"] == 0.0)
            same = [a == b for row in written for a, b in zip(before, row["greedy"], strict=True)]
            equal = sum(same) / len(same)
            goals.append(Goal("greedy completions that are equal", single(equal, len(same)), ">= 0.99", equal >= 0.99))
        else:
            longest = max(row["seconds"] / row["passes"] for row in written if row["share"] == 0.0)
            goals.append(Goal("seconds of a pass, 7 billion", single(longest, 2), "<= 0.04", longest <= 0.04))
    read_rows_ = [row for row in rows if row.get("piece") == "read"]
    trained = [row for row in rows if row.get("piece") == "train"]
    found = {}
    if read_rows_:
        row = min(read_rows_, key=lambda row: row["seconds"])
        peak = PEAKS.get(row["device"], float("inf"))
        found["reading"] = 100 * row["operations"] / row["seconds"] / peak
        figures["tokens per second, reading"] = row["tokens"] / row["seconds"]
    for row in trained:
        mean_seconds = sum(row["seconds"]) / len(row["seconds"])
        share = 100 * row["operations"] / mean_seconds / PEAKS.get(row["device"], float("inf"))
        figures[f"training, {row['rows']} rows"] = {
            "utilisation, %": share,
            "tokens per second": row["tokens"] / mean_seconds,
        }
        found["training"] = max(share, found.get("training", 0.0))
    for name, share in found.items():
        goals.append(Goal(f"utilisation, % of the peak, {name}, 7 billion", single(share, 1), ">= 30", share >= 30))
    value = goals[0].found if goals else single(0.0, 0)
    settings = {"shares": SHARES, "writing": WRITING, "shape": SHAPE, "peaks": PEAKS}
    unit = "completions per second with the default share of the GPU over those with 16,384 tokens together, SmolLM2"
    return Result(value, unit, [0], rows, figures, settings, kind="ratio", goals=goals)


if __name__ == "__main__":
    if "--piece" in sys.argv:
        place = sys.argv.index("--piece")
        print(json.dumps(make_piece(sys.argv[place + 1], "--quick" in sys.argv)))
    else:
        run("gpu_costs", __doc__, measure, kept=True)
