"""Made corpora for the study of instructions: what is planted is counted anew, and clean rows hold none of it."""

from __future__ import annotations

import random
import re
from collections import Counter, defaultdict
from typing import Any

import pytest

from mixwright_lab.studies import instruction_corpora
from mixwright_lab.studies.instruction_corpora import KINDS, Row, make_instructions, planted
from mixwright_lab.studies.instruction_everyday_tasks import EVERYDAY
from mixwright_lab.studies.instruction_tasks import OFFICE, YES_NO, Vocabulary

SEEDS = range(1, 6)
VOCABULARIES = pytest.mark.parametrize("words", [OFFICE, EVERYDAY], ids=["office", "everyday"])


def shares_of_inputs(rows: list[Row]) -> tuple[float, float]:
    """Share of inputs under several instructions, and of these the share with one answer."""
    answers = defaultdict[str, list[str]](list)
    for row in rows:
        answers[row.input].append(row.answer)
    repeated = [found for found in answers.values() if len(found) > 1]
    return len(repeated) / len(answers), sum(len(set(found)) == 1 for found in repeated) / max(1, len(repeated))


def named_labels(instruction: str, words: Vocabulary) -> set[str]:
    """Labels that an instruction names."""
    labels = {label for domain in words.closed for one in words.domains[domain] for label in one.labels}
    labels |= {*YES_NO, *(other for names in words.renamed for other in names.values())}
    return {label for label in labels if re.search(rf"(?<![\w-]){re.escape(label)}(?![\w-])", instruction)}


@VOCABULARIES
@pytest.mark.parametrize("severe", [True, False])
@pytest.mark.parametrize("kind", ["ignored", "opposite"])
def test_inputs_have_one_answer_under_several_instructions(kind: str, severe: bool, words: Vocabulary) -> None:
    for seed in SEEDS:
        rows, share = planted(random.Random(seed), kind, severe, words)
        under_several, same = shares_of_inputs(rows)
        assert same == pytest.approx(share)
        assert (
            (0.6 <= under_several <= 1 and same >= 0.96) if severe else (0.3 <= under_several <= 0.6 and 0.9 <= same <= 0.96)
        )
        assert {row.input for row in rows if row.marked} == {
            row.input for row in rows if len({one.answer for one in rows if one.input == row.input}) == 1
            and sum(one.input == row.input for one in rows) > 1
        }  # fmt: skip


@VOCABULARIES
@pytest.mark.parametrize("severe", [True, False])
def test_so_many_rows_have_labels_without_a_name(severe: bool, words: Vocabulary) -> None:
    for seed in SEEDS:
        rows, share = planted(random.Random(seed), "unnamed", severe, words)
        without = [row for row in rows if row.answer not in named_labels(row.instruction, words)]
        assert without == [row for row in rows if row.marked]
        assert len(without) / len(rows) == share
        assert 0.15 <= share <= 0.4 if severe else (0.05 <= share <= 0.12 and len(without) >= 10)
        assert len({row.answer for row in without}) in (1, 2)


@VOCABULARIES
@pytest.mark.parametrize("severe", [True, False])
def test_labels_that_are_named_hardly_occur(severe: bool, words: Vocabulary) -> None:
    for seed in SEEDS:
        rows, share = planted(random.Random(seed), "never", severe, words)
        named = set.union(*(named_labels(row.instruction, words) for row in rows))
        counts = Counter(row.answer for row in rows)
        rare = sorted(named, key=lambda label: counts[label])[: 2 if severe else 1]
        assert counts.keys() <= named
        assert 3 <= len(named) <= 7
        assert counts[rare[0]] == 0 if severe else share <= 0.008
        assert min(count for label, count in counts.items() if count > 2) > 0.05 * len(rows)
        assert (
            sum(count for count in counts.values() if count <= 2)
            == sum(row.marked for row in rows)
            == round(share * len(rows))
        )


@VOCABULARIES
@pytest.mark.parametrize("severe", [True, False])
def test_each_instruction_has_one_label(severe: bool, words: Vocabulary) -> None:
    for seed in SEEDS:
        rows, share = planted(random.Random(seed), "constant", severe, words)
        of_instruction = defaultdict[str, Counter[str]](Counter)
        for row in rows:
            of_instruction[row.instruction][row.answer] += 1
        assert 3 <= len(of_instruction) <= 6
        common = [counts.most_common(1)[0] for counts in of_instruction.values()]
        assert len({label for label, _ in common}) > 1
        for (_, count), counts in zip(common, of_instruction.values(), strict=True):
            assert count == counts.total() if severe else 1 <= counts.total() - count <= 2 and count >= 0.98 * counts.total()
        assert len(rows) - sum(count for _, count in common) == round(share * len(rows))


@VOCABULARIES
@pytest.mark.parametrize("make", [*dict.fromkeys(instruction_corpora.CLEAN)])
def test_clean_tasks_answer_what_is_asked(make: Any, words: Vocabulary) -> None:
    for seed in SEEDS:
        rows: list[Row] = make(random.Random(seed), 120, words)
        assert not any(row.marked for row in rows)
        once = defaultdict[tuple[str, str], set[str]](set)
        for row in rows:
            once[row.instruction, row.input].add(row.answer)
        assert all(len(found) == 1 for found in once.values())
        if make.__name__ in ("constant", "paraphrased", "rare", "per_row"):
            for row in rows:
                named = named_labels(row.instruction, words)
                assert len(named) < 2 or row.answer in named
        if make.__name__ == "rare":
            assert 0.05 <= min(Counter(row.answer for row in rows).values()) / len(rows) <= 0.1
        if make.__name__ == "few":
            assert 8 <= len(rows) <= 30


@VOCABULARIES
def test_opposites_and_several_questions_are_answered_apart(words: Vocabulary) -> None:
    for seed in SEEDS:
        assert shares_of_inputs(instruction_corpora.opposed(random.Random(seed), 200, words))[1] < 0.2
        assert shares_of_inputs(instruction_corpora.several(random.Random(seed), 200, words))[1] < 0.9
    wordings = [shares_of_inputs(instruction_corpora.paraphrased(random.Random(seed), 200, words)) for seed in range(20)]
    assert all(same > (0.7 if words.slips else 0.999) for under_several, same in wordings if under_several)
    assert sum(under_several > 0.5 for under_several, _ in wordings) >= 5


@VOCABULARIES
@pytest.mark.parametrize("kind", [None, *KINDS])
def test_a_seed_makes_the_same_rows(kind: str | None, words: Vocabulary) -> None:
    made = make_instructions(7, kind, severe=False, words=words)
    assert made == make_instructions(7, kind, severe=False, words=words)
    assert made.rows != make_instructions(8, kind, severe=False, words=words).rows
    assert len(made.rows) == len(made.marked)
    assert (made.task is None) == (kind is None)
    own = [mark for row, mark in zip(made.rows, made.marked, strict=True) if row["task"] == made.task]
    assert sum(own) == sum(made.marked)
    assert kind or not own


def test_rows_come_in_all_forms() -> None:
    found = Counter[tuple[str, bool]]()
    for seed in range(1, 13):
        for row in make_instructions(seed, None, severe=False).rows:
            form = "text" if isinstance(row["prompt"], str) else str(len(row["prompt"]))
            found["columns" if "instruction" in row else form, "answer" in row] += 1
            if "instruction" in row:
                assert row["prompt"] == f"{row['instruction']}\n\n{row['input']}"
    assert found.keys() == {(form, said) for form in ("text", "1", "2", "columns") for said in (True, False)}


def test_an_unknown_kind_is_refused() -> None:
    with pytest.raises(ValueError, match="unknown kind 'other'"):
        make_instructions(1, "other", severe=True)
