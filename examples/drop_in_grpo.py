"""Script for GRPO as in TRL's documentation, steered by two added lines.

The two are marked `# mixwright`. It runs on a CPU in seconds and needs no network: the model is a new one of 30,000
parameters, the data are made here. Afterwards `runs/drop_in_grpo/steering/` holds what was decided, what each batch showed,
and the proof of what was drawn.
"""

import random
import sys

from datasets import Dataset
from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast
from trl import GRPOConfig

from mixwright import SteeredGRPOTrainer as GRPOTrainer  # mixwright

characters = "abcdefghijklmnopqrstuvwxyz0123456789+=: "
vocabulary = {name: place for place, name in enumerate(["<pad>", "<eos>", "<unk>", *characters])}
core = Tokenizer(models.WordLevel(vocabulary, unk_token="<unk>"))
core.pre_tokenizer = pre_tokenizers.Split(Regex("."), "isolated")
core.decoder = decoders.Fuse()
tokenizer = PreTrainedTokenizerFast(tokenizer_object=core, pad_token="<pad>", eos_token="<eos>", unk_token="<unk>")

config = LlamaConfig(
    vocab_size=len(vocabulary),
    hidden_size=32,
    intermediate_size=64,
    num_hidden_layers=2,
    num_attention_heads=2,
    max_position_embeddings=64,
    pad_token_id=0,
    bos_token_id=None,
    eos_token_id=1,
)
model = LlamaForCausalLM(config)

rng = random.Random(0)
examples = []
for _ in range(64):
    letter, number = rng.choice(characters[:26]), rng.randrange(100, 1000)
    examples.append({"task": "letter", "prompt": f"any letter like {letter}:", "answer": letter})
    examples.append({"task": "double", "prompt": f"{number}+{number}=", "answer": str(2 * number)})
dataset = Dataset.from_list(examples)


def reward_function(completions: list[str], task: list[str], answer: list[str], **kwargs: object) -> list[float]:
    """Any single letter will do for `letter`; `double` wants the exact sum, which this model will not reach."""
    return [
        float(len(text) > 0 and text[0].isalpha()) if name == "letter" else float(text == gold)
        for text, name, gold in zip(completions, task, answer, strict=True)
    ]


args = GRPOConfig(
    output_dir=sys.argv[1] if len(sys.argv) > 1 else "runs/drop_in_grpo",
    per_device_train_batch_size=32,
    num_generations=8,
    max_completion_length=5,
    max_steps=30,
    learning_rate=1e-2,
    logging_steps=10,
    save_strategy="no",
    report_to="none",
    use_cpu=True,  # bf16 and checkpointing, TRL's defaults, make CPU runs four times slower
    bf16=False,
    gradient_checkpointing=False,
)
trainer = GRPOTrainer(
    model=model,
    reward_funcs=reward_function,
    args=args,
    train_dataset=dataset,
    processing_class=tokenizer,
    steering=True,  # mixwright
)
trainer.train()
