"""What the page says of a trial: tone and words of the headline, its parts, and the sections beside it."""

from __future__ import annotations

import dataclasses
import re
from pathlib import Path

import numpy as np
import pytest
from _example_run import CELLS, build, example_page

from mixwright.catalog import create, listing
from mixwright.errors import InputError
from mixwright.records import Effect, Interval, Judgement, LeverWord, Proof, TrialResult
from mixwright.run.folder import RunFolder, read_json, read_measurements, write_json
from mixwright.verdict.page.blocks import Block, Code, Fold, Forest, Headline, Paragraph, Table, keep_filled
from mixwright.verdict.page.charts import render_svg
from mixwright.verdict.page.text import format_bounds, points
from mixwright.verdict.rules.evidence import headline_arm
from mixwright.verdict.stage import render


@pytest.fixture
def page() -> str:
    return example_page()


def blocks_of(run: RunFolder, section: str) -> list[Block]:
    """What one section shows, without what all others take."""
    return keep_filled(create("sections", section).blocks(run))


def test_labels_of_a_chart_tell_ablations_apart_although_they_are_cut(tmp_path: Path) -> None:
    parts = [name for name in listing("arms") if name.startswith("without_")]
    assert len(parts) == 4
    shown = TrialResult((), (), (), (0,), (), (), (), {}, {})
    effects = [Effect("steered", part, "success", Interval(0.0, -0.1, 0.1, 8), "cannot tell") for part in parts]
    run = RunFolder(tmp_path)
    write_json(run.result, dataclasses.replace(shown, effects=tuple(effects)))
    (chart,) = [block for block in create("sections", "arms").blocks(run) if isinstance(block, Forest)]
    assert len(set(re.findall(r">(steered [^<]*)<", render_svg(chart)))) == 4


TONES = [
    ("helps", "beats its nulls", "plain", "Train with this plan only if", "it beats its nulls, too"),
    ("helps", "not tried", "plain", "Train with this plan only if", "its nulls did not run"),
    ("helps", "does not beat its nulls", "plain", "Train with this plan only if", "does not come from what the lever knows"),
    ("harms", "not tried", "bad", "Do not use this plan", "steered harms"),
    ("no change", "not tried", "plain", "Cannot tell", "no change beyond 5 points"),
    ("cannot tell", "not tried", "plain", "Cannot tell: equal_shares did not run", "Missing: equal_shares."),
]


@pytest.fixture(scope="module")
def judged(tmp_path_factory: pytest.TempPathFactory) -> RunFolder:
    return build(tmp_path_factory.mktemp("judged"))


@pytest.mark.parametrize(("word", "proof", "tone", "advice", "words"), TONES)
def test_the_sentence_follows_the_record_and_only_harm_is_red(
    judged: RunFolder, word: LeverWord, proof: Proof, tone: str, advice: str, words: str
) -> None:
    result = read_json(judged.result, TrialResult)
    missing = ("equal_shares",) if word == "cannot tell" else ()
    said = (Judgement("steered", word, "against uniform: success +1.0 points", missing, proof),)
    write_json(judged.result, dataclasses.replace(result, judgements=said))
    blocks = blocks_of(judged, "headline")
    (headline,) = (block for block in blocks if isinstance(block, Headline))
    assert headline.tone == tone
    assert headline.text.startswith(advice)
    assert any(words in block.text for block in blocks if isinstance(block, Paragraph))
    assert {fact.tone for fact in headline.facts} == {"plain"}
    assert [fact.label for fact in headline.facts] == [f"success against {name}" for name in result.references]
    assert isinstance(blocks[1], Code), "what to do next stands under it"


def test_nulls_are_shown_when_they_ran(tmp_path: Path, page: str) -> None:
    blocks = blocks_of(build(tmp_path, nulls=True), "headline")
    assert isinstance(blocks[0], Headline)
    assert (blocks[0].tone, blocks[0].text[:28]) == ("plain", "Train with this plan only if"), "never green beside damage"
    told = [block.text for block in blocks if isinstance(block, Paragraph)]
    assert any(text.startswith("Against its nulls, success in points: shuffled_levels +") for text in told)
    assert "nulls, in points" not in page
    assert '<h1 class="tone-plain">Train with this plan only if' in page


def test_the_parts_of_the_headline_are_the_effects(tmp_path: Path, page: str) -> None:
    run, words = build(tmp_path), page
    for effect in read_json(run.result, TrialResult).effects:
        if (effect.arm, effect.name) == ("steered", "success"):
            assert effect.swapped is not None
            assert effect.dependence is not None
            assert effect.difference.value == pytest.approx(effect.swapped.value + effect.dependence.value)
            for found in (effect.difference, effect.swapped, effect.dependence):
                assert f"{points(found.value)} {format_bounds(found.low, found.high)}" in words


def test_where_the_difference_lies(tmp_path: Path) -> None:
    run = build(tmp_path)
    blocks = blocks_of(run, "decomposition")
    (cells,) = (block for block in blocks if isinstance(block, Table))
    assert cells.caption.startswith("steered against frozen: ")
    rows = {row[0]: row for row in cells.rows}
    assert len(rows) == len(CELLS) + 4
    assert rows["products level 1"][-1] == "worsens"
    assert rows["gcd level 3"][-1] == "gives the commonest answer more often"
    old, new = (
        np.mean([greedy_of(run.branch(arm, seed) / "after.parquet", "products", 1.0) for seed in range(5)])
        for arm in ("frozen", "steered")
    )
    assert rows["products level 1"][2].startswith(f"{points(float(new - old))} [")
    assert [block.summary for block in blocks if isinstance(block, Fold)] == [
        f"steered against {name}: change in points, success greedy" for name in ("uniform", "equal_shares")
    ]


def greedy_of(path: Path, task: str, level: float) -> float:
    rows = [row for row in read_measurements(path) if row.example is not None and row.name == "greedy"]
    return float(np.mean([row.value for row in rows if (row.task, row.level) == (task, level)]))


def test_the_leading_arm_is_known_by_its_role_not_by_its_name(tmp_path: Path) -> None:
    result = read_json(build(tmp_path / "run", seeds=2).result, TrialResult)
    run = RunFolder(tmp_path / "roles")
    for arms, references, expected in (
        (("uniform", "permuted_easy", "steered"), ("uniform", "steered"), "permuted_easy"),
        (("steered", "other"), (), "steered"),
        (("frozen", "uniform"), ("frozen", "uniform"), "uniform"),
    ):
        effects = (dataclasses.replace(result.effects[0], arm="uniform", against="frozen"),)
        write_json(run.result, dataclasses.replace(result, arms=arms, references=references, nulls=(), effects=effects))
        assert headline_arm(run) == expected


def test_a_ratio_is_told_as_a_ratio(page: str) -> None:
    assert "0.45 [0.35, 0.59]" in page
    assert "rollouts to target, ratio" in page


def test_a_trial_of_another_form_is_refused(tmp_path: Path) -> None:
    run = RunFolder(tmp_path)
    run.result.parent.mkdir()
    run.result.write_text('{"arms": ["uniform"], "unproven": false}')
    with pytest.raises(InputError, match=r"result\.json: "):
        render(run)
