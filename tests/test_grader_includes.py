"""Grader `includes`: which sentences state the answer, and a table of tempting texts that do not."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mixwright.graders import load_grader
from mixwright.graders.includes import Includes
from mixwright.records import Example

JUDGE = load_grader("includes")
FRANCE = "What is the capital of France?"
BRAZIL = "Which continent is Brazil in?"
HOT = "What is the opposite of hot?"
GO = "What is the past tense of go?"
DRIVE = "Write the past tense of the verb 'drive'."
SHEEP = "What is the plural of sheep?"
SUM = "What is 3 plus 4?"
SEVEN = "What is 7 plus 2?"
CHOICE = "Is Paris or Rome the capital of France?"
PENS = "Tom has 12 pens and 3 boxes. He buys 2 more boxes of 5 pens. How many pens has he now?"
LETTERS = "Which city is the capital of France?\n(A) Lyon\n(B) Paris"


def grade(prompt: str, gold: str, completion: str, *, cut: bool = False) -> float:
    example = Example("i", "t", prompt, answer=gold)
    return JUDGE.grade_cut(example, completion) if cut else JUDGE.grade(example, completion)


STATED = [
    (FRANCE, "Paris", "Paris"),
    (FRANCE, "Paris", "**Paris**"),
    (FRANCE, "Paris", "paris."),
    (FRANCE, "Paris", "It is Paris."),
    (FRANCE, "Paris", "It's Paris."),
    (FRANCE, "Paris", "I think the answer is Paris."),
    (FRANCE, "Paris", "The capital of France is Paris."),
    (FRANCE, "Paris", "Sure! The capital of France is **Paris**."),
    (FRANCE, "Paris", "The capital of France is Paris, which is known for the Eiffel Tower."),
    (FRANCE, "Paris", "The capital of France is Paris. It is also the largest city of the country."),
    (FRANCE, "Paris", "Paris is the capital of France."),
    (FRANCE, "Paris", "Paris, the capital of France, stands on the Seine."),
    (FRANCE, "Paris", "Paris, France"),
    (FRANCE, "Paris", "Capital: Paris"),
    (FRANCE, "Paris", "The capital is Paris, not Lyon."),
    (FRANCE, "Paris", "The capital of France is not Lyon but Paris."),
    (FRANCE, "Paris", "The capital of France is the city of Paris."),
    (BRAZIL, "South America", "Brazil is a continent located in South America."),
    (BRAZIL, "South America", "Brazil is in South America."),
    ("Who wrote Hamlet?", "William Shakespeare", "Hamlet was written by William Shakespeare."),
    ("What is the largest planet?", "Jupiter", "The largest planet in our solar system is Jupiter."),
    ("How many sides does a hexagon have?", "6", "A hexagon is a polygon with 6 sides."),
    (
        "Which continent is Canada in?",
        "North America",
        "Canada is a landlocked country located in North America, near Cuba.",
    ),
    ("Who made the theory?", "Albert Einstein", "The theory was made by Albert Einstein during his time there."),
    ("What is the longest river?", "Nile", "The longest river is the Nile River."),
    ("What is the currency of Japan?", "yen", "The currency of Japan is the Japanese Yen."),
    ("How many days are in a week?", "7", "There are 7 days in a week."),
    ("What is the capital of Brazil?", "Brasilia", "The capital of Brazil is Bras\u00edlia."),
    ("Where is the Hague?", "the Netherlands", "The Hague is located in the Netherlands."),
    (HOT, "cold", 'The opposite of "hot" is "cold."'),
    (HOT, "cold", "The antonym of hot is cold."),
    (HOT, "cold", "Cold is the opposite of hot."),
    (GO, "went", "The correct past tense of 'go' is 'went'."),
    (SHEEP, "sheep", "The plural of sheep is sheep."),
    (CHOICE, "Paris", "Paris is the capital of France."),
    (CHOICE, "Paris", "The capital of France is Paris."),
    (SUM, "7", "3 plus 4 equals 7."),
    (SUM, "7", "3 + 4 = 7"),
    (SUM, "7", "The answer is 7.0."),
    (SUM, "7", "The sum of 3 and 4 is 7. You start with 3 and count up 4."),
    (SUM, "7", "7"),
    ("What is 12 minus 5?", "7", "12 - 5 = 7"),
    ("What is 5 plus 0?", "5", "5 plus 0 is 5."),
    ("What is 600 plus 600?", "1,200", "600 + 600 = 1200."),
    (PENS, "22", "He buys 2 * 5 = 10 pens. So he has 12 + 10 = 22 pens."),
    ("When did the war end?", "1945", "The war ended in 1945."),
    ("Is Rome in Italy?", "yes", "Yes, Rome is in Italy."),
    (LETTERS, "B", "The answer is (B)."),
    ("What is the plural of wolf?", "wolves", 'The plural of the word "wolf" is wolves.'),
    ("What is 12 + 10?", "22", "12 + 10 = 22\n\nThis is done by simply adding two numbers together."),
    ("What is 5 + 10?", "15", "15 is the sum of 5 and 10."),
    ("what month is between april and june?", "May", "The month between April and June is May."),
    ("what month is between may and july?", "June", "The month between May and July is June."),
    ("What is the bridge made of?", "steel", "The bridge is made of steel."),
    ("Who wrote Emma?", "Jane Austen", "The author of Emma is Jane Austen, a British novelist."),
    ("Country: Russia. Capital:", "Moscow", "The Russian capital, Moscow, is a city of many towers."),
    ("Which country is the Colosseum in?", "Italy", "The Colosseum is located in Rome, Italy."),
    ('What is the opposite of "before"?', "after", 'The opposite of "before" is "after."'),
    ("At what temperature does water freeze?", "0 \u00b0C", "Water freezes at exactly 0\u00b0C."),
    ("Two litres is how many millilitres?", "2000 millilitres", "Two litres is equivalent to 2000 milliliters."),
    ("Grandpa keeps it in the attic. Where is it?", "attic", "Grandpa's attic"),
]

TEMPTING = [
    (FRANCE, "Paris", ""),
    (FRANCE, "Paris", "Lyon"),
    (FRANCE, "Paris", "The capital of France is not Paris."),
    (FRANCE, "Paris", "The capital of France isn't Paris."),
    (FRANCE, "Paris", "Paris is not the capital of France."),
    (FRANCE, "Paris", "Paris is wrong."),
    (FRANCE, "Paris", "The capital of France is Paris. That is wrong."),
    (FRANCE, "Paris", "The capital of France is Paris. No, wait, it is Lyon."),
    (FRANCE, "Paris", "The capital of France is Lyon. Paris is bigger."),
    (FRANCE, "Paris", "The capital of France is Lyon. The capital of France is Paris."),
    (FRANCE, "Paris", "The capital of France is Paris. The capital of France is Lyon."),
    (FRANCE, "Paris", "Lyon.\nThe capital of France is Paris."),
    (FRANCE, "Paris", "Paris or Lyon"),
    (FRANCE, "Paris", "Lyon or Paris"),
    (FRANCE, "Paris", "Paris and Lyon"),
    (FRANCE, "Paris", "Paris, Lyon and Nice"),
    (FRANCE, "Paris", "Lyon, Paris"),
    (FRANCE, "Paris", "The capital of France is Paris or Lyon."),
    (FRANCE, "Paris", "The capital of France is Lyon, Paris or Nice."),
    (FRANCE, "Paris", "Paris/Lyon"),
    (FRANCE, "Paris", "A) Paris B) Lyon"),
    (FRANCE, "Paris", "A: Paris\nB: Lyon\nC: Nice"),
    (FRANCE, "Paris", "- Lyon\n- Paris\n- Nice"),
    (FRANCE, "Paris", "1. Paris\n2. Lyon"),
    (FRANCE, "Paris", "Paris\nLyon\nNice"),
    (FRANCE, "Paris", "| Italy | Rome |\n| France | Paris |"),
    (FRANCE, "Paris", "The capital of Italy is Rome, and the capital of France is Paris or not."),
    (FRANCE, "Paris", '{"tool": "note", "text": "Paris"}'),
    (FRANCE, "Paris", '{"answer": "Paris"}'),
    (FRANCE, "Paris", 'note(text="Paris")'),
    (FRANCE, "Paris", "```\nprint('Paris')\n```"),
    (FRANCE, "Paris", "Is it Paris?"),
    (FRANCE, "Paris", "It might be Paris."),
    (FRANCE, "Paris", "I do not know whether it is Paris."),
    (FRANCE, "Paris", "Paris Hilton is famous."),
    (FRANCE, "Paris", "Parisian cheese is the best."),
    (FRANCE, "Paris", "Paris is a city in Texas."),
    (FRANCE, "Paris", "Paris is the capital of Italy."),
    (FRANCE, "Paris", "Lyon, south of Paris, is the capital of France."),
    (FRANCE, "Paris", "The capital of France is a city near Paris."),
    (FRANCE, "Paris", "The mayor of Paris lives in the capital of France."),
    (FRANCE, "Paris", "Lyon is larger than Paris."),
    (FRANCE, "Paris", "Everything except Paris."),
    (FRANCE, "Paris", "The largest city of France is Paris."),
    (FRANCE, "Paris", "Paris was the capital of France."),
    (FRANCE, "Paris", "The former capital of France is Paris."),
    (FRANCE, "Paris", "Berlin is the capital of Germany. Paris is the capital of France. Rome is the capital of Italy."),
    (FRANCE, "Paris", "Germany: Berlin, France: Paris, Italy: Rome"),
    (FRANCE, "Paris", "Many people believe that Paris is the capital of France, but it is Lyon."),
    (FRANCE, "Paris", "The capital of New France is Paris."),
    (FRANCE, "Paris", "Options: Paris, Lyon, Nice\nAnswer: Lyon"),
    (FRANCE, "Paris", "We are in Paris."),
    (FRANCE, "Paris", "I know Paris."),
    (FRANCE, "Paris", "The capital of France is Paris, Texas."),
    (FRANCE, "Paris", "The capital is Lyon, which is called Paris of the south."),
    (FRANCE, "Paris", "Unlike Paris, Lyon is the capital of France."),
    (FRANCE, "Paris", "The capital of Germany is Paris."),
    (FRANCE, "Paris", "Germany's capital is Paris."),
    ("Which country is next to Papua?", "Guinea", "It is Equatorial Guinea."),
    ("Name a country in Africa.", "Niger", "Nigeria is a country in Africa."),
    (HOT, "cold", "The opposite of cold is hot."),
    (HOT, "cold", "The opposite of hot is warm, or cold in a sense."),
    (HOT, "cold", "The opposite of hot is cold-blooded."),
    (HOT, "cold", "The opposite of hot is a cold shower."),
    (HOT, "cold", "The opposite of warm is cold."),
    (GO, "went", "The past tense of go is goed. I went home."),
    (GO, "went", "The past tense of went is go."),
    (DRIVE, "drove", 'The verb "drive" is a past tense of the verb "drove" in the past tense.'),
    (DRIVE, "drove", 'The past tense is typically "drove" or "drived."'),
    (SHEEP, "sheep", "The plural of sheep is sheeps."),
    (SHEEP, "sheep", "What is the plural of sheep?"),
    (SHEEP, "sheep", "A sheep is an animal."),
    (CHOICE, "Paris", "Is Paris or Rome the capital of France?"),
    (CHOICE, "Paris", "Rome is the capital of France."),
    (CHOICE, "Paris", "Options: Paris, Rome"),
    (CHOICE, "Paris", "Paris, Rome"),
    ("Which is bigger, an elephant or a mouse?", "elephant", "An elephant is smaller than a mouse."),
    ("Which is bigger, an elephant or a mouse?", "elephant", "A mouse is bigger than an elephant."),
    (SUM, "7", "3 plus 4 equals 17."),
    (SUM, "7", "3 plus 4 equals 7.5."),
    (SUM, "7", "3 + 4 = 7, so the answer is 12."),
    (SUM, "7", "3 + 4 = 7 or 8."),
    (SUM, "7", "It is not 7."),
    (SUM, "7", "5, 6, 7"),
    (SUM, "7", "There are 7 days in a week."),
    (SUM, "7", "3 plus 4 is -7."),
    (SUM, "7", "3 plus 4 is 7 million."),
    (SUM, "7", "Is 3 plus 4 equal to 7?"),
    (PENS, "22", "Tom sells 22 pens."),
    ("Which continent is Canada in?", "Asia", "Lyon is a city in Asia."),
    ("What is the capital of Mexico?", "Mexico", "The capital of Mexico is Mexico City."),
    (SUM, "7", "3 + 4 = 8. 7"),
    (SUM, "7", "3 + 4 = 8\n2 + 5 = 7"),
    (SUM, "7", "2 + 5 = 7"),
    (SUM, "7", "3 plus 4 is 7, but that is wrong."),
    (SUM, "7", "7 of 10 people say that 3 plus 4 is 8."),
    (SEVEN, "7", "7 plus 2 is 9."),
    (SEVEN, "7", "We start with 7 and count 2 more."),
    (SEVEN, "7", "What is 7 plus 2?"),
    (PENS, "12", "Tom has 12 pens and 3 boxes."),
    (PENS, "12", "He has 12 pens, and then he has 22 pens."),
    ("Is Rome in Italy?", "yes", "Yes and no."),
    ("Is Rome in Italy?", "yes", "Some say yes."),
    ("Is Rome in Italy?", "no", "There is no doubt that Rome is in Italy."),
    (LETTERS, "A", "A city in France is the capital."),
    (LETTERS, "B", "(A) Lyon (B) Paris"),
    ("Fill the gap: he ... here.", "was", "I was told that he is here."),
    ("Write the call.", '{"tool": "note"}', 'The call is {"tool": "note"}.'),
    ("What is 12 + 10?", "22", "12 + 10 is a sum of two numbers, and 23 comes out."),
    ("What is 12 + 10?", "22", "The result 22 was wrong, it is 1,200."),
    ("Which country is the Colosseum in?", "Italy", "The Colosseum is located in Athens, Greece."),
    ("Which country is the Colosseum in?", "Italy", "The Colosseum is not far from Rome, unlike Italy."),
    ("what month is between may and july?", "June", "It may be June."),
    ("What is the bridge made of?", "steel", "The bridge is full of people, unlike steel."),
]


@pytest.mark.parametrize(("prompt", "gold", "completion"), STATED)
def test_an_answer_that_is_stated_earns_one(prompt: str, gold: str, completion: str) -> None:
    assert grade(prompt, gold, completion) == 1.0


@pytest.mark.parametrize(("prompt", "gold", "completion"), TEMPTING)
def test_a_text_that_holds_the_answer_without_stating_it_earns_nothing(prompt: str, gold: str, completion: str) -> None:
    assert grade(prompt, gold, completion) == 0.0


OPEN = [
    ("What colour is a ripe tomato?", "red", "A ripe tomato is typically a bright red."),
    (
        "Maria went to Vienna. Where did Maria buy the bag?",
        "Vienna",
        "Maria bought a green bag in Vienna and paid ten dollars.",
    ),
    ("Which currency would I need in Switzerland?", "franc", "In Switzerland, the currency is the Swiss Franc."),
    ("What kind of thing is a wrench?", "tool", "A wrench is a tool that is used to remove bolts."),
    ("My uncle catches fish. What's his job?", "fisherman", "He's a fisherman, and he's out at sea."),
    ("If I fly to Thailand, on which continent do I land?", "Asia", "If you flew to Thailand, the continent would be Asia."),
    ("How many cars are parked outside, three red and six blue?", "9", "There are nine cars parked outside."),
    ("What is a baby dog called?", "puppy", "Baby dogs are called puppies."),
]
"""Sentences in words of their own, as models write them."""
COLOURS = "includes?among=red|green|blue|dark blue"


@pytest.mark.parametrize(("prompt", "gold", "completion"), OPEN)
def test_the_vocabulary_is_open(prompt: str, gold: str, completion: str) -> None:
    assert grade(prompt, gold, completion) == 1.0


@pytest.mark.parametrize(
    ("gold", "completion", "earned"),
    [
        ("red", "Tomatoes get their deep red from lycopene.", 1.0),
        ("red", "Not blue. They ripen to red.", 1.0),
        ("red", "Some say blue, others that they ripen to red.", 0.0),
        ("red", "A mix of red and green skin.", 0.0),
        ("red", "Is it red?", 0.0),
        ("red", '{"colour": "red"}', 0.0),
        ("blue", "Most berries look dark blue.", 0.0),
        ("dark blue", "Most berries look dark blue.", 1.0),
    ],
)
def test_of_few_answers_the_first_that_is_named_counts(gold: str, completion: str, earned: float) -> None:
    example = Example("i", "t", "Which colour?", answer=gold)
    assert load_grader(COLOURS).grade(example, completion) == earned


def test_the_gold_answer_itself_earns_one_whatever_it_is() -> None:
    for gold in (
        '{"tool": "note"}',
        "a b " * 40,
        "was",
        "B",
        "yes",
        "D.C.",
        "-7",
        "x = 3",
        "{",
        "child(ren)",
        "\u4e2d\u56fd",
    ):
        assert grade("Say it.", gold, f" {gold}\n") == 1.0


@pytest.mark.parametrize(
    ("gold", "completion", "earned"),
    [
        ("Paris", "The capital of France is Paris. It is known for the Eiff", 1.0),
        ("Paris", "The capital of France is Paris.\n", 1.0),
        ("Paris", "The capital of France is Paris", 0.0),
        ("New", "The capital of France is New", 0.0),
        ("Paris", "The capital of France is Paris,", 0.0),
        ("Paris", "The capital of France is Paris an", 0.0),
        ("Paris", "Paris", 0.0),
        ("Paris", "Paris\n", 1.0),
        ("7", "The capital of France is 7", 0.0),
        ("7", "The capital of France is 7.", 0.0),
        ("7", "The capital of France is 7. That is", 1.0),
    ],
)
def test_of_a_text_that_was_cut_only_what_was_finished_counts(gold: str, completion: str, earned: float) -> None:
    assert grade(FRANCE, gold, completion, cut=True) == earned


def test_only_the_beginning_of_a_long_text_is_read() -> None:
    assert grade(FRANCE, "Paris", "The capital of France is Paris. " + "It is known. " * 1000) == 1.0
    assert grade(FRANCE, "Paris", "It is known. " * 1000 + "The capital of France is Paris.") == 0.0


NAMES = st.sampled_from(["Lyon", "Rome", "Oslo", "Lima", "Cairo"])
WAYS = ("{}", "{}.", "The capital of France is {}.", "It is {}.", "{} is the capital of France.", "Answer: {}")


@given(NAMES, NAMES, st.sampled_from(WAYS))
def test_the_same_sentence_earns_for_the_name_that_it_states_and_for_no_other(one: str, other: str, way: str) -> None:
    assert grade(FRANCE, one, way.format(one)) == 1.0
    assert grade(FRANCE, other, way.format(one)) == float(one == other)
    if one == other:
        return
    for both in (f"{one} or {other}", f"{one}, {other}", f"{one} and {other}", f"{one}/{other}"):
        assert grade(FRANCE, one, way.format(both)) == 0.0


@given(
    st.integers(0, 10**6),
    st.integers(0, 10**6),
    st.sampled_from(("{}", "The answer is {}.", "{} + {} = {}", "That makes {}.")),
)
def test_a_sum_earns_for_its_value_alone(one: int, other: int, way: str) -> None:
    prompt, right = f"What is {one} plus {other}?", one + other
    parts = (one, other, right) if way.count("{}") == 3 else (right,)
    if right not in (one, other):
        assert grade(prompt, str(right), way.format(*parts)) == 1.0
        assert grade(prompt, f"{right:,}", way.format(*parts)) == 1.0
    assert grade(prompt, str(right + 1), way.format(*parts)) == 0.0


@given(st.text(max_size=300), st.text(min_size=1, max_size=40), st.text(max_size=60))
@settings(deadline=None)
def test_any_text_is_graded_and_the_answer_earns_one(text: str, gold: str, prompt: str) -> None:
    assert grade(prompt, gold, gold) == float(bool(gold.strip()))
    assert grade(prompt, gold, text) in (0.0, 1.0)
    assert grade(prompt, gold, text, cut=True) in (0.0, 1.0)


PIECES = (
    "Paris ",
    "is ",
    "Paris is ",
    ". ",
    "\n",
    "'",
    "the capital of ",
    "A) ",
    "7 ",
    "= ",
    "7, ",
    "1/",
    "{",
    "a.",
    "-",
    "Paris, ",
    "\u0301",
)


@given(
    st.lists(st.sampled_from(PIECES), min_size=1, max_size=3).map("".join),
    st.sampled_from(["Paris", "7", "is the", "a" * 50]),
)
@settings(deadline=None, max_examples=40)
def test_hostile_text_is_read_in_bounded_steps(piece: str, gold: str) -> None:
    text = piece * (200_000 // len(piece))
    assert grade(FRANCE, gold, text) in (0.0, 1.0)
    assert grade(text, gold, text) in (0.0, 1.0)
    assert grade(text, gold, f"The answer is {gold}.") in (0.0, 1.0)
    assert grade(FRANCE, text, f"It is {piece}.") in (0.0, 1.0)


@pytest.mark.parametrize(
    ("completion", "score"),
    [
        ("Apple Inc.", 1.0),
        ("1. Apple (AAPL)", 1.0),
        ("The company that makes it is Apple, Inc.", 1.0),
        ("1. Apple\n2. Samsung", 0.0),
        ("1. Apple Music", 0.0),
        ("Apple (or Samsung)", 0.0),
    ],
)
def test_forms_of_a_company_and_the_number_of_one_item_make_no_other_answer(completion: str, score: float) -> None:
    assert Includes().grade(Example("a", "t", "Which company makes iOS 5?", answer="Apple"), completion) == score


def test_a_company_form_in_the_gold_answer_is_part_of_it() -> None:
    item = Example("a", "t", "Which firm won?", answer="Acme Ltd")
    assert [Includes().grade(item, text) for text in ("It was Acme Ltd.", "It was Acme Inc.")] == [1.0, 0.0]
