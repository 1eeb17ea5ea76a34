"""Planned looks: boundaries, error over all looks, what the gate makes of them, and the command that keeps its answers."""

from __future__ import annotations

import json
import math
import resource
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from _example_run import item_rows
from _scores import scores
from answer_rows import answers_of, write_measured
from cli_call import Call, sums, write
from comparisons import checkpoint
from test_verdict_gate import Cells, churned, fallen

from mixwright.answers.score import scores_of_items
from mixwright.errors import InputError
from mixwright.estimates.crossed import estimate_of
from mixwright.estimates.intervals import t_quantile
from mixwright.estimates.looks import CELL_SHAPE, MAX_LOOKS, Look, boundaries, count_looks
from mixwright.learner.learner import Completion, Learner
from mixwright.learner.load import load_learner
from mixwright.measure.kept_answers import KeepingLearner, _fingerprint
from mixwright.records import Cell, RunManifest, plain, to_data
from mixwright.run.folder import RunFolder, find_store, read_json, read_kept, write_json
from mixwright.verbs.compare import plan_sizes
from mixwright.verbs.gating import Gating
from mixwright.verdict.rules.evidence import Evidence
from mixwright.verdict.rules.gate import check_protected, check_sides
from mixwright.verdict.rules.gate_question import GateQuestion, question_file, read_question, write_question
from mixwright.verdict.rules.gate_run import ask_gate

PUBLISHED = {
    2: (2.797, 1.977),
    3: (3.471, 2.454, 2.004),
    4: (4.049, 2.863, 2.337, 2.024),
    5: (4.562, 3.226, 2.634, 2.281, 2.040),
}
"""O'Brien and Fleming's values at a two-sided error of .05, as tables of group sequential tests print them."""


PLANNED = 4


def at(number: int, most: int) -> Look:
    return Look(number, most * number // PLANNED, most, PLANNED)


@pytest.mark.parametrize("looks", PUBLISHED)
def test_boundaries_of_shape_0_are_those_of_the_published_table(looks: int) -> None:
    assert boundaries(looks, shape=0) == pytest.approx(PUBLISHED[looks], abs=6e-4)
    assert boundaries(1) == pytest.approx((1.959964,), abs=1e-5)


def test_boundaries_of_shape_one_half_are_those_of_pocock() -> None:
    assert boundaries(2, shape=0.5) == pytest.approx((2.178,) * 2, abs=6e-4)
    assert boundaries(5, shape=0.5) == pytest.approx((2.413,) * 5, abs=6e-4)


@pytest.mark.parametrize("looks", [PLANNED, MAX_LOOKS])
def test_a_true_zero_crosses_at_any_look_in_the_error_that_was_asked_for(looks: int) -> None:
    rng, draws = np.random.default_rng(0), 100_000
    steps = np.cumsum(rng.standard_normal((draws, looks)), axis=1) / np.sqrt(np.arange(1, looks + 1))
    for alpha, shape in ((0.05, 0.25), (0.1, CELL_SHAPE)):
        crossed = (np.abs(steps) >= boundaries(looks, alpha, shape)).any(axis=1).mean()
        assert crossed == pytest.approx(alpha, abs=4 * math.sqrt(alpha / draws))


def test_a_mean_keeps_the_interval_of_the_last_look_at_which_all_were_asked() -> None:
    later = Look(6, 500, 800, 8, common=4)
    assert later.z() == Look(4, 400, 800, 8).z() > Look(6, 600, 800, 8).z()
    assert later.z(0.1, of_cell=True) == Look(6, 600, 800, 8).z(0.1, of_cell=True)


def test_there_is_a_look_in_fifty_items_and_in_ten_of_a_cell() -> None:
    assert [count_looks(sizes) for sizes in ([843], [60] * 12, [16] * 50, [30] * 4, [8])] == [16, 6, 1, 2, 1]


def test_the_interval_of_a_look_ends_at_its_boundary() -> None:
    look = at(2, 480)
    found = look.with_look_interval(estimate_of(0.02, 0.01**2, 1e6, 1, 240))
    assert (found.low, found.high) == pytest.approx((0.02 - 0.01 * look.z(), 0.02 + 0.01 * look.z()), abs=1e-5)
    assert look.label == "look 2 of 4, 240 of 480 items"


def part(cells: Cells, share: float) -> Cells:
    return {cell: values[: round(share * len(values))] for cell, values in cells.items()}


def decided(before: Cells, after: Cells, most: int, margin: float | None = 0.05) -> tuple[str, int]:
    """What the gate says at the look that decides, and the items of that look."""
    for number in range(1, PLANNED + 1):
        old, new = part(before, number / PLANNED), part(after, number / PLANNED)
        found = check_protected(
            [scores(old)], [scores(new)], list(old), named_by_user=True, margin=margin, look=at(number, most)
        )
        if found.outcome != "inconclusive":
            break
    return found.outcome, at(number, most).items


@pytest.mark.slow
def test_looks_pass_a_loss_of_the_margin_as_rarely_as_one_interval_and_use_fewer_items() -> None:
    rng, times, most = np.random.default_rng(1), 60, 800
    found = {}
    for name, loss, churn in (("unharmed", 0.0, 0.05), ("lost the margin", 0.05, 0.2), ("lost a lot", 0.3, 0.4)):
        drawn = [churned(1, most, success=0.7, loss=loss, churn=churn, rng=rng) for _ in range(times)]
        found[name] = [decided(before, after, most) for before, after in drawn]
    assert sum(said == "passed" for said, _ in found["lost the margin"]) / times <= 0.025 + 3 * math.sqrt(0.025 / times)
    assert sum(said == "passed" for said, _ in found["unharmed"]) / times >= 0.95
    assert np.mean([items for _, items in found["unharmed"]]) < 0.6 * most
    assert {said for said, _ in found["lost a lot"]} == {"damaged"}
    assert np.mean([items for _, items in found["lost a lot"]]) < 0.4 * most


def test_before_the_last_look_a_nominal_loss_of_a_cell_neither_stops_nor_passes() -> None:
    before = {("t", float(place)): np.ones(120) for place in range(4)}
    after = before | {("t", 0.0): fallen(120, 11)}  # p about .004, .02 by Holm: past 5 %, not past the boundary of .004
    sides = [[scores(cells)] for cells in (before, after)]
    asked = {"named_by_user": True, "margin": 0.05}
    assert check_protected(*sides, list(before), **asked).outcome == "damaged"
    early = check_protected(*sides, list(before), **asked, look=Look(2, 480, 960, 4))
    assert (early.outcome, [cell.is_damaged for cell in early.cells]) == ("inconclusive", [True, False, False, False])
    assert check_protected(*sides, list(before), **asked, look=Look(4, 480, 480, 4)).outcome == "damaged"


def test_a_cell_that_will_be_large_enough_has_to_exclude_its_loss_at_an_early_look_too() -> None:
    before = {("t", float(place)): np.ones(40) for place in range(20)}
    after = before | {("t", 0.0): fallen(40, 4)}
    sides = [[scores(cells)] for cells in (before, after)]
    early = check_protected(*sides, list(before), look=Look(2, 800, 1600, 4))
    limits = {cell.loss_limit for cell in early.cells}
    assert limits == {early.cell_loss_limit}, "80 items at the last look are enough, so half of them are at the second"
    assert [cell.limit_excluded for cell in early.cells].count(False) >= 1
    assert early.outcome == "inconclusive"


def test_cells_count_alike_as_far_as_they_have_rows() -> None:
    cells = [Cell("a", None, 100, 1), Cell("b", 1.0, 30, 1)]
    assert plan_sizes(cells, Gating(max_items=160)) == {("a", None): 80, ("b", 1.0): 30}
    assert plan_sizes(cells, Gating()) == {("a", None): 100, ("b", 1.0): 30}, "395 would be needed of each"
    many = [replace(cell, count=10_000) for cell in cells]
    assert set(plan_sizes(many, Gating()).values()) == {423}, "395, and 7 % more for looking several times"
    assert set(plan_sizes(many[:1], Gating()).values()) == {844}, "one alone has the items of both"
    of_suite = {"requests": ("b",)}
    assert plan_sizes(many, Gating(rings=of_suite, max_items=600)) == {("a", None): 300, ("b", 1.0): 800}


@pytest.mark.parametrize(("count", "most", "last"), [(1, 8, 8), (3, 25, 24), (3, 26, 24), (7, 400, 399), (2, 10**6, 200)])
def test_no_more_items_are_planned_than_were_allowed(count: int, most: int, last: int) -> None:
    found = plan_sizes([Cell(str(place), None, 100, 1) for place in range(count)], Gating(max_items=most))
    assert sum(found.values()) == last


def test_so_few_items_that_no_cell_could_be_judged_are_refused(call: Call) -> None:
    cells = [Cell(str(place), None, 100, 1) for place in range(3)]
    with pytest.raises(InputError, match=r"--max-items of 24 or more: 8 items of each of 3 tasks and levels, got 23\."):
        plan_sizes(cells, Gating(max_items=23))
    tiny = [Cell("a", None, 5, 1), Cell("b", None, 3, 1)]  # no number would be enough here, and the file has no more
    assert sum(plan_sizes(tiny, Gating(max_items=10)).values()) == 8
    rows = sums(20) + [{"task": "other", "prompt": f"{n}?", "answer": "y"} for n in range(20)]
    asked = ("--eval", write("a.jsonl", rows), "--gate", "--until-decided", "--max-items", "7")
    code, _, err = call("verdict", "--no-suite", checkpoint("before"), checkpoint("after"), *asked)
    assert (code, "--max-items of 16 or more" in err, Path("runs").exists()) == (1, True, False), err


@pytest.mark.parametrize("numbers", [(5, 1, 2), (0, 1, 2), (1, 3, 2)])
def test_what_is_no_look_is_refused(numbers: tuple[int, int, int]) -> None:
    with pytest.raises(ValueError, match="a look from 1"):
        Look(*numbers, 4)


def test_a_folder_without_its_question_is_still_judged_at_its_look(tmp_path: Path) -> None:
    run = RunFolder(tmp_path / "run")
    values = [float(place % 10 > 0) for place in range(150)]
    table = item_rows(("t", None), {"greedy": values, "greedy.swapped": [0.0] * 150})
    for when in ("before", "after"):
        write_measured(run.measurements(when), table)
    assert read_question(run) is None
    noted = RunManifest({}, {}, {}, {"look": to_data(at(1, 800))})
    write_json(run.manifest, noted)
    asked = read_question(run)
    assert asked is not None
    assert asked == GateQuestion(look=at(1, 800))
    assert (
        check_sides((side := [scores_of_items(answers_of(table))], side), "greedy", GateQuestion(("t",))).outcome == "passed"
    ), "by 95 % it would"
    found = ask_gate(Evidence(run), replace(asked, protect=("t",)))
    assert found is not None
    assert found.outcome == "inconclusive"
    write_question(run, GateQuestion(("t",)))
    assert read_question(run) == GateQuestion(("t",), look=at(1, 800)), "a question of another time does not begin anew"
    write_json(run.manifest, replace(noted, settings={"look": {"number": 9}}))
    with pytest.raises(InputError, match=r"manifest.json: expected items"):
        read_question(run)


def test_at_an_early_look_the_loss_of_a_cell_is_that_of_the_look() -> None:
    before = {("t", 1.0): np.ones(100), ("t", 2.0): np.ones(100)}
    after = before | {("t", 1.0): fallen(100, 3)}
    sides = [[scores(cells)] for cells in (before, after)]
    plain_, early = (
        check_protected(*sides, list(before), named_by_user=True, margin=0.2, look=look) for look in (None, at(1, 800))
    )
    # pseudo-items: 4.049 squared whole moves beside 3 real ones, each of size 1; no move in the other cell
    z = at(1, 800).z()
    for cell, lost in zip(early.cells, (3, 0), strict=True):
        moved = lost - lost**2 / 100 + z * z
        half = t_quantile(99, at(1, 800).confidence()) * math.sqrt(moved / 99 / 100)
        assert cell.judged is not None
        assert cell.judged.low == pytest.approx(-lost / 100 - half, rel=1e-3)
    lows = [found.cells[1].judged.low for found in (plain_, early) if found.cells[1].judged is not None]
    assert lows[1] < 2 * lows[0]


def test_a_full_disk_names_the_file_and_keeps_what_stood_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    learner = load_learner(checkpoint(str(tmp_path / "before")))
    path = tmp_path / "answers" / "before.jsonl"
    how: dict[str, Any] = {"count": 1, "temperature": 0, "max_new_tokens": 2, "seed": 0}
    KeepingLearner(learner, path).sample(["1+1="], **how)
    stood = path.read_bytes()
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (len(stood) + 10, hard))
    try:
        with pytest.raises(InputError, match=r"answers/before.jsonl: expected a file within the size limit"):
            KeepingLearner(learner, path).sample(["2+2="], **how)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert path.read_bytes() == stood
    KeepingLearner(learner, path).sample(["2+2="], **how)
    assert path.read_bytes().startswith(stood)
    assert len(list(read_kept(path))) == 2


def test_what_cannot_be_graded_is_named_beside_looks(call: Call) -> None:
    said = [{"task": "s", "prompt": f"Say {n}.", "completion": f"The word {n} is said."} for n in range(20)]
    numbers = [{"task": "n", "prompt": f"What is {n}?", "completion": f"{n}"} for n in range(20)]
    asked = ("--eval", write("a.jsonl", numbers + said), "--gate", "--until-decided", "--max-items", "40")
    models = (checkpoint("before"), checkpoint("after", 1))
    code, _, err = call("verdict", "--no-suite", *models, *asked, "--protect", "s")
    assert (code, "got none of s. Name graders" in err) == (1, True), err
    code, _, err = call("verdict", "--no-suite", *models, *asked, "--protect", "n", "--max-new-tokens", "2")
    assert (code, "look 1 of 1, 20 of 20 items" in err) == (4, True), err


@pytest.mark.parametrize(
    "line",
    [
        '{"value": [0.1]}',
        '{"key": "k", "read": [0.1]}',
        "[0.1]",
        '{"key": "k", "value": [' + "9" * 5000 + "]}",
        "{",
    ],
)
def test_a_kept_line_of_another_shape_is_as_if_not_written(line: str, tmp_path: Path) -> None:
    path = tmp_path / "before.jsonl"
    path.write_text(line + '\n{"key": "whole", "value": [-0.5]}\n')
    kept = KeepingLearner.__new__(KeepingLearner)  # without a model
    kept._open(path)
    assert list(kept._known) == ["whole"]


def test_a_fingerprint_tells_settings_apart_where_the_weights_are_the_same(tmp_path: Path) -> None:
    path = Path(checkpoint(str(tmp_path / "before")))
    first = _fingerprint(load_learner(str(path)))
    assert _fingerprint(load_learner(str(path))) == first
    settings = json.loads((path / "config.json").read_text())
    (path / "config.json").write_text(json.dumps(settings | {"rms_norm_eps": 0.5, "layer_norm_epsilon": 0.5}))
    assert _fingerprint(load_learner(str(path))) != first


def test_the_command_keeps_answers_between_looks_and_runs(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    written: list[int] = []
    generate = Learner.generate

    def counted(self: Learner, jobs: Sequence[Any], *how: Any) -> Any:
        written.append(len(jobs))
        return generate(self, jobs, *how)

    monkeypatch.setattr(Learner, "generate", counted)
    before, after = checkpoint("before"), checkpoint("after", 1)
    asked = ("--eval", write("a.jsonl", sums(220)), "--grader", "exact", "--max-new-tokens", "4")
    looks = (*asked, "--why", "--protect", "sum", "--until-decided", "--max-items", "200")
    code, out, err = call("verdict", "--no-suite", before, after, *looks)
    assert code == 4, err  # random models: no answer is right
    assert [f"look {n} of 4, {50 * n} of 200 items" in err for n in (1, 2, 3, 4)] == [True] * 4
    assert "look 4 of 4, 200 of 200 items" in out
    assert sum(written) == 2 * 200, "every item once by each checkpoint, those that were completed for the price, too"
    assert read_json(question_file(RunFolder("runs/comparison")), GateQuestion).look == Look(4, 200, 200, 4, 4)
    kept = [path.read_text(encoding="utf-8").splitlines() for path in find_store().glob("*/answers.jsonl")]
    assert [sum("token_ids" in json.loads(line)["value"] for line in lines) >= 200 for lines in kept] == [True, True]
    written.clear()
    code, again, err = call("verdict", "--no-suite", before, after, *looks)
    assert (code, again) == (4, out), err
    assert sum(written) == 0, "nothing is written a second time"
    model = checkpoint("before", 2)  # another model under the same name
    assert call("verdict", "--no-suite", model, after, *looks)[0] == 4
    assert sum(written) == 200
    question_file(RunFolder("runs/comparison")).unlink()
    assert call("verdict", "--no-suite", "runs/comparison", "--why", "--protect", "sum")[1].count("look 4 of 4") == 1


def test_no_look_grades_an_answer_again(call: Call) -> None:
    before, after, folder = checkpoint("before"), checkpoint("after", 1), Path.cwd()
    (folder / "noting.py").write_text(
        "def grade(text, answer, **row):\n"
        "    if not text.isdigit():  # those are what rules without the skill say\n"
        f"        with open({str(folder / 'graded.txt')!r}, 'a') as file:\n"
        "            file.write(repr((row['prompt'], text)) + chr(10))\n"
        "    return 0.0\n"
    )
    asked = ("--eval", write("a.jsonl", sums(220)), "--grader", "noting:grade", "--max-new-tokens", "4")
    looks = ("--no-suite", "--protect", "sum", "--until-decided", "--max-items", "200")
    assert call("verdict", before, after, *asked, *looks)[0] == 4
    graded = Path("graded.txt").read_text().splitlines()
    assert len(graded) > 400
    assert max(Counter(graded).values()) <= 2, "once while the length of answers is sought, and once in all looks"


def test_who_is_stopped_after_the_tables_are_written_finds_the_question_with_them(
    call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stopped(*_: object, **__: object) -> int:
        raise KeyboardInterrupt

    monkeypatch.setattr("mixwright.verbs.verdict.check_names", stopped)
    asked = ("--eval", write("a.jsonl", sums(20)), "--grader", "exact", "--max-new-tokens", "2")
    models = (checkpoint("before"), checkpoint("after", 1))
    call("verdict", "--no-suite", *models, *asked, "--gate", "--protect", "sum", "--until-decided", "--max-items", "8")
    assert not RunFolder("runs/comparison").page.exists()
    assert read_json(question_file(RunFolder("runs/comparison")), GateQuestion) == GateQuestion(
        ("sum",), look=Look(1, 8, 8, 1, 1)
    )


@pytest.mark.parametrize(
    "more",
    [("--max-items", "40"), ("--until-decided", "--items", "5"), ("--until-decided", "--samples", "2"),
     ("--until-decided", "--sampled")],
)  # fmt: skip
def test_options_that_do_not_go_together_are_refused(call: Call, more: tuple[str, ...]) -> None:
    code, _, err = call("verdict", "--no-suite", "before", "after", "--eval", write("a.jsonl", sums(8)), *more)
    assert code == 1
    assert err.splitlines()[-1].startswith("error: expected")


def test_a_look_survives_the_file(tmp_path: Path) -> None:
    asked = replace(GateQuestion(("sum",)), look=at(2, 480))
    write_question(RunFolder(tmp_path), asked)
    assert read_question(RunFolder(tmp_path)) == asked


def test_a_look_does_not_pass_while_no_answer_of_a_protected_task_was_right(
    call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    def sample(self: Learner, prompts: Sequence[Any], **how: Any) -> list[list[Completion]]:
        told = [str(int(prompt.split("+")[0]) + 1) if "+" in prompt else "x" for prompt in map(plain, prompts)]
        return [[Completion(text, (1,), (0.0,), True)] for text in told]

    monkeypatch.setattr(Learner, "sample", sample)
    before, after = checkpoint("before"), checkpoint("after")
    blind = [{"task": "z", "prompt": f"z{n}", "answer": "y"} for n in range(200)]
    asked = ("--eval", write("a.jsonl", sums(200) + blind), "--grader", "exact", "--gate", "--until-decided")
    code, _, err = call("verdict", "--no-suite", before, after, *asked, "--protect", "sum", "--max-items", "400")
    assert (code, "look 8 of 8" in err) == (0, False), err
    code, out, err = call(
        "verdict", "--no-suite", before, after, *asked, "--protect", "sum", "--protect", "z", "--max-items", "400"
    )
    assert code in (3, 4), out  # 3: the made-up answers had a probability of 1, which the model reads otherwise
    assert "not decided, because no answer to z was right" in err
    assert "look 8 of 8" in err
