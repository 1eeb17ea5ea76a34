"""Demo of the main job on a pretrained model: it learns one task, forgets others, and a plan keeps them.

`make demo` runs it. Every step is a command, or a script of TRL, that is printed before it runs.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from mixwright_lab.demo.steps import Demo
from mixwright_lab.demo.training import Training

SHORT: dict[str, Any] = {"training": Training(steps=3), "margin": 45, "max_new_tokens": 16}
"""The same demo where its figures do not matter."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the demo, or only its audit, which needs no model; the last line printed is `verdict: PATH`."""
    parser = argparse.ArgumentParser(prog="python -m mixwright_lab.demo", description=__doc__)
    parser.add_argument("part", nargs="?", choices=("audit", "all"), default="all", help="audit: the data alone")
    parser.add_argument("--short", action="store_true", help="the same with a few steps and items, to see that it runs")
    parser.add_argument("--seed", type=int, default=0, help="of the test items, the requests and the training")
    parser.add_argument("--folder", type=Path, default=Path("runs") / "demo", help="where everything is written")
    options = parser.parse_args(arguments)
    demo = Demo(options.folder, options.seed, **(SHORT if options.short else {}))
    if options.part == "audit":
        demo.audit()
        return 0
    return demo.run()


if __name__ == "__main__":
    sys.exit(main())
