"""Rows that say what of them is not learnt from: labels against an independent tokenisation, losses against labels that are
made by hand, and a wrong turn that is learnt or not."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
import torch
from datasets import Dataset
from jinja2 import UndefinedError
from test_sft_chat_families import SHIPPED, words
from test_sft_settings import CHAT
from tokenizers import Regex, pre_tokenizers
from tokenizers.models import WordLevel
from trainers_tiny import losses, model, parameters, read, sft_config, tokenizer
from trl import SFTTrainer

from mixwright import SteeredSFTTrainer
from mixwright.config import MeasureConfig, ModelConfig, TrainConfig
from mixwright.contracts import Branch
from mixwright.corpus import read_corpus
from mixwright.errors import InputError
from mixwright.learner.prompt_form import PromptForm
from mixwright.records import Plan, Stage
from mixwright.trainers.masks import carries_masks
from mixwright.trial.training import make_trainer
from mixwright_extras.tiny.model import build_tiny
from mixwright_lab.demo.training import Training, fine_tune

pytestmark = pytest.mark.filterwarnings("ignore:.*(gradient_checkpointing|keep_end).*:FutureWarning")

TALK = [
    {"role": "user", "content": "2+3="},
    {"role": "assistant", "content": "6", "train": False},
    {"role": "user", "content": "4+4="},
    {"role": "assistant", "content": "8"},
]


def prepared(cls: type, rows: list[dict[str, Any]], folder: Path, words_: Any = None, **more: Any) -> Any:
    settings = {"max_steps": 2, "max_length": None, "train_sampling_strategy": "sequential"} | more.pop("settings", {})
    chat = words_ or tokenizer()
    if words_ is None:
        chat.chat_template = CHAT
    return cls(
        model(vocab_size=128, max_position_embeddings=1024),
        args=sft_config(folder, **settings),
        train_dataset=Dataset.from_list(rows),
        processing_class=chat,
        **more,
    )


def without_flags(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    def bare(value: Any) -> Any:
        keys = ("role", "content")
        return [{key: one[key] for key in keys} for one in value] if isinstance(value, list) else value

    return [{name: bare(value) for name, value in row.items() if name != "mask"} for row in rows]


def text_of_labels(trainer: Any, place: int) -> str:
    """The trained tokens of a row as text, what is left out as one dot."""
    row, chat = trainer.train_dataset[place], trainer.processing_class
    parts = [
        chat.decode([one]) if label != -100 else "\0" for one, label in zip(row["input_ids"], row["labels"], strict=True)
    ]
    return re.sub("\0+", ".", "".join(parts))


def test_a_message_is_left_out_with_what_closes_it(tmp_path: Path) -> None:
    rows = [{"messages": TALK}, {"messages": [{**one, "train": None} for one in TALK]}]
    ours = prepared(SteeredSFTTrainer, rows, tmp_path / "a", words("qwen2_5"))
    theirs = prepared(SFTTrainer, without_flags(rows), tmp_path / "b", words("qwen2_5"))
    assert ours.train_dataset["input_ids"] == theirs.train_dataset["input_ids"]
    assert ours.train_dataset["labels"][1] == theirs.train_dataset["labels"][1]
    whole = text_of_labels(theirs, 0)
    assert text_of_labels(ours, 0) == whole.replace("<|im_start|>assistant\n6<|im_end|>\n", ".")


FAMILIES = sorted(path.name.removesuffix("_training.jinja") for path in Path(str(SHIPPED)).glob("*_training.jinja"))


def runs(labels: list[int]) -> list[list[int]]:
    """Places of labels that are trained on, by runs without a gap."""
    found: list[list[int]] = []
    for place, label in enumerate(labels):
        if label != -100:
            if not found or found[-1][-1] != place - 1:
                found.append([])
            found[-1].append(place)
    return found


@pytest.mark.parametrize("family", FAMILIES)
def test_in_each_family_the_words_of_masked_turns_are_missing_and_no_others(family: str, tmp_path: Path) -> None:
    """With `assistant_only_loss` TRL's own marks tell the words of each turn, apart from others."""
    chat = words(family)
    chat.backend_tokenizer.pre_tokenizer = pre_tokenizers.Split(Regex(r"<[^<>\s]{1,30}>|[\s\S]"), "isolated")
    talk = [{"role": role, "content": f"{role} {n}"} for n in range(3) for role in ("user", "assistant")]
    try:
        text = chat.apply_chat_template(talk, tokenize=False)
    except UndefinedError:
        text = ""
    if "assistant 0" not in text:
        pytest.skip("a template of parts, not of texts")
    only = {"assistant_only_loss": True}
    every = prepared(SFTTrainer, [{"messages": talk}], tmp_path, chat, settings=only)
    turns = runs(every.train_dataset["labels"][0])
    assert len(turns) == 3
    for place in (1, 3, 5):
        rows = [{"messages": [one | {"weight": 0 if n == place else 1} for n, one in enumerate(talk)]}]
        ours = prepared(SteeredSFTTrainer, rows, tmp_path, chat, settings=only)
        assert ours.train_dataset["input_ids"] == every.train_dataset["input_ids"]
        assert runs(ours.train_dataset["labels"][0]) == [turn for n, turn in enumerate(turns) if n != place // 2]


def test_spans_of_plain_completions_and_of_one_message(tmp_path: Path) -> None:
    said = {
        "prompt": [{"role": "user", "content": "add"}],
        "completion": [{"role": "assistant", "content": "2+2=5 so 5+1=6"}],
    }
    for name, row in {
        "plain": {"prompt": "add: ", "completion": "2+2=5 so 5+1=6"},
        "chat": said,
        "talk": {"messages": said["prompt"] + said["completion"]},
        "text": {"text": "2+2=5 so 5+1=6"},
    }.items():
        rows = [row | {"mask": [[0, 5], [9, 14]], "id": "a"}, row | {"mask": None, "id": "b"}]
        for at, settings in enumerate(({}, {"truncation_mode": "keep_end", "max_length": 12})):
            folder = tmp_path / f"{name}{at}"
            with_end = {"settings": settings}
            ours = prepared(SteeredSFTTrainer, rows, folder, **with_end)
            theirs = prepared(SFTTrainer, without_flags(rows), folder, **with_end)
            assert ours.train_dataset["input_ids"] == theirs.train_dataset["input_ids"]
            assert ours.train_dataset["labels"][1] == theirs.train_dataset["labels"][1]
            for label, full in zip(ours.train_dataset["labels"][0], theirs.train_dataset["labels"][0], strict=True):
                assert label in (full, -100)
            whole, left = text_of_labels(theirs, 0), text_of_labels(ours, 0)
            expected = whole.replace("5+1=6", ".").replace("2+2=5" if not at else whole[: whole.index(" so")], ".")
            assert left.replace("..", ".").removeprefix(".") == expected.replace("..", ".").removeprefix(".")


def test_a_token_that_reaches_into_a_span_is_left_out(tmp_path: Path) -> None:
    """Tokens of pairs of characters: the span [1, 2) takes the whole first one."""
    chat = tokenizer()
    core = chat.backend_tokenizer
    core.model = WordLevel({"<pad>": 0, "<eos>": 1, "<unk>": 2, "ab": 3, "cd": 4, "ef": 5}, unk_token="<unk>")
    core.pre_tokenizer = pre_tokenizers.Split(Regex("<eos>|.."), "isolated")
    rows = [{"prompt": "ab", "completion": "abcdef", "mask": [[1, 2]]}]
    assert prepared(SteeredSFTTrainer, rows, tmp_path, chat).train_dataset["labels"] == [[-100, -100, 4, 5, 1]]


def hand_made(rows: list[dict[str, Any]], folder: Path, wrong: str, **more: Any) -> Any:
    """TRL's own trainer on prepared rows whose labels are left out by hand, where the text says so."""
    theirs = prepared(SFTTrainer, without_flags(rows), folder, **more)

    def cut(row: dict[str, Any]) -> dict[str, Any]:
        text = "".join(theirs.processing_class.convert_ids_to_tokens(row["input_ids"])).replace("<eos>", "$")
        at = text.index(wrong)
        return {"labels": [-100 if at <= n < at + len(wrong) else label for n, label in enumerate(row["labels"])]}

    theirs.train_dataset = theirs.train_dataset.map(cut)
    return theirs


@pytest.mark.parametrize(
    ("steering", "settings"),
    [(None, {}), (True, {}), (None, {"padding_free": True})],
    ids=["plain", "steered", "padding-free"],
)
def test_training_is_that_of_labels_made_by_hand(steering: bool | None, settings: dict[str, Any], tmp_path: Path) -> None:
    rows = [{"task": "sums", "prompt": f"{n}+1=", "completion": f"wrong {n} right", "mask": [[0, 6]]} for n in range(8)]
    theirs = hand_made(rows, tmp_path / "a", "wrong ", settings=settings)
    theirs.train()
    ours = prepared(SteeredSFTTrainer, rows, tmp_path / "b", settings=settings, steering=steering)
    if steering:
        ours.steered.draws.rows[:] = ours.steered.draws.rows[:0]
        ours.steered.draws.rows.extend(range(8))
    ours.train()
    assert losses(ours) == losses(theirs)
    assert torch.equal(parameters(ours), parameters(theirs))
    if steering:
        lines = read(tmp_path / "b", "steps.jsonl")
        assert [line["losses"]["sums"][1] for line in lines] == [4 * 8, 4 * 8]  # `n right` and the end token
        assert [line["loss"] for line in lines] == pytest.approx(losses(theirs), rel=1e-4)


REFUSED: dict[str, tuple[dict[str, Any], dict[str, Any], str]] = {
    "packing": (
        {"prompt": "a", "completion": "bc", "mask": [[0, 1]]},
        {"settings": {"packing": True, "max_length": 9}},
        "packed",
    ),
    "formatting": (
        {"prompt": "a", "completion": "bc", "mask": [[0, 1]]},
        {"formatting_func": lambda row: row["prompt"] + row["completion"], "settings": {"completion_only_loss": False}},
        "formatting_func",
    ),
    "skip": (
        {"input_ids": [3], "labels": [3], "mask": [[0, 1]]},
        {"settings": {"dataset_kwargs": {"skip_prepare_dataset": True}}},
        "skip_prepare_dataset",
    ),
    "tokens": ({"input_ids": [3], "mask": [[0, 1]]}, {}, "texts of rows"),
    "beyond": ({"prompt": "a", "completion": "bc", "mask": [[0, 3]]}, {}, "2 characters"),
    "numbers": ({"prompt": "a", "completion": "bc", "mask": [0, 1]}, {}, "in mask"),
    "all": (
        {"prompt": "a", "completion": "bc", "mask": [[0, 2]]},
        {"settings": {"max_length": 3}},
        "masks that cover every row",
    ),
    "half": ({"messages": [TALK[0], {"role": "assistant", "content": "a", "weight": 0.5}]}, {}, "0.5"),
    "both": ({"messages": [TALK[0], {**TALK[1], "weight": 1}]}, {}, "weight: 1"),
    "images": ({"prompt": "a", "completion": "bc", "mask": [[0, 1]], "image": None}, {}, "images"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_honoured_is_refused(name: str, tmp_path: Path) -> None:
    row, more, reason = REFUSED[name]
    with pytest.raises(InputError, match=re.escape(reason)):
        prepared(SteeredSFTTrainer, [row], tmp_path, **more)


def test_a_template_that_rewrites_the_completion_is_refused_for_spans_and_not_for_messages(tmp_path: Path) -> None:
    chat = tokenizer()
    chat.chat_template = CHAT.replace("{{ m.content }}{% endgen", "{{ m.content | replace('z', 'yy') }}{% endgen")
    talk = [{"role": "user", "content": "a"}, {"role": "assistant", "content": "bzb"}]
    with pytest.raises(InputError, match="it changes the text"):
        prepared(SteeredSFTTrainer, [{"messages": talk, "mask": [[0, 1]]}], tmp_path, chat)
    flagged = [talk[0], {**talk[1], "loss": False}]
    ours = prepared(SteeredSFTTrainer, [{"messages": flagged}], tmp_path, chat)
    assert text_of_labels(ours, 0) == "user a ."


def test_a_stream_and_rows_without_masks(tmp_path: Path) -> None:
    bare = Dataset.from_list([{"messages": [{"role": "user", "content": "a"}], "prompt": "b"}])
    assert not carries_masks(bare)
    assert not carries_masks(None)
    stream = Dataset.from_list([{"prompt": "a", "completion": "bc", "mask": [[0, 1]]}]).to_iterable_dataset()
    with pytest.raises(InputError, match="stream"):
        SteeredSFTTrainer(model(), args=sft_config(tmp_path), train_dataset=stream, processing_class=tokenizer())


@pytest.mark.parametrize("masked", [True, False])
def test_a_wrong_turn_is_learnt_only_without_its_mask(masked: bool, tmp_path: Path) -> None:
    """Talks whose first turn is wrong and whose second is right: which of the two does the model say afterwards?"""
    talks = []
    for n in range(10):
        wrong = {"role": "assistant", "content": "bad"} | ({"train": False} if masked else {})
        talks.append(
            [
                {"role": "user", "content": f"p{n}"},
                wrong,
                {"role": "user", "content": f"q{n}"},
                {"role": "assistant", "content": "good"},
            ]
        )
    settings = {"max_steps": 120, "learning_rate": 5e-3, "assistant_only_loss": True, "per_device_train_batch_size": 10}
    ours = prepared(SteeredSFTTrainer, [{"messages": talk} for talk in talks], tmp_path, settings=settings)
    ours.train()
    said = ours.processing_class
    ids = torch.tensor([said("user p3 assistant ")["input_ids"]])
    with torch.no_grad():
        now = ours.model.eval()(input_ids=ids).logits[0, -1].softmax(-1)
    wrong, right = (now[said.convert_tokens_to_ids(letter)].item() for letter in "bg")
    if masked:
        assert wrong < 0.01
        assert right > 0.8
    else:
        assert wrong > 0.8


def kept_text(trainer: Any, place: int) -> str:
    row = trainer.train_dataset[place]
    kept = [one for one, label in zip(row["input_ids"], row["labels"], strict=True) if label != -100]
    return trainer.processing_class.decode(kept)


@pytest.mark.parametrize("template", [None, True])
def test_a_branch_of_a_run_and_a_script_train_on_what_masks_leave(
    template: bool | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    row = {"task": "sums", "prompt": "add", "completion": "2+2=5 so 5+1=6", "mask": [[0, 5]]}
    rows = [row | {"prompt": f"add {n}"} for n in range(4)] + [{**row, "mask": None}]
    (tmp_path / "rows.jsonl").write_text("".join(json.dumps(one) + "\n" for one in rows), encoding="utf-8")
    learner = build_tiny(
        [f"{one['prompt']} {one['completion']}" for one in rows], ModelConfig(width=16, depth=1, heads=1), 0
    )
    learner.form = PromptForm(template)
    branch = Branch(Plan("by hand", (Stage("training", "sft", 2, {"sums": 1.0}),)))
    corpus = read_corpus(str(tmp_path / "rows.jsonl"))
    trainer = make_trainer(
        learner, corpus, branch, TrainConfig("sft", 2), MeasureConfig(), seed=0, folder=tmp_path / "branch"
    )
    assert [kept_text(trainer, n).count("2+2=5") for n in range(5)] == [0, 0, 0, 0, 1]
    assert all("so 5+1=6" in kept_text(trainer, n) for n in range(5))

    seen: list[Any] = []
    monkeypatch.setattr(SteeredSFTTrainer, "train", lambda trainer: seen.append(trainer))
    learner.model.save_pretrained(tmp_path / "model")
    learner.tokenizer.save_pretrained(tmp_path / "model")
    for penalty in (0.0, 0.1):
        how = Training(steps=1, batch=2, rank=2)
        fine_tune(str(tmp_path / "model"), tmp_path / "rows.jsonl", tmp_path / "out", how, seed=0, penalty=penalty)
        assert sorted(kept_text(seen[-1], n).count("2+2=5") for n in range(5)) == [0, 0, 0, 0, 1]
