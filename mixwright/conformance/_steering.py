"""Promises of selectors, and of all that steers: the random generator that is handed in, and a state that continues."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from mixwright.conformance import samples
from mixwright.conformance.promises import check_plugin, require, same_randomness

if TYPE_CHECKING:
    from mixwright.contracts import Selector


def check_selector(cls: type[Selector]) -> None:
    """Picks items of the task asked for, by the rng alone; what it says of itself is words by name; state round-trips."""

    def read_output(selector: Selector, step: int) -> Any:
        pool, rng = samples.pool(), np.random.default_rng(step)
        tasks = np.tile(np.arange(len(pool.tasks)), 5)
        picked_items = selector.pick(tasks, rng)
        require(picked_items.shape == tasks.shape, "one item per draw")
        require(bool((pool.task_of[picked_items] == tasks).all()), "an item of the task that was asked for")
        cells = {cell.key for cell in pool.cells}
        require(set(selector.cell_states()) <= cells, "states are of cells of the pool")
        for texts in (selector.cell_states(), selector.remarks()):
            require(all(isinstance(text, str) and text for item in texts.items() for text in item), "words, by a name each")
        require(all(name.isidentifier() for name in selector.remarks()), "a remark has one word for its name")
        return picked_items.tolist(), selector.cell_states(), selector.remarks()

    check_steerer(cls, read_output)


def check_steerer(cls: type[Any], read_output: Any) -> None:
    """Run a made-up tape; half-way, save, restore into a fresh object, and compare everything after."""
    original, scene = check_plugin(cls), samples.scene()
    with same_randomness():
        original.begin(scene)
        _play(original, scene, read_output, range(6))
        saved_state = json.loads(json.dumps(original.state(), allow_nan=False))
        resumed = cls()
        resumed.begin(scene)
        resumed.restore(saved_state)
        require(json.loads(json.dumps(resumed.state())) == saved_state, "restore(state()) gives the same state")
        for step in range(6, 12):
            original_outputs = _play(original, scene, read_output, [step])
            resumed_outputs = _play(resumed, scene, read_output, [step], feed_ledger=False)
            require(
                original_outputs == resumed_outputs,
                f"a resumed {cls.__name__} continues exactly as the original (step {step})",
            )


def _play(plugin: Any, scene: Any, read_output: Any, steps: Sequence[int] | range, *, feed_ledger: bool = True) -> list[Any]:
    outputs = []
    for step in steps:
        if feed_ledger:
            samples.feed(scene, step)
        ledger_before = scene.ledger.state()
        for outcomes in (samples.groups(step), samples.losses(step), samples.pairs(step)):
            plugin.observe(step, outcomes)
        outputs.append(read_output(plugin, step))
        require(scene.ledger.state() == ledger_before, "the ledger is only read")
    return outputs
