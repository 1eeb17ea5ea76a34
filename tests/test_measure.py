import copy
import math

import numpy as np
import pytest
import torch

from mixwright import catalog
from mixwright.config import MeasureConfig, ModelConfig
from mixwright.corpus import Corpus
from mixwright.errors import InputError
from mixwright.learner import Completion, Learner, build_tiny
from mixwright.estimates.intervals import wilson
from mixwright.measure._passes import Passes
from mixwright.measure._stage import measure_learner
from mixwright.measure.competence import majorities
from mixwright.measure.formats import normalised_entropy
from mixwright.records import Example

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

    def __init__(self, lines: dict[str, list[str]]) -> None:
        self.lines = lines

    def sample(self, prompts, *, count, temperature, max_new_tokens, seed):
        chosen = slice(0, 1) if temperature == 0 else slice(1, 1 + count)
        return [[Completion(text, (5,), (0.0,), True) for text in self.lines[prompt][chosen]] for prompt in prompts]


def scripted(lines: dict[str, list[str]], answers: dict[str, str], samples: int) -> tuple[Passes, Corpus]:
    rows = [Example(prompt, "t", prompt, answer=answer, level=2.0) for prompt, answer in answers.items()]
    corpus = Corpus.from_examples(rows)
    return Passes(Script(lines), None, MeasureConfig(items=9, samples=samples), corpus), corpus  # pyright: ignore


def run(name: str, passes: Passes, corpus: Corpus, seed: int = 0):
    return catalog.create("probes", name).measure(passes, corpus, np.random.default_rng(seed))


def named(rows, name, task="t", level=2.0):
    (row,) = [r for r in rows if (r.name, r.task, r.level, r.example) == (name, task, level, None)]
    return row


def test_the_commonest_training_answer_is_tried_on_the_measured_items():
    rows = [Example(f"t{n}", "a", f"t{n}", answer="1" if n < 6 else "2", split="train") for n in range(10)]
    rows += [Example(f"e{n}", "a", f"e{n}", answer="1" if n < 8 else "3", split="eval") for n in range(10)]
    corpus = Corpus.from_examples(rows)
    assert majorities(corpus) == {("a", None): "1"}
    assert corpus.cells()[0].luck == pytest.approx(0.6)


def test_competence_by_hand():
    answers = {"p": "1", "q": "2", "r": "3", "s": "3"}
    lines = {"p": ["1", "1", "7"], "q": ["7", "7", "2"], "r": ["3", "3", "3"], "s": ["x", "x", "7"]}
    rows = run("competence", *scripted(lines, answers, samples=2))
    assert named(rows, "greedy").value == 0.5
    assert named(rows, "pass@1").value == pytest.approx(4 / 8)
    assert named(rows, "pass@2").value == pytest.approx(3 / 4)
    assert (named(rows, "pass@2").low, named(rows, "pass@2").high) == wilson(0.75, 4)
    luck = named(rows, "luck")
    assert (luck.value, luck.null_of) == (0.5, "majority answer")  # always "3" is right half the time
    assert named(rows, "success_above_luck").value == 0.0
    assert named(rows, "pass@2").null == pytest.approx(0.75)
    assert named(rows, "greedy", level=None).value == 0.5
    items = {row.example: row.value for row in rows if row.example and row.name == "pass@1"}
    assert items == {"p": 0.5, "q": 0.5, "r": 1.0, "s": 0.0}
    assert {row.unit for row in rows} == {"share"}


def test_success_that_other_items_would_also_earn_is_luck(monkeypatch):
    """A model that always says 2 where nearly everything is accepted: shuffled answers find it, the majority does not."""
    answers = {f"p{n}": str(n) for n in range(4)}
    passes, corpus = scripted({prompt: ["2"] * 3 for prompt in answers}, answers, samples=2)
    monkeypatch.setattr(Corpus, "grade", lambda self, example, text: float(example.answer != "0" and text == "2"))
    luck = named(run("competence", passes, corpus), "luck")
    assert (luck.value, luck.null_of) == (0.75, "shuffled answers")


def test_partial_credit_is_no_success(monkeypatch):
    passes, corpus = scripted({"p": ["1", "1"]}, {"p": "1"}, samples=1)
    monkeypatch.setattr(Corpus, "grade", lambda self, example, text: 0.9)
    rows = run("competence", passes, corpus)
    assert named(rows, "greedy").value == named(rows, "pass@1").value == 0.0
    assert not [row for row in rows if row.name == "pass@2"]


def test_formats_by_hand():
    answers = {"p": "1", "q": "2"}
    lines = {"p": ["1", "1", "1", "= 1", "1 1"], "q": ["2", "2", "3", "= 2", "4"]}
    rows = run("formats", *scripted(lines, answers, samples=4))
    share, accuracy = named(rows, "share:9", level=None), named(rows, "accuracy:9", level=None)
    assert (share.value, share.null, share.n) == (5 / 8, 1.0, 8)
    assert (accuracy.value, accuracy.null, accuracy.n) == (pytest.approx(3 / 5), pytest.approx(3 / 8), 5)
    assert named(rows, "share:= 9", level=None).value == 2 / 8
    shares = np.array([5, 2, 1]) / 8
    expected = -(shares * np.log(shares)).sum() / math.log(3)
    assert named(rows, "format_entropy", level=None).value == pytest.approx(expected)
    assert named(rows, "format_entropy", level=None).null == 0.0


def test_rare_forms_are_told_together():
    lines = {"p": ["1", "1", "a", "(1)", "-1"], "q": ["2", "2", "2", "a", "a"]}
    passes, corpus = scripted(lines, {"p": "1", "q": "2"}, samples=4)
    rows = catalog.create("probes", "formats", {"top": 2}).measure(passes, corpus, np.random.default_rng(0))
    assert [row.name for row in rows if row.name.startswith("share:")] == ["share:9", "share:a", "share:(other forms)"]
    assert sum(row.value for row in rows if row.name.startswith("share:")) == pytest.approx(1)


def test_normalised_entropy_of_one_and_of_even_forms():
    assert normalised_entropy(np.array([7.0])) == 0.0
    assert normalised_entropy(np.array([2.0, 2.0, 2.0])) == pytest.approx(1.0)


def plain_log_softmax(learner: Learner, prompt: str, ids) -> torch.Tensor:
    start = learner.encode(prompt)
    with torch.no_grad():
        logits = learner.model(input_ids=torch.tensor([start + list(ids)])).logits[0, len(start) - 1 : -1]
    return torch.log_softmax(logits.double(), -1)


def test_drift_and_entropy_equal_an_independent_computation(learner, moved, corpus):
    passes = Passes(moved, learner, CONFIG, corpus, seed=3)
    kl, entropy, tokens = 0.0, 0.0, 0
    for item in passes.items:
        for sample in passes.rollouts[item.id].samples:
            now = plain_log_softmax(moved, item.prompt, sample.token_ids)
            start = plain_log_softmax(learner, item.prompt, sample.token_ids)
            kl += float(torch.nn.functional.kl_div(start, now, log_target=True, reduction="sum"))
            entropy += float(torch.distributions.Categorical(logits=now).entropy().sum())
            tokens += len(sample.token_ids)
    drift = named(run("drift", passes, corpus), "kl", task="*", level=None)
    assert drift.value == pytest.approx(kl / tokens, rel=1e-4)
    assert drift.value > 0.02
    assert (drift.n, drift.null, drift.unit) == (tokens, 0.0, "nats per token")
    assert drift.low <= drift.value <= drift.high
    found = named(run("entropy", passes, corpus), "entropy", task="*", level=None)
    assert found.value == pytest.approx(entropy / tokens, rel=1e-4)
    assert found.null == pytest.approx(math.log(len(learner.tokenizer)))
    cells = {(row.task, row.level) for row in run("drift", passes, corpus)}
    assert cells == {("*", None), ("add", None), ("add", 1.0), ("add", 2.0), ("say", None)}


def test_identical_models_have_not_drifted(learner, corpus):
    same = Learner(copy.deepcopy(learner.model), learner.tokenizer, "same")
    rows = run("drift", Passes(learner, same, CONFIG, corpus), corpus)
    assert {(row.value, row.low, row.high) for row in rows} == {(0.0, 0.0, 0.0)}


def test_drift_needs_a_start_with_the_same_tokenizer(learner, corpus):
    assert run("drift", Passes(learner, None, CONFIG, corpus), corpus) == []
    other = build_tiny(["quite other words"] * 9, ModelConfig(width=16, depth=1, heads=2, vocabulary=400), 0)
    with pytest.raises(InputError, match="same tokenizer"):
        run("drift", Passes(learner, other, CONFIG, corpus), corpus)


def test_items_are_held_out_fixed_and_bounded(learner, moved, corpus):
    one, two = Passes(learner, None, CONFIG, corpus, seed=1).items, Passes(moved, None, CONFIG, corpus, seed=2).items
    assert one == two
    assert {item.split for item in one} == {"eval"}
    assert len(one) == 9  # three per cell
    shuffled = Corpus.from_examples(examples()[::-1])
    assert {item.id for item in Passes(learner, None, CONFIG, shuffled).items} == {item.id for item in one}
    everything = Corpus.from_examples([Example(str(n), "t", f"{n}", answer="1") for n in range(500)])
    assert len(Passes(learner, None, CONFIG, everything).items) == 3


def test_nothing_to_grade_is_refused(learner):
    corpus = Corpus.from_examples([Example("1", "t", "a", target="b")])
    with pytest.raises(InputError, match="answers to grade"):
        measure_learner(learner, corpus, CONFIG, seed=0)


def test_the_stage_repeats_itself_and_leaves_the_model_alone(learner, moved, corpus):
    state, weights = torch.random.get_rng_state(), copy.deepcopy(moved.model.state_dict())
    moved.model.train()
    told = []
    first = measure_learner(moved, corpus, CONFIG, start=learner, seed=5, progress=told.append)
    again = measure_learner(moved, corpus, CONFIG, start=learner, seed=5)
    other = measure_learner(moved, corpus, CONFIG, start=learner, seed=6)
    assert first == again
    assert first.measurements != other.measurements
    assert told == list(CONFIG.probes)
    assert moved.model.training
    assert torch.equal(state, torch.random.get_rng_state())
    assert all(torch.equal(value, moved.model.state_dict()[name]) for name, value in weights.items())
    assert all(p.grad is None for p in moved.model.parameters())
    assert first.rollouts == 9 * 5
    assert len(first.completions) == 9
    row = first.completions[0]
    assert list(row) == ["example", "task", "level", "prompt", "answer", "completion", "score"]
    assert {m.probe for m in first.measurements} == set(CONFIG.probes)
    assert all(m.low <= m.value <= m.high and m.n > 0 and m.unit for m in first.measurements)


def test_unknown_probes_are_named_before_anything_runs(corpus):
    with pytest.raises(InputError, match="competence"):
        measure_learner(None, corpus, MeasureConfig(probes=("competense",)), seed=0)  # pyright: ignore
