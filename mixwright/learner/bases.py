"""Starting models of a run: given checkpoints as they are, or tiny ones built and warmed up here, in parallel."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from mixwright.config import ModelConfig, RunConfig
from mixwright.learner.sources import resolve_model
from mixwright.learner.warmup_rows import warmup_rows
from mixwright.run.checked import CheckedRun
from mixwright.run.folder import RunFolder, replacing_folder
from mixwright.run.progress import report_share
from mixwright.run.workers import Job, Workers
from mixwright.tool_calls import text_of

if TYPE_CHECKING:
    from mixwright.corpus import Corpus

TINY_PREFIX = "tiny:"
WHOLE_MARK_FILE = "config.json"
"""Written by `save_pretrained`; a base is moved to its place only when it is whole."""


@dataclass(frozen=True, slots=True)
class BaseJob:
    """One tiny base to build."""

    run: str
    """Run folder, with corpus/."""
    base_index: int
    """Which of the bases."""
    config: RunConfig
    """Settings of the run."""
    relative_to: str = ""
    """Folder that relative paths in it start from."""


def bases_of(model: ModelConfig, run: RunFolder) -> list[str]:
    """Checkpoint folders or hub names of the starting models; tiny ones may not be built yet."""
    if model.path != TINY_PREFIX:
        return [resolve_model(model.path)]
    return [str(run.path / "bases" / f"base-{base_index}") for base_index in range(max(1, model.bases))]


def build_bases(run: CheckedRun, workers: Workers) -> None:
    """Build and warm up the tiny bases that are not there yet; nothing to do for given checkpoints."""
    if run.config.model.path != TINY_PREFIX:
        return
    bases, folder = bases_of(run.config.model, run.folder), run.folder.path
    missing_indices = [base_index for base_index, built in enumerate(bases) if not (Path(built) / WHOLE_MARK_FILE).is_file()]
    shared = (run.config, str(run.relative_to))
    log = folder / "bases" / "log.txt"
    jobs = [
        Job(f"base {base_index}", build_base, BaseJob(str(folder), base_index, *shared), log=log)
        for base_index in missing_indices
    ]
    if jobs:
        workers.run(jobs, title="warm up")


def build_base(job: BaseJob) -> str:
    """Build one tiny base, train it as `model.warmup` says, and save it. Runs in a worker. Returns its folder."""
    from mixwright.corpus import Corpus
    from mixwright.learner.tiny import build_tiny
    from mixwright.learner.warmup import warm_up

    run, config = RunFolder(job.run), job.config
    corpus, seed = Corpus.load(run.corpus), config.seed + job.base_index
    learner = build_tiny(tokenizer_texts(corpus.select(split="train")), config.model, seed)
    if config.model.warmup is not None:
        rows = warmup_rows(config.model.warmup, config.corpus, corpus, Path(job.relative_to))
        warm_up(learner, rows, config.model.warmup, seed=seed, progress=lambda step, steps, _: report_share(step / steps))
    final_folder = Path(bases_of(config.model, run)[job.base_index])
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
