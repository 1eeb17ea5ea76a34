"""Demo of the main job on real input: Reasoning Gym tasks, a tiny model, a lever against three references, one page.

`make demo` runs it with 8 seeds; `FULL=1` takes 12 seeds and more steps. Everything but the first act is what
`mixwright run mixwright_lab/demo.yaml` does.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from rich.console import Console

from mixwright.config import CorpusConfig, RunConfig
from mixwright.records import Observation
from mixwright.runs import RunFolder, read_yaml, write_json

SETTINGS = Path(__file__).with_name("demo.yaml")
ITEMS = 500
"""Items per Reasoning Gym seed in the first act."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the demo; the last line printed is `verdict: PATH`."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--full", action="store_true", help="12 seeds, 160 steps")
    parser.add_argument("--folder", type=Path, default=None, help="run folder (default runs/demo or runs/demo-full)")
    options = parser.parse_args(arguments)
    from mixwright import api

    console = Console(highlight=False)
    began = time.monotonic()

    def say(line: str) -> None:
        console.print(f"[{time.monotonic() - began:5.0f} s] {line}", markup=False)

    folder = RunFolder(options.folder or Path("runs") / ("demo-full" if options.full else "demo"))
    config = settings(full=options.full)
    say("audit: two Reasoning Gym seeds next to each other, 1 for training and 2 for testing")
    observations = neighbouring_seeds(folder.path.parent / f".{folder.path.name}-seeds")
    for seen in observations:
        if seen.severity == "error":
            say(f"  {seen.severity}: {seen.message}")
    folder.path.mkdir(parents=True, exist_ok=True)
    write_json(folder.path / "audit_neighbouring_seeds.json", observations)  # the page shows it beside the run's own audit
    page = api.run(config, folder, say=say, console=console)
    say("done")
    sys.stdout.write(f"verdict: {page}\n")
    return 0


def settings(*, full: bool) -> RunConfig:
    """The demo's settings; `full` has more seeds and more steps."""
    config = read_yaml(SETTINGS, RunConfig)
    if not full:
        return config
    return replace(config, train=replace(config.train, steps=160), trial=replace(config.trial, seeds=12))


def neighbouring_seeds(place: Path) -> list[Observation]:
    """What the audit says of gcd items made with Reasoning Gym's seeds 1 (train) and 2 (eval), contamination only."""
    from mixwright.api import audit

    files = {seed: seeded_file(place, seed) for seed in (1, 2)}
    return audit(CorpusConfig(train=str(files[1]), eval=str(files[2])), checks=["contamination"])


def seeded_file(place: Path, seed: int, *, task: str = "gcd", items: int = ITEMS) -> Path:
    """A JSONL of `items` items of one Reasoning Gym seed, as its own examples would make it."""
    import reasoning_gym

    place.mkdir(parents=True, exist_ok=True)
    path = place / f"{task}_seed_{seed}.jsonl"
    rows = reasoning_gym.create_dataset(task, size=items, seed=seed)
    lines = [json.dumps({"task": task, "prompt": row["question"], "answer": row["answer"]}) for row in rows]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


if __name__ == "__main__":
    sys.exit(main())
