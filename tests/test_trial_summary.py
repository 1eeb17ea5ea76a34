import json

import pytest

from mixwright.config import CorpusConfig, RunConfig, TrialConfig
from mixwright.errors import InputError
from mixwright.records import CellPlan, Measurement, Plan, Stage
from mixwright.runs import RunFolder, read_json, write_json, write_measurements
from mixwright.trial._effects import NUMBERS, Table, all_effects, compare
from mixwright.trial._rows import BranchInfo, branch_rows, class_success, reached, read_branch
from mixwright.trial._summary import summarise

CELLS = (
    CellPlan("gcd", 1.0, "mastered", 0.9, 0.3, 256, 50),
    CellPlan("gcd", 2.0, "reachable", 0.4, 0.3, 256, 50),
    CellPlan("sum", 2.0, "reachable", 0.5, 0.0, 256, 50),
    CellPlan("sum", 9.0, "hopeless", 0.0, 0.0, 256, 50),
)
PLAN = Plan("difficulty", (Stage("main", "grpo", 4, {"gcd": 0.5, "sum": 0.5}),), CELLS)
STARTS = {"gcd@1": 0.9, "gcd@2": 0.4, "sum@2": 0.5, "sum@9": 0.0}


def measurements(success):
    """Two items per cell: 8 samples and one greedy completion each, 18 rollouts a cell."""
    rows = []
    for key, value in success.items():
        task, level = key.split("@")
        rows.append(Measurement("competence", task, "pass@1", value, 0, 1, 16, "share", float(level)))
        for item in (f"{key}-a", f"{key}-b"):
            rows += [
                Measurement("competence", task, name, value, 0, 1, n, "share", float(level), item)
                for name, n in (("pass@1", 8), ("greedy", 1))
            ]
        rows.append(Measurement("entropy", task, "entropy", 1.0, 0, 2, 99, "nats per token", float(level)))
    return rows


def write_branch(run, arm, seed, after, progress, *, base="base-0", zero=3, objective="grpo"):
    folder = run.branch(arm, seed)
    write_json(folder / "branch.json", BranchInfo(arm, seed, base, objective, arm != "uniform", "d"))
    write_measurements(folder / "before.parquet", measurements(STARTS))
    write_measurements(folder / "after.parquet", measurements(STARTS | after))
    steps = [{"step": s, "rollouts": 64 * (s + 1), "groups": 8, "zero_signal": zero, "refused": 1} for s in range(4)]
    points = [
        {"step": s, "rollouts": 64 * s + 10 * (s + 1), "evaluated": 10 * (s + 1), "success": {"reachable": value}}
        for s, value in enumerate(progress)
    ]
    for name, lines in (("steps.jsonl", steps), ("progress.jsonl", points)):
        (folder / name).write_text("".join(json.dumps(line) + "\n" for line in lines))
    write_json(folder / "proof.json", {"rollouts": 260})


def trial(tmp_path, arms, seeds, after, progress):
    """`after` and `progress`: (arm, seed) -> values."""
    run = RunFolder(tmp_path)
    for arm in arms:
        for seed in range(seeds):
            write_branch(run, arm, seed, after(arm, seed), progress(arm, seed), base=f"base-{seed % 2}")
    return run, RunConfig(CorpusConfig("x"), trial=TrialConfig(arms, seeds, target=0.1))


EARLY, LATE, NEVER = [0.4, 0.5, 0.6, 0.6], [0.4, 0.4, 0.5, 0.6], [0.4, 0.4, 0.6, 0.4]


def test_success_of_a_class_counts_every_cell_once():
    found = class_success(measurements(STARTS), CELLS)
    assert found == {
        "mastered": 0.9,
        "reachable": pytest.approx(0.45),
        "hopeless": 0.0,
        "all": pytest.approx(0.45),
    }


@pytest.mark.parametrize(
    ("values", "gain", "expected"),
    [
        (EARLY, 0.1, (84, 0.5)),
        (LATE, 0.1, (158, 0.5)),
        (NEVER, 0.1, (None, 0.5)),  # once above is luck
        ([0.4, 0.4, 0.4, 0.9], 0.1, (None, 0.5)),  # nothing follows the last
        ([0.95, 1.0, 1.0], 0.1, (84, 1.0)),  # a target above 1 would be unreachable
        ([0.6, 0.6], 0.0, (None, 0.6)),
        ([], 0.1, (None, None)),
    ],
)
def test_the_target_counts_when_it_is_held(values, gain, expected):
    progress = [{"rollouts": 64 * s + 10 * (s + 1), "success": {"reachable": v}} for s, v in enumerate(values)]
    count, target = reached(progress, gain)
    assert count == expected[0]
    assert target == (expected[1] if expected[1] is None else pytest.approx(expected[1]))


def test_no_reachable_cell_has_no_target():
    assert reached([{"rollouts": 1, "success": {"mastered": 1.0}}], 0.1) == (None, None)


def test_rows_of_a_branch_by_hand(tmp_path):
    run = RunFolder(tmp_path)
    write_branch(run, "steered", 0, {"gcd@2": 0.6, "gcd@1": 0.8}, EARLY)
    branch = read_branch(run.branch("steered", 0))
    values = {row.name: row.value for row in branch_rows(branch, CELLS, 0.1)}
    assert values["zero_signal_share"] == 12 / 32
    assert values["refused_share"] == 4 / 32
    assert values["start.reachable"] == pytest.approx(0.45)
    assert values["success.reachable"] == pytest.approx(0.55)
    assert values["gain.mastered"] == pytest.approx(-0.1)
    assert values["training_rollouts_to_target"] == 84
    assert values["rollouts_to_target"] == 84 + 72  # the plan rests on 4 cells x 18 measured rollouts
    assert values["rollouts"] == 260 + 40 + 72 + 72  # training with canaries, evaluations, after, before
    assert "success.lucky" not in values


def test_the_reference_is_not_charged_for_measuring_it_does_not_use(tmp_path):
    run = RunFolder(tmp_path)
    write_branch(run, "uniform", 0, {}, EARLY)
    values = {row.name: row.value for row in branch_rows(read_branch(run.branch("uniform", 0)), CELLS, 0.1)}
    assert values["rollouts_to_target"] == values["training_rollouts_to_target"] == 84


def test_a_clear_gain_over_five_seeds_helps(tmp_path):
    gains = {"uniform": 0.0, "steered": 0.2}
    wobble = [0.0, 0.01, -0.01, 0.02, -0.02]
    run, config = trial(
        tmp_path,
        ("uniform", "steered"),
        5,
        lambda arm, seed: {"gcd@2": 0.4 + gains[arm] + (wobble[seed] if arm == "steered" else 0)},
        lambda arm, seed: EARLY if arm == "steered" else NEVER,
    )
    result = summarise(run, config, PLAN)
    effects = {(e.arm, e.against, e.name): e for e in result.effects}
    reachable = effects["steered", "uniform", "success.reachable"]
    assert reachable.difference.value == pytest.approx(0.1)  # one of two reachable cells gained .2
    assert reachable.word == "helps"
    assert 0 < reachable.noise_floor < 0.05
    assert effects["steered", "uniform", "success.mastered"].word == "no measurable effect"
    assert effects["steered", "uniform", "zero_signal_share"].word == "no measurable effect"
    assert effects["uniform", "start", "success.reachable"].difference.value == pytest.approx(0.0)
    assert effects["steered", "start", "success.reachable"].word == "helps"
    # no pair is complete, and still the order is told: five wins of five are not yet enough
    count = effects["steered", "uniform", "rollouts_to_target"]
    assert (count.difference.n, count.censored, count.word) == (0, 5, "inconclusive")
    first = effects["steered", "uniform", "first_to_target"]
    assert (first.difference.value, first.difference.n, first.word) == (1.0, 5, "inconclusive")
    assert any("5 of 5 steered runs and 0 of 5 uniform runs" in note for note in result.notes)
    assert any("No null arm" in note for note in result.notes)
    assert result.target == {
        "gain.reachable": 0.1,
        "success.reachable.base-0": pytest.approx(0.5),
        "success.reachable.base-1": pytest.approx(0.5),
    }
    # per arm: five branches of 260 + 40 + 72, and 72 for each of the two bases
    assert result.rollouts == {"uniform": 5 * 372 + 144, "steered": 5 * 372 + 144}
    assert not result.unproven
    write_json(run.result, result)
    assert read_json(run.result, type(result)) == result


def test_censored_pairs_are_counted_and_the_rest_compared(tmp_path):
    course = {("steered", 0): EARLY, ("steered", 1): EARLY, ("uniform", 0): LATE}
    run, config = trial(
        tmp_path, ("uniform", "steered"), 3, lambda arm, seed: {}, lambda arm, seed: course.get((arm, seed), NEVER)
    )
    result = summarise(run, config, PLAN)
    effects = {(e.against, e.name): e for e in result.effects if e.arm == "steered"}
    count = effects["uniform", "training_rollouts_to_target"]
    assert (count.difference.value, count.difference.n, count.censored) == (84 - 158, 1, 2)
    first = effects["uniform", "first_to_target"]  # seed 0: 156 against 158; seed 1: only steered arrived; seed 2: neither
    assert (first.difference.n, first.censored) == (2, 1)
    missed = [row for row in result.rows if row.name == "rollouts_to_target" and row.value is None]
    assert [(row.arm, row.seed) for row in missed] == [("uniform", 1), ("uniform", 2), ("steered", 2)]
    assert {e.word for e in result.effects} == {"inconclusive"}  # three seeds


@pytest.mark.parametrize(("gain", "unproven"), [(0.2, True), (0.0, False), (-0.2, False)])
def test_a_null_that_gains_makes_every_lever_unproven(tmp_path, gain, unproven):
    run, config = trial(
        tmp_path,
        ("uniform", "steered", "permuted"),
        3,
        lambda arm, seed: {"gcd@2": 0.4 + (gain + seed / 100 if arm == "permuted" else 0)},
        lambda arm, seed: NEVER,
    )
    result = summarise(run, config, PLAN)
    assert result.nulls == ("permuted",)
    assert result.unproven is unproven
    assert any(note.startswith("Unproven: permuted") for note in result.notes) is unproven


def test_a_null_may_gain_on_cells_that_levers_are_not_judged_on(tmp_path):
    run, config = trial(
        tmp_path,
        ("uniform", "permuted"),
        3,
        lambda arm, seed: {"sum@9": 0.3 + seed / 100 if arm == "permuted" else 0.0},
        lambda arm, seed: NEVER,
    )
    assert not summarise(run, config, PLAN).unproven


def test_one_seed_spans_everything(tmp_path):
    run, config = trial(tmp_path, ("uniform", "steered"), 1, lambda arm, seed: {"gcd@2": 0.9}, lambda arm, seed: EARLY)
    result = summarise(run, config, PLAN)
    shares = [e for e in result.effects if e.name == "success.reachable"]
    assert {(e.difference.low, e.difference.high, e.noise_floor) for e in shares} == {(-1.0, 1.0, 1.0)}


def test_an_arm_without_its_number_is_passed_over():
    table = Table.of([], {}, 0.05)
    assert compare(table, NUMBERS[0], "steered", "uniform") is None
    assert all_effects(table, {"uniform": "", "steered": "uniform"}) == ([], [])


def test_sft_has_no_rollouts_to_a_target_and_no_reward_signal(tmp_path):
    run = RunFolder(tmp_path)
    write_branch(run, "uniform", 0, {}, EARLY, objective="sft")
    names = {row.name for row in branch_rows(read_branch(run.branch("uniform", 0)), CELLS, 0.1)}
    assert not names & {"rollouts_to_target", "zero_signal_share", "refused_share"}
    assert "success.reachable" in names


def test_broken_files_are_named(tmp_path):
    run = RunFolder(tmp_path)
    write_branch(run, "uniform", 0, {}, EARLY)
    (run.branch("uniform", 0) / "steps.jsonl").write_text('{"step": 0}\nnot json\n')
    with pytest.raises(InputError, match=r"steps.jsonl, line 2"):
        read_branch(run.branch("uniform", 0))
    with pytest.raises(InputError, match=r"branch.json"):
        read_branch(run.branch("uniform", 1))
