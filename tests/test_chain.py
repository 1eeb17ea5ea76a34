"""The world of chains: values, styles and responses to learn from by hand."""

import numpy as np

from mixwright_lab.training.language import style_of
from mixwright_lab.worlds import operators
from mixwright_lab.worlds.chain import Chain, language, respond, running_values, write_solution


def test_the_chain_is_calculated_modulo_sixteen():
    assert running_values("7 +3 *5 *11") == [10, 2, 6]  # 10, 50 = 2, 22 = 6
    assert respond("7 +3 *5", "full") == "10 2 # 2"
    assert respond("7 +3 *5", "verbose") == ": 10 : 2 # 2"
    assert respond("7 +3 *5", "direct") == "# 2"
    assert [style_of(text) for text in ("10 2 # 2", ": 10 # 2", "# 2", "10 2", "")] == [
        "full",
        "verbose",
        "direct",
        "none",
        "none",
    ]


def test_a_biased_chain_has_more_zeros_and_each_problem_keeps_its_length():
    answers = [Chain(bias=0.5).make(index, 3.0, "train") for index in range(200)]
    zeros = np.mean([example.answer == "0" for example in answers])
    assert 0.42 < zeros < 0.65  # 0.5 + 0.5 / 16, four standard errors
    assert all(len(str(example.prompt).split()) == 4 for example in answers)


def test_noise_is_the_share_of_wrong_steps_and_what_follows_is_calculated_from_them():
    rng, wrong, steps = np.random.default_rng(0), 0, 0
    for index in range(300):
        example = Chain().make(index, 3.0, "train")
        start, *operations = str(example.prompt).split()
        written = write_solution(example, "full", 0.4, rng).split()
        assert written[-2:] == ["#", written[-3]]
        for before, operation, after in zip([start, *written], operations, written[:3], strict=False):
            wrong += running_values(f"{before} {operation}") != [int(after)]
            steps += 1
    assert (
        abs(wrong / steps - 0.4 * 15 / 16) < 0.06
    )  # one wrong value in 16 is the right one; 900 steps, four standard errors
    example = Chain().make(0, 3.0, "train")
    assert write_solution(example, "verbose", 0.0, rng) == respond(str(example.prompt), "verbose")


def test_the_language_has_a_place_for_everything_that_is_said():
    longest = Chain().make(0, 8.0, "train")
    for module in (operators, None):
        spoken = module.language() if module else language()
        assert spoken.encode_prompts([str(longest.prompt)]).shape == (1, 10)
        assert spoken.decode(spoken.encode_responses([respond(str(longest.prompt), "verbose")])[0].tolist())[-1].isdigit()
    assert language() == operators.language()
