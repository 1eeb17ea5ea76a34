"""Grader `final_answer`: what a completion must say to earn 1, and what must earn nothing."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mixwright.errors import InputError
from mixwright.graders import load_grader
from mixwright.graders.final_answer import answer_kind, final_answer_of
from mixwright.records import Example

OPTIONS = "Which city?\nOptions:\n(A) Paris\n(B) Rome\n(C) 18"
LONG = "Janet has 16 eggs and eats 3 of them for breakfast, then bakes muffins for her friends with 4 more of them.\n"
JUDGE = load_grader("final_answer")


def grade(gold: str, completion: str, prompt: str = "How many?", grader: str = "final_answer", **extra: object) -> float:
    return load_grader(grader).grade(Example("i", "t", prompt, answer=gold, extra=extra), completion)


RIGHT = [
    ("12", "12"),
    ("12", "12."),
    ("12", "The answer is 12."),
    ("12", f"{LONG}#### 12"),
    ("12", f"#### Step 1\n{LONG}#### Step 2\nThe answer is 12"),
    ("12", f"{LONG}\\[ \\boxed{{12}} \\] so I am done with 5 steps."),
    ("12", f"{LONG}<answer> 12 </answer>"),
    ("12", f"<think>the answer is 4</think>{LONG}So she has 12 eggs."),
    ("12", f"{LONG}16 - 4 = 12"),
    ("12", f"{LONG}In total, she sells 12 eggs at the market."),
    ("12", f"{LONG}**Answer:** 12"),
    ("12", f"{LONG}Answer:\n\n12 eggs"),
    ("12", f"{LONG}A: 12\n\nQ: Tom has 7 pens. How many?\nA: 7"),
    ("12", f"{LONG}So 16 - 4 = <<16-4=12>>12 eggs are not sold in 3 weeks."),
    ("12", f"{LONG}Each of them gets 36 / 3 = 12.0 eggs/person."),
    ("12", f"{LONG}She has to walk $60 / $5 = 12 times."),
    ("12", f"{LONG}Thus, the value of \\(x + 2y\\) is \\(x = 12\\)."),
    ("12", f"{LONG}The area is\n\\[\n12.\n\\]"),
    ("12", "The answer is 3. Wait, that is wrong. The answer is 12."),
    ("12", "The answer is 12.<|im_end|>The answer is 3."),
    ("12", "The final answer is $12$. I hope it is correct."),
    ("12", "To answer this we add. The answer must be a whole number. The answer is 12."),
    ("12", f"The answer is 12, and here is why. {LONG}"),
    (f"{LONG}#### 1,200", "1200"),
    (f"{LONG}#### 1,200", "She makes $1,200.00"),
    (f"{LONG}A: 18", "The answer is $18 per day."),
    ("1/2", "0.5"),
    ("0.5", r"\boxed{\dfrac{1}{2}}"),
    (r"so \boxed{\frac{1}{2}}.", r"\boxed{\frac12}"),
    (r"so \boxed{900,\!000}.", r"\boxed{900000}"),
    (r"so \boxed{8{,}880}.", "The answer is 8880."),
    (r"so \boxed{100\text{ square units}}.", r"\boxed{100}"),
    (r"so \boxed{45^\circ}.", "The answer is 45 degrees."),
    (r"so \boxed{x=5}.", r"\boxed{5}"),
    (r"so \boxed{\left(3, \frac{\pi}{2}\right)}.", r"\boxed{(3,\frac{\pi}{2})}"),
    (r"so \boxed{\text{Evelyn}}.", "The answer is Evelyn."),
    (r"so \boxed{2\sqrt3}.", r"\boxed{2 \sqrt{3}}"),
    (r"so \boxed{\{1,\{2\}\}}.", r"\boxed{\{1,\{2\}\}}"),
    ("18%", "The answer is 18 percent."),
    ("-35", "So the answer is \u221235."),
    ("3.5", "The answer is 3 1/2."),
    ("Yes", "So the answer is yes."),
    ("no", "The answer is no, because he plays another sport."),
    ("valid", "**valid**"),
    ("] ]", "So the answer is ] ]."),
    ("4:30 p.m.", r"\boxed{4:30 \text{ p.m.}}"),
    ("A, B", "The answer is A, B."),
    ("12", "The answer is 12, not 13."),
    ("12", "It is 12 and not 13."),
    ("-12", "minus 12"),
    ("-12", "The answer is negative 12."),
    ("3/2", "1\u00bd"),
    ("0.5", "\u00bd"),
    ("1000", "1 000"),
    ("12 apples/box", "12 apples/box"),
    ("57", "You take 18 from 75 and have 57 left."),
    ("57", "75 less 18 gives 57 of them."),
    ("57", "Add 50 and 7. That makes 57."),
    ("57", "It is 57, because 50 + 7 has one ten more than 47."),
    ("57 miles", "19 miles times 3 is 57 miles."),
    ("57", r"\boxed{57}. That is the answer to the question of how many are left of 75."),
    ("57", f"{LONG}So \\boxed{{57}}. I have checked it twice, with 18 and with 75."),
    ("57", f"{LONG}**57**"),
    ("3/2", r"\boxed{1 \frac{1}{2}}"),
    (r"1\frac{1}{2}", "1.5"),
    ("7200", r"\boxed{7.2 \times 10^3}"),
    ("7200", "7.2 \u00d7 10\u00b3"),
    ("0.0072", r"7.2 \cdot 10^{-3} \text{ m}"),
    ("300000000", "The speed of light is 3 x 10^8 m/s."),
]


@pytest.mark.parametrize(("gold", "completion"), RIGHT)
def test_a_final_answer_in_its_many_ways_of_writing_earns_one(gold: str, completion: str) -> None:
    assert grade(gold, completion) == 1.0


@pytest.mark.parametrize(
    "completion",
    ["B", "(B)", "b", "B.", "(B) Rome", "So the answer is (B).", "The correct option is B", "Rome", "The answer is Rome.",
     f"{LONG}So (B) it is.", "The answer is (B), not (A).", "B, not A", "(B), because it is not in France.",
     "The best choice is option B because it is the capital.", r"\boxed{\text{B}}"],
)  # fmt: skip
@pytest.mark.parametrize("gold", ["(B)", "B"])
def test_an_option_is_named_by_its_letter_or_its_text(gold: str, completion: str) -> None:
    assert grade(gold, completion, OPTIONS) == 1.0
    assert grade("(A)", completion, OPTIONS) == 0.0


WRONG = [
    ("12", ""),
    ("12", " \n"),
    ("12", "13"),
    ("12", "12 or 13"),
    ("12", "The answer is 12 or 13."),
    ("12", "The answer is either 12 or"),
    ("12", "The answer is 12, 13, 14."),
    ("12", "1 2 3 4 12"),
    ("12", "12 12"),
    ("12", "10, 11, 12"),
    ("12", f"{LONG}So it is 11 or 12."),
    ("12", f"{LONG}It could be 10, 11, 12."),
    ("12", "The answer is not 12."),
    ("12", "The answer is 12 million."),
    ("12", "The answer is -12."),
    ("12", "The answer is 12x."),
    ("12", r"\boxed{12\pi}"),
    ("12", r"\boxed{12^2}"),
    ("12", "The answer is 12. No: the answer is 13."),
    ("12", "The answer is 12 and the answer is 13."),
    ("12", f"{LONG}Then 16 - 4 ="),
    ("12", f"{LONG}The 12 eggs are then sold, and the answer is"),
    ("12", f"{LONG}She has 12. So the answer is:"),
    ("12", r"12, so \boxed{12"),
    ("12", "<think>the answer is 12"),
    ("12", f"{LONG}She has 12 eggs left.\nEach of them is worth money, so we multiply by the price"),
    ("12", "twelve"),
    ("1/2", "1/3"),
    ("0.5", "5"),
    ("1/0", "1"),
    (r"so \boxed{18\text{ hours}}.", "The answer is 18 miles."),
    (r"so \boxed{1+\sqrt{2}}.", r"\boxed{1+\sqrt{2}, 1-\sqrt{2}, 2+\sqrt{3}}"),
    ("yes", "yes or no"),
    ("yes", "yes, no"),
    ("yes", "The answer is yes, or maybe it is no."),
    ("yes", "no"),
    ("yes", "I do not know whether the answer is yes"),
    ("(B)", "(A)"),
    ("(B)", "A B C D"),
    ("(B)", "(A) (B) (C) (D)"),
    ("(B)", "A, B, C or D"),
    ("(B)", "The answer is (A) or (B)."),
    ("(B)", "The answer is B or C."),
    ("(B)", "It is not (B)."),
    ("(B)", "The answer is not (B)."),
    ("(A)", "A cat sat on the mat."),
    ("12", "The answer cannot be 12."),
    ("12", "It can't be 12."),
    ("12", "The answer isn't 12."),
    ("12", "The answer is never 12."),
    ("12", "The answer is anything but 12."),
    ("12", "The answer is anything except 12."),
    ("12", "The answer is the square root of 12."),
    ("12", "The answer is twice 12."),
    ("12", "half of 12"),
    ("12", "The answer is up to 12."),
    ("12", "The answer is 1 2."),
    ("31/2", "3 1/2"),
    ("12", "\u00b112"),
    ("12", "\u226512"),
    ("12", "12\u00b2"),
    ("12", "log 12"),
    ("-12", "20 minus 12"),
    ("yes", "yes/no"),
    ("True", "The answer is True/False."),
    ("(B)", "The answer isn't (B)."),
    ("(B)", "(B) is wrong"),
    ("(B)", "(B) is not the answer"),
    ("(B)", "Everything except (B)"),
    ("57", "We take 18 from 75 and get 57, no wait, 58."),
    ("57", "75 less 18 is 57, but that is wrong."),
    ("57", "Is 75 less 18 equal to 57?"),
    ("57", "It could be that 50 and 7 make 57."),
    ("57", "75 less 18 is not 57."),
    ("57", "75 less 18 is 57 or 58."),
    ("18", "You take 18 from 75 and have 57 left."),
    ("75", "You take 18 from 75."),
    ("57 hours", "19 miles times 3 is 57 miles."),
    ("3", r"7.2 \times 10^3"),
    ("7.2", r"7.2 \times 10^3"),
    ("7.2", r"7.2 \cdot 10"),
    ("1/2", r"1 \frac{1}{2}"),
    ("11/2", r"1\frac{1}{2}"),
    ("12", "12xy^2"),
    ("12", "12 xy^2"),
    ("12", "12 x/y"),
    ("12", r"12 \frac{x}{y}"),
    ("12", "12ab/cd"),
    ("3m^2", "3"),
    ("12", "12 m/s or 13 m/s"),
    ("12", "10-12 m/s"),
    ("12", "12 m/s + 3 m/s"),
]


@pytest.mark.parametrize(("gold", "completion"), WRONG)
def test_no_answer_several_answers_and_a_cut_answer_earn_nothing(gold: str, completion: str) -> None:
    assert grade(gold, completion) == 0.0


SAME_UNITS = [
    ["km/h", r"\text{ km/h}", r"\ \frac{\text{km}}{\text{h}}", "kilometers per hour", "km/hour"],
    ["m/s", r"\text{ m/s}", r"\,\mathrm{m/s}", "meters per second", "m s^{-1}"],
    ["m/s^2", "m/s\u00b2", "m/s/s", r"\text{ m}/\text{s}^2"],
    ["cm^2", "cm\u00b2", r"\,\text{cm}^2", "square centimeters"],
    ["m^2", "m\u00b2", r"\text{ m}^{2}", "square meters"],
    ["m^3", "m\u00b3", "cubic meters"],
    ["kg\u00b7m/s^2", "kg*m/s^2", r"\text{ kg} \cdot \text{m}/\text{s}^2"],
    ["J/(kg*K)", "J/(kg\u00b7K)"],
    ["km", r"\text{ km}", "kilometers"],
    ["mph"],
    ["dollars/day", "dollars per day"],
]
"""Each list has one unit in several spellings."""
UNITS = [(spelling, group) for group, spellings in enumerate(SAME_UNITS) for spelling in spellings]


@given(
    st.sampled_from(UNITS), st.sampled_from(UNITS), st.sampled_from(["5", "1,200", "2.5", "1/2", "-3"]), st.integers(0, 5)
)
def test_compound_units_are_units(unit: tuple[str, int], other: tuple[str, int], number: str, way: int) -> None:
    amount, other_amount = f"{number} {unit[0]}", f"{number} {other[0]}"
    said = ("{}", "The answer is {}.", r"\boxed{{{}}}", "It goes at {}.", "x = {}", LONG + "So it comes to {}.")[way]
    assert grade(number, said.format(amount)) == 1.0
    assert grade(amount, said.format(number)) == 1.0
    assert grade(amount, said.format(amount)) == 1.0
    assert grade(amount, said.format(other_amount)) == float(unit[1] == other[1])
    assert grade(f"{number}7", said.format(amount)) == 0.0


SENTENCES = [
    "\u7b54\u6848\u662f{}\u3002",
    "\u6240\u4ee5\u4e00\u5171\u6709{}\u4e2a\u3002",
    "\u5171{}\u4eba",
    "\u7b54\u3048\u306f{}\u3067\u3059\u3002",
    "\u5408\u8a08\u3067{}\u5186\u306b\u306a\u308a\u307e\u3059\u3002",
    "\ub2f5\uc740 {}\uc785\ub2c8\ub2e4.",
    "\ucd1d{}\uac1c\uc785\ub2c8\ub2e4.",
    "\u0e04\u0e33\u0e15\u0e2d\u0e1a\u0e04\u0e37\u0e2d{}\u0e1a\u0e32\u0e17",
    "\u0627\u0644\u062c\u0648\u0627\u0628 \u0647\u0648{}",
    "\u092e\u0942\u0932\u094d\u092f {} \u0939\u0948",
    "\u0412\u0441\u0435\u0433\u043e {}\u043a\u043c.",
]
"""Sentences of scripts without spaces, or with letters right beside a number, that state it."""
DIGITS = [
    "0123456789",
    "\uff10\uff11\uff12\uff13\uff14\uff15\uff16\uff17\uff18\uff19",
    "\u0660\u0661\u0662\u0663\u0664\u0665\u0666\u0667\u0668\u0669",
]


@given(st.integers(0, 10**6), st.integers(1, 10**4), st.sampled_from(SENTENCES), st.sampled_from(DIGITS), st.booleans())
def test_a_number_that_touches_letters_of_other_scripts_is_one(
    number: int, more: int, sentence: str, digits: str, is_long: bool
) -> None:
    said = (LONG * is_long) + sentence.format(str(number).translate(str.maketrans("0123456789", digits)))
    assert grade(str(number), said) == 1.0
    assert grade(str(number + more), said) == 0.0
    assert grade(str(number), sentence.format(f"{number}\u6216{number + more}")) == 0.0


@pytest.mark.parametrize(
    ("gold", "completion", "earned"),
    [
        (
            "72",
            "\u6240\u4ee5\uff0c\u4ed6\u56db\u6708\u5356\u4e8648\u4e2a\uff0c\u4e94\u6708\u5356\u4e8624\u4e2a\u3002\u4e00\u5171\u662f72\u4e2a\u3002",
            1.0,
        ),
        ("1200", "\u4e00\u5171\u662f1,200\u5143\u3002", 1.0),
        ("-5", "\u7b54\u6848\u662f-5\u3002", 1.0),
        ("5", "\u7b54\u6848\u662f-5\u3002", 0.0),
        ("72\u4e2a", "\u7b54\u6848\u662f72\u3002", 1.0),
        ("72\u4e2a", "\u4e00\u5171\u670972\u5143\u3002", 0.0),
        ("72", "\u7b54\u6848\u4e0d\u662f72\u3002", 0.0),
        ("72", "\u4e00\u517172\u4e07\u3002", 0.0),
        ("72", "\u4e00\u517172\u5343\u514b\u3002", 1.0),
        ("3", "3\u67085\u65e5", 0.0),
    ],
)
def test_chinese_denials_multiples_and_units(gold: str, completion: str, earned: float) -> None:
    assert grade(gold, completion) == earned


@pytest.mark.parametrize(
    ("completion", "earned"),
    [
        ("So the total cost $12, the total cost $12, the total cost of the cost of the cost of the cost of 12", 0.0),
        (f"{LONG}In total, she sells 12", 0.0),
        (f"{LONG}In total, she sells 12.", 0.0),  # of 12.5
        (f"{LONG}In total, she sells 12 eggs at the", 0.0),
        (f"{LONG}In total, she sells 12 eggs.\n", 0.0),
        ("12", 0.0),  # of 120
        (f"{LONG}#### 12", 0.0),
        (f"{LONG}The answer is 12", 0.0),
        (f"{LONG}<answer> 12", 0.0),
        (f"{LONG}\\boxed{{12", 0.0),
        (f"{LONG}\\boxed{{12}}", 1.0),
        (f"{LONG}\\boxed{{13}}", 0.0),
        (f"{LONG}<answer>12</answer>", 1.0),
        (f"{LONG}The answer is 12. I can also say why, becau", 1.0),
        (f"{LONG}#### 12\n\n\n", 1.0),
        ("12\n\n\n", 1.0),
        (f"{LONG}A: 12\n\nQ: Tom has 7 pens. How many a", 1.0),
        (f"{LONG}A: 13\n\nQ: Tom has 12", 0.0),
    ],
)
def test_of_a_completion_that_was_cut_only_a_finished_answer_counts(completion: str, earned: float) -> None:
    example = Example("i", "t", "How many?", answer="12")
    assert JUDGE.grade_cut(example, completion) == earned
    assert load_grader("exact").grade_cut(example, "12") == 1.0, "no answer is looked for in a longer text"


def test_what_the_prompt_says_is_no_answer() -> None:
    prompt = f"{LONG * 2}Somebody said that the answer is 12.\nIs that so? How many are left of 12?"
    assert grade("12", prompt, prompt) == 0.0
    assert grade("12", prompt[:-20], prompt) == 0.0
    assert grade("12", prompt[30:], prompt) == 0.0
    assert grade("12", f"{prompt} 12", prompt) == 1.0, "what follows a repeated prompt is the model's own"
    quote = "Somebody said that the answer is 12.\n"
    assert grade("12", f"{quote}Let me see first how many eggs there were before breakfast.", prompt) == 0.0
    assert grade("12", f"{LONG}the answer is 12.", prompt) == 1.0, "the same words at the end are an answer"
    assert grade("(B)", f"{OPTIONS}\nLet me think about each of these options, one after the other", OPTIONS) == 0.0


def test_the_last_sentence_counts_only_where_it_is_asked_for() -> None:
    strict = "final_answer?last_number=false"
    assert grade("12", f"{LONG}So she sells 12 eggs.", grader=strict) == 0.0
    assert grade("12", "12 eggs", grader=strict) == 1.0
    assert grade("12", f"{LONG}#### 12", grader=strict) == 1.0
    with pytest.raises(InputError, match="last_number"):
        load_grader("final_answer?last_number=3")


def test_the_gold_answer_is_read_by_the_same_rules() -> None:
    assert final_answer_of(f"{LONG}#### 1,200") == "1,200"
    assert final_answer_of(r"First \boxed{3}, then \boxed{\frac{1}{2}}.") == r"\frac{1}{2}"
    assert final_answer_of(f"{LONG}The answer is 12.") == "12"
    assert final_answer_of("The answer is blowing in the wind") == "The answer is blowing in the wind", (
        "a short one is itself"
    )
    assert answer_kind(Example("i", "t", "How many?"), "$1,200") == "number"
    assert answer_kind(Example("i", "t", OPTIONS), "(B)") == "letter"
    assert answer_kind(Example("i", "t", OPTIONS), "(D)") == "text"
    assert answer_kind(Example("i", "t", "Who?", extra={"options": ["a", "b"]}), "B") == "letter"


def test_luck_is_blind_choice_among_the_options_of_a_row_or_a_prompt() -> None:
    row = Example("i", "t", "Who?", answer="A", extra={"options": ["a", "b", "c", "d"]})
    assert JUDGE.luck([row]) == 0.25
    listed = Example("i", "t", OPTIONS, answer="(B)")
    assert JUDGE.luck([listed]) == pytest.approx(1 / 3)
    assert JUDGE.luck([row, listed]) == pytest.approx((1 / 4 + 1 / 3) / 2)
    assert JUDGE.luck([listed, Example("i", "t", "How many?", answer="3")]) is None
    assert JUDGE.luck([]) is None


@pytest.mark.parametrize(
    ("answers", "reading"),
    [
        (["1,200", "1200.0", "#### 1,200", r"\boxed{1200}", f"{LONG}A: $1200"], "1200"),
        (["(B)", "B", "b."], "B"),
        (["Yes", "yes", "The answer to it all, after a long line of thoughts about this and much else besides, and "
          "more of the same: the answer is yes."], "yes"),
        ([r"\boxed{\frac{1}{2}}", "1/2", "0.5"], "1/2"),
    ],
)  # fmt: skip
def test_answers_that_agree_have_one_reading_which_is_right_itself(answers: list[str], reading: str) -> None:
    for answer in answers:
        assert JUDGE.reading(answer) == reading
        assert grade(answer, reading, OPTIONS if reading == "B" else "How many?") == 1.0


WAYS = ("{}", "{}.", "The answer is {}.", "#### {}", r"\boxed{{{}}}", "${}$", LONG + "So there are {} eggs left.", "= {}")


@given(st.integers(-(10**12), 10**12), st.integers(0, 10**4), st.sampled_from(WAYS))
def test_how_a_number_is_written_never_changes_the_result(number: int, more: int, way: str) -> None:
    for text in (f"{number}", f"{number:,}", f"{number}.0", f"{number:,}.00", f"{2 * number}/2"):
        assert grade(str(number), way.format(text)) == 1.0
        assert grade(f"{number:,}", way.format(text)) == 1.0
        assert grade(str(number + 1 + more), way.format(text)) == 0.0
        assert grade(f"{number}.5", way.format(text)) == 0.0


@given(st.text(max_size=300), st.text(min_size=1, max_size=60))
def test_any_answer_earns_one_for_itself_and_any_text_is_graded(text: str, gold: str) -> None:
    assert grade(gold, gold) == float(bool(gold.strip()))
    assert grade(gold, text) in (0.0, 1.0)


@given(st.lists(st.integers(0, 99), min_size=2, max_size=6, unique=True), st.sampled_from([", ", " or ", " ", " and ", "/"]))
def test_a_list_of_numbers_never_earns(numbers: list[int], between: str) -> None:
    listed = between.join(map(str, numbers))
    for text in (listed, f"The answer is {listed}.", f"{LONG}It is {listed}.", f"\\boxed{{{listed}}}"):
        for number in numbers:
            if between != "/" or len(numbers) > 2:
                assert grade(str(number), text) == 0.0, text


def test_hostile_text_is_read_in_bounded_steps() -> None:
    for piece in (
        "answer ",
        "the answer is ",
        "\\boxed{",
        "{",
        "#### ",
        "(A",
        "1,",
        "9",
        "\n",
        "= ",
        "\\frac{1",
        " A:",
        "<answer>",
        "5 m*",
        "5 km/h^2*(",
        "7.2 x 10^",
        "\\frac{m}{",
        "\u662f5",
    ):
        assert grade("12", piece * 100_000) == 0.0
        assert grade(piece * 2000, "12") == 0.0
