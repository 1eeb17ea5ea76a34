"""Page of an audit: what was found, worst first, with an example of each, and the rows side by side.

Left out on purpose: rows beyond a few of each finding, which are in the files next to the page.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from mixwright.audit.findings import two_sides, what_differs, worst_first
from mixwright.records import SEVERITIES, Observation
from mixwright.verdict.page.blocks import (
    Block,
    Fold,
    Headline,
    Paragraph,
    Part,
    Rows,
    RowSide,
    SideBySide,
    Table,
    Tone,
)
from mixwright.verdict.page.frame import render_frame
from mixwright.verdict.page.page import observation_table
from mixwright.verdict.page.text import format_count, join_sentences

MAX_FINDINGS, MAX_ROWS_SHOWN, MAX_FIRST, MAX_EXAMPLES = 60, 6, 8, 3
"""Errors and warnings with their rows, rows of each, findings and examples of the first screen: others are counted."""
TONES: Mapping[str, Tone] = {"error": "bad", "warning": "caution", "info": "plain"}


def render_audit_page(
    observations: Sequence[Observation],
    about: str,
    counts: Mapping[str, int],
) -> str:
    """Return the page as HTML.

    Args:
        observations: findings of an audit, in any order.
        about: one line on what was audited.
        counts: split -> rows.
    """
    ordered = worst_first(observations)
    findings = [observation for observation in ordered if observation.severity != "info"]
    infos = [observation for observation in ordered if observation.severity == "info"]
    blocks = [block for observation in findings[:MAX_FINDINGS] for block in _finding(observation)]
    if (left_out := len(findings) - MAX_FINDINGS) > 0:
        blocks.append(Paragraph(f"{format_count(left_out, 'more finding')} in observations.json."))
    parts = [
        Part("findings", "All findings", blocks, f"{len(findings):,}"),
        Part("infos", "Good to know", [observation_table("Nothing to fix", infos)] if infos else [], f"{len(infos):,}"),
    ]
    return render_frame("Audit", about, _headline(findings, counts), _first_screen(findings), parts)


def _headline(findings: Sequence[Observation], counts: Mapping[str, int]) -> Headline:
    by_severity = Counter(observation.severity for observation in findings)
    found = [format_count(by_severity[name], name) for name in SEVERITIES if by_severity[name]]
    text = f"The audit found {' and '.join(found)}." if found else "The audit found no error and no warning."
    badge = "✕ FIX" if by_severity["error"] else "! LOOK" if found else "✓ FINE"
    tone: Tone = "bad" if by_severity["error"] else "caution" if found else "good"
    return Headline(text, tone, badge, " · ".join(f"{count:,} {split} rows" for split, count in counts.items()))


def _first_screen(findings: Sequence[Observation]) -> list[list[Block]]:
    """Return the worst findings, and an example of the first ones that have one."""
    worst: list[Block] = [_sentence(observation) for observation in findings[:MAX_FIRST]]
    if (hidden := len(findings) - MAX_FIRST) > 0:
        worst.append(Paragraph(f"{hidden:,} more under All findings."))
    examples = [_side_by_side(found.evidence[0]) for found in findings if found.evidence and two_sides(found.evidence[0])]
    return [worst, [Rows("Examples", tuple(examples[:MAX_EXAMPLES]))] if examples else []]


def _sentence(observation: Observation) -> Paragraph:
    name = f"{observation.check} in {observation.task}" if observation.task else observation.check
    return Paragraph(join_sentences(observation.message, observation.remedy), TONES[observation.severity], name)


def _finding(observation: Observation) -> list[Block]:
    sentence = _sentence(observation)
    name = sentence.lead
    null_text = f" Compared with: {observation.null}." if observation.null else ""
    blocks: list[Block] = [replace(sentence, text=sentence.text + null_text)]
    rows = [_side_by_side(evidence) for evidence in observation.evidence[:MAX_ROWS_SHOWN] if two_sides(evidence)]
    if rows:
        more = len(observation.evidence) - len(rows)
        blocks.append(Fold(f"{format_count(len(rows), 'example')}", (Rows(name, tuple(rows)),)))
        if more > 0:
            blocks.append(Paragraph(f"{more:,} more are in rows/{observation.check}.jsonl."))
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


def _cut(value: object, most: int = 200) -> str:
    text = str(value)
    return text if len(text) <= most else f"{text[:most]} …"
