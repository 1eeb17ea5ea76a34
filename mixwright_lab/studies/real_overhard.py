"""Study of over-hard data on a real model: does GRPO on prompts out of reach harm skills that SmolLM2-135M-Instruct had?

The model first gets 20 SFT steps on the answer form of all tasks; that model is `frozen`. Every other arm is 40 steps of
GRPO from it, two prompts x eight completions of at most 8 tokens, LoRA, reward 1 for the answer alone:

- `impossible`: remainders of large products by 13, where one guess in thirteen is right and nothing can be worked out;
- `learnable`: sums, half of them of two digits, which it does in part;
- `random`: these sums, and a reward of 1 by chance as often as a guess of a remainder is right;
- `a quarter`: three quarters sums, one quarter remainders;
- guards: `a fifth of the rate` on `impossible`, and `band` on `a quarter`, where groups in which less than a quarter or more
  than three quarters are right have no loss.

Read are three former skills, of which no arm has a row (capitals, opposites, past tenses: greedy, exact), the tasks that are
trained, and the echo of errors: success on former items behind six right turns less that behind six wrong ones. Of eight
samples of former items, sums and remainders are read how many differ, and the divergence from `frozen`.

The published claim (2605.28388, and the second essay): prompts out of reach harm what worked. The contrast that decides,
named before the first training: former skills, `learnable` less `impossible`, whole interval over seeds above 0 is
"reproduced", below 5 points "not reproduced", else "cannot tell". It counts only if the positive control fires: `learnable`
less `frozen` on sums above 0. Goals of ours: `a fifth of the rate` keeps more than `impossible`; from the first 20 groups
of `impossible`, `diagnose` names luck, one answer or prompts that are too hard in four of five seeds, and in no `learnable`
one. Two further published claims, by the same rule: reward on solved prompts lowers the number of different answers to
prompts without any (`frozen` less `learnable`, remainders; control: on sums); the further from the start, the more is
forgotten (rank correlation over arms of divergence and lost points of former skills; control: `impossible` is further
than `a fifth of the rate`).

Source: near-impossible prompts that teach shortcuts, 2605.28388; sampled diversity and forgetting by divergence as in the
    cards `diversity` and `plasticity`; our settings, tried on seed 5, where `learnable` raised sums from 23 to 33.
Unit: one training.
Cost: six minutes of one thread an arm, two for the form, 35 arms.
Blind spot: one model, LoRA, answers of a few tokens, chance of one in thirteen.

    MIXWRIGHT_PUBLIC=FOLDER python -m mixwright_lab.studies.real_overhard [--quick] [--report]
"""

from __future__ import annotations

import random
import shutil
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from mixwright.records import Interval
from mixwright_lab.changes import spearman
from mixwright_lab.demo.training import Training, fine_tune
from mixwright_lab.studies.everyday import HALF_KNOWN, SKILLS
from mixwright_lab.studies.jobs import append_row, read_rows, row_of, run_in_processes, without_answers, write_rows
from mixwright_lab.studies.public_sets import read_questions
from mixwright_lab.studies.real_grpo import right_alone
from mixwright_lab.studies.real_models import MODEL, PublicPlace
from mixwright_lab.studies.report import RESULTS, Goal, Result, interval, rounded, run

SEEDS, QUICK = (307, 311, 313, 317, 331), (5,)
FROZEN, IMPOSSIBLE, LEARNABLE, RANDOM, QUARTER = "frozen", "impossible", "learnable", "random", "a quarter"
LOW, BAND = "a fifth of the rate", "band"
ARMS = (FROZEN, IMPOSSIBLE, LEARNABLE, RANDOM, LOW, QUARTER, BAND)
FORMER, SUMS, REMAINDERS = ("capitals", "opposites", "past_tenses"), "sums", "remainders"
DIVISOR, POOL, ITEMS, FORM_ROWS, ECHO_ITEMS, TURNS, TOKENS = 13, 160, 48, 64, 16, 6, 8
STEPS, PROMPTS, GROUP, RATE, LEAST, MOST = 40, 2, 8, 2e-4, 0.25, 0.75
LEAST_HARM, FIRST_GROUPS = 5.0, 20
NAMED = {"luck", "one answer", "too hard"}
FORM = Training(steps=20, learning_rate=3e-4)
ROWS_FILE, PLACE = RESULTS / "real_overhard.rows.jsonl", Path("runs") / "real_overhard"


@dataclass(frozen=True)
class Arm:
    """One training and what is read after it; `frozen` is the form alone."""

    name: str
    seed: int
    quick: bool = False


def make_tasks(seed: int) -> dict[str, list[dict[str, str]]]:
    """Rows of each task in an order of their own: items first, then those of the form, then those of GRPO."""
    rng = random.Random(seed)
    pairs = {task: HALF_KNOWN[task]() for task in ("capitals", "opposites")}
    asked = read_questions(PublicPlace.from_environment().folder, "past_tenses")
    pairs["past_tenses"] = [(row["prompt"], row["answer"]) for row in asked]
    sums = [*rng.sample(HALF_KNOWN[SUMS](), 200), *SKILLS["two_digit_sums"](rng, 200)]
    factors = [(rng.randrange(100, 1000), rng.randrange(100, 1000)) for _ in range(400)]
    pairs |= {
        SUMS: sums,
        REMAINDERS: [
            (f"What is the remainder of {one} times {other} divided by {DIVISOR}?", str(one * other % DIVISOR))
            for one, other in factors
        ],
    }
    return {
        task: [{"task": task, "prompt": prompt, "answer": answer} for prompt, answer in rng.sample(own, len(own))]
        for task, own in pairs.items()
    }


def ask(prompt: str, turns: Sequence[dict[str, str]] = ()) -> list[dict[str, str]]:
    """A question behind other turns, and behind a short system message: that of the chat template has 20 tokens."""
    return [{"role": "system", "content": "Answer."}, *turns, {"role": "user", "content": prompt}]


def train_form(seed: int, quick: bool) -> Path:
    """The model after SFT on the answer form of all tasks, merged."""
    from mixwright.learner.load import load_learner, merge_adapter

    place = PLACE / (f"quick-{seed}" if quick else f"seed-{seed}")
    if not (place / "form" / "config.json").is_file():
        place.mkdir(parents=True, exist_ok=True)
        rows = [row for own in make_tasks(seed).values() for row in own[ITEMS : ITEMS + FORM_ROWS]]
        rows = [{"task": row["task"], "prompt": ask(row["prompt"]), "completion": row["answer"]} for row in rows]
        how = Training(steps=2) if quick else FORM
        file = write_rows(place / "form.jsonl", random.Random(seed).sample(rows, len(rows)))
        fine_tune(MODEL, file, place / "adapter", how, seed=seed, at_once=4)
        merge_adapter(load_learner(str(place / "adapter"))).save(place / "form")
    return place / "form"


def train_arm(arm: Arm, start: Path, out: Path) -> None:
    """GRPO from `start`; the adapter and TRL's completions stand in `out`."""
    from datasets import Dataset
    from peft import LoraConfig
    from transformers import PrinterCallback
    from trl.trainer.grpo_config import GRPOConfig
    from trl.trainer.grpo_trainer import GRPOTrainer

    from mixwright.learner.load import load_learner
    from mixwright.learner.settings import float32_settings

    class Banded(GRPOTrainer):
        """Takes groups out of the loss of which too few or too many are right."""

        def _generate_and_score_completions(self, inputs: list[dict[str, Any]]) -> dict[str, Any]:
            made = super()._generate_and_score_completions(inputs)
            right = (made["advantages"].view(-1, GROUP) > 0).float().mean(dim=1)
            inside = ((right >= LEAST) & (right <= MOST)).repeat_interleave(GROUP)
            made["advantages"] = made["advantages"] * inside
            return made

    rng, learner, tasks = random.Random(arm.seed), load_learner(str(start)), make_tasks(arm.seed)
    pools = {task: tasks[task][ITEMS + FORM_ROWS :][:POOL] for task in (SUMS, REMAINDERS)}
    if arm.name in (QUARTER, BAND):
        rows = [*pools[SUMS][: POOL * 3 // 4], *pools[REMAINDERS][: POOL // 4]]
    else:
        rows = pools[REMAINDERS if arm.name in (IMPOSSIBLE, LOW) else SUMS]

    def by_chance(completions: Sequence[Any], **_: Any) -> list[float]:
        return [float(rng.random() * DIVISOR < 1) for _ in completions]

    settings: dict[str, Any] = {"max_steps": 2 if arm.quick else STEPS, "per_device_train_batch_size": PROMPTS * GROUP}
    settings |= {"num_generations": GROUP, "max_completion_length": TOKENS, "save_strategy": "no", "logging_steps": 1}
    settings |= {"learning_rate": RATE * (0.2 if arm.name == LOW else 1), "lr_scheduler_type": "constant", "beta": 0.0}
    reward: Any = by_chance if arm.name == RANDOM else right_alone
    trainer = (Banded if arm.name == BAND else GRPOTrainer)(
        model=learner.model,
        args=GRPOConfig(
            output_dir=str(out), seed=arm.seed, log_completions=True, **float32_settings(learner.device), **settings
        ),
        train_dataset=Dataset.from_list([row | {"prompt": ask(row["prompt"])} for row in rng.sample(rows, len(rows))]),
        processing_class=learner.tokenizer,
        reward_funcs=[reward],
        peft_config=LoraConfig(r=16, lora_alpha=32, target_modules="all-linear", task_type="CAUSAL_LM"),
    )
    trainer.remove_callback(PrinterCallback)
    trainer.train()
    trainer.save_model(str(out))


def read_model(model: Path, seed: int, quick: bool) -> dict[str, list[list[Any]]]:
    """Answers [task, prompt, right, completion] to items, and to those behind right and wrong turns."""
    from mixwright.learner.load import load_learner

    learner, tasks = load_learner(str(model)), make_tasks(seed)
    plain = [row for own in tasks.values() for row in own[: 2 if quick else ITEMS]]
    asked = {"items": [(row, ask(row["prompt"])) for row in plain]}
    for kind, shift in (("right turns", 0), ("wrong turns", 1)):
        asked[kind] = [
            (row, ask(row["prompt"], _turns(tasks[row["task"]][ITEMS:][:TURNS], shift)))
            for task in FORMER
            for row in tasks[task][: 1 if quick else ECHO_ITEMS]
        ]
    found: dict[str, list[list[Any]]] = {}
    for kind, rows in asked.items():
        texts = learner.sample(
            [tuple(messages) for _, messages in rows], count=1, temperature=0, max_new_tokens=TOKENS, seed=0
        )
        found[kind] = [
            [row["task"], row["prompt"], right_alone([text.text], [row["answer"]])[0], text.text]
            for (row, _), (text,) in zip(rows, texts, strict=True)
        ]
    drawn = [row for own in tasks.values() for row in own[: 1 if quick else ECHO_ITEMS]]
    return found | {"drawn": read_samples(learner, drawn)}


def read_samples(learner: Any, rows: Sequence[Mapping[str, str]]) -> list[list[Any]]:
    """Of each row [task, prompt, different answers of eight, nats that they are likelier than without the adapter]."""
    prompts = [tuple(ask(row["prompt"])) for row in rows]
    sampled = learner.sample(prompts, count=GROUP, temperature=1.0, max_new_tokens=TOKENS, seed=0)
    each = [(prompt, one) for prompt, own in zip(prompts, sampled, strict=True) for one in own]
    with learner.model.disable_adapter() if hasattr(learner.model, "disable_adapter") else nullcontext():
        start = learner.logprobs([prompt for prompt, _ in each], [one.token_ids for _, one in each])
    nats = [sum(one.logprobs) - sum(before) for (_, one), before in zip(each, start, strict=True)]
    return [
        [row["task"], row["prompt"], len({one.text for one in own}), sum(nats[place * GROUP :][:GROUP]) / GROUP]
        for place, (row, own) in enumerate(zip(rows, sampled, strict=True))
    ]


def _turns(rows: Sequence[Mapping[str, str]], shift: int) -> list[dict[str, str]]:
    """Earlier turns, with each other's answers where they are shifted."""
    return [
        {"role": role, "content": text}
        for place, row in enumerate(rows)
        for role, text in (("user", row["prompt"]), ("assistant", rows[(place + shift) % len(rows)]["answer"]))
    ]


def diagnose_first(completions: Path) -> list[str]:
    """What `diagnose` names in the first groups."""
    from mixwright.logs.diagnosis import diagnose
    from mixwright.logs.rollouts import RolloutLog, read_rollouts

    log = read_rollouts(str(completions))
    first = tuple(one for one in log.rollouts if (one.step or 0) <= FIRST_GROUPS // PROMPTS)
    return sorted({one.check for one in diagnose(RolloutLog(log.form, first)) if one.severity != "info"})


def do_arm(arm: Arm) -> None:
    """Train, read, and append a row."""
    began, start = time.monotonic(), train_form(arm.seed, arm.quick)
    out = start.parent / arm.name.replace(" ", "-")
    row: dict[str, Any] = {"seed": arm.seed, "arm": arm.name}
    if arm.name != FROZEN:
        train_arm(arm, start, out)
        row["diagnosis"] = diagnose_first(out / "completions")
    row["answers"] = read_model(start if arm.name == FROZEN else out, arm.seed, arm.quick)
    shutil.rmtree(out, ignore_errors=True)
    append_row(PLACE / "quick.jsonl" if arm.quick else ROWS_FILE, row | row_of(began))


def success(row: Mapping[str, Any], tasks: Sequence[str], kind: str = "items") -> float:
    """Points over these tasks, each counted alike."""
    means = []
    for task in tasks:
        right = [answer[2] for answer in row["answers"][kind] if answer[0] == task]
        means.append(100 * sum(right) / len(right))
    return sum(means) / len(means)


def sampled(row: Mapping[str, Any], tasks: Sequence[str], at: int) -> float:
    """Mean of a reading of samples, 2 for different answers and 3 for nats."""
    values = [one[at] for one in row["answers"]["drawn"] if one[0] in tasks]
    return sum(values) / len(values)


def echo(row: Mapping[str, Any]) -> float:
    """Points that wrong turns cost, against right ones."""
    return success(row, FORMER, "right turns") - success(row, FORMER, "wrong turns")


def word_of(effect: Interval, control: Interval, least: float) -> str:
    """What a contrast says that the claim puts above 0, where an effect of the least size matters."""
    if control.low <= 0:
        return "this model cannot show it"
    return "reproduced" if effect.low > 0 else "not reproduced" if effect.high < least else "cannot tell"


def measure(quick: bool, begin: bool = True) -> Result:
    """Do the arms that are left, a seed after the other."""
    seeds = QUICK if quick else SEEDS
    rows = [] if quick else read_rows(ROWS_FILE)
    done = {(row["seed"], row["arm"]) for row in rows}
    for seed in seeds if begin else ():
        if any((seed, name) not in done for name in ARMS):
            train_form(seed, quick)
        arms = [Arm(name, seed, quick) for name in ARMS[: 2 if quick else None] if (seed, name) not in done]
        run_in_processes(do_arm, arms, say=f"seed {seed}")
        shutil.rmtree(PLACE / f"seed-{seed}", ignore_errors=True)  # half a gigabyte
    rows = read_rows(PLACE / "quick.jsonl" if quick else ROWS_FILE)
    by_seed = {seed: {row["arm"]: row for row in rows if row["seed"] == seed} for seed in seeds}

    def less(arm: str, other: str, tasks: Sequence[str] = FORMER, by: Callable[..., float] = success) -> Interval:
        both = [found for found in by_seed.values() if {arm, other} <= found.keys()]
        return _mean([by(found[arm], tasks) - by(found[other], tasks) for found in both])

    harm, control = less(LEARNABLE, IMPOSSIBLE), less(LEARNABLE, FROZEN, (SUMS,))
    different, nats = (partial(sampled, at=at) for at in (2, 3))
    whole = [found for found in by_seed.values() if found.keys() >= {*ARMS}]
    further = list[float]()
    for found in whole:
        far, kept = ([by(found[arm], FORMER) for arm in ARMS[1:]] for by in (nats, success))
        further.append(-spearman(far, kept))
    claims = {
        "diversity": (less(FROZEN, LEARNABLE, (REMAINDERS,), different), less(FROZEN, LEARNABLE, (SUMS,), different), 0.5),
        "plasticity": (_mean(further), less(IMPOSSIBLE, LOW, by=nats), 0.4),
    }
    named = {arm: [not NAMED.isdisjoint(row["diagnosis"]) for row in rows if row["arm"] == arm] for arm in ARMS[1:]}
    figures: dict[str, Any] = {"word": word_of(harm, control, LEAST_HARM), "control, sums": rounded_of(control)}
    for name, (effect, own, least) in claims.items():
        figures[name] = {"word": word_of(effect, own, least), "effect": rounded_of(effect, 2), "control": rounded_of(own, 2)}
    figures |= {f"former skills, {arm} less frozen": rounded_of(less(arm, FROZEN)) for arm in ARMS[1:]}
    figures |= {f"former skills, {BAND} less {QUARTER}": rounded_of(less(BAND, QUARTER))}
    figures |= {f"sums, {arm} less frozen": rounded_of(less(arm, FROZEN, (SUMS,))) for arm in ARMS[1:]}
    echoes = {arm: [echo(row) for row in rows if row["arm"] == arm] for arm in ARMS}
    figures |= {"echo": {arm: rounded(values) for arm, values in echoes.items() if len(values) > 1}, "diagnosed": named}
    calls = 0 if any(named[LEARNABLE]) else sum(named[IMPOSSIBLE])
    diagnosed = Interval(calls, calls, calls, len(named[IMPOSSIBLE]))
    goals = [
        Goal.above_zero("former skills, learnable less impossible, points", harm),
        Goal.above_zero("former skills, a fifth of the rate less impossible", less(LOW, IMPOSSIBLE)),
        Goal.at_least("seeds in which it is diagnosed, and no learnable one", diagnosed, 4),
    ]
    settings = {"steps": STEPS, "rate": RATE, "groups": [PROMPTS, GROUP, TOKENS], "rows": ROWS_FILE.name}
    return Result(harm, goals[0].name, seeds, without_answers(rows), figures, settings, goals=goals)


def _mean(values: Sequence[float]) -> Interval:
    """The mean over seeds, of which nothing is excluded with fewer than two."""
    return interval(values) if len(values) > 1 else Interval(0.0, -100.0, 100.0, len(values))


def rounded_of(found: Interval, digits: int = 1) -> list[float]:
    """Value and interval."""
    return [round(found.value, digits), round(found.low, digits), round(found.high, digits)]


if __name__ == "__main__":
    run("real_overhard", __doc__, measure, kept=True)
