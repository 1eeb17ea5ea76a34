"""Search for a new task that needs skill: which of five candidates does SmolLM2-135M-Instruct learn in a few minutes of SFT?

Each candidate is trained alone as `real_sft` trains its new rows (2,000 rows, LoRA, 16 rows a step), at two rates, and read
on items that stand in no training row: greedy, the right answer stated. Wanted are 20 points more than before. A baseline
that knows the form and not the skill is trained, too: the same rows with the answers of other rows. This is tuning: seed 3
alone, and no claim rests on it; two candidates are asked in several wordings, so that a test item's number can stand in a
training row in another one. Finished rows are kept in `real_skills.rows.jsonl`.

    python -m mixwright_lab.studies.real_skills [--quick]
"""

from __future__ import annotations

import json
import random
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from mixwright.records import Interval
from mixwright_lab.conditions import device
from mixwright_lab.demo.training import Training, fine_tune
from mixwright_lab.studies.everyday import SKILLS
from mixwright_lab.studies.jobs import append_row, read_rows, run_in_processes
from mixwright_lab.studies.real_models import MODEL
from mixwright_lab.studies.report import RESULTS, Goal, Result, run

SEED = 3
ROWS_FILE = RESULTS / "real_skills.rows.jsonl"
PLACE = Path("runs") / "real_skills"
RATES, SHUFFLED = (6e-4, 1.5e-3), "answers of other rows"
ROWS, ITEMS, STEPS, ROOM = 1000, 100, 80, 24
LEAST_GAIN = 0.2


@dataclass(frozen=True)
class SkillJob:
    """One training of one candidate."""

    skill: str
    rate: float
    """Learning rate; 0 trains nothing."""
    shuffled: bool = False
    """Whether each row has the answer of another one."""
    quick: bool = False


def do_job(job: SkillJob) -> None:
    """Train and measure; one row."""
    from mixwright.config import CorpusConfig, MeasureConfig
    from mixwright.corpus import read_corpus
    from mixwright.learner.load import load_learner
    from mixwright.measure.stage import measure_learner

    rng = random.Random(SEED)
    rows, items = (40, 6) if job.quick else (ROWS, ITEMS)
    pairs = SKILLS[job.skill](rng, rows + items)
    test, train = pairs[:items], pairs[items:]
    answers = [answer for _, answer in train]
    if job.shuffled:
        rng.shuffle(answers)
    place = PLACE / f"{job.skill}-{job.rate:g}-{int(job.shuffled)}-{int(job.quick)}"
    place.mkdir(parents=True, exist_ok=True)
    path, held_out = place / "train.jsonl", place / "test.jsonl"
    asked = zip((prompt for prompt, _ in train), answers, strict=True)
    path.write_text(
        "".join(json.dumps({"task": "new", "prompt": prompt, "completion": answer}) + "\n" for prompt, answer in asked)
    )
    held_out.write_text("".join(json.dumps({"task": "new", "prompt": one, "answer": answer}) + "\n" for one, answer in test))
    model = MODEL
    if job.rate:
        how = replace(Training(), steps=2 if job.quick else STEPS, learning_rate=job.rate)
        fine_tune(MODEL, path, place / "model", how, seed=SEED)
        model = str(place / "model")
    corpus = read_corpus(CorpusConfig(str(held_out), eval_share=0.0, graders={"new": "includes"}))
    config = MeasureConfig(items=items, samples=0, max_new_tokens=ROOM, probes=("competence",))
    found = measure_learner(load_learner(model), corpus, config, seed=SEED).completions
    score = sum(row["score"] for row in found) / len(found)
    row = {"skill": job.skill, "rate": job.rate, "shuffled": job.shuffled, "steps": STEPS, "score": score}
    row["device"] = device()
    row["examples"] = [[one["prompt"], one["answer"], one["completion"]] for one in found[:5]]
    append_row(PLACE / "quick.jsonl" if job.quick else ROWS_FILE, row)


def jobs_left(quick: bool) -> list[SkillJob]:
    """Every candidate before, at each rate, and at the last one with answers of other rows, where there is no row yet."""
    settings = [(0.0, False), *((rate, False) for rate in RATES), (RATES[-1], True)]
    known = set() if quick else {(row["skill"], row["rate"], row["shuffled"]) for row in read_rows(ROWS_FILE)}
    return [
        SkillJob(skill, rate, shuffled, quick)
        for rate, shuffled in settings
        for skill in tuple(SKILLS)[: 1 if quick else None]
        if (skill, rate, shuffled) not in known
    ]


def measure(quick: bool) -> Result:
    """The trainings that are left."""
    path = PLACE / "quick.jsonl" if quick else ROWS_FILE
    if quick:
        path.unlink(missing_ok=True)
    run_in_processes(do_job, jobs_left(quick), say="skill")
    rows = read_rows(path)
    by_skill = {skill: _gain(rows, skill) for skill in dict.fromkeys(row["skill"] for row in rows)}
    best = max(by_skill, key=lambda skill: by_skill[skill])
    gain = Interval(by_skill[best], by_skill[best], by_skill[best], ITEMS)
    goal = Goal.at_least(f"gain of {best}, tuning seed alone", gain, LEAST_GAIN)
    return Result(gain, "gain of the best candidate, share of items", (SEED,), rows, figures=by_skill, goals=[goal])


def _gain(rows: list[dict[str, Any]], skill: str) -> float:
    """Success at the better rate, less the greater of before and with answers of other rows."""
    own = [row for row in rows if row["skill"] == skill]
    trained = [row["score"] for row in own if row["rate"] and not row["shuffled"]]
    return max(trained) - max(row["score"] for row in own if not row["rate"] or row["shuffled"])


if __name__ == "__main__":
    run("real_skills", __doc__, measure)
