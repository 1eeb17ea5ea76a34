"""Losses that a recommendation of a trial names: their changes under every arm that trained, and which arm spares them.

An arm spares a cell or task where the 95 % interval of its change against the starting model excludes a loss of the margin
(5 points): its lower end lies above that. An arm that is only too noisy for a loss to be shown spares nothing. Pure.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from mixwright.records import Claim
from mixwright.verdict.page.text import join_words

ClaimKey = tuple[str, float | None, bool]
"""Task, level, and whether a whole task of several levels is meant."""
Changes = Mapping[str, Sequence[Claim]]
"""Arm that trained -> its claims against the starting model, of what any arm damaged."""


def claim_key(claim: Claim) -> ClaimKey:
    """What a claim is about."""
    return claim.task, claim.level, claim.whole


def collect_changes(claims: Sequence[Claim], trained: Sequence[str]) -> dict[str, tuple[Claim, ...]]:
    """The claims of each arm that trained about what any of them damaged.

    Args:
        claims: of every arm.
        trained: arms that train.
    """
    damaged_places = {claim_key(claim) for claim in claims if claim.arm in trained and claim.kind == "damaged"}
    return {
        arm: tuple(arm_claim for arm_claim in claims if arm_claim.arm == arm and claim_key(arm_claim) in damaged_places)
        for arm in trained
    }


def excludes_loss(claim: Claim, margin: float, *, lower_is_better: bool = False) -> bool:
    """Whether a loss of the margin is excluded.

    Args:
        claim: of one arm against the starting model.
        margin: size that does not matter, in the unit of the outcome.
        lower_is_better: whether a lower value of the outcome is better.
    """
    difference = claim.difference
    return difference.n > 0 and (-difference.high if lower_is_better else difference.low) > -margin


def format_spared(
    loss_names: Mapping[ClaimKey, str],
    changes: Changes,
    other_arms: Sequence[str],
    margin: float,
    *,
    lower_is_better: bool = False,
) -> str:
    """Which other arm is shown to spare what is named: `nothing else is shown to keep it`; empty without another arm.

    Args:
        loss_names: what the sentence names, as it names it.
        changes: of every arm.
        other_arms: arms that trained, without the one that the sentence is about.
        margin: as for `excludes_loss`.
        lower_is_better: the same.
    """
    if not loss_names or not other_arms:
        return ""
    sparing = {
        arm: {
            claim_key(claim)
            for claim in changes.get(arm, ())
            if excludes_loss(claim, margin, lower_is_better=lower_is_better)
        }
        for arm in other_arms
    }
    groups: dict[tuple[str, ...], list[str]] = {}
    for loss, name in loss_names.items():
        groups.setdefault(tuple(arm for arm in other_arms if loss in sparing[arm]), []).append(name)
    sentences = []
    for arms, names in groups.items():
        spared_text = "it" if len(names) == 1 else "each of them" if arms else "any of them"
        spared_text = join_words(names) if len(groups) > 1 else spared_text
        sentences.append(
            f"{join_words(arms)} kept {spared_text}" if arms else f"nothing else is shown to keep {spared_text}"
        )
    return "; ".join(sentences)
