"""Checks of what was loaded from checkpoints and adapters: a tokenizer, weights, and whether the model reads.

What transformers, PEFT and safetensors refuse themselves is left to them, and told in one line by who calls them.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mixwright.errors import InputError, join_some, told_as
from mixwright.run.folder import check_regular

if TYPE_CHECKING:
    from mixwright.learner.learner import Learner

TRIED_TOKENS = 4
"""Tokens of a row by which a loaded model is tried."""
SAME_LOGITS_SHARE = 1e-4
"""Change of earlier logits, as a share of the change of the last ones, that still is rounding; in half precision more."""

WRONG_LAYERS = re.compile(rb'"(?:n|num)_(?:hidden_)?layers?"\s*:\s*(?:0\b|-\d|\d{5,30})')
"""Entry of config.json for no layer, or so many that transformers fills the memory with them before it sees any weights."""


def check_files(folder: Path) -> None:
    """Raise InputError for a pipe or a device among the files, which would be waited for, or a wrong number of layers."""
    check_regular(*folder.iterdir(), *folder.glob("additional_chat_templates/*"))
    settings = folder / "config.json"
    if settings.is_file() and (found := WRONG_LAYERS.search(settings.read_bytes())):
        remedy = "Correct the number, or save the model again."
        raise InputError("a model of 1 to 9,999 layers", found[0].decode(), remedy, file=settings)


def check_tokenizer(tokenizer: Any, config: Any, model_path: str) -> None:
    """Whether a tokenizer tells texts apart, and its tokens have a place in the model. Raises InputError.

    Special tokens beyond the vocabulary pass (some models have one for images), unless rows begin, end or are padded with
    them; they are refused where a prompt has them.
    """
    remedy = "Use the tokenizer that was saved with the model."
    with told_as(f"a tokenizer that reads text at {model_path!r}", remedy):
        first_ids, second_ids = (list(tokenizer(text)["input_ids"]) for text in ("Name a colour.", "12 and 3"))
        vocabulary_ids = tokenizer.get_vocab().values()
        special_ids = {number for number, token in tokenizer.added_tokens_decoder.items() if token.special}
        used_special_ids = {tokenizer.eos_token_id, tokenizer.pad_token_id, tokenizer.bos_token_id} - {None}
    if first_ids == second_ids:
        got = "no tokens" if not first_ids else "the same tokens for two different texts"
        raise InputError(f"a tokenizer that reads text at {model_path!r}", got, remedy)
    vocabulary_size = config.get_text_config().vocab_size
    if ids_beyond := sorted(
        number
        for number in vocabulary_ids
        if number >= vocabulary_size and (number not in special_ids or number in used_special_ids)
    ):
        expected = f"a tokenizer that fits a vocabulary of {vocabulary_size:,} at {model_path!r}"
        raise InputError(expected, f"{len(ids_beyond):,} tokens beyond it, up to id {ids_beyond[-1]:,}", remedy)


def check_loaded(model: Any, loading_info: Mapping[str, Collection[str]], model_path: str) -> None:
    """Whether a model took all weights from its files, and all layers of its files. Raises InputError.

    Args:
        model: as transformers made it.
        loading_info: names of weights that the files lack, which transformers draws at random, and that the model lacks.
        model_path: what messages call it.
    """
    if missing_weights := loading_info["missing_keys"]:
        remedy = "Save the whole model again, or name a complete checkpoint."
        raise InputError(
            f"a checkpoint with every weight of its model at {model_path!r}",
            f"no {join_some(sorted(missing_weights))}",
            remedy,
        )
    known_weights = {_without_layer_number(name) for name in model.state_dict()}
    if surplus_weights := sorted(
        name for name in loading_info["unexpected_keys"] if _without_layer_number(name) in known_weights
    ):
        remedy = "Correct num_hidden_layers in config.json, or save the model again."
        raise InputError(
            f"a model that has every layer of its weight files at {model_path!r}",
            f"one without {join_some(surplus_weights)}",
            remedy,
        )
    _check_finite(f"finite weights at {model_path!r}", model.named_parameters(), None)


def check_adapter_weights(model: Any, folder: Path) -> None:
    """Whether what an adapter trains is finite, once it is on its model. Raises InputError."""
    trained = [(name, weights) for name, weights in model.named_parameters() if weights.requires_grad]
    _check_finite("finite weights of an adapter", trained, folder)


def _check_finite(expected: str, weights: Iterable[tuple[str, Any]], file: Path | None) -> None:
    wrong = [name for name, values in weights if not bool(values.isfinite().all())]
    if wrong:
        remedy = "Use a checkpoint from before training diverged."
        raise InputError(expected, f"NaN or infinity in {join_some(wrong)}", remedy, file=file)


def _without_layer_number(name: str) -> str:
    """The name of a weight with a mark in place of the numbers of layers."""
    return re.sub(r"\.\d+(?=\.)", ".#", name)


def check_reading(learner: Learner) -> None:
    """Whether a loaded model, its adapter on it, reads a few tokens: finite logits that no later token changes.

    Two rows that differ in their last token take one short pass.

    Raises:
        InputError: the pass fails, its logits are no numbers, or it is a model like BERT, whose tokens see later ones.
    """
    import torch

    from mixwright.learner.batches import reading_mode

    size, remedy = learner.model.config.get_text_config().vocab_size, "Correct its settings, or use another model."
    ids = torch.tensor([[number % size for number in range(TRIED_TOKENS)]] * 2, device=learner.device)
    ids[1, -1] = TRIED_TOKENS % size
    with told_as(f"a model that reads tokens at {learner.name!r}", remedy), reading_mode(learner.model):
        cached = learner.cache_name is not None
        logits_found = learner.forward(ids, torch.ones_like(ids), use_cache=cached).logits[:, -TRIED_TOKENS:]
    logits = logits_found.float()
    if not bool(logits.logsumexp(-1).isfinite().all()):
        got = "NaN or infinity, although the weights are finite"
        raise InputError(f"finite logits of the model at {learner.name!r}", got, remedy)
    change = (logits[0] - logits[1]).abs().amax(-1)
    rounding = max(SAME_LOGITS_SHARE, 8 * torch.finfo(logits_found.dtype).eps)
    if float(change[:-1].max()) > rounding * float(change[-1]):
        got = f"{type(learner.model).__name__}, whose tokens attend to later tokens"
        remedy = "Models like BERT do not generate text; use a causal model."
        raise InputError(f"a causal language model at {learner.name!r}", got, remedy)
