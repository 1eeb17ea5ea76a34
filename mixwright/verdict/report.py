"""Report of a verdict on a terminal: the answer, the tasks, what changed, why, and what to do next, in 25 lines."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.text import Text

from mixwright.records import AnswerPair, TaskChange, TaskWord, Verdict
from mixwright.verdict.page.text import format_interval, format_signed, format_value, to_line
from mixwright.verdict.words import (
    describe_certainty,
    describe_parts,
    has_interval,
    is_in_wrong_format,
    list_rows,
    name_task,
    say_average,
    show_word,
)

MAX_LINES, MAX_ROWS, MAX_NAME, MAX_WIDTH = 25, 10, 32, 110
"""Lines of a report without `full`, rows of its table, characters of a task's name, and of a line that is wrapped or cut."""
PAIR_LINES = 3
"""Lines of a pair of answers."""
STYLE_BY_WORD: dict[TaskWord, str] = {"lost": "red", "less dependent": "red", "learned": "cyan"}
STYLE_BY_OUTCOME = {"passed": "bold cyan", "damaged": "bold red", "inconclusive": "bold yellow"}


def show_report(console: Console, verdict: Verdict, page: str, *, full: bool = False, certainty: bool = False) -> None:
    """Print the report.

    Args:
        console: a terminal or a file.
        verdict: what is reported.
        page: path of the page.
        full: every task and level, and no limit of lines.
        certainty: how sure the verdict is, too.
    """
    width = min(console.width, MAX_WIDTH)
    lines = [*_wrap(verdict.headline, width, STYLE_BY_OUTCOME[verdict.outcome]), Text()]
    lines += _list_tasks(verdict, full=full)
    end = [part for line in (*verdict.why[:2], say_average(verdict)) for part in _wrap(line, width, "")]
    if certainty or full:
        end += [Text(f"  {to_line(line, limit=400)}") for line in describe_certainty(verdict)]
    steps = verdict.next if full else verdict.next[:1]
    end += [Text(f"{to_line(step.text)}:  {to_line(step.command, limit=1000)}") for step in steps]
    options = {"--full (all of it)": full, "--why (how sure)": full or certainty}
    more = ", ".join(option for option, given in options.items() if not given)
    end.append(Text(f"Page: {page}   {more and f'more: {more}   '}exit code {_say_exit(verdict)}", style="dim"))
    room = MAX_LINES - len(lines) - len(end) - 1
    pairs = verdict.pairs if full else verdict.pairs[: max(room // PAIR_LINES, 0)]
    shown = [line for pair in pairs for line in _show_pair(pair, verdict, width)]
    for line in (*lines, *shown, *([Text()] if shown else []), *end):
        console.print(line, soft_wrap=True)


def _say_exit(verdict: Verdict) -> str:
    is_waived = verdict.exit_code == 0 and verdict.outcome != "passed"
    return f"{verdict.exit_code} ({verdict.outcome}{', not enforced' if is_waived else ''})"


def _wrap(text: str, width: int, style: str) -> list[Text]:
    """Break a sentence at the width of the terminal."""
    wrapped = Text(to_line(text, limit=600), style=style).wrap(Console(width=max(width, 40)), max(width, 40))
    return list(wrapped)


def _list_tasks(verdict: Verdict, *, full: bool) -> list[Text]:
    """The table of tasks, the worst first."""
    rows = list(verdict.tasks) if full else list_rows(verdict)
    shown = rows if full else rows[:MAX_ROWS]
    if not shown:
        return []
    after = to_line(verdict.after, limit=MAX_NAME)
    cells = [
        (_name_row(change, full=full), *_format_values(change, verdict), _format_change(change, verdict)) for change in shown
    ]
    header = ("", "before", after, "change")
    widths = [max(len(row[column]) for row in (header, *cells)) for column in range(len(header) - 1)]
    lines = [Text(_align(header, widths), style="dim")]
    lines += [
        Text(_align(row, widths), style="red" if is_in_wrong_format(change, verdict) else STYLE_BY_WORD.get(change.word, ""))
        for row, change in zip(cells, shown, strict=True)
    ]
    if hidden := rows[len(shown) :]:
        kept = all(change.word == "kept" for change in hidden)
        lines.append(Text(f"  and {len(hidden)} more{' kept' if kept else ''}: --full", style="dim"))
    return [*lines, Text()]


def _align(row: Sequence[str], widths: Sequence[int]) -> str:
    values = [f"{value:>{width}}" for value, width in zip(row[1:-1], widths[1:], strict=True)]
    return f"  {row[0]:<{widths[0]}}  {'  '.join(values)}   {row[-1]}".rstrip()


def _name_row(change: TaskChange, *, full: bool) -> str:
    name = name_task(change)
    if change.whole and full:
        name += " (all levels)"
    return to_line(name, limit=MAX_NAME)


def _format_values(change: TaskChange, verdict: Verdict) -> list[str]:
    return ["-" if value is None else format_value(value, verdict.unit) for value in (change.before, change.after)]


def _format_change(change: TaskChange, verdict: Verdict) -> str:
    word, unit = show_word(change, verdict), verdict.unit
    if not has_interval(change):
        return word
    size = f"{format_signed(change.change.value, unit):>5} {format_interval(change.change, unit)}"
    return f"{size}  {word} {to_line(describe_parts(change), limit=MAX_WIDTH)}".rstrip()


def _show_pair(pair: AnswerPair, verdict: Verdict, width: int) -> list[Text]:
    """The prompt and both answers, a line each."""
    room = max(width, 60) - 2
    names = [to_line(name, limit=16) for name in ("before", verdict.after)]
    longest = max(map(len, names))
    lines = [Text(_cut(f"  {to_line(pair.prompt, limit=300)}", room), style="bold")]
    for name, text, score in zip(names, (pair.before, pair.after), (pair.score_before, pair.score_after), strict=True):
        sign = " " if not (verdict.graded and pair.graded) else "✓" if score >= 1 else "✗"
        lines.append(Text(_cut(f"    {name:<{longest}} {sign} {to_line(text, limit=300) or '(empty)'}", room)))
    return lines


def _cut(text: str, room: int) -> str:
    return text if len(text) <= room else f"{text[: room - 2]} …"
