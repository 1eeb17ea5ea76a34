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
from mixwright.runs import RunFolder, read_json
from mixwright.verdict.advice import Advice
from mixwright.verdict.blocks import Code
from mixwright.verdict.pair_advice import PairSeen
from mixwright.verdict.recommendation import Recommendation, TrialSeen
from mixwright.verdict.text import count, percent

ADVICE_LOWER_RATE = "Take a fifth of train.learning_rate in the settings{}, and try again"
ADVICE_OUT_OF_REACH = ", or leave out what is out of reach"
ADVICE_LONGER = (
    "Nothing was damaged, and nothing moved: take more steps (train.steps) or another train.learning_rate, and try again"
)
DEFAULT_COMMAND = "mixwright run run.yaml"
"""Where nobody noted how the run was started."""
MORE_ROWS_PLACEHOLDER = "FILE_WITH_MORE_ROWS"
COMPARE_COMMAND = "mixwright verdict BEFORE AFTER --corpus FILE"
ADVICE_NONE_RIGHT = "Take a starting model that has some held-out items right, more steps, or easier items, and try again"
STAGE_COMMANDS = ("measure", "plan", "steer", "trial")
"""Commands of a single stage."""
STOPPING_ADVICE = ("stop", "do not train", "no gain", "not this plan")
"""Advice after which training itself has to be another one, in a folder of its own."""
TRAINING_ADVICE = ("train", "train with losses")
"""Advice by which the plan is trained with."""


def steps_of(run: RunFolder, found: Recommendation, seen: TrialSeen | PairSeen | None) -> list[Code]:
    """What to do next, the first thing first; at least one."""
    manifest = read_json(run.manifest, RunManifest) if run.manifest.is_file() else None
    command = _whole_flow(manifest.command) if manifest else ""
    needed = seen.needed if seen is not None else None
    if isinstance(seen, PairSeen):
        return _of_comparison(found.advice, command or COMPARE_COMMAND, seen, manifest.settings if manifest else {})
    again = command or _from_folder(run)
    if found.advice == "cannot tell" and seen is not None and not needed:
        return [_more_items(again, run, seen)]
    if found.advice in STOPPING_ADVICE:
        asked = ADVICE_LONGER if found.advice == "no gain" and seen is not None and seen.no_effect else ADVICE_LOWER_RATE
        reach = ADVICE_OUT_OF_REACH if seen is None or seen.graded else ""
        return [Code(asked.format(reach), with_option(again, "--folder", _new_folder(run)))]
    if isinstance(seen, TrialSeen) and seen.selection is not None and found.advice == "mined rows":
        return [_of_mined(again, run, seen.selection)]
    first = _of_trial(found.advice, again, f'steering="{run.plan}"', needed)
    return [first, _export(again)] if found.advice in TRAINING_ADVICE else [first]


def _whole_flow(command: str) -> str:
    """The command that goes on from what is there, where a single stage was asked for."""
    words = command.split(" ")
    return " ".join([words[0], "run", *words[2:]]) if words[1:] and words[1] in STAGE_COMMANDS else command


def _from_folder(run: RunFolder) -> str:
    """The command that goes on with a run of which nobody noted how it was started; its settings lie in its folder."""
    settings = run.path / "run.yaml"
    if not settings.is_file():
        return DEFAULT_COMMAND
    return shlex.join(["mixwright", "run", str(settings), "--folder", str(run.path)])


def _export(again: str) -> Code:
    """The plan for a trainer that Mixwright does not steer."""
    words = shlex.split(again)
    command = shlex.join([words[0], "plan", *words[2:], "--export", "FORMAT"])
    return Code("For another trainer, write its weights and its order (trl, axolotl, llama-factory, verl)", command)


def _of_trial(advice: Advice, again: str, plan: str, needed: int | None) -> Code:
    told = {
        "train": ("Give your TRL trainer the plan", plan),
        "train with losses": ("If that is acceptable, give your TRL trainer the plan", plan),
        "equal shares": (
            "Write the same weight for every task, selector: equal_levels, gates: [] and controllers: [] "
            "into the stages of plan.yaml, and give your TRL trainer that plan",
            plan,
        ),
        "keep uniform": ("Leave your TRL trainer as it is", "steering=None"),
        "check the grader": ("See which graders there are, and name another one in the settings", "mixwright list graders"),
        "gate": ("Take a plan that keeps what is protected (data with `keep:`, or --rehearse), and try again", again),
        "none right": (ADVICE_NONE_RIGHT, again),
        "missing": ("Add what is missing to trial.arms in the settings, and go on", again),
        "too few seeds": (f"Write trial.seeds: {needed or 8} into the settings, and go on", again),
    }
    if advice == "cannot tell":
        return Code(f"Write trial.seeds: {needed} into the settings, and go on" if needed else "Go on", again)
    return Code(*told[advice])


def _of_mined(again: str, run: RunFolder, found: Selection) -> Code:
    """What to do with mined rows that were tried."""
    if found.advice in ("train on it", "fewer rows do"):
        return Code("Train on these rows", str(run.path / "mine" / f"{found.name}.parquet"))
    if found.advice == "cannot tell":
        return Code(ADVICE_NONE_RIGHT, again)
    words = shlex.split(again)
    if words[1:2] == ["mine"]:
        command = with_option(again, "--miner", "MINER")
    else:
        command = with_option(shlex.join([words[0], "trial", *words[2:]]), "--data", "MINER")
    return Code("Leave the data as they are, or try what another miner takes", command)


def _more_items(again: str, run: RunFolder, seen: TrialSeen) -> Code:
    """A trial on more held-out items, in a folder of its own: what was measured in the old one rests on its items."""
    command = with_option(again, "--folder", _new_folder(run))
    if seen.exhausted:
        asked = f"All {seen.items:,} held-out items were measured: add rows to the held-out file, and try again"
        return Code(asked, command)
    known = f" than {seen.items:,}" if seen.items else ""
    return Code(f"Take more held-out items{known} (measure.items in the settings), and try again", command)


def _new_folder(run: RunFolder) -> str:
    """The first name after that of the run which is free."""
    names = (f"{run.path}-{number}" for number in itertools.count(2))
    return next(name for name in names if not Path(name).exists())


def with_option(command: str, name: str, value: str) -> str:
    """The command with an option of that value, once: where it stands already, its value is replaced."""
    words = shlex.split(command)
    kept, place, found = [], 0, False
    while place < len(words):
        own = words[place] == name or words[place].startswith(f"{name}=")
        if own and not found:
            kept += [name, value]
        elif not own:
            kept.append(words[place])
        found |= own
        place += 2 if words[place] == name else 1
    return shlex.join(kept if found else [*kept, name, value])


def _of_comparison(advice: Advice, again: str, seen: PairSeen, settings: Mapping[str, Any]) -> list[Code]:
    """What to do after comparing two checkpoints; first of all to let completions end, where nothing can be told."""
    lengths = [settings.get(name) for name in ("max_new_tokens", "continued_tokens")]
    steps, room = [], max((length for length in lengths if isinstance(length, int)), default=None)
    if (
        advice in ("cannot tell", "check the grader", "unjudged", "none right")
        and seen.cut >= WARNING_CUT_SHARE
        and room is not None
    ):
        again = with_option(again, "--max-new-tokens", str(2 * room))
        asked = (
            f"Raise --max-new-tokens: {percent(seen.cut)} of completions were cut at {room:,} tokens and graded as they are"
        )
        steps.append(Code(asked, again))
    if advice == "cannot tell" and seen.exhausted and seen.needed:
        source = "--eval" if "--eval" in shlex.split(again) else "--corpus"
        more = with_option(with_option(again, source, MORE_ROWS_PLACEHOLDER), "--items", str(seen.needed))
        each = max(seen.needed - seen.items // seen.cells, 1)
        every = f"All {seen.items:,} items of the file were" if seen.items > 1 else "The only item of the file was"
        asked = f"{every} measured: add about {each:,} rows per task and level to it"
        return [*steps, Code(asked, more)]
    found = [*steps, _of_pair(advice, again, seen)]
    return [*found, _keeping(again)] if advice == "do not ship" and seen.graded else found


def _keeping(again: str) -> Code:
    """The plan that keeps what was lost in supervised training."""
    words = shlex.split(again)
    before = words[2] if words[1:2] == ["verdict"] and len(words) > 3 else "BEFORE"
    source = next((words[at + 1] for at, word in enumerate(words[:-1]) if word == "--corpus"), "FILE")
    parts = ["mixwright", "plan", before, "--corpus", "TRAIN", "--eval", source, "--objective", "sft"]
    asked = "Train again with a share of the steps for what was lost (REQUESTS: ordinary ones, with or without answers)"
    return Code(asked, shlex.join([*parts, "--rehearse", "REQUESTS"]))


def _of_pair(advice: Advice, again: str, seen: PairSeen) -> Code:
    needed, minutes = seen.needed, math.ceil((seen.needed or 0) * seen.cells * seen.pace / 60)
    price = f", about {count(minutes, 'minute')} at the speed of this comparison" if minutes else ""
    if advice in ("may replace", "unjudged") and not seen.graded:
        asked = "See whether its answers are right: compare both on examples with answers that can be graded"
        return Code(asked, f"{COMPARE_COMMAND} --gate")
    gated = again if "--gate" in shlex.split(again) else f"{again} --gate"
    told = {
        "no gain": ("Leave the model before as it is, or ask the same of a later checkpoint", again),
        "ship": ("Ask the same of every later checkpoint; exit code 0 only when a loss is excluded", gated),
        "may replace": ("Ask the same of every later checkpoint", gated),
        "do not ship": ("Read all of what was lost", f"{again} --full"),
        "check the grader": ("See which graders there are, and name another one", "mixwright list graders"),
        "unjudged": ("See which graders there are, and name another one for these tasks", "mixwright list graders"),
        "none right": ("Compare checkpoints that have some items right, or take easier items", again),
        "cannot tell": (f"Measure more items{price}", with_option(again, "--items", str(needed)) if needed else again),
    }
    return Code(*told[advice])
