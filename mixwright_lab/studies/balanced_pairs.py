"""Study of balanced preference pairs: what DPO teaches beside the answer, from pairs as they are and from a balanced copy.

A tiny model tells one digit of three, and ends half of its answers with a question mark, as it was taught. Each of 600
pairs prefers the right digit to a wrong one. In half of the pairs the rejected answer alone ends with a question mark, in
a tenth the preferred one alone: asking is what the check `preferences` warns of. DPO trains on the pairs as they are, on
the copy that `audit --balance` writes, or on as many pairs drawn at random; not training is an arm. Read on four sampled
answers to each of 100 held-out prompts: how many end with the question mark, and how many begin with the right digit.

Expectations, written before the seeds that count (seeds 90 and 91 were used while it was written): pairs as they are, and
as many drawn at random, take at least 20 points of the answers that ask, and no interval holds 0; the balanced copy moves
them by at most 15 points either way, by both ends of its interval, and its right answers are at most 5 points under those
of the pairs as they are, by the lower end.

    python -m mixwright_lab.studies.balanced_pairs [--quick]
"""

from __future__ import annotations

import random
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from mixwright.audit.balanced import balance
from mixwright.config import ModelConfig, WarmupConfig
from mixwright.corpus import Corpus
from mixwright.records import Example
from mixwright_lab.studies.jobs import run_in_processes
from mixwright_lab.studies.report import Goal, Result, interval, run

if TYPE_CHECKING:
    from mixwright.learner.learner import Learner

SEEDS, QUICK = (0, 1, 2, 3, 4), (90, 91)
PAIRS, HELD_OUT = 600, 100
ONLY_REJECTED_ASKS, ONLY_CHOSEN_ASKS = 0.5, 0.1
WARMUP_STEPS, STEPS, BATCH, RATE, BETA = 250, 60, 16, 1e-3, 0.1
ARMS = ("not trained", "as they are", "balanced", "random")
LEAST_TAKEN, MOST_MOVED, MOST_LOST = 20.0, 15.0, 5.0


@dataclass(frozen=True)
class BalanceJob:
    """One arm of one seed."""

    seed: int
    arm: str
    quick: bool = False


def make_pairs(count: int, rng: random.Random) -> list[Example]:
    """Pairs over different prompts, the right digit preferred."""
    rows = []
    for number, value in enumerate(rng.sample(range(1000), count)):
        digits, kind = f"{value:03d}", rng.random()
        wrong = rng.choice([digit for digit in "0123456789" if digit != digits[1]])
        asks = {"chosen": False, "rejected": False}
        if kind < ONLY_REJECTED_ASKS:
            asks["rejected"] = True
        elif kind < ONLY_REJECTED_ASKS + ONLY_CHOSEN_ASKS:
            asks["chosen"] = True
        else:
            asks = dict.fromkeys(asks, rng.random() < 0.5)
        sides = {side: f"{digits[1] if side == 'chosen' else wrong}{'?' if asks[side] else '.'}" for side in asks}
        prompt, source = f"middle of {digits}: ", f"p:{number}"
        rows.append(
            Example(f"p{number}", "middle", prompt, source=source, chosen=sides["chosen"], rejected=sides["rejected"])
        )
    return rows


def make_base(seed: int, steps: int) -> Learner:
    """The tiny model that tells the digit and asks after half of its answers."""
    from mixwright.learner.tiny import build_tiny
    from mixwright.learner.warmup import warm_up

    rng = random.Random(seed)
    rows = []
    for number in range(4000):
        digits = f"{rng.randrange(1000):03d}"
        target = f"{digits[1]}{rng.choice('.?')}"
        rows.append(Example(f"w{number}", "middle", f"middle of {digits}: ", target=target))
    learner = build_tiny([f"{row.prompt}{row.target}" for row in rows], ModelConfig(width=32, depth=2, heads=2), seed)
    warm_up(learner, Corpus.from_examples(rows), WarmupConfig(steps=steps, batch_size=32), seed=seed)
    return learner


def train_dpo(learner: Learner, pairs: Sequence[Example], seed: int, steps: int) -> None:
    """DPO by TRL, all weights, against the model as it was."""
    import copy

    from datasets import Dataset
    from trl.trainer.dpo_config import DPOConfig
    from trl.trainer.dpo_trainer import DPOTrainer

    rows = [{"prompt": row.prompt, "chosen": row.chosen, "rejected": row.rejected} for row in pairs]
    with tempfile.TemporaryDirectory() as folder:
        settings = DPOConfig(
            output_dir=folder,
            per_device_train_batch_size=BATCH,
            max_steps=steps,
            learning_rate=RATE,
            beta=BETA,
            seed=seed,
            report_to="none",
            save_strategy="no",
            disable_tqdm=True,
            use_cpu=True,
            bf16=False,
            gradient_checkpointing=False,
        )
        reference = copy.deepcopy(learner.model)
        DPOTrainer(
            learner.model, reference, settings, train_dataset=Dataset.from_list(rows), processing_class=learner.tokenizer
        ).train()
    learner.model.eval()


def do_job(job: BalanceJob) -> dict[str, Any]:
    """Train one arm and read what became of it."""
    rng = random.Random(job.seed)
    rows = make_pairs(PAIRS + HELD_OUT, rng)
    pairs, held_out = rows[:PAIRS], rows[PAIRS:]
    learner = make_base(job.seed, 20 if job.quick else WARMUP_STEPS)
    balanced = list(balance(Corpus.from_examples(pairs)).corpus)
    chosen = {"as they are": pairs, "balanced": balanced, "random": rng.sample(pairs, len(balanced))}
    if job.arm in chosen:
        train_dpo(learner, chosen[job.arm], job.seed, 3 if job.quick else STEPS)
    prompts = [row.prompt for row in held_out]
    answers = learner.sample(prompts, count=4, temperature=1.0, max_new_tokens=4, seed=job.seed)
    right = [one.text.startswith(str(prompt)[-4]) for prompt, group in zip(prompts, answers, strict=True) for one in group]
    asking = [one.text.endswith("?") for group in answers for one in group]
    return {
        "seed": job.seed,
        "arm": job.arm,
        "pairs": len(chosen.get(job.arm, [])),
        "asks": 100 * sum(asking) / len(asking),
        "right": 100 * sum(right) / len(right),
    }


def goals_of(rows: Sequence[Mapping[str, Any]], seeds: Sequence[int]) -> list[Goal]:
    """What was fixed before the run, paired by seed."""
    value = {(row["seed"], row["arm"]): row for row in rows}

    def differences(name: str, arm: str, other: str) -> list[float]:
        return [value[seed, arm][name] - value[seed, other][name] for seed in seeds]

    taken = {arm: interval(differences("asks", "not trained", arm)) for arm in ("as they are", "random")}
    moved = interval(differences("asks", "balanced", "not trained"))
    right = interval(differences("right", "balanced", "as they are"))
    return [
        *(
            Goal(
                f"asking that DPO takes, {arm}, points",
                one,
                f">= {LEAST_TAKEN:g}, low > 0",
                one.value >= LEAST_TAKEN and one.low > 0,
            )
            for arm, one in taken.items()
        ),
        Goal(
            "asking that DPO moves, balanced, points",
            moved,
            f"within {MOST_MOVED:g}, both ends",
            max(-moved.low, moved.high) <= MOST_MOVED,
        ),
        Goal("right answers, balanced less as they are, points", right, f"low >= {-MOST_LOST:g}", right.low >= -MOST_LOST),
    ]


def measure(quick: bool) -> Result:
    """Train every arm of every seed."""
    seeds = QUICK if quick else SEEDS
    rows = run_in_processes(do_job, [BalanceJob(seed, arm, quick) for seed in seeds for arm in ARMS], say="training")
    goals = goals_of(rows, seeds)
    means = {
        arm: {name: sum(row[name] for row in rows if row["arm"] == arm) / len(seeds) for name in ("pairs", "asks", "right")}
        for arm in ARMS
    }
    settings = {"pairs": PAIRS, "steps": STEPS, "batch": BATCH, "learning rate": RATE, "beta": BETA, "warm-up": WARMUP_STEPS}
    unit = "points of asking that DPO takes from the pairs as they are"
    return Result(goals[0].found, unit, seeds, rows, figures={"means": means}, settings=settings, goals=goals)


if __name__ == "__main__":
    run("balanced_pairs", __doc__, measure)
