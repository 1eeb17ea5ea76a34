"""Check of prompts: markers of a chat template inside texts, other system messages in the test set, answers in the prompt.

Source: own; the faults are those of public reports (huggingface/trl 1623, QwenLM/Qwen-VL 246, mlabonne/llm-course 33).
Unit: rows of a task; for system messages rows of the two splits.
Cost: one pass; for answers 2,000 rows of each task.
Blind spot: markers that are no special token of a known family; an answer in other words.
"""

from __future__ import annotations

import json
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence

from mixwright.audit.rows import SAMPLE_ROWS, Reader, Row, rows, rows_by_task
from mixwright.contracts import Check
from mixwright.corpus import Corpus
from mixwright.records import Observation

MARKERS = re.compile(
    r"<\|[a-z_0-9]{2,24}\|>|\[/?INST\]|<</?SYS>>|</?s>|<(?:start|end)_of_turn>|<(?:bos|eos|pad|unk)>"
    r"|<｜[^｜\n]{2,24}｜>"  # noqa: RUF001 - DeepSeek's bars are fullwidth
)
"""Special tokens and turn marks of the families of chat models."""
WARNED_SHARE = 0.01
"""Share of rows with a marker that is a warning."""
DIFFERENT_SHARE = 0.5
"""Difference of the shares of rows with a system message, between the splits, from which on it is a warning."""
STATED = re.compile(r"(?i:\b(?:solution|answer|result|output|label|gold|target|correct)\b)[^\n]{0,60}$")
"""Words before an answer that give it away."""
STATED_SHARE, MIN_ANSWER, MAX_ANSWER = 0.5, 2, 60
"""Share of rows whose prompt states the answer that is a warning; characters of answers that are looked for."""
TEMPLATE_REMEDY = (
    "Use plain texts and messages, because the trainer adds the model's template. Markers in a text are plain letters."
)


class Prompts(Check):
    """Reads the prompts, and markers in completions."""

    def check(self, corpus: Corpus) -> list[Observation]:
        """Return warnings of markers and answers in prompts for each task, and of system messages for the two splits."""
        found = _observe_markers(corpus) + _observe_system_messages(corpus) + _observe_answers(corpus)
        text = "No prompt holds template markers or its own answer, and train and eval have the same system messages."
        return found or [Observation("prompts", None, "info", 0, len(corpus), text, "")]


def _observe_markers(corpus: Corpus) -> list[Observation]:
    counts, markers = defaultdict[str, Counter[str]](Counter), defaultdict[str, Counter[str]](Counter)
    for row in rows(corpus.batches()):
        if row.split != "eval":
            found = set(MARKERS.findall(row.prompt)) | set(MARKERS.findall(row.written))
            markers[row.task].update(found)
            counts[row.task].update(rows=1, marked=bool(found))
    observations = []
    for task, count in sorted(counts.items()):
        if not count["marked"]:
            continue
        names = ", ".join(f"{marker} ({held:,})" for marker, held in markers[task].most_common(4))
        text = f"{count['marked']:,} of {count['rows']:,} rows hold markers of a chat template: {names}."
        is_rare = count["marked"] < max(3, WARNED_SHARE * count["rows"])  # an answer about HTML or about templates
        severity, remedy = ("info", "") if is_rare else ("warning", TEMPLATE_REMEDY)
        observations.append(Observation("prompts", task, severity, count["marked"], count["rows"], text, remedy, "none"))
    return observations


def _observe_system_messages(corpus: Corpus) -> list[Observation]:
    """Compare the system messages of the splits; nothing without held-out rows."""
    by_split = {split: _count_system_messages(corpus, split) for split in ("train", "eval")}
    totals = {split: counter.total() for split, counter in by_split.items()}
    if not all(totals.values()):
        return []
    shares = {split: 1 - counter[""] / totals[split] for split, counter in by_split.items()}
    common = (by_split["train"].keys() & by_split["eval"].keys()) - {""}
    is_other = min(shares.values()) >= DIFFERENT_SHARE and not common
    if abs(shares["train"] - shares["eval"]) < DIFFERENT_SHARE and not is_other:
        return []
    with_message = {split: totals[split] - by_split[split][""] for split in by_split}
    most_used = next(message for message, _ in sum(by_split.values(), Counter[str]()).most_common(2) if message)
    text = f"{with_message['train']:,} of {totals['train']:,} training rows and {with_message['eval']:,} of "
    text += f"{totals['eval']:,} held-out rows have a system message{', never the same one' * is_other}: {most_used[:80]!r}."
    remedy = "Test as you train: add the system message to the held-out rows (verdict --system), or leave it out of both."
    count = abs(with_message["train"] - with_message["eval"]) or with_message["train"]
    return [Observation("prompts", None, "warning", count, len(corpus), text, remedy, "the same in both")]


def _count_system_messages(corpus: Corpus, split: str) -> Counter[str]:
    counts = Counter[str]()
    for batch in corpus.select(split=split).batches():
        for prompt, chat in zip(batch.column("prompt").to_pylist(), batch.column("chat").to_pylist(), strict=True):
            first = json.loads(prompt)[0] if chat and prompt else {}
            counts[str(first.get("content") or "") if first.get("role") == "system" else ""] += 1
    return counts


def _observe_answers(corpus: Corpus) -> list[Observation]:
    """Report tasks whose prompts state the answer, beside how often they hold that of another row."""
    observations, reader = [], Reader(corpus)
    for task, numbers in rows_by_task(corpus, "train").items():
        drawn = reader.sample(numbers, SAMPLE_ROWS)
        read = [row for row in drawn if row.prompt and MIN_ANSWER <= len(row.answer) <= MAX_ANSWER]
        held, stated = _count_held(read, (row.answer for row in read))
        others = [read[place - 1].answer for place in range(len(read))]
        by_chance = _count_held(read, others)[0] / max(len(read), 1)
        if not read or stated / len(read) < STATED_SHARE or held / len(read) <= 2 * by_chance:
            continue
        text = f"In {stated:,} of {len(read):,} rows the prompt states the answer, such as {read[0].prompt[-60:]!r}."
        remedy = "Take the answer out of the prompt: these rows teach to copy."
        null = f"{by_chance:.0%} of prompts hold the answer of another row"
        observations.append(Observation("prompts", task, "warning", stated, len(read), text, remedy, null))
    return observations


def _count_held(read: Sequence[Row], answers: Iterable[str]) -> tuple[int, int]:
    """Count the prompts that hold an answer as a whole word, and those in which `STATED` words stand before it."""
    held = stated = 0
    for row, answer in zip(read, answers, strict=True):
        places = [match.start() for match in re.finditer(rf"(?<!\w){re.escape(answer)}(?!\w)", row.prompt)]
        held += bool(places)
        stated += any(STATED.search(row.prompt[max(place - 80, 0) : place]) for place in places)
    return held, stated
