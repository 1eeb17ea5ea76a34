"""Small made-up inputs that the conformance checks feed to plug-ins: mastered, reachable, hopeless and lucky cells."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from mixwright.contracts import Pool, Scene
from mixwright.records import (
    CanaryOutcome,
    Cell,
    Example,
    GroupOutcome,
    Measurement,
    Objective,
    Observation,
    Outcome,
    PairOutcome,
    Signals,
    Stage,
    TrainingSetup,
)

if TYPE_CHECKING:
    from mixwright.corpus import Corpus
    from mixwright.learner.learner import Learner
    from mixwright.measure.passes import Passes
    from mixwright.measure.scan import Scan
    from mixwright.measure.scan_passes import ScanPasses
    from mixwright.measure.scan_rows import Pass, ScanRow
    from mixwright.plan.mix import Mix
    from mixwright.runs import RunFolder

SUCCESS = {"add@1": 0.95, "add@2": 0.45, "count@1": 0.3, "spell": 0.02}
"""True success per cell in the made-up evidence."""
SWAPPED = {"add@1": 0.05, "add@2": 0.05, "count@1": 0.3, "spell": 0.0}
"""Success of the cell's own answers on other prompts: count@1 does not depend on its prompts."""


def graded() -> list[Example]:
    """Examples with answers that most graders can judge: numbers as text. They also name a task of Reasoning Gym."""
    origin = {"reasoning_gym": {"task": "chain_sum", "metadata": {}}}
    return [Example(f"g{n}", "add", f"{n} + {n} =", answer=str(2 * n), level=1.0, extra=origin) for n in (3, 21, 160)]


def wrong(gold: str) -> list[str]:
    """Answers that are wrong where `gold` is right, some of which contain it."""
    return ["", f"{gold}{gold}", f"not {gold} but 7{gold}", f"{gold} or 1", "no idea"]


def corpus() -> Corpus:
    """A healthy corpus of both splits."""
    from mixwright.corpus import Corpus

    rows = []
    for n in range(48):
        split = "eval" if n % 4 == 3 else "train"
        rows.append(Example(f"a{n}", "add", f"{n} + 1 =", answer=str(n + 1), level=1.0 + n % 2, split=split))
        rows.append(Example(f"c{n}", "count", f"ones in {n:b}?", answer=str(f"{n:b}".count("1")), level=1.0, split=split))
        rows.append(Example(f"s{n}", "spell", f"spell word{n:02d} backward:", answer=f"{n:02d}drow"[::-1], split=split))
    return Corpus.from_examples(rows)


def measurable() -> Corpus:
    """The healthy corpus with everything that a probe may read: answers, targets and pairs."""
    from mixwright.corpus import Corpus

    own = list(corpus())
    return Corpus.from_examples(replace(row, target=row.answer, chosen=row.answer, rejected="no idea") for row in own)


def minable() -> Corpus:
    """Two tasks with 48 training rows each that have targets and pairs, and eight held-out rows."""
    from mixwright.corpus import Corpus

    rows = []
    for number in range(104):
        one, other, split = number % 10, number // 10, "train" if number < 96 else "eval"
        task, answer = ("add", one + other) if number % 2 else ("times", one * other)
        prompt, text = f"{one} {'+' if number % 2 else '*'} {other} =", str(answer)
        rows.append(Example(f"m{number}", task, prompt, text, text, chosen=text, rejected="none", split=split))
    return Corpus.from_examples(rows)


def scan(corpus: Corpus, place: Path, names: Sequence[str], made_from: Mapping[str, Any] | None = None) -> Scan:
    """A scan with these columns: vectors for `sketch` and `hidden`, texts for `form`, else numbers."""
    from mixwright.measure.scan import OWN, Scan, part, write_part

    rng, count = np.random.default_rng(11), len(corpus)
    found = {name: rng.normal(size=(count, 8)) if name in ("sketch", "hidden") else rng.random(count) for name in names}
    found |= {name: np.array(["plain"] * count, dtype=object) for name in names if name == "form"}
    own = {name: [getattr(example, name) for example in corpus] for name in OWN}
    write_part(part(place / "scan" / "base", 0), {"shards": 1, **(made_from or {})}, own, found)
    return Scan(place, "base")


def corpora() -> list[Corpus]:
    """The healthy corpus and odd ones: empty, one row, chat messages, targets without answers, everything twice."""
    from mixwright.corpus import Corpus

    chat = ({"role": "user", "content": "2 + 2 ="},)
    odd = [
        [],
        [Example("1", "one", "1 + 1 =", answer="2")],
        [Example(str(n), "chat", chat, target=({"role": "assistant", "content": "4"},)) for n in range(3)],
        [Example(f"t{n}", "text", "", target="some text " * n) for n in range(1, 4)],
        [Example(f"p{n}", "pairs", "which?", chosen="this", rejected="that", level=float(n)) for n in range(3)],
        [Example(f"{n}", "add", "1 + 1 =", answer="2", split=split) for n, split in enumerate(("train", "eval") * 4)],
    ]
    return [corpus(), *(Corpus.from_examples(rows) for rows in odd)]


def mixes() -> list[Mix]:
    """A mix of prompts with answers, one of chats to imitate, and one of pairs; the first part has two thirds."""
    import numpy as np

    from mixwright.plan.mix import Mix, Part

    made: list[Mix] = []
    kinds: list[tuple[Objective, Corpus]] = [("grpo", corpus().select(split="train"))]
    for objective, over in [*kinds, ("sft", corpora()[3]), ("dpo", corpora()[5])]:
        rows = np.arange(len(over))
        halves = (rows[:1], rows[1:])
        parts = [Part(f"0{n + 1}_part", over[0].task, 1.0, share, halves[n]) for n, share in enumerate((2 / 3, 1 / 3))]
        order = np.array([halves[0][0], halves[0][0], halves[1][0]] * 2)
        made.append(Mix(objective, over, tuple(parts), order, 2, 3, ("A note: # of {it}.",)))
    return made


def passes(learner: Learner, over: Corpus) -> Passes:
    """The shared passes of a learner over a few items."""
    from mixwright.config import MeasureConfig
    from mixwright.measure.passes import Passes

    return Passes(learner, learner, MeasureConfig(items=2, samples=2, max_new_tokens=4), over.select(split="eval"))


def scanned(learner: Learner) -> list[list[ScanRow]]:
    """Rows of the scan: healthy ones, odd ones (cut, chats, without prompt, target or answer, pairs), and none of use."""
    from mixwright.measure.scan_rows import scan_rows

    chat = ({"role": "user", "content": "2 + 2 ="},)
    odd = [
        Example("bare", "add", "1 + 1 ="),
        Example("text", "add", "", target="some text"),
        Example("long", "add", "2 + 3 =", target="12345 " * 20),
        Example("all", "add", "9 " * 60, target="5"),
        Example("chat", "add", chat, target=({"role": "assistant", "content": "4"},)),
        Example("pair", "add", "which?", chosen="this", rejected="that"),
        Example("empty", "add", "1 + 1 =", target=""),
    ]
    healthy = list(measurable())[:6]
    return [list(scan_rows(learner, rows, joined=True, limit=48)) for rows in (healthy, healthy[:1] + odd, odd[:1])]


def scan_passes(learner: Learner, rows: Sequence[ScanRow], asked: Sequence[Pass]) -> ScanPasses:
    """The passes of the scan over a few rows; those not in `asked` raise."""
    from mixwright.config import MeasureConfig
    from mixwright.measure.scan_passes import ScanPasses
    from mixwright.measure.sketch_calibration import SketchSettings, calibrate, calibration_rows

    config, every = MeasureConfig(samples=2, max_new_tokens=4), scanned(learner)[0]
    found = None
    if "gradients" in asked:
        found = calibrate(learner, calibration_rows(every, 0), SketchSettings(side=4, dims=64))
    return ScanPasses(learner, rows, frozenset(asked), measurable(), config, calibration=found)


def cells() -> tuple[Cell, ...]:
    """Cells with their chance levels."""
    return tuple(Cell(key.partition("@")[0], _level(key), 20, SWAPPED[key], "constant") for key in SUCCESS)


def _level(key: str) -> float | None:
    return float(key.partition("@")[2]) if "@" in key else None


def audit() -> list[Observation]:
    """One harmless observation."""
    return [Observation("frequency", "add", "info", 40, 80, "add has half of the rows.", "")]


def competence() -> list[Measurement]:
    """Greedy, pass@1, pass@8, and what of pass@1 depends on the prompt, of every cell, 256 samples each."""
    rows = []
    for cell in cells():
        success, swapped = SUCCESS[cell.key], SWAPPED[cell.key]
        values = {"greedy": success, "pass@1": success, "pass@8": 1 - (1 - success) ** 8, "chance": cell.chance}
        parts = {"swapped": swapped, "dependence": success - swapped, "kappa": (success - swapped) / (1 - swapped)}
        values |= {f"pass@1.{name}": value for name, value in parts.items()}
        values["pass@1.permutation"] = 0.001 if success > swapped else 0.5
        for name, value in values.items():
            low, high = max(value - 0.05, -1.0), min(value + 0.05, 1.0)
            null = cell.chance if name in ("greedy", "pass@1") else None
            rows.append(
                Measurement(
                    "competence", cell.task, name, value, low, high, 256, "share", cell.level, None, null, "constant"
                )
            )
    return rows + retention() + transfer()


def items(gain: float) -> list[Measurement]:
    """What the competence probe says of ten items of each cell; `gain` is added where answers depend on prompts."""
    rows = []
    for cell in cells():
        success = min(SUCCESS[cell.key] + gain * (SUCCESS[cell.key] > cell.chance), 1.0)
        for place in range(10):
            own = float(place < 10 * success)
            values = {"greedy": own, "pass@1": own, "chance": float(place < 10 * cell.chance)}
            values |= {f"{name}.swapped": SWAPPED[cell.key] for name in ("greedy", "pass@1")}
            where = ("share", cell.level, f"{cell.key}#{place}")
            rows += [Measurement("competence", cell.task, name, v, v, v, 8, *where) for name, v in values.items()]
    return rows


def retention() -> list[Measurement]:
    """What the retention probe says: every task's loss, and of the rarest how much a burst gained and how much is left."""

    def row(task: str, name: str, value: float, unit: str) -> Measurement:
        return Measurement("retention", task, name, value, 0.9 * value, 1.1 * value, 32, unit)

    burst = {"burst_gain": 0.8, "burst_rows": 240.0, "retained@40": 0.5, "half_life": 40.0}
    losses = {task: row(task, "loss", 2.0, "nats per token") for task in ("add", "count", "spell")}
    return [*losses.values(), *(row("spell", name, value, "as it is") for name, value in burst.items())]


def transfer() -> list[Measurement]:
    """What the transfer probe says: each task learns from its own run, and loses to runs on those after it in the list."""
    tasks, rows = ("add", "count", "spell"), []
    for first in tasks:
        rows += [(f"success after {first}", first, 0.8), ("success after all tasks together", first, 0.6)]
        for second in tasks:
            if second != first:
                lost = -0.5 if tasks.index(second) > tasks.index(first) else 0.0
                rows += [(f"change by {second}", first, lost), (f"change from {first}", second, 0.0)]
    rows += [("place in the best order", task, 3.0 - place) for place, task in enumerate(tasks)]
    rows += [("the best order less all tasks together", "*", 0.2)]
    unit = "share"
    return [Measurement("transfer", task, name, value, value - 0.05, value + 0.05, 96, unit) for name, task, value in rows]


@cache
def pool() -> Pool:
    """Twenty examples per cell."""
    every = cells()
    tasks = tuple(sorted({cell.task for cell in every}))
    cell_of = np.repeat(np.arange(len(every), dtype=np.int32), 20)
    task_of = np.array([tasks.index(every[number].task) for number in cell_of], dtype=np.int32)
    ids = tuple(f"{every[number].key}#{place}" for place, number in enumerate(cell_of))
    return Pool(ids, tasks, task_of, every, cell_of)


def scene() -> Scene:
    """A fresh scene; its ledger is fed with `feed`."""
    from mixwright.steer.ledger import Ledger

    tasks = pool().tasks
    stage = Stage("train", "grpo", 100, {task: 1 / len(tasks) for task in tasks})
    return Scene(pool(), Ledger(pool()), stage)


def feed(place: Scene, step: int) -> None:
    """What the engine does with the groups of a step: they become evidence."""
    index = {name: number for number, name in enumerate(pool().ids)}
    for group in groups(step):
        place.ledger.add(index[group.example], step, sum(group.rewards), len(group.rewards))


def losses(step: int) -> list[Outcome]:
    """Eight examples of SFT, reproducible, with falling losses; at first sight without a drop."""
    seen = [(group.example, group.task, group.level) for group in groups(step)]
    return [Outcome(*row, step, 2.0 / (1 + step), 5, 0.1 * step if step else None) for row in seen]


def pairs(step: int) -> list[PairOutcome]:
    """Eight pairs of DPO, reproducible, whose chosen answers fall while their margins grow."""
    seen = [(group.example, group.task, group.level) for group in groups(step)]
    return [PairOutcome(*row, step, 0.5, -20.0 - 3 * step, -30.0 - 9 * step, -20.0, -30.0, 0.1) for row in seen]


def groups(step: int) -> list[GroupOutcome]:
    """Eight groups of eight rollouts, reproducible, with the success of their cells; later ones short and all alike."""
    rng, degenerate = np.random.default_rng(step), step >= 6
    found = []
    for item in rng.integers(0, len(pool().ids), 8):
        cell = pool().cells[pool().cell_of[item]]
        rewards = tuple(float(win) for win in rng.random(8) < SUCCESS[cell.key])
        wrong = rng.integers(0, 2 if degenerate else 50, 8).astype(str)
        answers = tuple(str(item) if won else str(given) for won, given in zip(rewards, wrong, strict=True))
        lengths = tuple((rng.integers(2, 5, 8) if degenerate else rng.integers(8, 20, 8)).tolist())
        formats = tuple("9" if length < 5 else "9 + 9 = 9" for length in lengths)
        found.append(GroupOutcome(pool().ids[item], cell.task, cell.level, step, rewards, lengths, formats, answers))
    return found


def signals(step: int) -> list[Signals]:
    """The step's numbers, calm and alarming, with and without canaries, with and without a KL."""
    canaries = tuple(CanaryOutcome(f"add@1#{n}", "add", 1.0, step, float(step < 4), 0.02 * step) for n in range(4))
    return [
        Signals(step, groups=8),
        Signals(step, beta=0.04, kl_nats=0.3 * step, groups=8, refused=3, canaries=canaries),
    ]


def run_folder(place: Path, *, full: bool) -> RunFolder:
    """A run folder on disk: with nothing, or with corpus, audit, measurements and a plan in it."""
    from mixwright import runs
    from mixwright.catalog import create

    run = runs.RunFolder(place)
    place.mkdir(parents=True, exist_ok=True)
    if full:
        corpus().save(run.corpus)
        runs.write_json(run.audit, audit())
        runs.write_measurements(run.measurements("before"), [*competence(), *items(0.0)])
        runs.write_measurements(run.measurements("after"), [*competence(), *items(0.2)])
        runs.write_plan(run.plan, create("planners", "uniform").plan(cells(), competence(), TrainingSetup(10)))
    return run


def contents(place: Path) -> dict[str, Any]:
    """Every file of a folder with its bytes."""
    return {str(path.relative_to(place)): path.read_bytes() for path in sorted(place.rglob("*")) if path.is_file()}
