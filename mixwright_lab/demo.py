"""Demo of the main job: a made pool with flaws of real mixtures, a tiny model, and a plan against three references.

`make demo` runs it with 6 seeds; `FULL=1` takes 12 seeds and half as many steps again. Everything but the first act is what
`mixwright run run.yaml` does.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from rich.console import Console

from mixwright.config import CorpusConfig, RunConfig
from mixwright.records import Observation
from mixwright.runs import RunFolder, read_yaml, write_json
from mixwright_lab.demo_pool import PoolFiles, write_pool

SETTINGS = Path(__file__).with_name("demo.yaml")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the demo; the last line printed is `verdict: PATH`."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--full", action="store_true", help="12 seeds, 120 steps")
    parser.add_argument("--seed", type=int, default=0, help="of the items, the starting models and all training")
    parser.add_argument("--folder", type=Path, default=None, help="run folder (default runs/demo or runs/demo-full)")
    options = parser.parse_args(arguments)
    from mixwright import api

    console = Console(highlight=False)
    began = time.monotonic()

    def say(line: str) -> None:
        console.print(f"[{time.monotonic() - began:5.0f} s] {line}", markup=False)

    folder = RunFolder(options.folder or Path("runs") / ("demo-full" if options.full else "demo"))
    files = write_pool(folder.path.parent / f".{folder.path.name}-files", options.seed)
    found = delivered(files, say)
    folder.path.mkdir(parents=True, exist_ok=True)
    write_json(folder.path / "audit_as_delivered.json", found)  # the page shows it beside the run's own audit
    page = api.run(settings(files, options.seed, full=options.full), folder, say=say, console=console)
    say("done")
    sys.stdout.write(f"verdict: {page}\n")
    return 0


def settings(files: PoolFiles, seed: int, *, full: bool = False) -> RunConfig:
    """The demo's settings on these files; `full` has more seeds and more steps."""
    config = read_yaml(SETTINGS, RunConfig)
    train, held_out, text = (str(path.resolve()) for path in (files.train, files.held_out, files.text))
    warmup = config.model.warmup
    assert warmup is not None
    config = replace(
        config,
        corpus=replace(config.corpus, train=train, eval=held_out),
        model=replace(config.model, warmup=replace(warmup, source=text)),
        seed=1000 * seed,
    )
    if not full:
        return config
    return replace(config, train=replace(config.train, steps=120), trial=replace(config.trial, seeds=12))


def delivered(files: PoolFiles, say: Callable[[str], None]) -> list[Observation]:
    """What the audit says of the pool as it was delivered, contamination only."""
    from mixwright.api import audit

    say("audit: the pool as it was delivered")
    found = audit(CorpusConfig(train=str(files.delivered), eval=str(files.held_out)), checks=["contamination"])
    for seen in found:
        if seen.severity == "error":
            say(f"  {seen.severity}: {seen.message} {seen.remedy}")
    say("the demo goes on with the pool without those rows")
    return found


if __name__ == "__main__":
    sys.exit(main())
