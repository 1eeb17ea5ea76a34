"""README.md and docs/real.md quote the committed results of the real studies."""

import pytest
from project_files import ROOT

from mixwright.errors import InputError
from mixwright_lab.studies import demo_seeds, real_page, real_sft


@pytest.mark.parametrize("name", ["README.md", "docs/real.md"])
def test_the_tables_are_those_of_the_results(name: str) -> None:
    page = (ROOT / name).read_text(encoding="utf-8")
    assert real_page.written(page) == page


def test_a_page_without_the_marks_is_refused() -> None:
    with pytest.raises(InputError, match="nothing was written"):
        real_page.written("# A page\n")


def test_a_figure_by_hand() -> None:
    assert real_page.points({"value": 1.05, "low": -0.1, "high": 2.2}, "+") == "+1.1 [-0.1, 2.2]"
    assert real_page.points(None) == "-"


def test_a_tenth_and_a_quarter_are_compared_on_the_same_twenty_seeds() -> None:
    """By another way: the means over seeds of each model, subtracted, with the demo's answers counted at once."""
    found = real_page.tenth_less_quarter()
    assert [len(seeds) for seeds in found.values()] == [5, 5, 10, 20]
    tasks = demo_seeds.PROTECTED
    demos = [row for row in demo_seeds.merged(demo_seeds.kept_rows()) if row["seed"] in demo_seeds.SEEDS]
    right = {
        model: sum(answer[5] for row in demos for answer in row["answers"] if answer[0] == model and answer[1] in tasks)
        for model in (demo_seeds.TENTH, demo_seeds.PLANNED)
    }
    asked = len(demos) * len(tasks) * demo_seeds.ITEMS_PER_TASK
    difference = 100 * (right[demo_seeds.TENTH] - right[demo_seeds.PLANNED]) / asked
    assert sum(seed[1] for seed in found["the demo"]) / 10 == pytest.approx(difference)
    figures = [real_page.figures("real_sft"), real_page.figures("real_skill_sft")]
    new_task = [
        one["a tenth of own answers"][real_sft.NEW]["value"] - one[real_page.OWN][real_sft.NEW]["value"] for one in figures
    ]
    assert sum(seed[0] for seed in found["all of them"][:10]) / 5 == pytest.approx(sum(new_task), abs=0.03)


def test_what_was_right_before_and_is_lost() -> None:
    shown = real_page.kept_of_old_tasks()
    assert {taught: round(one["lost with own answers"]["value"]) for taught, one in shown.items()} == {
        "tool calls": 15,
        "a skill": 18,
        "tool calls, all weights": 27,
    }
    joined = shown["tool calls"]["joined files minus before"]
    assert (joined["low"], joined["high"]) == pytest.approx((-4.77, -0.93), abs=0.01)
