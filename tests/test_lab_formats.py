"""Races of formats in the laboratory: mixes cross share and accuracy; imitation learns from right answers of the start."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("torch")

from mixwright import catalog
from mixwright_lab.findings.formats import FROZEN, IMITATED, MIXES, PLAIN, RULES, Settings
from mixwright_lab.worlds.chain import STYLES

TINY = Settings(base=30, steps=4, rounds=2, expert_steps=2, items=8, samples=4)


def test_mixes_cross_share_and_noise() -> None:
    commonest = {mix: STYLES[int(np.argmax(shares))] for mix, (shares, _) in MIXES.items()}
    assert commonest == {"commonest is best": "full", "rarer is better": "full", "direct is commonest": "direct"}
    assert all(sum(shares) == pytest.approx(1) for shares, _ in MIXES.values())
    assert MIXES["rarer is better"][1][0] > MIXES["rarer is better"][1][1]


def test_readings_of_arms() -> None:
    finding = catalog.create("findings", "formats")
    found = {arm: finding.run(arm, 100, TINY) for arm in (FROZEN, PLAIN, IMITATED)}
    for own in found.values():
        assert all(np.isfinite(list(own.values())))
        assert {f"hit: {rule}" for rule in RULES} <= set(own)
        for mix in MIXES:
            assert sum(own[f"{mix}: share of {style}"] for style in STYLES) <= 1 + 1e-9
    assert len({round(own["entropy at 0/4"], 9) for own in found.values()}) == 1, "one base"
    assert found[FROZEN]["entropy"] == found[FROZEN]["entropy at 0/4"]
    assert found[PLAIN]["entropy"] == found[PLAIN]["entropy at 4/4"]
