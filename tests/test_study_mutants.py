"""What `mutants` draws, leaves alone and asks, and how it counts; cosmic-ray's own part where it is installed."""

from __future__ import annotations

import pytest
import yaml

from mixwright_lab.studies.mutants import EQUIVALENT, MODULES, NOT_ASKED, ROOT, asked_of, judged, sample, sources, spots

SOURCE = '''"""Says 1 + 1."""


@frozen(order=True)
def limit(word, count: int | None = None) -> int | None:
    if count is None or count < 5:
        raise ValueError(count + 1)
    return f"{count - 1}", -count
'''


def test_every_module_named_exists_and_so_do_the_tests_left_out() -> None:
    found = sources()
    for name in MODULES:
        assert any(path.startswith(f"mixwright/{name.removesuffix('*')}") for path in found), name
    files = {path.name for path in (ROOT / "tests").glob("test_*.py")}
    for word in NOT_ASKED.pattern.partition("(")[2].rstrip(")").split("|"):
        assert any(name.startswith(f"test_{word}") for name in files), word
    for module in found:
        asked = asked_of(module)
        assert asked, module
        assert not [name for name in asked if NOT_ASKED.match(name.removeprefix("tests/"))]
    assert "tests/test_dependence.py" in asked_of("mixwright/estimates/dependence.py")


def test_what_is_called_equivalent_has_a_reason_and_is_still_there() -> None:
    texts = sources()
    for row in yaml.safe_load(EQUIVALENT.read_text(encoding="utf-8")):
        assert row["was"] != row["becomes"]
        assert len(row["reason"].split()) > 3, "a reason, not a word"
        assert row["was"] in " ".join(line.strip() for line in texts[row["module"]].splitlines()), row


def test_annotations_messages_and_what_is_raised_are_left_alone() -> None:
    pytest.importorskip("cosmic_ray")
    found = list(spots("m.py", SOURCE))
    assert {line for line, _, _ in found} == {"if count is None or count < 5:"}
    drawn = sample(found, 2, 0)
    assert drawn == sample(reversed(found), 2, 0), "whatever their order"
    assert len({change.start_pos for change in drawn}) == 2, "one change of a token"


def row(outcome: str, was: str = "a", **more: str) -> dict[str, str]:
    return {"module": "m.py", "was": was, "becomes": "b", "outcome": outcome, "because": ""} | more


def test_the_share_is_of_those_that_are_not_equivalent() -> None:
    rows = [row("killed")] * 18 + [row("survived")] * 2 + [row("survived", "c")]
    found = judged(rows, [row("", "c", reason="no test can tell it")])
    assert found.value.value == 0.9
    assert found.figures == {"mutants": 21, "equivalent": 1, "survived": 2}
    assert found.goals[0].reached
    assert not judged([*rows, row("survived")], []).goals[0].reached


@pytest.mark.parametrize("outcome", ["killed", "incompetent"])
def test_one_that_is_called_equivalent_but_noticed_and_one_that_did_not_run_are_errors(outcome: str) -> None:
    with pytest.raises(ValueError, match="called equivalent, but noticed; or not run"):
        judged([row(outcome, "c")], [row("", "c", reason="no test can tell it")])
