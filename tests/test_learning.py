"""With the settings that `--init` writes, unedited: a lever is judged against not training and the simple rules."""

import runpy
import sys
from pathlib import Path

import pytest

from mixwright.__main__ import main
from mixwright.records import TrialResult
from mixwright.run.folder import RunFolder, read_json, read_plan


@pytest.mark.slow
def test_a_whole_run_judges_its_lever_over_all_items(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
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
    assert result.references == ("frozen", "uniform", "equal_shares")
    # The warm start has taught these very rows, so GRPO has little left to teach: no arm is asked to improve here.
    primary = {(e.arm, e.against): e for e in result.effects if e.name == "success"}
    (judged,) = result.judgements
    beaten = all(primary["steered", reference].word == "improves" for reference in result.references)
    assert (judged.word == "helps") == beaten
    assert bool(result.nulls) == beaten, "nulls run for a lever that helps, and only then"
    silent = {(row.arm, row.seed): row.value for row in result.rows if row.name == "zero_signal_share"}
    assert sum(silent["steered", seed] - silent["uniform", seed] for seed in result.seeds) < 0, "the mechanism still works"
