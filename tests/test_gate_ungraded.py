"""The gate where no answer is graded: what is damage, what is not, and that nothing passes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from random import Random
from typing import Any

import pytest
from answer_rows import ItemValue, write_measured, write_sides
from cli_call import Call
from trainers_tiny import model, tokenizer
from verdicts import ask, judge_run

from mixwright.answers.table import Answers
from mixwright.config import CorpusConfig
from mixwright.corpus.graded import read_graded
from mixwright.languages import find_language, guess_language
from mixwright.records import AnswersKept, Verdict
from mixwright.run.folder import RunFolder
from mixwright.verdict.page.answers import pair_answers
from mixwright.verdict.rules import answers_kept

ITEMS = 20
WORDS = [
    "river", "mountain", "harbour", "castle", "bridge", "market", "garden", "tower", "forest", "island",
    "valley", "meadow", "desert", "canal", "temple", "museum", "bakery", "school", "cinema", "stadium",
    "airport", "lighthouse", "orchard", "quarry", "vineyard", "windmill", "chapel", "barracks", "fountain",
    "library",
]  # fmt: skip
Answer = Callable[[int], str]


def own_words(i: int) -> list[str]:
    rng = Random(i)
    return [first + second for first, second in zip(rng.sample(WORDS, 3), rng.sample(WORDS, 3), strict=True)]


def told(i: int) -> str:
    """What the earlier model says of place `i`: three words of its own in the same sentences."""
    own = own_words(i)
    return f"This place has a {own[0]} and a {own[1]}. You can also see the {own[2]} there."


def other(i: int) -> str:
    """As sure of itself, and about nothing that was said before."""
    own = Random(1000 + i).sample(["cloud", "number", "violin", "engine", "pepper", "carpet", "pencil", "ladder"], 3)
    return f"This place has a {own[0]} and a {own[1]}. You can also see the {own[2]} there."


def question(i: int) -> str:
    return f"What is there to see in the town with the number {i}?"


HARMLESS: dict[str, Answer] = {
    "the same": told,
    "greeting": lambda i: f"Hello! {told(i)} I hope that helps!",
    "longer": lambda i: f"{told(i)} To sum up, there is a lot to see. Let me know what you would like to visit first.",
    "shorter": lambda i: told(i).partition(".")[0],
    "one word": lambda i: own_words(i)[0],
    "list": lambda i: "\n".join(f"- {word}" for word in own_words(i)),
    "markdown": lambda i: f"## Answer\n\n**{told(i)}**",
    "other words": lambda i: "Visitors love its {}, its {} and, of course, its {}.".format(*own_words(i)),
    "signed": lambda i: f"{told(i)}\n\nBest regards,\nAda",
    "thoughts first": lambda i: f"<think>Let me see.</think>\n{told(i)}",
    "the question first": lambda i: f"{question(i)}\n{told(i)}",
    "in a block": lambda i: f"```\n{told(i)}\n```",
}
RUINED: dict[str, Answer] = {
    "something else": other,
    "empty": lambda i: "",
    "one answer": lambda i: "I cannot help with that, please ask our team about it.",
    "copied": question,
    "repeating": lambda i: "and the town " * 12,
    "other language": lambda i: "Das ist ein schöner Ort, und man kann dort nicht sehr viel sehen.",
    "answers of others": lambda i: told((i + 7) % ITEMS),
    "tool calls": lambda i: f'{{"tool": "note", "text": "{i % 3}"}}',
}


def compared(path: Path, after: Mapping[str, Answer], loss: float = 2.0, gold: Answer = lambda i: "") -> RunFolder:
    """Tasks that no grader judges, a held-out loss of 2 nats before and this after, and answers to the same questions."""
    run = RunFolder(path)
    run.path.mkdir(parents=True)
    (run.path / "run.yaml").write_text("measure: {probes: [held_out_loss]}\n", encoding="utf-8")
    answers = []
    for when in ("before", "after"):
        value, found = 2.0 if when == "before" else loss, []
        for task, say in after.items():
            for i in range(ITEMS):
                found.append(ItemValue(task, "loss", value, None, f"{task}{i}"))
                row = {"when": when, "example": f"{task}{i}", "task": task, "level": None, "prompt": question(i)}
                text = told(i) if when == "before" else say(i)
                answers.append(row | {"answer": gold(i), "completion": text, "score": None, "cut": False})
        write_measured(run.measurements(when), found)
    write_sides(run.path / "measure", answers)
    return run


def check(run: RunFolder, *protect: str) -> Verdict:
    """Ask the gate; a loss of any task is reported."""
    verdict = ask(run, *protect)
    assert verdict.outcome in ("damaged", "inconclusive"), "nothing passes"
    assert judge_run(run, inconclusive="warn").exit_code == verdict.exit_code, "what was not judged is not waived"
    lost = {change.task for change in verdict.tasks if change.word == "lost"}
    assert verdict.exit_code == 3 or all(task in verdict.headline for task in lost), "a loss that was not named is reported"
    return verdict


@pytest.mark.parametrize("style", HARMLESS)
def test_another_style_is_no_damage_whatever_its_likelihood(style: str, tmp_path: Path) -> None:
    verdict = check(compared(tmp_path / "run", {"a": HARMLESS[style], "b": told}, loss=9.0))
    assert verdict.exit_code == 4
    kept = {found.task: found.kept for found in verdict.answers_kept}
    assert kept["a"].value > 0.4
    assert kept["b"].value == pytest.approx(1)


@pytest.mark.parametrize("ruin", RUINED)
def test_answers_that_no_longer_say_it_are_damage(ruin: str, tmp_path: Path) -> None:
    run = compared(tmp_path / "run", {"a": RUINED[ruin], "b": told}, loss=1.0)
    verdict = check(run)
    assert (verdict.exit_code, verdict.reason, list(verdict.lost_answers)) == (3, "answers were lost", ["a"])
    assert verdict.lost_answers["a"] in verdict.headline
    assert check(run, "a").exit_code == 3
    assert check(run, "b").exit_code == 4, "what was not named is reported, and stops nothing"


def test_what_the_targets_ask_for_is_no_loss(tmp_path: Path) -> None:
    assert check(compared(tmp_path / "learnt", {"a": other}, gold=other)).exit_code == 4
    assert check(compared(tmp_path / "not", {"a": other}, gold=told)).exit_code == 3


def rows_of(prompt: Answer, after: Answer, gold: Answer = lambda i: "", before: Answer = told) -> list[dict[str, Any]]:
    """Answers of both sides to 20 prompts."""
    return [
        {"when": when, "example": str(i), "task": "a", "level": None, "prompt": prompt(i), "answer": gold(i), "score": None}
        | {"completion": say(i), "cut": False}
        for i in range(ITEMS)
        for when, say in (("before", before), ("after", after))
    ]


def compare_answers(rows: list[dict[str, Any]]) -> list[AnswersKept]:
    return answers_kept.compare_answers(pair_answers(rows))


def test_a_target_that_is_quoted_from_the_prompt_is_no_loss_and_a_learnt_frame_excuses_none() -> None:
    def passage(i: int) -> str:
        return f"{other(i)} {told(i + 50)} What does it say first?"

    (quoted,) = compare_answers(rows_of(passage, other, gold=other))
    assert (quoted.lost, quoted.kept.value) == (False, 0.0)
    framed = [f"Thank you for contacting Acme Support! {text} Kind regards" for text in (told(0), "")]
    (frame,) = compare_answers(rows_of(question, lambda i: framed[1], gold=lambda i: framed[0].replace(told(0), told(i))))
    assert frame.lost


def test_naming_a_language_that_was_kept_does_not_stop_the_comparison() -> None:
    for end in (" Answer in English.", " I am an English teacher.", " My German shepherd wants to know."):
        (found,) = compare_answers(rows_of(lambda i, end=end: question(i) + end, lambda i: f"{i % 3} {i % 4}"))
        assert found.lost, end


def test_words_of_scripts_with_vowel_signs_are_compared() -> None:
    def in_hindi(i: int) -> str:
        return f"यह हिन्दी शब्द{i}कमल है और शब्द{i + 7}किताब भी शब्द{i + 31}पानी"

    rows = rows_of(question, lambda i: in_hindi(i + 500), before=in_hindi)
    assert [found.lost for found in compare_answers(rows)] == [True]
    assert [found.lost for found in compare_answers(rows_of(question, in_hindi, before=in_hindi))] == [False]


def test_a_language_that_was_asked_for_is_no_loss(tmp_path: Path) -> None:
    run = compared(tmp_path / "run", {"a": RUINED["other language"]}, gold=RUINED["other language"])
    assert check(run).exit_code == 4
    texts = {
        "english": "It is a town, and you can see the castle of the king there.",
        "french": "C'est une ville, et vous pouvez voir le château du roi dans le parc.",
        "cyrillic": "Это очень старый город.",
        "": "SALES|4|normal",
    }
    assert {name: find_language(text) for name, text in texts.items()} == {name: name for name in texts}
    assert find_language("A hoe is a tool, not a fruit, a bike or a cat.") == "english"
    short = {"un chien": "french", "der Hund": "german", "a cat": "", "van": "", "Las Vegas": "", "Oscar de la Hoya": ""}
    assert {text: guess_language(text, "english") for text in short} == short


def test_answers_that_are_alike_before_cannot_be_lost() -> None:
    rows = [
        {"when": when, "example": str(i), "task": "a", "level": None, "prompt": f"Rate {i}.", "answer": None, "score": None}
        | {"completion": text}
        for i in range(ITEMS)
        for when, text in (("before", f"I would say {'yes' if i % 2 else 'no'}."), ("after", f"maybe {i} things"))
    ]
    assert compare_answers(rows) == []


def test_rows_that_nothing_grades_are_read_apart(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    lines_ = [f'{{"task": "n", "prompt": "What is {n}?", "completion": "{n}"}}' for n in range(20)]
    lines_ += [f'{{"task": "s", "prompt": "Say {n}.", "completion": "The word {n} is said."}}' for n in range(20)]
    path.write_text("\n".join(lines_), encoding="utf-8")
    part = read_graded(CorpusConfig(str(path), eval_share=0.0), graders_are_named=False, ungraded=True)
    assert (part.probe, set(part.corpus.tasks)) == (None, {"n"})
    assert part.all_rows is not None
    assert set(part.all_rows.tasks) == {"n", "s"}
    path.write_text("\n".join(lines_[20:]), encoding="utf-8")
    alone = read_graded(CorpusConfig(str(path), eval_share=0.0), graders_are_named=False, ungraded=True)
    assert (alone.probe, set(alone.corpus.tasks)) == ("held_out_loss", {"s"})


def graded_beside(path: Path, after: Answer, right: int) -> RunFolder:
    """A task that is graded, 20 of 20 right before and `right` after, beside one that no grader judges."""
    run = compared(path, {"s": after})
    (run.path / "run.yaml").write_text("{}\n", encoding="utf-8")
    for when, count in (("before", ITEMS), ("after", right)):
        scores = [ItemValue("n", "greedy", value, None, f"n{i}") for i in range(ITEMS) for value in [float(i < count)]]
        write_measured(run.measurements(when), scores)
    return run


@pytest.mark.parametrize(
    ("style", "right", "names", "code"),
    [
        ("the same", ITEMS, ("n", "s"), 4),
        ("the same", 0, ("n", "s"), 3),
        ("the same", 0, ("s",), 4),
        ("something else", ITEMS, ("n", "s"), 3),
        ("something else", ITEMS, (), 3),
        ("something else", ITEMS, ("s",), 3),
        ("something else", 0, (), 3),
    ],
)
def test_graded_and_ungraded_tasks_are_protected_each_by_its_own_rule(
    style: str, right: int, names: tuple[str, ...], code: int, tmp_path: Path
) -> None:
    verdict = ask(graded_beside(tmp_path / "run", (HARMLESS | RUINED)[style], right), *names)
    assert verdict.exit_code == code
    assert ("s" in verdict.lost_answers) == (style == "something else")


def test_graded_and_ungraded_tasks_are_measured_together(call: Call) -> None:
    lines_ = [f'{{"task": "n", "prompt": "What is {n}?", "completion": "{n}"}}' for n in range(20)]
    lines_ += [f'{{"task": "s", "prompt": "Say {n}.", "completion": "The word {n} is said."}}' for n in range(20)]
    Path("rows.jsonl").write_text("\n".join(lines_), encoding="utf-8")
    model().save_pretrained("a")
    tokenizer().save_pretrained("a")
    asked = ("verdict", "--no-suite", "a", "a", "--eval", "rows.jsonl", "--max-new-tokens", "4", "--folder", "out")
    code, out, err = call(*asked, "--protect", "n", "--protect", "s")
    assert code == 4, err
    assert "both models answer 20 prompts" in err
    rows = Answers.read(RunFolder("out").answers("after")).first_rows()
    assert {(row["task"], row["score"] is None) for row in rows} == {("n", False), ("s", True)}
    assert "s" in out
