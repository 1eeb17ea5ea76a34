"""Why an action that the engine ordered is written down and not executed."""

from __future__ import annotations

from mixwright.records import Decision

NOT_OURS = {
    "weights": "weights are the engine's own; the sampler follows them",
}
"""Action kinds that are logged but not executed, with the reason."""
NO_BETA = {
    "grpo": "beta was 0 at the start, so there is no reference model",
    "sft": "SFT has no KL coefficient",
    "dpo": "DPO's beta is the temperature of its loss, not a leash: moving it would change what is being optimised",
}
"""Why beta cannot be moved."""


def stop_instead(step: int, target: str, name: str) -> Decision:
    """What is logged where the engine orders a restore: which checkpoint to resume from, relative to output_dir."""
    reason = f"a running trainer cannot go back: training stops; resume from {name}"
    if not name:
        reason = f"training stops; no {target} is left (keep more with save_total_limit)"
    return Decision(step, "stop instead of restore", target, name or None, reason)
