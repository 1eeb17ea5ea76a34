"""Shape annotations are checked in tests: a wrong shape is named as such before it becomes a wrong number."""

import jaxtyping
import pytest
import torch

from mixwright.learner.generation import Decoding, GenerationJob
from mixwright.trainers.rewards import weighted_sum


def test_a_wrong_shape_is_refused():
    rewards = torch.ones(4, 2)
    assert weighted_sum(rewards, torch.tensor([1.0, 2.0])).tolist() == [3.0] * 4
    with pytest.raises(jaxtyping.TypeCheckError, match="functions"):
        weighted_sum(rewards, torch.ones(3))
    with pytest.raises(jaxtyping.TypeCheckError):
        weighted_sum(rewards.long(), torch.ones(2))
    assert Decoding(1.0, 4, 0).draw(GenerationJob([1], 2, (), (1, 3, 1))).shape == (2, 4)
