"""Probe of success, of the part of it that depends on the prompt, and of what a rule without the skill would score.

Source: `mixwright/answers`; what each figure is for: contributing/evidence/luck.md.
Unit: share; p values.
Cost: one greedy and `samples` sampled completions per item (0: greedy alone), shared with other probes; each completion
    graded on up to 64 other items of its cell (100 where a cell has no more).
Blind spot: a right answer reached by a wrong way counts as right; partial credit counts as wrong; a guess that reads the
    form of the prompt (a template, a sub-group) depends on the prompt as skill does.
"""

from __future__ import annotations

import numpy as np

from mixwright.answers.nulls import add_nulls
from mixwright.answers.score import measure_answers
from mixwright.contracts import Probe
from mixwright.corpus import Corpus
from mixwright.corpus.cells import chance_rules_of, rows_by, sample_answered_rows
from mixwright.corpus.rows import pc
from mixwright.measure.passes import Passes
from mixwright.records import Measurement

NEEDS = ("torch", "transformers")


class Competence(Probe):
    """Greedy, pass@1, pass@k, learnability, S, dependence, kappa and chance level per cell and task; the parts per item.

    A cell of prompts that are always right or always wrong has no learnability, whatever its pass@1: its groups carry no
    signal. Items of a cell of fewer than `MIN_ITEMS` are judged for dependence among those of all such cells of the task,
    or the whole task.
    """

    def measure(self, passes: Passes, corpus: Corpus, rng: np.random.Generator) -> list[Measurement]:
        """See the class. Rules of the chance level are chosen on the training split of `corpus`, where it has one."""
        rows = np.flatnonzero(pc.equal(corpus.table["split"], "train").to_numpy())
        tasks = {item.task for item in passes.items}
        members = {cell: own for cell, own in rows_by(corpus, rows, "task", "level").items() if cell[0] in tasks}
        train = dict(zip(members, sample_answered_rows(corpus, members.values()), strict=True))
        rules = {task: chance_rules_of(passes.corpus, task) for task in tasks}
        passes.answers = add_nulls(passes.answers, passes.items, passes.grades.grade, rules.__getitem__, train, rng)
        return measure_answers(passes.answers)
