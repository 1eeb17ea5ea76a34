"""Study of logs of other harnesses beside our own measuring: SmolLM2-135M-Instruct before and after a narrow SFT.

lm-evaluation-harness and Inspect each answer the demo's held-out questions themselves (`studies/harnesses.py`), once for the
starting model and once for the model after 20 steps on tool calls alone. `verdict` then judges the two logs of each, and the
two checkpoints.

Expectations, written before the run: success per task and side equals the harness's own summary to the digit; the words
about each task (learnt, damaged, no change, cannot tell) are the same from logs and from checkpoints; at least 95 % of the
completions are the same texts.

    pip install lm_eval inspect-ai      # in another environment, with torch, transformers and peft
    LM_EVAL=PATH/lm_eval INSPECT=PATH/inspect python -m mixwright_lab.studies.real_logs [--quick]
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from mixwright.__main__ import main
from mixwright.estimates.intervals import share_interval
from mixwright.records import Interval
from mixwright.run.folder import RunFolder, read_json
from mixwright_lab.demo.training import Training, fine_tune
from mixwright_lab.studies.harnesses import HARNESSES, TOKENS, command_of
from mixwright_lab.studies.questions import write_files
from mixwright_lab.studies.report import Goal, Result, run

SEED, LEAST_SAME_TEXTS = 11, 0.95
SIDES = ("before", "after")


def judge(folder: Path, before: str, after: str, *more: str) -> dict[str, dict[str, Any]]:
    """What `verdict` says of each task."""
    out = folder / f"verdict-{len(list(folder.glob('verdict-*')))}"
    try:
        main(("verdict", before, after, "--folder", str(out), *more))
    except SystemExit as left:
        if left.code in (1, 2):  # 3 and 4 are verdicts
            raise
    return {task["task"]: task for task in read_json(RunFolder(out).verdict_data, dict)["tasks"]}


def own_texts(model: str, prompts: list[str]) -> list[str]:
    """Greedy completions by ourselves."""
    from mixwright.learner.load import load_learner

    groups = load_learner(model).sample(prompts, count=1, temperature=0.0, max_new_tokens=TOKENS, seed=0)
    return [group[0].text for group in groups]


def measure(quick: bool) -> Result:
    """Both harnesses, and our own way."""
    from mixwright.learner.load import load_learner, merge_adapter

    commands = [command_of(harness) for harness in HARNESSES]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        files = write_files(folder / "files", SEED)
        rows = [json.loads(line) for line in files.held_out.read_text(encoding="utf-8").splitlines()]
        if quick:
            rows = [row for row in rows if row["task"] in ("capitals", "sums")][:24]
            files.held_out.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
        of_task: dict[str, list[dict[str, Any]]] = {}
        for row in rows:
            of_task.setdefault(row["task"], []).append(row)
        tasks, narrow = sorted(of_task), folder / "narrow"
        fine_tune("smollm2", files.train, narrow, Training(steps=2) if quick else Training(), seed=SEED)
        models = {side: folder / f"{side}-model" for side in SIDES}
        load_learner("smollm2").save(models["before"])
        merge_adapter(load_learner(str(narrow))).save(models["after"])
        graders = [word for task in tasks for word in ("--grader", f"{task}=includes")]
        asked = ("--eval", str(files.held_out), "--samples", "0", "--max-new-tokens", str(TOKENS), *graders)
        own = judge(folder, "smollm2", str(narrow), *asked)
        texts = {
            (side, task): own_texts(model, [row["prompt"] for row in of_task[task]])
            for side, model in zip(SIDES, ("smollm2", str(narrow)), strict=True)
            for task in tasks
        }
        found: list[dict[str, Any]] = []
        for harness, command in zip(HARNESSES, commands, strict=True):
            place = folder / harness.COMMAND
            place.mkdir()
            for task in tasks:
                (place / f"{task}.jsonl").write_text(
                    "".join(json.dumps(row) + "\n" for row in of_task[task]), encoding="utf-8"
                )
            harness.write_tasks(place, tasks)
            summary = {side: harness.evaluate(command, place, tasks, models[side], side) for side in SIDES}
            told = judge(place, str(place / "before"), str(place / "after"))
            for task in tasks:
                pairs = [
                    pair for s in SIDES for pair in zip(texts[s, task], harness.logged_texts(place / s, task), strict=True)
                ]
                found.append(
                    {
                        "harness": harness.NAME,
                        "task": task,
                        "summary": [summary[side][task] for side in SIDES],
                        **{key: _told(claims[task]) for key, claims in (("logs", told), ("ours", own))},
                        "texts": len(pairs),
                        "same texts": sum(mine.strip() == theirs.strip() for mine, theirs in pairs),
                    }
                )
        return _result(found)


def _told(task: Mapping[str, Any]) -> list[Any]:
    return [task["before"], task["after"], task["word"]]


def _result(rows: Sequence[Mapping[str, Any]]) -> Result:
    goals: list[Goal] = []
    for harness in HARNESSES:
        mine = [row for row in rows if row["harness"] == harness.NAME]
        equal = [round(row["logs"][n], 9) == round(row["summary"][n], 9) for row in mine for n in (0, 1)]
        texts = share_interval(sum(row["same texts"] for row in mine), sum(row["texts"] for row in mine))
        goals += [
            _all(f"{harness.NAME}: success of a task and side equal to its own summary", equal),
            _all(
                f"{harness.NAME}: words about a task the same from logs and from checkpoints",
                [row["logs"][2] == row["ours"][2] for row in mine],
            ),
            Goal(
                f"{harness.NAME}: completions that are the same texts",
                texts,
                f">= {LEAST_SAME_TEXTS}",
                texts.value >= LEAST_SAME_TEXTS,
            ),
        ]
    alike = share_interval(sum(row["same texts"] for row in rows), sum(row["texts"] for row in rows))
    return Result(alike, "share of completions that a harness and we wrote alike", [SEED], rows, goals=goals)


def _all(name: str, held: list[bool]) -> Goal:
    share: Interval = share_interval(sum(held), len(held))
    return Goal(name, share, "= 1", share.value == 1)


if __name__ == "__main__":
    run("real_logs", __doc__, measure)
