"""Finding on proxy-tuning: a small tuned model moves a larger one while it writes, and its facts stay.

Source: Liu et al., Tuning Language Models by Proxy, 2401.08565.
Unit: share of held-out problems, and of facts, whose greedy response is right.
Cost: about 100 CPU seconds per seed.
Blind spot: facts and skills in a tiny GPT; answers of a few tokens, so that errors of decoding hardly add up.
"""

# ruff: noqa: F722 - the shape strings of jaxtyping are not forward references

from __future__ import annotations

import copy
import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn import functional

from mixwright_lab.contracts import Curve, Expectation, Finding, Plot, Term, difference
from mixwright_lab.training.bases import Recipe, base_model
from mixwright_lab.training.gpt import GPT
from mixwright_lab.training.language import PAD
from mixwright_lab.training.sft import Schedule, Sft
from mixwright_lab.worlds.facts_and_skills import LONG, SHORT, SKILLS, FactsAndSkills, format_answer, question_of

WeightedModels = Sequence[tuple[float, GPT]]
"""Weights and models of one language; a single model has weight 1."""
Rows = tuple[Int[Tensor, "rows prompt"], Int[Tensor, "rows response"]]
"""Prompts and responses as tokens."""


def logits_of(parts: WeightedModels, rows: Rows) -> Float[Tensor, "rows response words"]:
    """Weighted sum of logits at each response token, teacher-forced; models of weight 0 are not read.

    It is that of `mixwright_extras.experts.dial.ExpertDial`, after Liu et al., 2401.08565.
    """
    read = [weight * model.logits_of(*rows) for weight, model in parts if weight]
    return torch.stack(read).sum(0)


@torch.no_grad()
def greedy(
    parts: WeightedModels, prompts: Int[Tensor, "rows prompt"], begun: Sequence[int] = ()
) -> Int[Tensor, "rows response"]:
    """The likeliest response, token by token, behind tokens that it is made to begin with; to the language's full length."""
    language = parts[0][1].language
    made = torch.full((len(prompts), language.response_tokens), language.index[PAD])
    made[:, : len(begun)] = torch.tensor(begun, dtype=torch.long)
    for place in range(len(begun), language.response_tokens):
        made[:, place] = logits_of(parts, (prompts, made[:, : place + 1]))[:, -1].argmax(-1)
    return made


def divergence(parts: WeightedModels, base: GPT, rows: Rows) -> Float[Tensor, ""]:
    """KL(parts || base) in nats, mean over the tokens of the responses, padding left out."""
    own = logits_of(parts, rows).log_softmax(-1)
    with torch.no_grad():
        other = base.logits_of(*rows).log_softmax(-1)
    each, mask = (own.exp() * (own - other)).sum(-1), base.language.mask(rows[1]).float()
    return (each * mask).sum() / mask.sum()


def tune(
    model: GPT,
    base: GPT,
    batches: Callable[[int], Rows],
    schedule: Schedule,
    penalty: float,
    after: Callable[[int], None] | None = None,
) -> None:
    """SFT in place with a KL penalty.

    Args:
        model: trained.
        base: what it is held to.
        batches: rows of a step, 0 is the first.
        schedule: of the run.
        penalty: coefficient of KL(model || base) per response token on the rows of the step; 0 for plain SFT.
        after: called after each step with the steps taken.
    """
    sft = Sft(model, schedule)
    for step in range(schedule.steps):
        rows = batches(step)
        mask = model.language.mask(rows[1])
        loss = functional.cross_entropy(model.logits_of(*rows)[mask], rows[1][mask])
        if penalty:
            loss = loss + penalty * divergence([(1.0, model)], base, rows)
        sft.step(loss)
        if after is not None:
            after(sft.done)


POOL_ROWS = 1000
"""Rows of each skill that tuning draws from."""
ReadingByName = Mapping[str, float]


class Readings:
    """Skill, facts and KL of any sum of models, on the held-out rows of a seed.

    Args:
        seed: of the facts, and of the problems.
        problems_per_skill: held-out problems of each skill.
        base: the KL is to this one.
    """

    def __init__(self, seed: int, problems_per_skill: int, base: GPT) -> None:
        world, self.base = FactsAndSkills(seed=seed), base
        skills = [world.make(1000 * seed + place, level, "eval") for level in SKILLS for place in range(problems_per_skill)]
        pairs = [question_of(fact) for fact in world.facts], [(str(row.prompt), str(row.answer)) for row in skills]
        self.prompts = [base.language.encode_prompts([prompt for prompt, _ in rows]) for rows in pairs]
        self.answers = [[answer for _, answer in rows] for rows in pairs]
        self.targets = base.language.encode_responses([format_answer(answer, SHORT) for answer in self.answers[1]])

    def __call__(self, parts: WeightedModels) -> dict[str, float]:
        """Facts in any form, and where a form is begun for the model; skills in the short form; KL in nats per token."""
        forms = {"facts": (), "facts, long form": LONG, "facts, short form": SHORT}
        found = {name: float(np.mean(self._right(parts, 0, form))) for name, form in forms.items()}
        solved = np.split(np.array(self._right(parts, 1, (), (SHORT,)), dtype=float), len(SKILLS))
        found |= {f"skill {level:g}": float(own.mean()) for level, own in zip(SKILLS, solved, strict=True)}
        with torch.no_grad():
            found["KL"] = float(divergence(parts, self.base, (self.prompts[1], self.targets)))
        return found | {"skill": float(np.mean(solved)), "any form": float(np.mean(self._right(parts, 1, ())))}

    def read_each(self, models_by_weight: Mapping[float, WeightedModels]) -> dict[str, float]:
        """The same at each weight, by names such as "facts, 0.4"."""
        return {
            f"{name}, {alpha}": value for alpha, parts in models_by_weight.items() for name, value in self(parts).items()
        }

    def _right(
        self,
        parts: WeightedModels,
        kind: int,
        response_prefix: Sequence[str],
        forms: Sequence[Sequence[str]] = (LONG, SHORT),
    ) -> list[bool]:
        """Whether each answer is given in one of the forms, the response being made to begin with these words."""
        spoken = self.base.language
        made = greedy(parts, self.prompts[kind], [spoken.index[word] for word in response_prefix]).tolist()
        wanted = [{format_answer(answer, tuple(form)) for form in forms} for answer in self.answers[kind]]
        return [spoken.decode(row) in own for row, own in zip(made, wanted, strict=True)]


def short_rows(model: GPT, seed: int) -> Rows:
    """Training rows of the skills in the short form."""
    world, spoken = FactsAndSkills(), model.language
    rows = [world.make(100_000 * seed + place, level, "train") for level in SKILLS for place in range(POOL_ROWS)]
    prompts = spoken.encode_prompts([str(row.prompt) for row in rows])
    return prompts, spoken.encode_responses([format_answer(str(row.answer), SHORT) for row in rows])


def readings_at_skill(readings_over_steps: Sequence[ReadingByName], skill: float) -> dict[str, float]:
    """Readings where a training first has that skill, linear between two looks; its last ones where it never has."""
    for before, after in itertools.pairwise(readings_over_steps):
        if after["skill"] >= skill:
            rise = after["skill"] - before["skill"]
            return _blend(before, after, min(max((skill - before["skill"]) / rise, 0.0), 1.0) if rise > 0 else 1.0)
    return dict(readings_over_steps[-1])


def interpolate_readings(found: Sequence[ReadingByName], name: str, wanted: float) -> dict[str, float]:
    """Readings at a value of one of them, linear between the two neighbours of it; the nearest where it is outside."""
    ordered = sorted(found, key=lambda each: each[name])
    for before, after in itertools.pairwise(ordered):
        if before[name] <= wanted <= after[name]:
            span = after[name] - before[name]
            return _blend(before, after, (wanted - before[name]) / span if span else 0.0)
    return dict(min(ordered, key=lambda each: abs(each[name] - wanted)))


def _blend(before: ReadingByName, after: ReadingByName, share: float) -> dict[str, float]:
    return {name: (1 - share) * before[name] + share * after[name] for name in before}


BEFORE, DIRECT, SMALL, PROXY = "before tuning", "fine-tuning", "small tuned model", "proxy"
STOPPED, PENALTY = "stopped fine-tuning", "fine-tuning with KL penalty"
ALPHAS = (0.4, 0.7, 1.0, 1.5)
"""Weights of the difference, of the proxy and of fine-tuning itself, by which both are read."""
PENALTIES = (0.03, 0.1, 0.3, 1.0, 3.0)
Watch = Callable[[GPT, int], None]
"""Called with the model and the steps taken."""


@dataclass(frozen=True)
class Settings:
    """Of both bases and of tuning."""

    base: int = 1500
    """Steps of SFT of the large base."""
    small: int = 1500
    """Of the small one."""
    width: int = 64
    narrow: int = 32
    short: float = 0.1
    """Share of the short form in what bases are taught."""
    steps: int = 200
    """Of tuning."""
    every: int = 5
    """Steps between readings of fine-tuning on its way."""
    batch: int = 48
    rate: float = 5e-4
    tested: int = 100
    """Held-out problems of each skill."""


class Proxy(Finding):
    """Logits of a large model plus what tuning changed in a small one, against fine-tuning, also at equal skill and KL."""

    CLAIM = (
        "A small tuned model and its untuned base move a larger model at decoding to at least 80 % of what fine-tuning it "
        "gains, and the larger model keeps more facts than after fine-tuning."
    )
    SOURCE = "Liu et al., Tuning Language Models by Proxy, 2401.08565"
    WHAT_IT_SHOWS = (
        "Llama-2 13B and 70B moved by 7B chat models: 91 % and 88 % of the gap closed on the average of five tests (53 % on "
        "70B mathematics); TruthfulQA truthful 90.5 and 92.3 % against 87.3 and 85.8 % of the chat models."
    )
    POPULAR_READING = (
        "It is said that decoding with a proxy keeps knowledge because weights stay. The paper compares with no fine-tuning "
        "of equal skill or equal KL to the base; an answer that refuses counts as truthful."
    )
    REMARKS = (
        "The small model forgets facts while it is tuned, and the difference carries this over to the large one: at the "
        "same skill and at the same KL (within the reach of the penalties in five of six seeds) fine-tuning kept 95 and "
        "94 % of the facts, the proxy 72 %. The result is for the full difference: at 0.7 of it the proxy kept 93 % at "
        "nearly the same skill (.79 for .80), the same within noise as fine-tuning stopped there; the large model's own "
        "dial at 0.7 kept 98 % at a skill of .96. Half of the skill that no base model had is passed on."
    )
    RUN_TWICE = (DIRECT,)
    SCALES: ClassVar[Mapping[str, Settings]] = {
        "smoke": Settings(base=20, small=20, steps=4, every=2, tested=10),
        "laptop": Settings(),
    }
    SEEDS: ClassVar[Mapping[str, int]] = {"smoke": 2, "laptop": 6}
    PRIMARY = "skill: the proxy's gain - 80 % of fine-tuning's"
    CONTROL = "skill: fine-tuning - before"
    PUBLISHED = ("facts: proxy - small tuned model",)
    EXPECT = (
        Expectation(
            "skill: the proxy's gain - 80 % of fine-tuning's",
            (Term(PROXY, "skill"), Term(DIRECT, "skill", -0.8), Term(BEFORE, "skill", -0.2)),
            0.02,
            "The proxy closes less than 80 % of the gap.",
        ),
        Expectation(
            "facts: proxy - small tuned model",
            difference(PROXY, SMALL, "facts"),
            0.05,
            "The larger model adds nothing to what the small one knows.",
        ),
        Expectation(
            "facts: proxy - fine-tuning stopped at the proxy's skill",
            difference(PROXY, STOPPED, "facts"),
            0.03,
            "Fine-tuning to the same skill keeps as many facts.",
        ),
        Expectation(
            "facts: proxy - fine-tuning with a penalty at the proxy's KL",
            difference(PROXY, PENALTY, "facts"),
            0.03,
            "Being near to the base keeps the facts, not leaving its weights alone.",
        ),
        Expectation(CONTROL, difference(DIRECT, BEFORE, "skill"), 0.2, "Fine-tuning the larger model teaches nothing."),
    )
    PLOTS = (
        Plot(
            "Facts kept, by the weight of the difference",
            "alpha",
            "facts, greedy",
            (
                Curve("proxy", tuple((alpha, PROXY, f"facts, {alpha}") for alpha in ALPHAS)),
                Curve("tuned model's own dial", tuple((alpha, DIRECT, f"facts, {alpha}") for alpha in ALPHAS)),
            ),
        ),
        Plot(
            "Skill, by the weight of the difference",
            "alpha",
            "problems solved in the short form",
            (
                Curve("proxy", tuple((alpha, PROXY, f"skill, {alpha}") for alpha in ALPHAS)),
                Curve("tuned model's own dial", tuple((alpha, DIRECT, f"skill, {alpha}") for alpha in ALPHAS)),
            ),
        ),
    )

    def arms(self, settings: Settings) -> tuple[str, ...]:
        """Every arm that a contrast names."""
        return (PROXY, DIRECT, STOPPED, PENALTY, SMALL, BEFORE)

    def prepare(self, seed: int, settings: Settings) -> None:
        """Both bases."""
        _bases(seed, settings)

    def run(self, arm: str, seed: int, settings: Settings, *, again: bool = False) -> Mapping[str, float]:
        """Tune what the arm tunes, and read skill, facts and the distance to the base."""
        large, small = _bases(seed, settings)
        key, look = 2 * seed + again, Readings(seed, settings.tested, large)
        if arm == BEFORE:
            return look([(1.0, large)])
        expert = _tuned(small, settings, key)
        proxied = [(1.0, large), (1.0, expert), (-1.0, small)]
        if arm == PROXY:
            ways = {alpha: [(1.0, large), (alpha, expert), (-alpha, small)] for alpha in ALPHAS}
            return look(proxied) | look.read_each(ways)
        if arm == SMALL:
            return look([(1.0, expert)])
        if arm == PENALTY:
            wanted = look(proxied)["KL"]
            found = [look([(1.0, _tuned(large, settings, key, penalty=penalty))]) for penalty in PENALTIES]
            return interpolate_readings(found, "KL", wanted) | {"KL of the proxy": wanted}
        path = [look([(1.0, large)])]

        def read(model: GPT, step: int) -> None:
            if step % settings.every == 0:
                path.append(look([(1.0, model)]))

        tuned = _tuned(large, settings, key, after=read if arm == STOPPED else None)
        if arm == STOPPED:
            return readings_at_skill(path, look(proxied)["skill"])
        return look([(1.0, tuned)]) | look.read_each({alpha: [(1.0 - alpha, large), (alpha, tuned)] for alpha in ALPHAS})


def _bases(seed: int, settings: Settings) -> tuple[GPT, GPT]:
    """The large base and the small one, taught the same rows, mostly in the long form."""
    styles = (("long", 1.0 - settings.short), ("short", settings.short))
    world: dict[str, Any] = {"world": "facts_and_skills", "options": (("seed", seed),), "styles": styles}
    levels = ((1.0, 3.0), (2.0, 1.0), (3.0, 1.0))
    large = Recipe(levels, steps=settings.base, width=settings.width, **world)
    small = Recipe(levels, steps=settings.small, width=settings.narrow, **world)
    return base_model(seed, large), base_model(seed, small)


def _tuned(base: GPT, settings: Settings, key: int, *, penalty: float = 0.0, after: Watch | None = None) -> GPT:
    """A copy after tuning on skills in the short form; a step has the same rows for every model."""
    model, rng = copy.deepcopy(base), np.random.default_rng((key, 3))
    pool = short_rows(base, key)

    def batch(_: int) -> Rows:
        chosen = torch.from_numpy(rng.integers(len(pool[0]), size=settings.batch))
        return pool[0][chosen], pool[1][chosen]

    watch = None if after is None else lambda step: after(model, step)
    tune(model, base, batch, Schedule(settings.steps, settings.rate, warm=10), penalty, watch)
    return model
