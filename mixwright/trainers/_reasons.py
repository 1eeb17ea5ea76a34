"""Why an action that the engine ordered is written down and not executed."""

from __future__ import annotations

NOT_OURS = {
    "replay": "this trainer does not replay; the mixture raises the task's share instead",
    "weights": "weights are the engine's own; the sampler follows them",
}
"""Action kinds that are logged but not executed, with the reason."""
NO_BETA = {
    "grpo": "beta was 0 at the start, so there is no reference model",
    "sft": "SFT has no KL coefficient",
    "dpo": "DPO's beta is the temperature of its loss, not a leash: moving it would change what is being optimised",
}
"""Why beta cannot be moved."""
