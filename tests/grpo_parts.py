"""What the table of GRPO settings is made of: rewards, models, prompts, tools, and stand-ins for vLLM."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from datasets import Dataset
from peft import LoraConfig, get_peft_model
from trainers_tiny import CHARACTERS, model, rows, tokenizer
from transformers import LlamaConfig, LlamaForSequenceClassification, set_seed

TEMPLATE = (
    "{% for m in messages %}{{ m['role'] }} {{ m['content'] }}"
    "{% for c in m.get('tool_calls') or [] %}+{{ c['function']['name'] }} {{ c['function']['arguments'] }}{% endfor %}="
    "{% endfor %}{% if add_generation_prompt %}{{ answer | default('say') }} {% endif %}"
)


def distinct(completions: list[Any], **kwargs: Any) -> list[float]:
    """A reward in 0..1 that hardly ever ties."""
    texts = [text if isinstance(text, str) else text[-1]["content"] for text in completions]
    return [sum(ord(c) * 31**i for i, c in enumerate(text)) % 1009 / 1009 for text in texts]


def first(completions: list[Any], task: list[str], **kwargs: Any) -> list[float | None]:
    """The first character's place in the alphabet for letters; None for sums."""
    return [ord((text or " ")[0]) / 128 if name == "letters" else None for text, name in zip(completions, task, strict=True)]


def correct(completions: list[Any], answer: list[str], **kwargs: Any) -> list[float]:
    """Whether the answer is in the completion."""
    return [float(gold in text) for text, gold in zip(completions, answer, strict=True)]


async def later(completions: list[Any], level: list[float], **kwargs: Any) -> list[float | None]:
    """An async reward; None for an empty completion."""
    return [len(text) / 8 + number / 100 if text else None for text, number in zip(completions, level, strict=True)]


class Scorer:
    """A reward that is an object with an async call."""

    async def __call__(self, completions: list[Any], **kwargs: Any) -> list[float]:
        return distinct(completions)


def noted(completions: list[str], log_extra: Any, log_metric: Any, **kwargs: Any) -> list[float]:
    """A reward that logs beside."""
    log_extra("length", [len(text) for text in completions])
    log_metric("longest", max(map(len, completions)))
    return distinct(completions)


def bare(prompts: Any, completions: Any, completion_ids: Any, trainer_state: Any, log_extra: Any, log_metric: Any) -> Any:
    """A reward without room for any column of the data."""
    return distinct(completions)


def classifier() -> LlamaForSequenceClassification:
    """A reward model over characters."""
    set_seed(7)
    config = LlamaConfig(
        vocab_size=len(CHARACTERS) + 3,
        hidden_size=16,
        intermediate_size=32,
        num_hidden_layers=1,
        num_attention_heads=2,
        num_labels=1,
        pad_token_id=0,
        bos_token_id=None,
        eos_token_id=1,
    )
    return LlamaForSequenceClassification(config).eval()


def model_scores(prompts: list[str], completions: list[str]) -> list[float]:
    """What the reward model says, one text at a time."""
    judge, words = classifier(), tokenizer()
    with torch.inference_mode():
        texts = [prompt + text for prompt, text in zip(prompts, completions, strict=True)]
        return [judge(input_ids=torch.tensor([words(text)["input_ids"]])).logits[0, 0].item() for text in texts]


def chat_rows() -> Dataset:
    """The rows as conversations."""
    return rows().map(lambda row: {"prompt": [{"role": "user", "content": row["prompt"]}]})


def chat_tokenizer() -> Any:
    """A tokenizer with a chat template that can show tools."""
    words = tokenizer()
    words.chat_template = TEMPLATE
    words.response_template = {"unused": True}  # parsing is replaced where tools are tested
    return words


def plain_chat_tokenizer() -> Any:
    """A tokenizer with a chat template and nothing that reads answers."""
    words = tokenizer()
    words.chat_template = TEMPLATE
    return words


def on_disk(folder: Path) -> str:
    """The tiny model's folder: TRL loads the reference model from there."""
    model().save_pretrained(folder / "base")
    tokenizer().save_pretrained(folder / "base")
    return str(folder / "base")


def lora() -> LoraConfig:
    """An adapter on the attention; its start moves the model, so that its gradients are not zero."""
    return LoraConfig(r=2, target_modules=["q_proj", "v_proj"], init_lora_weights=False)


def adapted(folder: Path) -> dict[str, Any]:
    """A model that already has an adapter."""
    set_seed(3)
    return {"model": get_peft_model(model(), lora())}


def rollout(prompts: list[Any], trainer: Any) -> dict[str, Any]:
    """Answers from somewhere else, with a field for the rewards."""
    words = trainer.processing_class
    ids = [words(prompt)["input_ids"] for prompt in prompts]
    completions, logprobs = invented(ids, 1, trainer.state.global_step)
    return {
        "prompt_ids": ids,
        "completion_ids": completions,
        "logprobs": [[one[0] for one in row] for row in logprobs],
        "bonus": [len(row) / 10 for row in completions],
    }


def with_bonus(completions: list[str], bonus: list[float], **kwargs: Any) -> list[float]:
    """A reward that needs what the rollout gave."""
    return [a + b for a, b in zip(distinct(completions), bonus, strict=True)]


def invented(prompts: list[Any], count: int, seed: int) -> tuple[list[list[int]], list[list[list[float]]]]:
    """`count` answers per prompt, the same for the same seed, and their log-probabilities (top one, in nats)."""
    dice = random.Random(f"{seed} {prompts}")
    answers = [[dice.randrange(3, 30) for _ in range(dice.randint(1, 4))] for _ in prompts for _ in range(count)]
    return answers, [[[-dice.uniform(3, 4)] for _ in answer] for answer in answers]


class Server:
    """In place of TRL's client of a vLLM server."""

    def __init__(self, **settings: Any) -> None:
        self.calls = self.weights = 0

    def init_communicator(self, device: Any) -> None:
        """Nothing to connect."""

    def get_server_info(self) -> dict[str, Any]:
        """As a server that was started as TRL recommends."""
        return {"model_config": {"logprobs_mode": "processed_logprobs"}}

    def update_named_params(self, names: Any, parameters: Any) -> None:
        """Takes the weights."""
        self.weights += sum(tensor.numel() for _, tensor in parameters)

    def reset_prefix_cache(self) -> None:
        """Nothing is kept."""

    def generate(self, prompts: list[list[int]], n: int, **settings: Any) -> dict[str, Any]:
        """`n` answers for each prompt."""
        self.calls += 1
        answers, logprobs = invented(prompts, n, self.calls)
        return {"prompt_ids": prompts, "completion_ids": answers, "logprobs": logprobs}


class Colocated:
    """In place of TRL's vLLM engine beside the trainer, which needs a GPU."""

    def __init__(self, **settings: Any) -> None:
        self.calls = 0

    def sync_weights(self) -> None:
        """Weights are not used."""

    def generate(self, prompts: Any, images: Any, num_generations: int, profiler: Any) -> tuple[Any, ...]:
        """One answer for each prompt, which stands there once per completion."""
        self.calls += 1
        answers, logprobs = invented(prompts, 1, self.calls)
        return prompts, answers, logprobs, None


class Abacus:
    """An environment that gives the prompt, has a tool, and knows the reward."""

    def reset(self, task: str, answer: str, **row: Any) -> str:
        """Start over with a row; the row number of steering is not among its columns."""
        assert "mixwright_index" not in row
        self.calls, self.answer = 0, answer
        return f" {task}"

    def count(self, number: int) -> str:
        """Adds one.

        Args:
            number: what to add one to.
        """
        self.calls += 1
        return str(number + 1)


def double(number: int) -> str:
    """Doubles a number.

    Args:
        number: what to double.
    """
    return str(2 * number)


def calling(tool: str) -> Callable[..., dict[str, Any]]:
    """A reader of answers that sees a call of `tool` in every other first answer, and none later."""

    def parse(words: Any, ids: list[int], prefix: Any = None, tools: Any = None) -> dict[str, Any]:
        message: dict[str, Any] = {"role": "assistant", "content": words.decode(ids, skip_special_tokens=True)}
        if prefix is not None and len(prefix) < 24 and sum(ids) % 2:
            call = {"name": tool, "arguments": {"number": len(ids)}}
            message["tool_calls"] = [{"type": "function", "function": call}]
        return message

    return parse
