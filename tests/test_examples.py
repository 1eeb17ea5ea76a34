"""Every numbered example runs, in order, in one folder, and says what it is there to say."""

import runpy
import sys
from pathlib import Path

import pytest

EXAMPLES = sorted((Path(__file__).parent.parent / "examples").glob("[0-9]_*.py"))


def test_there_is_one_example_per_stage() -> None:
    names = [path.stem for path in EXAMPLES]
    assert names == ["1_audit", "2_learner", "3_measure", "4_plan", "5_steer", "6_trial", "7_verdict"]
    assert all(len(path.read_text(encoding="utf-8").splitlines()) <= 40 for path in EXAMPLES)


def test_the_examples_run_in_order(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.syspath_prepend(str(EXAMPLES[0].parent))
    said = {}
    for path in EXAMPLES:
        monkeypatch.setattr(sys, "argv", [path.name, str(tmp_path)])
        runpy.run_path(str(path), run_name="__main__")
        said[path.stem] = capsys.readouterr().out
    sys.modules.pop("_shared", None)
    assert "sum@1: 85 examples" in said["1_audit"]
    assert "step 300 of 300" in said["2_learner"]
    assert "2+3= -> [" in said["2_learner"]
    assert "pass@1" in said["3_measure"]
    assert "sum@1: reachable" in said["4_plan"]
    assert "sum@2: hopeless" in said["4_plan"]
    assert "step 30: [" in said["5_steer"]
    assert "refuse.sum@2: too hard: " in said["5_steer"]
    assert "success, steered minus uniform: [" in said["6_trial"]
    assert "cannot tell" in said["6_trial"]
    assert "verdict: " in said["7_verdict"]
    assert (tmp_path / "verdict.html").read_text(encoding="utf-8").startswith("<!doctype html>")
