"""Study of a pool of mixed Reasoning Gym families with neither levels nor task names, in real GRPO through TRL.

A tiny model (0.2M parameters, SFT from scratch) goes on by GRPO on 2,400 rows of six families at several levels, of
which a row shows its prompt and its answer and nothing else: one task, one cell. Of the rows of the pool 45 % are of skills
that the starting model has, 15 % are within its reach (it knows sums, and words spelt backward, but with these prompts it
copies the problem more often than it answers), and the rest are out of reach: longer ones of the same families, and
families that it knows too little of. Arms:

    frozen     not trained
    uniform    TRL's own trainer
    even       the trainer's own plan with canaries: rows are drawn evenly
    predicted  the same, but success is predicted from the prompts, rows near one half are drawn
    levels     the same as predicted on the same rows with family and level as columns: the best information there is

Canaries that nobody measured and the prediction were defaults when this ran; what came out turned both off.

All arms of a seed have the same starting model, rows, seed and number of charged rollouts, canaries included: an arm ends
with the step after which another one would go beyond the budget. The primary outcome is greedy success over all held-out
items, mean over families and levels, paired by seed and item (`mixwright.estimates.outcome`); its parts S and D and
sampled success stand beside it. A row of the result holds these of every item, so that every figure can be worked out
again. Cells, learning rate and budget were chosen on seeds from 100 on; seeds 70 to 77 and the goals were fixed before.

    python -m mixwright_lab.studies.unlabelled_families [--quick]
"""

from __future__ import annotations

import json
import random
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from datasets import Dataset
from transformers import TrainerCallback
from trl.trainer.grpo_config import GRPOConfig

from mixwright import SteeredGRPOTrainer, SteeringConfig
from mixwright.catalog import create
from mixwright.config import MeasureConfig, ModelConfig, WarmupConfig
from mixwright.corpus import Corpus
from mixwright.errors import missing_extra
from mixwright.estimates.outcome import Item, ItemScores, estimate_change, item_scores
from mixwright.learner.learner import Learner
from mixwright.learner.load import load_learner
from mixwright.learner.settings import cheap_settings
from mixwright.learner.tiny import build_tiny
from mixwright.learner.warmup import warm_up
from mixwright.measure.stage import measure_learner
from mixwright.records import Example, cell_key, to_data
from mixwright_lab.studies import outcome
from mixwright_lab.studies.jobs import run_in_processes
from mixwright_lab.studies.report import Goal, Result, run

COPIED_SHARE = 0.6
"""Share of the taught rows of a cell within reach whose target is the problem again, not its answer."""
SEED_DISTANCE = 100_000
"""Between Reasoning Gym seeds: neighbouring ones give the same items, shifted by one."""
Key = tuple[str, int]
"""Family and level."""


class Counts(NamedTuple):
    """One family and level."""

    state: str
    """What it is meant to be for the starting model: mastered, reachable or beyond."""
    pool_rows: int
    """Rows of the pool."""
    taught_rows: int
    """Rows that the starting model is taught."""
    weight: float
    """Of them in its training."""


CELLS: Mapping[Key, Counts] = {
    ("basic_arithmetic", 2): Counts("mastered", 60, 100, 0.5),
    ("basic_arithmetic", 3): Counts("mastered", 540, 3500, 2.0),
    ("spell_backward", 3): Counts("mastered", 200, 900, 0.5),
    ("spell_backward", 4): Counts("mastered", 280, 1800, 1.0),
    ("chain_sum", 3): Counts("reachable", 180, 3000, 0.7),
    ("spell_backward", 5): Counts("reachable", 180, 2000, 0.8),
    ("basic_arithmetic", 8): Counts("beyond", 120, 0, 0.0),
    ("chain_sum", 6): Counts("beyond", 120, 0, 0.0),
    ("chain_sum", 10): Counts("beyond", 120, 0, 0.0),
    ("spell_backward", 10): Counts("beyond", 120, 0, 0.0),
    ("products", 2): Counts("beyond", 120, 500, 0.05),
    ("products", 3): Counts("beyond", 120, 500, 0.05),
    ("lcm", 2): Counts("beyond", 120, 500, 0.05),
    ("count_primes", 3): Counts("beyond", 120, 500, 0.05),
}
"""Level: terms of a sum, letters of a word, digits of a number."""
HELD_OUT = 32
"""Items of each cell."""


@dataclass(frozen=True)
class Rows:
    """All rows of one seed, with family and level; no prompt twice."""

    pool: tuple[Example, ...]
    """What may be trained on."""
    held_out: tuple[Example, ...]
    """What every arm is measured on."""
    text: tuple[Example, ...]
    """What the starting model is taught."""


def held_out(seed: int) -> list[Example]:
    """What every arm is measured on; ten seeds share it, from a multiple of ten on."""
    return _take("held_out", 1_000_000 + seed // 10, set())


def make_rows(seed: int, *, text: bool = True) -> Rows:
    """The rows of a seed, from 0; the same seed gives the same rows.

    Args:
        seed: of the items and of the order of rows.
        text: whether what the starting model is taught is made, too.
    """
    rng, kept = random.Random(seed), held_out(seed)
    seen = {str(row.prompt) for row in kept}
    pool = _take("pool", 2 * seed, seen)
    rng.shuffle(pool)
    taught = _take("text", 2 * seed + 1, seen) if text else []
    taught = [_taught(row, state_of(row.task, row.level), rng) for row in taught]
    return Rows(tuple(pool), tuple(kept), tuple(taught))


def state_of(family: str, level: float | None) -> str:
    """What a cell was meant to be for the starting model."""
    return CELLS[family, round(level or 0)].state


def dataset(pool: Sequence[Example], *, labelled: bool) -> Dataset:
    """The pool as a trainer gets it: prompt and answer; family and level only where they are to be known."""
    rows = [{"prompt": str(row.prompt), "answer": row.answer} for row in pool]
    if labelled:
        rows = [row | {"task": own.task, "level": own.level} for row, own in zip(rows, pool, strict=True)]
    return Dataset.from_list(rows)


def right(prompts: Sequence[str], completions: Sequence[str], answer: Sequence[str], **_: Any) -> list[float]:
    """1 for the answer and nothing else."""
    grader, made = create("graders", "exact"), zip(prompts, completions, answer, strict=True)
    return [grader.grade(Example("", "", prompt, answer=gold), text) for prompt, text, gold in made]


def shares(served: Sequence[int], pool: Sequence[Example]) -> dict[str, float]:
    """Share of the draws by what the cell was meant to be for the starting model."""
    states = [state_of(pool[row].task, pool[row].level) for row in served]
    return {state: round(states.count(state) / len(states), 4) for state in dict.fromkeys(c.state for c in CELLS.values())}


def _take(name: str, block: int, seen: set[str]) -> list[Example]:
    """Rows of every cell from Reasoning Gym seeds of their own."""
    found, split = [], "eval" if name == "held_out" else "train"
    for number, (key, counts) in enumerate(CELLS.items()):
        count = HELD_OUT if name == "held_out" else (counts.pool_rows if name == "pool" else counts.taught_rows)
        for place, example in zip(
            range(count), items(key, SEED_DISTANCE * (100 * (block + 1) + number), seen), strict=False
        ):
            found.append(replace(example, id=f"{name}:{key[0]}@{key[1]}:{place}", split=split))
    return found


def items(key: Key, first: int, seen: set[str]) -> Iterator[Example]:
    """Items of a family and level whose prompts are not among those seen, which they join; it ends after `SEED_DISTANCE`
    of them.
    """
    try:
        import reasoning_gym  # pyright: ignore[reportMissingImports]
    except ImportError:
        raise missing_extra("this study", ["reasoning_gym"], "gym") from None
    family, level = key
    made = reasoning_gym.create_dataset(family, size=SEED_DISTANCE, seed=first, **_settings(family, level))
    for place in range(SEED_DISTANCE):
        item = made[place]
        prompt = item["question"].strip()
        if prompt not in seen:
            seen.add(prompt)
            yield Example("", family, prompt, answer=str(item["answer"]), level=float(level))


def _taught(example: Example, state: str, rng: random.Random) -> Example:
    """With what the model is taught to say: the answer, or the problem again."""
    if state == "reachable" and rng.random() < COPIED_SHARE:
        return replace(example, target=str(example.prompt).rpartition(": ")[2].removesuffix(" ="))
    return replace(example, target=example.answer)


def _settings(family: str, level: int) -> dict[str, Any]:
    """Reasoning Gym's settings of a family and level."""
    low, high = 10 ** (level - 1), 10**level - 1
    terms = {"min_terms": level, "max_terms": level, "min_digits": 1, "max_digits": 1}
    return {
        "basic_arithmetic": {
            **terms, "operators": ["+", "-"], "allow_parentheses": False, "allow_negation": False,
        },
        "chain_sum": terms,
        "spell_backward": {"min_word_len": level, "max_word_len": level},
        "products": {"min_terms": 2, "max_terms": 2, "min_digits": level, "max_digits": level},
        "lcm": {"min_numbers": 2, "max_numbers": 2, "min_value": low, "max_value": high},
        "count_primes": {"min_n": low, "max_n": high},
    }[family]  # fmt: skip


SEEDS, QUICK = tuple(range(70, 78)), (100, 101)
ARMS = ("frozen", "uniform", "even", "predicted", "levels")
CANARIES = 16
"""Items watched in every arm that is steered."""
PAIRS = (
    ("predicted", "frozen"),
    ("predicted", "uniform"),
    ("predicted", "even"),
    ("predicted", "levels"),
    ("even", "frozen"),
    ("even", "uniform"),
    ("uniform", "frozen"),
    ("levels", "frozen"),
    ("levels", "uniform"),
    ("levels", "even"),
)
GOALS = (("predicted", "uniform", -0.01), ("predicted", "even", 0.0), ("predicted", "frozen", 0.0))
"""Arm, against, and what the lower end of the interval of greedy success must lie above."""
MODEL = ModelConfig(width=64, depth=4, heads=4, vocabulary=1024)
WARMUP = WarmupConfig(steps=3500, batch_size=64, learning_rate=3e-3)
MEASURED = MeasureConfig(items=HELD_OUT, samples=4, max_new_tokens=12, probes=("competence",))
NAMES = ("greedy", "greedy.swapped", "pass@1", "pass@1.swapped")


@dataclass(frozen=True)
class Settings:
    """Of the training of every arm."""

    budget: int = 5120
    """Rollouts, canaries included."""
    prompts: int = 8
    """Per step."""
    group: int = 8
    """Completions per prompt."""
    rate: float = 3e-4
    """Learning rate, constant."""
    warmup: int = WARMUP.steps
    """SFT steps of the starting model."""


@dataclass(frozen=True)
class Job:
    """One run, or the starting model of a seed."""

    arm: str
    seed: int
    folder: str
    """Where starting models are, a folder each."""
    settings: Settings = Settings()


class Budget(TrainerCallback):
    """Ends training with the last step that the budget allows, whatever was spent on canaries."""

    def __init__(self, settings: Settings) -> None:
        self.settings, self.charged = settings, 0
        self.trainer: Any = None

    def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """Count, and stop where one more step would be too much."""
        step = self.settings.prompts * self.settings.group
        run_ = getattr(self.trainer, "steered", None)
        self.charged = run_.rollouts if run_ is not None else state.global_step * step
        control.should_training_stop |= self.charged + step > self.settings.budget


def build(job: Job) -> None:
    """Teach the starting model of a seed and save it."""
    rows = make_rows(job.seed)
    learner = build_tiny([text for row in rows.pool for text in (str(row.prompt), str(row.answer))], MODEL, job.seed)
    weights = {cell_key(family, float(level)): cell.weight for (family, level), cell in CELLS.items() if cell.weight}
    config = replace(WARMUP, steps=job.settings.warmup, cells=weights)
    warm_up(learner, Corpus.from_examples(rows.text), config, seed=job.seed)
    learner.save(Path(job.folder) / str(job.seed))


def run_job(job: Job) -> dict[str, Any]:
    """Train one arm from the starting model and measure it; a row."""
    rows, learner = make_rows(job.seed, text=False), load_learner(str(Path(job.folder) / str(job.seed)))
    books = {} if job.arm == "frozen" else trained(learner, rows, job)
    scores = measured(learner, rows, job.seed)
    columns = {name: json.dumps([round(v, 3) for v in scores.column(name, scores.items).tolist()]) for name in NAMES}
    return {"arm": job.arm, "seed": job.seed, **books, "items": len(scores.items), **columns}


def steering(arm: str, folder: Path) -> SteeringConfig | None:
    """How an arm is steered; None is TRL's own trainer."""
    if arm == "uniform":
        return None
    options = {"engine": {"canaries": CANARIES}, "selectors.difficulty": {"predict": arm != "even"}}
    return SteeringConfig(folder=folder, columns={} if arm == "levels" else {"task": ""}, options=options)


def trained(learner: Learner, rows: Rows, job: Job) -> dict[str, Any]:
    """Train in place; the books of the run."""
    own, data = job.settings, dataset(rows.pool, labelled=job.arm == "levels")
    steps, budget = own.budget // (own.prompts * own.group), Budget(own)
    with tempfile.TemporaryDirectory() as place:
        args = GRPOConfig(
            output_dir=place,
            max_steps=steps,
            per_device_train_batch_size=own.prompts * own.group,
            num_generations=own.group,
            max_completion_length=MEASURED.max_new_tokens,
            learning_rate=own.rate,
            lr_scheduler_type="constant",
            beta=0.0,
            seed=job.seed,
            logging_steps=steps,
            save_strategy="no",
            **cheap_settings(learner.device),
        )
        served: list[int] = []
        where = {str(row.prompt): number for number, row in enumerate(rows.pool)}

        def reward(prompts: list[str], completions: list[str], answer: list[str], **more: Any) -> list[float]:
            """Right or not; which rows were served is noted."""
            served.extend(where[prompt] for prompt in prompts[:: own.group])
            return right(prompts, completions, answer)

        given: dict[str, Any] = {"model": learner.model, "processing_class": learner.tokenizer, "callbacks": [budget]}
        how = steering(job.arm, Path(place) / "steering")
        trainer = SteeredGRPOTrainer(args=args, train_dataset=data, reward_funcs=[reward], steering=how, **given)
        budget.trainer = trainer
        trainer.train()
    books = {"charged": budget.charged, "steps": trainer.state.global_step, "served": shares(served, rows.pool)}
    return books | ({} if trainer.steered is None else {"prediction": trainer.steered.engine.prediction()})


def measured(learner: Learner, rows: Rows, seed: int) -> ItemScores:
    """Greedy and sampled success of every held-out item, with S; the same draws in every arm of a seed."""
    return item_scores(measure_learner(learner, Corpus.from_examples(rows.held_out), MEASURED, seed=seed).measurements)


def scores_of(row: Mapping[str, Any], items: Sequence[Item]) -> ItemScores:
    """What a row holds."""
    return ItemScores({name: dict(zip(items, json.loads(row[name]), strict=True)) for name in NAMES})


def items_of(seed: int) -> list[Item]:
    """The held-out items of a seed, in the order of the values in a row."""
    found = [(row.task, row.level, row.id) for row in held_out(seed)]
    return sorted(found, key=lambda item: (item[0], item[1] or 0.0, item[2]))


def compare(rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Each arm against another: all held-out items, and those of each state that cells are meant to be in."""
    seeds = sorted({row["seed"] for row in rows})
    places = items_of(seeds[0])
    known = {(row["arm"], row["seed"]): scores_of(row, places) for row in rows}
    found: dict[str, Any] = {}
    for arm, against in PAIRS:
        both = [seed for seed in seeds if (arm, seed) in known and (against, seed) in known]
        before, after = ([known[name, seed] for seed in both] for name in (against, arm))
        if not both:
            continue
        moved = estimate_change(before, after, weigh="cells")
        assert moved is not None
        found[f"{arm} - {against}"] = shown = outcome.format_outcome(moved)
        for state in dict.fromkeys(cell.state for cell in CELLS.values()):
            part = estimate_change(
                before, after, weigh="cells", only=lambda item, state=state: state_of(item[0], item[1]) == state
            )
            assert part is not None
            shown[state] = outcome.format_outcome(part)["success"]
    return found


def means(rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Arm -> greedy and sampled success, mean over families and levels and of each, mean over seeds."""
    found: dict[str, Any] = {}
    places = items_of(rows[0]["seed"])
    for arm in dict.fromkeys(row["arm"] for row in rows):
        mine = [row for row in rows if row["arm"] == arm]
        found[arm] = shown = {}
        for name, label in (("greedy", "greedy"), ("pass@1", "sampled")):
            values = np.mean([json.loads(row[name]) for row in mine], axis=0)
            by: dict[str, list[float]] = {}
            for item, value in zip(places, values.tolist(), strict=True):
                by.setdefault(cell_key(item[0], item[1]), []).append(value)
            cells = {key: round(float(np.mean(own)), 4) for key, own in by.items()}
            shown[label], shown[f"{label} of cells"] = round(float(np.mean(list(cells.values()))), 4), cells
        if "served" in mine[0]:
            shown["served"] = {
                state: round(float(np.mean([row["served"][state] for row in mine])), 4) for state in mine[0]["served"]
            }
            shown["charged"] = float(np.mean([row["charged"] for row in mine]))
    return found


def goals_of(figures: Mapping[str, Any]) -> list[Goal]:
    """Fixed before the run."""
    found = []
    for arm, against, least in GOALS:
        shown = figures.get(f"{arm} - {against}")
        if shown is not None:
            value = outcome.interval_of(shown)
            name = f"{arm} - {against}: lower end, greedy success over all held-out items"
            found.append(Goal(name, value, f"> {least:g}", value.low > least))
    return found


def rows_of(arms: Sequence[str], seeds: Sequence[int], settings: Settings, folder: Path) -> list[dict[str, Any]]:
    """All runs; starting models that are in the folder already are not built again."""
    missing = [seed for seed in seeds if not (folder / str(seed) / "config.json").is_file()]
    run_in_processes(build, [Job("frozen", seed, str(folder), settings) for seed in missing], say="starting model")
    return run_in_processes(run_job, [Job(arm, seed, str(folder), settings) for seed in seeds for arm in arms], say="run")


def show(comparisons: Mapping[str, Any], average: Mapping[str, Any]) -> None:
    """Print it, in points."""
    outcome.table("all families and levels", comparisons, average)
    for arm, mean in average.items():
        print(f"  {arm:<10} sampled {100 * mean['sampled']:.1f}  draws {mean.get('served', '-')}", flush=True)


def measure(quick: bool) -> Result:
    """All arms and seeds; the headline is the predictor against TRL's own trainer."""
    seeds, settings = (QUICK, Settings(budget=640, warmup=300)) if quick else (SEEDS, Settings())
    with tempfile.TemporaryDirectory() as folder:
        rows = rows_of(ARMS, seeds, settings, Path(folder))
    comparisons, average = compare(rows), means(rows)
    show(comparisons, average)
    value = outcome.interval_of(comparisons["predicted - uniform"])
    unit = "greedy success over all held-out items, mean over families and levels, the predictor minus TRL's own trainer"
    used = {
        "training": asdict(settings),
        "model": to_data(MODEL),
        "cells": {cell_key(*key): cell._asdict() for key, cell in CELLS.items()},
    }
    figures = {"outcome": comparisons, "means": average}
    return Result(value, unit, seeds, rows, figures, used, goals=goals_of(comparisons))


if __name__ == "__main__":
    run("unlabelled_families", __doc__, measure)
