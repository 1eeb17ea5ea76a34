import dataclasses
import itertools

import pyarrow.parquet as pq
import pytest

from mixwright.config import CorpusConfig, MeasureConfig, ModelConfig, RunConfig, TrainConfig, TrialConfig, WarmupConfig
from mixwright.corpus import Corpus
from mixwright.errors import InputError
from mixwright.records import CellPlan, Example, Plan, Stage, TrialResult
from mixwright.runs import RunFolder, read_json, read_measurements, write_plan
from mixwright.trial._evaluation import COMPLETIONS, choose_items
from mixwright.trial._rows import read_branch
from mixwright.trial._stage import run_trial

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
            monitors=("canary",),
        ),
    ),
    (
        CellPlan("copy", 1.0, "mastered", 0.9, 0.1, 64, 20),
        CellPlan("copy", 2.0, "reachable", 0.4, 0.1, 64, 20),
        CellPlan("flip", None, "reachable", 0.4, 0.1, 64, 20),
    ),
)
CONFIG = RunConfig(
    CorpusConfig("unused"),
    ModelConfig(width=16, depth=1, heads=2, vocabulary=264),
    MeasureConfig(items=4, samples=2, max_new_tokens=3, probes=("competence",)),
    train=TrainConfig(steps=3, prompts=4, generations=4, max_new_tokens=3, canary_every=2),
    trial=TrialConfig(("uniform", "steered"), seeds=2, workers=1, progress_every=1),
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
    from mixwright.learner.tiny import build_tiny
    from mixwright.learner.warmup import warm_up

    run = RunFolder(tmp_path_factory.mktemp("run"))
    corpus = make_corpus()
    corpus.save(run.corpus)
    write_plan(run.plan, PLAN)
    learner = build_tiny((f"{e.prompt}{e.answer}" for e in corpus), CONFIG.model, 0)
    warm_up(learner, corpus, WarmupConfig(steps=60, batch_size=16, learning_rate=1e-2), seed=0)
    base = run.path / "bases" / "base-0"
    learner.save(base)
    return run, base, run_trial(run, CONFIG, [base], progress=lambda *_: None)


def test_every_branch_leaves_its_files(finished):
    run, _, result = finished
    assert [(arm, seed) for arm, seed, _ in run.branches()] == [
        ("steered", 0),
        ("steered", 1),
        ("uniform", 0),
        ("uniform", 1),
    ]
    for _, _, folder in run.branches():
        names = {path.name for path in folder.iterdir()}
        assert names >= {
            "before.parquet",
            "after.parquet",
            "completions.parquet",
            "steps.jsonl",
            "progress.jsonl",
            "draws.parquet",
            "proof.json",
            "branch.json",
            "model",
        }
        assert (folder / "model" / "model.safetensors").is_file()
        assert not (folder / "trainer").exists()
        table = pq.read_table(folder / "completions.parquet").to_pylist()
        assert sorted({row["when"] for row in table}) == ["after", "before"]
        assert len(table) == 2 * 3 * 4  # 3 cells x 4 items, before and after
        assert read_measurements(folder / "before.parquet") == read_measurements(run.measurements("base-0"))
    assert not list((run.path / "trial").glob(".*"))
    assert read_json(run.result, TrialResult) == result


def test_paired_branches_start_alike_and_are_charged_in_full(finished):
    run, _, result = finished
    branches = {(arm, seed): read_branch(folder) for arm, seed, folder in run.branches()}
    starts = {branch.progress[0]["success"]["reachable"] for branch in branches.values()}
    assert len(starts) == 1
    assert 0 < starts.pop() < 1
    (weights,) = {(base / "model.safetensors").read_bytes() for base in (run.path / "bases").iterdir()}
    models = {weights, *((folder / "model" / "model.safetensors").read_bytes() for _, _, folder in run.branches())}
    assert len(models) == 5  # every branch has learnt something of its own
    assert [point["step"] for point in branches["uniform", 0].progress] == [0, 1, 2, 3]
    # 3 steps of 16 rollouts, no canaries; 4 evaluations: 3 for each of 40 reachable items, 1 for each of 16 mastered ones
    evaluations = 4 * (120 + 16)
    assert branches["uniform", 0].charged == 48 + evaluations + 3 * 4 * 3
    assert branches["steered", 0].charged > branches["uniform", 0].charged  # canaries
    assert result.rollouts["uniform"] == 2 * (48 + evaluations + 36) + 36
    shares = {row.arm: row.value for row in result.rows if row.name == "zero_signal_share"}
    assert set(shares) == {"uniform", "steered"}
    assert {effect.word for effect in result.effects} == {"inconclusive"}


def test_a_second_call_takes_finished_branches_over(finished):
    run, base, result = finished
    before = {folder: (folder / "branch.json").stat().st_mtime_ns for _, _, folder in run.branches()}
    again = run_trial(run, CONFIG, [base], progress=lambda *_: pytest.fail("a branch was trained again"))
    assert again == result
    assert {folder: (folder / "branch.json").stat().st_mtime_ns for folder in before} == before


def test_a_branch_that_fails_leaves_nothing_and_keeps_what_was_finished(finished):
    run, base, _ = finished
    before = {folder: (folder / "branch.json").read_bytes() for _, _, folder in run.branches()}
    settings = dataclasses.replace(CONFIG.train, settings={"learning_rte": 1})
    with pytest.raises(InputError, match="learning_rte"):
        run_trial(run, dataclasses.replace(CONFIG, train=settings), [base], progress=lambda *_: None)
    assert not list((run.path / "trial").glob(".*"))
    assert {folder: (folder / "branch.json").read_bytes() for _, _, folder in run.branches()} == before


def test_another_plan_needs_other_branches(finished):
    from mixwright.trial._branch import base_digest, branch_digest, branch_of

    run, base, _ = finished
    corpus = Corpus.load(run.corpus)

    def digest(plan=PLAN, config=CONFIG, arm="steered", seed=0, base_content="x"):
        return branch_digest(branch_of(arm, plan, corpus), config, corpus="c", base=base_content, arm=arm, seed=seed)

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
    assert digest(config=more_seeds) == digest()  # more seeds keep what is there
    assert base_digest(str(base)) != base_digest("some/hub-name")


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"trial": TrialConfig(("steered",), 1)}, "which 'steered' is compared with"),
        ({"trial": TrialConfig(("uniform", "steerd"), 1)}, "Nearest: steered"),
        ({"trial": TrialConfig(("uniform",), 0)}, "at least one seed"),
        ({"measure": MeasureConfig(probes=("entropy",))}, "the probe competence"),
    ],
)
def test_what_cannot_work_is_refused_before_anything_is_trained(finished, change, words):
    run, base, _ = finished
    with pytest.raises(InputError, match=words):
        run_trial(run, dataclasses.replace(CONFIG, **change), [base])


def test_bases_need_names_of_their_own(finished, tmp_path):
    run, base, _ = finished
    with pytest.raises(InputError, match="different names"):
        run_trial(run, CONFIG, [base, tmp_path / "base-0"])


def test_items_of_a_class_take_turns_over_its_cells():
    corpus = make_corpus().select(split="eval")
    cells = [CellPlan("copy", 1.0, "lucky", 0.5, 0.5, 8, 8), CellPlan("flip", None, "lucky", 0.5, 0.5, 8, 8)]
    chosen = choose_items(corpus, cells, seed=1)
    assert list(chosen) == ["lucky"]
    assert len(chosen["lucky"]) == COMPLETIONS["lucky"] == 16
    assert [example.task for example in chosen["lucky"]] == ["copy", "flip"] * 8
    assert len({example.id for example in chosen["lucky"]}) == 16
    assert choose_items(corpus, cells, seed=1) == chosen
    assert choose_items(corpus, cells, seed=2) != chosen
