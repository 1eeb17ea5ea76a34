"""What will be learnt: twelve planted faults on five chat families, sound set-ups beside them, and TRL's own labels."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from datasets import Dataset
from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers
from trainers_tiny import model, sft_config
from transformers import PreTrainedTokenizerFast
from trl.trainer.sft_trainer import SFTTrainer

from mixwright.audit.checks.prompts import Prompts
from mixwright.audit.learnt import WORDS, count_facts, faults_of, observe_learnt
from mixwright.corpus import Corpus
from mixwright.records import Example
from mixwright.trainers.labels import label_rows

pytestmark = pytest.mark.filterwarnings("ignore::FutureWarning")
FAMILIES = {
    "chatml": ("", "<|im_start|>{role}\n", "<|im_end|>\n", "assistant"),
    "llama3": ("<|begin_of_text|>", "<|start_header_id|>{role}<|end_header_id|>\n\n", "<|eot_id|>", "assistant"),
    "gemma": ("<bos>", "<start_of_turn>{role}\n", "<end_of_turn>\n", "model"),
    "phi": ("", "<|{role}|>\n", "<|end|>\n", "assistant"),
    "mistral": ("<s>", "[{role}] ", "</s>", "assistant"),
}
"""Begin of text, header of a turn, its end, and the assistant's name."""
ROWS = 6


def template_of(family: str, marks: str = "words and end", *, think: str = "", bos: int = 1, system: str = "") -> str:
    """Make a chat template; `marks`: what the assistant's mask covers."""
    first, header, end, name = FAMILIES[family]
    header, own = header.replace("{role}", "{{ m.role }}"), header.replace("{role}", name)
    stop, tail = (end.rstrip("\n"), end[len(end.rstrip("\n")) :])
    inner = {
        "words and end": f"{{% generation %}}{think}{{{{ m.content }}}}{stop}{{% endgeneration %}}{tail}",
        "words": f"{{% generation %}}{think}{{{{ m.content }}}}{{% endgeneration %}}{stop}{tail}",
        "none": f"{think}{{{{ m.content }}}}{stop}{tail}",
    }[marks]
    body = (
        f"{{% for m in messages %}}{{% if m.role == 'assistant' %}}{own}{inner}{{% else %}}{header}{{{{ m.content }}}}{end}"
    )
    return f"{first * bos}{system}{body}{{% endif %}}{{% endfor %}}{{% if add_generation_prompt %}}{own}{{% endif %}}"


def tokenizer_of(family: str, template: str | None = None) -> PreTrainedTokenizerFast:
    """Make a tokenizer of characters, with the family's marks as special tokens."""
    first, header, end, _ = FAMILIES[family]
    marks = [
        "<pad>",
        "<eos>",
        first or "<bos>",
        end.strip(),
        *([header.split("{")[0]] if "<|i" in header or "<|s" in header else []),
    ]
    vocabulary = {name: i for i, name in enumerate(dict.fromkeys([*marks, *map(chr, range(32, 127)), "\n"]))}
    core = Tokenizer(models.WordLevel(vocabulary, unk_token="<pad>"))
    core.pre_tokenizer = pre_tokenizers.Split(Regex(r"[\s\S]"), "isolated")
    core.decoder = decoders.Fuse()
    found = PreTrainedTokenizerFast(
        tokenizer_object=core, pad_token="<pad>", eos_token=end.strip(), bos_token=first or "<bos>"
    )
    found.add_special_tokens({"additional_special_tokens": marks[3:]})
    found.chat_template = template or template_of(family)
    return found


def turns(n: int, *contents: str) -> list[dict[str, str]]:
    texts = contents or (f"What is {n}+1, please?", f"It is {n + 1}.")
    return [{"role": ("user", "assistant")[place % 2], "content": text} for place, text in enumerate(texts)]


def chats(**change: Any) -> list[dict[str, Any]]:
    return [{"messages": turns(n)} for n in range(ROWS)]


def pairs(prefix: str = "") -> list[dict[str, Any]]:
    return [{"prompt": turns(n)[:1], "completion": turns(n, "", prefix + f"It is {n + 1}.")[1:]} for n in range(ROWS)]


def found_in(rows: list[dict[str, Any]], tokenizer: Any, settings: dict[str, Any], attention: str | None = None) -> set[str]:
    """Faults of the rows and of the settings."""
    labelled = label_rows(((row, "all", f"a:{n}") for n, row in enumerate(rows)), tokenizer, settings, attention=attention)
    told = {one.check for one in observe_learnt(labelled) if one.severity != "info"}
    found = set(labelled.faults).union(*map(faults_of, labelled.rows))
    assert told == {check for check, faults in WORDS.items() if faults.keys() & found}
    return found


ONLY = {"assistant_only_loss": True, "max_length": 500}


@pytest.mark.parametrize("family", FAMILIES)
def test_twelve_planted_faults_are_found(family: str, tmp_path: Path) -> None:
    sound, header = tokenizer_of(family), FAMILIES[family][1].replace("{role}", FAMILIES[family][3])
    other = tmp_path / "other.jinja"
    other.write_text(template_of(family, system="Be kind.\n"), encoding="utf-8")
    human = [{"messages": [{"role": "human", "content": "Hi"}, *turns(n)[1:]]} for n in range(ROWS)]
    twice = template_of(family, bos=2) if FAMILIES[family][0] else "{{ bos_token }}" * 2 + template_of(family)
    several = [{"prompt": turns(n)[:1], "completion": turns(n, "", "Yes.", "Sure?", "I am.")[1:]} for n in range(ROWS)]
    planted: dict[str, tuple[list[dict[str, Any]], Any, dict[str, Any]]] = {
        "no target": (chats(), sound, {"assistant_only_loss": True, "max_length": 12}),
        "all targets": (chats(), sound, {"max_length": 500}),
        "prompt trained": (several, sound, {"max_length": 500}),
        "end not trained": (chats(), tokenizer_of(family, template_of(family, "words")), ONLY),
        "cut": (chats(), sound, {"assistant_only_loss": True, "max_length": len_of(sound) - 4}),
        "double bos": (chats(), tokenizer_of(family, twice), ONLY),
        "generation prompt twice": (pairs(header), sound, {"max_length": 500}),
        "thoughts added": (chats(), tokenizer_of(family, template_of(family, think="<think>\n\n</think>\n\n")), ONLY),
        "template differs": (chats(), sound, ONLY | {"chat_template_path": str(other)}),
        "wrong role": (human, sound, ONLY),
    }
    seen = {name: found_in(*set_up) for name, set_up in planted.items()}
    assert [name for name, found in seen.items() if name not in found] == []
    packed = ONLY | {"packing": True}
    assert "rows read each other" in found_in(chats(), sound, packed, "sdpa")
    foreign = "<|im_start|>" if family != "chatml" else "[INST]"
    rows = Corpus.from_examples(Example(f"{n}", "all", f"{foreign} What is {n}?", target="One.") for n in range(ROWS))
    assert any(one.severity == "warning" for one in Prompts().check(rows))


def test_thoughts_that_a_template_leaves_out_are_told() -> None:
    """As Qwen3's: of all turns but the last only what follows the thoughts is written."""
    rows = [
        {"messages": turns(n, "Hi?", "<think>A greeting.</think>Hi.", "1+1?", "<think>So 2.</think>2")} for n in range(ROWS)
    ]
    keeps = template_of("chatml")
    cuts = keeps.replace("{{ m.content }}", "{{ m.content if loop.last else m.content.split('</think>')[-1] }}")
    assert "thoughts dropped" not in found_in(rows, tokenizer_of("chatml", keeps), ONLY)
    assert "thoughts dropped" in found_in(rows, tokenizer_of("chatml", cuts), ONLY)
    alike = [{"messages": turns(n, "Hi?", "<think>So.</think>Hi.", "1?", "<think>So.</think>2")} for n in range(ROWS)]
    assert "thoughts dropped" in found_in(alike, tokenizer_of("chatml", cuts), ONLY), "one of two thoughts is left"
    assert "thoughts dropped" not in found_in(alike, tokenizer_of("chatml", keeps), ONLY)
    told = keeps.replace("{% for m", "{% if terse %}{% set messages = messages[:2] %}{% endif %}{% for m")
    terse = [row | {"chat_template_kwargs": {"terse": True}} for row in rows]
    assert "thoughts dropped" in found_in(terse, tokenizer_of("chatml", told), ONLY)  # arguments of the row are handed on
    assert "thoughts dropped" not in found_in(rows, tokenizer_of("chatml", told), ONLY)
    apart = [{"messages": [*turns(n)[:1], {**turns(n)[1], "reasoning_content": "I count."}]} for n in range(ROWS)]
    assert "thoughts dropped" in found_in(apart, tokenizer_of("chatml", keeps), ONLY)


def len_of(tokenizer: Any) -> int:
    return len(tokenizer.apply_chat_template(chats()[0]["messages"], return_dict=True)["input_ids"])


def test_words_of_earlier_turns_are_the_assistants_without_marks_of_the_template() -> None:
    """Qwen's own template marks nothing: the one that TRL has for training does. The given tokenizer is left alone."""
    from importlib.resources import files

    tokenizer = tokenizer_of("chatml", (files("trl") / "chat_templates" / "qwen2_5.jinja").read_text(encoding="utf-8"))
    before = tokenizer.chat_template
    rows = [{"messages": turns(n, "Hi", "Yes?", f"Is {n} odd?", "No.")} for n in range(ROWS)]
    labelled = label_rows(((row, "all", "a:1") for row in rows), tokenizer, {"max_length": None})
    words = labelled.rows[0].words
    assert words is not None
    assert "Yes?" in str(tokenizer.decode(labelled.rows[0].ids[words])).replace(" ", "")
    assert tokenizer.chat_template == before


@pytest.mark.parametrize("family", FAMILIES)
def test_nothing_is_found_in_sound_set_ups(family: str) -> None:
    sound = tokenizer_of(family)
    long = [{"messages": turns(n, "Hi", "Yes?", f"Is {n} odd?", "No.")} for n in range(ROWS)]
    texts = [{"prompt": f"{n}+1=", "completion": f" {n + 1}"} for n in range(ROWS)]
    systems = [{"messages": [{"role": "system", "content": "Be brief."}, *turns(n)]} for n in range(ROWS)]
    set_ups: list[tuple[Any, Any, dict[str, Any], str | None]] = [
        (chats(), sound, ONLY, None),
        (pairs(), sound, {"max_length": 500}, None),
        (texts, sound, {"max_length": 500}, None),
        (long, sound, ONLY, None),
        (systems, sound, ONLY, None),
        (chats(), sound, ONLY | {"packing": True}, "flash_attention_2"),
    ]
    assert [found_in(rows, own, how, attention) for rows, own, how, attention in set_ups] == [set()] * len(set_ups)


@pytest.mark.parametrize("how", [{"assistant_only_loss": True, "max_length": 40}, {"max_length": 40}, {"max_length": None}])
@pytest.mark.parametrize("make", [chats, pairs])
def test_labels_are_those_of_trl(make: Any, how: dict[str, Any], tmp_path: Path) -> None:
    tokenizer, rows = tokenizer_of("chatml"), make()
    theirs: Any = SFTTrainer(
        model(vocab_size=len(tokenizer)),
        args=sft_config(tmp_path, shuffle_dataset=False, **how),
        train_dataset=Dataset.from_list(rows),
        processing_class=tokenizer_of("chatml"),
    ).train_dataset
    labelled = label_rows(((row, "all", f"a:{n}") for n, row in enumerate(rows)), tokenizer, how)
    ours = [(row.ids.tolist(), np.where(row.targets, row.ids, -100).tolist()) for row in labelled.rows if row.targets.any()]
    assert ours == [(one["input_ids"], one["labels"]) for one in theirs]


@pytest.mark.parametrize("how", [{}, {"packing_strategy": "bfd_split"}, {"truncation_mode": "keep_end"}])
def test_labels_of_packs_are_those_of_trls_collator(how: dict[str, Any], tmp_path: Path) -> None:
    """A row's first token in a pack has no label, and packs are cut at the end, whatever `truncation_mode` says."""
    how, tokenizer, rows = {"packing": True, "max_length": 40, **how}, tokenizer_of("chatml"), chats()
    trainer: Any = SFTTrainer(
        model(vocab_size=len(tokenizer)),
        args=sft_config(tmp_path, **how),
        train_dataset=Dataset.from_list(rows),
        processing_class=tokenizer_of("chatml"),
    )
    theirs = []
    for pack in trainer.train_dataset:
        labels, ends = trainer.data_collator([pack])["labels"][0].numpy(), np.cumsum(pack["seq_lengths"])
        theirs += [own.tolist() for own in np.split(labels, ends[:-1])]
    labelled = label_rows(((row, "all", "a:1") for row in rows), tokenizer, how)
    assert all(row.full_tokens > 40 for row in labelled.rows)
    ours = [np.where(row.targets, row.ids, -100) for row in labelled.rows]
    assert sorted(own[start : start + 40].tolist() for own in ours for start in range(0, len(own), 40)) == sorted(theirs)


@pytest.mark.parametrize("only", [True, False])
def test_axolotl_encodes_prompt_and_completion_apart_and_adds_the_end(only: bool) -> None:
    tokenizer, row = tokenizer_of("chatml"), {"prompt": "1+1=", "completion": "2"}
    how = {"axolotl_type": "alpaca", "max_length": 500} | ({"completion_only_loss": True} if only else {})
    (labelled,) = label_rows([(row, "all", "a:1")], tokenizer, how).rows
    apart = [tokenizer(text)["input_ids"] for text in ("1+1=", "2", tokenizer.eos_token)]
    assert labelled.ids.tolist() == [*apart[0], *apart[1], *apart[2]]
    assert labelled.targets.tolist() == [not only] * len(apart[0]) + [True] * 2


def test_roles_of_sharegpt_are_named_since_trl_does_not_rename_them() -> None:
    rows = [
        {"conversations": [{"from": "human", "value": f"Is {n} odd?"}, {"from": "gpt", "value": "No."}]} for n in range(ROWS)
    ]
    assert "wrong role" in found_in(rows, tokenizer_of("chatml"), {"max_length": 500})


def test_facts_and_pieces_by_hand() -> None:
    tokenizer = tokenizer_of("chatml")
    labelled = label_rows(((row, "all", "a:1") for row in chats()), tokenizer, ONLY)
    (facts,) = count_facts(labelled)
    assert facts.rows == ROWS
    assert facts.targets == sum(len(f"It is {n + 1}.") + 1 for n in range(ROWS)), "each answer and the token that ends it"
    (asked, asked_is_target), (answer, is_target) = labelled.marked[0]
    assert (answer.replace(" ", ""), is_target) == ("Itis1.<|im_end|>", True)
    assert (asked[:12], asked_is_target) == ("<|im_start|>", False)
