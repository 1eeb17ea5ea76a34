"""Study of remedies: does what `verdict` names for a cause bring back more than general replay, and than a system message?

SmolLM2-135M-Instruct learns a new task whose rows harm others in a way of its own:

- `tools`, `queues`, `hire`: formats that spread. Named: replay of such answers. These are trainings of the study `general`.
- `terse`: one bare word to every errand. Named: replay of own answers, or rows as long as the earlier answers (`sentences`).
- `worked`: change worked out in four sentences. Named: longer answers (the same model with room for 128 tokens), replay of
  own answers, or shorter rows (`bare`).

Each new task alone is compared with BEFORE; a task counts for a cause where `find_causes`, the rule of `verdict`, names it
first, and where five of the answers that were right before are lost, and a fifth of them. On these tasks `kept` is the share
of answers that were right before and still are, by arm: new rows alone, the same with a system message of their own
(`marked`), a tenth of own answers to general requests, a tenth of own answers to other prompts of the tasks that are tested,
and what else is named.

Goals, fixed before the run: what is named first less general replay, and less `marked`, above 0, whole interval over
trainings. Read after the run, and no goal: the cause that was found in `worked` is "longer", for which `verdict` names
replay of own answers first, not room; so these less general replay in all five.

Source: the two essays' distinct culprits and their fixes; the words are those of `verdict/words.py`.
Unit: one training.
Cost: four minutes of one thread for a training and its answers.
Blind spot: one model of 135M parameters, a tenth of replay, greedy answers; `tools`, `queues` and `hire` were seen before
    the goals were set.

    MIXWRIGHT_PUBLIC=FOLDER python -m mixwright_lab.studies.remedies [--quick] [--report]
"""

from __future__ import annotations

import re
import tempfile
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from mixwright.records import AnswerPair
from mixwright.verdict.rules.causes import find_causes
from mixwright_lab.conditions import conditions
from mixwright_lab.demo.training import fine_tune
from mixwright_lab.studies import general
from mixwright_lab.studies.general import AT_ONCE, BEFORE, GENERAL, MARKED, MODEL, NEW, ROOM, TESTED, TRAINING
from mixwright_lab.studies.jobs import append_row, read_rows, run_in_processes, write_rows
from mixwright_lab.studies.report import RESULTS, Goal, Interval, Result, interval, rounded, run

SEEDS, QUICK = (241, 251, 257), 3
SENTENCES, BARE, LONGER = "sentences", "bare", "longer answers"
ARMS = {"terse": (BEFORE, NEW, MARKED, GENERAL, TESTED, SENTENCES), "worked": (BEFORE, NEW, MARKED, GENERAL, TESTED, BARE)}
SYSTEM = {"terse": "Name the kind of errand in one word.", "worked": "Work out the change, step by step."}
NAMED = {"tools": TESTED, "queues": TESTED, "hire": TESTED, "terse": TESTED, "worked": LONGER}
"""World -> the arm that is what `verdict` names first for its cause."""
LONG_ROOM, LEAST_LOST, LEAST_SHARE = 128, 5, 0.2
ROWS_FILE, PLACE = RESULTS / "remedies.rows.jsonl", Path("runs") / "remedies"


@dataclass(frozen=True)
class RemedyJob:
    """One training and its answers; `before` is no training."""

    world: str
    seed: int
    arm: str
    quick: bool = False


def rows_of(world: str, seed: int, arm: str) -> list[dict[str, Any]]:
    """Draw the rows of an arm: those of `general`, or the new ones with other completions."""
    if arm not in (SENTENCES, BARE):
        return general.rows_of(world, seed, arm, system=SYSTEM[world])
    rows = general.rows_of(world, seed, NEW)
    if arm == SENTENCES:
        return [row | {"completion": f"This errand belongs on the list of {row['completion']}."} for row in rows]
    return [row | {"completion": row["completion"].split()[-2]} for row in rows]


def do_job(job: RemedyJob) -> None:
    """Train, ask, and append a row: answers as in `general`, and those of new rows alone with more room, too."""
    from mixwright.learner.load import load_learner

    with tempfile.TemporaryDirectory() as name:
        folder, source = Path(name), MODEL
        if job.arm != BEFORE:
            rows, source = rows_of(job.world, job.seed, job.arm), str(folder / "model")
            how = replace(TRAINING, steps=2 if job.quick else -(-len(rows) // TRAINING.batch))
            file = write_rows(folder / "model" / "rows.jsonl", rows)
            fine_tune(MODEL, file, folder / "model", how, seed=job.seed, at_once=AT_ONCE)
        items = general.test_items(job.seed)
        mark = SYSTEM[job.world] if job.arm == MARKED else ""
        new = [
            row | {"prompt": general.as_messages(row["prompt"], mark)} for row in general.new_rows(job.world, job.seed)[1]
        ]
        items += [row | {"ring": "new", "id": f"new-{number}"} for number, row in enumerate(new)]
        items, learner = items[:: 12 if job.quick else 1], load_learner(source)
        rooms = {"answers": ROOM} | ({LONGER: LONG_ROOM} if job.world == "worked" and job.arm in (BEFORE, NEW) else {})
        found = {
            key: general.answer(learner, items, folder, re.compile("$^"), room=room, grader="includes")
            for key, room in rooms.items()
        }
    row = {"world": job.world, "seed": job.seed, "arm": job.arm, "commit": conditions()["commit"]}
    append_row(PLACE / "quick.jsonl" if job.quick else ROWS_FILE, row | found)


Row = Mapping[str, Any]


def pair_answers(row: Row, before: Row) -> list[AnswerPair]:
    """Pair the answers of a training with those of BEFORE."""
    items = {item["id"]: item for item in general.test_items(row["seed"])}
    was, pairs = {one[2]: one for one in before["answers"]}, []
    for ring, task, name, score, _, text in row["answers"]:
        item = {} if ring == "new" else items[name]
        prompt, golds = item.get("prompt", ""), general.golds(item)
        asked = prompt if isinstance(prompt, str) else prompt[-1]["content"]
        scores = (was[name][3] or 0.0, score or 0.0)
        pairs.append(
            AnswerPair(task, None, asked, (golds or [""])[0], was[name][5], text, *scores, graded=score is not None)
        )
    return pairs


def find_damaged(pairs: Sequence[AnswerPair]) -> list[str]:
    """Tasks other than the new one that lost enough of what was right."""
    right = Counter(pair.task for pair in pairs if pair.graded and pair.score_before == 1 and pair.task != "new")
    lost = Counter(pair.task for pair in pairs if pair.graded and pair.score_before == 1 and pair.score_after < 1)
    return [task for task, count in right.items() if lost[task] >= max(LEAST_LOST, LEAST_SHARE * count)]


def kept_of(row: Row, before: Row, tasks: Sequence[str], *, key: str = "answers") -> float:
    """Percent of the tasks' answers that were right before and still are, tasks alike."""
    right = {one[2] for one in before["answers"] if one[3] == 1}
    by_task: dict[str, list[bool]] = defaultdict(list)
    for one in row[key]:
        if one[1] in tasks and one[2] in right:
            by_task[one[1]].append(one[3] == 1)
    return 100 * sum(sum(own) / len(own) for own in by_task.values()) / len(by_task)


def read_trainings(rows: Mapping[tuple[str, int, str], Row]) -> Iterator[dict[str, Any]]:
    """For each world and seed: causes of what new rows alone lost, and what each arm kept of the tasks of the first one."""
    for world, seed, arm in rows:
        if arm != NEW:
            continue
        before, new = rows[world, seed, BEFORE], rows[world, seed, NEW]
        pairs = pair_answers(new, before)
        damaged = find_damaged(pairs)
        causes, first = find_causes(pairs, damaged), dict[str, str]()
        for cause in causes:
            if cause.is_specific:
                first.setdefault(cause.task, cause.kind)
        kind = Counter(first.values()).most_common(1)[0][0] if first else "none"
        tasks = [task for task in damaged if first.get(task, "none") == kind]
        arms = [other for one, of, other in rows if (one, of) == (world, seed) and other != BEFORE]
        kept = {other: kept_of(rows[world, seed, other], before, tasks) for other in arms} if tasks else {}
        if LONGER in new and tasks:
            kept[LONGER] = kept_of(new, before, tasks, key=LONGER)
        shares = Counter[str]()
        for cause in causes:
            shares[cause.kind] += cause.items if cause.is_specific else 0
        lost = sum(pair.score_before == 1 and pair.score_after < 1 for pair in pairs if pair.task in damaged)
        yield {"world": world, "seed": seed, "cause": kind, "tasks": tasks, "kept": kept, "lost": lost, "causes": shares}


def kept_rows() -> dict[tuple[str, int, str], Row]:
    """Finished rows of this study and of `general`, by world, seed and arm."""
    own: dict[tuple[str, int, str], Row] = {(row["world"], row["seed"], row["arm"]): row for row in read_rows(ROWS_FILE)}
    return own | {key: row for key, row in general.kept_rows().items() if key[2] in (BEFORE, NEW, MARKED, GENERAL, TESTED)}


def measure(quick: bool, begin: bool = True) -> Result:
    """Do the jobs that are left."""
    seeds = (QUICK,) if quick else SEEDS
    jobs = [RemedyJob(world, seed, arm, quick) for seed in seeds for world, arms in ARMS.items() for arm in arms]
    if begin:
        PLACE.mkdir(parents=True, exist_ok=True)
        done = {} if quick else kept_rows()
        jobs = [job for job in jobs if (job.world, job.seed, job.arm) not in done]
        run_in_processes(do_job, jobs[:2] if quick else jobs, say="training")
    trainings = [one for one in read_trainings(kept_rows()) if one["kept"]]
    table: dict[str, Any] = {}
    for world in NAMED:
        own = [one for one in trainings if one["world"] == world]
        arms = list(dict.fromkeys(arm for one in own for arm in one["kept"]))
        means = {arm: [one["kept"][arm] for one in own if arm in one["kept"]] for arm in arms}
        table[world] = {arm: round(sum(values) / len(values), 1) for arm, values in means.items()}
        table[world] |= {"trainings": len(own), "causes": dict(Counter(one["cause"] for one in own))}
    goals = []
    for other in (GENERAL, MARKED):
        pairs = [(one["kept"].get(NAMED[one["world"]]), one["kept"].get(other)) for one in trainings]
        values = [named - rival for named, rival in pairs if named is not None and rival is not None]
        found = interval(values) if len(values) > 1 else Interval(0.0, -100.0, 100.0, 0)
        goals.append(Goal.above_zero(f"named less {other}, points kept", found))
        for world in NAMED:
            own = [one["kept"] for one in trainings if one["world"] == world]
            values = [kept[NAMED[world]] - kept[other] for kept in own if NAMED[world] in kept and other in kept]
            if len(values) > 1:
                table[world][f"named less {other}"] = rounded(values, 1)
    replay = [one["kept"][TESTED] - one["kept"][GENERAL] for one in trainings if {TESTED, GENERAL} <= one["kept"].keys()]
    if len(replay) > 1:
        table["own answers to other prompts of these tasks less general replay"] = rounded(replay, 1)
    return Result(goals[0].found, goals[0].name, SEEDS, trainings, table, {"rows": ROWS_FILE.name}, goals=goals)


if __name__ == "__main__":
    run("remedies", __doc__, measure, kept=True)
