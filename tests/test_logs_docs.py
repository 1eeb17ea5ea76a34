"""The example of docs/logs.md for continuous integration, run as it stands on logs of lm-evaluation-harness."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
from cli_call import Call
from project_files import ROOT
from test_logs_lm_eval import chosen, logged, results, written

PAGE = (ROOT / "docs" / "logs.md").read_text(encoding="utf-8")


@pytest.mark.parametrize(("right", "expected"), [(200, 0), (100, 3)])
def test_the_example_for_continuous_integration(call: Call, right: int, expected: int) -> None:
    (example,) = re.findall(r"```bash\n(.*?)```", PAGE, re.DOTALL)
    evaluate, judge = map(shlex.split, example.strip().splitlines())
    assert evaluate[0] == "lm_eval"
    assert "--log_samples" in evaluate
    golds = [n % 3 for n in range(200)]
    found = results({"gsm8k": {"exact_match,strict-match": 1.0}, "arc_easy": {"acc,none": 1.0}})
    for when, count in (("before", 200), (evaluate[evaluate.index("--output_path") + 1], right)):
        samples = {"gsm8k": written([n < count for n in range(200)]), "arc_easy": chosen(golds, golds)}
        logged(when, samples, found)
    code, out, err = call(*judge[1:])
    assert code == expected, out + err
    assert Path("verdict/verdict.html").exists()
    assert Path("verdict/verdict.json").exists()


def test_every_key_of_a_plain_log_is_named() -> None:
    for key in (
        "task",
        "id",
        "score",
        "prompt",
        "completion",
        "answer",
        "level",
        "sample",
        "seed",
        "cut",
    ):
        assert f"`{key}`" in PAGE
