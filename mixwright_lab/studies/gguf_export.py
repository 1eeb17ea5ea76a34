"""GGUF files of a Llama's weights, with the tokenizer and settings of the installed SmolLM2."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from mixwright.learner.sources import find_packaged

if TYPE_CHECKING:
    import torch

PARTS = {
    "token_embd": "model.embed_tokens",
    "output_norm": "model.norm",
    "attn_norm": "input_layernorm",
    "ffn_norm": "post_attention_layernorm",
    "ffn_down": "mlp.down_proj",
    "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj",
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj",
}
"""Name in GGUF -> name in transformers."""
HEAD = 64


def write_gguf(weights: Mapping[str, torch.Tensor], path: Path, kind: str, *, reordered: bool) -> Path:
    """Write all weights as `kind` (F16, Q8_0); vectors as float32.

    Args:
        weights: of transformers, by name.
        path: of the file.
        kind: a type of GGUF that the package gguf can write.
        reordered: whether queries and keys are written in the order that GGUF's rotary positions need.
    """
    from gguf import GGMLQuantizationType, GGUFReader, GGUFValueType, GGUFWriter, quants

    source = GGUFReader(find_packaged())
    writer = GGUFWriter(path, "llama")
    for name, field in source.fields.items():
        if not name.startswith("GGUF.") and name != "general.architecture":
            element = field.types[-1] if field.types[0] == GGUFValueType.ARRAY else None
            writer.add_key_value(name, field.contents(), field.types[0], sub_type=element)
    for tensor in source.tensors:
        values = weights[to_transformers(tensor.name)].float().numpy()
        if reordered and ("attn_q." in tensor.name or "attn_k." in tensor.name):
            values = values.reshape(-1, 2, HEAD // 2, values.shape[1]).swapaxes(1, 2).reshape(values.shape)
        type_ = GGMLQuantizationType[kind] if values.ndim == 2 else GGMLQuantizationType.F32
        data = quants.quantize(np.ascontiguousarray(values), type_)
        writer.add_tensor(tensor.name, data, raw_dtype=type_)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def to_transformers(name: str) -> str:
    """Translate a name of GGUF: `blk.3.attn_q.weight`."""
    *block, part, _ = name.split(".")
    prefix = f"model.layers.{block[1]}." if block else ""
    return f"{prefix}{PARTS[part]}.weight"
