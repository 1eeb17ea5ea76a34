"""Page of an audit: what was found, worst first, a map of tasks and checks, and the rows side by side.

Left out on purpose: rows beyond a few of each finding, which stand in the files beside the page.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

from mixwright.audit.findings import two_sides, what_differs, worst_first
from mixwright.records import SEVERITIES, Observation
from mixwright.verdict.page.blocks import (
    Block,
    Fact,
    Fold,
    Headline,
    Paragraph,
    Part,
    Rows,
    RowSide,
    ShareCell,
    ShareMap,
    SideBySide,
    Table,
    Tone,
)
from mixwright.verdict.page.page import render_page
from mixwright.verdict.page.text import format_count

MAX_FINDINGS, MAX_ROWS_SHOWN, MAX_TASKS, MAX_INFOS = 60, 6, 60, 200
"""Errors and warnings with their rows, rows of each, tasks of the map, infos: what is beyond is counted."""
TONES: Mapping[str, Tone] = {"error": "bad", "warning": "caution", "info": "plain"}


def render_audit_page(observations: Sequence[Observation], about: str, counts: Mapping[str, int]) -> str:
    """The page as HTML.

    Args:
        observations: of an audit, in any order.
        about: one line on what was audited.
        counts: split -> rows.
    """
    ordered = worst_first(observations)
    findings = [observation for observation in ordered if observation.severity != "info"]
    infos = [observation for observation in ordered if observation.severity == "info"]
    top: list[Block] = [_headline(findings, counts)]
    if share_map := _map(findings):
        top.append(share_map)
    parts: list[Part] = [("audit", "Audit", 0, top)]
    if findings:
        blocks = [block for observation in findings[:MAX_FINDINGS] for block in _finding(observation)]
        if left_out := len(findings) - MAX_FINDINGS:
            blocks += [Paragraph(f"{format_count(left_out, 'more finding')} stand in observations.json.")] * (left_out > 0)
        parts.append(("findings", "What was found, worst first", 30, blocks))
    if infos:
        parts.append(("infos", "Good to know", 40, [_infos(infos)]))
    return render_page("Audit", about, parts)


def _headline(findings: Sequence[Observation], counts: Mapping[str, int]) -> Headline:
    by_severity = Counter(observation.severity for observation in findings)
    found = [format_count(by_severity[name], name) for name in SEVERITIES if by_severity[name]]
    tasks = len({observation.task for observation in findings if observation.task is not None})
    text = f"The audit found {' and '.join(found)}." if found else "The audit found no error and no warning."
    tone: Tone = "bad" if by_severity["error"] else "caution" if found else "good"
    facts = [Fact(f"{split} rows", f"{count:,}") for split, count in counts.items()]
    if found:
        facts.append(Fact("tasks with a finding", f"{tasks:,}"))
    return Headline(text, tone, tuple(facts))


def _map(findings: Sequence[Observation]) -> ShareMap | None:
    """Tasks with a finding and checks: the largest share of rows that one finding of the check concerns."""
    checks = sorted({observation.check for observation in findings})
    worst: dict[str, dict[str, Observation]] = defaultdict(dict)
    for observation in findings:  # worst first: the first of a cell stays
        worst[observation.task or "all tasks together"].setdefault(observation.check, observation)
    rows = [
        (task, tuple(_cell(of_task[check]) if check in of_task else None for check in checks))
        for task, of_task in list(worst.items())[:MAX_TASKS]
    ]
    left_out = len(worst) - MAX_TASKS
    caption = "Largest share of rows (or cells, or tasks) that one finding concerns; ✕ error, ! warning"
    caption += f"; {format_count(left_out, 'more task')} not shown" if left_out > 0 else ""
    return ShareMap(caption, tuple(checks), tuple(rows)) if rows else None


def _cell(observation: Observation) -> ShareCell:
    share = observation.count / max(observation.total, 1)
    sign = "✕" if observation.severity == "error" else "!"
    return ShareCell(min(share, 1.0), f"{sign} {share:.0%}", f"{observation.count:,} of {observation.total:,}")


def _finding(observation: Observation) -> list[Block]:
    name = f"{observation.check} in {observation.task}" if observation.task else observation.check
    null_text = f"Compared with: {observation.null}." if observation.null else ""
    text = " ".join(filter(None, (observation.message, observation.remedy, null_text)))
    blocks: list[Block] = [Paragraph(text, TONES[observation.severity], name)]
    rows = [_side_by_side(evidence) for evidence in observation.evidence[:MAX_ROWS_SHOWN] if two_sides(evidence)]
    if rows:
        more = len(observation.evidence) - len(rows)
        blocks.append(Fold(f"{format_count(len(rows), 'example')}", (Rows(name, tuple(rows)),)))
        if more > 0:
            blocks.append(Paragraph(f"{more:,} more stand in rows/{observation.check}.jsonl."))
    elif observation.evidence:
        columns = tuple(observation.evidence[0])
        cells = [
            tuple(_cut(evidence.get(column, "")) for column in columns) for evidence in observation.evidence[:MAX_ROWS_SHOWN]
        ]
        blocks.append(Fold("numbers", (Table(name, columns, cells),)))
    return blocks


def _side_by_side(evidence: Mapping[str, Any]) -> SideBySide:
    if "chosen" in evidence:
        place = evidence.get("source") or evidence.get("id")
        pair = (("preferred", evidence["chosen"]), ("rejected", evidence["rejected"]))
        shown = tuple(RowSide(f"{name}: {place}", str(text)) for name, text in pair)
        return SideBySide(shown, f"Prompt: {evidence['prompt']}")
    sides = two_sides(evidence)
    prompts = [str(side["prompt"]) for _, side in sides if "prompt" in side]
    differs = what_differs(*prompts) if len(prompts) == 2 else []
    changes = "; ".join(f"{first or 'nothing'} → {second or 'nothing'}" for first, second in differs)
    shown = [
        RowSide(f"{name}: {side.get('source') or side.get('id')}", _text_of(side), str(side.get("answer") or ""))
        for name, side in sides
    ]
    same = "The prompts are equal." if len(prompts) == 2 else ""
    return SideBySide(tuple(shown), f"Differs: {changes}" if changes else same)


def _text_of(side: Mapping[str, Any]) -> str:
    if "prompt" in side:
        return str(side["prompt"])
    options = side.get("options")
    return "\n".join(map(str, options)) if isinstance(options, list) else ""


def _infos(infos: Sequence[Observation]) -> Fold:
    rows = [
        (
            observation.check,
            observation.task or "all",
            f"{observation.count:,} of {observation.total:,}",
            observation.message,
        )
        for observation in infos[:MAX_INFOS]
    ]
    hidden = len(infos) - MAX_INFOS
    more = Paragraph(f"{hidden:,} more stand in observations.json.") if hidden > 0 else Paragraph("")
    table = Table("Infos of the audit", ("check", "task", "seen", "what"), rows)
    return Fold(format_count(len(infos), "info"), (table, more) if hidden > 0 else (table,))


def _cut(value: object, most: int = 200) -> str:
    text = str(value)
    return text if len(text) <= most else f"{text[:most]} …"
