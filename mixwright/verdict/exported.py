"""A verdict as Markdown, for a pull request, and as JUnit XML, for a CI server. Pure functions of `Verdict`."""

from __future__ import annotations

from xml.etree import ElementTree

from mixwright.records import TaskChange, Verdict
from mixwright.verdict.page.text import format_change, format_value, to_line, to_visible
from mixwright.verdict.words import LOSSES, describe_certainty, has_interval, list_rows, name_task, say_average, show_word

SIGN_BY_OUTCOME = {"passed": "✅", "damaged": "❌", "inconclusive": "❔"}
MAX_ROWS_MARKDOWN = 40
"""Tasks of the table; a comment on a pull request has 65,536 characters at most."""


def to_markdown(verdict: Verdict) -> str:
    """Return a comment for a pull request: the answer, the tasks, pairs of answers and how sure it is."""
    rows = list_rows(verdict)
    after = _escape(verdict.after)
    lines = [f"### {SIGN_BY_OUTCOME[verdict.outcome]} {_escape(verdict.headline, 600)}", ""]
    lines += [f"| | before | {after} | change (95 % interval) | |", "|---|---:|---:|---|---|"]
    for change in rows[:MAX_ROWS_MARKDOWN]:
        values = [format_value(change.before, verdict.unit)]
        values.append("-" if change.after is None else format_value(change.after, verdict.unit))
        cells = (_escape(name_task(change)), *values, _format_change(change, verdict), show_word(change, verdict))
        lines.append(f"| {' | '.join(cells)} |")
    if len(rows) > MAX_ROWS_MARKDOWN:
        lines.append(f"\nand {len(rows) - MAX_ROWS_MARKDOWN} more tasks.")
    lines += ["", *(f"{_escape(line, 400)}  " for line in (*verdict.why, say_average(verdict)) if line)]
    for pair in verdict.pairs:
        lines += ["", f"> **{_escape(pair.prompt, 300)}**  "]
        lines += [f"> before: {_escape(pair.before, 300)}  ", f"> {after}: {_escape(pair.after, 300)}"]
    details = [f"- {_escape(line, 400)}" for line in describe_certainty(verdict)]
    lines += ["", "<details><summary>How sure</summary>", "", *details, "", "</details>"]
    if verdict.next:
        step = verdict.next[0]
        lines += ["", f"Next: {_escape(step.text, 300)}", "", f"    {to_line(step.command, limit=1000)}"]
    return "\n".join(lines) + "\n"


def _format_change(change: TaskChange, verdict: Verdict) -> str:
    return format_change(change.change, verdict.unit) if has_interval(change) else ""


def _escape(text: str, limit: int = 120) -> str:
    """Return text of data as one line in which no character means something in Markdown or HTML."""
    line = to_line(text, limit=limit).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return "".join(f"\\{letter}" if letter in "\\`*_{}[]()#+!|~@$" else letter for letter in line)


def to_junit(verdict: Verdict) -> str:
    """Return JUnit XML: one test for the gate, and one for every task, which fails where its loss failed the gate.

    An inconclusive gate is an error, not a failure. Tasks that could not be judged are skipped, as are losses of tasks that
    the user did not name.
    """
    rows = list_rows(verdict)
    suite = ElementTree.Element("testsuite", name=f"mixwright {_clean(verdict.name)}")
    gate = ElementTree.SubElement(suite, "testcase", classname="mixwright", name="gate")
    if tag := {"damaged": "failure", "inconclusive": "error"}.get(verdict.outcome if verdict.exit_code else ""):
        ElementTree.SubElement(gate, tag, message=_clean(verdict.headline)).text = _clean(say_average(verdict))
    for change in rows:
        case = ElementTree.SubElement(suite, "testcase", classname="mixwright.tasks", name=_clean(name_task(change)))
        _add_result(case, change, verdict)
    for name, tag in (("tests", "."), ("failures", "failure"), ("errors", "error")):
        suite.set(name, str(len(suite.findall(f"testcase/{tag}"))))
    return '<?xml version="1.0" encoding="utf-8"?>\n' + ElementTree.tostring(suite, encoding="unicode") + "\n"


def _add_result(case: ElementTree.Element, change: TaskChange, verdict: Verdict) -> None:
    """Add the result of a task to its test."""
    message = f"{_format_change(change, verdict)} {show_word(change, verdict)}".strip()
    is_named = verdict.gate is None or not verdict.gate.named or change.task in verdict.gate.protected
    if change.word in LOSSES and verdict.outcome == "damaged" and verdict.exit_code and is_named:
        ElementTree.SubElement(case, "failure", message=message)
    elif change.word in (*LOSSES, "never right", "too few items", "not measured"):
        ElementTree.SubElement(case, "skipped", message=message)


def _clean(text: str) -> str:
    """Return text without characters that XML does not allow."""
    return " ".join(to_visible(text, limit=1000).split())
