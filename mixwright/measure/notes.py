"""Notes on a measuring that its reader needs: a grader that gave nothing to anything, and completions that were cut."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from mixwright.corpus import Corpus
from mixwright.corpus.chosen_graders import CUT_MARK, FirstAnswer, choose_grader
from mixwright.estimates.chance import RIGHT_FROM_SCORE
from mixwright.measure.former import same_tokens
from mixwright.measure.stage import MeasureResult
from mixwright.records import Example, Observation

if TYPE_CHECKING:
    from mixwright.answers.table import Answers
    from mixwright.learner.learner import Learner

NOISE_NOTE = "noise floor"
"""Check of the note on how many greedy answers change when nothing but the batches does, and what the store keeps the counts
under. Rounding depends on which prompts are computed together, and where two tokens are about as likely it decides."""
TOKENIZER_NOTE = "tokenizer"
"""Check of a note on what two models read or end with differently."""
NOTHING_RIGHT_NOTE, UNREAD_NOTE, CUT_NOTE = "nothing right", "answers not read", "cut"
"""What `Observation.check` of a note says."""
GRADER_NOTES = (NOTHING_RIGHT_NOTE, UNREAD_NOTE)
"""Those that a grader may be to blame for."""
WARNING_CUT_SHARE = 0.05
"""Share of completions cut from which it is a warning."""
COMPLETIONS_READ = 400
"""Completions of a task of which nothing was right that are read for another grader."""
SHOWN_CHARACTERS = 80
"""Characters of an answer or a completion that are quoted."""


def list_notes(results: Mapping[str, MeasureResult], corpus: Corpus, max_new_tokens: int) -> list[Observation]:
    """Notes about what was measured, first the tasks of which nothing was right.

    Args:
        results: when (`before`, `after`) -> what was measured.
        corpus: what graders are named in.
        max_new_tokens: where completions were cut.
    """
    notes = note_nothing_right(list(results.values()), corpus)
    for time, result in results.items():
        if result.cut > 0:
            share, is_much = f"{result.cut:.1%} of completions", result.cut > WARNING_CUT_SHARE
            side = f" {time}" if len(results) > 1 else ""
            message = f"{share}{side} were cut at {max_new_tokens:,} tokens and graded up to the cut"
            remedy = "Raise --max-new-tokens, or find out why the model does not stop." if is_much else ""
            count = round(result.cut * len(result.answers))
            notes.append(
                Observation(CUT_NOTE, None, "warning" if is_much else "info", count, len(result.answers), message, remedy)
            )
        notes += result.notes
    return notes


def note_nothing_right(results: Sequence[MeasureResult], corpus: Corpus) -> list[Observation]:
    """Tasks of which no completion, greedy or sampled, was right in any of the results, each with an example.

    Where the answers stand in sentences that another grader reads, that one is named. Of a single model it is no fault: a
    task that it has yet to learn is like that.
    """
    names = ("greedy", "pass@1")
    rows = [row for result in results for row in result.measurements if row.probe == "competence" and row.name in names]
    items = Counter(row["task"] for row in results[-1].completions)
    right = {row.task for row in rows if row.value > 0}
    time_text, meaning = " before or after", "so it has not been learned, as far as can be seen"
    if len(results) == 1:
        time_text, meaning = "", "as is usual before training"
    notes = []
    for task in sorted(set(items) - right):
        answers = [
            FirstAnswer(Example(row["example"], task, row["prompt"], answer=row["answer"]), row["completion"], row["cut"])
            for result in results
            for row in result.completions
            if row["task"] == task
        ]
        grader = corpus.tasks[task].grader
        choice = choose_grader(task, grader, answers[:COMPLETIONS_READ], named_by_user=True)
        if choice.answers_in_sentences:
            check, quoted = UNREAD_NOTE, choice.examples[0]
            message, remedy = f"no answer of task {task!r} was right{time_text}, but {choice.why}", f"Use {choice.remedy}."
        else:
            check, last = NOTHING_RIGHT_NOTE, answers[-items[task] :]  # of the last result
            quoted = next((answer for answer in last if answer.completion.strip()), last[0])
            message = (
                f"no answer of task {task!r} was right{time_text}, {meaning}; the answers look like "
                f"{_shorten_end(quoted.example.answer or '')}, the completions look like {_shorten_end(quoted.completion)}"
            ) + CUT_MARK * quoted.cut
            remedy = f"If you expected right answers, check the grader ({grader}), the prompts and --max-new-tokens."
        completion = quoted.completion + CUT_MARK * quoted.cut
        evidence = ({"example": quoted.example.id, "answer": quoted.example.answer, "completion": completion},)
        severity = "info" if check == NOTHING_RIGHT_NOTE and len(results) == 1 else "warning"
        notes.append(Observation(check, task, severity, items[task], items[task], message, remedy, "", evidence))
    return notes


def _shorten_end(text: str) -> str:
    """The end of a text on one line: that is where an answer stands."""
    line = " ".join(text.split())
    return repr(line if len(line) <= SHOWN_CHARACTERS else f"... {line[-SHOWN_CHARACTERS:]}")


def compare_tokenizers(before: Learner, after: Learner) -> list[Observation]:
    """Return a warning for a chat template, end tokens or a vocabulary that two models do not share."""
    templates = [learner.tokenizer.chat_template for learner in (before, after)]
    ends = [learner.tokenizer.convert_ids_to_tokens(sorted(learner.end_ids)) for learner in (before, after)]
    texts = {
        "The chat templates differ.": templates[0] != templates[1],
        f"The end tokens differ: {' '.join(map(str, ends[0]))} and {' '.join(map(str, ends[1]))}.": ends[0] != ends[1],
        "The vocabularies differ.": not same_tokens(before, after),
    }
    remedy = "Save the tokenizer and generation_config.json of the trained model beside the exported one."
    return [Observation(TOKENIZER_NOTE, None, "warning", 1, 1, text, remedy) for text, differs in texts.items() if differs]


def count_changes(first: Answers, second: Answers) -> dict[str, int]:
    """Count answers to the same items, those whose grade changed (`turned`), and those whose text did (`reworded`)."""
    again = {row["example"]: row for row in second.first_rows()}
    pairs = [(row, again[row["example"]]) for row in first.first_rows() if row["example"] in again]
    turned = sum((old["score"] >= RIGHT_FROM_SCORE) != (new["score"] >= RIGHT_FROM_SCORE) for old, new in pairs)
    reworded = sum(old["completion"] != new["completion"] for old, new in pairs)
    return {"answers": len(pairs), "turned": turned, "reworded": reworded}


def note_noise(floor: Mapping[str, int], name: str) -> Sequence[Observation]:
    """Return the note on a model's noise floor; none without answers."""
    if not (answers := floor.get("answers", 0)):
        return ()
    shares = [f"{100 * floor[kind] / answers:.2g}" for kind in ("turned", "reworded")]
    message = f"Noise floor: asked again in batches of {floor['batch']}, {name} changed the grade of {shares[0]} and the "
    message += f"text of {shares[1]} in 100 answers ({answers:,} answers)."
    return (Observation(NOISE_NOTE, None, "info", floor["turned"], answers, message, ""),)
