"""Study of logs of lm-evaluation-harness beside our own measuring: SmolLM2-135M-Instruct before and after a narrow SFT.

The harness answers the demo's held-out questions itself (a task of its own, greedily, up to 24 tokens, through the chat
template, graded by whether the answer's words stand in the completion), once for the starting model and once with the
adapter of 20 steps on tool calls alone. `verdict` then judges its two logs, and the two checkpoints.

Expectations, written before the run: success per task and side equals the harness's own summary to the digit; the words
about each task (learnt, damaged, no change, cannot tell) are the same from logs and from checkpoints; at least 95 % of the
completions are the same texts.

    pip install lm_eval      # in another environment, with torch, transformers and peft
    LM_EVAL=PATH/lm_eval python -m mixwright_lab.studies.real_logs [--quick]
"""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path

import yaml

from mixwright.__main__ import main
from mixwright.errors import InputError
from mixwright.estimates.intervals import share_interval
from mixwright.records import Claim, Interval
from mixwright.run.folder import RunFolder, read_list
from mixwright_lab.demo.files import write_files
from mixwright_lab.demo.training import Training, fine_tune
from mixwright_lab.studies.report import Goal, Result, run

SEED, TOKENS, LEAST_SAME_TEXTS = 11, 24, 0.95
GRADE = """
def words_in(doc, results):
    return {"words_in": float(doc["answer"].lower() in results[0].lower())}
"""


def write_tasks(folder: Path, rows: list[dict[str, str]]) -> list[str]:
    """A task of the harness for each of ours; gives their names."""
    (folder / "grade.py").write_text(GRADE, encoding="utf-8")
    names = sorted({row["task"] for row in rows})
    for name in names:
        own = [row for row in rows if row["task"] == name]
        (folder / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in own), encoding="utf-8")
        settings = {
            "task": name,
            "dataset_path": "json",
            "dataset_kwargs": {"data_files": {"test": str(folder / f"{name}.jsonl")}},
            "test_split": "test",
            "output_type": "generate_until",
            "doc_to_text": "{{prompt}}",
            "doc_to_target": "{{answer}}",
            "generation_kwargs": {"until": [], "max_gen_toks": TOKENS, "do_sample": False},
            "metric_list": [{"metric": "words_in", "aggregation": "mean", "higher_is_better": True}],
        }
        text = yaml.safe_dump(settings) + "process_results: !function grade.words_in\n"
        (folder / f"{name}.yaml").write_text(text, encoding="utf-8")
    return names


def evaluate(command: str, folder: Path, names: list[str], model: str, out: str) -> dict[str, float]:
    """Let the harness answer and log; gives its own summary, task -> success."""
    words = [command, "--model", "hf", "--model_args", f"{model},dtype=float32", "--device", "cpu", "--batch_size", "16"]
    words += ["--tasks", ",".join(names), "--include_path", str(folder), "--apply_chat_template", "--log_samples"]
    subprocess.run([*words, "--output_path", str(folder / out)], check=True, cwd=folder, stdout=subprocess.DEVNULL)
    (found,) = (folder / out).rglob("results_*.json")
    results = json.loads(found.read_text(encoding="utf-8"))["results"]
    return {name: results[name]["words_in,none"] for name in names}


def judge(folder: Path, before: str, after: str, *more: str) -> dict[str, Claim]:
    """What `verdict` says of each task."""
    out = folder / f"verdict-{len(list(folder.glob('verdict-*')))}"
    try:
        main(("verdict", before, after, "--folder", str(out), *more))
    except SystemExit as left:
        if left.code:
            raise
    return {claim.task: claim for claim in read_list(RunFolder(out).claims, Claim)}


def logged_texts(folder: Path, name: str) -> list[str]:
    """Completions of a task in the harness's log, in the order of its rows."""
    (file,) = folder.rglob(f"samples_{name}_*.jsonl")
    lines = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
    return [line["resps"][0][0] for line in sorted(lines, key=lambda line: line["doc_id"])]


def own_texts(model: str, prompts: list[str]) -> list[str]:
    """Greedy completions by ourselves."""
    from mixwright.learner.load import load_learner

    groups = load_learner(model).sample(prompts, count=1, temperature=0.0, max_new_tokens=TOKENS, seed=0)
    return [group[0].text for group in groups]


def measure(quick: bool) -> Result:
    """Both ways."""
    command = os.environ.get("LM_EVAL")
    if not command:
        raise InputError("the command of lm-evaluation-harness", "none", "Set LM_EVAL.")
    from mixwright.learner.load import load_learner

    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        files = write_files(folder / "files", SEED)
        rows = [json.loads(line) for line in files.held_out.read_text(encoding="utf-8").splitlines()]
        if quick:
            rows = [row for row in rows if row["task"] in ("capitals", "sums")][:24]
            files.held_out.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
        tasks, narrow = write_tasks(folder, rows), folder / "narrow"
        load_learner("smollm2").save(folder / "start")
        fine_tune("smollm2", files.train, narrow, Training(steps=2) if quick else Training(), seed=SEED)
        models = {"before": f"pretrained={folder / 'start'}", "after": f"pretrained={folder / 'start'},peft={narrow}"}
        summary = {side: evaluate(command, folder, tasks, model, side) for side, model in models.items()}
        told = judge(folder, str(folder / "before"), str(folder / "after"))
        graders = [word for task in tasks for word in ("--grader", f"{task}=includes")]
        asked = ("--corpus", str(files.held_out), "--samples", "0", "--max-new-tokens", str(TOKENS), *graders)
        own = judge(folder, "smollm2", str(narrow), *asked)
        same = []
        for side, model in (("before", "smollm2"), ("after", str(narrow))):
            for task in tasks:
                prompts = [row["prompt"] for row in rows if row["task"] == task]
                pairs = zip(own_texts(model, prompts), logged_texts(folder / side, task), strict=True)
                same += [mine.strip() == theirs.strip() for mine, theirs in pairs]
        return _result(summary, told, own, same)


def _result(
    summary: Mapping[str, Mapping[str, float]], told: Mapping[str, Claim], own: Mapping[str, Claim], same: list[bool]
) -> Result:
    rows = [
        {"task": task, "harness": [summary["before"][task], summary["after"][task]]}
        | {name: [side[task].before, side[task].after, side[task].kind] for name, side in (("logs", told), ("ours", own))}
        for task in sorted(summary["before"])
    ]
    equal = [round(row["logs"][n], 9) == round(row["harness"][n], 9) for row in rows for n in (0, 1)]
    words = [row["logs"][2] == row["ours"][2] for row in rows]
    texts = share_interval(sum(same), len(same))
    goals = [
        _all("success of a task and side equal to the harness's", equal),
        _all("words about a task the same from logs and from checkpoints", words),
        Goal("completions that are the same texts", texts, f">= {LEAST_SAME_TEXTS}", texts.value >= LEAST_SAME_TEXTS),
    ]
    return Result(texts, "share of completions that the harness and we wrote alike", [SEED], rows, goals=goals)


def _all(name: str, held: list[bool]) -> Goal:
    share: Interval = share_interval(sum(held), len(held))
    return Goal(name, share, "= 1", share.value == 1)


if __name__ == "__main__":
    run("real_logs", __doc__, measure)
