"""contributing/evidence/real.md quotes the committed results of the real studies."""

import pytest

from mixwright.errors import InputError
from mixwright_lab.studies import real_page


def test_the_tables_are_those_of_the_results() -> None:
    page = real_page.PAGE.read_text(encoding="utf-8")
    assert real_page.written(page) == page


def test_a_page_without_the_marks_is_refused() -> None:
    with pytest.raises(InputError, match="nothing was written"):
        real_page.written("# A page\n")


def test_a_figure_by_hand() -> None:
    assert real_page.points({"value": 1.05, "low": -0.1, "high": 2.2}, "+") == "+1.1 [-0.1, 2.2]"
    assert real_page.points(None) == "-"


def test_what_was_right_before_and_is_lost() -> None:
    shown = real_page.kept_of_old_tasks()
    assert {taught: round(one["lost with own answers"]["value"]) for taught, one in shown.items()} == {
        "tool calls": 15,
        "a skill": 18,
        "tool calls, all weights": 27,
    }
    joined = shown["tool calls"]["joined files minus before"]
    assert (joined["low"], joined["high"]) == pytest.approx((-4.77, -0.93), abs=0.01)
