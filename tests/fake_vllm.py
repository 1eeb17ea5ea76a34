"""A stand-in for vLLM that writes by transformers, token by token, and notes in a file what was started and ended."""

from __future__ import annotations

import gc
import json
import sys
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
import torch
from torch.optim import Optimizer
from transformers import AutoModelForCausalLM, Trainer

from mixwright.learner import engines


class FakeEngine:
    """`vllm.LLM`, its engine and the engine's core in one."""

    def __init__(self, notes: Path, folder: str, settings: dict[str, Any]) -> None:
        self.model: Any = AutoModelForCausalLM.from_pretrained(folder).eval()
        self.llm_engine = self.engine_core = self
        self.waiting: dict[str, tuple[list[int], Any]] = {}
        self.written, self._notes, self._folder = 0, notes, folder
        self.trainers = sum(issubclass(type(thing), (Trainer, Optimizer)) for thing in gc.get_objects())
        self._note("start")

    def add_request(self, name: str, prompt: Any, how: Any) -> None:
        self.waiting[name] = prompt.prompt_token_ids, how

    def step(self) -> list[Any]:
        name = next(iter(self.waiting))
        prompt, how = self.waiting.pop(name)
        tokens, logprobs = list[int](), list[Any]()
        generator = torch.Generator().manual_seed(how.seed or 0)
        while len(tokens) < how.max_tokens and not (tokens and tokens[-1] in how.stop_token_ids):
            with torch.no_grad():
                logits = self.model(torch.tensor([[*prompt, *tokens]])).logits[0, -1].float()
            scaled = torch.log_softmax(logits / (how.temperature or 1.0), -1)
            drawn = torch.multinomial(scaled.exp(), 1, generator=generator) if how.temperature else scaled.argmax()
            tokens.append(int(drawn))
            logprobs.append({tokens[-1]: SimpleNamespace(logprob=float(scaled[tokens[-1]]))})
        self.written += 1
        completion = SimpleNamespace(token_ids=tokens, logprobs=logprobs)
        return [SimpleNamespace(request_id=name, finished=True, outputs=[completion])]

    def shutdown(self) -> None:
        self._note("end")

    def _note(self, what: str) -> None:
        with self._notes.open("a") as file:
            file.write(json.dumps([what, self._folder, self.trainers if what == "start" else self.written]) + "\n")


def install(patch: pytest.MonkeyPatch, notes: Path) -> None:
    """Have `import vllm` give the stand-in, in this process and those that it forks."""
    for name, members in {
        "vllm": {
            "LLM": lambda folder, **settings: FakeEngine(notes, folder, settings),
            "TokensPrompt": SimpleNamespace,
            "SamplingParams": SimpleNamespace,
        },
        "vllm.distributed.parallel_state": {"cleanup_dist_env_and_memory": lambda: None},
    }.items():
        module = ModuleType(name)
        module.__spec__ = ModuleSpec(name, None)
        vars(module).update(members)
        patch.setitem(sys.modules, name, module)
    patch.setattr(engines, "packages_distributions", lambda: {"vllm": ["pytest"]})


def notes_of(path: Path) -> list[tuple[str, str, int]]:
    """What was noted: start or end, the folder that was read, and trainers and optimisers alive, or completions written."""
    return [tuple(json.loads(line)) for line in path.read_text().splitlines()] if path.exists() else []
