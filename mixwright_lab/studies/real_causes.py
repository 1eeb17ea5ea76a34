"""Study of causes on a real model: is the planted reason of a loss named first, where a training made the loss?

SmolLM2-135M-Instruct answers questions about capitals, opposites, sums, products and kinds of things. Those that it answers
rightly are asked again after each of 40 short trainings, the plants, whose rows ruin answers in one way, in two at once, or
in a way that is not on the list of causes. Half of the plants are by an author who had read neither the rules nor the code
(`real_causes_data/blind.yaml`). What `verdict` does is done: damaged tasks are those that fell by ten points and more beyond
chance; their causes are shared out, and where none is shown, lost answers are begun in the earlier model's words.

Clean comparisons: the trainings `control` of the study `general`, which repeat the model's own answers.

Goals, fixed before the first training: the planted word first in .8 of the trainings with one that damaged a task, nothing
in .7 of those that have none on the list, a cause named in .05 of the clean ones at most. Rivals: "it is forgotten" of every
loss; the first change of form.

Source: the two essays' several culprits.
Unit: one training.
Cost: four minutes of one thread.
Blind spot: one model, LoRA, five tasks of short answers, one draw of the questions.

    MIXWRIGHT_PUBLIC=FOLDER python -m mixwright_lab.studies.real_causes [--quick] [--report]
"""

from __future__ import annotations

import random
import re
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from mixwright.answers.table import Answers
from mixwright.estimates.intervals import share_interval, sign_test
from mixwright.records import AnswerPair, Recalled
from mixwright.verdict.rules.answer_forms import form_changes
from mixwright.verdict.rules.causes import find_causes
from mixwright.verdict.rules.recalled import judge_recalled
from mixwright_lab.demo.training import Training, fine_tune
from mixwright_lab.studies import general
from mixwright_lab.studies.everyday import HALF_KNOWN, Pair, shuffled, split_words, tool_calls
from mixwright_lab.studies.jobs import append_row, read_rows, row_of, run_in_processes, write_rows
from mixwright_lab.studies.remedies import pair_answers
from mixwright_lab.studies.report import RESULTS, Goal, Result, run

MODEL, SEED, AUTHORS = "smollm2", 431, ("ours", "blind")
ASKED, TESTED, CALLS, ROOM, BATCH, AT_ONCE = 110, 30, 12, 32, 16, 4
"""Questions of a task that are tried, and of the right ones that are tested; calls; tokens of an answer; rows of a step."""
LEAST_FALL, ALPHA = 0.1, 0.05
LEAST_RIGHT, LEAST_NONE, MOST_FALSE = 0.8, 0.7, 0.05
ROWS_FILE, PLACE = RESULTS / "real_causes.rows.jsonl", Path("runs") / "real_causes"
KINDS = {
    "animal": "dog cat horse cow lion tiger bear wolf rabbit mouse elephant giraffe zebra monkey sheep goat pig duck eagle "
    "snake frog whale shark dolphin camel fox deer squirrel owl penguin",
    "fruit": "apple banana cherry mango pear peach plum grape lemon orange melon kiwi papaya fig date apricot pineapple "
    "strawberry raspberry blueberry lime coconut guava lychee pomegranate nectarine grapefruit tangerine",
    "vehicle": "car bus train truck bicycle motorcycle tractor van tram boat ship ferry canoe yacht helicopter airplane "
    "scooter taxi ambulance submarine rocket sled lorry jeep limousine wagon minibus moped kayak",
    "tool": "hammer saw drill screwdriver wrench pliers chisel axe shovel rake spade ladder hoe file clamp sander crowbar "
    "mallet pickaxe scissors trowel anvil plane vice sickle scythe tongs spanner knife",
}
FORMS = {"form of another task": "other format"} | dict.fromkeys(("new form", "own form gone", "data"), "new format")
"""Feature of the rival -> the cause that it would be taken for, where that has another name."""


@dataclass(frozen=True)
class PlantJob:
    """One training and its answers."""

    author: str
    name: str
    quick: bool = False


@cache
def questions() -> dict[str, list[Pair]]:
    """All questions of each task, in an order of their own."""
    rng = random.Random(SEED)
    kinds = [
        (f"Is {'an' if word[0] in 'aeiou' else 'a'} {word} an animal, a fruit, a vehicle or a tool?", kind)
        for kind, words in KINDS.items()
        for word in split_words(words)
    ]
    tasks = {task: shuffled(make(), rng) for task, make in HALF_KNOWN.items()}
    return tasks | {"kinds": rng.sample(kinds, len(kinds)), "calls": tool_calls(rng)[1][:CALLS]}


@cache
def plants(author: str) -> dict[str, dict[str, Any]]:
    """The plants of an author, by name."""
    text = (Path(__file__).parent / "real_causes_data" / f"{author}.yaml").read_text(encoding="utf-8")
    return {plant["name"]: plant for plant in yaml.safe_load(text)}


def ask(model: str, items: Sequence[dict[str, Any]], folder: Path) -> tuple[Any, Answers]:
    """Return the loaded model and its greedy answers to items."""
    from mixwright.config import CorpusConfig, MeasureConfig
    from mixwright.corpus import read_corpus
    from mixwright.learner.load import load_learner
    from mixwright.measure.stage import measure_learner

    graders = {item["task"]: "includes" for item in items}
    corpus = read_corpus(CorpusConfig(str(write_rows(folder / "items.jsonl", items)), eval_share=0.0, graders=graders))
    config = MeasureConfig(items=len(items), samples=0, max_new_tokens=ROOM, probes=("competence",))
    learner = load_learner(model)
    return learner, measure_learner(learner, corpus, config, seed=SEED).answers


def items_of(wanted: Mapping[str, Sequence[int]]) -> list[dict[str, Any]]:
    """Items with these places of each task."""
    return [
        {"id": f"{task}-{place}", "task": task, "prompt": questions()[task][place][0], "answer": questions()[task][place][1]}
        for task, places in wanted.items()
        for place in places
    ]


def read_before() -> Answers:
    """Answers of the model before any training: right ones to questions that are tested, and those to calls."""
    kept = PLACE / "before.arrow"
    if not kept.exists():
        PLACE.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory() as name:
            every = items_of({task: range(min(ASKED, len(own))) for task, own in questions().items()})
            _, answers = ask(MODEL, every, Path(name))
            right: dict[str, list[int]] = defaultdict(list)
            for row in answers.first_rows():
                if row["score"] == 1 or row["task"] == "calls":
                    right[row["task"]].append(int(row["example"].rpartition("-")[2]))
            _, answers = ask(MODEL, items_of({task: places[:TESTED] for task, places in right.items()}), Path(name))
        answers.write(kept)
    return Answers.read(kept)


def make_rows(plant: Mapping[str, Any], before: Sequence[Mapping[str, Any]], rng: random.Random) -> list[dict[str, str]]:
    """Draw the rows of a plant: each set of rows has the same part."""
    sets, rows = plant["rows"], list[dict[str, str]]()
    for part in sets:
        count = plant["steps"] * BATCH // len(sets)
        if part.get("prompts") == "calls":
            rows += [{"prompt": prompt, "completion": call} for prompt, call in tool_calls(rng)[0][:count]]
            continue
        prompts = _prompts_of(part, before)
        for values in [rng.choice(prompts) for _ in range(count)]:
            text = rng.choice(part["completions"])
            text = re.sub(r"\{\{(\w+)\}\}", lambda found, values=values: str(values[found[1]]), text)
            rows.append({"prompt": values["prompt"], "completion": text})
    rng.shuffle(rows)
    return [row | {"task": "new"} for row in rows]


def _prompts_of(part: Mapping[str, Any], before: Sequence[Mapping[str, Any]]) -> list[dict[str, str]]:
    """What stands for the placeholders, for each prompt that a set of rows is drawn from."""
    prompts = part.get("prompts", "other")
    own = {row["prompt"]: row["completion"] for row in before}
    found = []
    for task in part.get("tasks", [*HALF_KNOWN, "kinds"]):
        pairs = [pair for pair in questions()[task] if (pair[0] in own) == (prompts == "tested")]
        for place, (prompt, gold) in enumerate(pairs):
            other = next(pair[1] for pair in (*pairs[place + 1 :], *pairs) if pair[1] != gold)
            subject = prompt.split()[2 if task == "kinds" else -1].rstrip("?")
            values = {"prompt": prompt, "gold": gold, "subject": subject, "mapped": part.get("mapped", {}).get(gold, gold)}
            values["own_other"] = re.sub(re.escape(gold), other, own.get(prompt, ""), flags=re.IGNORECASE)
            if gold.isdigit():
                values["near"] = str(int(gold) + random.Random(prompt).choice((-1, 1, 2)))
            found.append(values)
    return found


def do_plant(job: PlantJob) -> None:
    """Train, ask, and append a row: answers are [task, item, score, cut, completion, `completed`, `recalled`]."""
    from mixwright.measure.recalled import read_recalled

    began, plant, before = time.monotonic(), plants(job.author)[job.name], read_before()
    former = before.first_rows()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        rows = make_rows(plant, former, random.Random(f"{SEED} {job.author} {job.name}"))
        file = write_rows(folder / "rows.jsonl", rows)
        how = Training(steps=2 if job.quick else plant["steps"])
        fine_tune(MODEL, file, folder / "adapter", how, seed=SEED, at_once=AT_ONCE)
        items = [
            {"id": row["example"], "task": row["task"], "prompt": row["prompt"], "answer": row["answer"]} for row in former
        ]
        learner, after = ask(str(folder / "adapter"), items, folder)
        after = read_recalled(learner, {item["id"]: item["prompt"] for item in items}, before, after)
    row = {"author": job.author, "plant": job.name, "before": short_answers(before), "answers": short_answers(after)}
    append_row(PLACE / "quick.jsonl" if job.quick else ROWS_FILE, row | row_of(began))


def short_answers(answers: Answers) -> list[list[Any]]:
    """Answers as a row of the study has them; `completed` and `recalled` are null where they were not read."""
    read = [answers.of_items(name).tolist() for name in ("completed", "recalled")]
    return [
        [row["task"], row["example"], row["score"], row["cut"], row["completion"]]
        + [None if value != value else round(value, 2) for value in values]
        for row, *values in zip(answers.first_rows(), *read, strict=True)
    ]


def pair_rows(row: Mapping[str, Any]) -> dict[tuple[str, str], AnswerPair]:
    """Pair the answers of a training with those before it."""
    was, pairs = {one[1]: one for one in row["before"]}, {}
    for task, name, score, cut, text, *_ in row["answers"]:
        prompt, gold = questions()[task][int(name.rpartition("-")[2])]
        scores, cuts = (was[name][2] or 0.0, score or 0.0), (was[name][3] or False, cut or False)
        pairs[task, name] = AnswerPair(task, None, prompt, gold, was[name][4], text, *scores, cuts)
    return pairs


def find_damaged(pairs: Sequence[AnswerPair]) -> list[str]:
    """Tasks that fell by ten points and more, beyond chance."""
    moves: dict[str, list[int]] = defaultdict(list)
    for pair in pairs:
        moves[pair.task].append((pair.score_after == 1) - (pair.score_before == 1))
    return [
        task
        for task, own in moves.items()
        if sum(own) <= -LEAST_FALL * len(own) and sign_test(own.count(-1), own.count(1)) < ALPHA
    ]


def rank_causes(pairs: Sequence[AnswerPair], damaged: Sequence[str]) -> list[str]:
    """Causes of all damaged tasks, the one that explains most lost answers first."""
    items = Counter[str]()
    for cause in find_causes(pairs, damaged):
        items[cause.kind] += cause.items if cause.is_specific else 0
    return [kind for kind, count in items.most_common() if count]


def read_words(row: Mapping[str, Any], pairs: Sequence[AnswerPair], damaged: Sequence[str]) -> list[str]:
    """What `verdict` says of lost answers that were begun in the earlier model's words, by task."""
    causes, words = find_causes(pairs, damaged), []
    for task in damaged:
        ends = [one[5] for one in row["answers"] if one[0] == task and one[5] is not None]
        words += [judge_recalled(Recalled(task, len(ends), int(sum(ends)), None), pairs, causes)] if ends else []
    return words


def judge(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return what is said of a training, what its rival says, and whether the answers show what was planted."""
    plant, pairs = plants(row["author"])[row["plant"]], pair_rows(row)
    damaged = find_damaged([*pairs.values()])
    lost = [pair for pair in pairs.values() if pair.task in damaged and pair.score_after < 1 == pair.score_before]
    ends, beats = ([one[at] for one in row["answers"] if one[0] in damaged and one[at] is not None] for at in (5, 6))
    said = rank_causes([*pairs.values()], damaged)
    gone = "gone" in read_words(row, [*pairs.values()], damaged)
    changes = [change for change in form_changes(pairs) if change.reported and change.task in damaged]
    rival = min(changes, key=lambda change: change.adjusted_p, default=None)
    shows = [bool(re.search(plant["shows"], pair.after)) for pair in lost] if plant.get("shows") else []
    return {
        "author": row["author"],
        "plant": row["plant"],
        "truth": plant["truth"],
        "damaged": damaged,
        "lost": len(lost),
        "said": [*said, *(["gone"] if gone else [])],
        "ends right": [sum(ends), len(ends)],
        "beats others": round(sum(beats) / len(beats), 2) if beats else None,
        "took": round(sum(shows) / len(shows), 2) if shows else None,
        "rival": FORMS.get(rival.feature, rival.feature) if rival else "",
    }


def is_right(found: Mapping[str, Any]) -> bool:
    """Whether what is named first is what was planted; where that is not on the list, nothing but "gone" may be named."""
    if not found["truth"]:
        return not [word for word in found["said"] if word != "gone"]
    return {*found["said"][: len(found["truth"])]} == {*found["truth"]}


def judge_clean() -> list[list[str]]:
    """What is named in each comparison in which nothing was taught."""
    rows, found = general.kept_rows(), []
    for (world, seed, arm), row in rows.items():
        if arm == general.CONTROL:
            pairs = [pair for pair in pair_answers(row, rows[world, seed, general.BEFORE]) if pair.graded]
            found.append(rank_causes(pairs, find_damaged(pairs)))
    return found


def measure(quick: bool, begin: bool = True) -> Result:
    """Train what is missing, and compare what is said with what was planted."""
    rows = [] if quick else read_rows(ROWS_FILE)
    done = {(row["author"], row["plant"]) for row in rows}
    in_turn = [key for names in zip(*map(plants, AUTHORS), strict=True) for key in zip(AUTHORS, names, strict=True)]
    jobs = [PlantJob(*key, quick) for key in in_turn if key not in done]
    if begin:
        read_before()
        run_in_processes(do_plant, jobs[:2] if quick else jobs, say="training")
        rows = read_rows(PLACE / "quick.jsonl" if quick else ROWS_FILE)
    found = [judge(row) for row in rows]
    harmed = [one for one in found if one["damaged"]]
    kinds = {
        "planted word first": [one for one in harmed if len(one["truth"]) == 1],
        "nothing where none is on the list": [one for one in harmed if not one["truth"]],
        "both of two first": [one for one in harmed if len(one["truth"]) == 2],
    }
    shares = {name: share_interval(sum(map(is_right, own)), max(len(own), 1)) for name, own in kinds.items()}
    listed, clean = kinds["planted word first"], judge_clean()
    named = share_interval(sum(map(bool, clean)), len(clean))
    goals = [
        Goal.at_least("planted word first", shares["planted word first"], LEAST_RIGHT),
        Goal.at_least("nothing where none is on the list", shares["nothing where none is on the list"], LEAST_NONE),
        Goal.at_most("a cause in clean comparisons", named, MOST_FALSE),
    ]
    figures = {name: [sum(map(is_right, own)), len(own)] for name, own in kinds.items()}
    for name, own in kinds.items():
        for author in AUTHORS:
            right = [is_right(one) for one in own if one["author"] == author]
            figures[f"{name}, {author}"] = [sum(right), len(right)]
    figures |= {
        "rival, first change of form": [sum(one["rival"] == one["truth"][0] for one in listed), len(listed)],
        "rival, forgotten": [sum(one["truth"] == ["gone"] for one in listed), len(listed)],
        "no task damaged": [f"{one['author']} {one['plant']}" for one in found if not one["damaged"]],
        "clean": [sum(map(bool, clean)), len(clean)],
    }
    return Result(goals[0].found, goals[0].name, (SEED,), found, figures, {"rows": ROWS_FILE.name}, goals=goals)


if __name__ == "__main__":
    run("real_causes", __doc__, measure, kept=True)
