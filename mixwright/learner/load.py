"""Loader of models: a folder or a hub name, safetensors only, no code from the checkpoint."""

from __future__ import annotations

import contextlib
import importlib.util
import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import torch
from transformers import AutoConfig, AutoModelForCausalLM, AutoTokenizer

from mixwright.config import ADAPTER_FILES, ModelConfig
from mixwright.errors import InputError, missing_extra, told_as
from mixwright.learner.adapting import SETTINGS_FILE, load_adapted, load_peft, read_settings
from mixwright.learner.batches import without_progress_bars
from mixwright.learner.checkpoint_checks import (
    check_files,
    check_loaded,
    check_reading,
    check_tokenizer,
)
from mixwright.learner.learner import Learner
from mixwright.learner.prompt_form import PromptForm, no_template
from mixwright.learner.settings import find_device
from mixwright.learner.sources import describe_model, resolve_model
from mixwright.run.progress import describe_work


def load_learner(
    path: str,
    *,
    adapter: str | None = None,
    base: str | None = None,
    form: PromptForm | None = None,
    batch_size: int | None = None,
) -> Learner:
    """A causal language model with its tokenizer, on the accelerator if there is one, else on the CPU in float32.

    Args:
        path: checkpoint folder, adapter folder (its base is loaded first), hub name, GGUF file or folder, or `smollm2`.
        adapter: folder of a PEFT adapter, or of an adapter of the catalogue, to put on top.
        base: model under an adapter folder at `path`, where its settings name no folder that is here.
        form: how prompts reach the tokenizer; None takes its chat template wherever it has one.
        batch_size: completions that are sampled together; None takes what fits in a bounded number of tokens.

    Raises:
        InputError: not a causal language model, no safetensors, no tokenizer or another model's, it wants its own code, not
            reachable, or weights that are missing, too many or no numbers; the same of the adapter.
    """
    describe_work(f"loading {path}")
    path, adapter = _find_checkpoint(path, adapter, base)
    _, tokenizer = _read_settings(path)
    device = find_device()
    kind = torch.float32 if device.type == "cpu" else "auto"
    model, loading_info = _read(AutoModelForCausalLM, path, use_safetensors=True, dtype=kind, output_loading_info=True)
    check_loaded(model, loading_info, path)
    if adapter is not None:
        model = _with_adapter(model, adapter)
    name = describe_model(path) if adapter is None else f"{describe_model(path)} + {adapter}"
    learner = Learner(model.to(device), tokenizer, name, form=form, batch_size=batch_size)
    check_reading(learner)
    return learner


def _find_checkpoint(path: str, adapter: str | None, base: str | None) -> tuple[str, str | None]:
    """The folder or hub name of the whole model that is meant, and the adapter to put on top. Raises InputError."""
    path = resolve_model(path)
    folder = Path(path)
    is_local = path.startswith((".", "/", "~")) or path.count("/") > 1 or folder.is_file()
    if is_local and not folder.is_dir():
        remedy = "Correct the path. Of an adapter: put its base back, or write the new path into its settings."
        raise InputError("the folder of a model", f"{path!r}, which is none", remedy, file=adapter)
    if not folder.is_dir() or (folder / "config.json").is_file():
        return path, adapter
    if adapter is None and is_adapter(folder):
        return _find_checkpoint(adapter_base(folder, base), path, None)
    raise InputError(
        "the folder of a model (config.json, *.safetensors, tokenizer files)",
        f"{path!r} without config.json",
        "Give the checkpoint folder that save_pretrained wrote.",
    )


def plain_source(path: str) -> str | None:
    """The folder or hub name of a whole checkpoint, which has just the weights that `load_learner` reads of it; None for an
    adapter. Raises InputError as that does.
    """
    source = resolve_model(path)
    return None if Path(source).is_dir() and is_adapter(Path(source)) else source


def merge_adapter(learner: Learner) -> Learner:
    """The learner with a PEFT adapter added to the weights, which saves its products at every token; others as they are."""
    if hasattr(learner.model, "merge_and_unload"):
        learner.model = learner.model.merge_and_unload()
    return learner


def load_base(model: ModelConfig, path: str) -> Learner:
    """A starting model of a run, or one that was trained from it, with the adapter and the form that the settings name.

    Args:
        model: the settings.
        path: as `base_of` has it, or a folder that was saved since.

    Raises:
        InputError: as `load_learner`.
    """
    return load_learner(path, adapter=model.adapter, form=_form_of(model))


def _form_of(model: ModelConfig) -> PromptForm:
    return PromptForm(model.chat_template, model.system, model.template)


def load_stage(model: ModelConfig, folder: Path) -> Learner:
    """A model that a stage of training saved, its adapter merged, with the form that the settings name."""
    return load_learner(str(folder), form=_form_of(model))


def load_without_weights(path: str, *, form: PromptForm | None = None) -> Learner:
    """A learner without weights, of a checkpoint or of an adapter's base: it encodes prompts, and knows its context.

    `form` says how prompts reach its tokenizer, as for `Learner`.

    Raises InputError as `load_learner` does.
    """
    folder = Path(path)
    path = resolve_model(adapter_base(folder) if is_adapter(folder) else path)
    config, tokenizer = _read_settings(path)
    return Learner(SimpleNamespace(config=config), tokenizer, describe_model(path), form=form)


def check_checkpoint(path: str, adapter: str | None = None, *, base: str | None = None, chats: bool = False) -> None:
    """What can be refused of a checkpoint without reading its weights.

    Args:
        path: as `load_learner` takes it.
        adapter: the same.
        base: the same.
        chats: whether prompts are chat messages.

    Raises:
        InputError: no causal language model, no tokenizer, no safetensors, or chats and no chat template.
    """
    path, adapter = _find_checkpoint(path, adapter, base)
    folder = Path(path)
    if _read_settings(path)[1].chat_template is None and chats:
        raise no_template(path)
    if folder.is_dir() and not list(folder.glob("*.safetensors")):
        raise InputError("a checkpoint in safetensors files", "none", "Save it with save_pretrained.", file=folder)
    if adapter is not None:
        _check_adapter(Path(adapter))


def is_adapter(folder: Path) -> bool:
    """Whether an adapter was saved there, and no model."""
    return not (folder / "config.json").is_file() and any((folder / name).is_file() for name in ADAPTER_FILES)


def _is_catalogue_adapter(folder: Path) -> bool:
    """Whether an adapter of the catalogue was saved there that has no PEFT format."""
    return (folder / SETTINGS_FILE).is_file() and not (folder / ADAPTER_FILES[0]).is_file()


def _check_adapter(folder: Path) -> None:
    if folder.is_dir():
        check_files(folder)
    if _is_catalogue_adapter(folder):
        read_settings(folder)
        return
    for name in ("adapter_config.json", "adapter_model.safetensors"):
        if not (folder / name).is_file():
            raise InputError("the folder of a PEFT adapter", f"no {name}", "Correct the path.", file=folder)
    if importlib.util.find_spec("peft") is None:
        raise missing_extra("a PEFT adapter", ["peft"], "train")


def load_tokenizer(path: str) -> Any:
    """Load the tokenizer of a checkpoint, with its chat template; no weights. Raises InputError as `load_learner`."""
    return _read_settings(resolve_model(path))[1]


def _read_settings(path: str) -> tuple[Any, Any]:
    """The settings and the tokenizer of a checkpoint, which fit each other. Raises InputError."""
    if Path(path).is_dir():
        check_files(Path(path))
    config = _read(AutoConfig, path)
    tokenizer = _read(AutoTokenizer, path)
    check_tokenizer(tokenizer, config, path)
    return config, tokenizer


def _read(auto: Any, path: str, **options: Any) -> Any:
    """`from_pretrained` with every way it can refuse a checkpoint raised as an InputError."""
    expected_kind = "a tokenizer" if auto is AutoTokenizer else "a causal language model in safetensors files"
    expected_kind = "the settings of a model" if auto is AutoConfig else expected_kind
    remedy = "Give a whole checkpoint, folder or hub name, that transformers can load without remote code."
    place = repr(path) if Path(path).exists() else f"{path!r} at the hub, since there is no such folder"
    with told_as(f"{expected_kind} at {place}", remedy), without_progress_bars():
        return auto.from_pretrained(path, trust_remote_code=False, **options)


def _with_adapter(model: Any, adapter: str) -> Any:
    folder = Path(adapter)
    _check_adapter(folder)
    return load_adapted(model, folder)[1] if _is_catalogue_adapter(folder) else load_peft(model, folder)


def adapter_base(folder: Path, otherwise: str | None = None) -> str:
    """The model that an adapter belongs to: what its settings name, when that is a folder here or no other model is known;
    else `otherwise`. Raises InputError when neither is there.
    """
    from_catalogue = _is_catalogue_adapter(folder)
    name, file = "base" if from_catalogue else "base_model_name_or_path", folder / ADAPTER_FILES[from_catalogue]
    found: Any = None
    with contextlib.suppress(ValueError, AttributeError):
        found = json.loads(file.read_text(encoding="utf-8")).get(name)
    named_base = found if isinstance(found, str) and found and Path(found) != folder else ""
    is_here = named_base != "" and Path(named_base).is_dir()
    if otherwise is not None and not is_here and not is_adapter(Path(otherwise)):
        return otherwise
    if not named_base:
        remedy = "Give the base model as path and this folder as adapter."
        raise InputError(name, repr(found), remedy, file=file)
    return named_base
