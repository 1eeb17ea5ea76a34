"""The lab's two bare loops against TRL's trainers: the same weights on the same rows end in the same model."""

from pathlib import Path
from typing import Any, Literal

import pytest
import torch
from datasets import Dataset
from trainers_tiny import grpo_config, losses, sft_config
from training_twin import Twin, tokenizer
from trl import GRPOTrainer, SFTTrainer

from mixwright.records import Example
from mixwright_lab.training.gpt import GPT
from mixwright_lab.training.grpo import Arena, Settings
from mixwright_lab.training.language import PAD, SIGNS, Language
from mixwright_lab.training.sft import Batch, Schedule, fit

pytestmark = [
    pytest.mark.filterwarnings("ignore:.*gradient_checkpointing.*:FutureWarning"),  # TRL sets transformers' older name
    pytest.mark.filterwarnings("ignore:.*keep_end.*:FutureWarning"),
]
LANGUAGE = Language((*SIGNS, "a", "b", "c"), prompt_tokens=4, response_tokens=4)
PROMPTS, RESPONSES = ["a", "b", "c", "a b"], ["# a", "# b", "c # c", "# b"]
SAME = {"lr_scheduler_type": "constant", "adam_beta2": 0.95, "learning_rate": 1e-2, "max_grad_norm": 1.0}
"""Settings of TRL that are the loops' own."""


@pytest.fixture
def model() -> GPT:
    torch.manual_seed(0)
    model = GPT(LANGUAGE, 16, 2, 2)
    with torch.no_grad():
        model.head.bias[LANGUAGE.index[PAD]] = -20.0  # TRL counts a padding token that was sampled as text
    return model


def chances(model: GPT) -> torch.Tensor:
    """Log-probabilities of every next word, teacher-forced."""
    with torch.no_grad():
        shown = LANGUAGE.encode_prompts(PROMPTS), LANGUAGE.encode_responses(RESPONSES)
        return model.logits_of(*shown).log_softmax(-1)


def test_sft_ends_where_trl_ends(model: GPT, tmp_path: Path) -> None:
    """Also with a token whose weight is 0: the first of the third response."""
    prompts, responses = LANGUAGE.encode_prompts(PROMPTS), LANGUAGE.encode_responses(RESPONSES)
    weights = torch.ones(4, 4)
    weights[2, 0] = 0.0
    kept = LANGUAGE.mask(responses) & (weights > 0)
    rows: dict[str, list[list[int]]] = {"input_ids": [], "labels": []}
    for prompt, response, own in zip(prompts, responses, kept, strict=True):
        length = int(LANGUAGE.mask(response).sum())
        rows["input_ids"].append([*prompt.tolist(), *response[:length].tolist()])
        rows["labels"].append([-100] * len(prompt) + response.where(own, -100)[:length].tolist())
    twin, before, seen = Twin(model), chances(model), list[float]()
    args = sft_config(tmp_path, max_steps=6, **SAME)
    trainer = SFTTrainer(twin, args, train_dataset=Dataset.from_dict(rows), processing_class=tokenizer(LANGUAGE))
    trainer.train()
    batch = Batch(PROMPTS, RESPONSES, weights)
    fit(model, lambda _: batch, Schedule(6, 1e-2, warm=0, fall=0.0), lambda _, loss: seen.append(loss))
    assert losses(trainer) == pytest.approx(seen, abs=2e-3)  # TRL logs rounded
    assert seen[-1] < seen[0] - 0.5
    assert torch.allclose(chances(twin.gpt), chances(model), atol=1e-3)
    assert (chances(model) - before).abs().max() > 0.5


def reward(example: Example, text: str) -> float:
    """Share of words that are the prompt's own."""
    words = text.split()
    return sum(word == example.answer for word in words) / 4


@pytest.mark.parametrize(("loss", "beta"), [("dapo", 0.0), ("grpo", 0.0), ("dapo", 0.1)])
def test_grpo_ends_where_trl_ends(
    loss: Literal["dapo", "grpo"], beta: float, model: GPT, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """TRL is handed the arena's rollouts, and scores and learns from them by itself."""
    monkeypatch.setenv("TRL_EXPERIMENTAL_SILENCE", "1")
    examples = [Example(word, "own", word, answer=word) for word in "abc"]
    settings = Settings(prompts=3, group=8, rate=1e-2, beta=beta, longest=4, loss=loss)
    arena, twin, before = Arena(examples, model, settings, 0, reward=reward), Twin(model), chances(model)

    def rolled(prompts: list[str], _: Any) -> dict[str, Any]:
        rollouts = arena.roll(["abc".index(prompt) for prompt in prompts[::8]], 8)
        arena.learn(rollouts)
        lengths = rollouts.lengths.flatten().tolist()
        texts = [ids[:length] for ids, length in zip(rollouts.tokens.flatten(0, 1).tolist(), lengths, strict=True)]
        return {"prompt_ids": rollouts.prompts.repeat_interleave(8, 0).tolist(), "completion_ids": texts, "logprobs": None}

    def scored(completions: list[str], answer: list[str], **_: Any) -> list[float]:
        return [text.split().count(own) / 4 for text, own in zip(completions, answer, strict=True)]

    batch = {"per_device_train_batch_size": 24, "num_generations": 8, "max_completion_length": 4, "max_steps": 8}
    args = grpo_config(tmp_path, loss_type=loss, beta=0.0, use_bias_correction_kl=False, **batch, **SAME)
    rows = Dataset.from_dict({"prompt": list("abc"), "answer": list("abc")})
    given = {"processing_class": tokenizer(LANGUAGE), "rollout_func": rolled}
    trainer = GRPOTrainer(twin, scored, args, rows, **given)
    if beta:  # TRL would load its reference model from a hub
        trainer.beta, trainer.ref_model = beta, GRPOTrainer(Twin(model), scored, args, rows, **given).model
    trainer.train()
    assert arena.steps == 8
    assert torch.allclose(chances(twin.gpt), chances(arena.model), atol=1e-3)
    assert (chances(arena.model) - before).abs().max() > 0.3
