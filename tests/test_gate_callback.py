"""A gate inside a plain trainer: it stops a run that loses what was known, leaves others alone, and goes on after a stop."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from datasets import Dataset
from trainers_tiny import CHEAP, grpo_config, model, parameters, rows, sft_config, tokenizer, vowels
from transformers import TrainerCallback
from trl import DPOConfig, DPOTrainer, GRPOTrainer, KTOConfig, KTOTrainer, SFTTrainer

from mixwright import GateCallback
from mixwright.corpus import Corpus
from mixwright.corpus.chosen_graders import FirstAnswer
from mixwright.errors import InputError
from mixwright.records import Example

pytestmark = pytest.mark.filterwarnings("ignore:.*gradient_checkpointing.*:FutureWarning")  # TRL sets the older name
LETTERS = [Example(f"l{n}", "letters", f"say {letter}=", answer=letter) for n, letter in enumerate("abcdefghijkl")]
CORPUS = Corpus.from_examples(LETTERS, {"letters": "exact"})


@pytest.fixture(scope="module")
def knows_letters(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Weights of a model that has learnt to say letters."""
    trainer = trainer_of(tmp_path_factory.mktemp("a"), None, letters(), max_steps=150, learning_rate=1e-2)
    trainer.train()
    return {name: value.clone() for name, value in trainer.model.state_dict().items()}


def letters() -> Dataset:
    return Dataset.from_list([{"prompt": row.prompt, "completion": row.answer} for row in LETTERS] * 4)


def sums() -> Dataset:
    return Dataset.from_list([{"prompt": f"say {n % 10}=", "completion": f"{n % 7}"} for n in range(48)])


def trainer_of(folder: Path, weights: Any, data: Dataset, callbacks: Any = (), **settings: Any) -> SFTTrainer:
    built = model()
    if weights is not None:
        built.load_state_dict(weights)
    settings = {"per_device_train_batch_size": 16, "lr_scheduler_type": "constant"} | settings
    return SFTTrainer(
        model=built,
        args=sft_config(folder, **settings),
        train_dataset=data,
        processing_class=tokenizer(),
        callbacks=list(callbacks),
    )


def test_it_stops_a_run_that_loses_what_was_known(
    knows_letters: Any, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    gate = GateCallback(CORPUS, every=5, max_new_tokens=3)
    trainer = trainer_of(tmp_path, knows_letters, sums(), [gate], max_steps=100, learning_rate=1e-2)
    trainer.train()
    assert sum(gate.before) >= 11
    assert gate.looks[-1]["outcome"] == "lost"
    assert trainer.state.global_step == gate.looks[-1]["step"] < 100
    assert "gate: 12 items, right before training" in caplog.text
    assert "20 interim analyses" in caplog.text
    assert any("gate/change" in line for line in trainer.state.log_history)
    kept = json.loads((tmp_path / "gate.json").read_text())
    assert [look["step"] for look in kept["looks"]] == list(range(5, trainer.state.global_step + 1, 5))
    assert kept["looks"][-1]["tasks"]["letters"] == pytest.approx(gate.looks[-1]["change"])


def test_trackers_get_the_looks_and_an_alert_of_a_loss(
    knows_letters: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    alerts: list[str] = []
    monkeypatch.setitem(sys.modules, "wandb", SimpleNamespace(alert=lambda title, text: alerts.append(text)))

    class Tracker(TrainerCallback):
        seen: list[dict[str, Any]] = []  # noqa: RUF012

        def on_log(self, args: Any, state: Any, control: Any, logs: Any = None, **kwargs: Any) -> None:
            self.seen.append(dict(logs))

    gate = GateCallback(CORPUS, every=5, max_new_tokens=3)
    trainer = trainer_of(tmp_path, knows_letters, sums(), [Tracker()], max_steps=100, learning_rate=1e-2)
    trainer.args.report_to = ["wandb"]
    gate.add_to(trainer)
    trainer.train()
    assert [line["gate/change"] for line in Tracker.seen if "gate/change" in line] == [look["change"] for look in gate.looks]
    (alert,) = alerts
    assert alert.startswith("Gate: success fell by ")


def test_it_only_tells_where_it_may_not_stop(knows_letters: Any, tmp_path: Path) -> None:
    gate = GateCallback(CORPUS, every=10, max_new_tokens=3, stop=False)
    trainer = trainer_of(tmp_path, knows_letters, sums(), [gate], max_steps=40, learning_rate=1e-2)
    trainer.train()
    assert trainer.state.global_step == 40
    assert "lost" in [look["outcome"] for look in gate.looks]


def test_what_is_trained_does_not_depend_on_it(knows_letters: Any, tmp_path: Path) -> None:
    trained = []
    for name, callbacks in (("a", []), ("b", [GateCallback(CORPUS, every=1, max_new_tokens=3, stop=False)])):
        trainer = trainer_of(tmp_path / name, knows_letters, letters(), callbacks, max_steps=4)
        trainer.train()
        trained.append(parameters(trainer))
    assert torch.equal(*trained)


def test_it_keeps_the_last_checkpoint_that_passed(knows_letters: Any, tmp_path: Path) -> None:
    gate = GateCallback(CORPUS, every=2, max_new_tokens=3, keep_best=True, margin=0.3)
    trainer = trainer_of(tmp_path, knows_letters, letters(), [gate], max_steps=4, learning_rate=1e-6)
    trainer.train()
    assert [look["outcome"] for look in gate.looks] == ["passed", "passed"]
    assert trainer.state.best_model_checkpoint == str(tmp_path / "checkpoint-4")
    assert (tmp_path / "checkpoint-4").is_dir()
    assert json.loads((tmp_path / "gate.json").read_text())["best"] == "checkpoint-4"


def test_a_model_that_had_nothing_right_cannot_pass(tmp_path: Path) -> None:
    """Nothing can be lost where nothing was right, so that no loss is ruled out."""
    gate = GateCallback(CORPUS, every=2, max_new_tokens=3, keep_best=True)
    trainer = trainer_of(tmp_path, None, sums(), [gate], max_steps=4, learning_rate=1e-6)
    trainer.train()
    assert sum(gate.before) == 0
    assert [look["outcome"] for look in gate.looks] == ["cannot tell", "cannot tell"]
    assert trainer.state.best_model_checkpoint is None


def test_a_resumed_run_looks_on(knows_letters: Any, tmp_path: Path) -> None:
    settings = {"save_strategy": "steps", "save_steps": 2, "learning_rate": 1e-3}
    whole = GateCallback(CORPUS, every=2, max_new_tokens=3, stop=False)
    trainer_of(tmp_path / "a", knows_letters, sums(), [whole], max_steps=8, **settings).train()
    trainer_of(
        tmp_path / "b", knows_letters, sums(), [GateCallback(CORPUS, every=2, stop=False)], max_steps=8, **settings
    ).train()
    again = GateCallback(CORPUS, every=2, stop=False)
    resumed = trainer_of(tmp_path / "b", None, sums(), [again], max_steps=8, **settings)
    resumed.train(resume_from_checkpoint=str(tmp_path / "b" / "checkpoint-4"))
    assert again.before == whole.before
    assert [look["change"] for look in again.looks] == [look["change"] for look in whole.looks]
    other = GateCallback(Corpus.from_examples(LETTERS[:5], {"letters": "exact"}), every=2)
    refused = trainer_of(tmp_path / "b", None, sums(), [other], max_steps=8, **settings)
    with pytest.raises(InputError, match=r"gate\.json: expected the items"):
        refused.train(resume_from_checkpoint=str(tmp_path / "b" / "checkpoint-4"))


PAIRS = [
    {"prompt": f"say {n % 10}=", "chosen": f"{n % 7}", "rejected": "a", "completion": f"{n % 7}", "label": n % 2 == 0}
    for n in range(16)
]


def other_trainer(kind: str, folder: Path, callbacks: list[Any]) -> Any:
    """DPO, KTO or GRPO of three steps."""
    settings = {"per_device_train_batch_size": 4, "max_steps": 3, "learning_rate": 1e-3} | CHEAP
    given: dict[str, Any] = {"processing_class": tokenizer(), "callbacks": callbacks}
    if kind == "grpo":
        rewards = {"reward_funcs": vowels}
        return GRPOTrainer(model=model(), args=grpo_config(folder), train_dataset=rows(), **rewards, **given)
    columns = ["completion", "label"] if kind == "dpo" else ["chosen", "rejected"]
    data = Dataset.from_list(PAIRS).remove_columns(columns)
    cls, config = {"dpo": (DPOTrainer, DPOConfig), "kto": (KTOTrainer, KTOConfig)}[kind]
    model().save_pretrained(folder / "start")  # their reference model is loaded by name
    args = config(str(folder), max_length=32, **settings)
    return cls(model=str(folder / "start"), args=args, train_dataset=data, **given)


@pytest.mark.parametrize("kind", ["dpo", "kto", "grpo"])
@pytest.mark.filterwarnings("ignore::UserWarning", "ignore::FutureWarning")
def test_other_trainers_take_it(kind: str, tmp_path: Path) -> None:
    plain = other_trainer(kind, tmp_path / "plain", [])
    plain.train()
    gate = GateCallback(CORPUS, every=1, max_new_tokens=3, stop=False)
    watched = other_trainer(kind, tmp_path / "watched", [gate])
    watched.train()
    assert [look["step"] for look in gate.looks] == [1, 2, 3]
    assert torch.equal(parameters(watched), parameters(plain))


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"every": 0}, "every, a whole number of 1 or more, got 0"),
        ({"every": "2"}, "every, a whole number of 1 or more, got '2'"),
        ({"every": 1, "items": 1}, "items, a whole number of 2 or more"),
        ({"every": 1, "margin": 5}, "Write it as a share"),
        ({"every": 1, "protect": ["leters"]}, "letters"),
    ],
)
def test_wrong_settings_are_refused(given: dict[str, Any], told: str) -> None:
    with pytest.raises(InputError, match=told):
        GateCallback(CORPUS, **given)


def test_answers_in_sentences_are_read(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """The first answers decide, unless the grader is named; a resumed run has the same one."""
    words = ["dark", "deep", "dull", "early", "easy", "empty", "far", "fast", "full", "good", "hard", "high"]
    rows = [Example(f"w{n}", "letters", f"What is the opposite of thing {n}?", answer=word) for n, word in enumerate(words)]
    corpus = Corpus.from_examples(rows, {"letters": "exact"})
    gate = GateCallback(corpus, every=5)
    gate._choose_graders([FirstAnswer(row, f"The opposite of it is {row.answer}.", False) for row in gate.items])
    assert gate.corpus.tasks["letters"].grader == "includes"
    assert "gate: letters: grader includes, because" in caplog.text
    named = GateCallback(corpus, every=5, graders={"letters": "exact"})
    named._choose_graders([FirstAnswer(row, f"The opposite of it is {row.answer}.", False) for row in named.items])
    assert named.corpus.tasks["letters"].grader == "exact"


@pytest.mark.parametrize("kind", ["FSDP", "DEEPSPEED"])
def test_parameters_in_parts_are_refused(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As `accelerate launch` asks for them: the trainer's own settings say nothing of it."""
    trainer = trainer_of(tmp_path, None, letters())
    monkeypatch.setenv(f"ACCELERATE_USE_{kind}", "true")
    with pytest.raises(InputError, match="mixwright verdict BASE CHECKPOINT"):
        GateCallback(CORPUS, every=1).on_train_begin(trainer.args, trainer.state, trainer.control)
