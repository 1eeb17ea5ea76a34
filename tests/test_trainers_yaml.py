"""A script's YAML file with a `steering:` section, read by TRL's own parser."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from trainers_tiny import CHEAP, model, pairs, read, rows, saved_model, tokenizer, vowels
from trl import DPOConfig, GRPOConfig, ModelConfig, ScriptArguments, SFTConfig, TrlParser

from mixwright import SteeredDPOTrainer, SteeredGRPOTrainer, SteeredSFTTrainer, Steering, SteeringArguments
from mixwright.errors import InputError
from mixwright.records import Plan, Stage
from mixwright.runs import write_plan

pytestmark = pytest.mark.filterwarnings("ignore:.*gradient_checkpointing.*:FutureWarning")  # TRL sets the older name

SCRIPT = """
dataset_name: none
output_dir: {out}
per_device_train_batch_size: 4
max_steps: 2
learning_rate: 1.0e-3
{more}
steering:
  plan: {plan}
  folder: {out}/beside
  seed: 7
  canary_every: 0
  columns: {{task: domain}}
"""


def parsed(config: type, text: str, folder: Path, *more: str) -> Any:
    path = folder / "script.yaml"
    path.write_text(text + "\n" + yaml.safe_dump(CHEAP))
    parser = TrlParser((ScriptArguments, config, ModelConfig, SteeringArguments))
    return parser.parse_args_and_config(["--config", str(path), *more])


@pytest.mark.parametrize("objective", ["grpo", "sft", "dpo"])
def test_the_section_steers_each_trainer(objective: str, tmp_path: Path) -> None:
    plan = tmp_path / "plan.yaml"
    write_plan(plan, Plan("test", (Stage(objective, objective, 2, {"letters": 0.75, "sums": 0.25}),)))  # type: ignore[arg-type]
    more = "num_generations: 2\nmax_completion_length: 4" if objective == "grpo" else "max_length: 32"
    config = {"grpo": GRPOConfig, "sft": SFTConfig, "dpo": DPOConfig}[objective]
    text = SCRIPT.format(out=tmp_path, plan=plan, more=more)
    _, args, _, steered = parsed(config, text, tmp_path)
    shared = {"args": args, "processing_class": tokenizer(), "steering": steered.steering}
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
    drawn = [line["drawn"] for line in read_lines(tmp_path / "beside")]
    assert trainer.steering.seed == 7
    assert sum(line.get("letters", 0) for line in drawn) == 3 * sum(line.get("sums", 0) for line in drawn) > 0


def read_lines(folder: Path) -> list[dict[str, Any]]:
    (folder.parent / "look").mkdir()
    (folder.parent / "look" / "steering").symlink_to(folder)
    return read(folder.parent / "look", "steps.jsonl")


@pytest.mark.parametrize(
    ("section", "wanted"),
    [
        ("", None),
        ("steering: true", True),
        ("steering: false", False),
        ("steering: plan.yaml", "plan.yaml"),
        ("steering: {canary_every: 5}", Steering(canary_every=5)),
    ],
)
def test_forms_of_the_section(section: str, wanted: Any, tmp_path: Path) -> None:
    *_, steered = parsed(SFTConfig, f"dataset_name: none\noutput_dir: {tmp_path}\n{section}", tmp_path)
    assert steered.steering == wanted


@pytest.mark.parametrize(
    ("said", "wanted"),
    [
        ("true", True),
        ("False", None),
        ("a/plan.yaml", "a/plan.yaml"),
        ('{"seed": 3, "columns": {"task": ""}}', Steering(seed=3, columns={"task": ""})),
    ],
)
def test_the_command_line_overrides_the_file(said: str, wanted: Any, tmp_path: Path) -> None:
    text = f"dataset_name: none\noutput_dir: {tmp_path}\nsteering: {{seed: 1}}"
    *_, steered = parsed(SFTConfig, text, tmp_path, "--steering", said)
    assert steered.steering == wanted


@pytest.mark.parametrize(
    ("section", "word"),
    [
        ("{canary_evry: 5}", "Nearest: canary_every"),
        ("{seed: one}", "steering.seed as int, got 'one'"),
        ("{seed: true}", "steering.seed as int, got True"),
        ("{columns: task}", "steering.columns as mapping, got 'task'"),
        ("{canary_every: often}", "steering.canary_every as int, got 'often'"),
    ],
)
def test_what_cannot_be_used_says_so(section: str, word: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=word):
        parsed(SFTConfig, f"dataset_name: none\noutput_dir: {tmp_path}\nsteering: {section}", tmp_path)


def test_a_trainer_takes_a_mapping_itself(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="Nearest: columns"):
        SteeredSFTTrainer(model(), train_dataset=rows(), steering={"column": {}})  # type: ignore[arg-type]


def test_json_that_is_none_says_so(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="--steering as JSON"):
        SteeringArguments(steering="{seed")
