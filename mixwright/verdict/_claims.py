"""What is claimed of each cell and task, and the gate that stops a checkpoint which lost something.

Before and after are paired by item. A plain before/after rests on its items (Agresti and Min's paired interval). In a trial
the seeds carry the inference (paired t), and the interval is never narrower than the items' own. `learnt` and `damaged` need
an interval that excludes 0 and success above luck where it is claimed; `unchanged` needs an interval that is narrow enough.
Intervals are of single claims; Holm's adjusted p stands beside each, and the gate acts only on what survives it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from statistics import fmean

from mixwright.errors import unknown_name
from mixwright.records import Claim, ClaimKind, Interval, cell_key
from mixwright.runs import RunFolder, read_list
from mixwright.verdict._evidence import Cells, comparisons, lead
from mixwright.verdict._intervals import holm, mean_over_items, mean_over_seeds, seeds_probability
from mixwright.verdict._text import count, percent, points

FEWEST_ITEMS = 8
WIDEST = 0.2
"""Half-width up to which an interval around 0 may be called `unchanged`."""
CHANCE = 0.05
"""Luck up to this is not worth a test of its own."""
MASTERED = 0.8
"""Success above luck, before, that the gate protects by default."""
GATE_FAILED = 3
"""Exit code of a gate that found damage (1 is wrong input, 2 our bug)."""


def judge(run: RunFolder) -> list[Claim]:
    """Claims of every arm (or of the plain before/after), cells first and then whole tasks. Reads files only.

    Raises:
        InputError: a table of measurements is broken.
    """
    claims: list[Claim] = []
    for arm, seeds in comparisons(run).items():
        lucks = {cell: luck for _, found in seeds for cell, luck in found.items()}
        cells = _gather([found for found, _ in seeds])
        claims += _adjust([_claim(arm, cell, by_seed, lucks.get(cell, 0.0)) for cell, by_seed in cells.items()])
        tasks = _whole_tasks(cells, lucks)
        claims += _adjust([_claim(arm, (task, None), by_seed, luck) for task, (by_seed, luck) in tasks.items()])
    return claims


def claims_of(run: RunFolder, arm: str | None = None) -> list[Claim]:
    """The claims on file, or judged now when there is no file; of one arm, or of the leading one."""
    claims = read_list(run.claims, Claim) if run.claims.is_file() else judge(run)
    if arm is None:
        arm = lead(run)
    return [claim for claim in claims if claim.arm == arm]


def cells_first(claims: Collection[Claim], kind: str) -> list[Claim]:
    """Claims of one kind, largest first; a whole task comes after all cells when one of its own cells is among them."""
    found = [claim for claim in claims if claim.kind == kind]
    told = {claim.task for claim in found if claim.level is not None}
    return sorted(found, key=lambda claim: (claim.level is None and claim.task in told, -abs(claim.difference.value)))


BySeed = list[dict[str, tuple[float, float]]]


def _gather(seeds: Sequence[Cells]) -> dict[tuple[str, float | None], BySeed]:
    found: dict[tuple[str, float | None], BySeed] = defaultdict(list)
    for cells in seeds:
        for cell, items in cells.items():
            found[cell].append(items)
    return dict(sorted(found.items(), key=lambda item: (item[0][0], item[0][1] is not None, item[0][1] or 0.0)))


def _whole_tasks(
    cells: dict[tuple[str, float | None], BySeed], lucks: dict[tuple[str, float | None], float]
) -> dict[str, tuple[BySeed, float]]:
    """Tasks with several levels, their items together; luck is the mean over cells."""
    levels: dict[str, list[float | None]] = defaultdict(list)
    for task, level in cells:
        levels[task].append(level)
    found = {}
    for task, several in levels.items():
        parts = [cells[task, level] for level in several]
        if len(several) > 1 and len({len(part) for part in parts}) == 1:
            merged = [{k: v for items in at_seed for k, v in items.items()} for at_seed in zip(*parts, strict=True)]
            found[task] = (merged, fmean(lucks.get((task, level), 0.0) for level in several))
    return found


def _claim(arm: str, cell: tuple[str, float | None], by_seed: BySeed, luck: float) -> Claim:
    """One claim, its p not adjusted yet."""
    items: dict[str, list[tuple[float, float]]] = defaultdict(list)
    for found in by_seed:
        for example, both in found.items():
            items[example].append(both)
    before = [fmean(b for b, _ in both) for both in items.values()]
    after = [fmean(a for _, a in both) for both in items.values()]
    _, low, high, p = mean_over_items([a - b for a, b in zip(after, before, strict=True)])
    per_seed = [fmean(a - b for b, a in found.values()) for found in by_seed]
    value, n = fmean(per_seed), len(items)
    rests = f"{count(len(items), 'item')}, paired"
    if len(by_seed) > 1:
        _, seeds_low, seeds_high = mean_over_seeds(per_seed)
        low, high = max(min(low, seeds_low), -1.0), min(max(high, seeds_high), 1.0)
        p, n = max(p, seeds_probability(per_seed)), len(by_seed)
        rests = f"{count(n, 'seed')} x {count(len(items), 'item')}, paired"
    difference = Interval(value, min(low, value), max(high, value), n)
    kind, reason = _kind(difference, before, after, luck)
    evidence = rests + (f"; {reason}" if reason else "")
    return Claim(kind, cell[0], cell[1], fmean(before), fmean(after), difference, evidence, arm, luck, p)


def _kind(difference: Interval, before: Sequence[float], after: Sequence[float], luck: float) -> tuple[ClaimKind, str]:
    """(kind, reason) of a difference; the reason is empty when the numbers say it all."""
    if len(before) < FEWEST_ITEMS:
        return "unmeasurable", f"fewer than {FEWEST_ITEMS} items"
    moved_up, moved_down = difference.low > 0, difference.high < 0
    if luck > CHANCE:
        skilled = {"before": _above(before, luck), "after": _above(after, luck)}
        if moved_up and not skilled["after"]:
            return "unmeasurable", f"rose, but not above luck ({percent(luck)})"
        if moved_down and not skilled["before"]:
            return "unmeasurable", f"fell, but was not above luck ({percent(luck)})"
        if not moved_up and not moved_down and not any(skilled.values()):
            return "unmeasurable", f"no better than luck ({percent(luck)}) before and after"
    if moved_up or moved_down:
        return ("learnt" if moved_up else "damaged"), ""
    if (difference.high - difference.low) / 2 > WIDEST:
        return "unmeasurable", "the interval is too wide to call it unchanged"
    return "unchanged", ""


def _above(successes: Sequence[float], luck: float) -> bool:
    return mean_over_items([success - luck for success in successes])[1] > 0


def _adjust(claims: Sequence[Claim]) -> list[Claim]:
    """Claims with Holm's correction over all of them."""
    adjusted = holm([claim.adjusted_p or 0.0 for claim in claims])
    done = []
    for claim, p in zip(claims, adjusted, strict=True):
        doubt = f"; would not survive Holm's correction over {len(claims)}" if _moved(claim) and p >= 0.05 else ""
        done.append(replace(claim, adjusted_p=p, evidence=claim.evidence + doubt))
    return done


def _moved(claim: Claim) -> bool:
    return claim.kind in ("learnt", "damaged")


def chance(claims: Collection[Claim]) -> str:
    """How many claims were looked at, and how many would be called learnt or damaged by chance alone."""
    expected = len(claims) * 0.025
    return (
        f"{count(len(claims), 'claim')} looked at, each with its own 95 % interval: by chance alone about {expected:.1f} "
        f"would be called learnt and {expected:.1f} damaged. "
        f"{sum(_survives(claim) for claim in claims)} survive Holm's correction."
    )


def _survives(claim: Claim) -> bool:
    return _moved(claim) and (claim.adjusted_p is None or claim.adjusted_p < 0.05)


def mastered(claims: Iterable[Claim]) -> list[str]:
    """Cells and tasks that could be done before: what the gate protects unless it is told otherwise."""
    return [cell_key(c.task, c.level) for c in claims if (c.before - c.luck) / max(1 - c.luck, 1e-9) >= MASTERED]


def named(claims: Sequence[Claim], names: Sequence[str]) -> list[str]:
    """The tasks and cells that a user wants protected. Raises InputError for one that was not measured: a slip of the pen
    must not open the gate.
    """
    known = {name for claim in claims for name in (claim.task, cell_key(claim.task, claim.level))}
    for name in names:
        if name not in known:
            raise unknown_name("task or cell that was measured (--protect)", name, known)
    return list(names)


def gate(claims: Sequence[Claim], protected: Collection[str]) -> int:
    """0 when nothing protected was damaged, else `GATE_FAILED`.

    Args:
        claims: of one comparison.
        protected: tasks (all their cells) or cells (`gcd@2`) that must not be damaged.
    """
    return GATE_FAILED if _lost(claims, protected) else 0


def _lost(claims: Sequence[Claim], protected: Collection[str]) -> list[Claim]:
    return [c for c in claims if c.kind == "damaged" and _survives(c) and _covered(c, protected)]


def _covered(claim: Claim, protected: Collection[str]) -> bool:
    return claim.task in protected or cell_key(claim.task, claim.level) in protected


def gate_lines(claims: Sequence[Claim], protected: Collection[str]) -> list[str]:
    """Why the gate answered as it did, for people."""
    covered = [claim for claim in claims if _covered(claim, protected)]
    lines = [
        f"damaged: {cell_key(c.task, c.level)} {percent(c.before)} -> {percent(c.after)}, "
        f"{points(c.difference.value)} points [{points(c.difference.low)}, {points(c.difference.high)}]"
        for c in _lost(claims, protected)
    ]
    blind = [cell_key(c.task, c.level) for c in covered if c.kind == "unmeasurable"]
    doubtful = [cell_key(c.task, c.level) for c in covered if c.kind == "damaged" and not _survives(c)]
    if doubtful:
        lines.append(f"perhaps damaged, not beyond what {count(len(claims), 'claim')} show by chance: {', '.join(doubtful)}")
    if blind:
        lines.append(f"protected but unmeasurable: {', '.join(blind)}")
    if not covered:
        lines.append("nothing was protected: no cell was mastered before, and none was named")
    return lines or [f"{count(len(covered), 'protected claim')}, none damaged"]
