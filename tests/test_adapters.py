"""Adapters: numbers by hand, GPT-2's and Llama's matrices, what is refused, and true trainings by TRL's trainers."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest
import torch
import trainers_tiny as tiny
from promises_adapters import count_trainable
from torch import nn
from transformers import GPT2Config, GPT2LMHeadModel
from transformers.pytorch_utils import Conv1D

from mixwright.catalog import create
from mixwright.config import ModelConfig
from mixwright.errors import InputError
from mixwright.learner.adapting import load_adapted, matrices
from mixwright.learner.learner import Learner
from mixwright.learner.load import check_checkpoint, load_learner
from mixwright.run.preflight import check_model
from mixwright_extras.experts.singular import Scaled, read_expert, scaled_matrices, scales, set_scales, without_adapter

pytestmark = pytest.mark.filterwarnings("ignore::FutureWarning", "ignore::UserWarning")  # of trl and transformers themselves
IDS = torch.tensor([[3, 4, 5, 6, 7], [8, 7, 6, 5, 4]])
NAMES = ("full", "lora", "svf")


def gpt2() -> Any:
    torch.manual_seed(0)
    sizes: dict[str, Any] = {"vocab_size": 20, "n_positions": 16, "n_embd": 16, "n_layer": 2, "n_head": 2}
    return GPT2LMHeadModel(GPT2Config(**sizes, bos_token_id=1, eos_token_id=1)).eval()


def llama() -> Any:
    return tiny.model().eval()


def logits(model: Any) -> torch.Tensor:
    with torch.no_grad():
        return model.eval()(input_ids=IDS).logits


def moved(model: Any) -> Any:
    """The model with every parameter that trains shifted by known amounts."""
    generator = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for own in model.parameters():
            if own.requires_grad:
                own.add_(0.1 * torch.randn(own.shape, generator=generator))
    return model


def test_svf_by_hand() -> None:
    """W = diag(3, 2) with z = (log 2, 0) becomes diag(6, 2)."""
    plain = nn.Linear(2, 2, bias=False)
    plain.weight.data = torch.diag(torch.tensor([3.0, 2.0]))
    layer = Scaled(plain)
    assert torch.equal(layer.values, torch.tensor([3.0, 2.0]))
    hidden = torch.tensor([[1.0, 1.0]])
    assert torch.equal(layer(hidden), torch.tensor([[3.0, 2.0]]))
    layer.log_scale.data = torch.log(torch.tensor([2.0, 1.0]))
    torch.testing.assert_close(layer(hidden), torch.tensor([[6.0, 2.0]]))
    torch.testing.assert_close(layer.merged().weight.data, torch.diag(torch.tensor([6.0, 2.0])))


@pytest.mark.parametrize("plain", [nn.Linear(5, 3), nn.Linear(3, 5, bias=False), Conv1D(4, 6)], ids=["wide", "tall", "conv"])
def test_svf_is_u_s_exp_z_v(plain: Any) -> None:
    """Against the formula in float64, from a decomposition of its own."""
    layer = Scaled(copy.deepcopy(plain))
    layer.log_scale.data = torch.linspace(-0.5, 0.7, len(layer.log_scale))
    turned = isinstance(plain, Conv1D)
    matrix = (plain.weight.detach().T if turned else plain.weight.detach()).double()
    u, s, v = torch.linalg.svd(matrix, full_matrices=False)
    hidden = torch.randn(2, 3, matrix.shape[1], generator=torch.Generator().manual_seed(0))
    expected = hidden.double() @ (u @ torch.diag(s * layer.log_scale.detach().double().exp()) @ v).T
    expected += 0.0 if plain.bias is None else plain.bias.detach().double()
    torch.testing.assert_close(layer(hidden).double(), expected, atol=1e-5, rtol=1e-5)
    merged = layer.merged()
    assert type(merged) is type(plain)
    torch.testing.assert_close(merged(hidden).double(), expected, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("make", [gpt2, llama])
@pytest.mark.parametrize("name", NAMES)
def test_round_trip_and_merge_on_both_architectures(name: str, make: Any, tmp_path: Path) -> None:
    base, adapter = make(), create("adapters", name)
    start = logits(base)
    model = adapter.wrap(copy.deepcopy(base))
    assert torch.equal(logits(model), start)
    after = logits(moved(model))
    assert (after - start).abs().max() > 1e-3
    adapter.save(model, tmp_path)
    again, loaded = load_adapted(copy.deepcopy(base), tmp_path)
    assert type(again) is type(adapter)
    assert (logits(loaded) - after).abs().max() <= 1e-5
    merged = adapter.merge(model)
    assert type(merged) is type(base)
    assert (logits(merged) - after).abs().max() <= 1e-5
    merged.save_pretrained(tmp_path / "merged")
    plain = type(base).from_pretrained(tmp_path / "merged")
    assert (logits(plain) - after).abs().max() <= 1e-5


@pytest.mark.parametrize("name", NAMES)
def test_a_learner_is_loaded_with_a_saved_adapter(name: str, tmp_path: Path) -> None:
    base, adapter = llama(), create("adapters", name)
    Learner(base, tiny.tokenizer(), "base").save(tmp_path / "base")
    model = moved(adapter.wrap(copy.deepcopy(base)))
    adapter.save(model, tmp_path / "adapter")
    check_checkpoint(str(tmp_path / "base"), str(tmp_path / "adapter"))
    loaded = load_learner(str(tmp_path / "base"), adapter=str(tmp_path / "adapter"))
    assert (logits(loaded.model) - logits(model)).abs().max() <= 1e-5


def test_an_expert_stands_for_a_checkpoint_where_its_base_is_known(tmp_path: Path) -> None:
    Learner(llama(), tiny.tokenizer(), "base").save(tmp_path / "base")
    adapter, base = create("adapters", "svf"), load_learner(str(tmp_path / "base"))
    model = moved(adapter.wrap(copy.deepcopy(base.model)))
    adapter.save(model, tmp_path / "expert")
    check_model(ModelConfig(str(tmp_path / "expert")))
    check_model(ModelConfig(str(tmp_path / "base"), str(tmp_path / "expert")))
    check_checkpoint(str(tmp_path / "expert"))
    assert (logits(load_learner(str(tmp_path / "expert")).model) - logits(model)).abs().max() <= 1e-5
    (tmp_path / "base").rename(tmp_path / "moved")
    again = load_learner(str(tmp_path / "expert"), base=str(tmp_path / "moved"))  # as `verdict moved expert` does
    assert (logits(again.model) - logits(model)).abs().max() <= 1e-5
    with pytest.raises(InputError, match="the folder of a"):
        check_model(ModelConfig(str(tmp_path / "moved"), str(tmp_path / "nothing")))


def test_parameters_are_counted_by_hand() -> None:
    """Llama of width 32 and inner width 64, two layers: 7 matrices of 32 singular values each; LoRA of rank 2."""
    assert count_trainable(create("adapters", "svf").wrap(llama())) == 2 * 7 * 32
    attention, inner = 4 * (32 + 32), 3 * (32 + 64)
    assert count_trainable(create("adapters", "lora", {"rank": 2}).wrap(llama())) == 2 * 2 * (attention + inner)
    assert count_trainable(create("adapters", "svf", {"targets": ["mlp.down_proj"]}).wrap(llama())) == 2 * 32
    assert count_trainable(create("adapters", "full").wrap(llama())) == sum(own.numel() for own in llama().parameters())


def test_options_come_back_from_the_folder(tmp_path: Path) -> None:
    """A rank and targets other than the defaults, loaded by an object with the defaults."""
    for name, options in (("lora", {"rank": 3, "targets": ["q_proj"]}), ("svf", {"targets": ["q_proj"]})):
        adapter = create("adapters", name, options)
        adapter.save(moved(adapter.wrap(llama())), tmp_path / name)
        loaded = create("adapters", name).load(llama(), tmp_path / name)
        assert count_trainable(loaded) == 2 * ((32 + 32) * 3 if name == "lora" else 32)


def test_names_of_the_matrices_of_gpt2() -> None:
    assert [name for name in matrices(gpt2(), None) if ".0." in name] == [
        f"transformer.h.0.{place}" for place in ("attn.c_attn", "attn.c_proj", "mlp.c_fc", "mlp.c_proj")
    ]


def test_the_adapter_is_switched_off_and_on() -> None:
    for name in ("lora", "svf"):
        base = llama()
        start, model = logits(base), moved(create("adapters", name).wrap(base))
        after = logits(model)
        with without_adapter(model):
            assert torch.equal(logits(model), start)
        assert torch.equal(logits(model), after)
    with pytest.raises(InputError, match="switched off"), without_adapter(llama()):
        pass


def test_low_precision_starts_to_the_bit() -> None:
    base = llama().to(torch.bfloat16)
    start = logits(base)
    model = create("adapters", "svf").wrap(base)
    assert torch.equal(logits(model), start)
    assert all(module.log_scale.dtype == torch.float32 for module in scaled_matrices(model).values())
    assert logits(moved(model)).dtype == torch.bfloat16


def test_what_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no_such_matrix"):
        create("adapters", "svf", {"targets": ["no_such_matrix"]}).wrap(llama())
    with pytest.raises(InputError, match="merge another adapter first"):
        create("adapters", "svf").wrap(create("adapters", "svf").wrap(llama()))
    with pytest.raises(InputError, match="rank of at least 1"):
        create("adapters", "lora", {"rank": 0})
    with pytest.raises(InputError, match=r"adapter\.json"):
        load_adapted(llama(), tmp_path)
    adapter = create("adapters", "svf")
    adapter.save(adapter.wrap(llama()), tmp_path / "svf")
    with pytest.raises(InputError, match="the same matrices"):
        load_adapted(gpt2(), tmp_path / "svf")
    other = llama()
    other.model.layers[0].mlp.down_proj.weight.data *= 2
    with pytest.raises(InputError, match="the base that the expert was trained on"):
        load_adapted(other, tmp_path / "svf")
    (tmp_path / "svf" / "adapter.safetensors").write_bytes(b"no tensors")
    with pytest.raises(InputError, match="vectors of an expert"):
        read_expert(tmp_path / "svf")
    with pytest.raises(InputError, match="others at"):
        set_scales(create("adapters", "svf").wrap(llama()), {})


def test_loading_an_adapter_into_another_model_is_refused(tmp_path: Path) -> None:
    for name in ("full", "lora"):
        adapter = create("adapters", name)
        adapter.save(adapter.wrap(llama()), tmp_path / name)
        with pytest.raises(InputError):
            load_adapted(gpt2(), tmp_path / name)


@pytest.mark.parametrize("checkpointing", [False, True])
def test_svf_in_the_sft_trainer(checkpointing: bool, tmp_path: Path) -> None:
    """The loss falls, the scales move, nothing else does."""
    from datasets import Dataset
    from trl.trainer.sft_trainer import SFTTrainer

    model = create("adapters", "svf").wrap(tiny.model())
    before = {name: own.detach().clone() for name, own in model.named_parameters()}
    rows = Dataset.from_dict({"prompt": ["say a="] * 16, "completion": ["b"] * 16})
    config = tiny.sft_config(tmp_path, max_steps=30, learning_rate=0.05, gradient_checkpointing=checkpointing)
    trainer: Any = SFTTrainer(model, args=config, train_dataset=rows, processing_class=tiny.tokenizer())
    trainer.train()
    losses = tiny.losses(trainer)
    assert losses[-1] < losses[0] - 0.1
    changed = {name for name, own in trainer.model.named_parameters() if not torch.equal(own, before[name])}
    assert changed == {name for name in before if name.endswith("log_scale")}


def test_svf_in_the_grpo_trainer_with_a_reference_model_and_a_resume(tmp_path: Path) -> None:
    """TRL reads the reference from the base's folder; a run that is continued ends where an unbroken one does."""
    from transformers import AutoModelForCausalLM
    from trl.trainer.grpo_trainer import GRPOTrainer

    tiny.model().save_pretrained(tmp_path / "base")
    reward: Any = tiny.vowels

    def trainer(folder: str, **settings: Any) -> Any:
        model = create("adapters", "svf").wrap(AutoModelForCausalLM.from_pretrained(tmp_path / "base"))
        config = tiny.grpo_config(tmp_path / folder, **settings, beta=0.1, learning_rate=0.02, lr_scheduler_type="constant")
        return GRPOTrainer(
            model, reward_funcs=reward, args=config, train_dataset=tiny.rows(), processing_class=tiny.tokenizer()
        )

    whole = trainer("whole", max_steps=4)
    whole.train()
    assert not any(isinstance(module, Scaled) for module in whole.ref_model.modules())
    trainer("parts", max_steps=2, save_strategy="steps", save_steps=2).train()
    again = trainer("parts", max_steps=4)
    again.train(resume_from_checkpoint=True)
    for name, z in scales(whole.model).items():
        torch.testing.assert_close(scales(again.model)[name], z)


@pytest.mark.parametrize("text", ["{", '{"adapter": 3}', "[]"], ids=["torn", "no options", "a list"])
def test_hostile_settings_of_an_adapter_are_refused_by_name(text: str, tmp_path: Path) -> None:
    (tmp_path / "adapter.json").write_text(text)
    with pytest.raises(InputError, match="the folder of an adapter"):
        load_adapted(nn.Linear(1, 1), tmp_path)
    with pytest.raises(InputError, match="Give the base model as path"):
        load_learner(str(tmp_path))
