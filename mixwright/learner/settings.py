"""Settings for trainers that make a CPU fast; TRL's defaults are meant for a GPU."""

from __future__ import annotations

from typing import Any

SLOW_ON_CPU = {
    "bf16": "a CPU without bfloat16 units emulates it: 3.1-3.5 times slower (TRL turns it on)",
    "activation_checkpointing": "saves memory that small models do not need: 1.3-1.5 times slower (TRL turns it on)",
}
"""Settings that slow a CPU down, and why; factors measured on two x86 cores at 0.2 to 15 million parameters."""


def slow_settings(args: Any) -> list[str]:
    """What makes a trainer slow on the CPU it runs on, one sentence each; empty on an accelerator.

    Args:
        args: a TRL config or transformers' TrainingArguments.
    """
    if args.device.type != "cpu":
        return []
    return [
        f"{name}=True on a CPU: {reason}; set it to False"
        for name, reason in SLOW_ON_CPU.items()
        if getattr(args, name, False)
    ]


def find_device() -> Any:
    """The accelerator if there is one that can be used, else the CPU, as a `torch.device`.

    A build of torch for CUDA names CUDA as its accelerator on a machine without a GPU, too.
    """
    import torch

    accelerator = torch.accelerator.current_accelerator() if torch.accelerator.is_available() else None
    return accelerator or torch.device("cpu")


def float32_settings(device: Any) -> dict[str, Any]:
    """Fields for TRL's configs that train in float32 without checkpointing on any device.

    Runs on a CPU and on an accelerator then differ in their rounding alone.

    Args:
        device: a `torch.device` or its name.
    """
    return cheap_settings("cpu") | {"use_cpu": str(device).split(":")[0] == "cpu"}


def cheap_settings(device: Any) -> dict[str, Any]:
    """Fields for TRL's configs (and transformers' TrainingArguments) on `device`; empty when it is not a CPU.

    Args:
        device: a `torch.device` or its name.
    """
    if str(device).split(":")[0] != "cpu":
        return {}
    from transformers import TrainingArguments

    new_name = "activation_checkpointing" in TrainingArguments.__dataclass_fields__  # the old one warns where both exist
    return {
        "use_cpu": True,
        "bf16": False,
        "activation_checkpointing" if new_name else "gradient_checkpointing": False,
        "dataloader_num_workers": 0,  # workers compete for the same cores
        "dataloader_pin_memory": False,  # it only helps copies to an accelerator
        "report_to": "none",
        "disable_tqdm": True,
    }
