import copy
import tracemalloc
from collections import Counter

import numpy as np
import pytest
import torch

from mixwright import catalog
from mixwright.answers.nulls import OTHER_ITEMS_PER_ITEM, choose_shifts, grade_swapped, texts_of
from mixwright.answers.score import scores_of_items
from mixwright.config import MeasureConfig, ModelConfig
from mixwright.corpus import Corpus
from mixwright.errors import InputError
from mixwright.estimates.dependence import dependence, dependence_of_shifts
from mixwright.estimates.intervals import wilson
from mixwright.learner.learner import Completion, Learner
from mixwright.learner.prompt_form import PromptForm
from mixwright.measure.passes import Passes
from mixwright.measure.stage import measure_learner
from mixwright.records import Example
from mixwright_extras.tiny.model import build_tiny

CONFIG = MeasureConfig(items=3, samples=4, max_new_tokens=4)


def examples() -> list[Example]:
    """Task add at two levels, task say without levels; train and eval rows."""
    rows = []
    for n in range(24):
        split = "eval" if n % 3 == 0 else "train"
        rows.append(Example(f"a{n}", "add", f"{n} + 1 =", answer=str(n + 1), level=1.0 + n % 2, split=split))
        rows.append(Example(f"s{n}", "say", f"say {n}:", answer="yes" if n % 6 else "no", split=split))
    return rows


@pytest.fixture(scope="module")
def corpus() -> Corpus:
    return Corpus.from_examples(examples())


@pytest.fixture(scope="module")
def learner() -> Learner:
    return build_tiny([e.prompt + (e.answer or "") for e in examples()], ModelConfig(width=16, depth=2, heads=2), 0)


@pytest.fixture
def moved(learner) -> Learner:
    """The learner with disturbed weights."""
    model = copy.deepcopy(learner.model)
    generator = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter += 0.05 * torch.randn(parameter.shape, generator=generator)
    return Learner(model, learner.tokenizer, "moved")


class Script:
    """Stands for a learner: says what it is told for each prompt, greedy first."""

    form = PromptForm()

    def __init__(self, lines: dict[str, list[str]]) -> None:
        self.lines = lines

    def sample(self, prompts, *, count, temperature, max_new_tokens, seed, draw_keys=None, **_):
        chosen = slice(0, 1) if temperature == 0 else slice(1, 1 + count)
        return [[Completion(text, (5,), (0.0,), True) for text in self.lines[prompt][chosen]] for prompt in prompts]


def scripted(lines: dict[str, list[str]], answers: dict[str, str], samples: int) -> tuple[Passes, Corpus]:
    rows = [Example(prompt, "t", prompt, answer=answer, level=2.0) for prompt, answer in answers.items()]
    corpus = Corpus.from_examples(rows)
    return Passes(Script(lines), MeasureConfig(items=9, samples=samples), corpus), corpus  # pyright: ignore


def run(name: str, passes: Passes, corpus: Corpus, seed: int = 0):
    return catalog.create("probes", name).measure(passes, corpus, np.random.default_rng(seed))


def named(rows, name, task="t", level=2.0):
    (row,) = [r for r in rows if (r.name, r.task, r.level) == (name, task, level)]
    return row


def test_competence_by_hand():
    answers = {"p": "1", "q": "2", "r": "3", "s": "3"}
    lines = {"p": ["1", "1", "7"], "q": ["7", "7", "2"], "r": ["3", "3", "3"], "s": ["x", "x", "7"]}
    passes, *rest = scripted(lines, answers, samples=2)
    rows = run("competence", passes, *rest)
    assert named(rows, "greedy").value == 0.5
    assert named(rows, "pass@1").value == pytest.approx(4 / 8)
    assert named(rows, "pass@2").value == pytest.approx(3 / 4)
    assert (named(rows, "pass@2").low, named(rows, "pass@2").high) == wilson(3, 4)
    # of the greedy answers 1, 7, 3, x only the 3 of r is also right elsewhere, on s: one of twelve pairs, as in the samples
    for name, success in (("greedy", 0.5), ("pass@1", 0.5)):
        assert named(rows, f"{name}.swapped").value == pytest.approx(1 / 12)
        assert named(rows, f"{name}.dependence").value == pytest.approx(success - 1 / 12)
        assert named(rows, f"{name}.kappa").value == pytest.approx((success - 1 / 12) / (11 / 12))
        test = named(rows, f"{name}.permutation")
        assert (test.unit, test.n, test.value, test.value) == ("p value", 4, test.low, test.high)
        # p, r and one more sample of q are right on their own prompts: of 24 permutations few do as well
        assert 0 < test.value < 0.3
    items = items_of(passes)
    assert items["pass@1"] == {"p": 0.5, "q": 0.5, "r": 1.0, "s": 0.0}
    assert items["greedy"] == {"p": 1.0, "q": 0.0, "r": 1.0, "s": 0.0}
    for name in ("greedy", "pass@1"):
        parts = items[f"{name}.swapped"]
        assert sum(parts.values()) / 4 == pytest.approx(1 / 12)
        # given on others 0, 0, 1/3, 0; received 0, 0, 0, 1/3; S + 3 / 2 (given + received - 2 S)
        assert parts == {
            key: pytest.approx(1 / 12 + 1.5 * (extra - 1 / 6))
            for key, extra in zip("pqrs", (0, 0, 1 / 3, 1 / 3), strict=True)
        }
    assert {row.unit for row in rows if not row.name.endswith("permutation")} == {"share"}
    assert {row.name for row in rows} == CELL_ROWS
    assert items.keys() == set(ITEM_ROWS)


ITEM_ROWS = ("greedy", "pass@1", "greedy.swapped", "pass@1.swapped", "chance")


def items_of(passes: Passes) -> dict[str, dict[str, float]]:
    """Name -> item -> score."""
    found = scores_of_items(passes.answers)
    scores = {name: found.by_item(name) for name in found.columns}
    return {name: {item: value for (_, _, item), value in own.items()} for name, own in scores.items()}


CELL_ROWS = {"greedy", "pass@1", "pass@2", "learnability", "chance"} | {
    f"{name}.{part}" for name in ("greedy", "pass@1") for part in ("swapped", "dependence", "kappa", "permutation", "gain")
}


def test_whole_tasks_are_the_mean_of_their_items_each_swapped_within_its_level():
    rows = [
        Example(f"{level}{i}", "t", f"{level}{i}", answer=f"{level}", level=float(level))
        for level in (1, 2)
        for i in range(8)
    ]
    corpus = Corpus.from_examples(rows)
    lines = {row.id: [row.answer or ""] * 3 if row.level == 1 else ["no"] * 3 for row in rows}
    passes = Passes(Script(lines), MeasureConfig(items=9, samples=2), corpus)  # pyright: ignore
    found = run("competence", passes, corpus)
    assert named(found, "greedy.swapped", level=1.0).value == 1  # the one answer of level 1 is right for every other prompt
    assert named(found, "greedy.swapped", level=2.0).value == 0
    whole = named(found, "greedy", level=None)
    assert whole.value == named(found, "greedy.swapped", level=None).value == 0.5
    assert named(found, "greedy.dependence", level=None).value == pytest.approx(0)
    assert not [row for row in found if row.level is None and row.name.endswith("permutation")]


def test_the_chance_level_is_that_of_a_rule_chosen_on_the_training_rows():
    rows = [Example(f"t{n}", "a", f"t{n}", answer="1" if n < 6 else f"x{n}", split="train") for n in range(10)]
    rows += [Example(f"e{n}", "a", f"e{n}", answer="1" if n < 3 else "2", split="eval") for n in range(10)]
    corpus = Corpus.from_examples(rows)
    passes = Passes(Script({row.id: ["2"] * 3 for row in rows}), MeasureConfig(items=20, samples=2), corpus)  # pyright: ignore
    found = run("competence", passes, corpus)
    chance = named(found, "chance", "a", None)
    assert (chance.value, chance.null_of) == (0.3, "constant 1")  # on the scored rows it would have been "2", .7
    assert (chance.low, chance.high) == wilson(3, 10)
    assert named(found, "greedy", "a", None).null == named(found, "pass@1", "a", None).null == 0.3
    assert named(found, "pass@2", "a", None).null == pytest.approx(1 - 0.7**2)
    assert items_of(passes)["chance"] == {f"e{n}": float(n < 3) for n in range(10)}


def asked(count: int, place: int | None, texts=("left", "right", "up"), split="eval") -> list[Example]:
    """Rows with three options in random order; the right one stands at a place, or at a random one."""
    rng, found = np.random.default_rng(count), []
    for i in range(count):
        options = [f"{text} {i}" for text in rng.permutation(texts)]
        right = options[rng.integers(3) if place is None else place]
        found.append(
            Example(f"{split}{i}", "t", f"{split} {i}?", answer=right, level=2.0, extra={"options": options}, split=split)
        )
    return found


def test_a_habit_of_one_place_is_no_dependence_though_its_texts_all_differ():
    rows = asked(60, None)
    corpus = Corpus.from_examples(rows, {"t": "choice"})
    lines = {str(row.prompt): [row.extra["options"][0]] * 3 for row in rows}
    passes = Passes(Script(lines), MeasureConfig(items=60, samples=2), corpus)  # pyright: ignore
    found = run("competence", passes, corpus)
    assert named(found, "greedy").value > 0.2
    assert named(found, "greedy.dependence").value == pytest.approx(0, abs=1e-9)
    assert named(found, "greedy.permutation").value == 1
    lines = {str(row.prompt): [row.answer or ""] * 3 for row in rows}
    passes = Passes(Script(lines), MeasureConfig(items=60, samples=2), corpus)  # pyright: ignore
    skilled = run("competence", passes, corpus)
    assert named(skilled, "greedy.swapped").value == pytest.approx(1 / 3, abs=0.06)
    assert named(skilled, "greedy.kappa").value == 1
    assert named(skilled, "greedy.permutation").value < 0.01


def test_items_of_small_cells_are_judged_together():
    rows = [Example(f"r{i}", "t", f"r{i}", answer=str(i % 3), level=float(i)) for i in range(9)]
    corpus = Corpus.from_examples(rows)
    passes = Passes(Script({row.id: [row.answer or ""] * 3 for row in rows}), MeasureConfig(samples=2), corpus)  # pyright: ignore
    found = run("competence", passes, corpus)
    for level in (0.0, 4.0):
        assert named(found, "greedy.swapped", level=level).value == pytest.approx(9 * 2 / (9 * 8))
        assert named(found, "greedy.kappa", level=level).value == 1
        assert named(found, "greedy.permutation", level=level).value < 0.05
    alone = Corpus.from_examples(rows[:2])
    passes = Passes(Script({row.id: ["1"] * 3 for row in rows}), MeasureConfig(samples=2), alone)  # pyright: ignore
    found = run("competence", passes, alone)
    values = items_of(passes)
    for name in ("greedy", "greedy.swapped", "pass@1.swapped"):
        assert values[name] == {"r0": 0, "r1": 1}, "no D is claimed"
    assert not [row for row in found if row.name.endswith(("swapped", "kappa", "permutation"))]


def test_of_many_items_each_is_swapped_with_some_and_the_numbers_agree():
    rows = [Example(f"r{i}", "t", f"r{i}", answer=str(i % 7), level=2.0) for i in range(150)]
    corpus = Corpus.from_examples(rows)
    rng = np.random.default_rng(0)
    lines = {row.id: [str(rng.integers(7)) if rng.random() < 0.5 else row.answer or "" for _ in range(3)] for row in rows}
    passes = Passes(Script(lines), MeasureConfig(items=150, samples=2), corpus)  # pyright: ignore
    shifts = choose_shifts(150)
    some = grade_swapped(passes.items, texts_of(passes.answers, "sampled"), passes.grades.grade, {}, shifts)
    assert some.shape == (150, 1 + OTHER_ITEMS_PER_ITEM) == (150, len(set(shifts.tolist())))
    whole = np.array(
        [[np.mean([t == row.answer for t in lines[item.id][1:]]) for row in passes.items] for item in passes.items]
    )
    assert (some == whole[np.arange(150)[:, None], (np.arange(150)[:, None] + shifts) % 150]).all()
    found = dependence_of_shifts(some, shifts)
    assert found.swapped.value == pytest.approx(dependence(whole).swapped.value, abs=0.01)
    assert found.kappa.value == pytest.approx(dependence(whole).kappa.value, abs=0.02)


def test_the_memory_of_swapping_grows_with_the_items_and_not_with_their_pairs():
    rows = [Example(f"r{i}", "t", "?", answer=str(i)) for i in range(4000)]
    texts, shifts = [Counter({(row.answer or "", False): 1}) for row in rows], choose_shifts(4000)

    def exactly(example: Example, completion: str, *, cut: bool = False) -> float:
        return float(example.answer == completion and not cut)

    tracemalloc.start()
    try:
        table = grade_swapped(
            rows, texts, lambda example, completion, *, cut=False: float(example.answer == completion), {}, shifts
        )
        found = dependence_of_shifts(table, shifts)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert found.swapped.value == 0
    assert peak < 4000**2 * 8 / 5, f"{peak:,} bytes"


def test_partial_credit_is_no_success(monkeypatch):
    passes, corpus = scripted({"p": ["1", "1"]}, {"p": "1"}, samples=1)
    monkeypatch.setattr(Corpus, "grade", lambda self, example, text, cut: 0.9)
    rows = run("competence", passes, corpus)
    assert named(rows, "greedy").value == named(rows, "pass@1").value == 0.0
    assert not [row for row in rows if row.name == "pass@2"]


def test_items_are_held_out_fixed_and_bounded(learner, moved, corpus):
    one, two = Passes(learner, CONFIG, corpus, seed=1).items, Passes(moved, CONFIG, corpus, seed=2).items
    assert one == two
    assert {item.split for item in one} == {"eval"}
    assert len(one) == 9  # three per cell
    shuffled = Corpus.from_examples(examples()[::-1])
    assert {item.id for item in Passes(learner, CONFIG, shuffled).items} == {item.id for item in one}
    everything = Corpus.from_examples([Example(str(n), "t", f"{n}", answer="1") for n in range(500)])
    assert len(Passes(learner, CONFIG, everything).items) == 3


def test_nothing_to_grade_is_refused(learner):
    corpus = Corpus.from_examples([Example("1", "t", "a", target="b")])
    with pytest.raises(InputError, match="answers to grade"):
        measure_learner(learner, corpus, CONFIG, seed=0)


def test_the_stage_repeats_itself_and_leaves_the_model_alone(moved, corpus):
    state, weights = torch.random.get_rng_state(), copy.deepcopy(moved.model.state_dict())
    moved.model.train()
    first = measure_learner(moved, corpus, CONFIG, seed=5)
    again = measure_learner(moved, corpus, CONFIG, seed=5)
    other = measure_learner(moved, corpus, CONFIG, seed=6)
    assert first == again
    assert first.answers.table != other.answers.table
    assert moved.model.training
    assert torch.equal(state, torch.random.get_rng_state())
    assert all(torch.equal(value, moved.model.state_dict()[name]) for name, value in weights.items())
    assert all(p.grad is None for p in moved.model.parameters())
    assert len(first.answers) == 9 * 5
    assert len(first.completions) == 9
    row = first.completions[0]
    assert list(row) == ["example", "task", "level", "prompt", "answer", "completion", "score", "cut", "tokens", "logprob"]
    assert {m.probe for m in first.measurements} == set(CONFIG.probes)
    assert all(m.low <= m.value <= m.high and m.n > 0 and m.unit for m in first.measurements)


def test_unknown_probes_are_named_before_anything_runs(corpus):
    with pytest.raises(InputError, match="competence"):
        measure_learner(None, corpus, MeasureConfig(probes=("competense",)), seed=0)  # pyright: ignore
