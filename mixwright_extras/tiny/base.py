"""Tiny starting model of a run, built, warmed up and saved."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from mixwright.extend import (
    BaseJob,
    Corpus,
    CorpusConfig,
    ModelConfig,
    RunFolder,
    base_of,
    replacing_folder,
    report_share,
    text_of,
)
from mixwright_extras.tiny.rows import warmup_rows, warmup_shares


def build_base(job: BaseJob) -> str:
    """Build the tiny base, train it as `model.warmup` says, and save it. Runs in a worker. Returns its folder."""
    from mixwright_extras.tiny.model import build_tiny
    from mixwright_extras.tiny.warmup import warm_up

    run, config = RunFolder(job.run), job.config
    corpus, seed = Corpus.load(run.corpus), config.seed
    learner = build_tiny(tokenizer_texts(corpus.select(split="train")), config.model, seed)
    if config.model.warmup is not None:
        rows = warmup_rows(config.model.warmup, config.corpus, corpus, Path(job.relative_to))
        warm_up(learner, rows, config.model.warmup, seed=seed, progress=lambda step, steps, _: report_share(step / steps))
    final_folder = Path(base_of(config.model, run))
    with replacing_folder(final_folder) as partial_folder:
        learner.save(partial_folder)
    return str(final_folder)


def tokenizer_texts(corpus: Corpus) -> Iterable[str]:
    """What the tokenizer learns from: prompts with their answers."""
    for example in corpus:
        for text in (example.prompt, example.target if example.target is not None else example.answer):
            if isinstance(text, str):
                yield text
            elif text is not None:
                yield from (text_of(message) for message in text)


def check_warmup(model: ModelConfig, settings: CorpusConfig, corpus: Corpus, relative_to: Path) -> None:
    """Read the rows of a warm-up that names a source or cells, and raise what its worker would."""
    warmup = model.warmup
    if warmup is not None and (warmup.source is not None or warmup.cells):
        warmup_shares(list(warmup_rows(warmup, settings, corpus, relative_to)), warmup.cells)
