"""Copies however they are hidden, other items however they resemble them, and what is said of both."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, cast

import pytest

from mixwright.audit.checks.contamination import Contamination
from mixwright.audit.checks.coverage import Coverage
from mixwright.audit.checks.duplicates import Duplicates
from mixwright.audit.leaks import find_leaks
from mixwright.audit.rows import Row
from mixwright.audit.text import normal_words
from mixwright.audit.wrapped import WrappedIndex
from mixwright.config import CorpusConfig
from mixwright.corpus import Corpus, read_corpus
from mixwright.errors import InputError
from mixwright.records import Example, Observation, Text

NAMES = ["Natalia", "Omar", "Priya", "Chen", "Lucas", "Amara", "Sofia", "Tariq", "Ingrid", "Kofi", "Mei", "Diego"]
THINGS = ["clips", "apples", "marbles", "stamps", "pencils", "tickets", "cookies", "shells", "cards", "ribbons"]
Item = tuple[Text, str]


def problems(seed: int, count: int) -> list[tuple[str, str]]:
    rng = random.Random(seed)
    found = {}
    while len(found) < count:
        a, b, name, other = rng.randint(10, 99), rng.randint(10, 99), *rng.sample(NAMES, 2)
        thing, place = rng.choice(THINGS), rng.choice(["market", "school", "library", "harbour", "garden"])
        text = f"{name} has {a} {thing} in a box at the {place}, and {other} gives {name} {b} more. How many {thing} now?"
        found[text] = f"First {a}, then {b} more.\n#### {a + b}"
    return list(found.items())


def examples(items: Sequence[Item], split: str, task: str = "t") -> list[Example]:
    return [
        Example(f"{split}{i}", task, prompt, answer=answer or None, split=split, source=f"{split}:{i}")
        for i, (prompt, answer) in enumerate(items)
    ]


def seen(train: Sequence[Item], held_out: Sequence[Item], task: str = "t") -> list[Observation]:
    corpus = Corpus.from_examples([*examples(train, "train"), *examples(held_out, "eval", task)])
    return Contamination().check(corpus)


def graver(train: Sequence[Item], held_out: Sequence[Item]) -> list[tuple[str, int]]:
    return [(o.severity, o.count) for o in seen(train, held_out) if o.severity != "info"]


def chat(*turns: str) -> Text:
    return tuple({"role": ("user", "assistant")[at % 2], "content": turn} for at, turn in enumerate(turns))


def invisible(text: str) -> str:
    hidden = "\u200b\u00ad\ufeff\u200e\u2060"
    wide = text.translate({ord(digit): ord(digit) + 0xFEE0 for digit in "0123456789"})
    return "".join(f"{sign}{hidden[at % 5]}" if sign.isalpha() and at % 3 == 0 else sign for at, sign in enumerate(wide))


SHOTS = "".join(f"Q: {prompt}\nA: {answer[-2:]}\n\n" for prompt, answer in problems(99, 3))
HIDDEN: dict[str, Callable[[str], Text]] = {
    "case": str.upper,
    "prefix": "Here is a problem for you. {}".format,
    "suffix": "{}\nThink step by step.".format,
    "template": "### Instruction:\nAnswer.\n\n### Input:\n{}\n\n### Response:\n".format,
    "few shots": (SHOTS + "Q: {}\nA:").format,
    "chat": lambda text: chat(
        "Hello, what can you do for me today?", "Much.", text, "Well.", "Thank you, that is all I need."
    ),
    "invisible": invisible,
}


SCRIPTS = {
    "Arabic": (
        "باع {0} {1} {2} يوم {3} ثم وجد {4} {5} فكم صار العدد عند {6} في النهاية؟",
        "ليلى أحمد يوسف مريم خالد", "تفاحة كتابا قلما كرسيا", "السبت الأحد الاثنين", "اقرأ السؤال ثم أجب برقم فقط: {} شكرا"),
    "Arabic with vowel signs": (
        "بَاعَ {0} {1} {2} يَوْمَ {3} ثُمَّ وَجَدَ {4} {5} فَكَمْ صَارَ العَدَدُ عِنْدَ {6} فِي النِّهَايَةِ؟",
        "لَيْلَى أَحْمَدُ يُوسُفُ مَرْيَمُ", "تُفَّاحَةً كِتَابًا قَلَمًا", "السَّبْتِ الأَحَدِ", "اِقْرَأْ السُّؤَالَ: {} شُكْرًا"),
    "Hebrew": (
        "{0} קנה {1} {2} ביום {3} ואז מכר {4} {5} כמה יש עכשיו אצל {6} בסוף?",
        "דנה יוסי משה רחל", "תפוחים ספרים עטים", "ראשון שני", "קרא וענה במספר בלבד: {} תודה"),  # noqa: RUF001
    "Hindi": (
        "{0} ने {3} को {1} {2} खरीदे फिर {4} {5} बेचे। अंत में {6} के पास कुल कितने हुए?",
        "सीता राम मोहन गीता", "सेब किताबें कलम", "सोमवार रविवार", "निम्नलिखित प्रश्न पढ़ें। {} धन्यवाद"),
    "Thai": (
        "{0}ซื้อ{2} {1} ชิ้นในวัน{3}แล้วขาย{5} {4} ชิ้นสุดท้าย{6}มีทั้งหมดกี่ชิ้น",
        "สมชาย ปรีชา มาลี", "ส้ม ปากกา หนังสือ", "จันทร์ เสาร์", "อ่านคำถามแล้วตอบเป็นตัวเลข: {} ขอบคุณ"),
    "Russian": (
        "{0} купила {1} {2} в {3} а затем продала {4} {5} сколько всего теперь в конце у {6}?",  # noqa: RUF001
        "Лена Анна Мария", "яблок книг ручек", "вторник субботу", "Прочитай и ответь числом: {} Спасибо"),
    "Vietnamese": (
        "{0} mua {1} quả {2} vào thứ {3} rồi bán {4} cái {5} hỏi cuối cùng {6} có bao nhiêu?",
        "Lan Nam Hùng Mai", "táo sách bút", "hai ba", "Hãy đọc kỹ và trả lời bằng một số: {} Cảm ơn"),
    "English": (
        "{0} bought {1} {2} on {3} and then sold {4} {5} so how many are now with {6} in the end?",
        "Layla Ahmed Sara Omar", "apples books pens", "Monday Friday", "Read this and answer with a number: {} Thank you"),
}  # fmt: skip
"""Script -> template, names, things and days, and an instruction around a question. Few words, each in many rows."""


def questions(script: str, seed: int, count: int) -> list[tuple[str, str]]:
    template, names, things, days, _ = SCRIPTS[script]
    rng = random.Random(seed)
    found = {}
    while len(found) < count:
        numbers = rng.randint(10, 99), rng.randint(10, 99)
        who, what, when = (part.split() for part in (names, things, days))
        slots = (
            rng.choice(who),
            numbers[0],
            rng.choice(what),
            rng.choice(when),
            numbers[1],
            rng.choice(what),
            rng.choice(who),
        )
        found[template.format(*slots)] = str(sum(numbers))
    return list(found.items())


@pytest.mark.parametrize("script", SCRIPTS)
@pytest.mark.parametrize("seed", range(2))
def test_wrapped_copies_are_an_error_in_every_script_and_disjoint_rows_are_none(script: str, seed: int) -> None:
    rows, wrap = questions(script, seed, 360), SCRIPTS[script][4].format
    held_out, train = rows[:60], rows[60:]
    copies = [(wrap(prompt), answer) for prompt, answer in held_out[10:20]]
    assert graver([*train, *copies], held_out) == [("error", 10)]
    assert graver(train, held_out) == []
    assert graver([(wrap(prompt), answer) for prompt, answer in train], held_out) == []


def test_prompts_of_a_small_space_stand_inside_others_by_chance_as_often_as_is_expected() -> None:
    """Of 12 x 12 sums with three names most held-out ones come up inside wrapped training rows, and are no leak."""
    for seed in range(4):
        rng = random.Random(seed)
        rows = [
            f"{rng.choice(['Ann', 'Bob', 'Cem'])} adds {rng.randint(1, 12)} to {rng.randint(1, 12)} here" for _ in range(500)
        ]
        train = [(f"Answer with a number: {prompt}. Thank you", "1") for prompt in rows[:400]]
        held_out = [(prompt, "1") for prompt in rows[400:]]
        assert graver(train, held_out) == []
        inside = sum(any(prompt in text for text, _ in train) for prompt, _ in held_out)
        assert inside > 30


def test_vowel_signs_and_marks_of_other_scripts_are_folded_and_words_stay_whole() -> None:
    assert normal_words("كَتَبَ؟ نعم، 5") == normal_words("كتب? نعم, 5") == ["كتب", "نعم", "5"]
    assert normal_words("שָׁלוֹם") == ["שלום"]
    assert normal_words("किताबें हैं। 5") == ["किताबें", "हैं", "5"]
    assert normal_words("कि") != normal_words("की"), "vowels of Hindi make another word"


@pytest.mark.parametrize("how", HIDDEN)
@pytest.mark.parametrize("side", ["train", "eval"])
def test_a_wrapped_copy_is_an_error_on_either_side(how: str, side: str) -> None:
    items = problems(1, 400)
    wrapped = [(HIDDEN[how](prompt), answer) for prompt, answer in items[:55]]
    if side == "train":
        found = graver([*items[200:], *wrapped], items[:200])
    else:
        found = graver([*items[200:], *items[:55]], [*wrapped, *items[55:200]])
    assert found == [("error", 55)]


def test_another_solution_with_the_same_final_answer_is_the_same_item() -> None:
    items = problems(2, 200)
    others = [(prompt, f"Adding up gives it at once.\n#### {answer.split('#### ')[1]}") for prompt, answer in items[:30]]
    assert graver([*items[100:], *others], items[:100]) == [("error", 30)]
    wrong = [(prompt, "I guess so.\n#### 1") for prompt, _ in items[:30]]
    assert graver([*items[100:], *wrong], items[:100]) == [("warning", 30)]
    assert [o.severity for o in Duplicates().check(Corpus.from_examples(examples([*items[:30], *others], "train")))] == [
        "info"
    ]


def test_what_the_grader_takes_for_right_is_the_same_answer() -> None:
    train, held_out = [(f"Halve the number {n} please.", f"{n / 2:.3f}") for n in range(1, 400, 13)], []
    held_out = [(prompt, answer.rstrip("0").rstrip(".")) for prompt, answer in train]
    rows = [*examples([(p, f"{a}e0") for p, a in train], "train"), *examples(held_out, "eval")]
    found = Contamination().check(Corpus.from_examples(rows, {"t": "numeric"}))
    assert [(o.severity, o.count) for o in found if o.severity != "info"] == [("error", 31)]


def test_a_question_earlier_in_a_chat_is_found_and_talk_is_not() -> None:
    items = problems(3, 150)
    talk = "Hello there, can you help me with some homework?"
    asked: list[Item] = [(chat(talk, "Of course.", prompt), answer) for prompt, answer in items[:50]]
    train: list[Item] = [(chat(talk, "Of course.", prompt), answer) for prompt, answer in items[50:]]
    assert graver(train, asked) == []
    early: list[Item] = [
        (chat(prompt, answer, "And now for something else: a joke."), "Ha.") for prompt, answer in items[:9]
    ]
    assert graver([*train, *early], asked) == [("error", 9)]


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(20))
def test_clean_word_problems_are_no_error(seed: int) -> None:
    assert [found for found in graver(problems(seed, 1000), problems(1000 + seed, 300)) if found[0] == "error"] == []


@pytest.mark.slow
@pytest.mark.gym
def test_clean_problems_from_a_hundred_templates_are_no_error() -> None:
    import reasoning_gym

    def templates(seed: int, size: int) -> list[Item]:
        made = reasoning_gym.create_dataset("gsm_symbolic", seed=seed, size=size)
        return [(row["question"], row["answer"]) for row in made]

    for seed in range(2):
        train, held_out = templates(1 + seed * 7919, 1000), templates(100_000 + seed * 104_729, 300)
        assert [found for found in graver(train, held_out) if found[0] == "error"] == [], seed
        copies = [(f"Solve: {prompt}\nThink.", answer) for prompt, answer in held_out[:30]]
        found = [o for o in seen([*train, *copies], held_out) if o.severity == "error"]
        assert found, seed
        assert found[0].count >= 29, seed


def test_templates_that_differ_in_numbers_and_short_sums_in_many_shots_are_no_error() -> None:
    rng = random.Random(0)

    def sums(count: int) -> list[tuple[str, str]]:
        pairs = [(rng.randint(10, 99), rng.randint(10, 99)) for _ in range(count)]
        return [(f"What is {a} + {b}?", str(a + b)) for a, b in pairs]

    held_out = sums(200)
    shots = [("\n".join(f"{q} {a}" for q, a in sums(8)), "") for _ in range(500)]
    assert [found for found in graver(shots, held_out) if found[0] == "error"] == []
    frame = "Read all of this carefully before you begin, and use no more than {} words and {} commas in what you write."
    fill = [(frame.format(a, b), "ok") for a in range(10, 40) for b in range(40, 70)]
    rng.shuffle(fill)
    assert graver(fill[:600], fill[600:]) == []


CODE = "What does this program print?\n\nx = {}\nX = {}\nprint({})"


def test_case_and_quotes_of_code_make_another_question() -> None:
    asked = [(CODE.format(n, n + 7, "x"), str(n)) for n in range(300)]
    other = [(CODE.format(n, n + 7, "X"), str(n + 7)) for n in range(300)]
    assert graver(other, asked) == []
    assert graver([(prompt.replace("(X)", '("x")'), "x") for prompt, _ in other], asked) == []


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("-4", "4"),
        ("1,000", "1 000"),
        (".5", "5"),
        ("5!", "5"),
        ("5'", '5"'),
        ("10\u2075", "105"),
        ("x\u00b2", "x2"),
        ("3 * 5", "3 + 5"),
        ("f'(2)", "f(2)"),
        ("$5", "\u20ac5"),
    ],
)
def test_other_numbers_are_another_item(one: str, other: str) -> None:
    words = "".join
    rng = random.Random(4)
    rows = [" ".join(words(rng.choices("abcdefgh", k=6)) for _ in range(40)) for _ in range(30)]
    asked: list[Item] = [(f"{text} take {one} of it", "yes") for text in rows]
    train: list[Item] = [(f"{text} take {other} of it", "yes") for text in rows]
    assert graver(train, asked) == []
    assert graver([(f"{prompt} now", answer) for prompt, answer in asked], asked)[0][0] == "error"


def test_the_same_number_in_other_digits_and_numbers_far_behind() -> None:
    rng = random.Random(5)
    texts = [" ".join("".join(rng.choices("abcdefgh", k=6)) for _ in range(800)) for _ in range(12)]
    assert graver([(f"{t} take 7", "yes") for t in texts], [(f"{t} take 8", "yes") for t in texts]) == []
    arabic: list[Item] = [(f"{t} take \u0667", "yes") for t in texts]
    assert graver([(f"{t} take 7", "yes") for t in texts], arabic) == [("error", 12)]


def test_a_sum_inside_a_longer_one_is_another_question() -> None:
    rng = random.Random(6)
    asked = [f"What is {rng.randint(1000, 9999)} + {rng.randint(1000, 9999)}" for _ in range(100)]
    longer: list[Item] = [(f"{text} * {rng.randint(2, 9)}?", "1") for text in asked]
    assert graver(longer, [(f"{text}?", "1") for text in asked]) == []


def test_eval_with_answers_is_compared_with_train_without(tmp_path: Path) -> None:
    rows = [{"prompt": prompt, "answer": answer.split("#### ")[1]} for prompt, answer in problems(8, 40)]
    for name, kept in (("train", [{"prompt": row["prompt"]} for row in rows[:30]]), ("eval", rows[20:])):
        (tmp_path / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in kept), encoding="utf-8")
    corpus = read_corpus(CorpusConfig("train.jsonl", "eval.jsonl"), relative_to=tmp_path)
    assert [(o.severity, o.count) for o in Contamination().check(corpus) if o.severity != "info"] == [("error", 10)]
    mixed = [rows[0], {"prompt": "What?"}]
    (tmp_path / "train.jsonl").write_text("".join(json.dumps(row) + "\n" for row in mixed), encoding="utf-8")
    with pytest.raises(InputError, match="in every row"):
        read_corpus(CorpusConfig("train.jsonl", "eval.jsonl"), relative_to=tmp_path)


def test_a_hole_that_only_leaks_fill_is_named() -> None:
    items = problems(9, 60)
    rows = [Example(f"a{i}", "t", p, answer=a, level=1.0) for i, (p, a) in enumerate(items[:30])]
    rows += [Example(f"e{i}", "t", p, answer=a, level=2.0, split="eval") for i, (p, a) in enumerate(items[30:])]
    rows += [Example(f"l{i}", "t", f"Solve this:\n{p}", answer=a, level=2.0) for i, (p, a) in enumerate(items[30:40])]
    found = [o for o in Coverage().check(Corpus.from_examples(rows)) if "lacks: 2 (30)" in o.message]
    assert [(o.severity, o.count, o.total) for o in found] == [("warning", 30, 30)]


def test_near_duplicates_inside_train_are_a_warning_and_templates_are_none() -> None:
    rng = random.Random(10)
    stories = [" ".join("".join(rng.choices("abcdefgh", k=6)) for _ in range(40)) for _ in range(400)]
    rows = [(f"{text} ends here?", str(n)) for n, text in enumerate(stories)]
    again = [(f"Well, {prompt[:-1]} my dear?", answer) for prompt, answer in rows[:25]]
    (found,) = Duplicates().check(Corpus.from_examples(examples([*rows, *again], "train")))
    assert (found.severity, found.task, found.count) == ("warning", "t", 25)  # each copy, not its original
    assert found.null.startswith("by chance fewer than 0.01 rows")
    assert len(found.evidence) == 25
    clean = Duplicates().check(Corpus.from_examples(examples(list(problems(11, 1500)), "train")))
    assert {observation.severity for observation in clean} == {"info"}


def test_every_pair_is_listed_and_shows_where_it_differs() -> None:
    items = problems(12, 120)
    long = "This is said before each question, at some length, so that excerpts are cut. " * 4
    train: list[Item] = [(f"{long}{prompt}\nThink aloud.", answer) for prompt, answer in items[:43]]
    held_out: list[Item] = [(f"{long}{prompt}", answer) for prompt, answer in items]
    (leak,) = [o for o in seen(train, held_out) if o.severity == "error"]
    assert (leak.count, len(leak.evidence)) == (43, 43)
    assert all("Think aloud" in pair["train_prompt"] for pair in leak.evidence)


class Counted:
    """A table that counts how often all of its rows are gone through."""

    def __init__(self, table: Any) -> None:
        self.table, self.passes = table, 0

    def __getattr__(self, name: str) -> Any:
        self.passes += name in ("take", "filter", "slice", "to_batches", "column")
        return getattr(self.table, name)

    def __getitem__(self, name: str) -> Any:
        return self.table[name]

    def __len__(self) -> int:
        return len(self.table)


def test_many_tasks_are_read_without_going_through_the_table_for_each() -> None:
    items = problems(13, 900)
    rows = [
        Example(f"a{i}", f"t{i % 300}", prompt, answer=answer, split="eval" if i < 300 else "train")
        for i, (prompt, answer) in enumerate(items)
    ]
    corpus = Corpus.from_examples(rows)
    counted = Counted(corpus.table)
    corpus.table = cast(Any, counted)
    found = Contamination().check(corpus)
    assert [(o.task, o.severity, o.total) for o in found] == [(None, "info", 300)]  # what was looked at and found clean
    assert counted.passes < 20


def test_copies_in_files_of_long_prompts_are_no_chance() -> None:
    """What is never seen to agree in a sample of pairs must not be taken for thousands of agreeing pairs."""
    items = [(f"{prompt} {long_story(number)}", answer) for number, (prompt, answer) in enumerate(problems(3, 2600))]
    wrapped = [(f"Please solve this.\n{prompt}\nThink step by step.", answer) for prompt, answer in items[1620:1640]]
    found = {
        observation.message.split(" held-out")[0]: observation.severity
        for observation in seen(items[:1600] + items[1600:1620] + wrapped, items[1600:2600])
        if observation.severity != "info"
    }
    assert found == {"20 of 1000": "error", "20 of 980": "error"}


def long_story(number: int) -> str:
    rng = random.Random(number)
    return " ".join("".join(rng.choices("abcdefgh", k=rng.randint(2, 7))) for _ in range(30)) + "."


def test_other_questions_about_one_text_are_no_error() -> None:
    rng = random.Random(7)
    passages = [f"{prompt.split(' How')[0]} {long_story(number)}" for number, (prompt, _) in enumerate(problems(5, 40))]
    asked: dict[str, str] = {}
    while len(asked) < 500:
        question = f"Did {rng.choice(NAMES)} sell the {rng.choice(THINGS)}?"
        asked[f"{rng.choice(passages)} {question} Answer yes or no."] = rng.choice(["yes", "no"])
    items = list(asked.items())
    assert {observation.severity for observation in seen(items[:350], items[350:])} <= {"info", "warning"}


@pytest.mark.parametrize("lower", [str.lower, str.title, str.upper])
def test_letters_of_options_and_endings_in_brackets_are_prose(lower: Callable[[str], str]) -> None:
    rng = random.Random(2)
    texts = [
        f"Where did {rng.choice(NAMES)} put the {rng.randint(10, 99)} {rng.choice(THINGS)} and the box(es)?\n"
        + "\n".join(f"{letter}) the {place} of {rng.choice(NAMES)}" for letter, place in zip("ABCD", PLACES, strict=True))
        for _ in range(80)
    ]
    items = [(text, "ABCD"[number % 4]) for number, text in enumerate(dict.fromkeys(texts))]
    leaked = [(lower(prompt), answer) for prompt, answer in items[50:70]]
    (leak,) = [observation for observation in seen(items[:50] + leaked, items[50:]) if observation.severity == "error"]
    assert leak.count == 20


PLACES = ["market", "quarry", "harbour", "garden"]


def test_a_whole_prompt_without_an_answer_is_found_though_its_first_words_are_template() -> None:
    own = [[*PLACES[n:], *PLACES[:n]] for n in range(4)]
    asked = [Row(n, "t", "eval", f"Tell me now about the {' '.join(own[n])}", "7") for n in range(4)]
    index = WrappedIndex(asked)
    assert [index.sought_words(at) for at in range(4)] == own
    text = f"Good morning to you. {asked[1].prompt}"
    assert list(index.matches(Row(9, "t", "train", text, ""))) == [(1, True)]
    assert list(index.matches(Row(9, "t", "train", text, "8"))) == []


@pytest.mark.parametrize(("change", "exact"), [(str, True), (str.upper, False)])
def test_a_prompt_in_another_case_is_shared_but_not_to_the_character(change: Callable[[str], str], exact: bool) -> None:
    items = [(f"What is the sum of {n} and {n + 7} pens?", str(n)) for n in range(3)]
    train = [(change(prompt), answer) for prompt, answer in items]
    same = find_leaks(Corpus.from_examples([*examples(train, "train"), *examples(items, "eval")])).overlap
    assert (same.shared.tolist(), same.exact.tolist()) == ([True] * 3, [exact] * 3)


def test_rows_with_a_partner_are_not_looked_for_again_be_it_the_first_row() -> None:
    items = problems(14, 4)
    corpus = Corpus.from_examples([*examples(items[:3], "train"), *examples([items[0], items[2], items[3]], "eval")])
    assert [row.prompt for row in find_leaks(corpus).rows] == [items[3][0]]


def test_a_grader_that_fails_takes_no_answer_for_right() -> None:
    prompt = "How much is half of this?"
    rows = [*examples([(prompt, "0.5e0")], "train"), *examples([(prompt, "0.5")], "eval")]
    for grader, right in (("numeric", True), ("statistics:mean", False)):  # a mean takes no answer: every call raises
        same = find_leaks(Corpus.from_examples(rows, {"t": grader})).overlap
        assert (same.shared.tolist(), same.other_answer.tolist()) == ([right], [not right])
