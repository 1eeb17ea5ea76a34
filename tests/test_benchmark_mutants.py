"""What `benchmarks.mutants` draws, leaves alone and asks, and how it counts; cosmic-ray's own part where it is installed."""

from __future__ import annotations

import pytest

from benchmarks import mutants
from benchmarks._mutations import Mutant, Spot, equivalent, excluded, made, sample, spots
from benchmarks.mutants import (
    EQUIVALENT,
    MODULES,
    NOT_ASKED,
    ROOT,
    LineTests,
    Runner,
    asked,
    judged,
    sources,
    sources_of_tests,
)

SOURCE = '''"""Says 1 + 1."""
Many = int | str


@frozen(order=True)
def limit(word, /, *, count: int | None = 3) -> int | None:
    """Not 2."""
    if count is None or count < 0.05:
        raise ValueError(count + 1)
    told = f"{count - 1:.2f}"
    return told, count * 1e-9, zip(told, told, strict=True)
'''


def test_every_module_named_exists_and_so_do_the_tests_left_out():
    found = sources()
    for name in MODULES:
        assert any(path.startswith(f"mixwright/{name.removesuffix('*')}") for path in found), name
    assert {
        "mixwright/steer/engine.py",
        "mixwright/steer/selectors/_states.py",
        "mixwright/verdict/claims.py",
    } <= found.keys()
    files = {path.name for path in (ROOT / "tests").glob("test_*.py")}
    for word in NOT_ASKED.pattern.partition("(")[2].rstrip(")").split("|"):
        assert any(name.startswith(f"test_{word}") for name in files), word
    assert {f"tests/{name}" for name in files} - {*asked()} == {f"tests/{name}" for name in files if NOT_ASKED.match(name)}
    assert asked({"mixwright/steer/task_order.py"}) == [
        name for name in asked() if "mixwright.steer.task_order" in (ROOT / name).read_text(encoding="utf-8")
    ]


def test_what_is_called_equivalent_has_a_reason_and_is_still_there():
    texts = sources()
    for (module, was, becomes), reason in equivalent(EQUIVALENT).items():
        assert was != becomes
        assert len(reason.split()) > 3, "a reason, not a word"
        assert was in " ".join(line.strip() for line in texts[module].splitlines()), f"{module}: {was}"


def test_annotations_messages_and_what_is_raised_are_left_alone():
    cut = [SOURCE.splitlines()[low[0] - 1][low[1] : high[1]] for low, high in excluded(SOURCE) if low[0] == high[0]]
    messages = {"raise ValueError(count + 1)", 'f"{count - 1:.2f}"'}
    assert {*cut} == {"Many = int | str", "frozen(order=True)", "int | None", "True"} | messages


def test_the_changes_of_a_module_by_hand():
    pytest.importorskip("cosmic_ray")
    found = [made(spot, SOURCE) for spot in spots("m.py", SOURCE)]
    condition = "if count is None or count < 0.05:"
    assert {(mutant.was, mutant.becomes) for mutant in found if mutant.was.startswith("if")} == {
        (condition, "if count is not None or count < 0.05:"),
        (condition, "if count is None and count < 0.05:"),
        (condition, "if count is None or count <= 0.05:"),
        (condition, "if count is None or count >= 0.05:"),
        (condition, "if count is None or count < 0.075:"),
        (condition, "if not count is None or count < 0.05:"),
    }
    others = {mutant.becomes for mutant in found if not mutant.was.startswith("if")}
    rest = ",zip(told,told,strict=True)"
    assert {word.replace(" ", "") for word in others} == {
        "deflimit(word,/,*,count:int|None=4)->int|None:",
        "deflimit(word,/,*,count:int|None=2)->int|None:",
        f"returntold,count/1e-9{rest}",
        f"returntold,count*1.000000001{rest}",
        f"returntold,count*-0.999999999{rest}",
    }


def spot(line: str, column: int = 0, operator: str = "A", number: int = 1) -> Spot:
    return Spot("m.py", number, column, line, operator, 0)


def test_the_sample_is_by_token_and_stays_when_other_lines_move():
    every = [spot(f"line {place}", column, operator) for place in range(40) for column in (0, 4) for operator in "AB"]
    drawn = sample(every, 20, seed=0)
    assert len({(one.was, one.column) for one in drawn}) == 20
    assert {one.operator for one in drawn} == {"A", "B"}
    moved = [Spot("m.py", one.line + 7, one.column, one.was, one.operator, 3) for one in every]
    assert [(one.was, one.column) for one in sample(moved, 20, seed=0)] == [(one.was, one.column) for one in drawn]
    kept = [one for one in every if one not in drawn[:1]]
    assert len({*sample(kept, 20, seed=0)} & {*drawn}) >= 18
    assert sample(every, 20, seed=1) != drawn


@pytest.fixture
def tests(monkeypatch) -> LineTests:
    """Three files: a and b run line 1, the fixture of a whole file included; c runs line 2 and imports the module."""
    found = LineTests.__new__(LineTests)
    found.seconds = {"a::1": 5.0, "a::2": 4.0, "b::1": 1.0, "c::1": 9.0, "c::2": 2.0}
    found.lines = {("m/n.py", 1): {"a::file", "b::1"}, ("m/n.py", 2): {"c::1", "c::2"}}
    monkeypatch.setattr(found, "_texts", {"a": "", "b": "from m.no import x", "c": "from m.n import x"}, raising=False)
    return found


def test_the_tests_of_a_line_are_its_own_first_then_the_quickest(tests, monkeypatch):
    assert tests.of("m/n.py", 1) == ["b::1", "a::2", "a::1"]
    assert tests.of("m/n.py", 2) == ["c::2", "c::1"]
    assert tests.of("m/n.py", 3) == ["c::2", "c::1", "b::1"], "run at import: whoever runs the module, 15 seconds of it"
    monkeypatch.setattr(mutants, "FILES", 1)
    assert tests.of("m/n.py", 3) == ["c::2", "c::1"]
    assert tests.of("m/other.py", 1) == []


ONE, TWO = "def test_1():\n    assert f(1)\n", "@mark\ndef test_2(x):\n    assert f(x)\n"


def test_an_outcome_holds_while_the_tests_that_it_rests_on_are_the_same(tests, monkeypatch, tmp_path):
    """Noticed: the test that failed; survived: all that are asked of the line, so that a new one is asked, too."""

    def runner(*texts: str) -> Runner:
        monkeypatch.setattr(tests, "_sources", {"tests/a.py": sources_of_tests("".join(texts))}, raising=False)
        monkeypatch.setattr(tests, "of", lambda *_: [f"tests/a.py::{name}" for name in sources_of_tests("".join(texts))])
        made = Runner([], tests, tmp_path / "rows.jsonl")
        made._known = known
        return made

    assert list(sources_of_tests(ONE + TWO).values()) == [ONE.rstrip(), TWO.rstrip()]
    noticed, missed = (Mutant("m/n.py", 1, "A", 1, "x", becomes) for becomes in "yz")
    known: dict = {}
    now = runner(ONE)
    because = "FAILED tests/a.py::test_1[a b] - assert 1"
    known[noticed.key] = {"because": because, "source": tests.source(["tests/a.py::test_1[a b]"])}
    known[missed.key] = {"because": "", "source": tests.source(["tests/a.py::test_1"])}
    assert [now._holds(mutant) for mutant in (noticed, missed)] == [True, True]
    assert [runner(ONE, TWO)._holds(mutant) for mutant in (noticed, missed)] == [True, False]
    assert [runner(ONE.replace("1)", "2)"))._holds(mutant) for mutant in (noticed, missed)] == [False, False]
    assert not now._holds(Mutant("m/n.py", 1, "A", 1, "other", "y"))


def row(outcome: str, because: str = "", equivalent: str = "") -> dict[str, str]:
    return {"outcome": outcome, "because": because, "equivalent": equivalent}


def test_the_share_leaves_out_what_is_equivalent():
    rows = [
        *(row("killed", f"FAILED tests/test_a.py::test_{n} - AssertionError: no") for n in range(7)),
        row("killed", "FAILED tests/test_a.py::test_8 - TypeError: no"),
        row("timeout"),
        row("survived"),
        row("survived", equivalent="it is the same number"),
    ]
    result = judged(rows)
    assert (result.value.value, result.value.n) == (0.9, 10)
    assert result.figures["of them by an error, not an assertion"] == 1
    assert [goal.reached for goal in result.goals] == [True]
    with pytest.raises(ValueError, match="called equivalent, but noticed"):
        judged([row("killed", equivalent="wrong")])
