"""Next steps after a recommendation: what to do, and a line to copy. Pure."""

from __future__ import annotations

import itertools
import math
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from mixwright.measure.notes import WARNING_CUT_SHARE
from mixwright.records import RunManifest, Selection
from mixwright.run.folder import RunFolder, read_json
from mixwright.verdict.page.blocks import Code
from mixwright.verdict.page.text import count, percent
from mixwright.verdict.rules.recommendation import Advice, PairSeen, Recommendation, TrialSeen

DEFAULT_COMMAND = "mixwright run run.yaml"
"""Where nobody noted how the run was started."""
COMPARE_COMMAND = "mixwright verdict BEFORE AFTER --corpus FILE"
GRADERS_COMMAND = "mixwright list graders"
ADVICE_NONE_RIGHT = "Take a starting model that has some held-out items right, more steps, or easier items, and try again"
STAGE_COMMANDS = ("measure", "plan", "steer", "trial")
"""Commands of a single stage."""


def steps_of(run: RunFolder, found: Recommendation, seen: TrialSeen | PairSeen | None) -> list[Code]:
    """What to do next, the first thing first; at least one."""
    manifest = read_json(run.manifest, RunManifest) if run.manifest.is_file() else None
    command = manifest.command if manifest else ""
    if command.split(" ")[1:2] and command.split(" ")[1] in STAGE_COMMANDS:  # go on from there, not do one stage again
        words = command.split(" ")
        command = " ".join([words[0], "run", *words[2:]])
    if isinstance(seen, PairSeen):
        return _of_comparison(found.advice, command or COMPARE_COMMAND, seen, manifest.settings if manifest else {})
    settings = run.path / "run.yaml"
    if not command and settings.is_file():
        command = shlex.join(["mixwright", "run", str(settings), "--folder", str(run.path)])
    return _of_trial(run, found.advice, command or DEFAULT_COMMAND, seen)


def _of_trial(run: RunFolder, advice: Advice, again: str, seen: TrialSeen | None) -> list[Code]:
    """Another training goes into a folder of its own, as do more items: what was measured rests on the old ones."""
    free = next(name for number in itertools.count(2) if not Path(name := f"{run.path}-{number}").exists())
    elsewhere, words = with_option(again, "--folder", free), shlex.split(again)
    plan, seeds = f'steering="{run.plan}"', seen.needed if seen else None
    reach = ", or leave out what is out of reach" if seen is None or seen.graded else ""
    slower = (f"Take a fifth of train.learning_rate in the settings{reach}, and try again", elsewhere)
    longer = (
        "Nothing was damaged, and nothing moved: take more steps (train.steps) or another train.learning_rate, and try again"
    )
    undecided = (f"Write trial.seeds: {seeds} into the settings, and go on" if seeds else "Go on", again)
    if seen is not None and not seeds:
        known = f" than {seen.items:,}" if seen.items else ""
        undecided = (f"Take more held-out items{known} (measure.items in the settings), and try again", elsewhere)
        if seen.exhausted:
            asked = f"All {seen.items:,} held-out items were measured: add rows to the held-out file, and try again"
            undecided = (asked, elsewhere)
    told = {
        "train": ("Give your TRL trainer the plan", plan),
        "train with losses": ("If that is acceptable, give your TRL trainer the plan", plan),
        "equal shares": (
            "Write the same weight for every task, selector: equal_levels, gates: [] and controllers: [] "
            "into the stages of plan.yaml, and give your TRL trainer that plan",
            plan,
        ),
        "keep uniform": ("Leave your TRL trainer as it is", "steering=None"),
        "check the grader": ("See which graders there are, and name another one in the settings", GRADERS_COMMAND),
        "gate": ("Take a plan that keeps what is protected (data with `keep:`, or --rehearse), and try again", again),
        "none right": (ADVICE_NONE_RIGHT, again),
        "missing": ("Add what is missing to trial.arms in the settings, and go on", again),
        "too few seeds": (f"Write trial.seeds: {seeds or 8} into the settings, and go on", again),
        "cannot tell": undecided,
        "stop": slower,
        "do not train": slower,
        "not this plan": slower,
        "no gain": (longer, elsewhere) if seen is not None and seen.no_effect else slower,
    }
    if advice == "mined rows" and seen is not None and seen.selection is not None:
        return [Code(*_of_mined(run, again, seen.selection))]
    export = shlex.join([words[0], "plan", *words[2:], "--export", "FORMAT"])
    others = "For another trainer, write its weights and its order (trl, axolotl, llama-factory, verl)"
    return [Code(*told[advice]), *([Code(others, export)] if advice in ("train", "train with losses") else [])]


def _of_mined(run: RunFolder, again: str, found: Selection) -> tuple[str, str]:
    """What to do with mined rows that were tried."""
    if found.advice in ("train on it", "fewer rows do"):
        return "Train on these rows", str(run.path / "mine" / f"{found.name}.parquet")
    if found.advice == "cannot tell":
        return ADVICE_NONE_RIGHT, again
    words = shlex.split(again)
    if words[1:2] == ["mine"]:
        command = with_option(again, "--miner", "MINER")
    else:
        command = with_option(shlex.join([words[0], "trial", *words[2:]]), "--data", "MINER")
    return "Leave the data as they are, or try what another miner takes", command


def with_option(command: str, name: str, value: str) -> str:
    """The command with an option of that value, once: where it stands already, its value is replaced."""
    kept: list[str] = []
    words = iter(shlex.split(command))
    for word in words:
        if word != name and not word.startswith(f"{name}="):
            kept.append(word)
            continue
        if word == name:
            next(words, None)
        kept += [name, value] if name not in kept else []
    return shlex.join(kept if name in kept else [*kept, name, value])


def _of_comparison(advice: Advice, again: str, seen: PairSeen, settings: Mapping[str, Any]) -> list[Code]:
    """What to do after comparing two checkpoints; first of all to let completions end, where nothing can be told."""
    lengths = [settings.get(name) for name in ("max_new_tokens", "continued_tokens")]
    steps, room = [], max((length for length in lengths if isinstance(length, int)), default=None)
    unknown = advice in ("cannot tell", "check the grader", "unjudged", "none right")
    if unknown and seen.cut >= WARNING_CUT_SHARE and room is not None:
        again, cut = with_option(again, "--max-new-tokens", str(2 * room)), percent(seen.cut)
        asked = f"Raise --max-new-tokens: {cut} of completions were cut at {room:,} tokens and graded as they are"
        steps.append(Code(asked, again))
    words, needed = shlex.split(again), seen.needed
    if advice == "cannot tell" and seen.exhausted and needed:
        source = "--eval" if "--eval" in words else "--corpus"
        more = with_option(with_option(again, source, "FILE_WITH_MORE_ROWS"), "--items", str(needed))
        each = max(needed - seen.items // seen.cells, 1)
        every = f"All {seen.items:,} items of the file were" if seen.items > 1 else "The only item of the file was"
        return [*steps, Code(f"{every} measured: add about {each:,} rows per task and level to it", more)]
    minutes = math.ceil((needed or 0) * seen.cells * seen.pace / 60)
    price = f", about {count(minutes, 'minute')} at the speed of this comparison" if minutes else ""
    gated = again if "--gate" in words else f"{again} --gate"
    told = {
        "no gain": ("Leave the model before as it is, or ask the same of a later checkpoint", again),
        "ship": ("Ask the same of every later checkpoint; exit code 0 only when a loss is excluded", gated),
        "may replace": ("Ask the same of every later checkpoint", gated),
        "do not ship": ("Read all of what was lost", f"{again} --full"),
        "check the grader": ("See which graders there are, and name another one", GRADERS_COMMAND),
        "unjudged": ("See which graders there are, and name another one for these tasks", GRADERS_COMMAND),
        "none right": ("Compare checkpoints that have some items right, or take easier items", again),
        "cannot tell": (f"Measure more items{price}", with_option(again, "--items", str(needed)) if needed else again),
    }
    if advice in ("may replace", "unjudged") and not seen.graded:
        asked = "See whether its answers are right: compare both on examples with answers that can be graded"
        return [*steps, Code(asked, f"{COMPARE_COMMAND} --gate")]
    steps.append(Code(*told[advice]))
    if advice == "do not ship" and seen.graded:  # the plan that keeps what was lost in supervised training
        before = words[2] if words[1:2] == ["verdict"] and len(words) > 3 else "BEFORE"
        source = next((words[at + 1] for at, word in enumerate(words[:-1]) if word == "--corpus"), "FILE")
        parts = ["mixwright", "plan", before, "--corpus", "TRAIN", "--eval", source, "--objective", "sft"]
        asked = "Train again with a share of the steps for what was lost (REQUESTS: ordinary ones, with or without answers)"
        steps.append(Code(asked, shlex.join([*parts, "--rehearse", "REQUESTS"])))
    return steps
