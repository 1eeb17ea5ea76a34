"""Every numbered example runs, in order, in one folder, and says what it is there to say; so do the loops of one's own."""

import re
import runpy
import sys
from pathlib import Path

import pytest

from mixwright import read_state

FOLDER = Path(__file__).parent.parent / "examples"
EXAMPLES = sorted(FOLDER.glob("[0-9]_*.py"))


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
    assert "pass@1" in said["3_measure"]
    assert "sum@1: reachable" in said["4_plan"]
    assert "sum@2: hopeless" in said["4_plan"]
    assert "refuse.sum@2: too hard: " in said["5_steer"]
    assert "success, steered minus uniform: [" in said["6_trial"]
    assert "cannot tell" in said["6_trial"]
    assert "verdict: " in said["7_verdict"]
    assert (tmp_path / "verdict.html").read_text(encoding="utf-8").startswith("<!doctype html>")


def test_an_own_loop_goes_on_exactly_where_it_stopped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    torch = pytest.importorskip("torch")
    monkeypatch.setattr(sys, "argv", ["own_loop.py", str(tmp_path)])
    names = runpy.run_path(str(FOLDER / "own_loop.py"), run_name="__main__")
    said = capsys.readouterr().out
    assert "refuse.secret: too hard: 0% right" in said
    assert re.search(r"lr_factor: .*fewer than 25%", said)
    assert "skip_step: " in said
    assert "secret: success 0.0" in said
    assert {path.name for path in tmp_path.iterdir()} == {"model.pt", "steering.json", "steering.npz"}
    whole = names["Loop"]()
    whole.train(names["STEPS"])
    for mine, other in zip(names["loop"].policy.parameters(), whole.policy.parameters(), strict=True):
        assert torch.equal(mine, other)


def test_late_batches_are_observed_and_those_under_way_survive_a_restart(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["batched_rollouts.py", str(tmp_path)])
    names = runpy.run_path(str(FOLDER / "batched_rollouts.py"), run_name="__main__")
    lines = capsys.readouterr().out.splitlines()
    assert lines[1].startswith("step 20: weights of step 17, levels [")
    assert lines[3].startswith("step 40: weights of step 37, levels [")
    assert len(names["flying"]) == names["AHEAD"]
    saved = read_state(tmp_path, "steering")
    assert [len(drawn) for drawn in saved["loop"]["flying"]] == [names["PROMPTS"]] * names["AHEAD"]
    assert saved["engine"]["parts"]["ledger"]["draws"] == names["PROMPTS"] * (names["STEPS"] // 2 + names["AHEAD"])
