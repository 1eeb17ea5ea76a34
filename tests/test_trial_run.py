import dataclasses
import itertools
import shutil

import pyarrow.parquet as pq
import pytest
from answer_rows import read_items
from first_answers import read_first_answers
from trial_parts import try_folder

from mixwright.answers.table import Answers
from mixwright.config import CorpusConfig, MeasureConfig, ModelConfig, RunConfig, TrainConfig, TrialConfig, WarmupConfig
from mixwright.corpus import Corpus
from mixwright.errors import InputError
from mixwright.measure.bases import seed_after
from mixwright.records import CellAssessment, Example, Judgement, Plan, Stage, TrialResult
from mixwright.run.folder import RunFolder, read_json, read_measurements, write_plan
from mixwright.trial import summary
from mixwright.trial.arm_roles import make_branch
from mixwright.trial.branch import base_digest, branch_digest, train_branch
from mixwright.trial.jobs import Trial
from mixwright.trial.seed_rows import read_branch

TABLES = {f"{side}{end}" for side in ("before", "after") for end in (".parquet", ".answers.parquet")}
"""Tables of a branch."""

PLAN = Plan(
    "by hand",
    (
        Stage(
            "main",
            "grpo",
            3,
            {"copy": 0.5, "flip": 0.5},
            selector="difficulty",
            gates=("too_hard",),
        ),
    ),
    (
        CellAssessment("copy", 1.0, "mastered", 0.9, 0.1, 64, 20),
        CellAssessment("copy", 2.0, "reachable", 0.4, 0.1, 64, 20),
        CellAssessment("flip", None, "reachable", 0.4, 0.1, 64, 20),
    ),
)
CONFIG = RunConfig(
    CorpusConfig("unused"),
    ModelConfig(width=16, depth=1, heads=2, vocabulary=264),
    MeasureConfig(items=4, samples=2, max_new_tokens=3, probes=("competence",)),
    train=TrainConfig(steps=3, prompts=4, generations=4, max_new_tokens=3),
    trial=TrialConfig(("uniform", "steered"), seeds=2, workers=1),
)


def make_corpus():
    """One answer at level 1, two at level 2, three for flip: a few steps of warm-up earn some reward."""
    cells = (("copy", 1.0, 10, 1), ("copy", 2.0, 100, 2), ("flip", None, 10, 3))
    rows = []
    for (task, level, first, answers), split in itertools.product(cells, ("train", "eval")):
        start = first * (1 if split == "train" else 4)
        for number in range(start, start + 20):
            name = f"{task}-{level}-{split}-{number}"
            rows.append(Example(name, task, f"{task} {number} = ", answer=str(number % answers), level=level, split=split))
    return Corpus.from_examples(rows)


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """A whole trial: two arms, two seeds, one warmed-up tiny base."""
    from mixwright_extras.tiny.model import build_tiny
    from mixwright_extras.tiny.warmup import warm_up

    run = RunFolder(tmp_path_factory.mktemp("run"))
    corpus = make_corpus()
    corpus.save(run.corpus)
    write_plan(run.plan, PLAN)
    learner = build_tiny((f"{e.prompt}{e.answer}" for e in corpus), CONFIG.model, 0)
    warm_up(learner, corpus, WarmupConfig(steps=60, batch_size=16, learning_rate=1e-2), seed=0)
    base = run.path / "bases" / "base-0"
    learner.save(base)
    return run, base, try_folder(run, CONFIG, progress=lambda *_: None)


def test_every_branch_leaves_its_files(finished):
    run, _, result = finished
    assert [(arm, seed) for arm, seed, _ in run.branches()] == [
        ("frozen", 0),
        ("frozen", 1),
        ("steered", 0),
        ("steered", 1),
        ("uniform", 0),
        ("uniform", 1),
    ]
    for arm, _, folder in run.branches():
        names = {path.name for path in folder.iterdir()}
        if arm == "frozen":
            assert names == {*TABLES, "branch.json"}
            continue
        assert names >= {
            *TABLES,
            "steps.jsonl",
            "draws.parquet",
            "proof.json",
            "branch.json",
            "model",
        }
        assert (folder / "model" / "model.safetensors").is_file()
        assert not (folder / "trainer").exists()
        table = read_first_answers(folder)
        assert sorted({row["when"] for row in table}) == ["after", "before"]
        assert len(table) == 2 * 3 * 4  # 3 cells x 4 items, before and after
        assert read_measurements(folder / "before.parquet") == read_measurements(run.measurements("base-0"))
    assert not list((run.path / "trial").glob(".*"))
    assert read_json(run.result, TrialResult) == result


def test_paired_branches_start_alike_and_are_charged_in_full(finished):
    run, _, result = finished
    branches = {(arm, seed): read_branch(folder) for arm, seed, folder in run.branches()}
    trained = {key: branch for key, branch in branches.items() if branch.info.trained}
    (weights,) = {(base / "model.safetensors").read_bytes() for base in (run.path / "bases").iterdir()}
    models = {weights, *((run.branch(*key) / "model" / "model.safetensors").read_bytes() for key in trained)}
    assert len(models) == 5  # every branch has learnt something of its own
    # 3 steps of 16 rollouts
    assert branches["uniform", 0].charged_rollouts == 48 + 3 * 4 * 3
    assert branches["steered", 0].charged_rollouts == branches["uniform", 0].charged_rollouts
    assert result.rollouts["uniform"] == 2 * (48 + 36) + 36
    shares = {row.arm: row.value for row in result.rows if row.name == "zero_signal_share"}
    assert set(shares) == {"uniform", "steered"}
    assert not result.nulls
    assert any("no null was run" in note for note in result.notes)
    assert result.rollouts["frozen"] == 2 * 36 + 36
    assert {effect.word for effect in result.effects if effect.name == "success"} == {"cannot tell"}, "two seeds"
    assert [(judged.arm, judged.word, judged.missing) for judged in result.judgements] == [
        ("steered", "cannot tell", ("equal_shares",))
    ]


def test_a_second_call_takes_finished_branches_over(finished):
    run, _, result = finished
    before = {folder: (folder / "branch.json").stat().st_mtime_ns for _, _, folder in run.branches()}
    again = try_folder(run, CONFIG, progress=lambda *_: pytest.fail("a branch was trained again"))
    assert again == result
    assert {folder: (folder / "branch.json").stat().st_mtime_ns for folder in before} == before


def test_a_branch_that_fails_leaves_nothing_and_keeps_what_was_finished(finished):
    run, _, _ = finished
    before = {folder: (folder / "branch.json").read_bytes() for _, _, folder in run.branches()}
    settings = dataclasses.replace(CONFIG.train, settings={"learning_rte": 1})
    with pytest.raises(InputError, match="learning_rte"):
        try_folder(run, dataclasses.replace(CONFIG, train=settings), progress=lambda *_: None)
    assert not list((run.path / "trial").glob(".*"))
    assert {folder: (folder / "branch.json").read_bytes() for _, _, folder in run.branches()} == before


def test_another_plan_needs_other_branches(finished):
    run, base, _ = finished
    corpus = Corpus.load(run.corpus)

    def digest(plan=PLAN, config=CONFIG, arm="steered", seed=0, base_content="x"):
        return branch_digest(
            make_branch(arm, plan, corpus), config, corpus="c", digest_of_base=base_content, arm=arm, seed=seed
        )

    weights = dataclasses.replace(PLAN.stages[0], weights={"copy": 0.75, "flip": 0.25})
    faster = dataclasses.replace(CONFIG, train=dataclasses.replace(CONFIG.train, learning_rate=1.0))
    more_seeds = dataclasses.replace(CONFIG, trial=dataclasses.replace(CONFIG.trial, seeds=9))
    different = [
        digest(),
        digest(plan=dataclasses.replace(PLAN, stages=(weights,))),
        digest(config=faster),
        digest(arm="uniform"),
        digest(arm="permuted"),
        digest(seed=1),
        digest(base_content="y"),
    ]
    assert len(set(different)) == len(different)
    assert digest(config=faster, arm="frozen") == digest(arm="frozen"), "no training, no matter how"
    assert digest(config=more_seeds) == digest()  # more seeds keep what is there
    assert base_digest(str(base)) != base_digest("some/hub-name")


DECIDE_NO_BRANCH = {
    "model": {
        "path",
        "width",
        "depth",
        "heads",
        "vocabulary",
        "warmup",
    },  # the digest of the starting model has them
    "trial": {
        "arms",
        "nulls",
        "save_every",
        "data",
        "protect",
        "seeds",
        "workers",
        "budget_minutes",
        "margin",
        "cluster",
        "gpus_per_worker",
    },
}
"""Settings that change which branches there are, or how they are judged, and not what one becomes; `data` has its digest."""


@pytest.mark.parametrize("section", ["model", "measure", "train", "trial"])
def test_every_setting_that_changes_a_branch_is_in_its_digest(finished, section):
    """A new setting must be in the digest or be named above: otherwise a branch of other settings would be taken over."""
    run, _, _ = finished
    corpus, values = Corpus.load(run.corpus), getattr(CONFIG, section)

    def digest(config):
        return branch_digest(
            make_branch("steered", PLAN, corpus), config, corpus="c", digest_of_base="x", arm="steered", seed=0
        )

    unnoticed = set()
    for field in dataclasses.fields(values):
        other = dataclasses.replace(values)
        object.__setattr__(other, field.name, "another value")
        if digest(dataclasses.replace(CONFIG, **{section: other})) == digest(CONFIG):
            unnoticed.add(field.name)
    assert unnoticed == DECIDE_NO_BRANCH.get(section, set())


def test_measurements_without_answers_are_refused_before_anything_is_trained(finished, tmp_path, monkeypatch):
    run, _, _ = finished
    older = RunFolder(tmp_path)
    make_corpus().save(older.corpus)
    write_plan(older.plan, PLAN)
    shutil.copytree(run.path / "measure", older.path / "measure")
    older.answers("base-0").unlink()
    monkeypatch.setattr(Trial, "train", lambda *_: pytest.fail("trained"))
    with pytest.raises(InputError, match=r"base-0\.answers\.parquet.*nothing"):
        try_folder(older, CONFIG)


def test_the_frozen_arm_is_exactly_the_base_and_its_samples_are_drawn_anew(finished):
    run, _, _ = finished
    before = read_items(run.measurements("base-0"))
    after = [read_items(run.branch("frozen", seed) / "after.parquet") for seed in (0, 1)]
    for found in after:
        assert found.keys() == before.keys()
        assert {key: value for key, value in found.items() if key[0].startswith("greedy")} == {
            key: value for key, value in before.items() if key[0].startswith("greedy")
        }
    sampled = [{key: found[key] for key in found if key[0] == "pass@1"} for found in (before, *after)]
    assert sampled[0] != sampled[1] != sampled[2] != sampled[0]
    assert len({seed_after(CONFIG.seed, 0), seed_after(CONFIG.seed, 1), CONFIG.seed + 1_000_003}) == 3


def plan_anew(settings, train, corpus, measured):
    """The plan of shuffled levels: it shows that what was measured on them arrives here."""
    assert [row.level for row in measured if row.name == "greedy" and row.task == "copy" and row.level is not None]
    cells = tuple(CellAssessment(cell.task, cell.level, "unknown", None, 0.0, 0, cell.count) for cell in corpus.cells())
    return Plan("anew", (Stage("x", "grpo", 99, {"copy": 0.25, "flip": 0.75}, selector="uniform"),), cells)


@pytest.fixture(scope="module")
def with_nulls(finished):
    """The same trial, once its lever is said to help."""
    run, _, _ = finished
    trained = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("mixwright.trial.jobs.make_plan", plan_anew)
        patch.setattr(summary, "judge_lever", lambda lever, *_: Judgement(lever, "helps", "said so"))
        patch.setattr(
            Trial, "train", lambda self, jobs, *rest, own=Trial.train: trained.append(jobs) or own(self, jobs, *rest)
        )
        result = try_folder(run, CONFIG, progress=lambda *_: None)
        again = try_folder(run, CONFIG, progress=lambda *_: pytest.fail("trained twice"))
    assert again == result
    return run, result, trained[1]


def test_nulls_run_when_a_lever_helps_and_only_then(with_nulls):
    _, result, jobs = with_nulls
    assert result.nulls == ("shuffled_levels", "permuted")
    assert [(job.arm, job.seed) for job in jobs] == [(arm, seed) for seed in (0, 1) for arm in result.nulls]
    pairs = {(effect.arm, effect.against) for effect in result.effects if effect.name == "success"}
    assert pairs >= {("steered", null) for null in result.nulls} | {(null, "frozen") for null in result.nulls}
    assert set(result.rollouts) == {"frozen", "uniform", "steered", *result.nulls}
    assert not any("no null was run" in note for note in result.notes)


def test_shuffled_levels_are_measured_planned_and_trained_on_and_judged_on_the_true_items(with_nulls):
    run, _, jobs = with_nulls
    job = next(job for job in jobs if job.arm == "shuffled_levels")
    stage = job.branch.plan.stages[0]
    assert stage.weights == {"copy": 0.25, "flip": 0.75}
    assert (stage.selector, stage.gates, stage.steps) == ("difficulty", ("too_hard",), 3), "the lever's own"
    true = {example.id: example.level for example in Corpus.load(run.corpus)}
    drawn = pq.read_table(run.branch("shuffled_levels", 0) / "draws.parquet").to_pylist()
    assert any(row["level"] != true[row["example"]] for row in drawn if row["task"] == "copy")
    measured = Answers.read(run.answers("base-0.shuffled"))
    assert any(level != true[item] for task, level, item in measured.items if task == "copy")
    after = Answers.read(run.branch("shuffled_levels", 0) / "after.answers.parquet")
    assert all(level == true[item] for _, level, item in after.items)


@pytest.mark.filterwarnings("ignore:.*gradient_checkpointing.*:FutureWarning")  # TRL sets transformers' older name
@pytest.mark.filterwarnings("ignore:.*keep_end.*:FutureWarning")
def test_nulls_are_made_from_their_own_levers_plan(finished):
    run, base, _ = finished
    trial = Trial(run, CONFIG, PLAN, Corpus.load(run.corpus), str(base))
    permuted = trial.null_jobs(["permuted"], "equal_shares")[0]  # any arm can be the lever
    assert permuted.arm == "permuted.equal_shares"
    assert permuted.branch.plan.stages[0].selector == "equal_levels"
    own = trial.null_jobs(["permuted"], "steered")[0]
    assert own.arm == "permuted"
    assert own.digest != permuted.digest, "another plan, another branch"
    assert trial.null_jobs(["permuted"], "lora")[0].branch.adapter == "lora"
    assert train_branch(permuted) == str(run.branch("permuted.equal_shares", 0))


@pytest.mark.filterwarnings("ignore:.*gradient_checkpointing.*:FutureWarning")  # TRL sets transformers' older name
@pytest.mark.filterwarnings("ignore:.*keep_end.*:FutureWarning")
def test_a_branch_that_was_stopped_while_it_was_measured_is_not_trained_again(finished, tmp_path, monkeypatch):
    from mixwright.measure import stage
    from mixwright.trial import branch, training
    from mixwright.trial.jobs import Trial

    done, base, _ = finished
    shutil.copytree(done.path, tmp_path / "run")
    run = RunFolder(tmp_path / "run")
    job = Trial(run, CONFIG, PLAN, Corpus.load(run.corpus), str(base)).arm_jobs(["uniform"])[1]
    final = run.branch("uniform", 1)
    assert branch.is_complete(final, job.digest)
    before = read_measurements(final / "after.parquet")
    shutil.rmtree(final)
    measured, written = stage.measure_learner, list[int]()

    def stopped(learner, corpus, config, **how):
        measured(learner, corpus, dataclasses.replace(config, items=2), **how)
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(stage, "measure_learner", stopped)
        with pytest.raises(KeyboardInterrupt):
            branch.train_branch(job)
    partial = final.with_name(f".{final.name}.partial")
    assert branch._is_marked(partial / branch.TRAINED_FILE, job.digest)
    assert not branch._is_marked(partial / branch.TRAINED_FILE, "another")
    assert (partial / "answers.jsonl").stat().st_size > 0
    monkeypatch.setattr(training, "make_trainer", lambda *_, **__: pytest.fail("trained twice"))
    from mixwright.learner.learner import Learner

    generate = Learner.generate
    monkeypatch.setattr(
        Learner, "generate", lambda self, jobs, *how: (written.append(len(jobs)), generate(self, jobs, *how))[1]
    )
    branch.train_branch(job)
    assert read_measurements(final / "after.parquet") == before
    assert not partial.exists()
    assert {path.name for path in final.iterdir()}.isdisjoint({"trained.json", "answers.jsonl"})
    assert min(written) < 3 * 4, "greedy answers that were kept are not written again"


@pytest.mark.filterwarnings("ignore:.*gradient_checkpointing.*:FutureWarning")  # TRL sets transformers' older name
@pytest.mark.filterwarnings("ignore:.*keep_end.*:FutureWarning")
@pytest.mark.parametrize(
    ("arm", "adapter", "stopped", "resumed"),
    [("steered", None, 5, 4), ("uniform", None, 5, 4), ("steered", "lora", 5, 4), ("steered", None, 1, 0)],
)
def test_a_branch_that_was_stopped_while_it_trained_goes_on_from_its_checkpoint(
    finished, tmp_path, monkeypatch, arm, adapter, stopped, resumed
):
    """Saved after every second step, so that what was stopped before the first save begins anew."""
    from transformers import TrainerCallback

    from mixwright.trial import branch, training
    from mixwright.trial.jobs import Trial

    done, base, _ = finished
    plan = dataclasses.replace(PLAN, stages=(dataclasses.replace(PLAN.stages[0], steps=6),))
    train = dataclasses.replace(CONFIG.train, steps=6, adapter=adapter)
    make, begun = training.make_trainer, list[int]()

    class Stops(TrainerCallback):
        def on_step_begin(self, args, state, control, **_):
            begun.append(state.global_step)
            if stops and len(begun) == stopped + 1:
                raise KeyboardInterrupt

    def make_stopping(*args, **named):
        trainer = make(*args, **named)
        trainer.add_callback(Stops())
        return trainer

    monkeypatch.setattr(training, "make_trainer", make_stopping)
    left = {}
    for stops in (False, True):
        shutil.copytree(done.path, tmp_path / f"run{stops}", ignore=shutil.ignore_patterns("trial"))
        run = RunFolder(tmp_path / f"run{stops}")
        write_plan(run.plan, plan)
        trial = dataclasses.replace(CONFIG.trial, save_every=2 * stops)
        config = dataclasses.replace(CONFIG, train=train, trial=trial)
        job = Trial(run, config, plan, Corpus.load(run.corpus), str(base)).arm_jobs([arm])[0]
        begun.clear()
        if stops:
            with pytest.raises(KeyboardInterrupt):
                branch.train_branch(job)
        branch.train_branch(job)
        folder = run.branch(arm, 0)
        left[stops] = {
            str(path.relative_to(folder)): path.read_bytes()
            for path in folder.rglob("*")
            if path.suffix in (".parquet", ".safetensors") or path.name in ("steps.jsonl", "draws.jsonl")
        }
    assert begun == [*range(stopped + 1), *range(resumed, 6)]
    assert left[True].keys() == left[False].keys() >= {"after.parquet", "after.answers.parquet", "steps.jsonl"}
    assert {name for name, content in left[True].items() if content != left[False][name]} == set()


@pytest.mark.parametrize("arm", ["uniform", "frozen"])
@pytest.mark.parametrize("place", ["write_measurements", "write_json", "shutil.rmtree"])
def test_a_branch_that_was_stopped_at_its_end_writes_no_answer_again(finished, tmp_path, monkeypatch, arm, place):
    from mixwright.learner import learner
    from mixwright.trial import branch, training
    from mixwright.trial.jobs import Trial

    done, base, _ = finished
    shutil.copytree(done.path, tmp_path / "run")
    run = RunFolder(tmp_path / "run")
    job = Trial(run, CONFIG, PLAN, Corpus.load(run.corpus), str(base)).arm_jobs([arm])[0]
    final = run.branch(arm, 0)
    before, folder = read_measurements(final / "after.parquet"), final.with_name(f".{final.name}.partial")
    names = {path.name for path in final.iterdir()}
    final.rename(folder)
    (folder / "branch.json").unlink()
    branch.write_json(folder / branch.TRAINED_FILE, {"digest": job.digest})
    remove = shutil.rmtree

    def stop(where, *how, **named):
        if "trained.json" not in str(where):
            raise KeyboardInterrupt
        remove(where, *how, **named)

    monkeypatch.setattr(training, "make_trainer", lambda *_, **__: pytest.fail("trained twice"))
    with monkeypatch.context() as patch:
        patch.setattr(f"mixwright.trial.branch.{place}", stop)
        with pytest.raises(KeyboardInterrupt):
            branch.train_branch(job)
    monkeypatch.setattr(learner, "generate", lambda _, jobs, *__: pytest.fail("written twice") if jobs else iter(()))
    branch.train_branch(job)
    assert read_measurements(final / "after.parquet") == before
    assert {path.name for path in final.iterdir()} == names
    assert not folder.exists()
