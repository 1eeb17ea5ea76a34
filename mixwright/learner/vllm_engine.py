"""Engine that writes completions with vLLM in this process; prompts, template, stop rules and lengths stay the learner's.

Token ids go in and come out, so that tokenizer and chat template are the learner's own. Log-probabilities of answers that
are there already are still read by transformers.

Source: vLLM 0.32 (its release for CPUs, which `make vllm` runs) and the signatures of 0.33.
"""

from __future__ import annotations

import contextlib
import copy
import gc
import hashlib
import importlib
import math
import os
import random
import tempfile
import warnings
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from transformers import AutoModelForCausalLM

from mixwright.errors import InputError, reason_of
from mixwright.learner.batches import without_progress_bars
from mixwright.learner.engines import WITHOUT_ENGINE, check_temperature, engine_name
from mixwright.learner.generation import Continuation, Decoding, GenerationJob
from mixwright.learner.load import load_base, plain_source
from mixwright.run.workers import count_cores

if TYPE_CHECKING:
    from mixwright.config import RunConfig, TrialConfig
    from mixwright.learner.learner import Learner

ENVIRONMENT = {
    "VLLM_ENABLE_V1_MULTIPROCESSING": "0",
    "VLLM_NO_USAGE_STATS": "1",
    "VLLM_LOGGING_LEVEL": "ERROR",
    "VLLM_CPU_OMP_THREADS_BIND": "nobind",
}
"""Settings of vLLM where the user made none: one process, nothing sent to anybody, no threads bound to cores."""
GPU_SHARE = 0.8
"""Share of the GPU memory that is free once the models are loaded that their engines take; readings need the rest."""
CPU_CACHE_BYTES = 2**30
"""Of keys and values on a CPU, as `shared_generation.py` has them."""
FINGERPRINT_VALUES = 1000
"""Values of each parameter that tell whether a model was trained since."""


class VllmEngine:
    """The weights of a learner, as they are when this is made, in vLLM, which starts when something is first written.

    Args:
        learner: loaded; an adapter of PEFT is merged for vLLM alone.
        folder: checkpoint folder or hub name that holds just these weights; None has them written to a temporary folder.
        share: of the GPU that this engine may take at most, 0..1.

    Raises:
        InputError: vLLM is not installed.
    """

    def __init__(self, learner: Learner, folder: str | None = None, *, share: float = 1.0) -> None:
        self.name = engine_name()
        """What manifests and kept answers call it."""
        self._weights, self._folder, self._share = _fingerprint_weights(learner.model), folder, share
        self._vllm: Any = None
        self._llm: Any = None
        self._numbers = 0
        self._dynamo_was_off = False

    def start(self, learner: Learner, *, engines: int = 1) -> None:
        """Start vLLM, unless it runs.

        Args:
            learner: as it was.
            engines: that still start on this machine's GPU, this one included; they share its free memory.

        Raises:
            InputError: vLLM cannot serve this model, its weights are not those of a plain model, or they changed.
        """
        if _fingerprint_weights(learner.model) != self._weights:
            remedy = f"Weights have changed: {WITHOUT_ENGINE}."
            raise InputError(f"the weights of {learner.name} as loaded into vLLM", "others", remedy)
        if self._llm is not None:
            return
        for name, value in ENVIRONMENT.items():
            os.environ.setdefault(name, value)
        self._dynamo_was_off = torch._dynamo.config.disable
        with contextlib.ExitStack() as stack:
            plain_learner = _merged(learner)
            _check_plain(plain_learner)
            if (folder := self._folder) is None:
                folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="mixwright-vllm-"))
                plain_learner.save(Path(folder))
            del plain_learner
            gc.collect()  # of what was merged, and of a trainer
            torch.cuda.empty_cache()
            stack.enter_context(_kept_random_state(learner.device))
            stack.enter_context(without_progress_bars())
            stack.enter_context(warnings.catch_warnings(action="ignore"))  # of its own dependencies
            try:
                self._vllm = importlib.import_module("vllm")
                self._llm = self._vllm.LLM(folder, **_engine_settings(learner, self._share, engines))
            except Exception as error:  # the library raises many kinds, about memory, models and devices
                raise _not_served(learner, error) from error

    def close(self) -> None:
        """End vLLM, so that another can start in this process, or a model can be trained."""
        if self._llm is None:
            return
        self._llm.llm_engine.engine_core.shutdown()
        self._llm = None
        importlib.import_module("vllm.distributed.parallel_state").cleanup_dist_env_and_memory()
        torch._dynamo.config.disable = self._dynamo_was_off

    def generate(
        self,
        learner: Learner,
        jobs: Sequence[GenerationJob],
        decoding: Decoding,
        progress: Callable[[float], None] = lambda _: None,
    ) -> Iterator[dict[int, list[Continuation]]]:
        """As `shared_generation.generate`; what is drawn depends on the seed, the prompt's number and the sample alone, and
        differs from what transformers draws with the same seed.

        Raises:
            InputError: the weights of the learner are no longer those that vLLM has, or a temperature above 2.
        """
        self.start(learner)
        check_temperature(decoding.temperature)
        engine, waiting = self._llm.llm_engine, dict[str, tuple[int, int]]()
        rows: dict[int, dict[int, Continuation]] = defaultdict(dict)
        end_ids = learner.end_ids
        try:
            for job_index, job in enumerate(jobs):
                prompt = self._vllm.TokensPrompt(prompt_token_ids=[*job.prompt, *job.prefix])
                for row in range(job.rows):
                    self._numbers += 1  # never used twice by one engine
                    waiting[str(self._numbers)] = job_index, row
                    engine.add_request(str(self._numbers), prompt, self._sampling(job, row, decoding, end_ids))
            total = len(waiting)
            while waiting:
                try:
                    with _kept_random_state(learner.device):
                        outputs = [output for output in engine.step() if output.finished]
                except Exception as error:  # some models fail only here
                    waiting.clear()
                    raise _not_served(learner, error) from error
                ended = {}
                for output in outputs:
                    job_index, row = waiting.pop(output.request_id)
                    rows[job_index][row] = _continuation(jobs[job_index], output.outputs[0], end_ids)
                    if len(rows[job_index]) == jobs[job_index].rows:
                        written = rows.pop(job_index)
                        ended[job_index] = [written[index] for index in range(jobs[job_index].rows)]
                if outputs:
                    progress(1 - len(waiting) / total)
                if ended:
                    yield ended
        finally:
            if waiting:  # the caller stopped
                engine.abort_request(list(waiting))

    def _sampling(self, job: GenerationJob, row: int, decoding: Decoding, end_ids: frozenset[int]) -> Any:
        """Nothing but temperature, length, seed and end tokens: no top-k, no top-p, no penalty."""
        number, _, first_sample = job.draw_key
        return self._vllm.SamplingParams(
            temperature=decoding.temperature,
            max_tokens=decoding.max_new_tokens - len(job.prefix),
            seed=None if decoding.temperature == 0 else draw_seed(decoding.seed, number, first_sample + row),
            logprobs=0,  # of the chosen token alone
            ignore_eos=True,  # the end token of its files may be another than the learner's
            stop_token_ids=sorted(end_ids),
            detokenize=False,
        )


def _not_served(learner: Learner, error: Exception) -> InputError:
    remedy = f"To generate with transformers, {WITHOUT_ENGINE}."
    return InputError(f"a model that vLLM can serve here ({learner.name})", reason_of(error), remedy)


def start_engines(learners: Sequence[Learner], folders: Sequence[str | None]) -> None:
    """Have vLLM write the completions of all these learners from now on. Raises InputError as `VllmEngine` does."""
    for index, (learner, folder) in enumerate(zip(learners, folders, strict=True)):
        learner.engine = engine = VllmEngine(learner, folder)
        engine.start(learner, engines=len(learners) - index)


@contextlib.contextmanager
def run_engine(config: RunConfig, learner: Learner, folder: str | None) -> Iterator[Learner]:
    """The learner, whose completions are written inside the block by the engine that `measure.engine` names.

    Args:
        config: settings of a run, whose workers may share a GPU.
        learner: loaded or trained.
        folder: as `VllmEngine` takes it.

    Raises:
        InputError: vLLM is not installed.
    """
    if config.measure.engine != "vllm":
        yield learner
        return
    learner.engine = engine = VllmEngine(learner, folder, share=gpu_share(config.trial))
    try:
        yield learner
    finally:
        learner.engine = None
        engine.close()


@contextlib.contextmanager
def load_writing(config: RunConfig, path: str) -> Iterator[Learner]:
    """A starting model of a run, as `load_base` reads it, whose completions `run_engine` has written inside the block.

    Raises InputError as these do.
    """
    learner = load_base(config.model, path)
    with run_engine(config, learner, None if config.model.adapter else plain_source(path)):
        yield learner


def gpu_share(trial: TrialConfig) -> float:
    """Share of its GPU that each worker may take, 0..1: what Ray gives it, or one of as many as run on this machine."""
    if trial.gpus_per_worker:
        return min(1.0, trial.gpus_per_worker)
    workers = trial.workers or count_cores()
    return 1 / (min(workers, count_cores()) if trial.cluster else workers)


def draw_seed(seed: int, prompt_number: int, sample: int) -> int:
    """Seed of one completion, 0..2**63-1, by which it does not depend on what else is written."""
    digest = hashlib.sha256(f"{seed} {prompt_number} {sample}".encode()).digest()
    return int.from_bytes(digest[:8]) >> 1


def _continuation(job: GenerationJob, output: Any, end_ids: frozenset[int]) -> Continuation:
    """The completion of one request, as `generation.py` has them."""
    tokens = list(output.token_ids)
    logprobs = [step[token].logprob for step, token in zip(output.logprobs, tokens, strict=True)]
    return Continuation([*job.prefix, *tokens], [math.nan] * len(job.prefix) + logprobs, tokens[-1] in end_ids)


def _check_plain(learner: Learner) -> None:
    """Raises InputError where the model has other parameters than its settings say: an adapter, or packed weights."""
    with torch.device("meta"):
        plain_model: Any = AutoModelForCausalLM.from_config(learner.model.config)
    if set(plain_model.state_dict()) != set(learner.model.state_dict()):
        remedy = f"Merge them and save the model, or {WITHOUT_ENGINE}."
        raise InputError("a model of plain weights, for --engine vllm", "an adapter or packed weights", remedy)


def _merged(learner: Learner) -> Learner:
    """The learner, or one with a copy of the model whose adapter of PEFT is merged."""
    if not hasattr(learner.model, "merge_and_unload"):
        return learner
    merged = copy.copy(learner)
    merged.model = copy.deepcopy(learner.model).merge_and_unload()
    return merged


def _engine_settings(learner: Learner, share: float, engines: int) -> dict[str, Any]:
    """Arguments of `vllm.LLM`."""
    settings: dict[str, Any] = {
        "dtype": str(learner.model.dtype).removeprefix("torch."),
        "skip_tokenizer_init": True,
        "generation_config": "vllm",  # none of the model's own sampling settings
        "logprobs_mode": "processed_logprobs",  # after the temperature
        "max_model_len": -1,  # the model's context, or what fits
        "trust_remote_code": False,
        "disable_log_stats": True,
        "use_tqdm_on_load": False,
        "seed": 0,
    }
    if learner.device.type == "cuda":
        free, total = torch.cuda.mem_get_info(learner.device)
        return settings | {"gpu_memory_utilization": GPU_SHARE * min(free / total, share) / engines}
    torch._dynamo.config.disable = True  # it would compile for half a minute, with a C compiler, what takes microseconds
    # no prompt in parts: a token drawn after a part is taken back, which vLLM 0.32 cannot do for seeds on a CPU
    cpu_settings = {"enable_chunked_prefill": False, "enforce_eager": True, "kv_cache_memory_bytes": CPU_CACHE_BYTES}
    return settings | cpu_settings


@contextlib.contextmanager
def _kept_random_state(device: torch.device) -> Iterator[None]:
    """VLLM seeds and draws from the global random state; it is as before afterwards."""
    numpy_state, python_state = np.random.get_state(), random.getstate()
    with torch.random.fork_rng(devices=[device] if device.type == "cuda" else []):
        yield
    np.random.set_state(numpy_state)
    random.setstate(python_state)


def _fingerprint_weights(model: Any) -> str:
    """Of the parameters, by some of their values: training moves all of a matrix."""
    digest = hashlib.sha256()
    for name, values in sorted(model.state_dict().items()):
        flat = values.detach().flatten()
        some = flat[:: max(1, len(flat) // FINGERPRINT_VALUES)].to(torch.float32).cpu().numpy()
        digest.update(f"{name} {tuple(values.shape)}".encode() + some.tobytes())
    return digest.hexdigest()
