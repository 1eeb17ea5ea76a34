"""Learner: build a tiny model offline and warm it up; `load_learner("folder or hub name")` takes a real one."""

from _shared import CONFIG, RUN

from mixwright import Corpus
from mixwright_extras.tiny.model import build_tiny
from mixwright_extras.tiny.warmup import warm_up

corpus = Corpus.load(RUN.corpus).select(split="train")
learner = build_tiny((f"{example.prompt} {example.answer}" for example in corpus), CONFIG.model, seed=0)
assert CONFIG.model.warmup is not None
print("warm-up, about 15 s")
warm_up(learner, corpus, CONFIG.model.warmup, seed=0, progress=lambda s, n, loss: print(f"step {s} of {n}: loss {loss:.2f}"))
learner.save(RUN.path / "bases" / "base-0")

(samples,) = learner.sample(["2+3="], count=4, temperature=1.0, max_new_tokens=4, seed=0)
print("2+3= ->", [sample.text for sample in samples])
