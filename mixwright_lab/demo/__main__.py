"""Demo of the main job on a pretrained model: it learns one task, forgets others, and a plan is tried against that.

`make demo` runs it; `FULL=1` also tries what people try by hand: ordinary requests in the same file, a lower
learning rate, and a smaller adapter afterwards.
Every step is a command, or a script of TRL, that is printed before it runs.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from mixwright_lab.demo.by_hand import MIXED
from mixwright_lab.demo.files import ITEMS_PER_TASK
from mixwright_lab.demo.steps import PLANNED, Demo
from mixwright_lab.demo.training import Training

SHORT_STEPS, SHORT_ITEMS = 3, 5
"""Training steps, and items per task, of the same demo where its figures do not matter."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the demo, or only its audit, which needs no model; the last line printed is `verdict: PATH`."""
    parser = argparse.ArgumentParser(prog="python -m mixwright_lab.demo", description=__doc__)
    told = "audit: the data alone; mixed: only ordinary requests mixed in by hand; planned: only the plan"
    parser.add_argument("part", nargs="?", choices=("audit", "all", MIXED, PLANNED), default="all", help=told)
    parser.add_argument("--share", type=float, help="planned: share of the draws that keeps what the model can do")
    parser.add_argument("--full", action="store_true", help="also everything that people try by hand")
    parser.add_argument("--short", action="store_true", help="the same with a few items and steps, to see that it runs")
    parser.add_argument("--seed", type=int, default=0, help="of the test items, the requests and the training")
    parser.add_argument("--folder", type=Path, default=Path("runs") / "demo", help="where everything is written")
    options = parser.parse_args(arguments)
    training = Training(steps=SHORT_STEPS) if options.short else Training()
    demo = Demo(options.folder, options.seed, training, SHORT_ITEMS if options.short else ITEMS_PER_TASK)
    if options.part == "audit":
        demo.audit()
        return 0
    if options.part == PLANNED:
        demo.measure_and_find_models()
        demo.make_plan(options.share)
        demo.finish(demo.judge_planned())
        return 0
    if options.part == MIXED:
        demo.measure_and_find_models()
        demo.finish(demo.by_hand(milder=False), MIXED)
        return 0
    return demo.run(full=options.full)


if __name__ == "__main__":
    sys.exit(main())
