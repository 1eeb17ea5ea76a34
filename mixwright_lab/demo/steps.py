"""Steps of the demo, each a command of Mixwright or a training through TRL, timed and printed before it runs."""

from __future__ import annotations

import runpy
import shlex
import sys
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from mixwright_lab.demo.requests import RequestFiles, write_requests
from mixwright_lab.demo.training import Training, fine_tune

MODEL, AT_ONCE = "smollm2", 2
EXIT_FAILED = (1, 2)
"""Exit codes of input that was refused and of a bug of ours."""
CLOSING = (
    "One seed is a demonstration. What was asked came with Mixwright; of the kinds of requests in 'kinds that are never "
    "replayed' none was trained on. Next, on your own model and rows: mixwright verdict BASE TUNED --trained-on train.jsonl"
)


NO_TOOLS = (
    "SmolLM2's chat template shows neither tools nor calls; TRL alone would leave both out without a word. Mixwright\n"
    "writes calls as <tool_call>{...}</tool_call>. It would write tools into the system message, but train.jsonl has none."
)


MARKED = (
    "With their tools in the system message, rows cost other requests less: trained on 24 public rows with calls, five "
    "seeds, models kept 58 % of the right answers, and 2 % without the tools; but beside a tool, both call one whatever is "
    "asked (python -m mixwright_lab.studies.calls)."
)


@dataclass
class Demo:
    """One demo in a folder.

    Args:
        folder: where everything is written.
        seed: of the files and of the training.
        training: how the first model is trained; the second one sees the new rows as often.
        margin: loss that the gate excludes, in points.
        max_items: general requests at the last interim analysis.
        max_new_tokens: tokens of an answer; of those that are replayed three times as many.
    """

    folder: Path
    seed: int = 0
    training: Training = field(default_factory=Training)
    margin: int = 15
    max_items: int = 480
    max_new_tokens: int = 40
    began: float = field(default_factory=time.monotonic)

    @cached_property
    def files(self) -> RequestFiles:
        """The files, written on first use."""
        return write_requests(self.folder / "files", self.seed)

    def audit(self) -> None:
        """Look at the data as it was delivered; no model is needed."""
        say("1. The data as it was delivered: requests, their tools and tool calls. Its flaws are planted.")
        self.step(lambda: command("audit", self.files.with_tools, "--eval", self.files.delivered))
        say("The leaked items leave the test.\n")

    def run(self) -> int:
        """Everything after the audit; returns 0 where the page was written."""
        say("2. The model is trained on tool calls alone, as a script of TRL does it (LoRA).")
        say(NO_TOOLS)
        narrow = self.train("narrow", self.files.train)
        say("\n3. What did it learn, and what became of everything else? Nobody has written a test of that.")
        self.judge(narrow, self.files.train)
        say(MARKED)
        say("\n4. The plan: the model answers general requests itself, and these answers go among the rows.")
        plan = ("--max-new-tokens", 3 * self.max_new_tokens, "--folder", self.folder / "plan")
        self.step(lambda: command("plan", MODEL, self.files.train, *plan))
        mix = self.folder / "plan" / "mix.jsonl"
        say("\n5. The same training on the mixed file, as many passes over the new rows.")
        planned = self.train("planned", mix)
        say("\n6. The same question of this model.")
        self.judge(planned, mix)
        say(CLOSING)
        say(f"done in {time.monotonic() - self.began:.0f} s, installation not counted")
        say(f"verdict: {self.folder / 'planned' / 'verdict.html'}")
        return 0

    def judge(self, model: Path, trained_on: Path) -> int:
        """Ask for the verdict on a model; returns its exit code."""
        options = ("--trained-on", trained_on, "--eval", self.files.test, "--max-new-tokens", self.max_new_tokens)
        options += ("--margin", self.margin, "--max-items", self.max_items, "--folder", self.folder / model.name)
        return self.step(lambda: command("verdict", MODEL, model, *options))

    def train(self, name: str, rows: Path) -> Path:
        """Train on a file, by steps that pass over the new rows as often as the first training does; return the adapter."""
        count, new = (len(path.read_text(encoding="utf-8").splitlines()) for path in (rows, self.files.train))
        steps = round(self.training.steps * count / new)
        out, how = self.folder / "models" / name, Training(steps=steps)
        say(f"$ SFTTrainer on {rows}: {steps} steps of {how.batch} rows")
        self.step(lambda: fine_tune(MODEL, rows, out, how, seed=self.seed, at_once=AT_ONCE) or 0)
        return out

    def step(self, work: Callable[[], int]) -> int:
        """Do a step, and say how long it took; returns its exit code."""
        began = time.monotonic()
        code = work()
        say(f"  ({time.monotonic() - began:.0f} s)")
        return code


def say(line: str) -> None:
    """Print a line at once."""
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def command(verb: str, *arguments: object) -> int:
    """Run a command of Mixwright in this process, so that torch is imported once; returns its exit code.

    Raises:
        SystemExit: it refused its input or failed, which ends the demo.
    """
    given = [verb, *map(str, arguments)]
    say(f"$ mixwright {shlex.join(given)}")
    before, sys.argv = sys.argv, ["mixwright", *given]  # the page names the command that it was made by
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FutureWarning)  # of peft, which reads a name that transformers renames
            runpy.run_module("mixwright", run_name="__main__")
    except SystemExit as leaving:
        code = leaving.code if isinstance(leaving.code, int) else 0
        if code in EXIT_FAILED:
            raise
        return code
    finally:
        sys.argv = before
    return 0
