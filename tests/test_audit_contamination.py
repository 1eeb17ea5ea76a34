"""Contamination: planted leaks are found exactly, chance and templates are not called leaks."""

import math
import random
import string
import zlib
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mixwright.audit import near_duplicates
from mixwright.audit.checks.contamination import Contamination
from mixwright.audit.leaks import find_overlap
from mixwright.audit.near_duplicates import NearIndex, Siblings, have_common_passage, near_repeats, word_runs
from mixwright.audit.rows import Reader, Row, fingerprints
from mixwright.audit.stage import run_audit
from mixwright.audit.text import normal_form, read_conclusion
from mixwright.corpus import Corpus
from mixwright.records import Example, Observation
from mixwright.verbs.report import describe_example

Item = tuple[str, str]


def corpus(train: list[Item], held_out: list[Item], *, task: str = "t", eval_task: str | None = None) -> Corpus:
    rows = [("train", task, item) for item in train] + [("eval", eval_task or task, item) for item in held_out]
    return Corpus.from_examples(
        Example(f"{split}{i}", name, prompt, answer=answer, split=split, source=f"{split}.jsonl:{i}")
        for i, (split, name, (prompt, answer)) in enumerate(rows)
    )


def leaks(train: list[Item], held_out: list[Item], **options: str) -> list[Observation]:
    seen = Contamination().check(corpus(train, held_out, **options))
    return [observation for observation in seen if observation.severity != "info"]


def gcds(seed: int, count: int = 500) -> list[Item]:
    rng = random.Random(seed)
    numbers = [(rng.randint(1, 1000), rng.randint(1, 1000)) for _ in range(count)]
    return [(f"Find the greatest common divisor of {a} and {b}.", str(a % 7)) for a, b in numbers]


def story(rng: random.Random, length: int = 40) -> str:
    return " ".join("".join(rng.choices(string.ascii_lowercase, k=rng.randint(2, 9))) for _ in range(length))


def stories(seed: int, count: int) -> list[Item]:
    rng = random.Random(seed)
    return [(f"Read this and say what it is about: {story(rng)}. Your answer?", story(rng, 1)) for _ in range(count)]


@pytest.mark.gym
def test_neighbouring_seeds_of_reasoning_gym_share_499_of_500() -> None:
    import reasoning_gym

    def items(seed: int) -> list[Item]:
        return [(row["question"], row["answer"]) for row in reasoning_gym.create_dataset("gcd", seed=seed, size=500)]

    train = items(1)
    (leak,) = leaks(train, items(2))
    assert (leak.severity, leak.count, leak.total, leak.task) == ("error", 499, 500, "t")
    assert leak.evidence[0]["train_id"] == "train1"
    assert leak.evidence[0]["eval_id"] == "eval500"
    assert leak.evidence[0]["train_source"] == "train.jsonl:1"
    for distant in (100_000, 777_777):
        other = items(distant)
        shared = len({prompt for prompt, _ in train} & {prompt for prompt, _ in other})
        seen = leaks(train, other)
        assert all(observation.severity == "warning" for observation in seen)
        assert sum(observation.count for observation in seen) == shared <= 3


@pytest.mark.gym
@pytest.mark.parametrize("task", ["spell_backward", "chain_sum"])
def test_distant_seeds_of_other_tasks_are_no_error(task: str) -> None:
    import reasoning_gym

    near, here, far = (
        [(row["question"], row["answer"]) for row in reasoning_gym.create_dataset(task, seed=seed, size=300)]
        for seed in (2, 1, 100_000)
    )
    assert [o.severity for o in leaks(here, far)] in ([], ["warning"])
    assert [(o.severity, o.count) for o in leaks(here, near)] == [("error", 299)]


def test_long_templates_in_several_wordings_are_no_leak() -> None:
    wordings = ["Use {} to make {}.", "Find a way to make {1} out of {0}.", "With the numbers {} write a term equal to {}."]
    rules = "Use each number once. 1. No equals sign. 2. Only + - * / and brackets. 3. Answer with the term alone. " * 3
    rng = random.Random(0)

    def items(count: int) -> list[Item]:
        asked = [(", ".join(str(rng.randint(1, 99)) for _ in range(4)), rng.randint(100, 999)) for _ in range(count)]
        return [(f"{rng.choice(wordings).format(numbers, aim)} {rules}", "1+2") for numbers, aim in asked]

    train, held_out = items(300), items(100)
    assert leaks(train, held_out) == []
    (leak,) = leaks(train, held_out + train[:1])
    assert (leak.severity, leak.count) == ("error", 1)


@pytest.mark.gym
def test_splits_by_hash_share_nothing() -> None:
    from mixwright.config import CorpusConfig
    from mixwright.corpus import read_corpus

    spec = "reasoning-gym:gcd@1x60,chain_sum@1x60,spell_backward@1x60"
    observations = run_audit(read_corpus(CorpusConfig(spec, eval_share=0.5)), ["contamination"])
    assert [(observation.severity, observation.task) for observation in observations] == [("info", None)]


@given(st.integers(2, 40), st.integers(0, 2**32 - 1), st.sampled_from(["as it is", "case", "space", "end"]), st.booleans())
@settings(max_examples=30)
def test_planted_leaks_are_found_exactly_in_any_order(planted: int, seed: int, change: str, words: bool) -> None:
    make = stories if words else lambda s, n: [(f"Add {a} and {b}.", str(a + b)) for a, b in _pairs(s, n)]
    items = make(seed, 120)
    train, held_out = items[:70], items[70:] + items[:planted]
    changed = {"as it is": str, "case": str.upper, "space": lambda t: "  " + t.replace(" ", "  "), "end": lambda t: t[:-1]}
    train = [(changed[change](prompt), answer) for prompt, answer in train]
    rng = random.Random(seed)
    rng.shuffle(train)
    rng.shuffle(held_out)
    (leak,) = leaks(train, held_out)
    assert (leak.severity, leak.count, leak.total) == ("error", planted, 50 + planted)
    exact = int(leak.message.split("(")[1].split()[0])
    assert exact == (planted if change == "as it is" else 0)


def _pairs(seed: int, count: int) -> list[tuple[int, int]]:
    rng = random.Random(seed)
    return [divmod(n, 1000) for n in rng.sample(range(10_000, 1_000_000), count)]


@given(st.integers(0, 2**32 - 1), st.integers(1, 60), st.integers(1, 60))
@settings(max_examples=30)
def test_without_a_planted_leak_there_is_none(seed: int, train: int, held_out: int) -> None:
    for items in (
        stories(seed, train + held_out),
        [(f"{a} - {b} = ?", str(a - b)) for a, b in _pairs(seed, train + held_out)],
    ):
        assert leaks(items[:train], items[train:]) == []


def test_chance_overlap_is_a_warning_with_its_null_and_more_is_an_error() -> None:
    train = gcds(1)
    other = [item for item in gcds(2) if item[0] not in dict(train)]
    (few,) = leaks(train, other[:499] + train[:1])
    (many,) = leaks(train, other[:480] + train[:20])
    assert (few.severity, few.count) == ("warning", 1)
    assert few.null.startswith("by chance 0.2")  # 500 x 500 / 1000^2 = 0.25
    assert (many.severity, many.count) == ("error", 20)


def test_one_leaked_story_is_an_error_since_chance_never_writes_it_twice() -> None:
    items = stories(5, 1000)
    (leak,) = leaks(items[:501], items[500:])
    assert (leak.severity, leak.count, leak.total) == ("error", 1, 500)


def test_a_small_space_still_leaks_and_its_size_is_said() -> None:
    everything = [(f"What is {a} plus {b}?", str(a + b)) for a in range(1, 10) for b in range(10)]
    rng = random.Random(0)
    train, held_out = (rng.choices(everything, k=60) for _ in range(2))
    shared = sum(item in train for item in held_out)
    (leak,) = leaks(train, held_out)
    assert (leak.severity, leak.count) == ("error", shared)
    space = float(leak.null.split("once in ")[1].split()[0])
    assert 45 < space < 180  # there are 90 prompts


def test_one_number_or_sign_more_or_less_is_another_item() -> None:
    train = [("What is 12 - 3?", "9"), ("Is 1.5 large?", "no"), ("Sort ] [ .", "x"), ("What is -4 squared?", "16")]
    held_out = [("What is 12 3?", "9"), ("Is 15 large?", "no"), ("Sort ] [ ,", "x"), ("What is 4 squared?", "16")]
    assert leaks(train, held_out) == []


def test_the_same_prompt_with_another_answer_is_reported_apart() -> None:
    items = stories(1, 60)
    (other,) = leaks(items[:30], [*items[30:], (items[0][0], "something else")])
    assert (other.severity, other.count, other.total) == ("warning", 1, 31)
    assert other.evidence[0]["train_id"] == "train0"


def test_leaks_are_found_across_task_names_and_chat() -> None:
    items = stories(2, 40)
    chat = [
        Example(f"c{i}", "exam", ({"role": "user", "content": prompt},), answer=answer, split="eval")
        for i, (prompt, answer) in enumerate(items[:20])
    ]
    plain = [Example(f"p{i}", "mixture", prompt, answer=answer) for i, (prompt, answer) in enumerate(items)]
    (leak,) = [o for o in Contamination().check(Corpus.from_examples([*plain, *chat])) if o.severity != "info"]
    assert (leak.severity, leak.task, leak.count) == ("error", "exam", 20)
    assert leak.evidence[0]["train_task"] == "mixture"


def test_nearly_the_same_words_are_found_and_other_numbers_are_not() -> None:
    rng = random.Random(3)
    items = [(f"{story(rng, 20)} {rng.randint(2, 99)} times. {story(rng, 20)}?", story(rng, 1)) for _ in range(60)]
    reworded = [(f"Please: {prompt[:-1]} dear?", answer) for prompt, answer in items[:8]]
    renumbered = [(prompt.replace(" times", "7 times"), answer) for prompt, answer in items[8:16]]
    (near,) = leaks(items[:40], items[40:] + reworded + renumbered)
    assert (near.severity, near.count, near.total) == ("error", 8, 36)
    assert describe_example(near.evidence[0]).count(" ~ ") == 1
    assert {row["train_id"] for row in near.evidence} <= {f"train{i}" for i in range(8)}


def test_similarity_is_jaccard_of_word_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    held_out = Row(0, "t", "eval", "a b c d e f g h i j", "x")  # 8 runs of three words
    train = Row(1, "t", "train", "a b c d e f g h i k", "x")  # 7 of them, and one other: 7 / 9
    index = NearIndex([held_out])
    for similarity, found in ((7 / 9, [0]), (7 / 9 + 0.01, [])):
        monkeypatch.setattr(near_duplicates, "NEAR_SIMILARITY", similarity)
        assert index.find_near(train) == found
    monkeypatch.setattr(near_duplicates, "NEAR_SIMILARITY", 0.0)
    assert index.find_near(train._replace(answer="y")) == []


def test_runs_are_of_three_words_that_follow_each_other() -> None:
    assert word_runs(["one", "two", "3", "three", "four"]) == {zlib.crc32(b"one two three"), zlib.crc32(b"two three four")}
    assert word_runs(["one", "two"]) == set()


def test_a_passage_is_a_sentence_of_six_words_beside_another_of_each() -> None:
    long, short = "A dog of mine sleeps here", "A dog sleeps here now"
    for passage, shared in ((long, True), (short, False)):
        assert have_common_passage(f"{passage}. Who sleeps?", f"{passage}. Where is it?") is shared
    assert not have_common_passage(f"{long}. Who sleeps?", f"{long}."), "one of them has nothing else"


def test_near_duplicates_expected_by_chance_by_hand() -> None:
    held_out = Row(0, "t", "eval", "a b c d e f g h i j", "x")
    alike = Row(1, "t", "train", "a b c d e f g h i k", "y")
    others = [alike, alike._replace(prompt="l m n o p q r s"), alike._replace(prompt="with 12 words of its own")]
    index, nothing_known = NearIndex([held_out]), Siblings()
    # two of three have as many numbers, none of them the answer: two rows agree in (0 + 1) / (2 + 2) of the cases, so the
    # odds are 1/3; one is worded alike, at most 1 + 2 sqrt(1) of the three, 5 of five rows; and one pair that nobody saw
    assert index.expected_near([0], others, 5, nothing_known) == pytest.approx(1 - math.exp(-(5 + 1) / 3))
    # of three pairs of train that are worded like near-duplicates two agree: (2 + 1/4) / (3 + 1), odds of 9/7
    known = replace(nothing_known, worded_near_pairs=3, near_pairs=2)
    assert index.expected_near([0], others, 5, known) == pytest.approx(1 - math.exp(-(5 * 9 / 7 + 1 / 3)))
    # of eight pairs that are less alike seven agree: (7 + 1/4) / (8 + 1), odds of 29/7, for what was not seen as well
    known = replace(nothing_known, distant_pairs=8, agreeing_pairs=7)
    assert index.expected_near([0], others, 5, known) == pytest.approx(1 - math.exp(-6 * 29 / 7))


def test_a_near_copy_is_an_error_where_no_other_rows_are_worded_alike() -> None:
    rng = random.Random(5)
    items = [(story(rng, 30), rng.choice(["yes", "no"])) for _ in range(500)]
    copies = [(f"So {prompt} then", answer) for prompt, answer in items[:8]]
    (near,) = leaks(items[:400], items[400:] + copies)
    assert (near.severity, near.count) == ("error", 8)


def test_up_to_5000_rows_are_looked_for_among_all() -> None:
    rng = random.Random(8)
    items = [story(rng, 12) for _ in range(2501)]
    rows = [Example(f"{n}", "t", text, answer="x") for n, text in enumerate([*items, *(f"{text} end" for text in items)])]
    same = Corpus.from_examples(rows)
    (found,) = near_repeats(same, Reader(same), np.arange(len(rows)))
    assert (found.rows_sought, len(found.pairs)) == (5000, 2501)  # a copy, not its original


def test_tasks_that_resemble_themselves_are_measured_by_that() -> None:
    rng = random.Random(0)
    frame = [story(rng, 1) for _ in range(30)]

    def items(count: int) -> list[Item]:
        return [(" ".join([*frame[:15], story(rng, 1), *frame[15:]]), rng.choice(["yes", "no"])) for _ in range(count)]

    assert leaks(items(100), items(50)) == []


def test_without_two_splits_there_is_nothing_to_compare() -> None:
    only = Corpus.from_examples([Example("a", "t", "p", answer="x")])
    (info,) = Contamination().check(only)
    assert (info.severity, info.count, info.total) == ("info", 0, 0)


@given(st.lists(st.tuples(st.sampled_from("abcd"), st.sampled_from(["x", "y", ""]), st.booleans()), min_size=2, max_size=40))
def test_overlap_agrees_with_a_plain_recomputation(rows: list[tuple[str, str, bool]]) -> None:
    examples = [
        Example(str(i), "t", prompt, answer=answer or None, split="eval" if held_out else "train")
        for i, (prompt, answer, held_out) in enumerate(rows)
    ]
    found = find_overlap(fingerprints(Corpus.from_examples(examples)))
    train = [(prompt, answer) for prompt, answer, held_out in rows if not held_out]
    for at, (prompt, answer, _) in enumerate(row for row in rows if row[2]):
        answers = [other for text, other in train if text == prompt]
        shared = bool(answers) and (answer in answers or not answer or "" in answers)
        assert found.shared[at] == shared
        assert found.other_answer[at] == (bool(answers) and not shared)
        assert (found.partner[at] >= 0) == bool(answers)
    asked = [(prompt, answer) for prompt, answer, held_out in rows if held_out]
    for number, (prompt, answer, held_out) in enumerate(rows):
        others = [other for text, other in asked if text == prompt]
        assert found.copied[number] == (not held_out and any(not answer or other in (answer, "") for other in others))


@pytest.mark.parametrize(
    ("text", "folded"),
    [
        ("  What IS  it?\n", "what is it"),
        ("He said \u201cyes\u201d.", "he said yes"),
        ("4 - 1 = 3.5, ok", "4 - 1 = 3.5 ok"),
        ('He said "yes."', "he said yes"),
        ("It's 5' high", "it's 5' high"),
        ("a . b", "a . b"),
        ("Is it in Paris , or in Rome ?", "is it in paris , or in rome"),
        ("What tone has: Go away ...", "what tone has go away ..."),
        ("so ? one : two", "so ? one : two"),
        ("if x:\n   y\n   z", "if x:\n   y\n   z"),
    ],
)
def test_normal_form(text: str, folded: str) -> None:
    assert normal_form(text) == folded


def test_that_nothing_was_found_is_said_with_what_was_compared() -> None:
    seen = Contamination().check(corpus(stories(1, 30), stories(2, 20)))
    (nothing,) = (observation for observation in seen if observation.message.startswith("No held-out item was found"))
    assert (nothing.severity, nothing.task, nothing.count, nothing.total) == ("info", None, 0, 20)
    leaky = Contamination().check(corpus(stories(1, 30), stories(1, 20)))
    assert not [observation for observation in leaky if observation.message.startswith("No held-out item")]


def test_another_answer_counts_within_the_task_where_train_has_it() -> None:
    """`ship` is `ships` in one task and `navire` in another; where train lacks the task, its prompts elsewhere are told."""
    rows = [Example(f"t{n}", "plural", word, answer=f"{word}s") for n, word in enumerate(("ship", "tree", "lamp"))]
    rows += [Example(f"f{n}", "french", word, answer=f"le {word}") for n, word in enumerate(("door", "wall", "roof"))]
    asked = [("french", "ship", "navire"), ("french", "door", "porte"), ("german", "tree", "Baum")]
    held_out = [Example(f"e{n}", task, word, answer=answer, split="eval") for n, (task, word, answer) in enumerate(asked)]
    found = Contamination().check(Corpus.from_examples([*rows, *held_out]))
    told = {one.task: [pair["eval_id"] for pair in one.evidence] for one in found if "with another answer" in one.message}
    assert told == {"french": ["e1"], "german": ["e2"]}


@pytest.mark.parametrize(
    ("text", "conclusion"),
    [
        ("From 3 to 5 o'clock are 2 hours, so with the 10 of before there are 12 hours.", "12"),
        ("Select the first of 3 lists: it has 42 names, and 8 more were added later on, so 50", "50"),
        ("SELECT a FROM t WHERE a.b = (SELECT MAX(c) FROM u AS u0) LIMIT 1", "select a from t where a.b"),
        ("def f(x):\n    return x + 1", "def f(x) return x + 1"),
        ("import math\nprint(math.pi, 2)  # shown with all of its digits on the screen", "import math print"),
        ("def f(x):\n    return 72  #### 72", "72"),
    ],
)
def test_the_last_number_of_a_query_or_a_program_is_no_answer(text: str, conclusion: str) -> None:
    assert read_conclusion(text).startswith(conclusion)
