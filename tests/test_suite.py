"""The general suite: every gold answer is right for its own grader, draws are reproducible, families share no request."""

from __future__ import annotations

import json
import re
from collections import Counter
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import pytest
from cli_call import Call as CallCommand
from cli_call import sums, write
from test_direct import adapter, checkpoint

from mixwright.audit.leaks import find_leaks
from mixwright.config import CorpusConfig
from mixwright.corpus import Corpus, read_corpus
from mixwright.corpus.corpus import NO_CALL
from mixwright.corpus.tool_messages import with_tools
from mixwright.errors import InputError
from mixwright.graders import load_grader
from mixwright.measure.stage import MeasureResult
from mixwright.records import Example, Measurement, plain
from mixwright.run.folder import RunFolder, read_json
from mixwright.suite import draw
from mixwright.suite.draw import (
    FAMILIES,
    OPEN_FAMILIES,
    PER_RUNG,
    REPLAYED,
    RING_ITEMS,
    SEALED_FAMILIES,
    choose_rungs,
    describe_lack,
    draw_items,
    draw_to_compare,
    read_requests,
    write_suite,
)
from mixwright.suite.family import FORMS, Family, Item, find_form, follow
from mixwright.tool_calls import Call, write_calls
from mixwright.verbs import general
from mixwright.verbs.direct import comparing_command, read_rows
from mixwright.verbs.gating import Gating
from mixwright.verbs.general import leave_out_trained, with_suite
from mixwright.verbs.options import Measuring
from mixwright.verdict.rules.gate_question import GateQuestion, question_file
from mixwright_lab.studies.questions import OLD_TASKS, questions

ROWS = draw_items(per_rung=40, seed=11)


def request_rows() -> list[dict[str, Any]]:
    return [row | {"kind": kind} for kind in REPLAYED for row in read_requests(kind)]


def requests() -> list[str]:
    """Prompts to replay, as text."""
    return [json.dumps(row["prompt"]) for row in request_rows()]


@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.name)
def test_every_gold_answer_is_right_for_its_grader_and_another_one_mostly_is_not(family: Family) -> None:
    grader, own = load_grader(family.grader), [row for row in ROWS if row["task"] == family.name]
    if family.grader == "follows":
        assert all(json.loads(row["answer"]) for row in own)
        return
    examples = [Example(row["id"], family.name, row["prompt"], answer=row["answer"]) for row in own]
    assert [one.id for one in examples if grader.grade(one, one.answer or "") != 1.0] == []
    others = [
        grader.grade(one, other.answer or "") for one, other in zip(examples, examples[1:] + examples[:1], strict=True)
    ]
    assert sum(others) / len(others) < 0.6, "blind choice"


def test_draws_are_the_same_for_a_seed_and_others_for_another_one() -> None:
    assert draw_items(per_rung=3, seed=4) == draw_items(per_rung=3, seed=4)
    first, second = ({json.dumps(row["prompt"]) for row in draw_items(per_rung=8, seed=seed)} for seed in (1, 2))
    assert len(first & second) < len(first) / 3
    assert len({row["id"] for row in ROWS}) == len(ROWS) == 40 * sum(family.rungs for family in FAMILIES)


def test_families_share_no_prompt_and_requests_are_no_items() -> None:
    by_prompt: dict[str, set[Any]] = {}
    for row in ROWS:
        by_prompt.setdefault(json.dumps(row["prompt"]), set()).add(row["task"])
    assert [names for names in by_prompt.values() if len(names) > 1] == []
    assert not by_prompt.keys() & set(requests())
    assert len(requests()) == len(set(requests()))


def test_beside_tools_the_answer_counts_and_a_call_does_not() -> None:
    rows = draw_items([family for family in FAMILIES if family.name == "no_tool"], per_rung=40, seed=5)
    assert {row["level"]: len(row["tools"]) for row in rows} == {1: 1, 2: 1, 3: 3, 4: 3, 5: 5, 6: 5}
    assert {find_form(row["prompt"]) for row in rows} <= {"", "imperative"}
    items = [Example(row["id"], "no_tool", with_tools(row["prompt"], row["tools"]), answer=row["answer"]) for row in rows]
    corpus = Corpus.from_examples(items, {"no_tool": "includes"})
    for item in items:
        told = f"The answer is {item.answer}."
        call = write_calls([Call(item.tools[0]["function"]["name"], {"question": item.answer})])
        assert [corpus.grade(item, text) for text in (told, call, f"{told} {call}")] == [1.0, 0.0, 0.0]
        assert [corpus.parts(item, text)[NO_CALL] for text in (told, call)] == [True, False]


def as_rows(path: Path, rows: list[dict[str, Any]]) -> str:
    texts = [plain(row["prompt"] if isinstance(row["prompt"], str) else tuple(row["prompt"])) for row in rows]
    answers = [row.get("answer") for row in rows]
    told = [{"prompt": text} | ({"answer": gold} if gold else {}) for text, gold in zip(texts, answers, strict=True)]
    path.write_text("".join(json.dumps(row) + "\n" for row in told), encoding="utf-8")
    return str(path)


def test_items_requests_sealed_kinds_and_tasks_of_the_demo_are_disjoint_by_the_checks_of_the_audit(tmp_path: Path) -> None:
    sealed_names = {family.name for family in SEALED_FAMILIES}
    demo = [{"prompt": prompt, "answer": answer} for task in OLD_TASKS for prompt, answer in questions(task)]
    asked = [{"prompt": row["prompt"]} for row in request_rows()]
    opened, sealed = ([row for row in ROWS if (row["task"] in sealed_names) == is_sealed] for is_sealed in (False, True))
    pairs = [(asked, opened + sealed), (opened, sealed), (demo, opened + sealed), (asked, demo)]
    for number, (train, held_out) in enumerate(pairs):
        files = [as_rows(tmp_path / f"{number}{name}.jsonl", rows) for name, rows in (("t", train), ("e", held_out))]
        leaks = find_leaks(read_corpus(CorpusConfig(files[0], eval=files[1])))
        assert (int((leaks.overlap.partner >= 0).sum()), leaks.wrapped, leaks.near) == (0, {}, {}), number


def test_there_are_enough_families_and_a_third_is_sealed() -> None:
    assert len(FAMILIES) >= 24
    assert 3 * len(SEALED_FAMILIES) >= len(FAMILIES)
    assert len({family.name for family in FAMILIES}) == len(FAMILIES)
    counts = {kind: len(read_requests(kind)) for kind in REPLAYED}
    assert {name: count for name, count in counts.items() if not 40 <= count <= 60} == {}


def test_a_rung_gives_as_many_items_as_it_has_and_a_file_is_written_once() -> None:
    same = Family("same", lambda rng, rung: Item("?", follow(question=True)), 1, "follows", "one request")
    assert len(draw_items([same], per_rung=2)) == 1
    rows = draw_items(per_rung=1)
    path = write_suite(rows)
    assert [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()] == rows
    path.write_text("kept", encoding="utf-8")
    assert write_suite(rows).read_text(encoding="utf-8") == "kept"


def test_rungs_that_are_too_easy_or_too_hard_are_not_chosen_and_the_items_are_others() -> None:
    right = {("facts", 1): 1.0, ("facts", 2): 0.95, ("facts", 3): 0.3, ("facts", 4): 0.29, ("reading", 1): 0.96}
    assert choose_rungs(right) == {"facts": [2, 3]}
    chosen = {"facts": [2, 3], "reading": [1], "calendar": [2]}
    rows = draw_to_compare(chosen, seed=3)
    counts = {name: sum(row["task"] == name for row in rows) for name in chosen}
    assert counts["reading"] == RING_ITEMS / 2
    assert 0.6 * RING_ITEMS / 2 < counts["facts"] <= RING_ITEMS / 2, "the families of a ring have as many, where there are"
    assert all("level" not in row for row in rows)
    by_which_chosen = {json.dumps(row["prompt"]) for row in draw_items(seed=3)}
    shared = sum(json.dumps(row["prompt"]) in by_which_chosen for row in rows)
    assert shared < 0.05 * len(rows)


def test_a_request_says_its_form_at_the_end_of_its_name() -> None:
    system, user = {"role": "system", "content": "Be brief."}, {"role": "user", "content": "Hi?"}
    assert [find_form(prompt) for prompt in ([system, user], [user, user], "Name a river.", "Which river?")] == [
        "system message",
        "several turns",
        "imperative",
        "",
    ]
    assert find_form("Quelle est la capitale de ce pays : Pérou, et une ville que vous aimez ?") == "other language"
    found = Counter(next((form for form in FORMS if row["id"].endswith(f" {form}")), "question") for row in ROWS)
    assert set(found) == {*FORMS, "question"}


def test_what_suits_too_little_says_how_much_there_is() -> None:
    names = [*(family.name for family in OPEN_FAMILIES[:4]), *(family.name for family in SEALED_FAMILIES[:3])]
    rows = [{"task": name} for name in names for _ in range(60)]
    assert describe_lack(rows) == ""
    assert describe_lack(rows[:-60]) == "6 kinds (2 of them sealed) and 360 items"
    assert describe_lack(rows[: -60 * 4]).startswith("3 kinds")
    assert describe_lack(rows[::2]) == "7 kinds (3 of them sealed) and 210 items"


def test_without_rows_the_suite_is_measured_with_the_grader_of_each_family(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    base = checkpoint("base", chat=True)
    measuring = with_suite(base, Measuring(items=2), draw_items())
    assert measuring.held_out is not None
    assert comparing_command("m", None) == "mixwright verdict m YOUR_MODEL"
    rows = read_rows(measuring, tell=lambda line: None)
    assert {task: rows.config.graders[task] for task in rows.corpus.tasks} == {one.name: one.grader for one in FAMILIES}
    assert len(rows.corpus) == PER_RUNG * sum(family.rungs for family in FAMILIES)
    plain = read_rows(with_suite(checkpoint("plain"), Measuring(), draw_items()), tell=lambda line: None)
    assert 0.8 * len(rows.corpus) < len(plain.corpus) < len(rows.corpus), "no chats for a model without a template"
    with pytest.raises(InputError, match="--grader"):
        with_suite(base, Measuring(grader=["exact"]), ROWS)


def test_own_rows_are_asked_beside_the_suite_and_items_in_the_training_rows_are_left_out(tmp_path: Path) -> None:
    own = tmp_path / "own.jsonl"
    own.write_text(json.dumps({"task": "mine", "question": "7 + 7?", "answer": "14"}) + "\n", encoding="utf-8")
    drawn = draw_to_compare({"facts": [1], "moves": [1]}, seed=5)
    base = checkpoint(str(tmp_path / "base"), chat=True)
    measuring = with_suite(base, Measuring(held_out=str(own), column=["prompt=question"], grader=["mine=numeric"]), drawn)
    rows = read_rows(measuring, tell=lambda line: None)
    assert rows.corpus.graders == {"facts": "includes", "moves": "includes", "mine": "numeric"}
    assert len(rows.corpus) == len(drawn) + 1
    train = tmp_path / "train.jsonl"
    trained = [{"prompt": row["prompt"], "completion": row["answer"]} for row in drawn[:3]]
    train.write_text("".join(json.dumps(row) + "\n" for row in trained), encoding="utf-8")
    left = leave_out_trained(drawn, str(train))
    assert not {row["id"] for row in drawn[:3]} & {row["id"] for row in left}
    assert len(left) > len(drawn) - 12, "nearly the same ones may go, too"


def tiny_families(prefix: str, count: int) -> tuple[Family, ...]:
    def make(rng: Random, rung: int) -> Item:
        number = rng.randrange(80)
        return Item(f"{number}+{rung}=", str(number + rung))

    return tuple(Family(f"{prefix}{n}", make, 2, "exact", "sums") for n in range(count))


def test_two_models_are_compared_in_groups_and_rows_of_the_user_are_a_group_of_their_own(
    call: CallCommand, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened, sealed = tiny_families("open", 5), tiny_families("sealed", 3)
    for name, families in (("OPEN_FAMILIES", opened), ("SEALED_FAMILIES", sealed), ("FAMILIES", opened + sealed)):
        monkeypatch.setattr(draw, name, families)
    monkeypatch.setattr(draw, "RING_ITEMS", 240)
    before, after = checkpoint("before"), checkpoint("after", 1)
    code, _, err = call("verdict", before, after, "--max-new-tokens", "3")
    assert (code, "neither too easy nor too hard" in err, "Bring your own items: --eval" in err) == (4, True, True), err
    half = [
        Measurement("competence", family.name, "greedy", 0.5, 0.2, 0.8, 8, "share", level=rung)
        for family in opened + sealed
        for rung in (1, 2)
    ]
    monkeypatch.setattr(general, "measure_checkpoint", lambda *_, **__: (None, MeasureResult(tuple(half))))
    own = write("own.jsonl", sums(20))
    train = write("train.jsonl", [{"prompt": f"{n}+1=", "completion": str(n + 1)} for n in range(5)])
    given = ("--max-new-tokens", "3", "--eval", own, "--trained-on", train)
    code, _, err = call("verdict", before, after, *given)
    assert code == 4, err  # random models: no answer is right
    assert "left out, because they are in train.jsonl" in err
    assert re.search(r"look (\d+) of \1,", err), "no model is right, so that nothing ends before the last look"
    assert "suite: " in err
    question = read_json(question_file(RunFolder("runs/comparison")), GateQuestion)
    assert [name for name, _ in question.rings] == [general.REPLAYED, general.SEALED, general.OWN]
    told = read_json(RunFolder("runs/comparison").verdict_data, dict)
    assert [ring["name"] for ring in told["gate"]["rings"]] == [name for name, _ in question.rings]
    assert {note["task"] for note in told["notes"]} <= {"sum", None}, "of general requests it is known that they are read"
    assert {task["task"] for task in told["tasks"]} == {family.name for family in opened + sealed} | {"sum"}


@pytest.mark.filterwarnings("ignore:.*is_gradient_checkpointing:FutureWarning")  # peft still reads the old name
@pytest.mark.parametrize(
    ("after", "options", "said"),
    [
        ("no-such", (), "'no-such'"),
        ("gone/away", (), "no such folder"),
        ("empty", (), "'empty' without config.json"),
        ("orphan", (), "'./nowhere'"),
        ("after", ("--max-items", "40"), "--max-items of 400 or more"),
        ("after", ("--trained-on", "no-such.jsonl"), "no-such.jsonl"),
        ("after", ("--eval", "no-such.jsonl"), "no-such.jsonl"),
        ("after", ("--grader", "exact"), "--eval FILE with --grader"),
        ("after", ("--adapter", "no-adapter"), "no-adapter"),
    ],
)
def test_whatever_is_wrong_is_said_before_the_first_model_answers(
    after: str, options: tuple[str, ...], said: str, call: CallCommand, monkeypatch: pytest.MonkeyPatch
) -> None:
    def answer(*_: Any, **__: Any) -> None:
        raise AssertionError("a model was asked")

    monkeypatch.setattr(general, "measure_checkpoint", answer)
    before = "before" if after == "orphan" else checkpoint("before")
    if after == "orphan":  # both are adapters, so neither is the base of the other
        adapter("before", checkpoint("base"))
        adapter("orphan", "./nowhere")
    elif after == "empty":
        Path("empty").mkdir()
    elif after == "after":
        checkpoint("after", 1)
    code, _, err = call("verdict", before, after, *options)
    assert (code, said in err, Path("runs").exists()) == (1, True, False), err


def test_harder_rungs_are_asked_only_where_something_easier_was_right(monkeypatch: pytest.MonkeyPatch) -> None:
    families = tuple(replace(family, rungs=4) for family in tiny_families("open", 6) + tiny_families("sealed", 3))
    for name, part in (("OPEN_FAMILIES", families[:6]), ("SEALED_FAMILIES", families[6:]), ("FAMILIES", families)):
        monkeypatch.setattr(draw, name, part)
    asked = []

    def measure(model: str, measuring: Measuring, folder: None, *, with_notes: bool) -> Any:
        rows = [json.loads(line) for line in Path(str(measuring.held_out)).read_text(encoding="utf-8").splitlines()]
        cells = sorted({(row["task"], row["level"]) for row in rows})
        asked.append(cells)
        right = [(task, rung, 0.5 * (task != "open0" and rung != 3)) for task, rung in cells]
        found = [
            Measurement("competence", task, "greedy", share, 0, 1, 8, "share", level=rung) for task, rung, share in right
        ]
        return None, MeasureResult(tuple(found))

    monkeypatch.setattr(general, "measure_checkpoint", measure)
    monkeypatch.setattr(general, "_takes_chats", lambda model, measuring: True)
    compared, _ = general.compare_on_suite("m", Measuring(), Gating())
    assert {rung for _, rung in asked[0]} == {1, 2}
    assert set(asked[1]) == {(family.name, rung) for family in families[1:] for rung in (3, 4)}
    rows = [json.loads(line) for line in Path(str(compared.held_out)).read_text(encoding="utf-8").splitlines()]
    assert {row["task"] for row in rows} == {family.name for family in families[1:]}
    assert {row["id"].split("-")[1] for row in rows} == {"1", "2", "4"}
