"""Study of resuming: kill -9 at random moments, resume, and compare with the run that nobody killed.

Each trainer runs once undisturbed. Then the same run is killed at moments drawn evenly over its whole duration, saves
included, and started again with `resume_from_checkpoint=True` until it ends; five kills to a run. `save_total_limit=1`, so
there is never a second checkpoint to fall back on. Compared at the end: decisions, steps, draws and proof as files, byte by
byte; the state in the last checkpoint (posteriors, coefficients, alarms); every logged loss, every completion, the weights.
The runs are tiny, over several epochs, and save at each step, with every lever moving. TRL alone is killed and resumed the
same way, from the last checkpoint that it finished, as the baseline for the last three. Attempts are forked from one warm
process; the last run of each trainer is resumed by fresh ones (with --quick GRPO's only).
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
import traceback
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from datasets import Dataset
from tqdm.std import TqdmDefaultWriteLock  # type: ignore[attr-defined]
from transformers import AutoModelForCausalLM, AutoTokenizer
from transformers.trainer_utils import get_last_checkpoint

from mixwright import SteeringConfig, read_state
from mixwright.config import ModelConfig
from mixwright.estimates.intervals import share_interval
from mixwright.learner.settings import cheap_settings
from mixwright.records import CellAssessment, Plan, Stage
from mixwright_extras.tiny.model import build_tiny
from mixwright_lab.studies import report
from mixwright_lab.studies.trainer_runs import checksum, rows

TASKS = ("add", "copy", "gcd")
STATES = ("mastered", "unknown", "hopeless")
SIZE = ModelConfig(width=32, depth=2, heads=2, vocabulary=300)
PER_CELL = 8
TOKENS = 6
"""Of a completion."""
STEPS = 24
EPOCH, REUSED = 18, 4
"""Steps of an epoch of `grpo`; steps that a generation batch of `grpo_reused` feeds."""
COMPLETIONS = "completions.jsonl"


def data() -> Dataset:
    """72 rows: 3 tasks of 3 levels."""
    made, kept = rows(), []
    seen: dict[tuple[str, float], int] = {}
    for number, cell in enumerate(zip(made["task"], made["level"], strict=True)):
        seen[cell] = seen.get(cell, 0) + 1
        if cell[0] in TASKS and seen[cell] <= PER_CELL:
            kept.append(number)
    return made.select(kept)


def plan(objective: str) -> Plan:
    """Every lever, set so that gates refuse, coefficients move and alarms are raised within few steps."""
    weights = dict.fromkeys(TASKS, 1 / len(TASKS))
    levers: dict[str, Any] = {"controllers": ("drift",)}
    nervous: dict[str, Any] = {"controllers.drift": {"target": 0.001, "steps_between_moves": 2}}
    if objective == "grpo":
        levers |= {"selector": "difficulty", "gates": ("too_hard",)}
    if objective == "dpo":
        levers["monitors"] = ("displacement",)
        nervous["monitors.displacement"] = {
            "min_fall": 0.001,
            "standard_errors": 0.1,
            "min_pairs": 2,
            "steps_between_alarms": 2,
        }
    stage = Stage(objective, objective, STEPS, weights, options=nervous, **levers)  # type: ignore[arg-type]
    cells = [
        CellAssessment(task, float(level), state, (0.95, 0.4, 0.03)[level], 0.0, 64, PER_CELL)  # type: ignore[arg-type]
        for task in TASKS
        for level, state in enumerate(STATES)
    ]
    return Plan("resume", (stage,), tuple(cells))


def make_model(folder: Path) -> None:
    """The starting model of all runs, on disk: TRL takes its reference from there. Attention drops out, so that it draws."""
    made = build_tiny(data()["prompt"], SIZE, 0)
    made.model.config.attention_dropout = 0.1
    made.model.save_pretrained(folder)
    made.tokenizer.save_pretrained(folder)


def common(folder: Path, **own: Any) -> dict[str, Any]:
    """What all three trainers share, and the settings that one of them has of its own."""
    return cheap_settings("cpu") | {
        "output_dir": str(folder),
        "max_steps": STEPS,
        "learning_rate": 3e-3,
        "save_strategy": "steps",
        "save_steps": 1,
        "save_total_limit": 1,
        "logging_steps": 1,
        **own,
    }


def recorded(folder: Path, attempt: int) -> Callable[..., list[float]]:
    """The reward; completions go to a file, one line per call, with the attempt that made them."""

    def reward(**given: Any) -> list[float]:
        line = {"attempt": attempt, "step": given["trainer_state"].global_step, "texts": given["completions"]}
        with (folder / COMPLETIONS).open("a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")
        return checksum(**given)

    return reward


def grpo(model: Path, folder: Path, steered: bool, attempt: int, **settings: Any) -> Any:
    """GRPO with a KL penalty (beta > 0)."""
    from trl.trainer.grpo_config import GRPOConfig
    from trl.trainer.grpo_trainer import GRPOTrainer

    from mixwright import SteeredGRPOTrainer

    sizes = {"per_device_train_batch_size": 16, "num_generations": 4, "max_completion_length": TOKENS, "beta": 0.02}
    args = GRPOConfig(**(common(folder) | sizes | settings))
    given: dict[str, Any] = {
        "model": str(model),
        "reward_funcs": recorded(folder, attempt),
        "args": args,
        "train_dataset": data().select_columns(["id", "task", "level", "prompt"]),
        "processing_class": AutoTokenizer.from_pretrained(model, padding_side="left"),
    }
    if steered:
        return SteeredGRPOTrainer(**given, steering=SteeringConfig(plan("grpo")))
    return GRPOTrainer(**given)


def grpo_reused(model: Path, folder: Path, steered: bool, attempt: int) -> Any:
    """GRPO whose generation batches feed four steps: most saves would fall into the middle of one."""
    return grpo(model, folder, steered, attempt, per_device_train_batch_size=8, steps_per_generation=2, num_iterations=2)


def sft(model: Path, folder: Path, steered: bool, attempt: int) -> Any:
    """SFT with dropout."""
    from trl.trainer.sft_config import SFTConfig
    from trl.trainer.sft_trainer import SFTTrainer

    from mixwright import SteeredSFTTrainer

    args = SFTConfig(**common(folder, per_device_train_batch_size=8, max_length=64))
    given: dict[str, Any] = {
        "model": AutoModelForCausalLM.from_pretrained(model),
        "args": args,
        "train_dataset": data().select_columns(["id", "task", "level", "prompt", "completion"]),
        "processing_class": AutoTokenizer.from_pretrained(model),
    }
    return SteeredSFTTrainer(**given, steering=SteeringConfig(plan("sft"))) if steered else SFTTrainer(**given)


def dpo(model: Path, folder: Path, steered: bool, attempt: int) -> Any:
    """DPO with dropout."""
    from trl.trainer.dpo_config import DPOConfig
    from trl.trainer.dpo_trainer import DPOTrainer

    from mixwright import SteeredDPOTrainer

    args = DPOConfig(**common(folder, per_device_train_batch_size=8, max_length=64))
    given: dict[str, Any] = {
        "model": AutoModelForCausalLM.from_pretrained(model),
        "args": args,
        "train_dataset": data().select_columns(["id", "task", "level", "prompt", "chosen", "rejected"]),
        "processing_class": AutoTokenizer.from_pretrained(model),
    }
    return SteeredDPOTrainer(**given, steering=SteeringConfig(plan("dpo"))) if steered else DPOTrainer(**given)


KINDS: dict[str, Callable[[Path, Path, bool, int], Any]] = {
    "grpo": grpo,
    "grpo_reused": grpo_reused,
    "sft": sft,
    "dpo": dpo,
}


def slow_saves(seconds: float = 0.03) -> None:
    """Stretch the moments that a kill would seldom hit, from now on in this process, by what Python tells of opened files.

    They are: before TRL's last file of a checkpoint (which is then half written), before our own there, and the middle of
    a line. Nothing of TRL or Mixwright is replaced.
    """
    inside = False

    def stretch(event: str, given: tuple[Any, ...]) -> None:
        nonlocal inside
        if inside or event != "open" or not isinstance(given[0], str | os.PathLike) or not isinstance(given[1], str):
            return
        path, mode, inside = Path(given[0]), given[1], True
        try:
            if path.name == "trainer_state.json" and "w" in mode:
                path.write_text("{")
                time.sleep(seconds)
            elif path.name == ".steering.npz" and "w" in mode:
                time.sleep(seconds)
            elif path.suffix == ".jsonl" and path.parent.name == "steering" and "a" in mode:
                whole = path.stat().st_size if path.exists() else 0
                with path.open("ab") as file:
                    file.write(b'{"step": ')
                time.sleep(seconds)
                os.truncate(path, whole)
        finally:
            inside = False

    sys.addaudithook(stretch)


def train(kind: str, model: Path, folder: Path, steered: bool, attempt: int) -> None:
    """One attempt: from the last whole checkpoint, or from the beginning."""
    folder.mkdir(parents=True, exist_ok=True)
    trainer = KINDS[kind](model, folder, steered, attempt)
    if steered:
        trainer.train(resume_from_checkpoint=True)
    else:
        whole = [path for path in checkpoints(folder) if whole_for_trl(path)]
        trainer.train(resume_from_checkpoint=str(whole[-1]) if whole else None)


def checkpoints(folder: Path) -> list[Path]:
    """Oldest first."""
    return sorted(folder.glob("checkpoint-*"), key=lambda path: int(path.name.partition("-")[2]))


def whole_for_trl(checkpoint: Path) -> bool:
    """Whether TRL finished writing it. TRL does not look: `resume_from_checkpoint=True` takes the last folder."""
    try:
        json.loads((checkpoint / "trainer_state.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return False
    return zipfile.is_zipfile(checkpoint / "rng_state.pth") and (checkpoint / "model.safetensors").exists()


TqdmDefaultWriteLock.mp_lock = None  # type: ignore[assignment] # one of all forks: a killed one would keep it for ever
SEED = 0
KILLS_PER_RUN = 5
"""Per run."""
ATTEMPT_SECONDS, HUNG_EXIT_STATUS = 180.0, -1000
"""Seconds that an attempt which nobody kills may take, and the exit status reported when it takes longer."""
FILES = ("decisions.jsonl", "steps.jsonl", "draws.parquet", "proof.json")
TIME_FIELDS = ("runtime", "per_second", "step_time", "flos", "train_loss", "num_tokens")
"""What a log line says of time, or of this attempt alone (TRL's SFT and DPO count tokens anew when resumed)."""


def attempt(
    kind: str,
    model: Path,
    folder: Path,
    steered: bool,
    number: int,
    kill_after_seconds: float | None,
    *,
    process_kind: str = "",
) -> int:
    """Run until the end or until killed after `kill_after_seconds` seconds; the exit status, -9 when killed.

    `process_kind` is "fresh" for an interpreter of its own, "slow" for a fork whose saves take longer.
    """
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "output.txt").open("ab") as output:
        if process_kind == "fresh":
            given = f"{kind!r}, Path({str(model)!r}), Path({str(folder)!r}), {steered}, {number}"
            code = f"from pathlib import Path; from mixwright_lab.studies.resume import train; train({given})"
            child = subprocess.Popen(
                [sys.executable, "-c", code], stdout=output, stderr=output, cwd=Path(__file__).parents[2]
            ).pid
        else:
            child = os.fork()
            if child == 0:
                _inside(kind, model, folder, steered, number, output.fileno(), process_kind == "slow")
    deadline = time.monotonic() + (ATTEMPT_SECONDS if kill_after_seconds is None else kill_after_seconds)
    while True:
        found, status = os.waitpid(child, os.WNOHANG)
        if found:
            return os.waitstatus_to_exitcode(status)
        if time.monotonic() >= deadline:
            os.kill(child, signal.SIGKILL)
            code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
            return HUNG_EXIT_STATUS if kill_after_seconds is None else code
        time.sleep(0.002)


def _inside(kind: str, model: Path, folder: Path, steered: bool, number: int, output_fd: int, slow: bool) -> None:
    """The forked child: never returns."""
    code = 1
    try:
        os.dup2(output_fd, 1)
        os.dup2(output_fd, 2)
        if slow:
            slow_saves()
        train(kind, model, folder, steered, number)
        code = 0
    except BaseException:
        traceback.print_exc()
    finally:
        with contextlib.suppress(Exception):
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(code)


def moment(folder: Path, steered: bool) -> str:
    """Where a kill struck, as the files show it."""
    found = checkpoints(folder)
    if not found:
        return "before the first save"
    last = found[-1]
    if not whole_for_trl(last):
        return "while TRL saved"
    if steered and not (last / "steering.json").exists():
        return "between TRL's files and ours"
    for name in ("steps.jsonl", "decisions.jsonl"):
        if steered and (folder / "steering" / name).read_bytes()[-1:] not in (b"", b"\n"):
            return "in a line"
    return "between saves"


def outcome(folder: Path, steered: bool) -> dict[str, Any]:
    """All that is compared."""
    last = checkpoints(folder)[-1]
    history = json.loads((last / "trainer_state.json").read_text(encoding="utf-8"))["log_history"]
    lines = [{k: v for k, v in line.items() if not any(clock in k for clock in TIME_FIELDS)} for line in history]
    found: dict[str, Any] = {
        "losses": [[line["step"], line.get("loss"), line.get("grad_norm")] for line in lines if "loss" in line],
        "logs": lines,
        "completions": completions(folder),
        "weights": hashlib.sha256((last / "model.safetensors").read_bytes()).hexdigest(),
    }
    if steered:
        state = read_state(last, "steering")
        for name in ("inventory",):  # sizes of the checkpoint's files
            state.pop(name)
        found["state"] = state
        found |= {name: (folder / "steering" / name).read_bytes().hex() for name in FILES}
    return found


def completions(folder: Path) -> dict[str, Any]:
    """Step and size of the batch -> texts of the last attempt that generated them."""
    path = folder / COMPLETIONS
    found: dict[str, tuple[int, list[Any]]] = {}
    for text in path.read_text(encoding="utf-8").splitlines() if path.exists() else []:
        try:
            line = json.loads(text)
        except ValueError:
            continue  # torn by the kill; the next attempt made it again
        key = f"{line['step']}, {len(line['texts'])} texts"
        number, texts = found.get(key, (line["attempt"], []))
        found[key] = (line["attempt"], [*(texts if number == line["attempt"] else []), line["texts"]])
    return {key: texts for key, (_, texts) in found.items()}


def chain(kind: str, model: Path, folder: Path, steered: bool, kills: list[float], process_kind: str) -> dict[str, Any]:
    """One run, killed after each of `kills` seconds and resumed, then left to end."""
    struck, wrong_last, number, begun = [], 0, 0, time.perf_counter()
    for number, stop in enumerate([*kills, None]):
        code = attempt(kind, model, folder, steered, number, stop, process_kind=process_kind)
        if code == 0:
            break
        if code != -signal.SIGKILL:
            return {"failed": (folder / "output.txt").read_text(errors="replace")[-1500:], "kills": struck}
        whole = [path.name for path in checkpoints(folder) if whole_for_trl(path)]
        struck.append({"after": stop, "moment": moment(folder, steered), "resumed_from": whole[-1] if whole else None})
        last = get_last_checkpoint(str(folder))
        wrong_last += last is not None and not whole_for_trl(Path(last))
    return {
        "kills": struck,
        "attempts": number + 1,
        "last_not_whole": wrong_last,
        "seconds": time.perf_counter() - begun,
    }


def compare(kind: str, work: Path, model: Path, steered: bool, points: int, rng: random.Random) -> list[dict[str, Any]]:
    """Runs with `points` kills in all, each compared with the undisturbed run."""
    name = f"{kind}-{'steered' if steered else 'alone'}"
    begun = time.monotonic()
    if attempt(kind, model, work / f"{name}-whole", steered, 0, None) != 0:
        raise RuntimeError((work / f"{name}-whole" / "output.txt").read_text(errors="replace")[-3000:])
    duration = time.monotonic() - begun
    whole, rows, done = outcome(work / f"{name}-whole", steered), [], 0
    while done < points:
        last = done + KILLS_PER_RUN >= points and steered and (points > KILLS_PER_RUN or kind == "grpo")
        how = "fresh" if last else "slow" if len(rows) % 2 else ""
        reach = duration + (8.0 if how == "fresh" else 0.0)
        kills = [rng.uniform(0.1, 1.0) * reach for _ in range(min(KILLS_PER_RUN, points - done))]
        row = chain(kind, model, work / f"{name}-{len(rows)}", steered, kills, how)
        row |= {"kind": kind, "steered": steered, "how": how, "undisturbed_seconds": duration}
        if "failed" not in row:
            got = outcome(work / f"{name}-{len(rows)}", steered)
            row["equal"] = {part: got[part] == whole[part] for part in whole}
            if not row["equal"]["losses"]:
                pairs = zip(whole["losses"], got["losses"], strict=False)
                row["first_other_loss"] = next((a[0] for a, b in pairs if a != b), "length")
        done += len(row["kills"]) + ("failed" in row)
        rows.append(row)
        print(json.dumps({key: row[key] for key in row if key != "kills"} | {"struck": len(row["kills"])}), flush=True)
    return rows


def measure(quick: bool) -> report.Result:
    """All trainers, steered and TRL alone."""
    points = dict.fromkeys(KINDS, 4) if quick else {"grpo": 25, "grpo_reused": 25, "sft": 50, "dpo": 50}
    rows: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory(prefix="mixwright-resume-", ignore_cleanup_errors=True) as scratch:
        work = Path(scratch)
        make_model(work / "model")
        for kind, count in points.items():
            rng = random.Random(f"{SEED}-{kind}")
            rows += compare(kind, work, work / "model", True, count, rng)
            rows += compare(kind, work, work / "model", False, max(2, count // 3), rng)
    ours = [row for row in rows if row["steered"]]
    total = sum(len(row["kills"]) for row in ours)
    right = sum(len(row["kills"]) for row in ours if all(row.get("equal", {"": False}).values()))
    return report.Result(
        share_interval(right, total),
        "share of kills after which the resumed run equals the undisturbed one in everything compared",
        [SEED],
        rows,
        {"by trainer": summary(rows), "where TRL alone differs": causes(rows)},
        {"steps": STEPS, "kills per run": KILLS_PER_RUN, "save_steps": 1, "save_total_limit": 1},
    )


def summary(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Kills, where they struck, and how many runs agree in each part."""
    found: dict[str, Any] = {}
    for row in rows:
        entry = found.setdefault(
            f"{row['kind']}, {'steered' if row['steered'] else 'TRL alone'}",
            {"runs": 0, "failed": 0, "kills": 0, "last_not_whole": 0, "struck": {}, "equal": {}},
        )
        entry["runs"] += 1
        entry["failed"] += "failed" in row
        entry["kills"] += len(row["kills"])
        entry["last_not_whole"] += row.get("last_not_whole", 0)
        for kill in row["kills"]:
            entry["struck"][kill["moment"]] = entry["struck"].get(kill["moment"], 0) + 1
        for part, same in row.get("equal", {}).items():
            entry["equal"][part] = entry["equal"].get(part, 0) + same
    for name, entry in found.items():
        print(name, json.dumps(entry), flush=True)
    return found


def causes(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """For TRL alone: how many runs differ with each suspected cause present, and with it absent.

    In a later epoch: `RepeatSampler` seeds its generator anew in each process, so that a run resumed in its second epoch is
    given the first one's order. Inside a batch: TRL keeps no generated completions in a checkpoint and generates anew.
    """
    suspects = {
        "grpo": ("resumed in a later epoch", lambda step: step >= EPOCH),
        "grpo_reused": ("resumed inside a generation batch", lambda step: step % REUSED != 0),
    }
    found: dict[str, Any] = {}
    for kind, (name, present) in suspects.items():
        counts = {"present": {"differ": 0, "equal": 0}, "absent": {"differ": 0, "equal": 0}}
        for row in rows:
            if row["kind"] != kind or row["steered"] or "failed" in row:
                continue
            steps = [int(kill["resumed_from"].partition("-")[2]) for kill in row["kills"] if kill["resumed_from"]]
            side = "present" if any(map(present, steps)) else "absent"
            counts[side]["equal" if row["equal"]["losses"] and row["equal"]["weights"] else "differ"] += 1
        found[f"{kind}: {name}"] = counts
        print(kind, name, json.dumps(counts), flush=True)
    return found


if __name__ == "__main__":
    report.run("resume", __doc__ or "", measure)
