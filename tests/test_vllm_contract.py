"""Names of vLLM that the engine uses, in the sources of the released package: that they are there, under these arguments.

The sources are those that are installed, or the unpacked wheel of another release in the folder MIXWRIGHT_VLLM.
"""

from __future__ import annotations

import ast
import importlib.util
import os
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from mixwright.learner import vllm_engine
from mixwright.learner.generation import Decoding, GenerationJob
from mixwright.learner.vllm_engine import ENVIRONMENT, VllmEngine


def find_sources() -> Path | None:
    if named := os.environ.get("MIXWRIGHT_VLLM"):
        return Path(named)
    spec = importlib.util.find_spec("vllm")
    return Path(spec.origin).parent if spec and spec.origin else None


SOURCES = find_sources()
pytestmark = pytest.mark.skipif(SOURCES is None, reason="no vLLM (make vllm)")


def class_of(file: str, name: str) -> ast.ClassDef:
    assert SOURCES is not None
    found = [node for node in ast.walk(ast.parse((SOURCES / file).read_text())) if isinstance(node, ast.ClassDef)]
    return next(node for node in found if node.name == name)


def functions(node: ast.ClassDef | ast.Module) -> set[str]:
    return {child.name for child in node.body if isinstance(child, ast.FunctionDef)}


def fields(file: str, name: str) -> set[str]:
    annotated = [node.target for node in class_of(file, name).body if isinstance(node, ast.AnnAssign)]
    return {target.id for target in annotated if isinstance(target, ast.Name)}


def arguments(file: str, name: str, method: str) -> set[str]:
    body = class_of(file, name).body
    function = next(node for node in body if isinstance(node, ast.FunctionDef) and node.name == method)
    return {argument.arg for argument in (*function.args.args, *function.args.kwonlyargs)}


@pytest.mark.parametrize("device", ["cpu", "cuda"])
def test_the_engine_takes_these_settings(device: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda _: (60, 80))
    learner: Any = SimpleNamespace(model=SimpleNamespace(dtype=torch.float32), device=torch.device(device))
    used = vllm_engine._engine_settings(learner, 1.0, 2)
    known = arguments("entrypoints/llm.py", "LLM", "__init__") | fields("engine/arg_utils.py", "EngineArgs")
    assert set(used) <= known
    assert used.get("gpu_memory_utilization", 0.3) == pytest.approx(0.8 * 60 / 80 / 2), "half of four fifths of what is free"
    used = vllm_engine._engine_settings(learner, 0.5, 1)
    assert used.get("gpu_memory_utilization", 0.4) == pytest.approx(0.8 * 0.5), "four fifths of half a GPU, which is free"


def test_requests_take_these_settings() -> None:
    used: dict[str, Any] = {}
    engine: Any = object.__new__(VllmEngine)
    engine._vllm = SimpleNamespace(SamplingParams=lambda **given: used.update(given))
    engine._sampling(GenerationJob([1], 1), 0, Decoding(1.0, 3, 0), frozenset({2}))
    assert set(used) <= fields("sampling_params.py", "SamplingParams")


def test_the_engine_is_asked_and_answers_under_these_names() -> None:
    file = "v1/engine/llm_engine.py"
    assert {"request_id", "prompt", "params"} <= arguments(file, "LLMEngine", "add_request")
    assert arguments(file, "LLMEngine", "step") == {"self"}
    assert "request_ids" in arguments(file, "LLMEngine", "abort_request")
    assert "shutdown" in functions(class_of("v1/engine/core_client.py", "InprocClient"))
    assert SOURCES is not None
    ending = ast.parse((SOURCES / "distributed" / "parallel_state.py").read_text())
    assert "cleanup_dist_env_and_memory" in functions(ending)
    assert {"token_ids", "logprobs"} <= fields("outputs.py", "CompletionOutput")
    assert {"request_id", "outputs", "finished"} <= arguments("outputs.py", "RequestOutput", "__init__")
    assert "logprob" in fields("logprobs.py", "Logprob")


def literals() -> Iterator[str]:
    """Strings of the configuration and of the environment's names."""
    assert SOURCES is not None
    for file in (*(SOURCES / "config").glob("*.py"), SOURCES / "envs.py"):
        nodes = ast.walk(ast.parse(file.read_text()))
        yield from (node.value for node in nodes if isinstance(node, ast.Constant) and isinstance(node.value, str))


def test_the_names_of_modes_and_of_the_environment_are_known() -> None:
    assert {"processed_logprobs", *ENVIRONMENT} <= set(literals())
    assert SOURCES is not None
    assert {"LLM", "SamplingParams", "TokensPrompt"} <= set((SOURCES / "__init__.py").read_text().replace('"', " ").split())
