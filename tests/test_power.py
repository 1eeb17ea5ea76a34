"""What a trial can see: variances by hand, power and coverage by simulation, and the widths of the committed TRL trials."""

from __future__ import annotations

import dataclasses
import itertools
import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from answer_rows import ItemValue, write_measured

from mixwright.config import CorpusConfig, MeasureConfig, RunConfig, TrainConfig, TrialConfig
from mixwright.corpus import Corpus
from mixwright.estimates.crossed import Estimate, estimate_crossed
from mixwright.estimates.intervals import t_quantile
from mixwright.estimates.outcome import ItemScores
from mixwright.estimates.power import (
    PRIOR_NOISE,
    TYPICAL_ITEM_SPREAD,
    Noise,
    PowerCell,
    cells_of,
    expected_null_change,
    seeds_for,
)
from mixwright.records import Example
from mixwright.run.folder import RunFolder
from mixwright.trial.power import foresee_power

ROOT = Path(__file__).parent.parent
QUIET = Noise(0.0, 0.25, 0.5)


def test_the_variance_of_one_cell_by_hand() -> None:
    found = expected_null_change([PowerCell("a", 100, 0.2)], 8, QUIET)
    rest = 0.5 * 0.2 / 100 / 8
    size = (3.8415 + 100 * 0.2 * (0.25 + 0.5 / 8)) / (3.8415 + 40)  # of a move: 40 of 100 items move
    variance = 0.25 * 0.2 / 100 + 3.8415 * size / 99 / 100 + rest  # items, those not seen, rest; seeds and their rest cancel
    assert math.isclose(found.error, math.sqrt(variance), rel_tol=1e-6)
    assert math.isclose(found.high, t_quantile(found.df) * found.error, rel_tol=1e-9)
    noisy = expected_null_change([PowerCell("a", 100, 0.2)], 8, Noise(0.04, 0.25, 0.5))
    assert math.isclose(noisy.error**2 - found.error**2, 0.04**2 / 8, rel_tol=1e-6)


def test_tasks_weigh_the_same_however_many_items_they_have() -> None:
    uneven = expected_null_change([PowerCell("a", 10, 0.2), PowerCell("b", 990, 0.2)], 8, QUIET)
    own = 10 / 20**2 * (0.25 + 0.5 / 8) * 0.2  # half of the weight rests on ten items
    assert own < uneven.error**2 < 1.1 * own
    levels = expected_null_change([PowerCell("a", 50, 0.2), PowerCell("a", 50, 0.2)], 8, QUIET)
    assert math.isclose(levels.error, expected_null_change([PowerCell("a", 100, 0.2)], 8, QUIET).error, rel_tol=0.01)


def test_more_seeds_and_items_and_fewer_contrasts_help() -> None:
    cells, noise = [PowerCell("a", 400, 0.15)], PRIOR_NOISE["greedy", "trained"]
    found = expected_null_change(cells, 5, noise).detectable()
    assert found > 0.02
    assert expected_null_change(cells, 20, noise).detectable() < found
    assert expected_null_change([PowerCell("a", 4000, 0.15)], 5, noise).detectable() < found
    assert expected_null_change(cells, 5, noise).detectable(3) > found


@pytest.mark.slow
@pytest.mark.parametrize(("seeds", "noise"), [(8, Noise(0.01, 0.25, 0.42)), (6, Noise(0.03, 0.02, 0.47)), (20, QUIET)])
def test_simulated_trials_have_the_power_and_the_width_that_were_foretold(seeds: int, noise: Noise) -> None:
    """With 600 trials the standard error of a power of 80 % is 1.6 points, of a coverage of 95 % 0.9 points."""
    rng = np.random.default_rng(3)
    cells = [PowerCell("a", 60, 0.1), PowerCell("a", 60, 0.3), PowerCell("b", 150, 0.2)]
    strata = np.repeat(np.arange(3), [60, 60, 150])
    weights = np.where(strata < 2, 1 / 240, 1 / 300)
    spread = np.repeat([cell.spread for cell in cells], [60, 60, 150])
    foretold = expected_null_change(cells, seeds, noise)
    size = foretold.detectable(1)
    seen, covered, widths = 0, 0, []
    for _ in range(600):
        values = (
            size
            + rng.normal(0, noise.seed_deviation, (seeds, 1))
            + rng.normal(0, np.sqrt(noise.item_variance_share * spread))
        )
        found = estimate_crossed(
            values + rng.normal(0, np.sqrt(noise.within_seed_variance_share * spread), (seeds, 270)), strata, weights
        )
        seen += found.p < 0.05
        covered += found.low <= size <= found.high
        widths.append((found.high - found.low) / 2)
    assert 0.73 <= seen / 600 <= 0.87
    assert covered / 600 >= 0.93
    assert 0.9 <= np.mean(widths) / foretold.high <= 1.15


def test_cells_are_read_from_sampled_success_with_the_chance_of_sampling_taken_out() -> None:
    items: list[Any] = [("a", 1.0, "x"), ("a", 1.0, "y"), ("b", None, "z")]
    first = ItemScores.of({"pass@1": dict(zip(items, [0.5, 1.0, 0.25], strict=True))})
    cells = cells_of([first], samples=4)
    assert [(cell.task, cell.items) for cell in cells] == [("a", 2), ("b", 1)]
    assert math.isclose(cells[0].spread, 2 * (0.25 + 0) / 2 * 4 / 3)
    assert math.isclose(cells[1].spread, 2 * 0.1875 * 4 / 3)
    assert [cell.spread for cell in cells_of([first], samples=1)] == [TYPICAL_ITEM_SPREAD, TYPICAL_ITEM_SPREAD]
    assert cells_of([], samples=4) == []


def test_committed_trials_were_as_wide_as_would_have_been_foretold() -> None:
    """On the trials that the prior was read from: per case, decoding and kind the median width is within a third."""
    kept = ROOT / "mixwright_lab" / "results" / "studies" / "leave_one_out.json"
    rows = json.loads(kept.read_text(encoding="utf-8"))["rows"]
    for case in ("refusing", "eight"):
        own = [row for row in rows if row["case"] == case]
        items = [tuple(item) for item in read(next(row["items"] for row in own if "items" in row))]
        arms: dict[str, dict[int, dict[str, Any]]] = {}
        for row in own:
            if "arm" in row:
                arms.setdefault(row["arm"], {})[row["seed"]] = {n: np.array(read(row[n])) for n in ("greedy", "pass@1")}
        before = [ItemScores.of({"pass@1": dict(zip(items, one["pass@1"], strict=True))}) for one in arms["frozen"].values()]
        cells = cells_of(before, samples=8)
        strata = np.unique([str(item[:2]) for item in items], return_inverse=True)[1]
        tasks = np.unique([item[0] for item in items], return_inverse=True)[1]
        weights = 1 / np.bincount(tasks)[tasks] / len(np.unique(tasks))
        for decoding, kind in PRIOR_NOISE:
            ratios = []
            for one, other in itertools.combinations(sorted(arms), 2):
                if ("frozen" in (one, other)) == (kind == "untrained"):
                    name = {"greedy": "greedy", "sampled": "pass@1"}[decoding]
                    table = np.array([arms[one][seed][name] - arms[other][seed][name] for seed in arms[one]])
                    found = estimate_crossed(table, strata, weights)
                    ratios.append(
                        expected_null_change(cells, len(table), PRIOR_NOISE[decoding, kind]).high
                        / (found.high - found.value)
                    )
            assert 2 / 3 <= np.median(ratios) <= 1.5, (case, decoding, kind)


def read(value: Any) -> list[Any]:
    return json.loads(value) if isinstance(value, str) else value


def corpus() -> Corpus:
    rows = [Example(f"t{n}", "sum", f"{n}+1=", answer="1") for n in range(30)]
    return Corpus.from_examples([*rows, *(Example(f"e{n}", "sum", f"{n}+2=", answer="1", split="eval") for n in range(20))])


def config(**trial: Any) -> RunConfig:
    asked = TrialConfig(**{"seeds": 4, "arms": ("uniform", "steered"), **trial})
    train = TrainConfig(steps=5, prompts=2, generations=3)
    return RunConfig(CorpusConfig("x.jsonl"), measure=MeasureConfig(items=10, samples=2), train=train, trial=asked)


def item_rows(values: list[float]) -> list[ItemValue]:
    names = {"pass@1": 1.0, "greedy": 1.0, "pass@1.swapped": 0.0, "greedy.swapped": 0.0}
    return [
        ItemValue("sum", name, value * part, None, f"e{n}", 2)
        for name, part in names.items()
        for n, value in enumerate(values)
    ]


def test_a_run_is_foreseen_from_its_settings_then_its_measurements(tmp_path: Path) -> None:
    run = RunFolder(tmp_path)
    assert foresee_power(config(), run, corpus(), "base-0") == [
        'can see nothing: with fewer than 5 seeds every result is "cannot tell"'
    ]
    guessed = foresee_power(config(seeds=8), run, corpus(), "base-0")
    assert "8 seeds, 10 held-out items" in guessed[0]
    assert "none was measured" in guessed[1]
    write_measured(run.measurements("base-0"), item_rows([0.0, 1.0] * 6))
    sure = foresee_power(config(seeds=8), run, corpus(), "base-0")
    assert "8 seeds, 12 held-out items" in sure[0]
    assert "as measured before" in sure[1]
    smallest = [float(line.partition("a difference of ")[2].partition(" ")[0]) for line in (sure[0], guessed[0])]
    assert smallest[0] < smallest[1], "items that are always right, or never, hardly move"


def test_seeds_after_a_trial_by_hand() -> None:
    # differences of 0, .1 ... in 4 seeds: variance .0167, so .00417 of the mean, and nothing of the items: at the normal
    # distribution's 2.8 errors, .05 needs 2.8^2 x .0167 / .0025 = 52 seeds, and t takes a few more
    values = (0.0, 0.1, 0.2, 0.3)
    error = math.sqrt(sum((value - 0.15) ** 2 for value in values) / 3 / 4)
    found = Estimate(0.15, 0.0, 0.3, 0.05, error, 3.0, 4, 100)
    needed = seeds_for(found, values, 0.05)
    assert needed is not None
    assert 52 <= needed <= 56
    assert seeds_for(dataclasses.replace(found, error=error + 0.05), values, 0.05) is None, "the items' part stays"
    assert seeds_for(found, values[:1], 0.05) is None
