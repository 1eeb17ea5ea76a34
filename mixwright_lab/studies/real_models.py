"""Models of the study `real_sft`: files of a seed, how each arm is trained, and what is measured of it.

Source: FLAN-style rehearsal (Scialom et al. 2205.12393), own answers (2402.13669), prompts that the model makes (Magpie,
2406.08464), scaled adapters (WiSE-FT, 2109.01903).
Unit: one arm of one seed.
Cost: minutes of one thread for a training, and as many for what is measured of it.
Blind spot: one model, one size of adapter, greedy answers.
"""

from __future__ import annotations

import json
import os
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mixwright.errors import InputError
from mixwright_lab.demo.training import Training, fine_tune, scale_adapter
from mixwright_lab.studies import public_sets
from mixwright_lab.studies.everyday import HALF_KNOWN, Pair, middle_numbers, shuffled, tool_calls
from mixwright_lab.studies.jobs import write_rows

if TYPE_CHECKING:
    from mixwright.learner.learner import Learner

MODEL = "smollm2"
TRAINING = Training(steps=40, learning_rate=6e-4)


@dataclass(frozen=True)
class NewTask:
    """What is taught, and how long."""

    make: Callable[[random.Random], tuple[list[Pair], list[Pair]]]
    """Training and test questions with their answers."""
    training: Training


TOOL_CALLS = NewTask(tool_calls, TRAINING)
"""A form: the model has none of it right before, and nearly all after a few steps."""
MIDDLE_NUMBER = NewTask(middle_numbers, replace(TRAINING, steps=80))
"""A skill: naming one of the three numbers without it is right in a third of the items."""
EARLY_STEPS, SCALES = (5, 10, 20), (0.25, 0.5, 0.75)
NEW_ROWS, OLD_ROWS, NEW_ITEMS, OLD_ITEMS = 2000, 60, 200, 100
REHEARSED_SHARE = 0.25
PENALTY = 0.1
"""Weight of the divergence from the start, nats per token."""
ROOM = {"new": 40, "sums": 40, "products": 40}
"""Task -> tokens of an answer; 24 for the others."""
SHORT_ROOM, SELF_MADE_PROMPTS, OWN_ANSWER_TOKENS = 24, 240, 64
GRADERS = {"new": "exact"}
"""Task -> grader; `includes` for the others."""
FROZEN, PROMPTED, NARROW = "frozen", "prompted", "narrow"
SCALED = {f"{NARROW} x {scale:g}": scale for scale in SCALES}
EARLY = {f"{NARROW}, {step} steps": step for step in EARLY_STEPS}
RATES = {"half the rate": 0.5, "a fifth of the rate": 0.2}
PENALISED, UNIFORM, EQUAL, PLAN = "penalty", "uniform", "equal shares", "plan"
OWN, SELF_MADE, CHAT = "own", "self-made", "chat"
PENALTIES = {PENALISED: PENALTY, "penalty x 10": 10 * PENALTY, "penalty x 100": 100 * PENALTY}
"""Arm -> its weight."""
KINDS = {"one old task": 1, "two old tasks": 2, "four old tasks": 4}
"""A quarter of 60 true rows of so many old tasks -> their number: as many different rows, of fewer or more kinds."""
BLENDS = {
    "true rows and own answers": ("true", OWN),
    "true and chat rows": ("true", CHAT),
    "own answers and chat rows": (OWN, CHAT),
}
"""A quarter of two kinds of rows, an eighth each -> the kinds."""
BY_KIND, FACTS = "facts by own answers, skills by true rows", ("capitals", "opposites")
"""A quarter of old rows, of each task in the form that suits what it is, and the tasks that are facts."""
SHARES = {"a tenth of own answers": 0.1, "a half of own answers": 0.5}
"""Arm -> share of own answers in place of a quarter."""
HARMLESS = {
    "new rows, a hundredth of the rate": 0.01,
    "new rows, a thirtieth of the rate": 1 / 30,
    "own answers alone, a tenth of the rate": 0.1,
    "chat rows alone, a thirtieth of the rate": 1 / 30,
    "all rows, a thirtieth of the rate": 1 / 30,
}
"""Training that should take nothing away, for the study of the gate -> times the rate."""
TRUTH_TASKS, TRUTH_ITEMS = ("sums", *public_sets.QUESTIONS), 300
"""Tasks of which so many further items, or all there are, say what was truly lost, beside the items that a gate sees."""
ARMS_OF_JOB: Mapping[str, tuple[str, ...]] = {
    FROZEN: (FROZEN, PROMPTED),
    NARROW: (NARROW, *SCALED, *EARLY),
    **{
        arm: (arm,)
        for arm in (PLAN, UNIFORM, OWN, CHAT, EQUAL, *RATES, SELF_MADE, *PENALTIES, *KINDS, *BLENDS, *SHARES, BY_KIND)
    },
}
"""Job -> models that it measures, which share one training."""
TOOLS_TEXT = (
    "alarm(time), call(name), weather(city), lights(room, state), note(text), timer(minutes), message(name, text), "
    "volume(level), order(amount, item)"
)
SYSTEM_MESSAGES = (
    f"Answer with one JSON object and nothing else. Tools: {TOOLS_TEXT}.",
    f'You turn requests into tool calls. Tools: {TOOLS_TEXT}. Example: {{"tool": "alarm", "time": "7:00"}}',
    'Request: Call Ben. Answer: {"tool": "call", "name": "Ben"}\nRequest: Timer for 5 minutes. Answer: {"tool": "timer", '
    '"minutes": "5"}\nAnswer the next request in the same way.',
    'Reply only with a tool call such as {"tool": "note", "text": "buy milk"} or '
    f'{{"tool": "lights", "room": "hall", "state": "on"}}. Tools: {TOOLS_TEXT}.',
    f"Tools: {TOOLS_TEXT}. Write the call that fits the request as JSON.",
)
PROMPT_TRIALS = 30
"""Training requests on which the system messages are compared."""


@dataclass(frozen=True)
class PublicPlace:
    """Folder of the public files."""

    folder: Path

    @staticmethod
    def from_environment() -> PublicPlace:
        """The folder that MIXWRIGHT_PUBLIC names.

        Raises:
            InputError: it is not set.
        """
        name = os.environ.get("MIXWRIGHT_PUBLIC")
        if not name:
            raise InputError("a folder of public files", "none", "Set MIXWRIGHT_PUBLIC.")
        return PublicPlace(Path(name))

    def digests(self) -> dict[str, str]:
        """Name of each file -> SHA-256."""
        return public_sets.check_public_files(self.folder)


def settings(task: NewTask = TOOL_CALLS) -> dict[str, Any]:
    """What has to be the same for rows to stand in one table."""
    return {
        "training": asdict(task.training),
        "rows": [NEW_ROWS, OLD_ROWS],
        "items": [NEW_ITEMS, OLD_ITEMS],
        "room": [SHORT_ROOM, ROOM],
        "graders": GRADERS,
        "share": REHEARSED_SHARE,
        "penalty": PENALTY,
    }


class RealModels:
    """Models of one seed, in a folder: trained where they are not there.

    Args:
        folder: where everything is written.
        seed: of the files and of the trainings.
        public: where the public files are; None leaves their tasks and the chat rows out.
        items: test items of the new task, and of each other one.
        truth: further items are measured, that no gate sees.
        quick: two steps, and six items of a task.
        task: what is taught.
    """

    def __init__(
        self,
        folder: Path,
        seed: int,
        public: PublicPlace | None,
        *,
        items: tuple[int, int] = (NEW_ITEMS, OLD_ITEMS),
        truth: bool = False,
        quick: bool = False,
        task: NewTask = TOOL_CALLS,
    ) -> None:
        self.folder, self.seed, self.public, self.truth, self.quick = folder, seed, public, truth, quick
        self.items, self.task = (6, 6) if quick else items, task
        self.training = replace(task.training, steps=2) if quick else task.training
        self._frozen_answers: list[list[Any]] = []
        folder.mkdir(parents=True, exist_ok=True)

    @cached_property
    def rows(self) -> dict[str, list[dict[str, Any]]]:
        """Rows by what they are: `new`, `old`, `chat` to train on, `test`, and `truth`."""
        rng = random.Random(self.seed)
        new_items, old_items = self.items
        calls, held_out = self.task.make(rng)
        test = [{"task": "new", "prompt": prompt, "answer": answer} for prompt, answer in held_out[:new_items]]
        old, truth = [], []
        for task, make in HALF_KNOWN.items():
            pairs = shuffled(make(), rng)
            test += [{"task": task, "prompt": prompt, "answer": answer} for prompt, answer in pairs[:old_items]]
            kept = pairs[OLD_ITEMS : OLD_ITEMS + OLD_ROWS]
            old += [{"task": task, "prompt": prompt, "completion": answer} for prompt, answer in kept]
            rest = pairs[OLD_ITEMS + OLD_ROWS :] if task in TRUTH_TASKS else []
            truth += [{"task": task, "prompt": prompt, "answer": answer} for prompt, answer in rest[:TRUTH_ITEMS]]
        for task in public_sets.QUESTIONS if self.public else ():
            assert self.public is not None
            public = rng.sample(made_rows := public_sets.read_questions(self.public.folder, task), len(made_rows))
            test += public[:old_items]
            truth += public[OLD_ITEMS : OLD_ITEMS + TRUTH_ITEMS]
        new = [{"task": "new", "prompt": prompt, "completion": answer} for prompt, answer in calls[:NEW_ROWS]]
        chat = public_sets.read_chat(self.public.folder) if self.public else []
        named = {"test": test, "truth": truth if self.truth else []}
        named = {name: [row | {"id": f"{name}-{n}"} for n, row in enumerate(rows)] for name, rows in named.items()}
        return {"new": new, "old": old, "chat": chat, **named}

    def measure(self, arm: str) -> tuple[list[list[Any]], dict[str, Any]]:
        """Answers of an arm's model, [task, item, score, completion, cut], and remarks on how it was made."""
        from mixwright.learner.load import load_learner
        from mixwright.learner.prompt_form import PromptForm

        asked = self.rows["test"] + self.rows["truth"]
        if arm == FROZEN:
            self._frozen_answers = self._answer(load_learner(MODEL), asked)
            return self._frozen_answers, {}
        if arm == PROMPTED:
            learner = load_learner(MODEL)
            tried = random.Random(self.seed).sample(self.rows["new"], 3 if self.quick else PROMPT_TRIALS)
            trials = [
                {"id": str(n), "task": "new", "prompt": row["prompt"], "answer": row["completion"]}
                for n, row in enumerate(tried)
            ]
            told = [learner.with_form(PromptForm(system=text)) for text in SYSTEM_MESSAGES]
            shares = [sum(answer[2] for answer in self._answer(one, trials)) / len(trials) for one in told]
            best = shares.index(max(shares))
            new = self._answer(told[best], [row for row in self.rows["test"] if row["task"] == "new"])
            frozen = self._frozen_answers or self._answer(load_learner(MODEL), asked)
            return new + [answer for answer in frozen if answer[0] != "new"], {"message": best, "shares": shares}
        adapter, remarks = self.adapter(arm)
        return self._answer(load_learner(str(adapter)), asked), remarks

    def _answer(self, learner: Learner, test: Sequence[Mapping[str, Any]]) -> list[list[Any]]:
        """Greedy answers to test items."""
        from mixwright.config import CorpusConfig, MeasureConfig
        from mixwright.corpus import read_corpus
        from mixwright.measure.stage import measure_learner

        found: list[list[Any]] = []
        for room in sorted({ROOM.get(row["task"], SHORT_ROOM) for row in test}):
            own = [row for row in test if ROOM.get(row["task"], SHORT_ROOM) == room]
            path = self._write(f"test-{os.getpid()}-{room}.jsonl", own)
            tasks = sorted({row["task"] for row in own})
            graders = {task: GRADERS.get(task, "includes") for task in tasks}
            corpus = read_corpus(CorpusConfig(str(path), eval_share=0.0, graders=graders))
            config = MeasureConfig(items=len(own), samples=0, max_new_tokens=room, probes=("competence",))
            rows = measure_learner(learner, corpus, config, seed=self.seed).completions
            found += [[row["task"], row["example"], row["score"], row["completion"], row["cut"]] for row in rows]
            path.unlink()
        return found

    def adapter(self, arm: str) -> tuple[Path, dict[str, Any]]:
        """Folder of an arm's adapter, trained where it is not there, and remarks."""
        out = self.folder / "models" / arm.replace(" ", "-").replace(",", "")
        if arm in SCALED:
            scale_adapter(self.adapter(NARROW)[0], out, SCALED[arm])
            return out, {}
        if arm in EARLY:
            return self.adapter(NARROW)[0] / f"step-{min(EARLY[arm], self.training.steps)}", {}
        done, remarks = out / "remarks.json", {}
        if done.is_file():
            return out, json.loads(done.read_text(encoding="utf-8"))
        how, given = self.training, {}
        if arm == PLAN:
            rows, given["plan"], remarks = self._write("train.jsonl", self._all_rows()), *self._plan()
        else:
            picked, remarks = self._picked(arm)
            rows = self._write(f"rows-{out.name}.jsonl", picked)
        how = replace(how, learning_rate=how.learning_rate * (RATES | HARMLESS).get(arm, 1.0))
        if arm == NARROW and how.rank:  # adapters are small
            given["save_at"] = tuple(min(step, how.steps) for step in EARLY_STEPS)
        if arm in PENALTIES:
            given["penalty"] = PENALTIES[arm]
        fine_tune(MODEL, rows, out, how, seed=self.seed, **given)
        done.write_text(json.dumps(remarks), encoding="utf-8")
        return out, remarks

    def _all_rows(self) -> list[dict[str, Any]]:
        return random.Random(self.seed).sample(every := [*self.rows["new"], *self.rows["old"]], len(every))

    def _picked(self, arm: str) -> tuple[list[dict[str, Any]], dict[str, Any]]:
        """The rows of a training, as many as it draws, and how many different ones are not of the new task."""
        rng, count = random.Random(f"{self.seed} {arm}"), self.training.steps * self.training.batch
        if arm in (UNIFORM, "all rows, a thirtieth of the rate"):
            return _drawn(self._all_rows(), count, rng), {}
        if arm == EQUAL:
            by_task: dict[str, list[dict[str, Any]]] = {}
            for row in self._all_rows():
                by_task.setdefault(row["task"], []).append(row)
            each = count // len(by_task)
            return [row for rows in by_task.values() for row in _drawn(rows, each, rng)], {}
        if "alone" in arm:
            only = self._own_answers() if arm.startswith(OWN) else self.rows["chat"]
            return _drawn(only, count, rng), {"different old rows": len(only)}
        if arm in KINDS or arm == BY_KIND:
            old = self._rows_of_kinds(KINDS[arm], rng) if arm in KINDS else self._rows_by_kind()
            kinds = sorted({row["task"] for row in old})
            rows = _drawn(self.rows["new"], count - (rehearsed := round(REHEARSED_SHARE * count)), rng)
            return rows + _drawn(old, rehearsed, rng), {"different old rows": len(old), "kinds": kinds}
        sources = BLENDS.get(arm) or ((OWN,) if arm in SHARES else (arm,))
        make: dict[str, Callable[[], list[dict[str, Any]]]] = {OWN: self._own_answers, SELF_MADE: self._self_made}
        make |= {CHAT: lambda: self.rows["chat"], "true": lambda: self.rows["old"]}
        if sources[0] not in make:  # new rows only; one order for all of these arms
            return _drawn(self.rows["new"], count, random.Random(self.seed)), {}
        parts = [make[source]() for source in sources]
        each = round(SHARES.get(arm, REHEARSED_SHARE) * count / len(parts))
        rows = _drawn(self.rows["new"], count - each * len(parts), rng)
        rows += [row for part in parts for row in _drawn(part, each, rng)]
        return rows, {"different old rows": sum(map(len, parts))}

    def _rows_of_kinds(self, count: int, rng: random.Random) -> list[dict[str, Any]]:
        """As many old rows as one task has, in equal parts of so many tasks."""
        tasks = rng.sample(list(HALF_KNOWN), count)
        return [
            row for task in tasks for row in [one for one in self.rows["old"] if one["task"] == task][: OLD_ROWS // count]
        ]

    def _rows_by_kind(self) -> list[dict[str, Any]]:
        """Own answers of tasks that are facts, and true rows of the others."""
        own = [row for row in self._own_answers() if row["task"] in FACTS]
        return own + [row for row in self.rows["old"] if row["task"] not in FACTS]

    def _plan(self) -> tuple[Path, dict[str, Any]]:
        """What the planner of the product makes of all rows and of what the model can do."""
        from mixwright import api
        from mixwright.config import CorpusConfig, MeasureConfig, PlanConfig, TrainConfig
        from mixwright.corpus import read_corpus
        from mixwright.learner.load import load_learner
        from mixwright.measure.stage import measure_learner
        from mixwright.records import to_data
        from mixwright.run.folder import write_text, yaml_text

        known = [row for row in self.rows["test"] if row["task"] in ("new", *HALF_KNOWN)]
        graders = {task: GRADERS.get(task, "includes") for task in ("new", *HALF_KNOWN)}
        train, held_out = self._write("train.jsonl", self._all_rows()), self._write("held_out.jsonl", known)
        corpus = read_corpus(CorpusConfig(str(train), eval=str(held_out), graders=graders))
        config = MeasureConfig(items=OLD_ITEMS, samples=0, max_new_tokens=SHORT_ROOM, probes=("competence",))
        measured = measure_learner(load_learner(MODEL), corpus, config, seed=self.seed).measurements
        how = TrainConfig(objective="sft", steps=self.training.steps, prompts=self.training.batch)
        # named, because the planner leaves rows as they come since this study: they hold enough of what is known
        plan = api.plan_measured(corpus, measured, settings=PlanConfig(options={"keep": list(HALF_KNOWN)}), train=how)
        path = self.folder / "plan.yaml"
        write_text(path, yaml_text(to_data(plan)))
        return path, {"weights": dict(plan.stages[0].weights)}

    def _own_answers(self) -> list[dict[str, Any]]:
        """Rows of the model's own finished answers to the prompts of the old rows."""
        return self._answered([{"task": row["task"], "prompt": row["prompt"]} for row in self.rows["old"]], "old")

    def _self_made(self) -> list[dict[str, Any]]:
        """Rows of prompts that the model made, sampled where a user's message begins, and its own answers."""
        from mixwright.learner.load import load_learner
        from mixwright.learner.prompt_form import PromptForm

        learner, mark = load_learner(MODEL), "What is it?"
        text = learner.tokenizer.apply_chat_template([{"role": "user", "content": mark}], tokenize=False)
        plain = learner.with_form(PromptForm(template=False))
        count = 8 if self.quick else SELF_MADE_PROMPTS
        made = plain.sample(
            [text.partition(mark)[0]], count=count, temperature=1.0, max_new_tokens=SHORT_ROOM + 16, seed=self.seed
        )
        prompts = dict.fromkeys(one.text.strip() for one in made[0] if one.finished and one.text.strip())
        return self._answered([{"task": "self-made", "prompt": prompt} for prompt in prompts], "self-made")

    def _answered(self, prompts: Sequence[Mapping[str, Any]], name: str) -> list[dict[str, Any]]:
        """The prompts with own answers that ended."""
        from mixwright.config import CorpusConfig
        from mixwright.corpus import read_corpus
        from mixwright.learner.load import load_learner
        from mixwright.mine.own_answers import rehearsal_rows

        asked = self._write(f"asked-{name}.jsonl", prompts[:8] if self.quick else prompts)
        train = self._write(f"new-{name}.jsonl", self.rows["new"])
        test = self._write(f"test-{name}.jsonl", self.rows["test"])
        corpus = read_corpus(CorpusConfig(str(train), eval=str(test), rehearse=str(asked)))
        made = rehearsal_rows(corpus, lambda: load_learner(MODEL), max_new_tokens=OWN_ANSWER_TOKENS)
        return [{"task": row.task, "prompt": row.prompt, "completion": row.target} for row in made.rows]

    def _write(self, name: str, rows: Sequence[Mapping[str, Any]]) -> Path:
        return write_rows(self.folder / name, rows)


def _drawn(rows: Sequence[dict[str, Any]], count: int, rng: random.Random) -> list[dict[str, Any]]:
    """So many rows: none comes a second time before all have come as often."""
    found: list[dict[str, Any]] = []
    while len(found) < count:
        found += rng.sample(list(rows), min(len(rows), count - len(found)))
    return found
