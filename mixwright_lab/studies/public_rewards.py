"""Study of public reward functions: what the audit of rewards finds in functions that many people train with.

The functions are not ours and not in this repository. MIXWRIGHT_PUBLIC_REWARDS names a folder that holds, as files of their
own, `gsm8k.py`, `math_reward.py`, `math_dapo.py` and `search_r1_like_qa_em.py` of verl 0.9.1 (`verl/utils/reward_score`),
`demo_rewards.py` (the five functions of the GRPO demo on GSM8K that is copied most, weights 1), and `test.jsonl` of
openai/grade-school-math. `accuracy_reward` is that of the installed TRL and needs the package math-verify. Each function is
tried on 40 items of GSM8K, with the answer that it is made for.

Nothing is expected beforehand: the result is a list. A finding says what the function pays, not that its authors are wrong:
a paid behaviour may be wanted.

    MIXWRIGHT_PUBLIC_REWARDS=FOLDER python -m mixwright_lab.studies.public_rewards
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
from importlib.metadata import version
from pathlib import Path
from typing import Any

from mixwright.config import CorpusConfig
from mixwright.errors import InputError
from mixwright.estimates.intervals import share_interval
from mixwright.rewards.stage import run_reward_audit
from mixwright_lab.studies.report import Result, run

DEMO = ("correctness", "int", "strict_format", "soft_format", "xmlcount")
FUNCTIONS: dict[str, tuple[str, ...]] = {
    "verl gsm8k": ("gsm8k:compute_score",),
    "verl math_reward": ("math_reward:compute_score",),
    "verl math_dapo": ("math_dapo:compute_score",),
    "verl search_r1, exact match": ("search_r1_like_qa_em:compute_score",),
    "verl search_r1, substring": ("search_r1_like_qa_em:compute_score_subem",),
    "TRL accuracy_reward": ("trl.rewards:accuracy_reward",),
    "GRPO demo, five functions": tuple(f"demo_rewards:{name}_reward_func" for name in DEMO),
}
"""What it is called here -> its functions."""
NESTED = "search_r1"
"""Of these the right answers are a list under `target`."""


def measure(quick: bool) -> Result:
    """Audit each of them."""
    place = os.environ.get("MIXWRIGHT_PUBLIC_REWARDS")
    if not place:
        raise InputError("a folder of public functions", "none", "Set MIXWRIGHT_PUBLIC_REWARDS.")
    folder = Path(place).resolve()
    os.environ["PYTHONPATH"] = os.pathsep.join([str(folder), *filter(None, [os.environ.get("PYTHONPATH")])])
    sys.path.insert(0, str(folder))
    rows = []
    with tempfile.TemporaryDirectory() as scratch:
        for label, names in list(FUNCTIONS.items())[: 2 if quick else None]:
            corpus = _write_corpus(folder / "test.jsonl", Path(scratch) / "items.jsonl", nested=NESTED in label)
            found = run_reward_audit(names, CorpusConfig(str(corpus), eval_share=0.0), items=8 if quick else 40)
            seen = [
                {"severity": one.severity, "check": one.check, "count": one.count, "of": one.total, "what": one.message}
                for one in found.observations
            ]
            rows.append({"function": label, "form": found.best_paid_form, "findings": seen})
    errors = sum(any(one["severity"] == "error" for one in row["findings"]) for row in rows)
    figures = {row["function"]: _summarise(row["findings"]) for row in rows}
    about: dict[str, Any] = {"trl": version("trl"), "verl": "0.9.1", "items": "GSM8K test"}
    return Result(share_interval(errors, len(rows)), "public reward functions with an error", [], rows, figures, about)


def _write_corpus(source: Path, out: Path, *, nested: bool) -> Path:
    """GSM8K as chat prompts with number answers."""
    with out.open("w", encoding="utf-8") as file:
        for line in source.read_text(encoding="utf-8").splitlines():
            row = json.loads(line)
            gold = row["answer"].split("####")[1].strip().replace(",", "")
            made = {"prompt": [{"role": "user", "content": row["question"]}], "answer": gold, "solution": f"${gold}$"}
            made |= {"data_source": "openai/gsm8k"} | ({"ground_truth": {"target": [gold]}} if nested else {})
            file.write(json.dumps(made) + "\n")
    return out


def _summarise(findings: list[dict[str, Any]]) -> dict[str, Any]:
    """Counts by severity, and what is found to be wrong."""
    named = [f"{one['what']} ({one['count']} of {one['of']})" for one in findings if one["severity"] != "info"]
    counts = {name: sum(one["severity"] == name for one in findings) for name in ("error", "warning", "info")}
    return {**counts, "named": named}


if __name__ == "__main__":
    run("public_rewards", __doc__, measure)
