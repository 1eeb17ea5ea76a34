"""Facts and skills by hand, sums of logits, tuning with a KL penalty, and readings at the skill or the KL of another arm."""

import numpy as np
import pytest
import torch

from mixwright_lab.findings.proxy import (
    Readings,
    divergence,
    greedy,
    interpolate_readings,
    logits_of,
    readings_at_skill,
    short_rows,
    tune,
)
from mixwright_lab.training.gpt import GPT
from mixwright_lab.training.sft import Schedule
from mixwright_lab.worlds.chain import in_eval
from mixwright_lab.worlds.facts_and_skills import (
    FACTS,
    FactsAndSkills,
    format_answer,
    language,
    question_of,
    rearranged,
    write_solution,
)

WORLD = FactsAndSkills(seed=3)


def made(seed: int) -> GPT:
    torch.manual_seed(seed)
    return GPT(language(), 16, 1)


@pytest.fixture
def pair() -> tuple[GPT, GPT]:
    return made(0), made(1)


def rows() -> tuple[torch.Tensor, torch.Tensor]:
    return language().encode_prompts(["sort 3 1 2", "fact k1 k2"]), language().encode_responses(
        ["# 1 2 3", "well it is 4 7"]
    )


def test_skills_rearrange_digits_and_facts_stay_the_same():
    assert rearranged("sort", [5, 2, 9]) == [2, 5, 9]
    assert rearranged("backward", [5, 2, 9]) == [9, 2, 5]
    assert rearranged("rotate", [5, 2, 9]) == [2, 9, 5]
    known = dict(question_of(fact) for fact in WORLD.facts)
    assert len(known) == FACTS
    others = [WORLD.make(place, 1.0, "eval") for place in range(200)]
    assert not any(str(row.prompt) in known for row in others)
    assert len({(row.prompt, row.answer) for row in others}) == len({row.prompt for row in others}) > 60
    drawn = [WORLD.make(place, 1.0, "train") for place in range(400)]
    assert all(known[str(row.prompt)] == row.answer for row in drawn)
    counts = {prompt: sum(str(row.prompt) == prompt for row in drawn) for prompt in known}
    first = next(iter(known))
    assert counts[first] == max(counts.values())  # the frequent one of them all
    assert sum(count == 0 for count in counts.values()) > FACTS / 4


def test_splits_of_skills_share_no_problem_and_forms_differ_by_their_words_alone():
    for level in (2.0, 3.0, 4.0):
        assert not any(in_eval(str(WORLD.make(place, level, "train").prompt)) for place in range(100))
        assert all(in_eval(str(WORLD.make(place, level, "eval").prompt)) for place in range(100))
    row, rng = WORLD.make(0, 2.0, "train"), np.random.default_rng(0)
    assert write_solution(row, "long", 0.0, rng) == f"well it is {row.answer}"
    assert write_solution(row, "short", 0.0, rng) == f"# {row.answer}"


def test_logits_are_added_with_their_weights(pair):
    one, other = pair
    own = [model.logits_of(*rows()) for model in pair]
    torch.testing.assert_close(logits_of([(1.0, one), (0.5, other), (-0.5, one)], rows()), own[0] / 2 + own[1] / 2)
    torch.testing.assert_close(logits_of([(1.0, one), (0.0, other)], rows()), own[0], rtol=0, atol=0)


def test_the_greedy_response_is_the_models_own_and_begins_as_told(pair):
    one, spoken = pair[0], language()
    prompts = rows()[0]
    own = one.sample(prompts, 1, spoken.response_tokens, greedy=True, generator=torch.Generator())[:, 0]
    found = greedy([(1.0, one)], prompts)
    assert [spoken.decode(row) for row in found.tolist()] == [spoken.decode(row) for row in own.tolist()]
    begun = greedy([(1.0, one)], prompts, [spoken.index["#"]])
    assert set(begun[:, 0].tolist()) == {spoken.index["#"]}
    after = one.logits_of(prompts, begun[:, :2])[:, 1].argmax(-1)
    assert after.tolist() == begun[:, 1].tolist()


def test_the_divergence_leaves_padding_out(pair):
    one, other = pair
    assert float(divergence([(1.0, one)], one, rows()).detach()) == pytest.approx(0, abs=1e-6)
    terms = []
    own, base = (model.logits_of(*rows()).detach().softmax(-1).double() for model in pair)
    for row, response in enumerate(rows()[1].tolist()):
        for place, token in enumerate(response):
            if token != language().index["_"]:
                terms.append(float((own[row, place] * (own[row, place] / base[row, place]).log()).sum()))
    assert float(divergence([(1.0, one)], other, rows()).detach()) == pytest.approx(np.mean(terms), rel=1e-4)


def test_a_penalty_holds_a_model_near_its_base():
    distances, losses = [], []
    for penalty in (0.0, 30.0):
        base, model = made(0), made(0)
        steps: list[int] = []
        tune(model, base, lambda _: rows(), Schedule(30, 3e-3, warm=2), penalty, steps.append)
        assert steps == list(range(1, 31))
        distances.append(float(divergence([(1.0, model)], base, rows()).detach()))
        mask = language().mask(rows()[1])
        logits = model.logits_of(*rows())[mask].detach()
        losses.append(float(torch.nn.functional.cross_entropy(logits, rows()[1][mask])))
    assert distances[1] < distances[0] / 4
    assert losses[0] < losses[1] - 0.5


def test_skill_counts_the_short_form_only_and_facts_any_form():
    """A model that writes "# 0 0" to all prompts: no skill, and the facts of value 0 0."""
    base = made(0)
    look = Readings(3, 5, base)
    right = {format_answer(answer, ("#",)) for answer in look.answers[1]}
    assert all(text.startswith("# ") for text in right)

    class Fixed(GPT):
        def logits_of(self, prompts, responses):
            wanted = language().encode_responses(["# 0 0"])[0, : responses.shape[1]]
            return torch.nn.functional.one_hot(wanted, len(language().words)).float().expand(len(prompts), -1, -1) * 9

    fixed = Fixed(language(), 16, 1)
    found = look([(1.0, fixed)])
    assert found["skill"] == 0
    assert found["facts"] == pytest.approx(np.mean([answer == "0 0" for answer in look.answers[0]]))
    assert found["KL"] > 0.1


def test_rows_of_tuning_are_short_and_never_held_out():
    prompts, responses = short_rows(made(0), 1)
    texts = [language().decode(row) for row in responses.tolist()]
    assert all(text.startswith("# ") and len(text.split()) == 4 for text in texts)
    asked = [language().decode(row[:-1]) for row in prompts.tolist()]
    assert not any(in_eval(text) for text in asked)
    assert {text.split()[0] for text in asked} == {"sort", "backward", "rotate"}


def test_readings_are_blended_where_another_arms_skill_or_divergence_lies():
    path = [{"skill": 0.0, "facts": 1.0}, {"skill": 0.4, "facts": 0.8}, {"skill": 0.2, "facts": 0.0}]
    assert readings_at_skill(path, 0.3) == pytest.approx({"skill": 0.3, "facts": 0.85})
    assert readings_at_skill(path, 0.9) == path[-1]
    found = [{"KL": 2.0, "facts": 0.2}, {"KL": 1.0, "facts": 0.6}]
    assert interpolate_readings(found, "KL", 1.25) == pytest.approx({"KL": 1.25, "facts": 0.5})
    assert interpolate_readings(found, "KL", 9.0) == found[0]
