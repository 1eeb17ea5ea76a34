"""Miner that pairs right and wrong answers of the model itself to one prompt, for DPO: close ones, matched in length.

Answers are sampled on training prompts and graded. Of each prompt one pair is taken: the wrong answer that is nearest to a
right one by edit distance. Where the model was never right the data's target is chosen; where it was never wrong the right
answer is edited until the grader refuses it. Pairs are then changed or left out until length does not tell chosen from
rejected. The null has the same prompts and chosen answers, and wrong answers that were given to other prompts.

Source: Manduzio et al., 2410.18890 (pairs of right and wrong chains of a teacher; its tables could not be read); closeness,
    classes of errors and matching by length are ours.
Unit: pairs; closeness 0..1; margin in nats, of the chosen answer over the rejected one.
Cost: `samples` completions per prompt, and two readings per pair.
Blind spot: a grader reads the end: a wrong chain that ends right is chosen. Wrong answers of form are mended for less by
constrained decoding: compare with it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from mixwright.contracts import Miner
from mixwright.corpus.timed_grades import TimedGrades
from mixwright.errors import InputError, check_range
from mixwright.estimates.chance import RIGHT_FROM_SCORE
from mixwright.mine import pairing
from mixwright.mine.choosing import draw_few_rows, train_rows
from mixwright.mine.pairing import Candidate, JudgedAnswers, longer_chosen_share
from mixwright.mine.proxies import count_answer_tokens, shared_room
from mixwright.records import Example, MiningResult, plain

if TYPE_CHECKING:
    from mixwright.corpus import Corpus
    from mixwright.learner.learner import Learner
    from mixwright.scan.table import Scan

ONE_CLASS_SHARE, TRIVIAL_SHARE, TRIVIAL_MARGIN_NATS = 0.8, 0.5, 10.0
"""Share of one class of errors, and share of pairs whose margin is above `TRIVIAL_MARGIN_NATS` nats, from which a note
warns."""
SECONDS_PER_GRADE = 5.0
"""For the grade of one answer; slower ones count as wrong."""


@dataclass(kw_only=True, eq=False)
class Pairs(Miner):
    """Pairs of the model's own answers.

    Args:
        prompts: training prompts at most, drawn at random; 0 takes all.
        samples: completions per prompt.
        temperature: of the sampling.
        max_new_tokens: longest completion.
        targets: whether the data's target stands in where the model was never right.
        near_misses: whether edits of a right answer stand in where it was never wrong.
        tolerance: how far from .5 the share of pairs may be in which the longer answer is chosen.
    """

    NEEDS_MODEL = True

    prompts: int = 1000
    samples: int = 8
    temperature: float = 1.0
    max_new_tokens: int = 64
    targets: bool = True
    near_misses: bool = True
    tolerance: float = 0.05

    def __post_init__(self) -> None:
        limits = {"samples": (1, 1e4), "max_new_tokens": (1, 1e6), "tolerance": (0, 0.5), "temperature": (1e-3, 100)}
        check_range("mine.options.pairs", vars(self), **limits, prompts=(0, 1e9))

    def mine(self, corpus: Corpus, scan: Scan, learner: Learner | None, rng: np.random.Generator) -> MiningResult:
        """New rows with chosen and rejected. Raises InputError without a model, answers to grade, or any pair."""
        if learner is None:
            raise InputError("a model that answers", "none", "Give one: pairs are made of its own answers.")
        rows = [corpus[int(corpus_index)] for corpus_index in train_rows(corpus, scan).corpus_indices]
        rows = [row for row in rows if row.answer is not None and row.prompt]
        rows = [row for row in rows if corpus.tasks[row.task].kind == "verifiable"]
        if not rows:
            raise InputError("training rows with answers to grade", "none", "Give a corpus that has an answer column.")
        if self.prompts and len(rows) > self.prompts:
            rows = draw_few_rows(rows, self.prompts, rng)
        grades = TimedGrades(corpus, SECONDS_PER_GRADE, "wrong")
        completions_by_row = learner.sample(
            [row.prompt for row in rows],
            count=self.samples,
            temperature=self.temperature,
            max_new_tokens=shared_room(learner, rows, self.max_new_tokens),
            seed=int(rng.integers(2**31)),
        )
        answers = [
            pairing.judge_answers(row, completions, grades)
            for row, completions in zip(rows, completions_by_row, strict=True)
        ]
        candidates_by_prompt = [
            self._list_candidates(prompt_index, row, prompt_answers, grades, learner, rng)
            for prompt_index, (row, prompt_answers) in enumerate(zip(rows, answers, strict=True))
        ]
        pairs, left_out = pairing.balance_by_length(
            [candidates for candidates in candidates_by_prompt if candidates], self.tolerance
        )
        if not pairs:
            raise InputError("a right and a wrong answer to some prompt", "none", "Take more samples, or another model.")
        margins = pairing.measure_margins(learner, rows, pairs)
        pair_rows = tuple(
            pairing.pair_example(rows[p.prompt_index], p, margin) for p, margin in zip(pairs, margins.tolist(), strict=True)
        )
        null_rows = pairing.make_null_pairs(rows, answers, pair_rows, pairs, grades, rng)
        notes = self._notes(rows, answers, candidates_by_prompt, pairs, left_out, margins)
        if not null_rows:
            notes.append("No wrong answer to another prompt was to be had for some pair, so there is no null of its own.")
        return MiningResult(
            "pairs", new_rows=pair_rows, null_rows=null_rows, rollouts=len(rows) * self.samples, notes=tuple(notes)
        )

    def _list_candidates(
        self,
        prompt_index: int,
        row: Example,
        prompt_answers: JudgedAnswers,
        grades: TimedGrades,
        learner: Learner,
        rng: np.random.Generator,
    ) -> list[Candidate]:
        """Every pair that can be made for one prompt."""
        target = row.target if row.target is not None else row.answer
        right = list(prompt_answers.right)
        if not right and self.targets and grades.grade(row, plain(target)) >= RIGHT_FROM_SCORE:
            right = [plain(target)]
        candidates = []
        for good in right:
            wrong = {bad: pairing.error_class(good, bad, cut=cut) for bad, cut in prompt_answers.wrong.items()}
            if not wrong and self.near_misses:
                wrong = {
                    bad: kind for bad, kind in pairing.near_misses(good, rng) if grades.grade(row, bad) < RIGHT_FROM_SCORE
                }
            for bad, kind in wrong.items():
                token_difference = count_answer_tokens(learner, good) - count_answer_tokens(learner, bad)
                model_wrote_both = good in prompt_answers.right and bad in prompt_answers.wrong
                candidates.append(
                    Candidate(
                        prompt_index, good, bad, kind, pairing.closeness(good, bad), token_difference, model_wrote_both
                    )
                )
        return [pair for pair in candidates if pair.kind != "cut"] or candidates

    def _notes(
        self,
        rows: Sequence[Example],
        answers: Sequence[JudgedAnswers],
        candidates_by_prompt: Sequence[Sequence[Candidate]],
        pairs: Sequence[Candidate],
        left_out: int,
        margins: np.ndarray,
    ) -> list[str]:
        """Where the pairs come from, what the errors are, and what to be careful about."""
        never_right, never_wrong = (
            sum(not getattr(prompt_answers, side) for prompt_answers in answers) for side in ("right", "wrong")
        )
        kinds, possible_kinds = (
            Counter(pair.kind for pair in pairs),
            Counter(p.kind for candidates in candidates_by_prompt for p in candidates),
        )
        own_pairs, unmatched = (
            sum(pair.model_wrote_both for pair in pairs),
            [max(candidates, key=lambda p: p.closeness) for candidates in candidates_by_prompt if candidates],
        )
        counts_by_kind = ", ".join(
            f"{kind} {count} (of {possible_kinds[kind]} that were possible)" for kind, count in kinds.most_common()
        )
        notes = [
            f"{len(pairs)} pairs of {len(rows)} prompts; {own_pairs} are of the model's own answers. It was never right on "
            f"{never_right} prompts and never wrong on {never_wrong}.",
            f"Wrong answers by class: {counts_by_kind}. Closeness is {np.median([p.closeness for p in pairs]):.2f} in the "
            "median.",
            f"The longer answer is the chosen one in {longer_chosen_share(pairs):.0%} of the pairs; before matching it was "
            f"{longer_chosen_share(unmatched):.0%}. {left_out} prompts were left out for it.",
            f"The model prefers the wrong answer in {(margins < 0).mean():.0%} of the pairs, before any training.",
        ]
        kind, count = kinds.most_common(1)[0]
        if count > ONE_CLASS_SHARE * len(pairs):
            notes.append(f"{count / len(pairs):.0%} of the wrong answers are of the class {kind}: little is said of others.")
        if (margins > TRIVIAL_MARGIN_NATS).mean() > TRIVIAL_SHARE:
            comparison = f"{TRIVIAL_MARGIN_NATS:g} nats less likely than the right ones already"
            notes.append(f"Most wrong answers are {comparison}: they teach little.")
        if never_right > len(rows) / 2:
            notes.append("The model is hardly ever right: SFT on right answers first is the simple rule to compare with.")
        if kinds["form"] + kinds["cut"] + kinds["empty"] > len(pairs) / 2:
            notes.append("Most errors are of form: constrained decoding mends these without training, so compare with it.")
        return [*notes, "Watch the likelihood of chosen answers in training (monitor displacement): DPO may lower it."]
