"""Checks, before training, of what is relied on inside TRL and transformers and not promised in their documentation.

`make oldest` and `make test` run on both ends of the declared range of versions; this is for those outside it. Where an
older TRL lacks something that can be had otherwise, that is done where it is needed (`logprobs.py`, `selftest.py`).
"""

from __future__ import annotations

import inspect
from typing import Any

from mixwright.errors import InputError

ROW_TRAINER_METHODS = {
    "_get_train_sampler": (),
    "compute_loss": ("model", "inputs"),
    "_set_signature_columns_if_needed": (),
    "_load_from_checkpoint": ("resume_from_checkpoint",),
}
REQUIRED_METHODS: dict[str, dict[str, tuple[str, ...]]] = {
    "grpo": {
        "_get_train_sampler": ("dataset",),
        "_calculate_rewards": ("inputs", "prompts", "completions", "completion_ids_list"),
        "_generate_and_score_completions": ("inputs",),
        "_set_signature_columns_if_needed": (),
        "_load_from_checkpoint": ("resume_from_checkpoint",),
    },
    "sft": ROW_TRAINER_METHODS,
    "dpo": ROW_TRAINER_METHODS,
}
"""Per trainer: methods that are extended or called, with the leading arguments relied on."""
SHARED_ATTRIBUTES = ("_metrics", "_signature_columns", "is_deepspeed_enabled", "is_fsdp_enabled")
REQUIRED_ATTRIBUTES: dict[str, tuple[str, ...]] = {
    "grpo": (
        *SHARED_ATTRIBUTES,
        *("_logs", "_tokenizer", "beta", "chat_template_kwargs", "environment_factories", "max_completion_length"),
        *("num_generations", "num_iterations", "reward_funcs", "reward_weights", "rollout_func", "tools"),
    ),
    "sft": (*SHARED_ATTRIBUTES, "_train_batch_size"),
    "dpo": (
        *(
            *SHARED_ATTRIBUTES,
            "_train_batch_size",
            "aux_loss_enabled",
            "beta",
            "f_divergence_type",
            "label_smoothing",
            "ld_alpha",
        ),
        *("loss_types", "loss_weights", "precompute_ref_logps", "ref_model", "use_weighting"),
    ),
}
"""Per trainer: attributes of an instance that are read."""


def check_methods(parent: type, objective: str) -> None:
    """Raises InputError when a method of TRL's trainer is missing or takes other arguments than those relied on."""
    for name, parameters in REQUIRED_METHODS[objective].items():
        method = getattr(parent, name, None)
        actual = tuple(inspect.signature(method).parameters)[1:] if callable(method) else None
        if actual is None or actual[: len(parameters)] != parameters:
            actual_text = "no such method" if actual is None else f"({', '.join(actual)})"
            raise _changed(f"{parent.__name__}.{name}({', '.join(parameters)})", actual_text)


def check_attributes(trainer: Any, objective: str) -> None:
    """Raises InputError when a trainer lacks an attribute that is read."""
    for name in REQUIRED_ATTRIBUTES[objective]:
        if not hasattr(trainer, name):
            raise _changed(f"an attribute {name} of {type(trainer).__mro__[1].__name__}", "none")


def _changed(expected: str, actual: str) -> InputError:
    import transformers
    import trl

    return InputError(
        f"{expected} in TRL",
        f"{actual} in TRL {trl.__version__} with transformers {transformers.__version__}",
        "Install a TRL version within the range of Mixwright's pyproject.toml, or train with steering=None.",
    )
