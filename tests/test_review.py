"""The five questions and the 28 findings: what each state takes, by hand; what is not in the files is never claimed."""

from __future__ import annotations

import json
import random
import shlex
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from cli_call import Call, load_commands, sums, write
from project_files import ROOT
from verdicts import change, damaged, passed

from mixwright.records import (
    BehaviourChange,
    CellAssessment,
    FormChange,
    FormTaken,
    Interval,
    Observation,
    PartChange,
    Plan,
    Pull,
    Stage,
    TaskWord,
    Taught,
    Teaching,
    Verdict,
)
from mixwright.run.folder import write_json, write_plan
from mixwright.verbs.report import MAX_LINES
from mixwright.verdict.page.text import MINUS_SIGN as MINUS
from mixwright.verdict.review import FindingRow, answer_questions
from mixwright.verdict.rules.behaviours import ANY_RIGHT
from mixwright.verdict.rules.findings import FINDINGS, NEEDS, RunParts
from mixwright.verdict.stage import to_json_ready

HOSTILE = "t\x1b[31m\r\n\u202e{task}"
QUESTIONS = tuple(FINDINGS)
COMPETES, HARD, LOPSIDED, COVERED, TEACH = QUESTIONS


def seen(
    check: str, severity: str = "warning", count: int = 3, total: int = 9, task: str | None = "sums", **more: Any
) -> Observation:
    """Make a finding of a check."""
    return Observation(check, task, severity, count, total, f"{count} of {total}.", "Mend it.", **more)  # type: ignore[arg-type]


def interval(value: float, half: float = 0.05) -> Interval:
    return Interval(value, value - half, value + half, 40)


def pull(trained_on: str, read_on: str, value: float, half: float = 0.04, *, shown: bool = False) -> Pull:
    return Pull(trained_on, read_on, interval(value, half), shown)


def taught(group: str, word: str, gain: float) -> Taught:
    own, facts = interval(gain, 0.1), interval(2 * gain, 0.1)
    return Taught(group, word, 96, 40, 2, 0.3, own, own, facts, facts)  # type: ignore[arg-type]


def behaves(name: str, before: float, after: float, half: float = 0.05, *, shown: bool = False) -> BehaviourChange:
    return BehaviourChange("sums", name, before, after, interval(after - before, half), 0.001, shown)


def form(feature: str, after: int, *, reported: bool = False, task: str = "sums") -> FormChange:
    return FormChange(task, feature, 0, after, 30, 0.5, 0.5, reported)  # type: ignore[arg-type]


def judged(**more: Any) -> Verdict:
    """Make a verdict in which every task was kept, and nothing else is known."""
    kept = tuple(change(task, "kept", 0.6, 0.61) for task in ("capitals", "sums"))
    return passed(**{"tasks": kept, "form_changes": (), "former": (), "audit": (), "notes": ()} | more)


def planned(state: str, objective: str = "grpo") -> Plan:
    cell = CellAssessment("gcd", 3.0, state, 0.02, 0.0, 256, 50)  # type: ignore[arg-type]
    return Plan("difficulty", (Stage("training", objective, 9, {"gcd": 1.0}),), (cell,))  # type: ignore[arg-type]


def row(parts: RunParts, name: str) -> FindingRow:
    """Return one finding of a run."""
    (found,) = [one for one in answer_questions(parts).rows if one.name == name]
    return found


CLEAN: dict[str, Any] = {"task": None, "severity": "info"}
UNEVEN = {"a": (0.9, 0.8), "b": (0.1, 0.2)}


def trained(*groups: Taught, pulls: tuple[Pull, ...] = ()) -> RunParts:
    """Return what short trainings left."""
    return RunParts(teaching=Teaching(24, 8, groups, pulls))


def became(task: str, word: TaskWord, shares: dict[str, tuple[float, float]]) -> RunParts:
    return RunParts(judged(tasks=(change(task, word, 0.5, 0.5),)), shares=shares)


def answered(*behaviours: BehaviourChange) -> RunParts:
    return RunParts(judged(behaviours=behaviours))


def formed(*changes: FormChange, **more: Any) -> RunParts:
    return RunParts(judged(form_changes=changes, **more))


def audited(*findings: Observation) -> RunParts:
    return RunParts(audit=findings)


def rolled(*findings: Observation) -> RunParts:
    return RunParts(rollouts=findings)


def moved(word: TaskWord, after: float) -> RunParts:
    """Return what became of a task without training rows, after a training on calls."""
    return RunParts(judged(tasks=(change("calls", "learned", 0.0, 0.9), change("sums", word, 0.9, after))), shares=CALLS)


def sampled(success: float, any_right: float) -> RunParts:
    """Return a task whose chance level is 5 to 15 %, with samples."""
    return RunParts(
        judged(tasks=(change("sums", "kept", success, success),), behaviours=(behaves(ANY_RIGHT, 0.5, any_right),))
    )


def parted(whole: float, *shares: float, items: int = 30) -> RunParts:
    """Return a task of JSON answers with the success of each field."""
    fields = [Interval(share, share - 0.1, share + 0.1, items) for share in shares]
    parts = tuple(PartChange(f"field {number}", field, field) for number, field in enumerate(fields))
    return RunParts(judged(tasks=(change("sums", "kept", whole, whole, parts=parts),)))


def labelled(after: float, wrong: int) -> RunParts:
    """Return a task of nine rows of which some are shown to be wrong, and its success on 30 items."""
    conflicts = seen("conflicts", count=8, evidence=tuple({"id": str(number)} for number in range(wrong)))
    return RunParts(judged(tasks=(change("sums", "learned", 0.3, after),)), audit=(conflicts,))


CALLS = {"calls": (1.0, 1.0)}
STATES: tuple[tuple[str, str, RunParts], ...] = (
    ("orders", "shown", moved("lost", 0.3)),
    ("orders", "excluded", moved("kept", 0.9)),
    ("orders", "cannot tell", moved("not shown", 0.8)),
    ("latent", "needs a file", RunParts(damaged())),
    ("latent", "shown", sampled(0.2, 0.6)),
    ("latent", "excluded", sampled(0.5, 0.9)),
    ("latent", "cannot tell", sampled(0.1, 0.6)),
    ("subtasks", "shown", parted(0.4, 0.9, 0.4, 0.9)),
    ("subtasks", "cannot tell", parted(0.6, 0.8, 0.7, 0.9)),
    ("subtasks", "cannot tell", parted(0.9, 0.9, 0.1, 0.9, items=3)),
    ("noisy_labels", "shown", labelled(1.0, wrong=3)),
    ("noisy_labels", "cannot tell", labelled(0.6, wrong=3)),
    ("orders", "needs a file", RunParts()),
    ("orders", "shown", trained(pulls=(pull("calls", "companies", -0.19, shown=True), pull("a", "b", 0.0)))),
    ("orders", "excluded", trained(pulls=(pull("a", "b", 0.0), pull("b", "a", 0.3)))),
    ("orders", "cannot tell", trained(pulls=(pull("a", "b", -0.03), pull("b", "a", 0.0)))),
    ("orders", "cannot tell", trained(pulls=(pull("a", "b", 0.4, shown=True), pull("b", "a", -0.2)))),
    ("rare_tasks", "needs a file", RunParts()),
    ("rare_tasks", "excluded", RunParts(shares={"a": (0.8, 0.8), "b": (0.2, 0.2)})),
    ("rare_tasks", "cannot tell", RunParts(shares=UNEVEN)),
    ("rare_tasks", "shown", became("b", "lost", UNEVEN)),
    ("rare_tasks", "excluded", became("b", "learned", UNEVEN)),
    ("rare_tasks", "cannot tell", became("b", "not shown", UNEVEN)),
    ("rare_tasks", "cannot tell", became("a", "lost", UNEVEN)),
    ("rare_tasks", "excluded", became("a", "lost", {"a": (0.5, 0.8), "b": (0.5, 0.2)})),
    ("too_hard", "shown", RunParts(plan=planned("hopeless"))),
    ("too_hard", "needs a file", RunParts(plan=planned("hopeless", "sft"))),
    ("too_hard", "excluded", RunParts(plan=planned("reachable"))),
    ("too_hard", "cannot tell", RunParts(plan=planned("unknown"))),
    ("too_hard", "shown", rolled(seen("too hard"))),
    ("too_hard", "shown", rolled(seen("hard groups"))),
    ("too_hard", "shown", rolled(seen("one answer"))),
    ("too_hard", "cannot tell", rolled(seen("collapse"))),
    ("difficulty", "shown", rolled(seen("stale prompts"))),
    ("plasticity", "shown", rolled(seen("drift", task=None))),
    ("formats", "needs a file", RunParts()),
    ("formats", "shown", formed(forms=(FormTaken("calls", ("sums",), 28, 30),))),
    ("formats", "shown", formed(form("new form", 25, reported=True))),
    ("formats", "excluded", formed(form("empty", 30), form("form of another task", 2))),
    ("formats", "cannot tell", formed(form("form of another task", 12))),
    ("formats", "cannot tell", formed()),
    ("formats", "cannot tell", formed(form("new form", 30, reported=True), tasks=(change("sums", "learned", 0, 1),))),
    ("grounding", "shown", answered(behaves("asks", 0.8, 0.1, shown=True))),
    ("grounding", "cannot tell", answered(behaves("asks", 0.1, 0.8, 0.95, shown=True))),
    ("grounding", "excluded", answered(behaves("asks", 0.5, 0.5), behaves("acknowledges", 0.5, 0.9, shown=True))),
    ("grounding", "cannot tell", answered(behaves("asks", 0.5, 0.42))),
    ("grounding", "cannot tell", answered(behaves("hedges", 0.9, 0.1, shown=True))),
    ("grounding", "cannot tell", answered(behaves("asks", 0.0, 0.0))),
    ("diversity", "shown", answered(behaves("distinct samples", 0.9, 0.3, shown=True))),
    ("diversity", "excluded", answered(behaves("distinct samples", 0.9, 0.9))),
    ("diversity", "shown", rolled(seen("same", task=None))),
    ("cues", "needs a file", RunParts()),
    ("cues", "cannot tell", audited(seen("frequency", "info"))),
    ("cues", "shown", audited(seen("cues"), seen("cues", count=2, total=3, **CLEAN))),
    ("cues", "excluded", audited(seen("cues", count=3, total=3, **CLEAN))),
    ("cues", "cannot tell", audited(seen("cues", count=0, total=0, **CLEAN))),
    ("self_conditioning", "shown", audited(seen("error_clusters"))),
    ("self_conditioning", "excluded", audited(seen("error_clusters", count=0, **CLEAN))),
    ("self_conditioning", "cannot tell", audited(seen("error_clusters", count=2, **CLEAN))),
    ("traces", "excluded", audited(seen("traces", count=0, **CLEAN))),
    ("traces", "cannot tell", audited(seen("traces", count=0, **CLEAN), seen("traces", "info", evidence=({"id": "1"},)))),
    ("traces", "shown", audited(seen("traces", count=0, **CLEAN), seen("code_comments"))),
    ("preference_pairs", "excluded", audited(seen("preferences", count=0, **CLEAN))),
    ("instructions", "needs a file", audited(seen("frequency", "info"))),
    ("instructions", "cannot tell", audited(seen("instructions", count=0, **CLEAN))),
    ("instructions", "shown", audited(seen("instructions"))),
    ("composition", "cannot tell", audited(seen("coverage", count=9, **CLEAN))),
    ("composition", "shown", audited(seen("coverage"))),
    ("contamination", "cannot tell", audited(seen("contamination", count=0, **CLEAN), seen("reworded", count=0, **CLEAN))),
    ("contamination", "shown", audited(seen("contamination", "error"), seen("reworded", count=0, **CLEAN))),
    ("teacher_context", "cannot tell", audited(seen("unseen", count=9, **CLEAN))),
    ("teacher_context", "shown", audited(seen("styles"))),
    ("noisy_labels", "cannot tell", audited(seen("conflicts", "error"))),
    ("skills_or_facts", "needs a file", RunParts()),
    ("skills_or_facts", "shown", trained(taught("sums", "skill", 0.4), taught("lcm", "nothing", 0.0))),
    ("skills_or_facts", "cannot tell", trained(taught("lcm", "nothing", 0.0))),
    ("sparsity", "cannot tell", RunParts(damaged())),
    ("pruning", "cannot tell", RunParts(damaged())),
)
"""Finding, its state, and what was found of the run."""


@pytest.mark.parametrize(("name", "state", "parts"), STATES, ids=[f"{name}-{state}" for name, state, _ in STATES])
def test_a_state_takes_its_figure(name: str, state: str, parts: RunParts) -> None:
    found = row(parts, name)
    assert found.state == state
    assert bool(found.remedy) == (state == "shown")
    if state in ("shown", "excluded"):
        assert any(letter.isdigit() for letter in found.figure)
        assert not found.needs
    if state == "needs a file":
        assert "mixwright " in found.needs


def test_nothing_is_claimed_of_nothing() -> None:
    found = answer_questions(RunParts())
    assert len(found.rows) == len({one.name for one in found.rows}) == 28
    assert {one.state for one in found.rows} == {"cannot tell", "needs a file"}
    assert all("mixwright " in answer for answer in found.answers.values()), "each says what would tell"


FIGURES: tuple[tuple[str, RunParts, tuple[str, ...]], ...] = (
    (COMPETES, RunParts(shares={"calls": (0.11, 0.73), "sums": (0.89, 0.27)}), ("calls", "73 %", "11 %", "--minutes 20")),
    (
        COMPETES,
        trained(pulls=(pull("calls", "companies", -0.19, 0.07, shown=True),)),
        ("calls", "companies", f"{MINUS}19 [{MINUS}26, {MINUS}12]"),
    ),
    (COMPETES, RunParts(damaged()), ("raised tool_calls", "lowered", "plurals", f"plurals {MINUS}93", "1 other task")),
    (
        COMPETES,
        RunParts(
            judged(
                tasks=(replace(change("sums", "lost", 0.9, 0.2), level=2.0), change("sums", "kept", 0.6, 0.6, whole=True))
            )
        ),
        ("sums level 2", f"{MINUS}70"),
    ),
    (HARD, RunParts(plan=planned("hopeless")), ("gcd@3", "2 %", "256")),
    (HARD, RunParts(judged()), ("capitals", "61 %")),
    (HARD, trained(taught("lcm", "nothing", 0.0)), ("lcm",)),
    (LOPSIDED, RunParts(damaged()), ("88 of 90", "plurals", "tool_calls")),
    (LOPSIDED, formed(form("form of another task", 2)), ("2 of 30", "sums")),
    (LOPSIDED, answered(behaves("asks", 0.8, 0.1, shown=True)), ("sums", "80 %", "10 %", f"{MINUS}70")),
    (COVERED, RunParts(judged(), shares={"sums": (1.0, 1.0)}), ("capitals",)),
    (COVERED, audited(seen("coverage", count=12, total=60)), ("12 of 60",)),
    (
        TEACH,
        trained(taught("sums", "skill", 0.41), taught("capitals", "facts", 0.4)),
        ("sums: skill", "+41 [+31, +51]", "capitals: facts", "+80"),
    ),
    (TEACH, RunParts(passed()), ("tool_calls", "+90")),
)
"""Question, what was found of the run, and what its answer holds."""


@pytest.mark.parametrize(("question", "parts", "figures"), FIGURES)
def test_an_answer_has_the_figures_of_the_run(question: str, parts: RunParts, figures: tuple[str, ...]) -> None:
    answer = answer_questions(parts).answers[question]
    assert [figure for figure in figures if figure not in answer] == []


def test_a_clean_run_shows_nothing() -> None:
    found = answer_questions(RunParts(judged(form_changes=(form("form of another task", 0),)), shares={"sums": (1.0, 1.0)}))
    assert [one.name for one in found.rows if one.state == "shown"] == []
    learned = [
        one.name for one in answer_questions(RunParts(passed(form_changes=(), former=()))).rows if one.state == "shown"
    ]
    assert learned == []


def test_one_fact_lights_one_row() -> None:
    """A lost format, a loss and a fallen behaviour of the same task are one finding."""
    asked = BehaviourChange("plurals", "asks", 0.8, 0.0, interval(-0.8), 0.001, shown=True)
    shown = [one.name for one in answer_questions(RunParts(damaged(behaviours=(asked,)))).rows if one.state == "shown"]
    assert shown == ["formats"]


@pytest.mark.parametrize("seed", range(5))
def test_the_order_of_tasks_and_findings_does_not_matter(seed: int) -> None:
    verdict = damaged(behaviours=tuple(behaves(name, 0.8, 0.1, shown=True) for name in ("asks", "acknowledges")))
    audit = tuple(seen(check, task=task) for check in ("cues", "coverage", "traces") for task in ("a", "b", "c"))
    pulls = tuple(pull(one, other, -0.2, shown=True) for one in "abc" for other in "abc" if one != other)
    teaching = Teaching(24, 8, tuple(taught(group, "skill", 0.3) for group in "abc"), pulls)
    shares = {task: (rows, rows) for task, rows in (("a", 0.3), ("b", 0.3), ("c", 0.01), ("d", 0.39))}
    parts = RunParts(verdict, audit, (), teaching, shares=shares)
    rng = random.Random(seed)

    def mixed(records: Any) -> Any:
        return type(records)(rng.sample([*(records.items() if isinstance(records, dict) else records)], len(records)))

    moved = replace(verdict, tasks=mixed(verdict.tasks), behaviours=mixed(verdict.behaviours), forms=mixed(verdict.forms))
    told = replace(teaching, taught=mixed(teaching.taught), pulls=mixed(pulls))
    assert answer_questions(RunParts(moved, mixed(audit), (), told, shares=mixed(shares))) == answer_questions(parts)


def test_every_command_is_one_that_there_is() -> None:
    commands = load_commands()
    for text in NEEDS.values():
        line = text.partition(": ")[2].format(name="pruning").partition(" (")[0].partition(" > ")[0]
        _, verb, *words = shlex.split(line)
        if "--minutes" in words and not any("--minutes" in one.opts for one in commands["plan"].params):
            continue
        commands[verb].make_context(verb, words)  # raises for an option that is not there


def test_findings_are_named_as_the_cards_of_the_laboratory() -> None:
    cards = {path.name.partition(".")[0] for path in (ROOT / "mixwright_lab" / "results" / "findings").glob("*.json")}
    names = {finding.name for findings in FINDINGS.values() for finding in findings}
    assert cards - names == {"shortcuts", "pruning_language"}, "second cards of too_hard and pruning"


def write_run() -> list[str]:
    """Write the folders of a verdict, of a plan and of an audit."""
    for name, record in {"verdict/verdict": to_json_ready(damaged(audit=())), "plan/teaching": TEACHING}.items():
        write_json(Path(f"{name}.json"), record)
    write_plan(Path("plan/plan.yaml"), Plan("rehearsal", (Stage("training", "sft", 9, {"tool_calls": 1.0}),)))
    rows = [{"task": "tool_calls", "prompt": f"{n}?", "completion": "x y z"} for n in range(9)]
    rows += [{"task": "sums", "prompt": f"{n}+1?", "completion": "7"} for n in range(3)]
    write("plan/mix.jsonl", [*rows, *({"task": "replay.kind", "prompt": f"{n}!", "completion": "well"} for n in range(4))])
    write_json(Path("audit/observations.json"), [seen("cues"), seen("traces", count=0, **CLEAN)])
    write_json(Path("verdict/diagnosis.json"), {"observations": [seen("same", task=None)], "read": "TRL"})
    return ["verdict", "plan", "audit"]


TEACHING = Teaching(24, 8, (taught("sums", "skill", 0.41),), (pull("tool_calls", "companies", -0.19, 0.07, shown=True),))


def test_folders_are_read_together_in_any_order(call: Call) -> None:
    folders = write_run()
    code, out, err = call("review", *folders, "--json")
    found = json.loads(out)
    assert (code, err) == (0, "")
    assert out == call("review", *reversed(folders), "--json")[1]
    states = {one["name"]: one["state"] for one in found["rows"]}
    assert [name for name, state in states.items() if state == "shown"] == [
        "orders", "formats", "cues", "diversity", "skills_or_facts"
    ]  # fmt: skip
    assert {name for name, state in states.items() if state == "excluded"} == {"rare_tasks", "traces"}
    assert next(one["laboratory"] for one in found["rows"] if one["name"] == "formats") == "reproduced"
    assert "replay.kind" not in out
    assert "plurals" in found["answers"][COVERED], "tested, and in no row of the mix"
    alone = json.loads(call("review", "verdict", "--json")[1])
    assert next(one["state"] for one in alone["rows"] if one["name"] == "cues") == "needs a file"


def test_the_report_fits_a_terminal_and_full_has_each_finding_once(call: Call) -> None:
    folders = write_run()
    out = call("review", *folders)[1]
    assert len(out.splitlines()) <= MAX_LINES
    assert out.startswith("SHOWN: ")
    assert [question for question in QUESTIONS if f"\n{question} " not in out] == []
    assert "--full" in out
    full = call("review", *folders, "--full")[1]
    assert [full.count(f" {one.name}: ") for findings in FINDINGS.values() for one in findings] == [1] * 28


def test_one_finding_is_explained_by_a_run(call: Call) -> None:
    folders = write_run()
    options = [word for folder in folders for word in ("--run", folder)]
    code, out, _ = call("explain", "orders", *options)
    assert (code, f"{MINUS}19" in out, "not reproduced" in out) == (0, True, True)
    assert call("explain", "formats")[1] != call("explain", "formats", *options)[1]
    code, _, err = call("explain", "format", *options)
    assert (code, "formats" in err) == (1, True)


def test_wrong_folders_are_told_in_one_line(call: Call) -> None:
    write_run()
    Path("empty").mkdir()
    for folders in (["nowhere"], ["empty"], ["verdict", "verdict"], ["plan", "plan"]):
        code, out, err = call("review", *folders)
        assert (code, out, err.count("\n")) == (1, "", 1), folders
    Path("audit/observations.json").write_text("[{]", encoding="utf-8")
    assert call("review", "audit")[2].startswith("error: audit/observations.json")
    write("plan/mix.jsonl", [{"strange": 1}])
    assert call("review", "plan")[0] == 0, "shares are unknown then"


def test_a_true_audit_and_verdict_are_read(call: Call) -> None:
    write("train.jsonl", sums(40))
    assert call("audit", "train.jsonl", "--eval", write("eval.jsonl", sums(10, 35)), "--out", "audit")[0] == 0
    assert call("verdict", "--example")[0] == 3
    found = {one["name"]: one for one in json.loads(call("review", "audit", "runs/example", "--json")[1])["rows"]}
    assert "5 of 10" in found["contamination"]["figure"]
    assert [name for name, one in found.items() if one["state"] == "shown"] == ["formats", "contamination"]
    assert call("audit", "train.jsonl", "--out", "alone")[0] == 0
    alone = {one["name"]: one for one in json.loads(call("review", "alone", "--json")[1])["rows"]}
    assert alone["contamination"]["state"] == "cannot tell", "there was nothing to compare with"


def test_hostile_names_move_no_cursor(call: Call) -> None:
    tasks = tuple(change(f"{HOSTILE}{n}", "lost", 0.9, 0.1) for n in range(3))
    forms = (FormTaken(HOSTILE, (HOSTILE,), 9, 9),)
    write_json(
        Path("v/verdict.json"),
        to_json_ready(damaged(tasks=tasks, forms=forms, form_changes=(), audit=(seen("cues", task=HOSTILE),))),
    )
    for options in ([], ["--full"]):
        code, out, _ = call("review", "v", *options)
        assert code == 0
        assert all(letter.isprintable() or letter == "\n" for letter in out)
