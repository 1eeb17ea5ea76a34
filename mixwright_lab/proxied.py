"""Readings of sums of models: facts, skills and KL; and those of fine-tuning at the skill or the KL of another arm."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence

import numpy as np
import torch

from mixwright_lab.training.gpt import GPT
from mixwright_lab.training.mixed import Rows, WeightedModels, divergence, greedy
from mixwright_lab.worlds.facts_and_skills import LONG, SHORT, SKILLS, FactsAndSkills, format_answer, question_of

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
