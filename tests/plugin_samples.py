"""Small made-up inputs that the contract tests feed to plug-ins: mastered, reachable, hopeless and lucky cells."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING

import numpy as np

from mixwright.contracts import Pool, Scene
from mixwright.records import (
    Cell,
    Example,
    GroupOutcome,
    Measurement,
    PairOutcome,
    SFTOutcome,
    Stage,
)

if TYPE_CHECKING:
    from mixwright.corpus import Corpus
    from mixwright.mine.choosing import TrainRows

SUCCESS_BY_CELL = {"add@1": 0.95, "add@2": 0.45, "count@1": 0.3, "spell": 0.02}
"""True success per cell in the made-up evidence."""
SWAPPED_BY_CELL = {"add@1": 0.05, "add@2": 0.05, "count@1": 0.3, "spell": 0.0}
"""Success of the cell's own answers on other prompts: count@1 does not depend on its prompts."""


def gradable_examples() -> list[Example]:
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


def minable() -> Corpus:
    """Two tasks with 48 training rows each that have targets and pairs, and eight held-out rows."""
    from mixwright.corpus import Corpus

    rows = []
    for number in range(104):
        first_digit, second_digit, split = number % 10, number // 10, "train" if number < 96 else "eval"
        task, answer = ("add", first_digit + second_digit) if number % 2 else ("times", first_digit * second_digit)
        prompt, text = f"{first_digit} {'+' if number % 2 else '*'} {second_digit} =", str(answer)
        rows.append(Example(f"m{number}", task, prompt, text, text, chosen=text, rejected="none", split=split))
    return Corpus.from_examples(rows)


def rows_to_choose(corpus: Corpus, column_names: Sequence[str]) -> TrainRows:
    """Return the training rows with these columns: vectors for `sketch` and `hidden`, texts for `form`, else numbers."""
    from mixwright.mine.choosing import train_rows

    rows, rng = train_rows(corpus), np.random.default_rng(11)
    count = len(rows.ids)
    columns = {
        name: rng.normal(size=(count, 8)) if name in ("sketch", "hidden") else rng.random(count) for name in column_names
    }
    columns |= {name: np.array(["plain"] * count, dtype=object) for name in column_names if name == "form"}
    return replace(rows, columns=columns)


def corpora() -> list[Corpus]:
    """The healthy corpus and odd ones: empty, one row, chats, no answers, everything twice, splits that share nothing."""
    from mixwright.corpus import Corpus

    chat = ({"role": "user", "content": "2 + 2 ="},)
    odd_corpora = [
        [],
        [Example("1", "one", "1 + 1 =", answer="2")],
        [Example(str(n), "chat", chat, target=({"role": "assistant", "content": "4"},)) for n in range(3)],
        [Example(f"t{n}", "text", "", target="some text " * n) for n in range(1, 4)],
        [Example(f"p{n}", "pairs", "which?", chosen="this", rejected="that", level=float(n)) for n in range(3)],
        [Example(f"{n}", "add", "1 + 1 =", answer="2", split=split) for n, split in enumerate(("train", "eval") * 4)],
        [Example("q", "add", "1 + 1 =", answer="2"), Example("p", "ask", "who?", chosen="me", rejected="no", split="eval")],
    ]
    return [corpus(), *(Corpus.from_examples(rows) for rows in odd_corpora)]


def cells() -> tuple[Cell, ...]:
    """Cells with their chance levels."""
    return tuple(Cell(key.partition("@")[0], _level(key), 20, SWAPPED_BY_CELL[key], "constant") for key in SUCCESS_BY_CELL)


def _level(key: str) -> float | None:
    return float(key.partition("@")[2]) if "@" in key else None


def competence() -> list[Measurement]:
    """Greedy, pass@1, pass@8, and what of pass@1 depends on the prompt, of every cell, 256 samples each."""
    rows = []
    for cell in cells():
        success, swapped = SUCCESS_BY_CELL[cell.key], SWAPPED_BY_CELL[cell.key]
        values = {"greedy": success, "pass@1": success, "pass@8": 1 - (1 - success) ** 8, "chance": cell.chance}
        prompt_values = {"swapped": swapped, "dependence": success - swapped, "kappa": (success - swapped) / (1 - swapped)}
        values |= {f"pass@1.{name}": value for name, value in prompt_values.items()}
        values["pass@1.permutation"] = 0.001 if success > swapped else 0.5
        for name, value in values.items():
            low, high = max(value - 0.05, -1.0), min(value + 0.05, 1.0)
            null = cell.chance if name in ("greedy", "pass@1") else None
            rows.append(
                Measurement("competence", cell.task, name, value, low, high, 256, "share", cell.level, null, "constant")
            )
    return rows


@cache
def pool() -> Pool:
    """Twenty examples per cell."""
    all_cells = cells()
    tasks = tuple(sorted({cell.task for cell in all_cells}))
    cell_of = np.repeat(np.arange(len(all_cells), dtype=np.int32), 20)
    task_of = np.array([tasks.index(all_cells[cell_index].task) for cell_index in cell_of], dtype=np.int32)
    ids = tuple(f"{all_cells[cell_index].key}#{item_index}" for item_index, cell_index in enumerate(cell_of))
    return Pool(ids, tasks, task_of, all_cells, cell_of)


def scene() -> Scene:
    """A fresh scene; its ledger is fed with `feed`."""
    from mixwright.steer.ledger import Ledger

    tasks = pool().tasks
    stage = Stage("train", "grpo", 100, {task: 1 / len(tasks) for task in tasks})
    return Scene(pool(), Ledger(pool()), stage)


def feed(scene: Scene, step: int) -> None:
    """What the engine does with the groups of a step: they become evidence."""
    index_by_id = {name: item_index for item_index, name in enumerate(pool().ids)}
    for group in groups(step):
        scene.ledger.add(index_by_id[group.example], step, sum(group.rewards), len(group.rewards))


def losses(step: int) -> list[SFTOutcome]:
    """Eight examples of SFT, reproducible, with falling losses; at step 0, where each is new, no drop is known."""
    labels = [(group.example, group.task, group.level) for group in groups(step)]
    return [SFTOutcome(*row, step, 2.0 / (1 + step), 5) for row in labels]


def pairs(step: int) -> list[PairOutcome]:
    """Eight pairs of DPO, reproducible, whose chosen answers fall while their margins grow."""
    labels = [(group.example, group.task, group.level) for group in groups(step)]
    return [PairOutcome(*row, step, -20.0 - 3 * step, -30.0 - 9 * step, -20.0, -30.0, 0.1) for row in labels]


def groups(step: int) -> list[GroupOutcome]:
    """Eight groups of eight rollouts, reproducible, with the success of their cells; later ones all alike."""
    rng, is_degenerate = np.random.default_rng(step), step >= 6
    outcomes = []
    for item_index in rng.integers(0, len(pool().ids), 8):
        cell = pool().cells[pool().cell_of[item_index]]
        rewards = tuple(float(is_win) for is_win in rng.random(8) < SUCCESS_BY_CELL[cell.key])
        wrong_answers = rng.integers(0, 2 if is_degenerate else 50, 8).astype(str)
        answers = tuple(
            str(item_index) if is_right else str(wrong_answer)
            for is_right, wrong_answer in zip(rewards, wrong_answers, strict=True)
        )
        outcome_fields = (rewards, answers, rewards)  # right or wrong: each reward is its success
        outcomes.append(GroupOutcome(pool().ids[item_index], cell.task, cell.level, step, *outcome_fields))
    return outcomes
