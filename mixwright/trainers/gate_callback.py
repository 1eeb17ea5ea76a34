"""Gate inside any trainer of transformers: held-out items are answered every N steps, and a run that loses them stops.

It needs nothing of Mixwright's own trainers: SFT, DPO and GRPO of TRL, Axolotl, LLaMA-Factory and Unsloth take transformers'
callbacks. What is compared at each look are the same items before training and now, each answered greedily.

Source: `mixwright.estimates.repeated_looks` for the test.
Unit: a look at all items.
Cost: one greedy answer per item and look, said before the first step; the items are answered once before training, too.
    Of several processes the first answers, and the others wait: `ddp_timeout` (half an hour) must be longer than a look.
Blind spot: items that are not among those looked at; losses smaller than the margin.
"""

from __future__ import annotations

import json
import logging
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from time import perf_counter
from typing import Any, Literal

import numpy as np
from accelerate import PartialState
from accelerate.utils import broadcast_object_list, parse_flag_from_env
from transformers import Trainer, TrainerCallback

from mixwright.config import CorpusConfig, MeasureConfig
from mixwright.corpus import Corpus
from mixwright.corpus.chosen_graders import FirstAnswer
from mixwright.corpus.graded import read_graded
from mixwright.errors import InputError, unknown_name
from mixwright.estimates.exclusion import MEAN_LOSS_MARGIN
from mixwright.estimates.repeated_looks import RepeatedLooks
from mixwright.learner.learner import Learner
from mixwright.learner.prompt_form import PromptForm
from mixwright.measure.first_answers import choose_graders
from mixwright.measure.room import find_room, spread_items
from mixwright.records import Example, cell_key
from mixwright.run.folder import check_regular, write_json
from mixwright.run.trackers import alert

FILE_NAME = "gate.json"

SPREAD = tuple(f"ACCELERATE_USE_{name}" for name in ("FSDP", "DEEPSPEED", "MEGATRON_LM"))
"""Variables that accelerate sets where parameters are spread over processes, so that none can answer alone. A trainer's own
settings do not say it under `accelerate launch`, and a second `AcceleratorState()` would forget it."""
LookOutcome = Literal["passed", "lost", "cannot tell"]
_log = logging.getLogger("mixwright")


class GateCallback(TrainerCallback):
    """Looks at held-out items while a model trains; logs what was lost, stops, and keeps the last checkpoint that passed.

    A look has *lost* where a loss is shown, over all looks so far, that is at least the margin; it has *passed* where the
    one-sided 95 % lower end of the mean change lies above minus the margin; else it cannot tell. Over a run that loses
    nothing at most 5 % end in a false stop. Each look is an entry of `state.log_history` (`gate/change`, `gate/lower`), and
    all of them stand in `<output_dir>/gate.json`, from which a resumed run goes on.

    Args:
        corpus: held-out rows with answers: a path, or a `Corpus`.
        every: steps between looks.
        protect: tasks, or cells such as `sums@2`, that are looked at; empty takes all of them.
        graders: task -> name of its grader; others get what their answers look like, and `includes` where the answers
            before training state it in sentences.
        items: how many are answered at each look, in turn one of each task.
        margin: mean loss, a share, each task counted once.
        stop: whether training stops at a loss. Without it a loss is logged alone.
        keep_best: save a checkpoint at each look that passes, and keep the last of them from being rotated away; its path
            is `state.best_model_checkpoint`, and stands in gate.json.
        template: arguments of the chat template, such as `{"enable_thinking": False}`.
        max_new_tokens: longest answer; None completes a few items freely before training and takes what they need.

    Raises:
        InputError: nothing can be graded, a name that no row has, a setting out of range; in training, a model whose
            parameters are spread over processes, or a resumed run whose looks are not there.
    """

    def __init__(
        self,
        corpus: Corpus | str | Path,
        *,
        every: int,
        protect: Sequence[str] = (),
        graders: Mapping[str, str] | None = None,
        items: int = 200,
        margin: float = MEAN_LOSS_MARGIN,
        stop: bool = True,
        keep_best: bool = False,
        template: Mapping[str, Any] | None = None,
        max_new_tokens: int | None = None,
    ) -> None:
        for name, value, least in (("every", every, 1), ("items", items, 2), ("max_new_tokens", max_new_tokens or 1, 1)):
            if not isinstance(value, int) or value < least:
                raise InputError(f"{name}, a whole number of {least} or more", repr(value), "Correct it.")
        if not 0 < margin < 1:
            raise InputError("a margin above 0 and below 1", str(margin), "Write it as a share: 0.05 is five points.")
        self._named_graders = dict(graders or {})
        if not isinstance(corpus, Corpus):
            config = CorpusConfig(str(corpus), eval_share=0.0, graders=self._named_graders)
            corpus = read_graded(config, graders_are_named=False).corpus
        elif self._named_graders:
            corpus = corpus.with_graders(self._named_graders)
        self.corpus, self.every, self.margin = corpus, every, margin
        self.stop, self.keep_best, self.max_new_tokens = stop, keep_best, max_new_tokens
        self._template = dict(template or {})
        self.items = _choose_items(corpus, protect, items)
        self.before: list[float] = []
        """Score of each item before training."""
        self.looks: list[dict[str, Any]] = []
        """What stands in gate.json of each look."""
        self._repeated_looks: RepeatedLooks
        self._best_step: int | None = None
        self._trainer: Any = None

    def add_to(self, trainer: Any) -> None:
        """Add this callback to a trainer; its trackers (`report_to`) get the looks, too, and an alert of a loss."""
        trainer.add_callback(self)
        self._trainer = trainer

    def on_train_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Answer all items, or read what they were before a resumed run; say what a look costs."""
        if any(map(parse_flag_from_env, SPREAD)):
            raise InputError(
                "whole parameters in each process, for GateCallback",
                "FSDP, DeepSpeed or Megatron",
                "Save checkpoints (save_strategy), and compare them: mixwright verdict BASE CHECKPOINT.",
            )
        steps = state.max_steps if state.max_steps > 0 else args.max_steps
        file = Path(args.output_dir) / FILE_NAME
        self.looks, self._best_step, began = [], None, perf_counter()
        if state.global_step:
            self.before, earlier_looks, self.max_new_tokens = self._read(file, state.global_step)
        else:
            self.before, earlier_looks = self._score_answers(kwargs, may_choose_graders=True), []
        seconds = perf_counter() - began
        planned = len(earlier_looks) + max(1, math.ceil((steps - state.global_step) / self.every))
        self._repeated_looks = RepeatedLooks([item.task for item in self.items], planned)
        for line in earlier_looks:
            self._look(line["step"], line["scores"])
        if not state.global_step and state.is_world_process_zero:
            self._write(file)
            message = (
                "gate: %d items, right before training: %.0f%%; %d interim analyses of about %.0f s, one every "
                "%d steps: %.1f min"
            )
            share = 100 * sum(self.before) / len(self.before)
            _log.warning(message, len(self.items), share, planned, seconds, self.every, planned * seconds / 60)

    def on_step_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> Any:
        """Look, where it is time."""
        is_last = state.global_step >= state.max_steps
        if state.global_step % self.every and not is_last:
            return control
        outcome = self._look(state.global_step, self._score_answers(kwargs))
        if state.is_world_process_zero:
            self._write(Path(args.output_dir) / FILE_NAME)
            line = self.looks[-1]
            shown = {f"gate/{name}": line[name] for name in ("change", "lower")}
            if self._trainer is None:
                state.log_history.append({**shown, "step": state.global_step})
            else:  # past a trainer's own `log`, which would write its averages of the steps so far, and forget them
                Trainer.log(self._trainer, shown)
            if outcome == "lost" and self._trainer is not None:
                alert(
                    args.report_to, f"Gate: success fell by {-100 * line['change']:.1f} points at step {state.global_step}"
                )
            _log.warning(
                "gate: step %d: %s; %+.1f points over %d items, lower end of the interval %+.1f",
                *(state.global_step, outcome, 100 * line["change"], len(self.items), 100 * line["lower"]),
            )
        if outcome == "passed" and self.keep_best:
            control.should_save = True
        if outcome == "lost" and self.stop:
            control.should_training_stop = True
        return control

    def on_save(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """A checkpoint whose look passed is the best one, and is kept."""
        if self.keep_best and self._best_step == state.global_step:
            state.best_model_checkpoint = str(Path(args.output_dir) / f"checkpoint-{state.global_step}")
            if state.is_world_process_zero:
                self._write(Path(args.output_dir) / FILE_NAME)

    def _score_answers(self, arguments: Any, *, may_choose_graders: bool = False) -> list[float]:
        """Scores of greedy answers to all items, the same in all processes. Graders may be chosen by these answers."""
        scores: list[float] = []
        if arguments.get("processing_class") is None:
            raise InputError("a trainer with a tokenizer, for GateCallback", "none", "Pass processing_class to the trainer.")
        if PartialState().is_main_process:
            model = getattr(arguments["model"], "module", arguments["model"])
            form = PromptForm(arguments=self._template)
            learner = Learner(model, arguments["processing_class"], "the model in training", form=form)
            if self.max_new_tokens is None:
                config = MeasureConfig(items=len(self.items), samples=0)
                room = find_room([learner], Corpus.from_examples(self.items, self.corpus.graders), config, _log.info)
                self.max_new_tokens = room.tokens
            prompts = [item.prompt for item in self.items]
            answers = learner.sample(prompts, count=1, temperature=0.0, max_new_tokens=self.max_new_tokens, seed=0)
            first = [FirstAnswer(item, one.text, not one.finished) for item, (one,) in zip(self.items, answers, strict=True)]
            if may_choose_graders:
                self._choose_graders(first)
            scores = [self.corpus.grade(one.example, one.completion, cut=one.cut) for one in first]
        return broadcast_object_list([scores])[0]

    def _choose_graders(self, first: Sequence[FirstAnswer]) -> None:
        """Take another grader where the proposed one reads almost nothing of the first answers, and say so."""
        tasks = dict.fromkeys(item.task for item in self.items)
        for chosen in choose_graders(self.corpus, tasks, first, self._named_graders):
            if chosen.changed:
                self.corpus = self.corpus.with_graders({chosen.task: chosen.grader})
                _log.warning("gate: %s: grader %s", chosen.task, chosen.reason)

    def _look(self, step: int, scores: Sequence[float]) -> LookOutcome:
        """Test the scores of one look, and keep it."""
        result = self._repeated_looks.look(np.asarray(scores) - np.asarray(self.before))
        lost = result.loss_is_shown and result.change <= -self.margin
        has_enough_to_lose = sum(self.before) >= self.margin * len(self.before)  # else a loss is impossible, not ruled out
        is_ruled_out = result.lower > -self.margin and has_enough_to_lose
        outcome: LookOutcome = "lost" if lost else "passed" if is_ruled_out else "cannot tell"
        if outcome == "passed":
            self._best_step = step
        by_task: dict[str, list[float]] = {}
        for item, then, now in zip(self.items, self.before, scores, strict=True):
            by_task.setdefault(item.task, []).append(now - then)
        changes = {task: sum(values) / len(values) for task, values in sorted(by_task.items())}
        line = {"step": step, "outcome": outcome, "change": result.change, "lower": result.lower, "tasks": changes}
        self.looks.append(line | {"scores": list(scores)})
        return outcome

    def _write(self, file: Path) -> None:
        file.parent.mkdir(parents=True, exist_ok=True)
        settings: dict[str, Any] = {"margin": self.margin, "every": self.every, "max_new_tokens": self.max_new_tokens}
        settings["graders"] = {item.task: self.corpus.tasks[item.task].grader for item in self.items}
        best = None if self._best_step is None else f"checkpoint-{self._best_step}"
        read = {"items": [item.id for item in self.items], "before": self.before, "looks": self.looks}
        write_json(file, {"settings": settings, "best": best, **read})

    def _read(self, file: Path, step: int) -> tuple[list[float], list[dict[str, Any]], int]:
        """Scores before training, looks up to a step, and the room, of the run that is resumed."""
        remedy = "Resume with the same output_dir, rows and items, or start again."
        check_regular(file)
        try:
            kept = json.loads(file.read_text(encoding="utf-8"))
            ids, before, room = kept["items"], kept["before"], kept["settings"]["max_new_tokens"]
            looks = [line for line in kept["looks"] if line["step"] <= step]
            self.corpus = self.corpus.with_graders(kept["settings"]["graders"])
        except (OSError, ValueError, KeyError, TypeError, InputError) as error:
            raise InputError("the interim analyses of the resumed run", type(error).__name__, remedy, file=file) from None
        if ids != [item.id for item in self.items]:
            raise InputError("the items of the resumed run", "others", remedy, file=file)
        return before, looks, room


def _choose_items(corpus: Corpus, protect: Sequence[str], count: int) -> list[Example]:
    """Held-out rows with an answer, of the protected tasks and cells, in turn one of each task."""
    rows = [row for row in corpus.measured() if row.answer is not None]
    known = {name for row in rows for name in (row.task, cell_key(row.task, row.level))}
    for name in protect:
        if name not in known:
            raise unknown_name("task or TASK@LEVEL of the held-out rows (protect)", name, known)
    chosen = [row for row in rows if not protect or {row.task, cell_key(row.task, row.level)} & set(protect)]
    if not chosen:
        raise InputError("held-out rows with answers", "none", "Name rows whose answers can be graded.")
    return spread_items(chosen, count)
