"""Study of general replay: does a tenth of the model's own answers to the suite's requests keep what nobody named?

SmolLM2-135M-Instruct learns one of three new tasks (tool calls; queue codes and hire-book entries, both by authors who had
not seen the suite) with LoRA. Every arm sees the same 320 draws of new rows, 16 rows a step; replay comes on top, so that
steps are equal on new rows:

- `new rows`; `marked`, the same with a system message of their own, in training and in the test;
- `26 kinds, 10 %` and `26 kinds, 25 %`: own greedy answers to the suite's requests;
- `chat 10 %`: own answers to public chat prompts (seed tasks of Self-Instruct); `tested 10 %`: own answers to other prompts
  of the tasks that are tested, sealed ones included;
- `control`: as many steps as `26 kinds, 10 %`, on own answers to the chat prompts alone, which should harm nothing;
- `5 families` and `10 families`: `26 kinds, 10 %` with as many rows of fewer kinds, two seeds of the first world;
- `divergence`: `new rows` and, at every step, a penalty on the divergence from the start on the replay of `26 kinds, 10 %`,
  whose answers are not trained on; once.

Seed 211 was run first, with requests of 16 kinds of short answers (arms `general`): a tenth kept less than as many chat rows
did. So ten kinds of open-ended requests were written, by an author who had seen neither the suite nor the tests, and a tenth
and a quarter were tried on seed 3. Neither seed decides; goals and seeds were committed before the others were run.

Read are the new task; families of the suite that are replayed, and sealed ones, at the rungs that suit the model; tasks in
neither (companies of a public set, eight kinds by an author who had not seen the suite); 60 open requests of six
kinds, for their form alone. `kept` is the share of answers that were right before and still are; `foreign` the share of
answers to other tasks in the format of the new one.

Source: the pilot in the log of decisions; self-generated rehearsal (2402.13669, SSR 2403.01244).
Unit: one training.
Cost: three minutes of one thread for a training, and one for its answers.
Blind spot: one model of 135M parameters that knows little; LoRA; greedy answers of 32 tokens.

    MIXWRIGHT_PUBLIC=FOLDER python -m mixwright_lab.studies.general [--quick] [--report]
"""

from __future__ import annotations

import json
import os
import random
import re
import statistics
import sys
import tempfile
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

from mixwright.records import Interval
from mixwright.suite.draw import (
    FAMILIES,
    OPEN_FAMILIES,
    REPLAYED,
    SEALED_FAMILIES,
    draw_items,
    draw_to_compare,
    read_requests,
)
from mixwright_lab.conditions import conditions
from mixwright_lab.demo.training import Training, fine_tune
from mixwright_lab.studies.everyday import label_errands, tool_calls, work_out_change
from mixwright_lab.studies.jobs import append_row, read_rows, run_in_processes, write_rows
from mixwright_lab.studies.public_sets import read_chat, read_pairs
from mixwright_lab.studies.report import RESULTS, Goal, Result, interval, rounded, run

MODEL, SEEDS, QUICK = "smollm2", (223, 227, 229, 233, 239), (3,)
DATA = Path(__file__).parent / "general_data"
ROWS_FILE, PLACE = RESULTS / "general.rows.jsonl", Path("runs") / "general"
TRAINING = Training()
NEW_DRAWS = TRAINING.steps * TRAINING.batch
ROOM, OWN_ANSWER_TOKENS, AT_ONCE = 32, 96, 2
ITEMS = {"new": 40, "open": 60, "sealed": 100, "public": 30, "known": 25, "blind": 8}
"""Items: of the new task, of each ring of the suite, of the public task, and of each kind by another author: of those that
the model half knew on a seed of tuning, and of the others."""
PUBLIC = {"companies": (Path("product-company.json"), "Which company makes {}?")}
KNOWN_KINDS = ("category", "first_word", "yesno")
WORLDS = {
    "tools": (r"\s*\{\s*\"tool", "Turn the request into a call of a tool."),
    "queues": (r"\s*\{\s*\"queue", (DATA / "queues.system.txt").read_text(encoding="utf-8").strip()),
    "hire": (r"\s*(?:HIRE|RETURN|EXTEND|CANCEL) ", (DATA / "hire.system.txt").read_text(encoding="utf-8").strip()),
}
"""New task -> how its answers begin, and the system message of the arm `marked`."""
NEW_TASKS = {"tools": tool_calls, "terse": label_errands, "worked": work_out_change}
"""New task -> what draws its rows; those of others stand in a file. The last two are of the study `remedies`."""
BEFORE, NEW, MARKED, GENERAL, MORE, CHAT, TESTED, CONTROL, DIVERGENCE = (
    "before",
    "new rows",
    "marked",
    "26 kinds, 10 %",
    "26 kinds, 25 %",
    "chat 10 %",
    "tested 10 %",
    "control",
    "divergence",
)
SHARES = {GENERAL: 0.10, MORE: 0.25, CHAT: 0.10, TESTED: 0.10, "5 families": 0.10, "10 families": 0.10}
"""Arm -> share of replay in all rows."""
FEWER = {"5 families": 5, "10 families": 10}
WAVES = (
    ((*WORLDS,), SEEDS[:3], (BEFORE, NEW, MARKED, MORE, GENERAL, CONTROL)),
    ((*WORLDS,), SEEDS[:3], (CHAT, TESTED)),
    (("tools",), SEEDS[:2], (*FEWER,)),
    (("tools",), SEEDS[:1], (DIVERGENCE,)),
    ((*WORLDS,), SEEDS[3:], (BEFORE, NEW, MARKED, GENERAL, CONTROL)),
    ((*WORLDS,), SEEDS[3:], (MORE,)),
)
"""Worlds, seeds and arms, in the order in which they run."""
PENALTY = 1.0
"""Nats of divergence a token, as much as of loss."""
READINGS = ("sealed", "neither")
MOST_LOSS, MOST_NEW_LOSS, MOST_FOREIGN, MOST_UNDER_TESTED = 5.0, 2.0, 5.0, 5.0


def settings() -> dict[str, Any]:
    """Return what has to be the same for rows to stand in one table."""
    return {"steps": TRAINING.steps, "rate": TRAINING.learning_rate, "items": ITEMS, "room": ROOM, "rungs": rungs()}


@cache
def rungs() -> dict[str, list[int]]:
    """Read the rungs that suit the model: chosen by `choose_rungs` before the first training, and kept."""
    return json.loads((DATA / "rungs.json").read_text(encoding="utf-8"))


def as_messages(prompt: str | list[dict[str, str]], system: str = "") -> list[dict[str, str]]:
    """Write a prompt as messages."""
    messages = [{"role": "user", "content": prompt}] if isinstance(prompt, str) else prompt
    return [{"role": "system", "content": system}, *messages] if system else messages


def new_rows(world: str, seed: int) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Training rows and test items of a new task, in random order."""
    rng = random.Random(seed)
    if world in NEW_TASKS:
        train, test = NEW_TASKS[world](rng)
        return (
            [{"task": "new", "prompt": prompt, "completion": answer} for prompt, answer in train],
            [{"task": "new", "prompt": prompt, "answer": answer} for prompt, answer in test[: ITEMS["new"]]],
        )
    rows = read_rows(DATA / f"{world}.jsonl")
    train, test = ([row for row in rows if row["split"] == split] for split in ("train", "test"))
    test = [{"task": "new", "prompt": row["prompt"], "answer": row["completion"]} for row in test]
    return rng.sample(train, len(train)), rng.sample(test, ITEMS["new"])


def test_items(seed: int) -> list[dict[str, Any]]:
    """Draw the items that are no new task's, each with its ring."""
    rng, found = random.Random(seed), list[dict[str, Any]]()
    suite = draw_to_compare(rungs(), seed=seed)
    for ring, families in (("open", OPEN_FAMILIES), ("sealed", SEALED_FAMILIES)):
        names = [family.name for family in families if family.name in rungs()]
        for name in names:
            own = [row for row in suite if row["task"] == name]
            found += [row | {"ring": ring} for row in rng.sample(own, min(len(own), ITEMS[ring] // len(names)))]
    for task, (file, form) in PUBLIC.items():
        pairs = read_pairs(Path(os.environ["MIXWRIGHT_PUBLIC"]) / file, task, form)
        found += [row | {"ring": "neither"} for row in rng.sample(pairs, ITEMS["public"])]
    blind = [row for row in read_rows(DATA / "blind.jsonl") if row["split"] == "test"]
    for task in sorted({row["task"] for row in blind}):
        own = [row for row in blind if row["task"] == task]
        found += [row | {"ring": "neither"} for row in rng.sample(own, ITEMS["known" if task in KNOWN_KINDS else "blind"])]
    found += [row | {"ring": "asked"} for row in read_rows(DATA / "requests.jsonl")]
    return [row | {"id": f"{row['ring']}-{number}"} for number, row in enumerate(found)]


def prompts_to_answer(source: str) -> list[dict[str, Any]]:
    """List the prompts of one source of replay, each with its kind."""
    if source == CHAT:
        chat = read_chat(Path(os.environ["MIXWRIGHT_PUBLIC"]))
        return [{"task": "chat", "prompt": as_messages(row["prompt"])} for row in chat]
    if source == GENERAL:
        return [{"task": kind, "prompt": as_messages(row["prompt"])} for kind in REPLAYED for row in read_requests(kind)]
    rows = [row for row in read_rows(DATA / "blind.jsonl") if row["split"] == "requests"]
    sealed = {name: numbers for name, numbers in rungs().items() if name in {family.name for family in SEALED_FAMILIES}}
    rows += draw_items(SEALED_FAMILIES, per_rung=12, seed=1, rungs=sealed)
    for task, (file, form) in PUBLIC.items():
        pairs = read_pairs(Path(os.environ["MIXWRIGHT_PUBLIC"]) / file, task, form)
        rows += random.Random(1).sample(pairs, 12)
    return [{"task": row["task"], "prompt": as_messages(row["prompt"])} for row in rows]


def own_answers(source: str) -> list[dict[str, Any]]:
    """Read the model's own answers to the prompts of a source: written once, since another CPU may round to others."""
    from mixwright.config import CorpusConfig
    from mixwright.corpus import read_corpus
    from mixwright.learner.load import load_learner
    from mixwright.mine.own_answers import rehearsal_rows

    path = RESULTS / f"general.own-{source.split()[0]}.jsonl"
    if not path.is_file():
        asked = write_rows(PLACE / f"asked-{source.split()[0]}.jsonl", prompts_to_answer(source))
        first = {"task": "new", "prompt": as_messages("-"), "completion": "-"}
        train = write_rows(PLACE / "first.jsonl", [first])
        corpus = read_corpus(CorpusConfig(str(train), eval_share=0.0, rehearse=str(asked)))
        made = rehearsal_rows(corpus, lambda: load_learner(MODEL), max_new_tokens=OWN_ANSWER_TOKENS)
        print("\n".join(made.notes), file=sys.stderr)
        plain = [{"task": row.task, "prompt": list(row.prompt or ()), "completion": str(row.target)} for row in made.rows]
        write_rows(path, plain)
    return read_rows(path)


def drawn(rows: Sequence[dict[str, Any]], count: int, rng: random.Random) -> list[dict[str, Any]]:
    """Draw so many rows: none comes a second time before all have come as often."""
    found: list[dict[str, Any]] = []
    while len(found) < count:
        found += rng.sample(list(rows), min(len(rows), count - len(found)))
    return found


def rows_of(world: str, seed: int, arm: str, *, system: str = "", replay_only: bool = False) -> list[dict[str, Any]]:
    """Draw the rows that an arm trains on, each once; or those of its replay alone.

    Args:
        world: the new task.
        seed: of the draw.
        arm: what stands beside the new rows.
        system: message of the new rows in the arm `marked`; empty takes the one of `WORLDS`.
        replay_only: leave the new rows out.
    """
    rng = random.Random(f"{world} {seed}")
    share = SHARES.get(arm, SHARES[GENERAL] if arm == CONTROL else 0.0)
    extra = round(NEW_DRAWS * share / (1 - share))
    if arm == CONTROL:
        return drawn(own_answers(CHAT), NEW_DRAWS + extra, rng)
    mark = (system or WORLDS[world][1]) if arm == MARKED else ""
    new = [row | {"prompt": as_messages(row["prompt"], mark)} for row in drawn(new_rows(world, seed)[0], NEW_DRAWS, rng)]
    replay = own_answers(arm if arm in (CHAT, TESTED) else GENERAL) if extra else []
    if arm in FEWER:
        kinds = rng.sample(sorted({row["task"] for row in replay}), FEWER[arm])
        replay = [row for row in replay if row["task"] in kinds]
    rows = [*([] if replay_only else new), *by_kind(replay, extra, rng)]
    return [{name: row[name] for name in ("task", "prompt", "completion")} for row in rng.sample(rows, len(rows))]


def by_kind(rows: Sequence[dict[str, Any]], count: int, rng: random.Random) -> list[dict[str, Any]]:
    """Draw so many rows, kinds alike."""
    kinds = sorted({row["task"] for row in rows})
    order = [rng.sample(own, len(own)) for kind in kinds if (own := [row for row in rows if row["task"] == kind])]
    return [order[number % len(order)][number // len(order) % len(order[number % len(order)])] for number in range(count)]


@dataclass(frozen=True)
class GeneralJob:
    """One training and its answers; `before` is no training."""

    world: str
    seed: int
    arm: str
    quick: bool = False


def make_model(job: GeneralJob, folder: Path) -> int:
    """Train and save the adapter of a job in a folder; returns the steps."""
    rows = rows_of(job.world, job.seed, job.arm)
    how = replace(TRAINING, steps=2 if job.quick else -(-len(rows) // TRAINING.batch))
    replay = rows_of(job.world, job.seed, GENERAL, replay_only=True) if job.arm == DIVERGENCE else []
    given = {"held_near": write_rows(folder / "near.jsonl", replay), "penalty": PENALTY} if replay else {}
    fine_tune(
        MODEL,
        write_rows(folder / "rows.jsonl", rows),
        folder,
        how,
        seed=job.seed,
        at_once=None if given else AT_ONCE,
        **given,
    )
    return how.steps


def do_job(job: GeneralJob) -> None:
    """Train, ask, and append a row: answers are [ring, task, item, score, foreign, completion]."""
    from mixwright.learner.load import load_learner

    with tempfile.TemporaryDirectory() as name:
        folder, steps = Path(name), 0
        source = MODEL if job.arm == BEFORE else str(folder / "model")
        if job.arm != BEFORE:
            steps = make_model(job, folder / "model")
        items = test_items(job.seed)
        mark = WORLDS[job.world][1] if job.arm == MARKED else ""
        new = [row | {"prompt": as_messages(row["prompt"], mark)} for row in new_rows(job.world, job.seed)[1]]
        items += [row | {"ring": "new", "id": f"new-{number}"} for number, row in enumerate(new)]
        items = items[:: 12 if job.quick else 1]
        answers = answer(load_learner(source), items, folder, re.compile(WORLDS[job.world][0]))
    row = {"world": job.world, "seed": job.seed, "arm": job.arm, "settings": settings(), "commit": conditions()["commit"]}
    append_row(PLACE / "quick.jsonl" if job.quick else ROWS_FILE, row | {"steps": steps, "answers": answers})


def answer(
    learner: Any,
    items: Sequence[dict[str, Any]],
    folder: Path,
    foreign: re.Pattern[str],
    *,
    room: int = ROOM,
    grader: str = "exact",
) -> list[list[Any]]:
    """Answer the items greedily and grade those that have a gold answer, those of the new task by a grader of its own."""
    from mixwright.config import CorpusConfig
    from mixwright.corpus import read_corpus

    prompts = [tuple(as_messages(item["prompt"])) for item in items]
    texts = learner.sample(prompts, count=1, temperature=0, max_new_tokens=room, seed=0)
    graded = [
        {"id": f"{item['id']}/{number}", "task": item["task"], "prompt": as_messages(item["prompt"]), "answer": gold}
        for item in items
        for number, gold in enumerate(golds(item))
    ]
    graders = {family.name: family.grader for family in FAMILIES} | {"new": grader}
    graders = {row["task"]: graders.get(row["task"], "includes") for row in graded}
    corpus = read_corpus(CorpusConfig(str(write_rows(folder / "items.jsonl", graded)), eval_share=0.0, graders=graders))
    examples = {example.id: example for example in corpus}
    found = []
    for item, (text,) in zip(items, texts, strict=True):
        names = [f"{item['id']}/{number}" for number in range(len(golds(item)))]
        scores = [corpus.grade(examples[name], text.text, cut=not text.finished) for name in names]
        is_foreign = bool(foreign.match(text.text))
        found.append([item["ring"], item["task"], item["id"], max(scores, default=None), is_foreign, text.text])
    return found


def golds(item: Mapping[str, Any]) -> list[str]:
    """List the gold answers of an item: one, several of which each is right, or none."""
    answers = item.get("answer") or []
    return [answers] if isinstance(answers, str) else answers


Row = Mapping[str, Any]


def kept(row: Row, before: Row, ring: str) -> float:
    """Percent of the answers of a ring that were right before and still are; `neither` and `sealed`, or both by `all`."""
    wanted = READINGS if ring == "all" else (ring,)
    was_right = {one[2] for one in before["answers"] if one[0] in wanted and one[3] == 1}
    return 100 * statistics.mean(one[3] == 1 for one in row["answers"] if one[2] in was_right)


def right(row: Row, ring: str) -> float:
    """Percent of a ring's answers that are right."""
    return 100 * statistics.mean(one[3] == 1 for one in row["answers"] if one[0] == ring)


def foreign_by_task(row: Row) -> dict[str, float]:
    """Percent of the answers of each other task in the format of the new one."""
    by_task: dict[str, list[bool]] = defaultdict(list)
    for one in row["answers"]:
        if one[0] != "new":
            by_task[one[1]].append(one[4])
    return {task: 100 * statistics.mean(values) for task, values in by_task.items()}


def foreign(row: Row) -> float:
    """Percent, tasks alike."""
    return statistics.mean(foreign_by_task(row).values())


def readings(row: Row, before: Row) -> dict[str, float]:
    """Name of a reading -> percent."""
    found = {f"kept, {ring}": kept(row, before, ring) for ring in ("sealed", "neither", "all", "open")}
    found |= {f"right, {ring}": right(row, ring) for ring in ("new", "open", "sealed", "neither")}
    return found | {"foreign": foreign(row)}


def kept_rows() -> dict[tuple[str, int, str], dict[str, Any]]:
    """Finished rows of these settings, by world, seed and arm."""
    same = [row for row in read_rows(ROWS_FILE) if row["settings"] == settings() and row["seed"] in SEEDS]
    return {(row["world"], row["seed"], row["arm"]): row for row in same}


def figures_of(rows: Mapping[tuple[str, int, str], Row]) -> tuple[dict[str, Any], dict[str, list[float]]]:
    """Means of every arm over worlds and seeds, by world too; and differences of pairs of arms by reading."""
    by_run = {key: readings(row, rows[key[0], key[1], BEFORE]) for key, row in rows.items()}
    arms = list(dict.fromkeys(arm for _, _, arm in rows))
    table: dict[str, Any] = {}
    for arm in arms:
        for world in ("all", *WORLDS):
            own = [found for key, found in by_run.items() if key[2] == arm and world in ("all", key[0])]
            if own:
                means = {name: round(statistics.mean(found[name] for found in own), 1) for name in own[0]}
                table[f"{arm}, {world}"] = means | {"trainings": len(own)}
    differences = {
        f"{one} less {other}: {name}": [
            by_run[world, seed, one][name] - by_run[world, seed, other][name]
            for world, seed, arm in rows
            if arm == one and (world, seed, other) in rows
        ]
        for one, other in (
            (GENERAL, CONTROL),
            (GENERAL, MARKED),
            (GENERAL, CHAT),
            (GENERAL, TESTED),
            (GENERAL, NEW),
            (MORE, CONTROL),
            (MORE, MARKED),
            (MORE, NEW),
        )
        for name in ("kept, sealed", "kept, neither", "kept, all", "right, new", "foreign")
    }
    for general in (GENERAL, MORE):
        by_task: dict[str, list[float]] = defaultdict(list)
        for row in (row for key, row in rows.items() if key[2] == general):
            for task, share in foreign_by_task(row).items():
                by_task[task].append(share)
        table[f"foreign of {general}, by task"] = {
            task: round(statistics.mean(shares), 1) for task, shares in by_task.items()
        }
    return table, differences


def goals_of(rows: Mapping[tuple[str, int, str], Row], differences: Mapping[str, list[float]]) -> list[Goal]:
    """What was to be shown; none is reached on fewer than two pairs."""
    nothing = Interval(0.0, -100.0, 100.0, 0)

    def goal(name: str, values: Sequence[float], text: str, reached: Any) -> Goal:
        found = interval(values) if len(values) > 1 else nothing
        return Goal(name, found, text, len(values) > 1 and bool(reached(found)))

    found = []
    for general in (GENERAL, MORE):
        conditions_on_pairs: list[tuple[str, str, str, Any]] = [
            *((CONTROL, f"kept, {ring}", f">= -{MOST_LOSS:g}", lambda one: one.value >= -MOST_LOSS) for ring in READINGS),
            (MARKED, "kept, all", "low > 0", lambda one: one.low > 0),
            (NEW, "right, new", f">= -{MOST_NEW_LOSS:g}", lambda one: one.value >= -MOST_NEW_LOSS),
        ]
        if general == GENERAL:  # as many rows as these arms
            under = f">= -{MOST_UNDER_TESTED:g}"
            conditions_on_pairs += [
                (CHAT, "kept, all", ">= 0", lambda one: one.value >= 0),
                (TESTED, "kept, all", under, lambda one: one.value >= -MOST_UNDER_TESTED),
            ]
        for other, reading, text, reached in conditions_on_pairs:
            name = f"{general} less {other}: {reading}"
            found.append(goal(name, differences[name], text, reached))
        shares = [foreign(row) for key, row in rows.items() if key[2] == general]
        name = f"{general}: foreign, %"
        found.append(goal(name, shares, f"<= {MOST_FOREIGN:g}", lambda one: one.value <= MOST_FOREIGN))
    return found


def measure(quick: bool, begin: bool = True) -> Result:
    """Do the jobs that are left, wave by wave."""
    waves = ((("tools",), QUICK, (BEFORE, NEW, GENERAL)),) if quick else WAVES
    done = set() if quick else set(kept_rows())
    for worlds, seeds, arms in waves if begin else ():
        wanted = [(world, seed, arm) for seed in seeds for world in worlds for arm in arms]
        jobs = [GeneralJob(*key, quick) for key in wanted if key not in done]
        for source in dict.fromkeys(arm if arm in (CHAT, TESTED) else GENERAL for arm in arms if arm in SHARES):
            own_answers(source)
        if CONTROL in arms:
            own_answers(CHAT)
        run_in_processes(do_job, jobs, say="training")
    if quick:
        rows = {(row["world"], row["seed"], row["arm"]): row for row in read_rows(PLACE / "quick.jsonl")}
    else:
        rows = kept_rows()
    figures, differences = figures_of(rows)
    goals = goals_of(rows, differences)
    figures |= {name: rounded(values) for name, values in differences.items() if len(values) > 1}
    short = [{name: row[name] for name in ("world", "seed", "arm", "steps", "commit")} for row in rows.values()]
    return Result(
        goals[0].found, goals[0].name, SEEDS, short, figures, settings() | {"answers": ROWS_FILE.name}, goals=goals
    )


if __name__ == "__main__":
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    run("general", __doc__, measure, kept=True)
