import json
import sys
import tarfile

import pytest
from packaging.version import Version

from mixwright_lab.studies import gpu, gpu_pieces, pack_gpu
from mixwright_lab.studies.gpu_pieces import ARMS, NONE, OFF, ON, PIECES, piece
from mixwright_lab.studies.jobs import read_rows


def test_shares_are_those_of_the_trainers_own_seconds():
    seconds = {
        OFF: {"trainer": [1.0, 1.0], "bookkeeping": [0.0, 0.0]},
        ON: {"trainer": [1.0, 3.0], "bookkeeping": [0.01, 0.03]},
    }
    assert gpu.bookkeeping_share({"piece": "turns-sft-0", "seconds": seconds}) == pytest.approx(1.0)


def run(arm, weights="a", peak=100):
    return {
        "arm": arm,
        "loss": [1.0, 0.5],
        "reward": [],
        "tokens": 10,
        "seconds": 2.0,
        "peak bytes": peak,
        "weights": weights,
    }


def rows(*, none="a", again="a", peak=101):
    arms = [run(OFF), run("TRL again", again), run(NONE, none), run(ON, "b", peak)]
    return [
        {"piece": "arms-sft-0", "minutes": 1.0, "runs": arms},
        {"piece": "accelerate-sft-0", "minutes": 1.0, **run(ON, "b")},
    ]


def reached(found):
    return {goal.name.split(",")[0]: goal.reached for goal in gpu.goals_of(found)}


def test_goals_fail_where_what_they_ask_for_is_missing():
    fine = reached(rows())
    assert fine["steering=None equals TRL"]
    assert fine["peak memory"]
    assert fine["launched runs that log the losses of the plain one"]
    assert not reached(rows(none="c"))["steering=None equals TRL"]
    assert not reached(rows(peak=103))["peak memory"]
    assert not reached(rows(again="c"))["steering=None equals TRL"]  # TRL does not equal itself: nothing is shown
    assert not any(reached([]).values())
    assert not reached([*rows(), {"piece": "turns-sft-0", "error": "out of memory"}])["pieces that ended in an error"]


def test_a_piece_that_has_a_row_is_not_run_again_and_one_that_failed_is(monkeypatch, tmp_path, capsys):
    path, asked = tmp_path / "rows.jsonl", []
    monkeypatch.setattr(gpu, "PIECES", {"machine": 0.1, "throughput": 0.1, "turns-sft-0": 20.0})
    monkeypatch.setattr(gpu, "run_piece", lambda name, *_, **__: asked.append(name) or {"piece": name, "minutes": 0.1})
    monkeypatch.setattr(sys, "argv", ["gpu", "--rows", str(path), "--minutes", "5"])
    path.write_text(json.dumps({"piece": "machine"}) + "\n" + json.dumps({"piece": "throughput", "error": "x"}) + "\n{cut")
    gpu.main()
    assert asked == ["throughput"]
    line = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert line["missing"] == ["turns-sft-0"]  # it would not fit into five minutes
    assert [row["piece"] for row in read_rows(path)][-1] == "throughput"


@pytest.mark.filterwarnings("ignore:.is_gradient_checkpointing.:FutureWarning")  # DPO of TRL asks for the old name
@pytest.mark.parametrize("name", ["machine", "turns-dpo-0", "arms-sft-0", "throughput"])
def test_pieces_run_with_a_tiny_model(name):
    found = piece(name, "", tiny=True)
    json.dumps(found)
    if name == "arms-sft-0":
        by = {one["arm"]: one for one in found["runs"]}
        assert set(by) == {arm for arm in ARMS if "vLLM" not in arm}
        assert gpu.same(by[OFF], by[NONE])
        assert not gpu.same(by[OFF], by[ON])
    if name == "turns-dpo-0":
        assert all(seconds > 0 for seconds in found["seconds"][ON]["bookkeeping"])
        assert not any(found["seconds"][OFF]["bookkeeping"])


@pytest.mark.slow
def test_every_piece_runs_with_a_tiny_model(monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["gpu", "--quick"])
    gpu.main()
    line = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert line["missing"] == []
    assert line["value"] == len(PIECES)


def test_what_fits_on_the_machine_stays_and_what_does_not_brings_its_needs(monkeypatch):
    needs = {
        "root": ['a>=2; extra == "train"', "torch>=2", 'old; python_version < "3.12"'],
        "a": ["b==1.0", 'c; extra == "more"'],
        "b": [],
    }
    monkeypatch.setattr(pack_gpu, "requires", lambda name: needs[name])
    monkeypatch.setattr(pack_gpu, "version", lambda name: {"a": "2.5", "b": "1.0", "old": "3"}[name])
    assert pack_gpu.carried({"a": Version("2.1"), "b": Version("0.9")}, "3.12", "root") == []
    assert pack_gpu.carried({"a": Version("1.9"), "b": Version("0.9")}, "3.12", "root") == ["a==2.5", "b==1.0"]
    assert pack_gpu.carried({"a": Version("1.9"), "b": Version("1.0")}, "3.12", "root") == ["a==2.5"]


def test_archives_hold_everything_and_stay_within_their_size(tmp_path):
    model, size = tmp_path / "m.gguf", 40_960
    model.write_bytes(bytes(range(256)) * 250)
    parts = pack_gpu.parts_of(model, tmp_path, size // 2)
    small = [tmp_path / f"{n}.whl" for n in range(5)]
    for file in small:
        file.write_bytes(b"x" * 3000)
    made = pack_gpu.archives([*parts, *small], tmp_path, size)
    assert all(one.stat().st_size <= size for one in made)
    found = {}
    for one in made:
        with tarfile.open(one) as archive:
            found |= {name: archive.extractfile(name).read() for name in archive.getnames()}
    assert b"".join(found[part.name] for part in parts) == model.read_bytes()
    assert set(found) == {file.name for file in [*parts, *small]}
    with pytest.raises(ValueError, match="larger than an archive"):
        pack_gpu.archives([model], tmp_path, size)


def test_the_list_of_a_machine_is_read_and_other_lines_are_left_out(tmp_path):
    path = tmp_path / "have.txt"
    path.write_text("PyYAML==6.0.3\n-e /somewhere\nhuggingface_hub==1.33.0\nwheel @ file:///x\n")
    assert pack_gpu.installed(path) == {"pyyaml": Version("6.0.3"), "huggingface-hub": Version("1.33.0")}


def test_the_arm_with_checkpointing_has_it_and_the_others_have_not(tmp_path):
    """By whichever name transformers has for it."""
    learner = gpu_pieces.load("")
    made = {
        arm: gpu_pieces.trainer(learner, "sft", arm, gpu_pieces.TINY, 1, 0, tmp_path / str(place))
        for place, arm in enumerate((OFF, ON, "on, checkpointing"))
    }
    assert [trainer.args.gradient_checkpointing for trainer in made.values()] == [False, False, True]
