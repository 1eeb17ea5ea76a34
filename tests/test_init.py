"""`run --init`: objective, arms, graders and sizes from the rows, with reasons; and settings that a dry run accepts."""

from pathlib import Path
from typing import Any

import pytest
from cli_call import Call, sums, write
from trainers_tiny import model, tokenizer

from mixwright.config import RunConfig
from mixwright.run.folder import read_yaml

PAIRS = [{"prompt": f"Say {n}: ", "chosen": f"yes {n}", "rejected": f"no {n}"} for n in range(40)]
PROSE = [{"instruction": f"Write about {n}", "output": f"Number {n} is quite a number, they say here."} for n in range(40)]
CHATS: list[dict[str, Any]] = [
    {
        "messages": [
            {"role": "user", "content": f"Hello {n}"},
            {"role": "assistant", "content": f"How do you do, number {n}?"},
        ]
    }
    for n in range(40)
]


@pytest.mark.parametrize(
    ("rows", "objective", "probes", "planner", "arms"),
    [
        (PAIRS, "dpo", ("preference",), "rehearsal", ("uniform",)),
        (PROSE, "sft", ("held_out_loss",), "rehearsal", ("uniform",)),
        (CHATS, "sft", ("held_out_loss",), "rehearsal", ("uniform",)),
        (
            [{**row, "task": f"t{place % 2}"} for place, row in enumerate(PROSE)],
            "sft",
            ("held_out_loss",),
            "rehearsal",
            ("uniform", "equal_shares"),
        ),
        (
            sums(),
            "grpo",
            ("competence",),
            "difficulty",
            ("uniform", "equal_shares", "steered"),
        ),
    ],
)
def test_the_objective_and_what_exists_for_it_come_from_the_rows(
    rows: list[dict[str, Any]], objective: str, probes: tuple[str, ...], planner: str, arms: tuple[str, ...], call: Call
) -> None:
    code, _, err = call("run", write("rows.jsonl", rows), "--init")
    assert code == 0, err
    assert f"Objective: {objective}, because" in err
    config = read_yaml(Path("run.yaml"), RunConfig)
    assert (config.train.objective, config.measure.probes, config.planner) == (objective, probes, planner)
    assert config.trial.arms == arms
    assert (config.corpus.graders != {}) == (objective == "grpo")


def test_eval_and_model_and_objective_can_be_given(call: Call) -> None:
    Path("data").mkdir()
    write("data/train.jsonl", sums(40))
    write("data/eval.jsonl", sums(20, 100))
    asked = ("--eval", "data/eval.jsonl", "--objective", "sft", "--output", "data/mine.yaml")
    assert call("run", "data/train.jsonl", "--init", *asked)[0] == 0
    config = read_yaml(Path("data/mine.yaml"), RunConfig)
    assert (config.corpus.train, config.corpus.eval, config.train.objective) == ("train.jsonl", "eval.jsonl", "sft")
    assert call("run", "data/train.jsonl", "--init", "--model", "owner/name", "--output", "real.yaml")[0] == 0
    config = read_yaml(Path("real.yaml"), RunConfig)
    assert (config.model.path, config.model.warmup, config.train.learning_rate) == ("owner/name", None, 1e-6)


def test_the_room_is_that_of_measuring_where_the_model_is_here(call: Call) -> None:
    model().save_pretrained("now")
    tokenizer().save_pretrained("now")
    rows = [{"prompt": f"{n}+1=" + "1" * (n % 30), "answer": f"so\n#### {n + 1}"} for n in range(40)]
    code, _, err = call("run", write("rows.jsonl", rows), "--init", "--model", "now")
    assert code == 0, err
    config = read_yaml(Path("run.yaml"), RunConfig)
    assert config.measure.max_new_tokens == config.train.max_new_tokens == 64 - len("29+1=") - 29
    assert "the context leaves 30 tokens behind the longest prompt" in " ".join(
        Path("run.yaml").read_text(encoding="utf-8").replace("#", "").split()
    )


def test_an_objective_that_the_rows_do_not_allow_is_refused_with_those_that_they_do(call: Call) -> None:
    code, _, err = call("run", write("rows.jsonl", PROSE), "--init", "--objective", "dpo")
    assert (code, Path("run.yaml").exists()) == (1, False)
    assert "rows are not pairs of chosen and rejected" in err
    assert "--objective sft" in err
    code, _, err = call("run", write("bare.jsonl", [{"prompt": f"Say {n}"} for n in range(9)]), "--init")
    assert (code, "Add answers, completions or pairs" in err) == (1, True)


def test_examples_in_place_of_settings_are_told_apart(call: Call) -> None:
    write("rows.jsonl", sums())
    for arguments in (("run", "rows.jsonl", "--dry-run"), ("run", "rows.jsonl"), ("run", "rows.jsonl", "--only", "trial")):
        code, _, err = call(*arguments)
        assert code == 1
        assert "mixwright run --init rows.jsonl" in err
    code, _, err = call("run", "run.yaml", "--eval", "rows.jsonl")
    assert (code, "--init with --eval" in err) == (1, True)


def test_completions_are_trained_on_as_they_are_though_answers_stand_beside_them(call: Call) -> None:
    """Rows with completions, or that end in the assistant's turn, are for SFT; bare answers are for rewards."""
    both = [{"prompt": f"{n} + 1 =", "completion": f"That is {n + 1}.", "answer": str(n + 1)} for n in range(40)]
    turns = [{"messages": row["messages"], "answer": str(n)} for n, row in enumerate(CHATS)]
    for rows, objective in ((both, "sft"), (turns, "sft"), (sums(), "grpo")):
        Path("run.yaml").unlink(missing_ok=True)
        assert call("run", write("rows.jsonl", rows), "--init")[0] == 0
        assert read_yaml(Path("run.yaml"), RunConfig).train.objective == objective


def test_a_checkpoint_gets_no_settings_of_a_tiny_model_and_an_adapter(call: Call) -> None:
    assert call("run", write("rows.jsonl", PROSE), "--init", "--model", "owner/name")[0] == 0
    text = Path("run.yaml").read_text(encoding="utf-8")
    assert not any(f"\n  {name}:" in text for name in ("width", "depth", "heads", "vocabulary", "warmup"))
    config = read_yaml(Path("run.yaml"), RunConfig)
    assert (config.train.adapter, config.train.adapters["lora"]["learning_rate"]) == ("lora", 2e-4)
