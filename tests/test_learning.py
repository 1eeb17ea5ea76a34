"""With the settings that `--init` writes, unedited: what the demo claims at large, on a made-up file, on five seeds."""

import runpy
import sys
from pathlib import Path

import pytest

from mixwright.__main__ import main
from mixwright.records import TrialResult
from mixwright.runs import RunFolder, read_json, read_plan


@pytest.mark.slow
def test_steering_wastes_fewer_groups_and_its_null_gains_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    examples = Path(__file__).parent.parent / "examples"
    monkeypatch.syspath_prepend(str(examples))
    monkeypatch.setattr(sys, "argv", ["1_audit.py", "data"])
    runpy.run_path(str(examples / "1_audit.py"), run_name="__main__")
    sys.modules.pop("_shared", None)
    for arguments in (["run", "--init", "data/rows.jsonl"], ["run", "run.yaml"]):
        with pytest.raises(SystemExit) as leaving:
            main(arguments)
        assert not leaving.value.code
    run = RunFolder("runs/run")
    states = {cell.key: cell.state for cell in read_plan(run.plan).cells}
    assert states["last"] == "mastered"
    assert "reachable" in states.values()
    result = read_json(run.result, TrialResult)
    effects = {(e.arm, e.against, e.name): e for e in result.effects}
    assert effects["steered", "uniform", "zero_signal_share"].difference.high < -0.1
    assert effects["steered", "uniform", "success.mastered"].word != "harms"
    nulls = [e for e in result.effects if e.arm == "permuted" and e.name.startswith("success.")]
    assert nulls
    assert not any(e.word == "helps" for e in nulls)
    assert not result.unproven
