"""SteeredSFTTrainer: what it tells, draws and watches, on a tiny Llama; each setting of TRL is in test_sft_settings."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
import torch
from datasets import Dataset
from trainers_tiny import model, parameters, read, rows, script, sft_config, tokenizer
from trl import SFTTrainer

from mixwright import SteeredSFTTrainer, SteeringConfig
from mixwright.errors import InputError
from mixwright.records import Plan, Stage

pytestmark = pytest.mark.filterwarnings(
    "ignore:.*gradient_checkpointing.*:FutureWarning"  # TRL 1.16 still sets transformers' older name
)

PLAN = Plan("test", (Stage("sft", "sft", 10, {"letters": 0.75, "sums": 0.25}),))


def data() -> Dataset:
    return rows().rename_column("answer", "completion")


def make(cls: type, folder: Path, settings: dict[str, Any] | None = None, **kwargs: Any) -> Any:
    kwargs = {"train_dataset": data(), "processing_class": tokenizer()} | kwargs
    return cls(model(), args=sft_config(folder, **(settings or {})), **kwargs)


def nats(trained: Any, example: dict[str, Any], words: Any) -> tuple[float, int]:
    """Independent: loss per target token of `prompt + completion + end`, from full logits."""
    prompt = words(example["prompt"])["input_ids"]
    ids = torch.tensor([[*prompt, *words(example["completion"])["input_ids"], words.eos_token_id]])
    with torch.no_grad():
        table = trained(input_ids=ids).logits.log_softmax(-1)[0]
    target = list(range(len(prompt), ids.shape[1]))
    return -sum(table[i - 1, ids[0, i]].item() for i in target) / len(target), len(target)


def test_outcomes_are_each_examples_own_loss(tmp_path: Path) -> None:
    settings = {"max_steps": 1, "gradient_accumulation_steps": 2, "shuffle_dataset": True}
    trainer = make(SteeredSFTTrainer, tmp_path, settings, steering=SteeringConfig(PLAN))
    seen: list[Any] = []
    observe = trainer.steered.engine.observe
    trainer.steered.engine.observe = lambda outcomes, signals: (seen.extend(outcomes), observe(outcomes, signals))[1]
    trainer.train()
    assert [outcome.task for outcome in seen].count("letters") == 6
    assert len(seen) == 8
    examples = {row["id"]: row for row in data()}
    for outcome in seen:
        loss, tokens = nats(model(), examples[outcome.example], tokenizer())
        assert outcome.task == examples[outcome.example]["task"]
        assert outcome.tokens == tokens
        assert outcome.loss == pytest.approx(loss, rel=1e-4)
    line = json.loads((tmp_path / "steering" / "steps.jsonl").read_text().splitlines()[0])
    assert line["loss"] == pytest.approx(trainer.state.log_history[0]["loss"], rel=1e-3)
    assert line["scored"] == {"letters": 6, "sums": 2}


def test_length_and_epochs_are_trls(tmp_path: Path) -> None:
    settings = {"max_steps": -1, "num_train_epochs": 2, "per_device_train_batch_size": 5}
    theirs, ours = (
        make(SFTTrainer, tmp_path / "a", settings),
        make(SteeredSFTTrainer, tmp_path / "b", settings, steering=True),
    )
    theirs.train()
    ours.train()
    assert ours.state.global_step == theirs.state.global_step == 10
    assert len(ours.steered.draws) == 48
    # Default plan: weights by rows, each epoch of 24 draws takes 12 of each task.
    proof = json.loads((tmp_path / "b" / "steering" / "proof.json").read_text())
    assert proof["drawn"] == {"letters": 0.5, "sums": 0.5}
    # a letter and the end token are in the loss of each letter's row; sums have one or two digits
    tokens = {
        "letters": 24 * 2,
        "sums": sum(
            2 * (len(row["completion"]) + 1) for row in rows().rename_column("answer", "completion") if row["task"] == "sums"
        ),
    }
    shares = {task: count / sum(tokens.values()) for task, count in tokens.items()}
    assert proof["loss_tokens"] == pytest.approx(shares)


def test_a_resumed_run_draws_as_the_uninterrupted_one(tmp_path: Path) -> None:
    settings = {"max_steps": 9, "save_strategy": "steps", "save_steps": 1, "per_device_train_batch_size": 5}
    whole = make(SteeredSFTTrainer, tmp_path / "whole", settings, steering=SteeringConfig(PLAN))
    whole.train()
    shutil.copytree(tmp_path / "whole", tmp_path / "broken")
    resumed = make(SteeredSFTTrainer, tmp_path / "broken", settings, steering=SteeringConfig(PLAN))
    resumed.train(resume_from_checkpoint=str(tmp_path / "broken" / "checkpoint-6"))
    assert resumed.steered.state() == whole.steered.state()
    one, two = (tmp_path / side / "steering" / "steps.jsonl" for side in ("whole", "broken"))
    assert one.read_text() == two.read_text()
    assert torch.equal(parameters(resumed), parameters(whole))


def test_rows_that_trl_drops_are_not_drawn(tmp_path: Path) -> None:
    settings = {"max_length": 5, "truncation_mode": "keep_start"}  # `say a=` fills it; sums keep their answers
    trainer = make(SteeredSFTTrainer, tmp_path, settings, steering=True)
    trainer.train()
    assert trainer.steered.pool.tasks == ("sums",)
    assert json.loads((tmp_path / "steering" / "proof.json").read_text())["dropped_rows"] == 12


def test_evaluation_and_custom_names_work(tmp_path: Path) -> None:
    renamed = data().rename_column("task", "domain")
    trainer = make(
        SteeredSFTTrainer,
        tmp_path,
        {"eval_strategy": "steps", "eval_steps": 1},
        steering=SteeringConfig(PLAN, columns={"task": "domain"}),
        train_dataset=renamed,
        eval_dataset={"sums": renamed.select([1, 3]), "letters": renamed.select([0, 2])},
    )
    trainer.train()
    logged = set().union(*trainer.state.log_history)
    assert {"eval_sums_loss", "eval_letters_loss", "steering/share/letters"} <= logged


def test_a_line_has_losses_and_tokens_per_cell(tmp_path: Path) -> None:
    settings = {"max_steps": 12, "per_device_train_batch_size": 8}
    trainer = make(SteeredSFTTrainer, tmp_path, settings, steering=SteeringConfig(PLAN))
    seen = script(trainer, lambda outcomes: [])
    trainer.train()
    lines = read(tmp_path, "steps.jsonl")
    assert not {"cells", "success", "beta", "groups", "rollouts"} & set(lines[0])
    tokens = sum(outcome.tokens for outcome in seen[-1] if outcome.task == "sums")
    assert lines[-1]["losses"]["sums@2"][1] == tokens
    proof = json.loads((tmp_path / "steering" / "proof.json").read_text())
    assert proof["examples"] == 96
    assert not {"groups", "zero_signal_share", "rollouts"} & set(proof)


def test_by_default_nothing_is_held_back_and_the_log_says_so(tmp_path: Path) -> None:
    trainer = make(SteeredSFTTrainer, tmp_path, {"max_steps": 1}, steering=True)
    trainer.train()
    assert not read(tmp_path, "decisions.jsonl")


def test_plain_prompts_beside_a_chat_template_are_told(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    words = tokenizer()
    make(SteeredSFTTrainer, tmp_path, steering=True, processing_class=words)
    assert "plain text" not in caplog.text
    words.chat_template = "{% for m in messages %}{{ m['content'] }}{% endfor %}"
    make(SteeredSFTTrainer, tmp_path, steering=True, processing_class=words)
    assert "the prompts are plain text" in caplog.text
    caplog.clear()
    chats = data().map(
        lambda row: {
            "prompt": [{"role": "user", "content": row["prompt"]}],
            "completion": [{"role": "assistant", "content": row["completion"]}],
        }
    )
    make(SteeredSFTTrainer, tmp_path, steering=True, processing_class=words, train_dataset=chats)
    assert "plain text" not in caplog.text


@pytest.mark.parametrize("column", ["task", "id"])
def test_a_row_without_a_task_is_refused_by_its_number(tmp_path: Path, column: str) -> None:
    values: list[Any] = list(data()[column])
    values[7] = None
    rest = data().remove_columns(column)
    with pytest.raises(InputError, match=rf"(?s){column}.*none in row 7"):
        make(SteeredSFTTrainer, tmp_path, steering=True, train_dataset=rest.add_column(column, values))


def test_a_first_batch_without_a_target_is_refused_and_else_counted(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Rows that are prepared already keep their labels, so that only the batch shows that nothing would be learnt."""
    ids = [[5, 6, 7, 8], [6, 7, 8, 9]] * 4

    def prepared(labels: list[list[int]]) -> Dataset:
        return Dataset.from_list([{"input_ids": i, "labels": j, "task": "sums"} for i, j in zip(ids, labels, strict=True)])

    settings = {"max_steps": 1, "max_length": None}
    with pytest.raises(InputError, match="at least one token with a loss in the first batch"):
        make(SteeredSFTTrainer, tmp_path, settings, train_dataset=prepared([[-100] * 4] * 8), steering=True).train()
    with caplog.at_level("INFO", logger="mixwright"):
        half = prepared([[-100, -100, *row[2:]] for row in ids])
        make(SteeredSFTTrainer, tmp_path / "half", settings, train_dataset=half, steering=True).train()
    assert any("the loss is taken on 8 of 16 tokens" in line for line in caplog.messages), caplog.messages
