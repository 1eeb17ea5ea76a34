import json
import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from answer_rows import ItemValue, write_measured

from mixwright.answers.table import Answers
from mixwright.config import CorpusConfig, MeasureConfig, RunConfig, TrialConfig
from mixwright.errors import InputError
from mixwright.records import Measurement
from mixwright.run.folder import RunFolder, answers_file, read_json, write_json
from mixwright.trial.arm_roles import assign_roles
from mixwright.trial.effects import proof_of
from mixwright.trial.seed_rows import BranchInfo, branch_rows, read_branch, target_tokens
from mixwright.trial.summary import summarise

ITEMS = {("gcd", 1.0): 60, ("gcd", 2.0): 60, ("sum", 2.0): 40, ("sum", 9.0): 40}
ALL = ("uniform", "equal_shares", "steered")
SEEDS = 6


def measurements(success, swapped=0.0, sampled=None, churn=None):
    """Rows of the probe: the first `success` of each cell's items are right, `churn` says which are right otherwise."""
    rows = []
    for (task, level), count in ITEMS.items():
        right = np.arange(count) < round(success * count)
        if churn is not None:
            chosen = churn.choice(count, 2, replace=False)
            right[chosen] = ~right[chosen]
        values = {"greedy": right.astype(float), "pass@1": np.full(count, success if sampled is None else sampled)}
        values |= {f"{name}.swapped": np.full(count, swapped) for name in ("greedy", "pass@1")}
        for name, column in values.items():
            n = 8 if name == "pass@1" else 1
            rows += [
                ItemValue(task, name, value, level, f"{task}@{level}-{i}", n) for i, value in enumerate(column.tolist())
            ]
        rows.append(Measurement("formats", task, "format_entropy", 1.0, 0, 2, 99, "share", level))
    return rows


@pytest.fixture(scope="module", autouse=True)
def start(tmp_path_factory):
    """Measurements of the starting model, one file for all branches."""
    path = tmp_path_factory.mktemp("start") / "before.parquet"
    write_measured(path, measurements(0.4))
    START.append(path)
    yield
    START.clear()


START: list[Path] = []


def write_branch(run, arm, seed, after, *, base="base-0", objective="grpo"):
    folder = run.branch(arm, seed)
    trained = arm != "frozen"
    write_json(folder / "branch.json", BranchInfo(arm, seed, base, objective, trained, "d"))
    for file in (START[0], answers_file(START[0])):
        (folder / file.name).hardlink_to(file)
    write_measured(folder / "after.parquet", after)
    if not trained:
        return
    steps = [
        {"step": s, "rollouts": 64 * (s + 1), "groups": 8, "zero_signal": 3, "refused": 1, "mixed": {"gcd@2": 3, "sum@9": 1}}
        for s in range(4)
    ]
    (folder / "steps.jsonl").write_text("".join(json.dumps(line) + "\n" for line in steps))
    write_json(folder / "proof.json", {"rollouts": 260})


def trial(place, after, *, arms=ALL, nulls=(), seeds=SEEDS, bases=2, **settings):
    """`after`: arm -> keyword arguments of `measurements`."""
    run = RunFolder(place)
    config = RunConfig(CorpusConfig("x"), measure=MeasureConfig(**settings), trial=TrialConfig(arms, nulls, seeds=seeds))
    for arm in (*assign_roles(config.trial).always_run, *nulls):
        for seed in range(seeds):
            made = measurements(**after[arm], churn=np.random.default_rng([seed, *arm.encode()]))
            write_branch(run, arm, seed, made, base=f"base-{seed % bases}")
    return run, config


def result_of(place, after, nulls=(), **settings):
    run, config = trial(place, after, nulls=nulls, **settings)
    return summarise(run, config, assign_roles(config.trial), {"steered": nulls} if nulls else None)


def flat(success, **parts):
    return {"success": success, **parts}


@pytest.fixture(scope="module")
def helps(tmp_path_factory):
    """A trial whose lever beats every reference."""
    return result_of(tmp_path_factory.mktemp("helps"), HELPS)


HELPS = {"frozen": flat(0.4), "uniform": flat(0.45), "equal_shares": flat(0.5), "steered": flat(0.7)}


def test_rows_of_a_branch_by_hand(tmp_path):
    run = RunFolder(tmp_path)
    after = [row for row in measurements(0.5, swapped=0.2, sampled=0.3) if not (row.task == "sum" and row.level == 9.0)]
    write_branch(run, "steered", 0, after)
    values = {row.name: row.value for row in branch_rows(read_branch(run.branch("steered", 0)), "greedy")}
    assert values["success"] == pytest.approx(0.5)
    assert (values["swapped"], values["dependence"]) == (pytest.approx(0.2), pytest.approx(0.3))
    assert values["success.sampled"] == pytest.approx(0.3)
    assert values["start.success"] == pytest.approx(0.4)
    assert [values[name] for name in ("zero_signal_share", "refused_share", "teaching_share")] == [12 / 32, 4 / 32, 16 / 32]
    assert values["rollouts"] == 260 + 160 * 9 + 1800  # training, after, before
    assert not [name for name in values if "reachable" in name or "mastered" in name]


def test_success_is_a_mean_over_tasks_and_beside_it_one_over_items(tmp_path):
    run = RunFolder(tmp_path)
    after = [row for row in measurements(0.5) if row.task == "gcd"] + [row for row in measurements(1.0) if row.task == "sum"]
    write_branch(run, "uniform", 0, after)
    rows = {row.name: row.value for row in branch_rows(read_branch(run.branch("uniform", 0)), "greedy")}
    assert rows["success"] == pytest.approx(0.75)
    assert rows["success.items"] == pytest.approx((0.5 * 120 + 80) / 200)


def test_target_tokens_are_those_of_all_stages(tmp_path):
    run = RunFolder(tmp_path)
    write_branch(run, "uniform", 0, measurements(0.4))
    branch = read_branch(run.branch("uniform", 0))
    assert target_tokens(branch) is None, "GRPO reads no target"
    sft, dpo = {"losses": {"sum@1": [2.0, 30], "gcd@1": [1.0, 12]}}, {"pairs": 4, "tokens": 50}
    assert target_tokens(replace(branch, steps=[*branch.steps, sft, sft, dpo])) == 2 * 42 + 50
    assert target_tokens(replace(branch, info=replace(branch.info, objective="dpo"), steps=[sft, dpo])) == 92


def test_steps_of_an_earlier_stage_are_no_groups(tmp_path):
    write_branch(RunFolder(tmp_path), "uniform", 0, measurements(0.4))
    branch = read_branch(RunFolder(tmp_path).branch("uniform", 0))
    sft = {"losses": {"sum@1": [2.0, 30]}}
    values = {row.name: row.value for row in branch_rows(replace(branch, steps=[sft, sft, *branch.steps]), "greedy")}
    assert [values[name] for name in ("zero_signal_share", "refused_share", "teaching_share")] == [12 / 32, 4 / 32, 16 / 32]


def test_the_frozen_model_costs_its_measuring_and_has_no_mechanism(tmp_path):
    run = RunFolder(tmp_path)
    write_branch(run, "frozen", 0, measurements(0.4))
    branch = read_branch(run.branch("frozen", 0))
    values = {row.name: row.value for row in branch_rows(branch, "greedy")}
    assert branch.charged_rollouts == 1800
    assert set(values) == {
        *("success", "swapped", "dependence", "success.sampled", "success.items", "start.success", "rollouts")
    }


def test_a_lever_that_beats_every_reference_helps(tmp_path, helps):
    result = helps
    assert (result.arms, result.references) == (("frozen", *ALL), ("frozen", "uniform", "equal_shares"))
    (judged,) = result.judgements
    assert (judged.arm, judged.word, judged.missing, judged.proof) == ("steered", "helps", (), "not tried")
    assert judged.because.startswith("against equal_shares: success +1"), "the narrowest of the three"
    pairs = [(e.arm, e.against) for e in result.effects if e.name == "success"]
    assert pairs == [
        *(("steered", name) for name in ("frozen", "uniform", "equal_shares")),
        *((name, "frozen") for name in ("uniform", "equal_shares")),
    ]
    effects = {(e.arm, e.against, e.name): e for e in result.effects}
    main = effects["steered", "frozen", "success"]
    rows = {(row.arm, row.seed): row.value or 0.0 for row in result.rows if row.name == "success"}
    by_hand = np.mean([rows["steered", seed] - rows["frozen", seed] for seed in range(SEEDS)])
    assert main.difference.value == pytest.approx(by_hand)
    assert (main.word, main.items, main.difference.n) == ("improves", 200, SEEDS)
    assert main.dependence is not None
    assert main.swapped is not None
    assert main.dependence.value + main.swapped.value == pytest.approx(main.difference.value)
    assert main.sampled is not None
    assert main.sampled.value == pytest.approx(0.3)
    beside = effects["steered", "frozen", "success.sampled"]
    assert (beside.difference, beside.sampled) == (main.sampled, None)
    assert effects["steered", "frozen", "success.items"].sampled is not None
    assert 0 < main.detectable < 0.1
    assert {e.name for e in result.effects} == {"success", "success.sampled", "success.items", "retention"}, "outcomes only"
    write_json(tmp_path / "result.json", result)
    assert read_json(tmp_path / "result.json", type(result)) == result


@pytest.mark.parametrize(
    ("arm", "changed", "word"),
    [
        ("equal_shares", flat(0.7), "cannot tell"),  # one of three is not beaten
        ("steered", flat(0.7, swapped=0.3), "cannot tell"),  # the gain is the commonest answer
        ("steered", flat(0.2), "harms"),
        ("equal_shares", flat(0.9), "harms"),  # worse than any reference is worse
    ],
)
def test_every_reference_must_be_beaten_by_skill(tmp_path, arm, changed, word):
    result = result_of(tmp_path, HELPS | {arm: changed})
    assert result.judgements[0].word == word
    words = {e.against: e.word for e in result.effects if (e.arm, e.name) == ("steered", "success")}
    assert (words["frozen"] == "commonest") == ("swapped" in changed)


def test_equal_arms_make_no_difference_and_no_change_needs_all_three(tmp_path):
    same = dict.fromkeys(("frozen", *ALL), flat(0.5))
    assert result_of(tmp_path / "same", same).judgements[0].word == "no change"
    assert result_of(tmp_path / "one", same | {"frozen": flat(0.45)}).judgements[0].word == "cannot tell"


def test_a_reference_that_did_not_run_is_missing_and_then_nothing_helps(tmp_path):
    for arms in (("uniform", "steered"), ("steered",)):
        result = result_of(tmp_path / arms[0], HELPS, arms=arms)
        (judged,) = result.judgements
        assert judged.word == "cannot tell"
        assert set(judged.missing) == {"uniform", "equal_shares"} - set(arms)
        assert "did not run: " in judged.because
    harmful = result_of(tmp_path / "harm", HELPS | {"steered": flat(0.1)}, arms=("uniform", "steered"))
    assert harmful.judgements[0].word == "harms"


@pytest.mark.parametrize("seeds", [1, 4])
def test_few_seeds_tell_nothing(tmp_path, seeds):
    result = result_of(tmp_path, HELPS, seeds=seeds, bases=1)
    assert {effect.word for effect in result.effects if effect.name == "success"} == {"cannot tell"}
    assert result.judgements[0].word == "cannot tell"
    assert any("fewer than 5 seeds" in note for note in result.notes)
    assert any("one model" in note for note in result.notes)


def test_nulls_are_compared_with_their_lever_and_are_a_family_of_their_own(tmp_path, helps):
    nulls = ("shuffled_levels", "permuted")
    after = HELPS | {"shuffled_levels": flat(0.5), "permuted": flat(0.3)}
    result = result_of(tmp_path, after, nulls)
    assert result.nulls == nulls
    assert result.judgements[0].proof == "beats its nulls"
    pairs = {(e.arm, e.against) for e in result.effects if e.name == "success"}
    assert pairs >= {
        ("steered", "shuffled_levels"),
        ("steered", "permuted"),
        ("shuffled_levels", "frozen"),
        ("permuted", "frozen"),
    }
    assert result.effects[: len(helps.effects)] == helps.effects, "what ran before is judged as before"
    equal = result_of(tmp_path / "equal", after | {"shuffled_levels": flat(0.7)}, nulls)
    assert equal.judgements[0].proof == "does not beat its nulls"
    assert equal.judgements[0].word == "helps"
    assert proof_of([]) == "not tried"


def test_the_declared_decoding_is_what_is_judged(tmp_path):
    after = {arm: flat(0.5, sampled=0.6 if arm == "steered" else 0.4) for arm in HELPS}
    greedy = result_of(tmp_path / "greedy", after)
    sampled = result_of(tmp_path / "sampled", after, decoding="sampled")
    assert (greedy.decoding, sampled.decoding) == ("greedy", "sampled")
    assert {e.word for e in greedy.effects if (e.arm, e.name) == ("steered", "success")} == {"sharper"}
    assert greedy.judgements[0].word == "no change", "greedy answers are the same"
    assert sampled.judgements[0].word == "helps"
    assert {e.name for e in sampled.effects} == {"success", "success.items", "retention"}, (
        "sampled success is the outcome itself"
    )
    assert all(e.sampled is None for e in sampled.effects)


def test_rollouts_are_charged_in_full(tmp_path):
    result = result_of(tmp_path, HELPS)
    # per arm: six branches of 260 + 1800, and 1800 for each of the two bases; frozen: measuring alone
    assert result.rollouts == {"frozen": 8 * 1800} | dict.fromkeys(ALL, 6 * 2060 + 3600)


def test_sft_has_no_reward_signal(tmp_path):
    run = RunFolder(tmp_path)
    write_branch(run, "uniform", 0, measurements(0.4), objective="sft")
    names = {row.name for row in branch_rows(read_branch(run.branch("uniform", 0)), "greedy")}
    assert not names & {"zero_signal_share", "refused_share"}
    assert "success" in names


def test_a_number_that_was_not_measured_is_none_and_never_improves(tmp_path):
    run, config = trial(tmp_path, HELPS)
    for arm in HELPS:
        for seed in range(SEEDS):
            path = run.branch(arm, seed) / "after.parquet"
            rows = measurements(**HELPS[arm], churn=np.random.default_rng([seed, *arm.encode()]))
            gone = {("greedy.swapped", "sum@9.0-3")}
            write_measured(path, [row for row in rows if not isinstance(row, ItemValue) or (row.name, row.item) not in gone])
    result = summarise(run, config, assign_roles(config.trial))
    assert {row.value for row in result.rows if row.name in ("swapped", "dependence")} == {None}
    (main,) = [e for e in result.effects if (e.arm, e.against, e.name) == ("steered", "frozen", "success")]
    assert (main.swapped, main.dependence, main.word) == (None, None, "cannot tell")
    assert result.judgements[0].word == "cannot tell"
    assert not math.isnan(main.difference.low)
    assert "nan" not in result.judgements[0].because
    write_json(tmp_path / "result.json", result)


def test_broken_files_are_named(tmp_path):
    run = RunFolder(tmp_path)
    write_branch(run, "uniform", 0, measurements(0.4))
    (run.branch("uniform", 0) / "steps.jsonl").write_text('{"step": 0}\nnot json\n')
    with pytest.raises(InputError, match=r"steps.jsonl, line 2"):
        read_branch(run.branch("uniform", 0))
    with pytest.raises(InputError, match=r"branch.json"):
        read_branch(run.branch("uniform", 1))


def test_measurements_without_answers_are_refused(tmp_path):
    run, config = trial(tmp_path, HELPS, seeds=1)
    answers_file(run.branch("uniform", 0) / "after.parquet").unlink()
    with pytest.raises(InputError, match=r"after\.answers\.parquet"):
        summarise(run, config, assign_roles(config.trial))


def test_a_trial_without_samples_has_no_effect_on_them(tmp_path):
    """`measure.samples: 0`: greedy decoding alone; what was not sampled is no number, and result.json holds none."""
    run, config = trial(tmp_path, HELPS)
    for path in run.path.rglob("*.parquet"):
        if path.stem in ("before", "after"):
            answers = Answers.read(answers_file(path))
            replace(answers, table=answers.table.take(answers.by_decoding["greedy"].rows)).write(answers_file(path))
    result = summarise(run, config, assign_roles(config.trial))
    names = {effect.name for effect in result.effects if effect.arm == "steered"}
    assert "success" in names
    assert "success.sampled" not in names
    write_json(tmp_path / "result.json", result)
