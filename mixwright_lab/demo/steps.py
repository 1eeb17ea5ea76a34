"""Steps of the demo, each a command of Mixwright or a training through TRL, timed and printed before it runs."""

from __future__ import annotations

import hashlib
import json
import runpy
import shlex
import shutil
import sys
import time
import warnings
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from mixwright_lab.demo.files import ITEMS_PER_TASK, PROMPTS, DemoFiles, write_files
from mixwright_lab.demo.tables import NEW_TASK, OLD_TASKS
from mixwright_lab.demo.training import Training

MODEL = "smollm2"
UNPROTECTED_TASK = "plurals"
"""Old task that is measured, never rehearsed and not part of the protected group."""
PROTECTED = tuple(task for task in OLD_TASKS if task != UNPROTECTED_TASK)
MARGIN_POINTS = 15
"""Mean loss of the protected group, in points, that the gate excludes."""
EXIT_FAILED = (1, 2)
"""Exit codes of input that was refused and of a bug of ours."""
COMPLETION_TOKENS = 24
"""Tokens of a completion."""
GRADERS = ("--grader", "sums=includes")
"""A sum is stated first (`7 + 7 = 14`) and then explained with other numbers, of which `final_answer` reads the last."""
NARROW, PLANNED = "narrow", "planned"
CLOSING = (
    "One seed is a demonstration. Mixing in ordinary requests by hand does much of this: Mixwright found the loss, chose "
    "the share, made the rows without labels."
)


@dataclass
class Demo:
    """One demo in a folder.

    Args:
        folder: where everything is written.
        seed: of the files and of the training.
        training: how both models are trained.
        items: measured per task.
    """

    folder: Path
    seed: int = 0
    training: Training = field(default_factory=Training)
    items: int = ITEMS_PER_TASK
    seconds: dict[str, float] = field(default_factory=dict)
    """Step -> seconds."""
    began: float = field(default_factory=time.monotonic)

    @cached_property
    def files(self) -> DemoFiles:
        """The files, written on first use."""
        return write_files(self.folder / "files", self.seed)

    def audit(self) -> None:
        """Look at the data as it was delivered; no model is needed."""
        say("The data as it was delivered: requests with tool calls, and test items of six kinds. Its flaws are planted.")
        self.step("audit", lambda: command("audit", self.files.train, "--eval", self.files.delivered))
        say("The leaked items leave the test.\n")

    def run(self, *, full: bool = False) -> int:
        """Everything after the audit; 0 where the page was written.

        Args:
            full: also what people try by hand.
        """
        known = self.measure_and_find_models()
        say("\n2. It is trained on tool calls alone, as a script of TRL does it (LoRA).")
        if known and (self.models[NARROW] / "adapter_model.safetensors").is_file():
            say(f"   Taken over from an earlier call: {self.models[NARROW]}")
        else:
            self.train(NARROW)
        say("\n3. The gate: what became of the kinds of questions that nobody trained?")
        narrow = (*self.gate_options, "--folder", self.folder / NARROW)
        codes = {NARROW: self.step("gate, narrow", lambda: command("verdict", MODEL, self.models[NARROW], *narrow))}
        say("")
        self.make_plan()
        say("\n5. The gate again, and one page of all three.")
        codes |= self.judge_planned("--beside", self.folder / NARROW)
        say(
            f"{UNPROTECTED_TASK} were never rehearsed, and the gate was not asked of them: "
            f"{self.format_success(UNPROTECTED_TASK)}.\n\n{CLOSING}"
        )
        if full:
            codes |= self.by_hand()
        say(f"Own answers to {', '.join(PROMPTS)} were rehearsed; {NEW_TASK} are what both models were trained on.")
        self.finish(codes)
        return 0

    def make_plan(self, share: float | None = None) -> None:
        """Let the model answer the ordinary requests, plan, and train by the plan.

        Args:
            share: of the draws that keep what the model can do; None takes the planner's default.
        """
        say("4. The plan: the same steps, a share of them for what the model could do.")
        rows = self.folder / "rehearsal" / "rehearsal.jsonl"
        data = ("--corpus", self.files.train, "--eval", self.files.held_out)
        asked = ("--miner", "rehearsal", "--rehearse", self.files.prompts, "--export-to", rows.parent)
        self.step("own answers", lambda: command("mine", MODEL, *data, *asked))
        how = ("--objective", "sft", "--steps", self.training.steps, "--batch", self.training.batch)
        plan = ("--items", self.items, *self.answer_options, "--replay", rows, "--output", self.folder / "plan.yaml")
        chosen = [part for task in PROTECTED for part in ("--keep", task)]  # 30 items show too little of some of them
        chosen += [] if share is None else ["--share", share]
        self.step("plan", lambda: command("plan", MODEL, *data, *how, *chosen, *plan))
        self.train(PLANNED, plan=self.folder / "plan.yaml", rehearsal=rows)

    def judge_planned(self, *more: object) -> dict[str, int]:
        """Exit code of the gate for the model that was trained by the plan; `more` are options of the gate."""
        options = (*self.gate_options, *more, "--folder", self.folder / PLANNED)
        return {PLANNED: self.step("gate, planned", lambda: command("verdict", MODEL, self.models[PLANNED], *options))}

    def measure_and_find_models(self) -> bool:
        """Measure the model before; returns whether an earlier call with the same settings left models to take over."""
        before, known = self.folder / "before", self.begin()
        say("1. What the model can do now.")
        if (before / "manifest.json").is_file():
            say(f"   Taken over from an earlier call: {before}. For a new one remove {self.folder}.")
        else:
            self.step("measure", lambda: command("measure", MODEL, *self.measure_options, "--folder", before))
        return known

    @property
    def measure_options(self) -> tuple[object, ...]:
        """Options of measuring."""
        return ("--corpus", self.files.held_out, "--items", self.items, *self.answer_options)

    @property
    def answer_options(self) -> tuple[object, ...]:
        """Options of how answers are written and read."""
        return ("--samples", 0, "--max-new-tokens", COMPLETION_TOKENS, *GRADERS)

    @property
    def gate_options(self) -> tuple[object, ...]:
        """Options of the gate: the old kinds of questions but one are protected as one group."""
        return (
            *self.measure_options,
            *(part for task in PROTECTED for part in ("--protect", task)),
            "--margin",
            MARGIN_POINTS,
        )

    def format_success(self, task: str) -> str:
        """Success of a task before, after tool calls alone and with the plan."""
        rows = read_answers(self.folder / PLANNED)
        names = {"before": "before", "beside": NARROW, "after": PLANNED}
        own = {
            name: [row["score"] for row in rows if (row["when"], row["task"]) == (when, task)]
            for when, name in names.items()
        }
        return ", ".join(f"{sum(scores):.0f} of {len(scores)} right {name}" for name, scores in own.items())

    def by_hand(self, *, milder: bool = True) -> dict[str, int]:
        """Train and judge what people try by hand; exit codes of the gate.

        Args:
            milder: also a lower rate and scaled adapters, beside ordinary requests in the same file.
        """
        from mixwright_lab.demo.by_hand import try_milder, try_mixed
        from mixwright_lab.demo.training import fine_tune

        codes: dict[str, int] = {}

        def train(out: Path, *, extra_rows: Path | None = None, rate_factor: float = 1.0) -> None:
            how = replace(self.training, learning_rate=rate_factor * self.training.learning_rate)
            given = {"seed": self.seed, "rehearsal": extra_rows}
            self.step(f"train, {out.name}", lambda: fine_tune(MODEL, self.files.train, out, how, **given) or 0)

        def judge(model: Path, told: str) -> None:
            say(f"\nBy hand: {told}.")
            options = (*self.gate_options, "--folder", self.folder / model.name)
            codes[model.name] = self.step(f"gate, {model.name}", lambda: command("verdict", MODEL, model, *options))

        try_mixed(self.models[NARROW], self.files.answered, train, judge)
        if milder:
            try_milder(self.models[NARROW], train, judge)
        return codes

    def begin(self) -> bool:
        """Remove what an earlier call with other files or settings left; returns whether there was one with the same."""
        files = b"".join(path.read_bytes() for path in (self.files.train, self.files.held_out, self.files.prompts))
        told = [self.seed, asdict(self.training), self.items, MODEL, COMPLETION_TOKENS, hashlib.sha256(files).hexdigest()]
        path, key = self.folder / "key.json", json.dumps(told)
        if path.is_file() and path.read_text(encoding="utf-8") == key:
            return True
        for name in ("before", "models", NARROW, PLANNED, "rehearsal"):
            shutil.rmtree(self.folder / name, ignore_errors=True)
        path.write_text(key, encoding="utf-8")
        return False

    @property
    def models(self) -> Mapping[str, Path]:
        """Folders of the adapters."""
        return {name: self.folder / "models" / name for name in (NARROW, PLANNED)}

    def train(self, name: str, *, plan: Path | None = None, rehearsal: Path | None = None) -> None:
        """Train one of the two models."""
        from mixwright_lab.demo.training import fine_tune

        how = self.training
        drawn = "rows drawn by plan.yaml" if plan else "rows of the training file"
        say(f"   {how.steps} steps of {how.batch} {drawn}, LoRA of rank {how.rank}, learning rate {how.learning_rate:g}")
        out = self.models[name]
        given: dict[str, Any] = {"plan": plan, "rehearsal": rehearsal}
        self.step(f"train, {name}", lambda: fine_tune(MODEL, self.files.train, out, how, seed=self.seed, **given) or 0)

    def step(self, name: str, work: Callable[[], int]) -> int:
        """Do one step and note its seconds; returns its exit code."""
        start = time.monotonic()
        code = work()
        self.seconds[name] = round(time.monotonic() - start, 1)
        say(f"   [{self.seconds[name]:.0f} s]")
        return code

    def finish(self, codes: Mapping[str, int], page: str = PLANNED) -> None:
        """Write down seconds and exit codes beside the comparison `page`; say where its page is."""
        found: dict[str, Any] = {"seed": self.seed, "codes": dict(codes), "seconds": self.seconds}
        (self.folder / page / "demo.json").write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
        say("Next, on your own rows: .venv/bin/mixwright audit train.jsonl --eval eval.jsonl,")
        say("then .venv/bin/mixwright measure MODEL --corpus eval.jsonl; README.md, 'What it does for you', goes on.")
        say(f"done in {time.monotonic() - self.began:.0f} s, installation not counted")
        say(f"verdict: {self.folder / page / 'verdict.html'}")


def read_answers(comparison: Path) -> list[dict[str, Any]]:
    """Greedy answers that a comparison keeps: when (before, beside, after), example, task, prompt, completion, score."""
    import pyarrow.parquet as pq

    return pq.read_table(comparison / "completions.parquet").to_pylist()


def say(line: str) -> None:
    """A line of the demo, at once."""
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
