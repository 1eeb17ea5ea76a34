"""Gradient sketches against gradients of one row at a time: exact without projections, in the same order with them."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import numpy as np
import plugin_samples as samples
import pytest
import torch
from promise_samples import measurable
from safetensors import safe_open
from safetensors.torch import save_file
from transformers import GPT2Config, GPT2LMHeadModel
from transformers.pytorch_utils import Conv1D

from mixwright.config import ModelConfig
from mixwright.learner.learner import Learner
from mixwright.learner.training_rows import TrainingRow, read_training_rows
from mixwright_extras.scan.gradient_sketch import GradientSketch, find_matrices
from mixwright_extras.scan.sketch_calibration import (
    SketchSettings,
    calibrate,
    calibration_rows,
    load_calibration,
    save_calibration,
)
from mixwright_extras.tiny.model import build_tiny


def llama() -> Learner:
    texts = [f"{example.prompt} {example.answer}" for example in samples.corpus()]
    return build_tiny(texts, ModelConfig(width=16, depth=2, heads=2, vocabulary=300), seed=0)


def gpt() -> Learner:
    """Linear layers with the weight the other way round, and with biases."""
    base = llama()
    torch.manual_seed(0)
    shape = GPT2Config(vocab_size=len(base.tokenizer), n_embd=16, n_layer=1, n_head=2, n_positions=64)
    return Learner(GPT2LMHeadModel(shape).eval(), base.tokenizer, "gpt")


def exact(learner: Learner, row: TrainingRow, names: list[str]) -> dict[str, torch.Tensor]:
    model = copy.deepcopy(learner.model)
    ids = torch.tensor([[*row.prompt, *row.target]])
    logits = model(input_ids=ids).logits[0, len(row.prompt) - 1 : -1]
    torch.nn.functional.cross_entropy(logits, torch.tensor(row.target)).backward()
    return {name: parameter.grad for name, parameter in model.named_parameters() if name in names}  # pyright: ignore


def rows_of(learner: Learner, count: int = 12) -> list[TrainingRow]:
    return list(read_training_rows(learner, list(measurable())[:count]))


@pytest.mark.parametrize("make", [llama, gpt])
def test_without_projections_they_are_the_gradients(make: Any) -> None:
    learner = make()
    rows, parts = rows_of(learner), find_matrices(learner.model)
    found = GradientSketch(learner.model).products(learner, rows)
    biases = {part.name: f"{part.name.removesuffix('weight')}bias" for part in parts}
    for i, row in enumerate(rows):
        wanted = exact(learner, row, [*biases, *biases.values()])
        for part, mine in zip(parts, found, strict=True):
            weight = wanted[part.name].T if isinstance(part.modules[0], Conv1D) else wanted[part.name]
            assert torch.allclose(mine[i, :, : weight.shape[1]], weight, atol=1e-5), part.name
            if part.inputs > weight.shape[1]:
                assert torch.allclose(mine[i, :, -1], wanted[biases[part.name]], atol=1e-5), part.name


def test_frozen_weights_are_left_out_and_everything_is_as_it_was() -> None:
    learner = llama()
    for name, parameter in learner.model.named_parameters():
        parameter.requires_grad_("layers.1" in name)
    flags = [parameter.requires_grad for parameter in learner.model.parameters()]
    found = GradientSketch(learner.model)
    assert {part.name.split(".")[2] for part in found.matrices} == {"1"}
    found.products(learner, rows_of(learner))
    assert [parameter.requires_grad for parameter in learner.model.parameters()] == flags
    assert all(parameter.grad is None for parameter in learner.model.parameters())
    assert not any(module._forward_hooks or module._forward_pre_hooks for module in learner.model.modules())


def cosines(vectors: torch.Tensor) -> np.ndarray:
    unit = vectors / vectors.norm(dim=1, keepdim=True)
    return (unit @ unit.T).numpy()[np.triu_indices(len(unit), 1)]


def test_calibrated_sketches_keep_the_order_of_cosines() -> None:
    learner = llama()
    rows = rows_of(learner, 60)
    whole = GradientSketch(learner.model).sketch_rows(learner, rows)
    small = calibrate(learner, calibration_rows(rows, 0), SketchSettings(directions_per_side=8, dims=400))
    sketches = small.sketch(learner).sketch_rows(learner, rows)
    assert sketches.shape == (60, 400)
    assert np.corrcoef(cosines(whole), cosines(sketches))[0, 1] > 0.97


def test_a_calibration_is_kept_for_its_own_scan_alone(tmp_path: Path) -> None:
    learner = llama()
    rows = rows_of(learner)
    made = calibrate(learner, rows, SketchSettings(directions_per_side=4, dims=50))
    path = tmp_path / "sketch.safetensors"
    save_calibration(path, made, {"rows": 1})
    assert load_calibration(path, {"rows": 2}) is None
    assert load_calibration(tmp_path / "nothing", {"rows": 1}) is None
    back = load_calibration(path, {"rows": 1})
    assert back is not None
    assert torch.equal(back.sketch(learner).sketch_rows(learner, rows), made.sketch(learner).sketch_rows(learner, rows))
    with safe_open(path, framework="pt") as file:
        metadata, tensors = file.metadata(), {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 - no mapping
    older = {name.replace("directions/", "factors/"): tensor for name, tensor in tensors.items()}
    assert older.keys() != tensors.keys()
    save_file(older, path, metadata=metadata)
    assert load_calibration(path, {"rows": 1}) is None, "an earlier version's"
