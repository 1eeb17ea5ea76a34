"""Frequency, forms of answers, duplicates and the stage, against values worked out by hand."""

import dataclasses
import random
import tracemalloc

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mixwright.audit.checks.duplicates import Duplicates
from mixwright.audit.checks.frequency import Frequency
from mixwright.audit.checks.options import Options
from mixwright.audit.holes import coarse_form
from mixwright.audit.stage import run_audit
from mixwright.audit.text import count_tokens
from mixwright.catalog import create, list_defaults, listing
from mixwright.corpus import Corpus
from mixwright.errors import InputError
from mixwright.records import Example, Observation


def corpus(*rows: tuple[str, str, str], levels: list[float | None] | None = None, split: str = "train") -> Corpus:
    return Corpus.from_examples(
        Example(f"{split}{i}", task, prompt, answer=answer, split=split, level=levels[i] if levels else None)
        for i, (task, prompt, answer) in enumerate(rows)
    )


def warnings(seen: list[Observation]) -> list[Observation]:
    return [observation for observation in seen if observation.severity != "info"]


def answered(task: str, answers: list[str]) -> list[tuple[str, str, str]]:
    return [(task, f"question {task} {i}", answer) for i, answer in enumerate(answers)]


# frequency


def test_tokens_are_words_digits_and_signs() -> None:
    assert count_tokens("The sum: -12.5 x_1") == 11  # The sum : - 1 2 . 5 x _ 1


def test_shares_are_of_rows_and_of_target_tokens() -> None:
    rows = answered("short", ["7"] * 60) + answered("long", ["one two three four five six"] * 20)
    random.Random(0).shuffle(rows)
    seen = Frequency().check(corpus(*rows))
    by_task = {o.task: o for o in seen if o.severity == "info"}
    assert (by_task["short"].count, by_task["short"].total) == (60, 80)
    assert "25.0%), about 120 target tokens (66.7%" in by_task["long"].message
    assert by_task["long"].evidence == ({"share_of_rows": 0.25, "share_of_target_tokens": pytest.approx(2 / 3)},)
    assert warnings(seen) == []


def test_a_task_that_weighs_more_in_tokens_than_in_rows_is_a_warning() -> None:
    rows = answered("short", ["7"] * 90) + answered("long", ["word " * 100] * 10)
    random.Random(0).shuffle(rows)
    found = {o.task: o for o in warnings(Frequency().check(corpus(*rows))) if "target tokens" in o.message}
    assert set(found) == {"short", "long"}


def test_where_rows_have_completions_these_are_counted_and_not_the_answers_beside_them() -> None:
    taught = Corpus.from_examples(
        Example(f"{n}", "t", f"question {n}", answer="7", target=f"It is {n} <b>7</b>.", split="train") for n in range(3)
    )
    (shares, *_) = Frequency().check(taught)
    assert f"about {3 * count_tokens('It is 1 <b>7</b>.')} target tokens" in shares.message


def test_rare_tasks_are_warnings() -> None:
    rows = answered("common", ["1"] * 195) + answered("rare", ["1"] * 5)
    seen = warnings(Frequency().check(corpus(*rows)))
    assert [(o.task, o.count, o.total) for o in seen] == [("rare", 5, 200)]
    assert warnings(Frequency().check(corpus(*answered("a", ["1"] * 90), *answered("b", ["1"] * 90)))) == []


def test_eval_rows_are_not_counted_as_seen() -> None:
    assert Frequency().check(corpus(*answered("t", ["1"] * 5), split="eval")) == []


# forms of answers


@pytest.mark.parametrize(
    ("one", "other"),
    [("12", "-3.5"), ("one word", "one"), ("7, 8", "7, 8, 9"), ("3e-05", "9e-07"), ("0xff12", "0x1")],
)
def test_signs_lengths_and_decimals_are_content(one: str, other: str) -> None:
    assert coarse_form(one) == coarse_form(other)


@pytest.mark.parametrize(("one", "other"), [("12", r"\boxed{12}"), ("1/2", "$1/2$"), ("12", "#### 12"), ("12", "twelve")])
def test_markup_and_kind_are_form(one: str, other: str) -> None:
    assert coarse_form(one) != coarse_form(other)


def test_of_long_answers_the_last_line_counts() -> None:
    assert coarse_form("So first I think about it. " * 20 + "\n#### 42") == coarse_form("#### 7")


# duplicates


def words(count: int, seed: int = 0) -> list[str]:
    rng = random.Random(seed)
    return ["".join(rng.choices("abcdefghijklmnop", k=12)) for _ in range(count)]


def test_repeats_are_counted_and_shown() -> None:
    rows = [("t", f"Say {one} and {two}", one) for one, two in zip(words(60), words(60, 1), strict=True)]
    again = [(task, f" {prompt.upper()}.", answer) for task, prompt, answer in rows[:7]]
    (found,) = Duplicates().check(corpus(*rows, *rows[:5], *again))
    assert (found.severity, found.count, found.total) == ("warning", 12, 72)
    assert "(5 " in found.message
    assert (found.evidence[0]["repeat_id"], found.evidence[0]["first_id"]) == ("train60", "train0")


def test_repeats_that_a_small_space_explains_are_an_info() -> None:
    rng = random.Random(0)
    pairs = [(rng.randint(10, 40), rng.randint(10, 40)) for _ in range(300)]
    (found,) = Duplicates().check(corpus(*(("t", f"Add {a} to {b}", str(a + b)) for a, b in pairs)))
    assert (found.severity, found.count) == ("info", 300 - len(set(pairs)))
    assert "by chance" in found.null


@given(st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from("xyz")), min_size=1, max_size=30), st.randoms())
def test_duplicates_do_not_depend_on_order(rows: list[tuple[str, str]], rng: random.Random) -> None:
    def counts(items: list[tuple[str, str]]) -> list[tuple[str, int, int]]:
        seen = Duplicates().check(corpus(*(("t", prompt, answer) for prompt, answer in items)))
        return [(o.severity, o.count, o.total) for o in seen]

    found = counts(rows)
    repeats = len(rows) - len(set(rows))
    assert [count for _, count, _ in found] == [repeats]
    assert counts(rng.sample(rows, len(rows))) == found


# options


def choices(*rows: tuple[str, object], grader: str = "exact", column: str = "options", prompt: str = "Which?") -> Corpus:
    """Rows of an answer and a column of options; None stands for a row without the column."""
    examples = [
        Example(f"r{n}", "t", prompt, answer=answer, extra={} if options is None else {column: options})
        for n, (answer, options) in enumerate(rows)
    ]
    return Corpus.from_examples(examples, {"t": grader})


@pytest.mark.parametrize("order", range(3))
def test_of_two_rows_that_nearly_repeat_each_other_one_is_counted_whatever_the_order(order: int) -> None:
    rng = random.Random(1)
    words = [f"{first}{second}" for first in ("ba", "ke", "li", "mo", "nu") for second in "bdfgklmnprst"]
    prompts = [" ".join(rng.choices(words, k=30)) for _ in range(60)]
    prompts += [f"well {prompt} then" for prompt in prompts[:20]]
    rows = [Example(f"row{n}", "task", prompt, answer=f"owl{n % 60}") for n, prompt in enumerate(prompts)]
    random.Random(order).shuffle(rows)
    near = [one for one in Duplicates().check(Corpus.from_examples(rows)) if "nearly" in one.message]
    assert [(one.severity, one.count) for one in near] == [("warning", 20)]
    named = {str(pair["near_id"]) for pair in near[0].evidence}
    assert len(named) == 20


def test_options_and_answers_in_all_forms_that_can_be_read_are_an_info() -> None:
    labelled = {"text": ["red", "green"], "label": ["1", "2"]}
    rows = [("B", ["red", "green"]), ("(b)", ["red", "green"]), ("Green", ["red", "green"]), ("B) green", ["red", "green"])]
    rows += [("2", labelled), ("green", {"A": "red", "B": "green"}), ("0", ["red", "green"]), ("1", ["0", "1"])]
    rows += [("red is a colour, too, so the answer is (B)", ["red", "green"])]
    (seen,) = Options().check(choices(*rows))
    assert (seen.severity, seen.count, seen.total, seen.evidence) == ("info", 9, 9, ())


def test_answers_that_are_no_option_and_options_that_say_the_same_are_warnings_with_their_rows() -> None:
    fine = [("A", ["red", "green"])] * 6
    seen = Options().check(
        choices(*fine, ("C", ["red", "green"]), ("blue", ["red", "green"]), ("A", ["Red", " red ", "green"]))
    )
    answer, repeated = seen
    assert (answer.severity, answer.count, answer.total) == ("warning", 2, 9)
    assert [row["id"] for row in answer.evidence] == ["r6", "r7"]
    assert answer.evidence[1]["options"] == ["red", "green"]
    assert (repeated.severity, repeated.count, repeated.total) == ("warning", 1, 9)
    assert [row["id"] for row in repeated.evidence] == ["r8"]
    genes = [("A", ["BB Bb", "Bb bb", "BB bb"]), ("B", ["WW or Ww", "WW or ww"])]
    assert [one.severity for one in Options().check(choices(*genes))] == ["info"], "case is what they differ in"


def test_rows_without_options_are_a_warning_where_the_others_have_some_and_the_prompt_lists_none() -> None:
    fine = [("A", ["red", "green"])] * 4
    (seen,) = Options().check(choices(*fine, ("A", None), ("A", []), ("A", ["red"]), ("A", ["red", ""])))
    assert (seen.severity, seen.count, seen.total) == ("warning", 4, 8)
    assert [row["id"] for row in seen.evidence] == ["r4", "r5", "r6", "r7"]
    listed = "Which?\nA) red\nB) green"
    (seen,) = Options().check(choices(*fine, ("A", None), ("B", None), prompt=listed))
    assert (seen.severity, seen.count, seen.total) == ("info", 4, 6)
    free = [("72", None)] * 5
    (seen,) = Options().check(choices(("A", ["red", "green"]), *free))
    assert (seen.severity, seen.count) == ("info", 1), "most rows of the task are answered freely"
    (seen,) = Options().check(choices(("A", ["red", "green"]), *free, grader="choice"))
    assert (seen.severity, seen.count, seen.total) == ("warning", 5, 6)
    assert Options().check(choices(*free)) == []


# splits that share nothing

TRAIN_WORDS, EVAL_WORDS = ("apple river stone cloud", "amber violet copper silver")
FORMS = ("answer", "completion", "text", "chat", "pairs", "options", "no words")


def one_row(form: str, split: str, n: int) -> Example:
    """A row whose words no row of the other split has."""
    own = (TRAIN_WORDS if split == "train" else EVAL_WORDS).split()
    words = f"{own[n % 4]} {own[n // 4 % 4]}{n} {own[n // 16 % 4]}"
    name, task = f"{split} {form} {n}", f"{split} {form}"
    if form == "answer":
        return Example(name, task, words, answer=own[n % 3], target=own[n % 3], level=float(n % 2), split=split)
    if form == "completion":
        return Example(name, task, words, target=f"{words}, {own[0]}.", split=split)
    if form == "text":
        return Example(name, task, "", target=words, split=split)
    if form == "chat":
        turns = [{"role": "user", "content": words}, {"role": "assistant", "content": own[1]}]
        turns.append({"role": "user", "content": f"{words} {own[2]} {own[3]} {own[0]} {own[1]}"})
        return Example(name, task, tuple(turns), target=({"role": "assistant", "content": own[0]},), split=split)
    if form == "pairs":
        return Example(name, task, words, chosen=f"{own[0]} {words}", rejected=own[1], split=split)
    if form == "options":
        return Example(name, task, words, answer="A", target="A", extra={"options": [own[0], own[1]]}, split=split)
    sign = "-*" if split == "train" else "$."
    return Example(name, task, sign[n % 2], answer=sign, target=sign, split=split)


@pytest.mark.parametrize("name", listing("checks"))
@given(
    st.lists(st.tuples(st.sampled_from(FORMS), st.sampled_from([1, 2, 40])), max_size=3),
    st.lists(st.tuples(st.sampled_from(FORMS), st.sampled_from([1, 2, 40])), max_size=3),
)
@settings(max_examples=40, deadline=None)
def test_every_check_reads_splits_that_share_nothing(
    name: str, train: list[tuple[str, int]], held_out: list[tuple[str, int]]
) -> None:
    """Other tasks, forms and words on either side, one row or none of them: observations, and no leak."""
    halves = {"train": dict(train), "eval": dict(held_out)}
    rows = [one_row(form, split, n) for split, sizes in halves.items() for form, size in sizes.items() for n in range(size)]
    seen = create("checks", name).check(Corpus.from_examples(rows))
    assert all(0 <= one.count <= one.total for one in seen)
    if name in ("contamination", "reworded"):
        assert [one for one in seen if one.severity != "info" or one.evidence] == []


# the stage


def test_the_stage_runs_every_check_errors_first() -> None:
    rows = [
        Example(f"a{i}", "t", f"What is {i} + 1000?", answer=str(i + 1000), extra={"options": [str(i + 1000), str(i)]})
        for i in range(40)
    ]
    held_out = [dataclasses.replace(row, id=f"eval {row.id}", split="eval") for row in rows]
    seen = run_audit(Corpus.from_examples([*rows, *held_out]))
    unheard = {"error_clusters", "preferences", "reworded", "traces", "unseen"}
    assert {o.check for o in seen} == set(list_defaults("checks")) - unheard
    named = {"code_comments", "dilution", "instructions", "styles"}
    assert set(listing("checks")) - set(list_defaults("checks")) == named, "those without a public fault run when named"
    ranks = [["error", "warning", "info"].index(o.severity) for o in seen]
    assert ranks == sorted(ranks)
    assert ranks[0] == 0
    with pytest.raises(InputError, match="contamination"):
        run_audit(Corpus.from_examples(rows), ["contaminaton"])


@pytest.mark.slow
def test_many_rows_are_read_in_bounded_memory() -> None:
    def rows() -> list[Example]:
        asked = [f"Multiply {i} by {i * 7919 % 10007}." for i in range(20_000)]
        return [
            Example(str(i), f"t{i % 5}", prompt, answer=str(i), split="train" if i % 50 else "eval")
            for i, prompt in enumerate(asked)
        ]

    whole = Corpus.from_examples(rows())
    tracemalloc.start()
    try:
        seen = run_audit(whole, ["contamination"])
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert {o.severity for o in seen} <= {"info", "warning"}
    assert peak < 16 * 2**20, peak  # 8.4 MB, 8.3 for half of the rows: a batch, samples and the index of held-out rows
