"""Parts that the numbered examples share: a made-up task file, small settings, and the run folder they all write to."""

import json
import random
import sys

from mixwright.config import CorpusConfig, MeasureConfig, ModelConfig, RunConfig, TrainConfig, TrialConfig, WarmupConfig
from mixwright.run.folder import RunFolder

RUN = RunFolder(sys.argv[1] if len(sys.argv) > 1 else "runs/examples")
ROWS = RUN.path / "rows.jsonl"
CONFIG = RunConfig(
    corpus=CorpusConfig(str(ROWS)),
    model=ModelConfig(width=32, depth=2, heads=2, warmup=WarmupConfig(steps=300, cells={"sum@1": 1, "last": 1})),
    measure=MeasureConfig(items=40, samples=8, max_new_tokens=4),
    train=TrainConfig(steps=4, prompts=4, generations=4, max_new_tokens=4),
    trial=TrialConfig(arms=("uniform", "steered"), seeds=2, workers=1),
)


def write_rows() -> None:
    """Sums of one-digit and of two-digit numbers, and the last letter of a word: task, level, prompt and answer."""
    rng = random.Random(0)
    small = [(a, b) for a in range(10) for b in range(10)]
    large = rng.sample([(a, b) for a in range(10, 100) for b in range(10, 100)], 200)
    words = sorted({"".join(rng.choice("abcdefgh") for _ in range(4)) for _ in range(200)})
    rows = [{"task": "sum", "level": 1, "prompt": f"{a}+{b}=", "answer": str(a + b)} for a, b in small]
    rows += [{"task": "sum", "level": 2, "prompt": f"{a}+{b}=", "answer": str(a + b)} for a, b in large]
    rows += [{"task": "last", "prompt": f"last of {word}:", "answer": word[-1]} for word in words]
    rng.shuffle(rows)
    ROWS.parent.mkdir(parents=True, exist_ok=True)
    ROWS.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
