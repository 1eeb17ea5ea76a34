"""World of entities: every form says the same fact; by hand."""

from __future__ import annotations

import pytest

from mixwright_lab.worlds.entities import ATTRIBUTES, FORMS, KNOWN_ENTITIES, NEW_ENTITIES, Entities, language

WORLD = Entities(seed=3)


@pytest.mark.parametrize("index", [0, 1, 57, 199])
def test_every_form_says_the_same_fact(index: int) -> None:
    made = {FORMS[level]: WORLD.make(index, level, "eval") for level in FORMS}
    _, kind, name = str(made["question"].prompt).split()
    entity, attribute = int(name[1:]), int(kind[1:])
    value = f"v{WORLD.values[entity, attribute]}"
    assert entity >= KNOWN_ENTITIES
    assert {example.answer for example in made.values()} == {value}
    assert made["other question"].prompt == f"ask {name} {kind}"
    assert (made["statement"].prompt, made["statement"].target) == (f"tell {name}", f"has {kind} {value}")
    assert (made["reversed"].prompt, made["reversed"].target) == (f"tell {value}", f"is {kind} of {name}")
    assert (made["foreign"].prompt, made["foreign"].target) == (f"~1 {name}", f"~2 {kind} ~3 {value}")
    assert f"{kind} {value}" in str(made["passage"].target)
    spoken = language()
    for example in made.values():
        tokens = spoken.encode_responses([str(example.target)])[0].tolist()
        assert spoken.decode(tokens) == example.target
        spoken.encode_prompts([str(example.prompt)])


@pytest.mark.parametrize(("split", "count"), [("train", KNOWN_ENTITIES), ("eval", NEW_ENTITIES)])
def test_indices_walk_over_all_facts_of_a_split(split: str, count: int) -> None:
    facts = {WORLD.make(index, 1.0, split).prompt for index in range(count * ATTRIBUTES)}
    assert len(facts) == count * ATTRIBUTES
