"""Promises of adapters: the output is as it was, the rest stays frozen, what is saved comes back, merging is exact."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from plugin_promises import check_plugin, require, same_randomness

if TYPE_CHECKING:
    import torch

    from mixwright.contracts import Adapter
    from mixwright.learner.learner import Learner

START, EXACT = 1e-6, 1e-5
"""Largest difference of logits at the start, and after a round trip or a merge."""
ALLOWED = {".safetensors", ".json", ".md"}
"""Files of a saved adapter; none of them can hold code."""


def check_adapter(cls: type[Adapter], learner: Learner, place: Path) -> None:
    """Output unchanged at the start; only what may train moves; round trip and merge equal to 1e-5; no pickle.

    Args:
        cls: the adapter.
        learner: any learner in float32; a tiny one will do (`mixwright_extras.tiny.model.build_tiny`). It is only read.
        place: an empty folder that may be written to.
    """
    from mixwright.learner.adapting import SETTINGS_FILE

    adapter, base = check_plugin(cls), learner.model
    before = _logits(base)
    with same_randomness():
        model = adapter.wrap(copy.deepcopy(base))
    require(_apart(_logits(model), before) <= START, "the output is unchanged at the start")
    require(
        0 < count_trainable(model) <= count_trainable(copy.deepcopy(base).requires_grad_(True)),
        "some parameters train, none are extra",
    )
    _train(model)
    after = _logits(model)
    require(_apart(after, before) > EXACT, "training changes the output")

    folder = place / "adapter"
    with same_randomness():
        adapter.save(model, folder)
    require({path.suffix for path in folder.rglob("*") if path.is_file()} <= ALLOWED, "safetensors and JSON, no pickle")
    require(any(folder.glob("*.safetensors")), "weights are saved as safetensors")
    settings = json.loads((folder / SETTINGS_FILE).read_text(encoding="utf-8"))
    require(bool(settings["adapter"]) and set(settings["options"]) == set(vars(adapter)), "the settings name the adapter")
    with same_randomness():
        again = cls().load(copy.deepcopy(base), folder)
    require(_apart(_logits(again), after) <= EXACT, "a fresh base with what was saved gives the same output")
    require(count_trainable(again) == count_trainable(model), "what was loaded may train on")

    with same_randomness():
        merged = adapter.merge(model)
    require(type(merged) is type(base), "merging gives a model of the base's own class")
    names = [set(dict(each.named_parameters())) for each in (merged, base)]
    require(names[0] == names[1], "merging gives plain weights under the base's own names")
    require(_apart(_logits(merged), after) <= EXACT, "the merged model gives the same output")
    require(_apart(_logits(base), before) == 0, "a copy was adapted, the base is as it was")


def count_trainable(model: Any) -> int:
    return sum(parameter.numel() for parameter in model.parameters() if parameter.requires_grad)


def _logits(model: Any) -> torch.Tensor:
    """Logits of two fixed rows."""
    import torch

    from mixwright.learner.batches import reading_mode

    with reading_mode(model):
        return model(input_ids=torch.tensor([[3, 4, 5, 6], [7, 6, 5, 4]])).logits


def _apart(one: torch.Tensor, other: torch.Tensor) -> float:
    return float((one - other).abs().max())


def _train(model: Any) -> None:
    """Three steps on a fixed row; what is frozen stays as it is, to the bit."""
    import torch

    frozen = {name: own.detach().clone() for name, own in model.named_parameters() if not own.requires_grad}
    ids = torch.tensor([[3, 4, 5, 6], [7, 6, 5, 4]])
    free = [own for own in model.parameters() if own.requires_grad]
    optimiser = torch.optim.Adam(free, lr=1e-2)
    for _ in range(3):
        loss = model(input_ids=ids, labels=ids).loss
        optimiser.zero_grad()
        loss.backward()
        require(all(own.grad is not None for own in free), "every parameter that trains has a gradient")
        optimiser.step()
    now = dict(model.named_parameters())
    require(all(torch.equal(now[name], own) for name, own in frozen.items()), "what is frozen stays as it is")
