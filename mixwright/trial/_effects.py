"""From seed rows to effects with words, and the sentence that says whether the nulls stayed null. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from mixwright.records import Effect, SeedRow
from mixwright.trial._rows import CLASSES
from mixwright.trial._statistics import Better, Race, match, noise_floor, paired_interval, race, verdict_word

START = "start"
"""Stands in `Effect.against` for the arm's own starting model, measured before the run."""


@dataclass(frozen=True, slots=True)
class Number:
    """A number that arms are compared on."""

    name: str
    better: Better
    spread: str = ""
    """Number whose spread over seeds gives the noise floor; the same one when empty."""
    rollouts: bool = False
    """Counted in rollouts, not a share."""
    drawn: bool = False
    """Says what was drawn, not what was learnt."""


NUMBERS = (
    Number("teaching_share", "higher", drawn=True),
    Number("zero_signal_share", "lower", drawn=True),
    *(Number(f"success.{name}", "higher", f"gain.{name}") for name in ("reachable", "mastered", "hopeless", "lucky", "all")),
    Number("rollouts_to_target", "lower", rollouts=True),
    Number("training_rollouts_to_target", "lower", rollouts=True),
)
"""What effects are reported on, the main ones first. refused_share and rollouts are rows only: neither end is better."""


@dataclass(frozen=True, slots=True)
class Table:
    """Seed rows by arm and name, with what is needed to compare them."""

    values: Mapping[tuple[str, str], Mapping[int, float | None]]
    """(arm, name) -> seed -> value."""
    base_of: Mapping[int, int]
    """Seed -> number of its starting model."""
    margin: float
    """Share that does not matter."""
    budget: float
    """Largest number of rollouts of any run."""

    @classmethod
    def of(cls, rows: Sequence[SeedRow], base_of: Mapping[int, int], margin: float) -> Table:
        """Sort rows into a table."""
        values: dict[tuple[str, str], dict[int, float | None]] = {}
        for row in rows:
            values.setdefault((row.arm, row.name), {})[row.seed] = row.value
        budget = max((row.value or 0.0 for row in rows if row.unit == "rollouts"), default=0.0)
        return cls(values, base_of, margin, budget)

    def column(self, arm: str, name: str) -> Mapping[int, float | None]:
        """Seed -> value; empty when the arm has no such number."""
        return self.values.get((arm, name), {})


def compare(table: Table, number: Number, arm: str, against: str) -> Effect | None:
    """One arm against another (or `START`) on one number; None when one of them lacks it."""
    reference_name = number.name.replace("success.", "start.") if against == START else number.name
    own = table.column(arm, number.name)
    reference = table.column(arm if against == START else against, reference_name)
    if not own.keys() & reference.keys():
        return None
    pairs = match(own, reference)
    bound = table.budget if number.rollouts else 1.0
    margin = table.margin * (table.budget if number.rollouts else 1.0)
    interval = paired_interval(pairs.differences, bound=bound)
    floor = _floor(table, number, [arm] if against == START else [arm, against], pairs.seeds, bound)
    word = verdict_word(interval, better=number.better, margin=margin)
    return Effect(arm, against, number.name, interval, floor, word, number.better, pairs.censored)


def _floor(table: Table, number: Number, arms: Sequence[str], seeds: Sequence[int], bound: float) -> float:
    """The noise floor from the spread of these arms on these seeds."""
    columns = [table.column(arm, number.spread or number.name) for arm in arms]
    chosen = [{seed: value for seed in seeds if (value := column.get(seed)) is not None} for column in columns]
    labels = [[table.base_of[seed] for seed in column] for column in chosen]
    return noise_floor([list(column.values()) for column in chosen], labels, pairs=len(seeds), bound=bound)


def first_to_target(table: Table, arm: str, against: str) -> tuple[Effect, Race] | None:
    """Who reached the target first, in all rollouts charged; censored runs lose to those that arrived."""
    own, reference = table.column(arm, "rollouts_to_target"), table.column(against, "rollouts_to_target")
    seeds = sorted(own.keys() & reference.keys())
    if not seeds:
        return None
    found = race([own[seed] for seed in seeds], [reference[seed] for seed in seeds])
    word = verdict_word(found.difference, better="higher", margin=table.margin)
    return Effect(arm, against, "first_to_target", found.difference, found.floor, word, "higher", found.ties), found


def all_effects(table: Table, against: Mapping[str, str], nulls: Sequence[str] = ()) -> tuple[list[Effect], list[str]]:
    """Every arm against its reference and against its own start; and notes on the races.

    Nulls are not compared on what was drawn: they draw as the arm they shadow, by construction.

    Args:
        table: the numbers.
        against: arm -> its reference, empty for the reference itself. A reference that did not run is passed over.
        nulls: which of the arms are nulls.
    """
    effects: list[Effect | None] = []
    notes = []
    for arm, reference in against.items():
        if reference:
            numbers = [number for number in NUMBERS if not (number.drawn and arm in nulls)]
            effects += [compare(table, number, arm, reference) for number in numbers]
            if (first := first_to_target(table, arm, reference)) is not None:
                effects.append(first[0])
                notes.append(_race_note(table, arm, reference, first[1]))
        starts = [number for number in NUMBERS if number.name.startswith("success.")]
        effects += [compare(table, number, arm, START) for number in starts]
    return [effect for effect in effects if effect is not None], notes


def _race_note(table: Table, arm: str, against: str, found: Race) -> str:
    def arrived(name: str) -> str:
        column = table.column(name, "rollouts_to_target").values()
        return f"{sum(value is not None for value in column)} of {len(column)} {name} runs"

    return (
        f"Target reached by {arrived(arm)} and {arrived(against)}; {arm} first on {found.wins} seeds, {against} first on "
        f"{found.losses}, undecided {found.ties} (sign test p = {found.p_value:.2f})."
    )


def null_gains(effects: Sequence[Effect], nulls: Sequence[str]) -> list[Effect]:
    """Effects that a null cannot have: its interval lies above 0 on the cells that levers are judged on.

    Judged on success.reachable (success.all where no cell is reachable): on lucky cells a null may gain by collapsing
    onto the majority answer, and hopeless or mastered cells were sorted by the measurement they are compared with, so
    they fall back towards their mean without any training. Both references count: its own start, and the arm it stands
    against.
    """
    names = {effect.name for effect in effects}
    judged = "success.reachable" if "success.reachable" in names else "success.all"
    return [e for e in effects if e.arm in nulls and e.name == judged and e.difference.n > 1 and e.difference.low > 0]


def missing_classes(rows: Sequence[SeedRow]) -> list[str]:
    """Cell classes that no branch has a number for."""
    names = {row.name for row in rows}
    return [name for name in CLASSES if f"success.{name}" not in names]
