"""`SteeringConfig` beside TRL's own argument classes, read by TRL's parser from a script's YAML file and command line."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest
import yaml
from trainers_tiny import CHEAP, model, pairs, read, rows, saved_model, tokenizer, vowels
from transformers import HfArgumentParser
from trl import (
    DPOConfig,
    GRPOConfig,
    ModelConfig,
    ScriptArguments,
    SFTConfig,
    TrlParser,
)

from mixwright import SteeredDPOTrainer, SteeredGRPOTrainer, SteeredSFTTrainer, SteeringConfig
from mixwright.errors import InputError
from mixwright.records import Plan, Stage
from mixwright.run.folder import write_plan

pytestmark = pytest.mark.filterwarnings("ignore:.*gradient_checkpointing.*:FutureWarning")  # TRL sets the older name

SCRIPT = """
dataset_name: none
output_dir: {out}
per_device_train_batch_size: 4
max_steps: 2
learning_rate: 1.0e-3
{more}
plan: {plan}
folder: {out}/beside
draw_seed: 7
columns: {{task: domain}}
"""


def parsed(config: type, text: str, folder: Path, *more: str) -> Any:
    path = folder / "script.yaml"
    path.write_text(text + "\n" + yaml.safe_dump(CHEAP))
    parser = TrlParser((ScriptArguments, config, ModelConfig, SteeringConfig))
    return parser.parse_args_and_config(["--config", str(path), *more])


@pytest.mark.parametrize("objective", ["grpo", "sft", "dpo"])
def test_the_file_steers_each_trainer(objective: str, tmp_path: Path) -> None:
    plan = tmp_path / "plan.yaml"
    write_plan(plan, Plan("test", (Stage(objective, objective, 2, {"letters": 0.75, "sums": 0.25}),)))  # type: ignore[arg-type]
    more = "num_generations: 2\nmax_completion_length: 4" if objective == "grpo" else "max_length: 32"
    config = {"grpo": GRPOConfig, "sft": SFTConfig, "dpo": DPOConfig}[objective]
    text = SCRIPT.format(out=tmp_path, plan=plan, more=more)
    _, args, _, steering = parsed(config, text, tmp_path)
    shared = {"args": args, "processing_class": tokenizer(), "steering": steering}
    if objective == "grpo":
        data = rows().rename_column("task", "domain")
        trainer: Any = SteeredGRPOTrainer(model(), reward_funcs=vowels, train_dataset=data, **shared)
    elif objective == "sft":
        data = rows().rename_columns({"task": "domain", "answer": "completion"})
        trainer = SteeredSFTTrainer(model(), train_dataset=data, **shared)
    else:
        data = pairs().rename_column("task", "domain")
        trainer = SteeredDPOTrainer(saved_model(tmp_path / "model"), train_dataset=data, **shared)
    trainer.train()
    drawn = [line["scored"] for line in read_lines(tmp_path / "beside")]
    assert trainer.steering.draw_seed == 7
    assert sum(line.get("letters", 0) for line in drawn) == 3 * sum(line.get("sums", 0) for line in drawn) > 0


def read_lines(folder: Path) -> list[dict[str, Any]]:
    (folder.parent / "look").mkdir()
    (folder.parent / "look" / "steering").symlink_to(folder)
    return read(folder.parent / "look", "steps.jsonl")


VALUES: dict[str, tuple[Any, list[str]]] = {
    "plan": ("plan.yaml", ["plan.yaml"]),
    "folder": (Path("beside"), ["beside"]),
    "draw_seed": (3, ["3"]),
    "permute_rewards": (True, []),
    "columns": ({"task": ""}, ['{"task": ""}']),
    "reward_seconds": (2.5, ["2.5"]),
    "slow_rewards": ("wrong", ["wrong"]),
    "unscored_batches": (0, ["0"]),
    "reward_range": ([-1.0, 1.0], ["-1", "1"]),
    "options": ({"engine": {"on_alarm": "stop"}}, ['{"engine": {"on_alarm": "stop"}}']),
}
"""Field -> a value that is not its default, as it stands in YAML, and the words of a command line that say it."""


@pytest.mark.parametrize("name", [field.name for field in fields(SteeringConfig)])
def test_every_field_is_read_from_the_file_and_from_the_command_line(name: str, tmp_path: Path) -> None:
    value, words = VALUES[name]
    wanted = SteeringConfig(**{name: value})
    assert wanted != SteeringConfig()
    head = f"dataset_name: none\noutput_dir: {tmp_path}\n"
    written = str(value) if isinstance(value, Path) else value
    assert parsed(SFTConfig, head + yaml.safe_dump({name: written}), tmp_path)[-1] == wanted
    assert parsed(SFTConfig, head, tmp_path, f"--{name}", *words)[-1] == wanted
    assert HfArgumentParser((SteeringConfig,)).parse_args_into_dataclasses([f"--{name}", *words])[0] == wanted  # type: ignore[arg-type]


@pytest.mark.parametrize("config", [GRPOConfig, SFTConfig, DPOConfig])
def test_no_field_has_a_name_of_trls_and_each_says_what_it_is(config: type, capsys: pytest.CaptureFixture[str]) -> None:
    parser = TrlParser((ScriptArguments, config, ModelConfig, SteeringConfig))  # refuses a name that stands there twice
    parser.print_help()
    shown = capsys.readouterr().out
    assert "steering (Mixwright):" in shown
    for field in fields(SteeringConfig):
        assert " ".join(field.metadata["help"].split()[:4]) in " ".join(shown.split())


def test_the_command_line_overrides_the_file(tmp_path: Path) -> None:
    text = f"dataset_name: none\noutput_dir: {tmp_path}\ndraw_seed: 1"
    assert parsed(SFTConfig, text, tmp_path)[-1] == SteeringConfig(draw_seed=1)
    assert parsed(SFTConfig, text, tmp_path, "--draw_seed", "2")[-1] == SteeringConfig(draw_seed=2)


@pytest.mark.parametrize(
    ("section", "word"),
    [
        ("columns: task", "steering.columns as mapping; on a command line, as JSON, got 'task'"),
        ("options: {selectors.difficulty: {predct: true}}", "predct"),
    ],
)
def test_what_cannot_be_used_says_so(section: str, word: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=word):
        parsed(SFTConfig, f"dataset_name: none\noutput_dir: {tmp_path}\n{section}", tmp_path)


def test_no_steering_is_trl_itself(tmp_path: Path) -> None:
    data = rows().rename_column("answer", "completion")
    given: dict[str, Any] = {"train_dataset": data, "processing_class": tokenizer()}
    args = SFTConfig(str(tmp_path), **CHEAP)
    trainer = SteeredSFTTrainer(model(), args, steering=False, **given)
    assert trainer.steered is None


def test_a_mapping_is_refused_with_what_to_give(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="or a SteeringConfig, got dict"):
        SteeredSFTTrainer(model(), train_dataset=rows(), steering={"columns": {}})  # type: ignore[arg-type]
