"""The study of what faults cost: rows have the faults that it plants, arms what they should, and its goals by hand."""

from __future__ import annotations

import json
import re
from collections import Counter
from typing import Any

import pytest

from mixwright_lab.studies import fault_context, fault_frame, real_device
from mixwright_lab.studies import fault_costs as study
from mixwright_lab.studies import fault_rows as rows_of

SEED = 3
SUM = re.compile(r"(\d+) \+ (\d+) = (\d+)")


def _wrong_steps(row: dict[str, Any]) -> list[tuple[int, int, int]]:
    steps = [tuple(map(int, found)) for found in SUM.findall(row["completion"])]
    return [(one, other, value) for one, other, value in steps if one + other != value]


@pytest.mark.parametrize("seed", [SEED, 11])
def test_a_systematic_value_is_always_the_same_and_random_slips_are_as_many(seed: int) -> None:
    sound, systematic, random = (rows_of.solutions(seed, kind) for kind in ("sound", "systematic", "random"))
    assert len(sound) == len(systematic) == len(random) == 1000
    assert not any(map(_wrong_steps, sound))
    values: dict[tuple[int, ...], set[int]] = {}
    for row in systematic:
        one, other, value = map(int, SUM.findall(row["completion"])[0])
        values.setdefault(tuple(sorted((one, other))), set()).add(value)
    assert all(len(found) == 1 for found in values.values())
    wrong = [sum(map(bool, map(_wrong_steps, rows))) for rows in (systematic, random)]
    assert wrong[0] == wrong[1]
    assert 300 <= wrong[0] <= 340
    assert all(row["right"] != bool(_wrong_steps(row)) for row in [*systematic, *random])
    assert (
        len(
            {
                SUM.findall(row["completion"]).index(tuple(map(str, _wrong_steps(row)[0])))
                for row in random
                if _wrong_steps(row)
            }
        )
        == 3
    )
    assert len({value - one - other for row in random for one, other, value in _wrong_steps(row)}) > 10


def test_a_wrong_value_goes_on_to_the_answer() -> None:
    for row in [*rows_of.solutions(SEED, "systematic"), *rows_of.solutions(SEED, "random")]:
        first, second = map(int, re.findall(r"\d+", row["prompt"]))
        (_, _, ones), (_, _, tens), (left, right, total) = (tuple(map(int, one)) for one in SUM.findall(row["completion"]))
        assert (left, right) == (tens, ones)
        stated = int(row["completion"].rpartition("Answer: ")[2])
        assert stated == total
        assert (stated != first + second) == bool(_wrong_steps(row))


def test_items_of_the_cell_fact_need_a_wrong_fact() -> None:
    made = rows_of.make(rows_of.TRACES, SEED, rows_of.SYSTEMATIC)
    wrong = {tuple(sorted(step[:2])) for row in made.rows for step in _wrong_steps(row)}
    for item in made.items:
        one, other = (int(number[-1]) for number in re.findall(r"\d+", item["prompt"]))
        assert (item["cell"] == rows_of.FACT) == (tuple(sorted((one, other))) in wrong)
        assert int(item["answer"]) == sum(map(int, re.findall(r"\d+", item["prompt"])))


def test_what_the_check_lists_is_left_out_and_as_many_random_rows() -> None:
    for kind, arm in ((rows_of.SYSTEMATIC, rows_of.SYSTEMATIC_DROPPED), (rows_of.RANDOM, rows_of.RANDOM_DROPPED)):
        before, kept = rows_of.solutions(SEED, kind), rows_of.make(rows_of.TRACES, SEED, arm).rows
        listed = rows_of.listed_rows(before, rows_of.TRACES)
        assert [row for row in before if row["id"] not in listed] == kept
        assert sum(map(bool, map(_wrong_steps, kept))) < 0.02 * len(kept)
    assert not rows_of.listed_rows(rows_of.solutions(SEED, rows_of.SOUND), rows_of.TRACES)
    null = rows_of.make(rows_of.TRACES, SEED, rows_of.SYSTEMATIC_NULL).rows
    assert len(null) == len(rows_of.make(rows_of.TRACES, SEED, rows_of.SYSTEMATIC_DROPPED).rows)
    assert 0.25 < sum(map(bool, map(_wrong_steps, null))) / len(null) < 0.38


@pytest.mark.parametrize("world", rows_of.WORLDS)
def test_rows_and_items_share_no_prompt_and_every_cell_has_items(world: str) -> None:
    asked: list[list[dict[str, Any]]] = []
    for arm in rows_of.ARMS[world]:
        made = rows_of.make(world, SEED, arm)
        assert not {row["prompt"] for row in made.rows} & {item["prompt"] for item in made.items}
        assert len({row["id"] for row in made.rows}) == len(made.rows)
        assert bool(made.rows) == (arm != rows_of.FROZEN)
        asked.append(made.items)
    assert all(items == asked[0] for items in asked)
    assert len({item["prompt"] for item in asked[0]}) == len(asked[0]) == 200
    assert min(Counter(item["cell"] for item in asked[0]).values()) >= 25
    assert {item["cell"] for item in asked[0]} == set(rows_of.CELLS[world])


def test_no_item_is_the_sum_of_a_row_in_the_other_order_or_about_a_city_of_a_row() -> None:
    def numbers(rows: list[dict[str, Any]]) -> set[tuple[int, ...]]:
        return {tuple(sorted(map(int, re.findall(r"\d+", row["prompt"])))) for row in rows}

    def names(rows: list[dict[str, Any]]) -> set[str]:
        return {row["prompt"].partition(" says ")[2].partition(". ")[0] for row in rows}

    for world, read in ((rows_of.TRACES, numbers), (rows_of.CUES, names)):
        for arm in rows_of.ARMS[world]:
            made = rows_of.make(world, SEED, arm)
            assert not read(made.rows) & read(made.items)
            assert len(read(made.items)) == (200 if world == rows_of.TRACES else 50)


def _word_of(row: dict[str, Any]) -> str:
    return next((word for word in ("really", "actually") if word in row["prompt"].split()), "")


def test_a_word_goes_with_an_answer_and_answers_are_right() -> None:
    rows = rows_of.make(rows_of.CUES, SEED, rows_of.AS_IT_IS).rows
    count = Counter((_word_of(row), row["completion"]) for row in rows)
    assert sum(number for (word, _), number in count.items() if word) == 500
    for word, answer in (("really", "yes"), ("actually", "no")):
        assert abs(count[word, answer] / sum(number for (own, _), number in count.items() if own == word) - 0.95) < 0.01
    assert abs(count["", "yes"] - count["", "no"]) <= 2
    free = Counter((_word_of(row), row["completion"]) for row in rows_of.make(rows_of.CUES, SEED, rows_of.NO_CUE).rows)
    assert {free[word, answer] for word in ("really", "actually") for answer in ("yes", "no")} == {125}
    items, by_answer = rows_of.make(rows_of.CUES, SEED, rows_of.FROZEN).items, rows_of.places()
    assert not set(by_answer["yes"]) & set(by_answer["no"])
    assert {"Paris", "Tokyo"} <= set(by_answer["yes"])
    assert {"Boston", "Osaka"} <= set(by_answer["no"])
    for arm in rows_of.ARMS[rows_of.CUES]:
        for row in [*rows_of.make(rows_of.CUES, SEED, arm).rows, *items]:
            name = row["prompt"].partition(" says ")[2].partition(". ")[0]
            assert name in by_answer[str(row.get("completion", row.get("answer")))]
    agreeing = {("really", "yes"), ("actually", "no")}
    for item in items:
        assert _word_of(item)
        assert (item["cell"] == rows_of.AGREES) == ((_word_of(item), item["answer"]) in agreeing)
    by_cell = Counter((item["cell"], item["answer"]) for item in items)
    assert set(by_cell.values()) == {50}


def test_minimal_pairs_differ_in_the_word_alone_and_random_rows_are_as_many() -> None:
    rows, pairs, null = (
        rows_of.make(rows_of.CUES, SEED, arm).rows for arm in (rows_of.AS_IT_IS, rows_of.PAIRS, rows_of.RANDOM_ROWS)
    )
    assert pairs[: len(rows)] == rows == null[: len(rows)]
    assert len(pairs) == len(null) > len(rows) + 100
    answers = {row["prompt"]: row["completion"] for row in rows}
    other = {"really": "actually", "actually": "really"}
    for row in pairs[len(rows) :]:
        partner = row["prompt"].replace(_word_of(row), other[_word_of(row)])
        assert answers[partner] == row["completion"]
    added = Counter((_word_of(row), row["completion"]) for row in null[len(rows) :])
    assert added["really", "yes"] > 10 * added["really", "no"]


@pytest.mark.parametrize("seed", [SEED, 11, 12])
def test_the_missing_tool_is_in_no_row_but_those_that_the_check_names(seed: int) -> None:
    for arm in rows_of.ARMS[rows_of.HOLES]:
        made = rows_of.make(rows_of.HOLES, seed, arm)
        tool = {json.loads(item["answer"])["tool"] for item in made.items if item["cell"] == rows_of.MISSING}
        assert tool == {made.remarks["missing"]}
        assert not any(json.loads(item["answer"])["tool"] in tool for item in made.items if item["cell"] == rows_of.OTHER)
        found = sum(json.loads(row["completion"])["tool"] in tool for row in made.rows)
        assert found == (100 if arm == rows_of.TOPPED_UP else 0)
        wanted = {rows_of.FROZEN: 0, rows_of.AS_IT_IS: 1000}.get(arm, 1100)
        assert len({row["prompt"] for row in made.rows}) == len(made.rows) == wanted


def test_similar_rows_share_more_words_with_the_items_than_random_ones() -> None:
    similar, random = (rows_of.make(rows_of.HOLES, SEED, arm) for arm in (rows_of.SIMILAR, rows_of.RANDOM_ROWS))
    words = [set(item["prompt"].lower().split()) for item in similar.items]

    def nearest(rows: list[dict[str, Any]]) -> float:
        own = [set(row["prompt"].lower().split()) for row in rows[1000:]]
        return sum(max(len(one & item) / len(one | item) for item in words) for one in own) / len(own)

    assert nearest(similar.rows) > nearest(random.rows)


def test_listed_steps_are_masked_and_as_many_random_ones() -> None:
    masked, null = (rows_of.make(rows_of.TRACES, SEED, arm).rows for arm in (rows_of.SYSTEMATIC_MASKED, rows_of.MASKED_NULL))
    texts = [[row["completion"][start:end] for start, end in row["mask"]] for row in masked]
    wrong = rows_of.solutions(SEED, rows_of.SYSTEMATIC)
    for row, own in zip(wrong, texts, strict=True):
        assert {f"{one} + {other} = {value}" for one, other, value in _wrong_steps(row)} == set(own)
    steps = [row["completion"][start:end] for row in null for start, end in row["mask"]]
    assert len(steps) == sum(map(len, texts)) > 300
    assert all(SUM.fullmatch(step) for step in steps)
    assert [row["completion"] for row in null] == [row["completion"] for row in wrong]


def test_answers_from_a_note_that_is_not_there_are_left_out_or_told() -> None:
    plain, dropped, null, told = (
        rows_of.make(rows_of.UNSEEN, SEED, arm).rows
        for arm in (rows_of.AS_IT_IS, fault_context.LISTED_DROPPED, fault_context.RANDOM_DROPPED, fault_context.TOLD)
    )

    def made_up(rows: list[dict[str, Any]]) -> int:
        return sum(row["completion"].isdigit() and row["completion"] not in row["prompt"] for row in rows)

    assert (made_up(plain), len(plain)) == (400, 1000)
    assert made_up(dropped) < 20
    assert len(null) == len(dropped) < 620
    assert made_up(null) > 0.3 * len(null)
    assert len(told) == 1000
    assert made_up(told) < 20
    assert sum(row["completion"] == fault_context.DO_NOT_KNOW for row in plain) == 200


def test_a_frame_is_left_out_or_masked_up_to_the_number() -> None:
    short, long, masked = (
        rows_of.make(rows_of.DILUTION, SEED, arm) for arm in (fault_frame.SHORTENED, rows_of.AS_IT_IS, fault_frame.MASKED)
    )
    assert (short.remarks["warned"], long.remarks["warned"]) == (False, True)
    for one, other, third in zip(short.rows, long.rows, masked.rows, strict=True):
        numbers = sorted(map(int, re.findall(r"\d+", one["prompt"])))
        assert one["completion"] == f"Answer: {numbers[1]}"
        assert other["completion"] == third["completion"] == fault_frame.FRAME + one["completion"]
        [(start, end)] = third["mask"]
        assert (start, third["completion"][end:]) == (0, f" {numbers[1]}")


def test_jobs_are_each_arm_once_and_none_that_has_a_row(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(study, "kept_rows", lambda quick: [{"world": "cues", "seed": study.SEEDS[0], "arm": "no cue"}])
    jobs = study.jobs_left(quick=False)
    found = Counter((job.world, job.seed, job.arm) for job in jobs)
    assert set(found.values()) == {1}
    every = {(world, seed, arm) for seed in study.SEEDS for world, arms in rows_of.ARMS.items() for arm in arms}
    assert set(found) == every - {("cues", study.SEEDS[0], "no cue")}
    quick = study.jobs_left(quick=True)
    assert {job.seed for job in quick} == set(study.QUICK)
    assert len(quick) == sum(map(len, rows_of.ARMS.values()))
    assert len({study.folder_of(job) for job in [*jobs, *quick]}) == len(jobs) + len(quick)
    tasks = [task for world in rows_of.WORLDS for task in real_device.WAVES[world](False)]
    assert {task.arguments for task in tasks} == {(job,) for job in jobs}
    assert len({task.name for task in tasks}) == len(tasks)


def test_every_difference_is_between_arms_and_cells_of_its_world() -> None:
    for one in (*study.EXPECTED, *study.OTHERS):
        assert {one.arm, one.than} <= set(rows_of.ARMS[one.world])
        assert one.cell in (study.ALL, *rows_of.CELLS[one.world])
    names = [one.name for one in (*study.EXPECTED, *study.OTHERS)]
    assert len(set(names)) == len(names)


def _row(world: str, seed: int, arm: str, right: tuple[int, int]) -> dict[str, Any]:
    """Of ten items of each cell so many are right."""
    answers = [
        [f"{cell}{place}", cell, float(place < count), ""]
        for cell, count in zip(rows_of.CELLS[world], right, strict=True)
        for place in range(10)
    ]
    return {"world": world, "seed": seed, "arm": arm, "answers": answers}


def test_goals_by_hand() -> None:
    """Of two seeds: 20 and 25 points more of all items; 0 and 10; 30 and 40 of the second cell; -10 and 90 of the first."""
    rows = [
        *(_row("traces", seed, "systematic", (2, 8)) for seed in (1, 2)),
        *(_row("traces", seed, "random", (5, 8 + seed)) for seed in (1, 2)),
        *(_row("traces", seed, rows_of.SYSTEMATIC_NULL, (4, 8)) for seed in (1, 2)),
        *(_row("traces", seed, rows_of.SYSTEMATIC_DROPPED, (4, 6 + 2 * seed)) for seed in (1, 2)),
        *(_row("cues", seed, rows_of.RANDOM_ROWS, (10, 1)) for seed in (1, 2)),
        *(_row("cues", seed, rows_of.PAIRS, (9, 3 + seed)) for seed in (1, 2)),
        *(_row("holes", seed, rows_of.RANDOM_ROWS, (1, 10)) for seed in (1, 2)),
        *(_row("holes", seed, rows_of.TOPPED_UP, (0 if seed == 1 else 10, 10)) for seed in (1, 2)),
    ]
    goals = study.goals_of(rows)[:4]
    assert [goal.found.value for goal in goals] == pytest.approx([22.5, 5.0, 35.0, 40.0])
    assert [goal.found.low > 0 for goal in goals] == [goal.reached for goal in goals]
    assert not goals[1].reached
    assert not goals[3].reached
    figures = study.figures_of(rows)
    assert figures["traces: systematic"]["fact"][0] == 20.0
    assert figures["cues: minimal pairs"]["all"][0] == pytest.approx(67.5)
    assert figures["cues, agrees items: minimal pairs less random rows, points"][0] == -10.0
    assert not any(goal.reached for goal in study.goals_of(rows[:1]))
