"""Shape annotations are checked in tests: a wrong shape is named as such before it becomes a wrong number."""

import jaxtyping
import pytest
import torch

from mixwright.learner.generation import draw_uniforms
from mixwright.trainers.rewards import weighted_sum


def test_a_wrong_shape_is_refused():
    rewards = torch.ones(4, 2)
    assert weighted_sum(rewards, torch.tensor([1.0, 2.0])).tolist() == [3.0] * 4
    with pytest.raises(jaxtyping.TypeCheckError, match="functions"):
        weighted_sum(rewards, torch.ones(3))
    with pytest.raises(jaxtyping.TypeCheckError):
        weighted_sum(rewards.long(), torch.ones(2))
    assert draw_uniforms(0, [1, 2], 3, 4).shape == (6, 4)
