"""Study of routing: three new skills as `svf` experts of a base that knows two tasks, and which way a prompt goes.

A model of 0.11 million parameters knows 96 facts and writes words backward. It learns three skills more: the first letter
goes to the end, the first two letters change places, the last letter is the first one again. Each held-out set counts a
fifth of the outcome, so that what was known before counts two fifths. In the world `marked` every prompt begins with a
letter that names its task; in `unmarked` the three skills share their mark, and the first letter of the word decides.

Arms, of equal training steps: the base (`frozen`); an expert per skill, each trained for a third of the steps, with the
prompt's expert known (`oracle`), named by a classifier of hidden states that has 32 prompts of each task (`classifier`), or
by asking the model (`asked`), where tasks that the base knows go to the base; the mixture of the three that scores highest
on 10 rows of each task (`mixture`), the best single expert on these (`single`) and the even mixture (`even`); and as simple
rules one `svf` expert of all three skills (`joint svf`), all weights on all three (`joint full`), and the latter with a
quarter of old rows in each batch (`joint full, rehearsing`), for whom still has these.

Rates and steps were chosen before, on the seeds 1001 and 1002: see `RATES`.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from itertools import cycle, islice
from typing import Any

import numpy as np
import torch

from mixwright.catalog import create
from mixwright.learner.learner import Learner
from mixwright.learner.mixing import mix_experts, search_weights
from mixwright.learner.routing import answer_with_experts, ask_for_experts, fit_classifier
from mixwright.learner.singular import scales, set_scales
from mixwright.records import to_data
from mixwright_lab.studies import adapter_task as task
from mixwright_lab.studies.adapter_task import Pairs
from mixwright_lab.studies.jobs import run_in_processes
from mixwright_lab.studies.report import Goal, Result, interval, run

SEEDS = tuple(range(0, 8 * 37, 37))
WORLDS = ("marked", "unmarked")
STEPS = 300
"""Of an expert; the joint arms have three times as many."""
RATES = {"svf": 3e-2, "full": 3e-4}
"""Best of 1e-2, 3e-2, 1e-1 (`svf`) and 1e-4, 3e-4, 1e-3 (`full`, the rehearsing arm, too), by success over the skills."""
REHEARSED, PROMPTS_SHOWN, ROWS_PER_TASK = 0.25, 32, 10
NAMES = ("moving", "swapping", "repeating", "facts", "backward")
SKILLS, TASKS = 3, len(NAMES)
MARKS = "rsm"
ARMS = (
    "frozen",
    "oracle",
    "classifier",
    "asked",
    "mixture",
    "single",
    "even",
    "joint svf",
    "joint full",
    "joint full, rehearsing",
)


def new_skill(number: int, world: str, word: str) -> tuple[str, str]:
    """A row of that skill."""
    answer = (word[1:] + word[:1], word[1] + word[0] + word[2:], word[:-1] + word[0])[number]
    return f"{MARKS[number] if world == 'marked' else 'x'}:{word}=", answer


def rows_of(world: str, words: Sequence[str]) -> list[Pairs]:
    """Rows of the three skills: every word for each where prompts are marked, else of the words that are the skill's own."""
    own = [[w for w in words if world == "marked" or (ord(w[0]) - ord("a")) * SKILLS // 26 == n] for n in range(SKILLS)]
    return [[new_skill(number, world, word) for word in each] for number, each in enumerate(own)]


def try_one(job: tuple[int, str, bool]) -> dict[str, Any]:
    """One seed and world: every arm's success by task, and how often each way of routing is right."""
    seed, world, quick = job
    given = task.tasks(seed)
    learner = task.base_of(seed, given, 150 if quick else task.BASE_STEPS)
    held = [*rows_of(world, [prompt[2:-1] for prompt, _ in given.old]), given.facts, given.old]
    taught = rows_of(world, given.words)
    steps = 10 if quick else STEPS
    experts = [_trained(learner, given, [own], "svf", steps, seed) for own in taught]
    found = {"frozen": _success(learner.model, learner, held)}
    model = create("adapters", "svf").wrap(copy.deepcopy(learner.model)).eval()
    routed = Learner(model, learner.tokenizer, "routed")
    found |= try_mixtures(routed, [scales(own) for own in experts], given, taught, held, seed, quick=quick)
    accuracy, by_route = compare_routes(routed, [scales(own) for own in experts], given, taught, held)
    found |= by_route
    for name, adapter, again in (("svf", "svf", 0.0), ("full", "full", 0.0), ("full, rehearsing", "full", REHEARSED)):
        joint = _trained(learner, given, taught, adapter, SKILLS * steps, seed, again)
        found[f"joint {name}"] = _success(joint, learner, held)
    return {"seed": seed, "world": world, "success": {arm: found[arm] for arm in ARMS}, "routed right": accuracy}


def compare_routes(
    learner: Learner, experts: Sequence[Any], given: task.Tasks, taught: Sequence[Pairs], held: Sequence[Pairs]
) -> tuple[dict[str, Any], dict[str, list[float]]]:
    """Share of prompts that each way gives to the right expert, and success with it."""
    prompts = [prompt for pairs in held for prompt, _ in pairs]
    truth = [place for place, pairs in enumerate(held) for _ in pairs]
    shown = [[prompt for prompt, _ in own[:PROMPTS_SHOWN]] for own in (*taught, given.facts, _backward(given))]
    classifier = fit_classifier(learner, shown)
    named = {
        "oracle": truth,
        "classifier": classifier.route(learner, prompts),
        "asked": ask_for_experts(learner, prompts, NAMES),
    }
    ids = dict(zip(prompts, task.encoded(learner, [pair for pairs in held for pair in pairs]), strict=True))
    right, success = {}, {}
    for way, places in named.items():

        def write(texts: Sequence[Any]) -> list[float]:
            rows = torch.stack([ids[text] for text in texts])
            with torch.no_grad():
                return task.right(task.answer_logits(learner.model, rows), rows).tolist()

        values = np.array(
            answer_with_experts(learner, experts, prompts, [own if own < SKILLS else -1 for own in places], write)
        )
        success[way] = [float(values[np.array(truth) == place].mean()) for place in range(TASKS)]
        hits = np.array(places) == np.array(truth)
        right[way] = [float(hits[np.array(truth) == place].mean()) for place in range(TASKS)]
    return right | {"classifier, by its own word": to_data(classifier.accuracy)}, success


def try_mixtures(
    learner: Learner,
    experts: Sequence[Any],
    given: task.Tasks,
    taught: Sequence[Pairs],
    held: Sequence[Pairs],
    seed: int,
    *,
    quick: bool,
) -> dict[str, list[float]]:
    """Success with one mixture for all prompts: found on a few rows of each task, the best single expert, the even one."""
    shots = task.encoded(
        learner, [pair for own in (*taught, given.facts, _backward(given)) for pair in own[-ROWS_PER_TASK:]]
    )

    def score(weights: Any) -> np.ndarray:
        set_scales(learner.model, mix_experts(experts, weights))
        with torch.no_grad():
            return task.right(task.answer_logits(learner.model, shots), shots)

    best = search_weights(score, SKILLS, iterations=1 if quick else 20, seed=seed)
    single = [float(place == best.single) for place in range(SKILLS)]
    found = {}
    for name, weights in (("mixture", best.weights), ("single", single), ("even", [1 / SKILLS] * SKILLS)):
        set_scales(learner.model, mix_experts(experts, weights))
        found[name] = _success(learner.model, learner, held)
    set_scales(learner.model, mix_experts(experts, [0.0] * SKILLS))
    return found


def _backward(given: task.Tasks) -> Pairs:
    return [task.backward(word) for word in given.words]


def _trained(
    learner: Learner, given: task.Tasks, taught: Sequence[Pairs], adapter: str, steps: int, seed: int, again: float = 0.0
) -> Any:
    """A copy trained on an even share of these rows, with so large a share of old ones."""
    sets = [task.encoded(learner, pairs) for pairs in taught]
    old = round(again * task.BATCH / 2)
    counts = np.bincount(list(islice(cycle(range(len(sets))), task.BATCH - 2 * old)), minlength=len(sets)).tolist()
    if old:
        sets += [task.encoded(learner, given.facts), task.encoded(learner, _backward(given))]
        counts += [old, old]
    draws = task.batches(seed + 1, sets, counts)
    wrap = create("adapters", adapter).wrap
    return task.train(learner, {"facts": given.facts, "skill": taught[0][:1]}, draws, wrap, RATES[adapter], steps).model


def _success(model: Any, learner: Learner, held: Sequence[Pairs]) -> list[float]:
    return [task.known(model, task.encoded(learner, pairs)) for pairs in held]


def contrast(rows: Sequence[Mapping[str, Any]], one: str, other: str) -> Any:
    """Mean over seeds of the difference of success over the five tasks, with its interval."""
    return interval([float(np.mean(row["success"][one])) - float(np.mean(row["success"][other])) for row in rows])


def figures_of(rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Of a world: success of each arm, over all tasks and by task; routing; contrasts of routing by the classifier."""
    arms = {}
    for arm in ARMS:
        table = np.array([row["success"][arm] for row in rows])
        by_task = {name: to_data(interval(table[:, place].tolist())) for place, name in enumerate(NAMES)}
        arms[arm] = {"all": to_data(interval(table.mean(1).tolist()))} | by_task
    ways = ("oracle", "classifier", "asked")
    right = {way: to_data(interval([float(np.mean(row["routed right"][way])) for row in rows])) for way in ways}
    against = {arm: to_data(contrast(rows, "classifier", arm)) for arm in ARMS if arm != "classifier"}
    return {"success": arms, "routed right": right, "classifier minus": against}


def measure(quick: bool) -> Result:
    """Every seed in both worlds."""
    seeds: Sequence[int] = SEEDS[:2] if quick else SEEDS
    rows = run_in_processes(try_one, [(seed, world, quick) for seed in seeds for world in WORLDS], say="seed and world")
    own = {world: [row for row in rows if row["world"] == world] for world in WORLDS}
    goals = []
    for world, each in own.items():
        for other in ("frozen", "joint svf", "joint full", "joint full, rehearsing"):
            found = contrast(each, "classifier", other)
            goals.append(Goal(f"{world}: classifier minus {other}", found, "> 0, lower end too", found.low > 0))
    value = contrast(own["marked"], "classifier", "joint full, rehearsing")
    unit = "success over five tasks, experts routed by a classifier minus all weights trained jointly with old rows; marked"
    settings = {
        "steps": STEPS,
        "rates": RATES,
        "rehearsed": REHEARSED,
        "shown": PROMPTS_SHOWN,
        "shots": ROWS_PER_TASK,
        "tasks": NAMES,
    }
    return Result(value, unit, seeds, rows, {world: figures_of(own[world]) for world in WORLDS}, settings, goals=goals)


if __name__ == "__main__":
    run("routing", __doc__, measure)
