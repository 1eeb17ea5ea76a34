"""The lab's tiny GPT as a model of transformers, with a tokenizer of its language, so that TRL trains the same weights."""

from __future__ import annotations

import copy
from typing import Any

import torch
from tokenizers import Tokenizer, models, pre_tokenizers
from torch import nn
from transformers import GenerationMixin, PretrainedConfig, PreTrainedModel, PreTrainedTokenizerFast
from transformers.modeling_outputs import BaseModelOutput, CausalLMOutput

from mixwright_lab.training.gpt import GPT
from mixwright_lab.training.language import END, PAD, Language


class Backbone(nn.Module):
    """All but the head. Rows are padded on the right, which causal attention never sees."""

    def __init__(self, gpt: GPT) -> None:
        super().__init__()
        self.gpt = gpt

    def forward(self, input_ids: torch.Tensor, **_: Any) -> BaseModelOutput:
        stream = self.gpt.hidden(input_ids)[-1]
        return BaseModelOutput(last_hidden_state=nn.functional.rms_norm(stream, (stream.shape[-1],)))


class Twin(PreTrainedModel, GenerationMixin):
    """A copy of a tiny GPT that TRL can train."""

    config_class = PretrainedConfig
    base_model_prefix = "backbone"

    def __init__(self, gpt: GPT) -> None:
        pad, end = gpt.language.index[PAD], gpt.language.index[END]
        sizes = {"vocab_size": len(gpt.language.words), "hidden_size": gpt.head.in_features}
        super().__init__(PretrainedConfig(pad_token_id=pad, eos_token_id=end, **sizes))
        self.backbone = Backbone(copy.deepcopy(gpt))
        self.post_init()
        self.gpt.load_state_dict(gpt.state_dict())

    @property
    def gpt(self) -> GPT:
        return self.backbone.gpt

    def _init_weights(self, module: nn.Module) -> None:
        """The weights are those of the GPT."""

    def get_output_embeddings(self) -> nn.Module:
        return self.gpt.head

    def forward(self, input_ids: torch.Tensor, **_: Any) -> CausalLMOutput:
        return CausalLMOutput(logits=self.gpt(input_ids)[0])


def tokenizer(language: Language) -> PreTrainedTokenizerFast:
    core = Tokenizer(models.WordLevel(language.index, unk_token=PAD))
    core.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    return PreTrainedTokenizerFast(tokenizer_object=core, pad_token=PAD, eos_token=END, padding_side="left")
