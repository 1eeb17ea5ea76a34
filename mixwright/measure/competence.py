"""How often the model is right, and how much of that is more than luck.

Source: pass@k by the unbiased estimator of Chen et al. (2107.03374); learnability as in LILO (2502.12272); luck is the
best of the corpus's (chance or majority answer) and how often completions are right for other items of their cell.
Unit: share
Cost: one greedy and `samples` sampled completions per item, shared with other probes.
Blind spot: a right answer reached by a wrong way counts as right; partial credit counts as wrong; luck is taken as
known, its own error is not in the interval of success above luck.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from mixwright.contracts import Probe
from mixwright.corpus._rows import pc
from mixwright.measure._estimates import above_luck_interval, clustered_share, pass_at_k, rate, wilson
from mixwright.measure._passes import FULL_MARKS
from mixwright.records import Cell, Example, Interval, Measurement

if TYPE_CHECKING:
    from mixwright.corpus import Corpus
    from mixwright.measure._passes import Group, Passes

NEEDS = ("torch", "transformers")


class Competence(Probe):
    """Greedy, pass@1, pass@k, learnability, luck and success above luck per cell and task; greedy and pass@1 per item.

    Learnability is the mean over items of p(1 - p), unbiased: the variance of a 0/1 reward within one prompt, 0..0.25. A
    cell of prompts that are always right or always wrong has none, whatever its pass@1: its groups carry no signal.

    Rows of a cell carry its level; rows of a whole task have level None and exist where a task has levels.
    """

    PASSES: ClassVar[tuple[str, ...]] = ("rollouts",)

    def __init__(self, *, rounds: int = 4) -> None:
        """`rounds`: how many other items each completion is tried on, for the luck of shuffled answers."""
        self.rounds = rounds

    def measure(self, passes: Passes, corpus: Corpus, rng: np.random.Generator) -> list[Measurement]:
        """See the class. `corpus` gives the cells' luck; the items are those of `passes`."""
        known = {(cell.task, cell.level): cell for cell in corpus.cells()}
        if not known.keys() >= passes.cells.keys():
            measured = passes.corpus.select(ids=[item.id for item in passes.items])
            known = {(cell.task, cell.level): cell for cell in measured.cells()} | known
        usual = majorities(corpus)
        lucks = {
            group: self._luck(passes, items, known.get(group), usual.get(group), rng)
            for group, items in passes.cells.items()
        }
        found = []
        for (task, level), items in passes.groups.items():
            cells = [lucks[item.task, item.level] for item in items]
            luck = float(np.mean([chance for chance, _ in cells]))
            origin = cells[0][1] if len(set(cells)) == 1 else "mean luck of the levels"
            found += _group(passes, (task, level), items, luck, origin)
        return found + [row for item in passes.items for row in _item(passes, item, lucks[item.task, item.level])]

    def _luck(
        self, passes: Passes, items: Sequence[Example], cell: Cell | None, usual: str | None, rng: np.random.Generator
    ) -> tuple[float, str]:
        """Best of the corpus's luck, the commonest answer on these items, and completions judged on other items."""
        chance, origin = (cell.luck, cell.luck_from) if cell else (0.0, "nothing known")
        if usual is not None:
            constant = float(np.mean([passes.corpus.grade(item, usual) >= FULL_MARKS for item in items]))
            if constant > chance:
                chance, origin = constant, "majority answer on the measured items"
        if len(items) < 2:
            return chance, origin
        shifts = rng.choice(np.arange(1, len(items)), size=min(self.rounds, len(items) - 1), replace=False)
        judged: dict[tuple[str, str], bool] = {}
        hits = []
        for place, item in enumerate(items):
            for shift in shifts:
                other = items[(place + int(shift)) % len(items)]
                for sample in passes.rollouts[item.id].samples:
                    key = (other.id, sample.text)
                    if key not in judged:
                        judged[key] = passes.corpus.grade(other, sample.text) >= FULL_MARKS
                    hits.append(judged[key])
        shuffled = float(np.mean(hits))
        return (shuffled, "shuffled answers") if shuffled > chance else (chance, origin)


def majorities(corpus: Corpus) -> dict[Group, str]:
    """The commonest answer of each cell of the training split (of all rows where there is none)."""
    table = corpus.table.select(["task", "level", "answer", "split"])
    train = table.filter(pc.equal(table["split"], "train"))
    counted = (train if len(train) else table).group_by(["task", "level", "answer"]).aggregate([("split", "count")])
    found: dict[Group, str] = {}
    for row in counted.sort_by([("split_count", "ascending"), ("answer", "descending")]).to_pylist():
        if row["answer"] is not None:
            found[row["task"], row["level"]] = row["answer"]
    return found


def _group(passes: Passes, group: Group, items: Sequence[Example], luck: float, origin: str) -> list[Measurement]:
    """The aggregate rows of one cell or task."""
    samples = passes.config.samples
    correct = [passes.rollouts[item.id].correct for item in items]
    greedy = np.array([float(passes.rollouts[item.id].greedy_score >= FULL_MARKS) for item in items])
    first = clustered_share(np.array([part.mean() for part in correct]), samples)
    best = np.array([pass_at_k(samples, int(part.sum()), samples) for part in correct])
    rows: dict[str, tuple[Interval, float | None]] = {
        "greedy": (clustered_share(greedy, 1), luck),
        "pass@1": (first, luck),
    }
    if samples > 1:
        chance = 1 - (1 - luck) ** samples
        rows[f"pass@{samples}"] = (clustered_share(best, 1), chance)
        inside = np.array([part.mean() * (1 - part.mean()) for part in correct]) * samples / (samples - 1)
        spread = rate(inside, np.ones(len(items)))
        if spread is not None:
            rows["learnability"] = (spread, 0.0)
    rows["luck"] = (Interval(luck, *wilson(luck, len(items)), n=len(items)), None)
    rows["success_above_luck"] = (above_luck_interval(first, luck), 0.0)
    return [_row(group, name, estimate, null, origin) for name, (estimate, null) in rows.items()]


def _row(group: Group, name: str, estimate: Interval, null: float | None, origin: str) -> Measurement:
    task, level = group
    interval = (estimate.value, estimate.low, estimate.high, estimate.n)
    return Measurement("competence", task, name, *interval, "share", level, None, null, origin)


def _item(passes: Passes, item: Example, luck: tuple[float, str]) -> list[Measurement]:
    """pass@1 and greedy of one item."""
    rollouts = passes.rollouts[item.id]
    values = {"pass@1": rollouts.correct, "greedy": np.array([float(rollouts.greedy_score >= FULL_MARKS)])}
    found = []
    for name, part in values.items():
        share = float(part.mean())
        low, high = wilson(share, len(part))
        found.append(
            Measurement("competence", item.task, name, share, low, high, len(part), "share", item.level, item.id, *luck)
        )
    return found
