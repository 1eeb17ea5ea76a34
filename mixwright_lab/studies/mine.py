"""Study of mining: what `mixwright mine --try` recommends where each miner's source says it helps, and where not.

Every miner has cases, data made so that the rows it looks for matter, or do not. One command is run
as a user runs it: it scans, mines, measures, plans, and trains the arms frozen, all, random_like and mined from the same
model with the same steps, eight times each. What it says is held against what the case was made for. Effects are those of
the trial, mean success over all held-out items, mined against each reference, paired by seed.

`REPEATED` are drawn ten times in their first two cases; the others once. Nothing is chosen on these draws: cases were
tuned on seeds from 100 on. A draw that is done is kept by the code of this file (`jobs.py`), so that a study that was
interrupted goes on.

- `influence`: few trusted rows, and a pool of which half follows another convention, or none. A row is a number of five
  digits from 0 to 4 and the digit that a table has for its last two; every second scraped row, where another convention is
  in the pool, is of another table for its first two, in the same words. Twelve trusted rows hold less than half of the 25
  entries. The starting model had SFT on both kinds, as the source's warm-up. Held out are rows like the trusted ones. In
  the last case the answer is the last of four digits (first, in the other convention) and 160 rows are trusted: whoever
  has learnt both conventions needs a few rows to choose one.
- `pruning`: a row names the last of four digits; two fifths of the labels, or none, are wrong: the first one. Held out are
  right rows alone. The starting model had a short SFT on 600 other rows, all of them right.
- `frontier`: two answers to each prompt, both in reach of the student or one beyond it. A prompt lists six digits below 5,
  and the answer is their sum modulo 5. A worked answer writes the running sum after each digit; a brief one only the end.
  The starting model had a short SFT in both forms of the case on prompts with two or three digits other than 0, so that no
  form is foreign to it, and it knows the single steps.
- `self_edits`: a model of four-letter names has learnt two ways to ask for a colour, of names it knows. New names come in
  entries of a register, a form that it has never read. A third of them are asked for in reward questions, the others in
  held-out ones. In the second case the facts come as answers to the other question, a form that the model knows: there is
  nothing to gain.
"""

from __future__ import annotations

import itertools
import json
import os
import random
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mixwright.estimates.intervals import share_interval
from mixwright.records import TrialResult, to_data
from mixwright.run.folder import RunFolder, read_json, yaml_text
from mixwright_lab.studies.jobs import load_or_make, run_in_processes
from mixwright_lab.studies.report import Goal, Result, run

Row = dict[str, str]


@dataclass(frozen=True)
class Case:
    """Data and settings, drawn anew for each seed."""

    name: str
    miner: str
    helps: bool
    """Whether the source says that the miner's rows beat as many random ones here."""
    why: str
    """One sentence: what is in the data."""
    write: Callable[[Path, int], Path]
    """Writes rows and run.yaml into a folder for a seed, returns the path of run.yaml; its trial has 8 seeds or more."""


def write_case(
    folder: Path,
    seed: int,
    rows: Mapping[str, Sequence[Row]],
    *,
    model: Mapping[str, Any],
    warmup: Mapping[str, Any],
    measure: Mapping[str, Any],
    mine: Mapping[str, Any],
    train: Mapping[str, Any],
    grader: str = "exact",
) -> Path:
    """Write rows and run.yaml, whose path is returned.

    Args:
        folder: where they go.
        seed: of the run.
        rows: file without suffix -> its rows; `train` and `held` are the two splits.
        model: settings of the tiny model beside those that all cases share; so are the next ones of their sections.
        warmup: of the starting model.
        measure: of measuring.
        mine: options of the miner, by its name.
        train: of the trial's training.
        grader: of all rows.
    """
    for name, own in rows.items():
        (folder / f"{name}.jsonl").write_text("\n".join(map(json.dumps, own)) + "\n", encoding="utf-8")
    settings = {
        "corpus": {"train": "train.jsonl", "eval": "held.jsonl", "grader": grader},
        "model": {"path": "tiny:", "depth": 2, "heads": 2, **model, "warmup": {"batch_size": 32, **warmup}},
        "measure": {"samples": 1, "probes": ["competence"], **measure},
        "mine": {"options": mine},
        "plan": {"planner": "proportional"},
        "train": {"objective": "sft", "prompts": 16, **train},
        "trial": {"seeds": 8, "workers": 1},
        "seed": seed,
    }
    path = folder / "run.yaml"
    path.write_text(yaml_text(settings), encoding="utf-8")
    return path


SMALL = {"width": 32, "vocabulary": 264}
"""The tiny model of most cases."""

CONVENTION_HELD_OUT = 100


def write_tables(folder: Path, seed: int, *, other: bool) -> Path:
    """Numbers and the digit of their last two digits, or of their first two in the other convention."""
    rng = random.Random(f"influence {seed}")
    last = {"".join(key): str(rng.randrange(10)) for key in itertools.product("01234", repeat=2)}
    first = {key: str(rng.randrange(10)) for key in last}
    everything = ["".join(digits) for digits in itertools.product("01234", repeat=5)]
    numbers = rng.sample(everything, CONVENTION_HELD_OUT + 12 + 1500)

    def answer(number: str, trusted: bool) -> str:
        return last[number[-2:]] if trusted else first[number[:2]]

    return _write_conventions(folder, seed, numbers, 12, answer, rng, other=other, warmup=3000, steps=200)


def write_digits(folder: Path, seed: int) -> Path:
    """Numbers whose last digit, or first one, is the answer; writes rows and settings, returns the path of run.yaml."""
    rng = random.Random(f"influence {seed}")
    numbers = [f"{number:04d}" for number in rng.sample(range(10_000), CONVENTION_HELD_OUT + 160 + 1200)]

    def answer(number: str, trusted: bool) -> str:
        return number[-1 if trusted else 0]

    return _write_conventions(folder, seed, numbers, 160, answer, rng, other=True, warmup=150, steps=40)


def _write_conventions(
    folder: Path,
    seed: int,
    numbers: Sequence[str],
    trusted: int,
    answer: Callable[[str, bool], str],
    rng: random.Random,
    *,
    other: bool,
    warmup: int,
    steps: int,
) -> Path:
    """Write a case of `influence`. No number is in two rows; the held-out ones come first, then the trusted ones."""

    def row(number: str, right: bool, task: str) -> Row:
        said = answer(number, right)
        return {"prompt": f"{number} = ", "target": said, "answer": said, "task": task}

    held, rest = numbers[:CONVENTION_HELD_OUT], numbers[CONVENTION_HELD_OUT:]
    train = [row(number, True, "trusted") for number in rest[:trusted]]
    train += [row(number, not (other and at % 2), "scraped") for at, number in enumerate(rest[trusted:])]
    rng.shuffle(train)
    return write_case(
        folder,
        seed,
        {"train": train, "held": [row(number, True, "trusted") for number in held]},
        model=SMALL,
        warmup={"steps": warmup, "learning_rate": 5e-3},
        measure={"items": CONVENTION_HELD_OUT, "max_new_tokens": 2, "decoding": "greedy"},
        mine={"influence": {"targets": ["trusted"], "shots": 40, "keep": 0.25}},
        train={"steps": steps, "learning_rate": 5e-3},
    )


LABELLED, LABELLED_HELD_OUT, LABELLED_WARM = 1200, 100, 600


def write_labels(folder: Path, seed: int, *, noise: float) -> Path:
    """Write a case of `pruning`. No number is in two rows."""
    rng = random.Random(f"pruning {seed}")
    numbers = [f"{number:04d}" for number in rng.sample(range(10_000), LABELLED_HELD_OUT + LABELLED + LABELLED_WARM)]
    held, rest = numbers[:LABELLED_HELD_OUT], numbers[LABELLED_HELD_OUT:]
    trained, known = rest[:LABELLED], rest[LABELLED:]
    labels = [number[0 if rng.random() < noise else 3] for number in trained]
    parts = {"train": list(zip(trained, labels, strict=True))}
    parts |= {name: [(number, number[3]) for number in own] for name, own in (("held", held), ("known", known))}
    return write_case(
        folder,
        seed,
        {name: [{"prompt": f"{n} = ", "target": label, "answer": label} for n, label in own] for name, own in parts.items()},
        model=SMALL,
        warmup={"steps": 45, "learning_rate": 5e-3, "source": "known.jsonl"},
        measure={"items": LABELLED_HELD_OUT, "max_new_tokens": 2},
        mine={"pruning": {"keep": 0.5, "steps": 40, "runs": 5, "batch": 16, "learning_rate": 2e-3}},
        train={"steps": 60, "learning_rate": 5e-3},
    )


BASE, LENGTH, SUMS, SUMS_HELD_OUT, SUMS_WARM = 5, 6, 400, 50, 1500
WARM_UP = {"brief": (220, 2), "other words": (80, 1)}
"""Second source -> steps of the warm-up, and its rows in it to one of the first: a model that sees the steps in every row
needs fewer steps to know them as well, and one that would answer in full before training has nothing to learn."""
FORMS = {"worked": (True, "####"), "other words": (True, "Answer:"), "brief": (False, "####")}
"""Source -> whether it writes the running sums, and what stands before the answer."""


def write_sums(folder: Path, seed: int, sources: tuple[str, str]) -> Path:
    """Write a case of `frontier`. No prompt is in both splits, or in the warm-up."""
    rng = random.Random(f"frontier {seed}")
    prompts: set[tuple[int, ...]] = set()
    while len(prompts) < SUMS + SUMS_HELD_OUT:
        prompts.add(tuple(rng.randrange(BASE) for _ in range(LENGTH)))
    order = rng.sample(sorted(prompts), len(prompts))
    train = [_sum(digits, source) for digits in order[:SUMS] for source in sources]
    rng.shuffle(train)
    steps, times = WARM_UP[sources[1]]
    warm = [_sum(_sparse(rng), source) for _ in range(SUMS_WARM) for source in (sources[0], *sources[1:] * times)]
    return write_case(
        folder,
        seed,
        {"train": train, "warm": warm, "held": [_sum(digits, sources[0]) for digits in order[SUMS:]]},
        model=SMALL,
        warmup={"steps": steps, "batch_size": 64, "learning_rate": 5e-3, "source": "warm.jsonl"},
        measure={"items": SUMS_HELD_OUT, "max_new_tokens": 18, "decoding": "greedy"},
        mine={"frontier": {"learning_rate": 3e-3}},
        train={"steps": 32, "learning_rate": 3e-3},
        grader="final_answer",
    )


def _sparse(rng: random.Random) -> tuple[int, ...]:
    """Digits of which two or three at most are not 0."""
    kept = rng.sample(range(LENGTH), rng.choice((2, 3)))
    return tuple(rng.randrange(BASE) if place in kept else 0 for place in range(LENGTH))


def _sum(digits: tuple[int, ...], source: str) -> Row:
    sums = [sum(digits[: place + 1]) % BASE for place in range(len(digits))]
    worked, mark = FORMS[source]
    steps = "".join(map(str, sums)) + " " if worked else ""
    row = {"prompt": "".join(map(str, digits)) + "=", "target": f"{steps}{mark} {sums[-1]}", "answer": str(sums[-1])}
    return {**row, "task": "sums", "source": source}


KNOWN, SHOWN, NEW, ASKED = 240, 40, 96, 32
"""Names that the model knows, those of them in the data, new ones, and new ones that reward questions ask for."""
COLOURS = ("red", "blue", "green", "black", "white", "pink", "grey", "gold")
ENTRY, FIRST, SECOND = "<reg {value} | {name} >", "what is {name}? ", "{name} has the colour "
"""An entry of the register, and the beginnings of two questions."""


def write_names(folder: Path, seed: int, *, native: bool) -> Path:
    """Write a case of `self_edits`."""
    rng = random.Random(f"self_edits {seed}")
    letters = [rng.sample("abcdefghijklmnopqrstuvwxyz", 4) for _ in range(3 * (KNOWN + NEW))]
    names = list(dict.fromkeys("".join(own) for own in letters))[: KNOWN + NEW]
    facts = {name: rng.choice(COLOURS) for name in names}
    known, new = names[:KNOWN], names[KNOWN:]
    warm = [_fact("known", form, name, facts) for name in known[SHOWN:] for form in (FIRST, SECOND)]
    train = [_fact("known", form, name, facts) for name in known[:SHOWN] for form in (FIRST, SECOND)]
    train += [_fact("news", FIRST if native else None, name, facts) for name in new]
    train += [_fact("asked", SECOND, name, facts) for name in new[:ASKED]]
    rng.shuffle(train)
    edits = {"facts": "news", "questions": "asked", "protected": ["known"], "templates": ["reg:  => " + ENTRY]}
    edits["pattern"] = FIRST + "{value}" if native else ENTRY
    short = {"steps": 40, "runs": 4, "batch": 16, "learning_rate": 3e-3, "rank": 0}
    return write_case(
        folder,
        seed,
        {"warm": warm, "train": train, "held": [_fact("known", SECOND, name, facts) for name in new[ASKED:]]},
        model={"width": 48, "vocabulary": 300},
        warmup={"steps": 500, "learning_rate": 5e-3, "source": "warm.jsonl"},
        measure={"items": NEW - ASKED, "max_new_tokens": 4, "decoding": "greedy"},
        mine={"self_edits": edits | short},
        train={"steps": 60, "prompts": 24, "learning_rate": 3e-3},
    )


def _fact(task: str, form: str | None, name: str, facts: Mapping[str, str]) -> Row:
    colour = facts[name]
    prompt, target = ("reg: ", ENTRY.format(name=name, value=colour)) if form is None else (form.format(name=name), colour)
    return {"prompt": prompt, "target": target, "answer": target, "task": task}


CASES: tuple[Case, ...] = (
    Case(
        "influence, half of the pool under another convention",
        "influence",
        True,
        "Every second scraped row is of another table, in the same words; trusted rows hold less than half of theirs.",
        lambda folder, seed: write_tables(folder, seed, other=True),
    ),
    Case(
        "influence, all of the pool under one convention",
        "influence",
        False,
        "Every scraped row is right and of one kind, so that it cannot matter which of them are taken.",
        lambda folder, seed: write_tables(folder, seed, other=False),
    ),
    Case(
        "influence, trusted rows that are enough by themselves",
        "influence",
        False,
        "The model knows both conventions, and 160 trusted rows say which one is meant: the simple rule has all there is.",
        write_digits,
    ),
    Case(
        "pruning, two fifths of the labels wrong",
        "pruning",
        True,
        "A wrong label is hard for a model that has seen the others, so that the easy end has fewer of them.",
        lambda folder, seed: write_labels(folder, seed, noise=0.4),
    ),
    Case(
        "pruning, no label wrong",
        "pruning",
        False,
        "All rows say the same thing and are about equally hard.",
        lambda folder, seed: write_labels(folder, seed, noise=0.0),
    ),
    Case(
        "frontier, one source beyond the student",
        "frontier",
        True,
        "Half of the answers leave out all steps, which a model of this size does not learn in so few.",
        lambda folder, seed: write_sums(folder, seed, ("worked", "brief")),
    ),
    Case(
        "frontier, both sources in reach",
        "frontier",
        False,
        "All answers have every step, half of them with another word before the end: which are taken cannot matter.",
        lambda folder, seed: write_sums(folder, seed, ("worked", "other words")),
    ),
    Case(
        "self_edits, new facts in a form that the model does not know",
        "self_edits",
        True,
        "New facts stand in entries of a register; the model knows two other forms, and is asked in one of them.",
        lambda folder, seed: write_names(folder, seed, native=False),
    ),
    Case(
        "self_edits, new facts in a form that the model knows",
        "self_edits",
        False,
        "New facts are answers to a question that the model knows, so that there is no better form to be found.",
        lambda folder, seed: write_names(folder, seed, native=True),
    ),
)
REPEATED, CASE_REPEATS = ("influence", "frontier"), 10
"""Miners whose first two cases are drawn so many times."""


def tried(case: Case, folder: Path, seed: int, log: Path) -> dict[str, Any]:
    """What `mixwright mine --try` says of one draw of a case: advice, sentence, effects, price, CPU seconds.

    Raises:
        RuntimeError: the command failed.
    """
    settings = case.write(folder, seed)
    before = os.times()
    command = [sys.executable, "-m", "mixwright", "mine", str(settings), "--miner", case.miner, "--try"]
    with log.open("w", encoding="utf-8") as out:
        done = subprocess.run(command, stdout=out, stderr=subprocess.STDOUT, check=False, cwd=folder)
    after = os.times()
    if done.returncode:
        raise RuntimeError(f"{case.name}, seed {seed}: {log.read_text(encoding='utf-8')[-2000:]}")
    spent = after.children_user + after.children_system - before.children_user - before.children_system
    run = next(path.parent for path in sorted(folder.rglob("rows.parquet")) if path.parent.name == "corpus").parent
    return {
        "case": case.name,
        "miner": case.miner,
        "seed": seed,
        "cpu_seconds": round(spent, 1),
        **_advice_and_effects(RunFolder(run), case),
    }


def _advice_and_effects(run: RunFolder, case: Case) -> dict[str, Any]:
    """Advice and every effect of the mined rows; where the miner kept all rows nothing was tried."""
    mined = json.loads((run.path / "mine" / f"{case.miner}.json").read_text(encoding="utf-8"))
    if not run.result.is_file():
        advice = {"advice": "keep all rows", "sentence": "The miner keeps all rows: there is no choice to try."}
        return {"selection": advice, "effects": [], "notes": mined["notes"]}
    result = read_json(run.result, TrialResult)
    effects = [to_data(effect) for effect in result.effects if effect.arm == "mined"]
    return {"selection": to_data(result.selection), "effects": effects, "notes": mined["notes"]}


@dataclass(frozen=True)
class Job:
    """One draw of one case."""

    case: int
    """Place in `CASES`."""
    seed: int


def try_one(job: Job) -> dict[str, Any]:
    """One draw, in a folder of its own, or as it was kept."""
    case = CASES[job.case]
    return load_or_make(Path(__file__), f"{case.name} {job.seed}", lambda: _drawn(case, job.seed))


def _drawn(case: Case, seed: int) -> dict[str, Any]:
    with tempfile.TemporaryDirectory(prefix="mixwright-case-") as folder:
        told = tried(case, Path(folder), seed, Path(folder) / "log.txt")
    advice = told["selection"]["advice"]
    return {**told, "helps": case.helps, "why": case.why, "recommended": advice in ("train on it", "fewer rows do")}


def measure(quick: bool) -> Result:
    """All cases once, and the first two of some miners ten times."""
    often = [place for name in REPEATED for place in [at for at, case in enumerate(CASES) if case.miner == name][:2]]
    draws = [(place, CASE_REPEATS if place in often and not quick else 1) for place in range(len(CASES))]
    jobs = [Job(place, seed * 37) for place, times in draws for seed in range(times)]
    rows = run_in_processes(try_one, jobs, say="case")
    right = [row["recommended"] == row["helps"] for row in rows]
    share = share_interval(sum(right), len(right))
    words = ((True, "recommends"), (False, "refuses"))
    goals = [_goal(miner, word, rows, helps) for miner in REPEATED for helps, word in words]
    return Result(share, "share of draws with the right recommendation", [0], rows, {}, {"times": CASE_REPEATS}, goals=goals)


def _goal(miner: str, word: str, rows: list[dict[str, Any]], helps: bool) -> Goal:
    case = next(case.name for case in CASES if case.miner == miner and case.helps == helps)
    own = [row for row in rows if row["case"] == case]
    share = share_interval(sum(row["recommended"] == helps for row in own), len(own))
    return Goal.at_least(f"{miner}: {word} in draws of the case made for it", share, 0.9)


if __name__ == "__main__":
    run("mine", __doc__, measure)
