"""Next steps after a verdict: what to do, and a line to copy."""

from __future__ import annotations

import itertools
import math
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from mixwright.errors import join_some
from mixwright.estimates.cell_states import MIN_ITEMS
from mixwright.estimates.judgement import NO_CHANGE_MARGIN
from mixwright.measure.model_judge import JUDGE, UNLABELLED
from mixwright.measure.notes import CUT_NOTE, WARNING_CUT_SHARE
from mixwright.records import RunManifest, Selection, Step, Verdict
from mixwright.run.folder import RunFolder
from mixwright.verdict.page.text import format_count, percent
from mixwright.verdict.rules.evidence import LARGEST_CELL_ROWS_SETTING, LEFT_OUT_SETTING, PACE_SETTING
from mixwright.verdict.rules.gate_question import LOOK_SETTING
from mixwright.verdict.rules.trial import Advice, TrialBasis

DEFAULT_COMMAND = "mixwright run run.yaml"
"""Where nobody noted how the run was started."""
COMPARE_COMMAND = "mixwright verdict BEFORE AFTER --eval FILE"
COMPARE_LOGS_COMMAND = "mixwright verdict BEFORE AFTER"
LOG_SETTING = "log before"
"""Setting in the manifest of a comparison of two evaluation logs, which a comparison of checkpoints does not have."""
GRADERS_COMMAND = "mixwright list graders"
ADVICE_NONE_RIGHT = "Use a starting model that gets some held-out items right, more steps, or easier items, and try again"
MOST_LOGGED = 10_000
"""Items of a task and level up to which a report says how many to log."""
STAGE_COMMANDS = ("measure", "plan")
"""Commands of a single stage."""


def list_steps_after_comparison(verdict: Verdict) -> list[Step]:
    """What to do next, the first thing first; at least one. Of two models with the same answers none is about training."""
    settings = verdict.manifest.settings if verdict.manifest else {}
    is_logs = LOG_SETTING in settings
    command = _find_command(verdict.manifest) or (COMPARE_LOGS_COMMAND if is_logs else COMPARE_COMMAND)
    if verdict.gate is not None and verdict.gate.same and verdict.outcome != "inconclusive":
        steps = {
            "passed": ("Check every other export in the same way", _for_later_model(command, verdict.manifest)),
            "damaged": ("See which answers differ", command if "--full" in shlex.split(command) else f"{command} --full"),
        }
        return [Step(*steps[verdict.outcome])]
    if verdict.same_answers and verdict.outcome == "passed":
        return [Step("Compare two different models", _for_later_model(command, verdict.manifest))]
    return (_list_steps_for_logs if is_logs else _list_steps_for_models)(verdict, command, settings)


def _find_command(manifest: RunManifest | None) -> str:
    """How the run was started; of one that began with a single stage, the command that goes on from there."""
    words = shlex.split(manifest.command) if manifest else []
    return _with_settings("run", words) if words[1:2] and words[1] in STAGE_COMMANDS else shlex.join(words)


def _with_settings(verb: str, words: Sequence[str], *options: str) -> str:
    """Return the command of another verb with the settings file and the folder of a command; other options are its own."""
    source = next((word for word in words if Path(word).suffix in (".yaml", ".yml")), "run.yaml")
    folder = [part for place, word in enumerate(words) if word == "--folder" for part in words[place : place + 2]]
    folder += [word for word in words if word.startswith("--folder=")]
    return shlex.join(["mixwright", verb, source, *folder, *options])


def list_steps_after_trial(
    run: RunFolder, manifest: RunManifest | None, advice: Advice, basis: TrialBasis | None
) -> list[Step]:
    """What to do next. Another training goes into a folder of its own, as do more items: what was measured stays."""
    settings, command = run.path / "run.yaml", _find_command(manifest)
    if not command and settings.is_file():
        command = shlex.join(["mixwright", "run", str(settings), "--folder", str(run.path)])
    command = command or DEFAULT_COMMAND
    free_folder = next(name for number in itertools.count(2) if not Path(name := f"{run.path}-{number}").exists())
    command_elsewhere, words = with_option(command, "--folder", free_folder), shlex.split(command)
    steering_option, seeds = f'steering="{run.plan}"', basis.seeds_needed if basis else None
    reach_text = ", or leave out tasks that are out of reach," if basis is None or basis.graded else ""
    slower_step = (f"Lower train.learning_rate to a fifth{reach_text} and try again", command_elsewhere)
    longer_text = "Nothing changed, for better or worse: raise train.steps or change train.learning_rate, and try again"
    undecided_step = (f"Set trial.seeds: {seeds} in the settings, and continue" if seeds else "Continue", command)
    if basis is not None and not seeds:
        more_text = "Measure more held-out items (measure.items in the settings, or add rows), and try again"
        undecided_step = (more_text, command_elsewhere)
    step_by_advice = {
        "train": ("Give your TRL trainer the plan", steering_option),
        "train with losses": ("If that is acceptable, give your TRL trainer the plan", steering_option),
        "equal shares": (
            "In the stages of plan.yaml, set the same weight for every task, selector: equal_levels, gates: [] and "
            "controllers: [], and give that plan to your TRL trainer",
            steering_option,
        ),
        "keep uniform": ("Leave your TRL trainer as it is", "steering=None"),
        "check the grader": ("See which graders there are, and name another one in the settings", GRADERS_COMMAND),
        "gate": ("Use a plan that keeps the protected tasks (`keep:` in plan.options, or --replay), and try again", command),
        "none right": (ADVICE_NONE_RIGHT, command),
        "missing": ("Add the missing arms to trial.arms in the settings, and continue", command),
        "too few seeds": (f"Set trial.seeds: {seeds or 8} in the settings, and continue", command),
        "cannot tell": undecided_step,
        "stop": slower_step,
        "do not train": slower_step,
        "not this plan": slower_step,
        "no gain": (longer_text, command_elsewhere) if basis is not None and basis.no_effect else slower_step,
    }
    if advice == "mined rows" and basis is not None and basis.selection is not None:
        return [Step(*_find_step_for_mined_rows(run, command, basis.selection))]
    export = _with_settings("plan", words, "--export", "FORMAT")
    other_trainers_text = "Export its weights and order for another trainer (trl, axolotl, llama-factory, verl)"
    return [
        Step(*step_by_advice[advice]),
        *([Step(other_trainers_text, export)] if advice in ("train", "train with losses") else []),
    ]


def _find_step_for_mined_rows(run: RunFolder, command_again: str, selection: Selection) -> tuple[str, str]:
    """What to do with mined rows that were tried."""
    if selection.advice in ("train on it", "fewer rows do"):
        return "Train on these rows", str(run.path / "mine" / f"{selection.name}.parquet")
    if selection.advice == "cannot tell":
        return ADVICE_NONE_RIGHT, command_again
    if selection.simple_rule_does:
        step_text = "These rows beat all rows, but not the rows of the simple rule. Train on the simple rule's rows"
        return step_text, str(run.path / "mine" / f"{selection.name}.simple_rule.parquet")
    if shlex.split(command_again)[1:2] == ["mine"]:
        command = with_option(command_again, "--miner", "MINER")
    else:
        command = with_option(with_option(command_again, "--only", "trial"), "--data", "MINER")
    return "Leave the data as they are, or try another miner", command


def with_option(command: str, name: str, value: str) -> str:
    """The command with an option of that value, in the place of any that it has."""
    return shlex.join([*shlex.split(without_option(command, name)), name, value])


def without_option(command: str, name: str) -> str:
    """The command without an option and its value."""
    kept, is_value = list[str](), False
    for word in shlex.split(command):
        if not (is_value or word == name or word.startswith(f"{name}=")):
            kept.append(word)
        is_value = word == name
    return shlex.join(kept)


def _see_everything(command: str) -> list[Step]:
    """Return the step that prints the whole report, unless the command printed it."""
    return [] if "--full" in shlex.split(command) else [Step("See every task, with examples", f"{command} --full")]


def _for_later_model(command: str, manifest: RunManifest | None) -> str:
    """Return the command with another later model, in a folder of its own."""
    words = shlex.split(without_option(command, "--folder"))
    before, after = (manifest.parent, str(manifest.settings.get("checkpoint after", ""))) if manifest else ("", "")
    places = [place for place, word in enumerate(words) if Path(word) == Path(after)]
    if after and places:
        words[places[-1 if after == before else 0]] = "LATER"
    return shlex.join(words)


def _count_items_needed(verdict: Verdict) -> int | None:
    """Items per task and level that would tell; None where no number of them is known to."""
    total, cells = verdict.total, _items_of_cells(verdict)
    needed = verdict.gate.items_needed if verdict.gate else None
    # one item shows no spread, and fewer than MIN_ITEMS are never judged
    if not needed and total is not None and math.isfinite(total.detectable):
        target = NO_CHANGE_MARGIN if total.detectable > NO_CHANGE_MARGIN else max(abs(total.change.value), 0.01)
        needed = max(math.ceil(total.items / len(cells) * (total.detectable / target) ** 2), MIN_ITEMS)
    return max(needed, max(cells) + 1) if needed else None  # fewer would change nothing


def _items_of_cells(verdict: Verdict) -> list[int]:
    return [change.items for change in verdict.tasks if change.items and not change.whole] or [0]


def _is_unjudged(verdict: Verdict) -> bool:
    """Whether tasks that nothing judges decided, of those that the user named where there are any."""
    gate = verdict.gate
    tasks = gate.protected if gate and gate.named and not gate.same else verdict.not_judged
    return verdict.reason == "a task was not judged" and not verdict.not_judged.keys().isdisjoint(tasks)


def _list_steps_for_models(verdict: Verdict, command: str, settings: Mapping[str, Any]) -> list[Step]:
    """List the steps after a comparison of two models; where answers were cut and nothing could be told, first let them end.

    Other items and longer answers need BEFORE to be measured again, with the options that it was measured with.
    """
    same_command = command
    lengths = [settings.get(name) for name in ("max_new_tokens", "continued_tokens")]
    steps, token_limit = [], max((length for length in lengths if isinstance(length, int)), default=None)
    cut = max((note.count / note.total for note in verdict.notes if note.check == CUT_NOTE and note.total), default=0.0)
    if verdict.outcome == "inconclusive" and cut >= WARNING_CUT_SHARE and token_limit is not None:
        command = with_option(command, "--max-new-tokens", str(2 * token_limit))
        steps.append(Step(f"Allow longer answers: {percent(cut)} were cut at {token_limit:,} tokens", command))
    words = shlex.split(command)
    if verdict.outcome == "damaged":
        if verdict.graded:  # the plan that keeps what was lost in supervised training
            before = verdict.manifest.parent if verdict.manifest else ""
            steps.append(Step("Fix it", _plan_for(before or "BEFORE", words)))
        return [*steps, *_see_everything(same_command)] or [Step("Read the lost answers on the page", same_command)]
    if not verdict.graded:
        return [*steps, Step("Compare both models on questions that can be graded", COMPARE_COMMAND)]
    if _is_unjudged(verdict):
        return [*steps, Step("Name a grader for these tasks (--grader TASK=NAME); this lists them", GRADERS_COMMAND)]
    step_by_reason = {
        "kept": ("Check every later model in the same way", _for_later_model(same_command, verdict.manifest)),
        "not learned": ("Train longer, or at a higher learning rate, and compare again", same_command),
        "nothing right": ("Name another grader (--grader); this lists them", GRADERS_COMMAND),
        "nothing right greedily": ("Use easier questions, or a model that can answer some", command),
        "nothing to protect": ("Add questions that the earlier model can answer, and compare again", command),
    }
    if verdict.reason in step_by_reason:
        return [*steps, Step(*step_by_reason[verdict.reason])]
    if words[1:2] == ["verdict"] and "--eval" not in words:
        return [*steps, Step("Add test items of your own", with_option(command, "--eval", "FILE"))]
    needed, cells = _count_items_needed(verdict), len(_items_of_cells(verdict))
    more_items = ("--items", needed)
    if look := settings.get(LOOK_SETTING):  # the number of all items; more than were planned, also where time ran out
        more_items = ("--max-items", max((needed or 0) * cells, 2 * look["last_items"]))
    if needed and 0 < _read_number(settings, LARGEST_CELL_ROWS_SETTING) <= _read_number(settings, "items"):
        longer_command = with_option(with_option(command, "--eval", "FILE_WITH_MORE_ROWS"), *map(str, more_items))
        rows_per_cell = max(needed - (verdict.total.items if verdict.total else 0) // cells, 1)
        more = f"Add about {rows_per_cell:,} questions per task, because all questions of the file were asked"
        return [*steps, Step(more, longer_command)]
    minutes = math.ceil((needed or 0) * cells * _read_number(settings, PACE_SETTING) / 60)
    price = f" (about {format_count(minutes, 'minute')})" if minutes else ""
    longer_command = with_option(command, *map(str, more_items)) if needed else command
    return [*steps, Step(f"Ask more questions{price}", longer_command)]


def _plan_for(model: str, words: Sequence[str]) -> str:
    """Return the command that plans the training on the file that a verdict's words name."""
    train = next((words[place + 1] for place, word in enumerate(words[:-1]) if word == "--trained-on"), "TRAIN")
    return shlex.join(["mixwright", "plan", model, train])


def _list_steps_for_logs(verdict: Verdict, command: str, settings: Mapping[str, Any]) -> list[Step]:
    """List the steps after a comparison of two evaluation logs, of which nothing more can be measured here."""
    another_metric, left_out = f"{command} --grader TASK=METRIC", settings.get(LEFT_OUT_SETTING, ())
    if verdict.outcome == "damaged":
        fix = Step("Fix it (MODEL: the model of the first log)", _plan_for("MODEL", shlex.split(command)))
        return [fix, *_see_everything(command)]
    if any(UNLABELLED in reason for reason in verdict.not_judged.values()):
        return [Step("Write 1 or 0 as every label in to_label.jsonl, and repeat this", command)]
    if not verdict.graded or _is_unjudged(verdict):
        again = "Log both models on the same questions, in the same way, or name another metric"
        return [Step(again if left_out else "Read its answers on the page, or judge them by another metric", another_metric)]
    step_by_reason = {
        "kept": ("Check every later log in the same way", _for_later_model(command, verdict.manifest)),
        "not learned": ("Train longer, or at a higher learning rate, and compare again", command),
        "nothing right": ("Name another metric of the logs", another_metric),
        "nothing right greedily": ("Use easier questions, or a model that can answer some", command),
        "nothing to protect": ("Log questions that the earlier model can answer, too, and compare again", command),
        "a task was not judged": ("Protect tasks that the earlier model answers, or log easier questions of them", command),
    }
    if verdict.reason in step_by_reason:
        return [Step(*step_by_reason[verdict.reason])]
    if left_out:
        return [Step(f"Log {join_some(left_out)} for both models, and compare again", command)]
    if JUDGE in settings.get("metrics", {}).values():
        words = "Label more answers: this writes those of 200 items of each task for you to label"
        return [Step(words, with_option(command, "--judge-sample", "200"))]
    needed = _count_items_needed(verdict)
    about = f" (about {needed:,} per task)" if needed and needed <= MOST_LOGGED else ""
    return [Step(f"Log more questions for both models{about}, and compare again", command)]


def _read_number(settings: Mapping[str, Any], name: str) -> float:
    """A number among settings; 0 where there is none."""
    value = settings.get(name)
    return float(value) if isinstance(value, int | float) else 0.0
