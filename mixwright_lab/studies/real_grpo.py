"""Study of GRPO on six tasks with SmolLM2-135M-Instruct: what a plan, a filter of groups without signal and a lower rate do.

Three tasks are in reach (capitals, past tenses, sums), products are rare (16 rows), and two are out of reach (products of
three digits, least common multiples). The model first gets 20 SFT steps on the answer form, on the same rows; that model is
`frozen`. Every other arm is 60 steps of GRPO from it: 8 prompts x 8 completions of at most 8 tokens, LoRA, reward 1 for the
answer alone. Arms: `uniform` (TRL's own trainer), `plan` (the steered trainer with the plan that `mixwright plan` makes of
what was measured), `filter` (groups without spread are replaced by those of other prompts, up to three times, as dynamic
sampling of DAPO does, 2503.14476), `a fifth of the rate`. The steps are equal and rollouts are counted: `filter` takes more.

Greedy and sampled success over all held-out items stand beside the probability of the gold answer, groups that taught and
tokens that were charged. Intervals over five seeds; no size of an effect was expected, so there is no goal but one: that
training helps at all (`uniform` less `frozen`, greedy over the three tasks in reach, interval above 0).

Settings were chosen on seed 5. Each arm runs on all cores by itself; each finished row is kept in `real_grpo.rows.jsonl`,
and a run that was stopped goes on. The past tenses are public (`mixwright_lab/studies/public_sets.py`). Weights are Q4_1,
dequantised.

    MIXWRIGHT_PUBLIC=FOLDER python -m mixwright_lab.studies.real_grpo [--quick] [--report]
"""

from __future__ import annotations

import multiprocessing
import os
import random
import shutil
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mixwright.records import Interval
from mixwright_lab.demo.training import Training, fine_tune
from mixwright_lab.studies.everyday import HALF_KNOWN, SKILLS, Pair
from mixwright_lab.studies.jobs import append_row, read_rows, row_of, rows_by_seed, without_answers, write_rows
from mixwright_lab.studies.public_sets import QUESTIONS, read_questions
from mixwright_lab.studies.real_models import MODEL, PublicPlace
from mixwright_lab.studies.report import RESULTS, Goal, Result, interval, rounded, run

SEEDS, QUICK = (211, 229, 241, 257, 271), (5,)
ROWS_FILE = RESULTS / "real_grpo.rows.jsonl"
PLACE = Path("runs") / "real_grpo"
FROZEN, UNIFORM, PLAN, FILTER, LOW = "frozen", "uniform", "plan", "filter", "a fifth of the rate"
ARMS = (FROZEN, UNIFORM, PLAN, FILTER, LOW)
REACHED, RARE = ("capitals", "past_tenses", "sums"), "products"
BEYOND = ("large_products", "least_common_multiples")
TASKS = (*REACHED, RARE, *BEYOND)
MOST_ROWS, RARE_ROWS, ITEMS, SAMPLES = 250, 16, 60, 4
PROMPTS, GROUP, TOKENS, MORE_ROUNDS = 8, 8, 8, 3


FORM = Training(steps=20, learning_rate=3e-4)


@dataclass(frozen=True)
class Sizes:
    """How much is trained and measured."""

    steps: int = 60
    form: Training = FORM
    """SFT on the answer form."""
    rate: float = 1e-4
    items: int = ITEMS
    samples: int = SAMPLES
    prompts: int = PROMPTS


QUICK_SIZES = Sizes(2, Training(steps=2), items=2, samples=1, prompts=2)


def make_rows(seed: int, items: int = ITEMS) -> tuple[list[dict[str, str]], list[dict[str, str]]]:
    """Training rows and test items of all tasks, which share no prompt."""
    rng, train, test = random.Random(seed), [], []
    for task in TASKS:
        pairs = _pairs(task, rng)
        count = RARE_ROWS if task == RARE else MOST_ROWS
        test += [{"task": task, "prompt": prompt, "answer": answer} for prompt, answer in pairs[:items]]
        train += [{"task": task, "prompt": prompt, "answer": answer} for prompt, answer in pairs[ITEMS : ITEMS + count]]
    return [row | {"id": f"row{n}"} for n, row in enumerate(train)], test


def _pairs(task: str, rng: random.Random) -> list[Pair]:
    if task == "large_products":
        every = [(f"What is {one} times {other}?", str(one * other)) for one in range(101, 160) for other in range(201, 220)]
        return rng.sample(every, MOST_ROWS + ITEMS)
    if task in SKILLS:
        return SKILLS[task](rng, MOST_ROWS + ITEMS)
    if task in QUESTIONS:
        asked = read_questions(PublicPlace.from_environment().folder, task)
        return [(row["prompt"], row["answer"]) for row in rng.sample(asked, len(asked))]
    return rng.sample(made := HALF_KNOWN[task](), len(made))


def right_alone(completions: Sequence[Any], answer: Sequence[str], **_: Any) -> list[float]:
    """1 for a completion that is the answer and nothing else, but for case, spaces and a full stop."""
    texts = [one if isinstance(one, str) else one[-1]["content"] for one in completions]
    return [float(text.strip().rstrip(".").casefold() == gold.casefold()) for text, gold in zip(texts, answer, strict=True)]


def filtered_trainer(extra: Sequence[Mapping[str, Any]], seed: int) -> Any:
    """TRL's trainer, which replaces groups without spread by those of other prompts.

    Args:
        extra: rows that further prompts are drawn from.
        seed: of their order.
    """
    import torch
    from torch.nn.functional import pad
    from trl.trainer.grpo_trainer import GRPOTrainer

    rng = random.Random(seed)
    padded_right = ("completion_ids", "completion_mask", "old_per_token_logps", "ref_per_token_logps")

    def joined(name: str, one: Any, other: Any) -> Any:
        width = max(one.shape[1], other.shape[1])
        sides = [
            pad(part, (0, width - part.shape[1]) if name in padded_right else (width - part.shape[1], 0))
            for part in (one, other)
        ]
        return torch.cat(sides)

    class Filtered(GRPOTrainer):
        """Dynamic sampling with a bound."""

        completions_written = 0

        def _generate_and_score_completions(self, inputs: list[dict[str, Any]]) -> dict[str, Any]:
            made = super()._generate_and_score_completions(inputs)
            type(self).completions_written += len(inputs)
            for _ in range(MORE_ROUNDS):
                spread = made["advantages"].view(-1, GROUP).abs().sum(dim=1) > 0
                empty = [place for place, has in enumerate(spread.tolist()) if not has]
                if not empty:
                    break
                rows = [row for row in rng.sample(list(extra), len(empty)) for _ in range(GROUP)]
                more = super()._generate_and_score_completions([dict(row) for row in rows])
                type(self).completions_written += len(rows)
                taught = (more["advantages"].view(-1, GROUP).abs().sum(dim=1) > 0).tolist()
                fresh = [place for place, has in enumerate(taught) if has]
                order = list(range(len(spread)))
                for old, new in zip(empty, fresh, strict=False):
                    order[old] = len(spread) + new
                rows_kept = [GROUP * group + k for group in order for k in range(GROUP)]
                for name, value in made.items():
                    if not isinstance(value, torch.Tensor) or value.dim() == 0:
                        continue
                    both = torch.cat([value, more[name]]) if value.dim() == 1 else joined(name, value, more[name])
                    made[name] = both[rows_kept]
                made["num_items_in_batch"] = made["completion_mask"].sum()
            return made

    return Filtered


def train_form(seed: int, out: Path, sizes: Sizes) -> Path:
    """The model after SFT on the answer form, merged."""
    from mixwright.learner.load import load_learner, merge_adapter

    if not (out / "config.json").is_file():
        train, _ = make_rows(seed)
        path = out.with_name("form.jsonl")
        form = [{"task": row["task"], "prompt": row["prompt"], "completion": row["answer"]} for row in train]
        write_rows(path, form)
        adapter = out.with_name("form-adapter")
        fine_tune(MODEL, path, adapter, sizes.form, seed=seed)
        merge_adapter(load_learner(str(adapter))).save(out)
    return out


def measure_model(model: Path, seed: int, sizes: Sizes, place: Path) -> tuple[list[list[Any]], Any, Any]:
    """Answers [task, item, greedy score, samples that are right, completion], the measurements, and the corpus."""
    from mixwright.config import CorpusConfig, MeasureConfig
    from mixwright.corpus import read_corpus
    from mixwright.learner.load import load_learner
    from mixwright.measure.stage import measure_learner

    train, test = make_rows(seed, sizes.items)
    paths = [place / "train.jsonl", place / "test.jsonl"]
    for path, rows in zip(paths, (train, test), strict=True):
        write_rows(path, rows)
    graders = dict.fromkeys(TASKS, "exact")
    corpus = read_corpus(CorpusConfig(str(paths[0]), eval=str(paths[1]), graders=graders))
    config = MeasureConfig(
        items=sizes.items,
        samples=sizes.samples,
        max_new_tokens=TOKENS,
        probes=("competence",),
    )
    found = measure_learner(load_learner(str(model)), corpus, config, seed=seed)
    from mixwright.answers.score import scores_of_items

    scores = scores_of_items(found.answers)
    sampled = {item: value for (_, _, item), value in scores.by_item("pass@1").items()}
    answers = [
        [row["task"], row["example"], row["score"], sampled.get(row["example"]), None, row["completion"]]
        for row in found.completions
    ]
    return answers, found.measurements, corpus


def train_arm(arm: str, start: Path, seed: int, sizes: Sizes, place: Path, measured: Sequence[Any], corpus: Any) -> Any:
    """GRPO from `start`; the adapter's folder, and what was logged of each step."""
    from datasets import Dataset
    from peft import LoraConfig
    from transformers import PrinterCallback
    from trl.trainer.grpo_config import GRPOConfig
    from trl.trainer.grpo_trainer import GRPOTrainer

    from mixwright import SteeredGRPOTrainer, SteeringConfig, api
    from mixwright.config import TrainConfig
    from mixwright.learner.load import load_learner
    from mixwright.learner.settings import float32_settings

    learner, out = load_learner(str(start)), place / arm.replace(" ", "-")
    rows = [learner.form.row(dict(row)) for row in make_rows(seed)[0]]
    settings: dict[str, Any] = {"max_steps": sizes.steps, "per_device_train_batch_size": sizes.prompts * GROUP}
    settings |= {"num_generations": GROUP, "max_completion_length": TOKENS, "save_strategy": "no", "logging_steps": 1}
    settings |= {"learning_rate": sizes.rate * (0.2 if arm == LOW else 1.0), "lr_scheduler_type": "constant", "beta": 0.0}
    args = GRPOConfig(output_dir=str(out), seed=seed, **float32_settings(learner.device), **settings)
    lora = LoraConfig(r=16, lora_alpha=32, target_modules="all-linear", task_type="CAUSAL_LM")
    kind: Any = GRPOTrainer
    given: dict[str, Any] = {}
    if arm == PLAN:
        how = TrainConfig(steps=sizes.steps, prompts=sizes.prompts, generations=GROUP, max_new_tokens=TOKENS)
        kind, given["steering"] = SteeredGRPOTrainer, SteeringConfig(plan=api.plan_measured(corpus, measured, train=how))
    if arm == FILTER:
        kind = filtered_trainer(rows, seed)
    trainer = kind(
        model=learner.model,
        args=args,
        train_dataset=Dataset.from_list(rows),
        processing_class=learner.tokenizer,
        reward_funcs=[right_alone],
        peft_config=lora,
        **given,
    )
    trainer.remove_callback(PrinterCallback)
    trainer.train()
    trainer.save_model(str(out))
    names = ("reward", "frac_reward_zero_std", "num_tokens", "completions/mean_length")
    steps = [{name: line[name] for name in names if name in line} for line in trainer.state.log_history if "reward" in line]
    return out, steps, getattr(kind, "completions_written", sizes.steps * sizes.prompts * GROUP)


def do_arm(arm: str, seed: int, quick: bool) -> None:
    """One arm of one seed, in a process of its own on all cores; a row."""
    import torch

    if not torch.cuda.is_available():
        torch.set_num_threads(os.cpu_count() or 1)
    sizes = QUICK_SIZES if quick else Sizes()
    place = PLACE / ("quick" if quick else f"seed-{seed}")
    place.mkdir(parents=True, exist_ok=True)
    began, start = time.monotonic(), train_form(seed, place / "form", sizes)
    row: dict[str, Any] = {"seed": seed, "arm": arm, "settings": settings()}
    if arm == FROZEN:
        row["answers"], measured, _ = measure_model(start, seed, sizes, place)
    else:
        measured, corpus = (), None
        if arm == PLAN:
            _, measured, corpus = measure_model(start, seed, sizes, place)
        out, row["steps"], row["completions"] = train_arm(arm, start, seed, sizes, place, measured, corpus)
        row["answers"], _, _ = measure_model(out, seed, sizes, place)
        shutil.rmtree(out)
    append_row(place / "rows.jsonl" if quick else ROWS_FILE, row | row_of(began))


def settings() -> dict[str, Any]:
    """What has to be the same for rows to stand in one table."""
    sizes = Sizes()
    return {
        "steps": sizes.steps,
        "form": [sizes.form.steps, sizes.form.learning_rate],
        "rate": sizes.rate,
        "groups": [PROMPTS, GROUP, TOKENS],
        "rows": [MOST_ROWS, RARE_ROWS],
        "items": [ITEMS, SAMPLES],
    }


def success(row: Mapping[str, Any], tasks: Sequence[str], place: int = 2) -> float:
    """Points over these tasks, each counted alike.

    Place 2 is greedy, 3 sampled, 4 the gold answer's probability, by a probe that is gone.
    """
    means = []
    for task in tasks:
        scores = [answer[place] or 0.0 for answer in row["answers"] if answer[0] == task]
        means.append(100 * sum(scores) / len(scores))
    return sum(means) / len(means)


def kept_rows() -> list[dict[str, Any]]:
    """Finished rows of these settings."""
    return [row for row in read_rows(ROWS_FILE) if row["settings"] == settings()]


DIGITS = 3
"""Of figures, some of which are shares."""


def figures_of(by_seed: Mapping[int, Mapping[str, Mapping[str, Any]]]) -> dict[str, Any]:
    """Success of each arm, and less `frozen` and `uniform`, over the seeds that have both; groups that taught, and costs."""
    groups = {"in reach": REACHED, "rare": (RARE,), "out of reach": BEYOND, "all": TASKS}
    found: dict[str, Any] = {}
    for arm in ARMS:
        own = [arms[arm] for arms in by_seed.values() if arm in arms]
        if len(own) < 2:
            continue
        found[arm] = {"seeds": len(own)} | {
            f"greedy, {name}": rounded([success(row, tasks) for row in own], DIGITS) for name, tasks in groups.items()
        }
        for than in (FROZEN, UNIFORM):
            pairs = [(arms[arm], arms[than]) for arms in by_seed.values() if {arm, than} <= set(arms)]
            if arm in (than, FROZEN) or len(pairs) < 2:
                continue
            found[arm] |= {
                f"{reading}, {name}, less {than}": rounded(
                    [success(one, tasks, place) - success(other, tasks, place) for one, other in pairs], DIGITS
                )
                for name, tasks in groups.items()
                for place, reading in ((2, "greedy"), (3, "sampled"), (4, "gold probability"))
            }
        if arm != FROZEN:
            taught = [1 - sum(step["frac_reward_zero_std"] for step in row["steps"]) / len(row["steps"]) for row in own]
            found[arm]["groups that taught, share"] = rounded(taught, DIGITS)
            found[arm]["completions"] = [row["completions"] for row in own]
            found[arm]["tokens"] = [row["steps"][-1]["num_tokens"] for row in own]
    return found


def goals_of(by_seed: Mapping[int, Mapping[str, Mapping[str, Any]]]) -> list[Goal]:
    """The one expectation."""
    pairs = [arms for arms in by_seed.values() if {FROZEN, UNIFORM} <= set(arms)]
    name = "uniform less frozen, greedy over the tasks in reach, points"
    if len(pairs) < 2:
        return [Goal(name, Interval(0.0, -100.0, 100.0, len(pairs)), "low > 0", False)]
    gain = interval([success(arms[UNIFORM], REACHED) - success(arms[FROZEN], REACHED) for arms in pairs])
    return [Goal.above_zero(name, gain)]


def measure(quick: bool, begin: bool = True) -> Result:
    """The arms that are left, a seed after the other."""
    seeds = QUICK if quick else SEEDS
    path = PLACE / "quick" / "rows.jsonl"
    if quick:
        shutil.rmtree(path.parent, ignore_errors=True)
    known = set() if quick else {(row["seed"], row["arm"]) for row in kept_rows()}
    for seed in seeds if begin else ():
        for arm in ARMS:
            if (seed, arm) not in known:
                process = multiprocessing.get_context("spawn").Process(target=do_arm, args=(arm, seed, quick))
                process.start()
                process.join()
                print(f"seed {seed}, {arm}: exit code {process.exitcode}", file=sys.stderr, flush=True)
        shutil.rmtree(PLACE / f"seed-{seed}" / "form", ignore_errors=True)  # half a gigabyte
    rows = read_rows(path) if quick else kept_rows()
    by_seed = rows_by_seed(rows)
    goals = goals_of(by_seed)
    about = settings() | {"public files": PublicPlace.from_environment().digests()}
    unit = "points of greedy success that uniform GRPO gains on the tasks in reach"
    return Result(goals[0].found, unit, seeds, without_answers(rows), figures_of(by_seed), about, goals=goals)


if __name__ == "__main__":
    run("real_grpo", __doc__, measure, kept=True)
