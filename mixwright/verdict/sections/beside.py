"""Section of a third checkpoint: success per task of the start, of the other one and of this one, and three answers.

Source: measure/beside.parquet and completions.parquet, which the comparison took over from the earlier one; gate.json.
Unit: success under the declared decoding in percent; greedy completions with their scores.
Cost: reads two tables.
Blind spot: the examples are chosen because the two differ, so they illustrate and prove nothing; the table is the evidence.
"""

from __future__ import annotations

from collections import defaultdict

import numpy as np

from mixwright.contracts import Section
from mixwright.estimates.judgement import SIGN_ALPHA
from mixwright.estimates.outcome import Item, shared_items
from mixwright.estimates.readings import READINGS, Outcome
from mixwright.records import Claim
from mixwright.run.folder import RunFolder
from mixwright.verdict.page.answers import interleave_groups, is_right, make_pair, read_answers
from mixwright.verdict.page.beside import BESIDE_NAME, ThreeCheckpoints, read_three_checkpoints
from mixwright.verdict.page.blocks import Block, Fold, Paragraph, Table, Texts
from mixwright.verdict.page.text import format_count, percent
from mixwright.verdict.rules.claims import claims_between
from mixwright.verdict.rules.evidence import Sides, read_outcome
from mixwright.verdict.rules.gate import check_sides
from mixwright.verdict.rules.gate_question import read_question

MAX_PAIRS_OPEN, MAX_PAIRS_SHOWN = 2, 24


class BesideSection(Section):
    """Both gates in a line, a table of three columns, and items that one lost and the other kept."""

    ORDER = 3

    def blocks(self, run: RunFolder) -> list[Block]:
        """Nothing where no other checkpoint stands beside."""
        checkpoints = read_three_checkpoints(run)
        if checkpoints is None:
            return []
        outcome = read_outcome(run)
        start_name, beside_name, after_name = checkpoints.names
        items = [item for item in read_answers(run.path / "completions.parquet") if BESIDE_NAME in item]
        right_before = [item for item in items if is_right(item["before"])]
        kept_by_after = [item for item in right_before if is_right(item["after"]) and not is_right(item[BESIDE_NAME])]
        lost_by_after = sum(is_right(item[BESIDE_NAME]) and not is_right(item["after"]) for item in right_before)
        counts_text = (
            f"Of the greedy answers that were right before, {after_name} kept {len(kept_by_after):,} that {beside_name} "
            f"lost, and lost {lost_by_after:,} that {beside_name} kept."
        )
        examples = interleave_groups(kept_by_after, lambda item: item["before"]["task"] or "")[:MAX_PAIRS_SHOWN]
        pairs = tuple(make_pair(item, (start_name, after_name), {BESIDE_NAME: beside_name}) for item in examples)
        examples_text = f"answers that {beside_name} lost and {after_name} kept"
        caption = f"Success per task, {outcome}; loss and gain: significant against {start_name}, by Holm's correction"
        return [
            Paragraph(_format_gates(run, checkpoints, outcome), lead=f"{beside_name} and {after_name} beside {start_name}"),
            Table(caption, ("task", "items", start_name, beside_name, after_name), _task_rows(checkpoints, outcome), (1,)),
            Paragraph(counts_text),
            Texts(f"A{examples_text[1:]}", pairs[:MAX_PAIRS_OPEN]),
            Fold(
                f"{len(pairs) - MAX_PAIRS_OPEN} more {examples_text}",
                (Texts(f"More {examples_text}", pairs[MAX_PAIRS_OPEN:]),),
            ),
        ]


def _format_gates(run: RunFolder, checkpoints: ThreeCheckpoints, outcome: Outcome) -> str:
    """What the gate says of both, by the same question; else how many items are compared."""
    question = read_question(run)
    items = f"{format_count(len(shared_items(*checkpoints.other, checkpoints.after[1])), 'item')} measured for all three."
    if question is None or outcome not in ("greedy", "sampled"):
        return items
    other_outcome, after_outcome = (
        check_sides(sides, outcome, question).outcome for sides in (checkpoints.other, checkpoints.after)
    )
    outcomes = f"{checkpoints.names[1]} {other_outcome}, of {checkpoints.names[2]} {after_outcome}"
    return f"The gate says of {outcomes}, by the same items and margin; {items}"


def _task_rows(checkpoints: ThreeCheckpoints, outcome: Outcome) -> list[tuple[str, ...]]:
    columns = [_success_after(sides, outcome) for sides in (checkpoints.other, checkpoints.after)]
    tasks: dict[str, list[Item]] = defaultdict(list)
    for item in shared_items(*checkpoints.other, checkpoints.after[1]):
        tasks[item[0]].append(item)
    rows = []
    for task, items in sorted(tasks.items()):
        start = float(np.mean([scores.column(READINGS[outcome].column, items) for scores in checkpoints.after[0]]))
        rows.append(
            (
                task,
                str(len(items)),
                percent(start),
                *(success_by_task.get(task, "not measured") for success_by_task in columns),
            )
        )
    return rows


def _success_after(sides: Sides, outcome: Outcome) -> dict[str, str]:
    """Success after per task, and in words whether it changed."""
    tasks: dict[str, list[Claim]] = defaultdict(list)
    for claim in claims_between(sides, outcome):
        tasks[claim.task].append(claim)
    task_claims = {
        task: claims[0] if len(claims) == 1 else next((task_claim for task_claim in claims if task_claim.whole), None)
        for task, claims in tasks.items()
    }
    return {task: f"{percent(claim.after)}{_word(claim)}" for task, claim in task_claims.items() if claim is not None}


def _word(claim: Claim) -> str:
    if claim.adjusted_p is None:
        return ", too few items"
    if claim.adjusted_p >= SIGN_ALPHA:
        return ""
    return ", loss" if claim.difference.value < 0 else ", gain"
