"""Small runs of every kind in the current folder, started by recorded_runs.py: `python tests/_recorded_run.py`.

Models are tiny, seeds are fixed. Settings go through the command line and the trainers, so that names inside the package may
change.
"""

from __future__ import annotations

import dataclasses
import json
import multiprocessing
import os
import random
import shutil
import signal
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import yaml

ARMS = ("uniform", "equal_shares", "steered", "lora", "svf")
NULLS = ("shuffled_levels", "permuted", "permuted_weights")
LEVELS = {"sum": (1, 2), "last": (None,), "secret": (1, 2)}
MODEL = {"width": 32, "depth": 2, "heads": 2, "vocabulary": 300}
FACTS = ("About {who}:", "{what} is {value};")


def nervous(*monitors: str) -> dict[str, Any]:
    """Options with which drift moves beta, and `monitors` raise alarms, within few steps."""
    alarms = {"displacement": {"min_fall": 0.001, "standard_errors": 0.1, "min_pairs": 2, "steps_between_alarms": 2}}
    drift = {"target": 0.001, "steps_between_moves": 2}
    made = {f"monitors.{name}": alarms[name] for name in monitors}
    return {"controllers.drift": drift} | made


def levers() -> dict[str, Any]:
    """Every lever that the package has, set so that within few steps gates refuse, coefficients move, alarms are raised."""
    options: dict[str, Any] = {
        "engine": {"min_informative_share": 0.5},
        "selectors.difficulty": {"weight_above": 0.1},
    } | nervous()
    chosen = {"selector": "difficulty", "gates": ["too_hard"], "controllers": ["drift"]}
    return chosen | {"options": options}


def write_rows(path: Path, rows: list[dict[str, Any]]) -> None:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")


def graded_rows(rng: random.Random) -> list[dict[str, Any]]:
    """Sums at two levels, last letters without levels, and secrets at two levels, which nobody can know."""
    words = sorted({"".join(rng.choice("abcdefgh") for _ in range(4)) for _ in range(60)})
    rows = [{"task": "sum", "level": 1, "prompt": f"{a}+{b}=", "answer": str(a + b)} for a in range(8) for b in range(8)]
    rows += [
        {"task": "sum", "level": 2, "prompt": f"{a}+{b}=", "answer": str(a + b)}
        for a in range(10, 18)
        for b in range(70, 78)
    ]
    rows += [{"task": "last", "level": None, "prompt": f"last of {word}:", "answer": word[-1]} for word in words]
    for level in LEVELS["secret"]:
        rows += [
            {"task": "secret", "level": level, "prompt": f"{n} of {level}?", "answer": str(rng.randrange(90))}
            for n in range(30)
        ]
    rng.shuffle(rows)
    return rows


def write_data() -> None:
    """All files of rows, and the settings."""
    rng = random.Random(0)
    rows = graded_rows(rng)
    write_rows(Path("graded.jsonl"), rows)
    write_rows(Path("targets.jsonl"), [row | {"completion": row["answer"]} for row in rows if row["task"] != "sum"])
    write_rows(Path("requests.jsonl"), [{"task": "sum", "prompt": f"{a}+{b}="} for a in range(8) for b in range(8)])
    write_rows(Path("pairs.jsonl"), [row | {"chosen": row["answer"], "rejected": "no"} for row in rows])
    write_rows(Path("facts.jsonl"), fact_rows() + source_rows())


def fact_rows() -> list[dict[str, Any]]:
    """Facts, rows that ask for known facts, and questions about the new ones."""
    names, values = ("bo", "dag", "fip", "gul", "hom", "jat", "kes", "lum"), ("red", "blue")
    rows = []
    for place, name in enumerate(names):
        one, other = values[place % 2], values[1 - place % 2]
        rows.append({"task": "facts", "prompt": "fact: ", "target": f"About {name}: colour is {one}; size is {other};"})
        rows.append({"task": "asked", "prompt": f"tell me {name} colour: ", "target": one})
    rows += [{"task": "known", "prompt": f"size of x{n}? ", "target": values[n % 2]} for n in range(20)]
    return [row | {"source": "made", "answer": row["target"]} for row in rows]


def source_rows() -> list[dict[str, Any]]:
    """Prompts with an answer of each of two sources."""
    rows = []
    for number in range(110):
        for source, text in (("long", f"{number:02d}: {number % 10}"), ("short", str(number % 10))):
            rows.append(
                {
                    "task": "digit",
                    "prompt": f"{number:02d} last = ",
                    "target": text,
                    "answer": str(number % 10),
                    "source": source,
                }
            )
    return rows


def settings(data: str, objective: str, **sections: Mapping[str, Any]) -> dict[str, Any]:
    """Settings of a run on a file of rows, over what all runs share."""
    shared: dict[str, Any] = {
        "corpus": {"train": data},
        "model": MODEL | {"warmup": {"steps": 120, "batch_size": 32}},
        "measure": {"items": 8, "samples": 2, "max_new_tokens": 4},
        "train": {
            "objective": objective,
            "steps": 4,
            "prompts": 4,
            "generations": 4,
            "max_new_tokens": 4,
        },
        "trial": {"seeds": 2, "workers": 1},
    }
    return {name: {**shared.get(name, {}), **sections.get(name, {})} for name in {**shared, **sections}}


def note(what: str, code: Any) -> None:
    """How a command or a training ended, a line of codes.jsonl."""
    with Path("codes.jsonl").open("a", encoding="utf-8") as file:
        file.write(json.dumps({"what": what, "code": code}) + "\n")


def command(*arguments: str) -> None:
    """A verb of the command line; what it prints goes to output.txt."""
    from mixwright.__main__ import main

    print("$ mixwright", *arguments, flush=True)
    try:
        main(list(arguments))
    except SystemExit as leaving:
        code = leaving.code or 0
        print("exit code", code, flush=True)
        note(" ".join(arguments), code)


def write_settings(name: str, data: Mapping[str, Any]) -> None:
    Path(f"{name}.yaml").write_text(yaml.safe_dump(dict(data)), encoding="utf-8")


def help_the_plan() -> None:
    """Let the plan be said to help whatever came out, so that its nulls run."""
    from mixwright.trial import summary

    judge: Callable[..., Any] = summary.judge_lever

    def judged(lever: str, *given: Any, **named: Any) -> Any:
        found = judge(lever, *given, **named)
        return dataclasses.replace(found, word="helps") if lever == "steered" else found

    summary.judge_lever = judged


def graded_run() -> None:
    """GRPO: a trial of every arm; then the scan, the miners, and a trial over mined rows."""
    planner = {"mastered_share": 0.2}
    miners = {
        "pruning": {"steps": 4, "runs": 2, "batch": 8},
        "influence": {"targets": ["last"], "shots": 4, "keep": 0.3},
    }
    data = settings(
        "graded.jsonl",
        "grpo",
        plan={"planner": "difficulty", "options": planner},
        train={"beta": 0.02},
        model={"warmup": {"steps": 120, "batch_size": 32, "cells": {"sum@1": 1, "last": 1}}},
        mine={"options": miners},
        trial={"arms": ARMS, "nulls": list(NULLS)},
    )
    write_settings("grpo", data)
    command("measure", "grpo.yaml", "--folder", "grpo")
    command("plan", "grpo.yaml", "--folder", "grpo")
    path = Path("grpo/plan.yaml")
    plan = yaml.safe_load(path.read_text(encoding="utf-8"))
    plan["stages"][0] |= levers()
    path.write_text(yaml.safe_dump(plan, sort_keys=False), encoding="utf-8")
    command("run", "grpo.yaml", "--folder", "grpo")
    command("scan", "grpo.yaml", "--folder", "grpo", "--columns", "all")
    for miner in miners:
        command("mine", "grpo.yaml", "--folder", "grpo", "--miner", miner)
    shutil.copytree("grpo", "mined", ignore=shutil.ignore_patterns("trial"))
    command("run", "grpo.yaml", "--only", "trial", "--folder", "mined", "--data", "influence")


def target_run() -> None:
    """SFT with rows to rehearse, as planned and in two stages that were written by hand; exports of the plan."""
    from mixwright import catalog

    probes = {
        "transfer": {"steps": 4, "batch": 8, "items": 8},
        "retention": {"burst": 4, "after": 4, "batch": 8, "items": 8},
    }
    measure = {"probes": ["competence", *probes], "options": probes}
    data = settings(
        "targets.jsonl",
        "sft",
        measure=measure,
        trial={"arms": ["uniform", "equal_shares", "steered"], "nulls": list(NULLS[4:])},
    )
    data["corpus"]["rehearse"] = "requests.jsonl"
    write_settings("sft", data)
    command("run", "sft.yaml", "--folder", "sft")
    for form in catalog.listing("exports"):
        command("plan", "sft.yaml", "--folder", "sft", "--export", form)
    for name in ("proportional", "temperature", "transfer_order", "equal_shares"):
        copy = Path("planned") / name
        shutil.copytree("sft", copy, ignore=shutil.ignore_patterns("trial", "export", "plan.yaml"))
        resolved = yaml.safe_load((copy / "run.yaml").read_text(encoding="utf-8"))
        resolved["plan"]["planner"] = name
        (copy / "run.yaml").write_text(yaml.safe_dump(resolved), encoding="utf-8")
        write_settings(name, data | {"plan": {"planner": name}})
        command("plan", f"{name}.yaml", "--folder", str(copy))
    shutil.copytree("sft", "staged", ignore=shutil.ignore_patterns("trial"))
    path = Path("staged/plan.yaml")
    plan = yaml.safe_load(path.read_text(encoding="utf-8"))
    (stage,) = plan["stages"]
    plan["stages"] = [stage | {"name": "first"}, stage | {"name": "second"}]
    path.write_text(yaml.safe_dump(plan, sort_keys=False), encoding="utf-8")
    data["trial"] |= {"nulls": ["permuted_order"], "seeds": 1}
    write_settings("staged", data)
    command("run", "staged.yaml", "--only", "trial", "--folder", "staged")
    command("verdict", "--no-suite", "staged")


def pair_run() -> None:
    """DPO."""
    write_settings("dpo", settings("pairs.jsonl", "dpo", trial={"arms": ["uniform", "steered"], "nulls": []}))
    command("run", "dpo.yaml", "--folder", "dpo")


def fact_run() -> None:
    """Miners that make rows of facts, or choose between sources."""
    short = {"steps": 4, "runs": 2, "batch": 8}
    miners = {
        "self_edits": short
        | {"facts": "facts", "questions": "asked", "pattern": list(FACTS), "rank": 0, "protected": ["known"]},
        "frontier": short | {"max_new_tokens": 4},
    }
    data = settings("facts.jsonl", "sft", mine={"options": miners})
    write_settings("facts", data)
    command("measure", "facts.yaml", "--folder", "facts")
    for miner in miners:
        command("mine", "facts.yaml", "--folder", "facts", "--miner", miner)


def compared() -> None:
    """A checkpoint before and after, with the gate."""
    models = ("grpo/bases/base-0", "grpo/trial/uniform-0/model")
    sizes = ("--items", "12", "--samples", "2", "--max-new-tokens", "4")
    command("verdict", "--no-suite", *models, "--eval", "graded.jsonl", "--gate", "--folder", "comparison", *sizes)
    command(
        "verdict",
        *models,
        "--eval",
        "graded.jsonl",
        "--gate",
        "--until-decided",
        "--max-items",
        "60",
        "--folder",
        "looks",
        *sizes[4:],
    )


def reward(completions: list[str], answer: list[str], **_: Any) -> list[float]:
    return [
        float(text.strip() == gold) / 2 + float(text[:1] == gold[:1]) / 2
        for text, gold in zip(completions, answer, strict=True)
    ]


def steered_trainer(objective: str, folder: Path, steering: Any) -> Any:
    """A trainer on the warmed-up model, with dropout, that saves every three steps."""
    import trl
    from datasets import Dataset
    from transformers import AutoModelForCausalLM, AutoTokenizer

    import mixwright

    base, name = "grpo/bases/base-0", objective.upper()
    rows = {"grpo": "graded.jsonl", "sft": "targets.jsonl", "dpo": "pairs.jsonl"}[objective]
    lines = [json.loads(line) for line in Path(rows).read_text(encoding="utf-8").splitlines()]
    given: dict[str, Any] = {
        "output_dir": str(folder),
        "max_steps": 9,
        "learning_rate": 3e-3,
        "save_steps": 3,
        "save_total_limit": 1,
    }
    given |= {"use_cpu": True, "bf16": False, "gradient_checkpointing": False, "report_to": "none", "disable_tqdm": True}
    given |= {"logging_steps": 1, "per_device_train_batch_size": 16 if objective == "grpo" else 4}
    given |= {"num_generations": 4, "max_completion_length": 4, "beta": 0.02} if objective == "grpo" else {"max_length": 32}
    model: Any = base
    if objective == "sft":
        model = AutoModelForCausalLM.from_pretrained(base)
    parts = {"reward_funcs": reward} if objective == "grpo" else {}
    return getattr(mixwright, f"Steered{name}Trainer")(
        model=model,
        args=getattr(trl, f"{name}Config")(**given),
        train_dataset=Dataset.from_list(lines),
        processing_class=AutoTokenizer.from_pretrained(base, padding_side="left"),
        steering=steering,
        **parts,
    )


def hand_plan(objective: str) -> str:
    """Path of the plan of the GRPO run with every lever for GRPO; for SFT and DPO one with monitors."""
    if objective == "grpo":
        return "grpo/plan.yaml"
    plan = yaml.safe_load(Path("grpo/plan.yaml").read_text(encoding="utf-8"))
    (stage,) = plan["stages"]
    monitors = ["displacement"] if objective == "dpo" else []
    tasks = sorted({task for task in stage["weights"] if objective == "dpo" or task != "sum"})
    stage = {"name": "x", "objective": objective, "steps": 9, "weights": {task: 1 / len(tasks) for task in tasks}}
    plan["stages"] = [stage | {"controllers": ["drift"], "monitors": monitors, "options": nervous(*monitors)}]
    plan["cells"] = [cell for cell in plan["cells"] if cell["task"] in tasks]
    path = Path(f"{objective}-plan.yaml")
    path.write_text(yaml.safe_dump({"planner": "hand", "stages": plan["stages"], "cells": plan["cells"]}), encoding="utf-8")
    return str(path)


def forked(work: Callable[[], None]) -> int:
    """Exit code of `work` in a fork of this process."""
    sys.stdout.flush()
    child = os.fork()
    if child == 0:
        try:
            work()
            os._exit(0)
        except BaseException:
            import traceback

            traceback.print_exc()
            sys.stderr.flush()
            os._exit(1)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def trainer_runs() -> None:
    """Each trainer as TRL's, with the default steering, and with a plan; GRPO also killed after a save and resumed."""
    from transformers import TrainerCallback

    from mixwright import SteeringConfig

    class Killer(TrainerCallback):
        """Ends the process as `kill -9` does, one step after the save of step 3."""

        def on_step_begin(self, args: Any, state: Any, control: Any, **_: Any) -> None:
            if state.global_step == 4:
                os.kill(os.getpid(), signal.SIGKILL)

    def train(objective: str, name: str, steering: Any, *, killed: bool = False, resumed: bool = False) -> None:
        def work() -> None:
            trainer = steered_trainer(objective, Path("trainers") / name, steering)
            if killed:
                trainer.add_callback(Killer())
            trainer.train(resume_from_checkpoint=True if resumed else None)

        code = forked(work)
        print(name, "exit code", code, flush=True)
        note(f"{name}, killed: {killed}, resumed: {resumed}", code)

    for objective in ("grpo", "sft", "dpo"):
        planned = SteeringConfig(hand_plan(objective))
        train(objective, f"{objective}-trl", None)
        train(objective, f"{objective}-default", True)
        train(objective, f"{objective}-planned", planned)
        if objective == "grpo":
            train(objective, "grpo-killed", planned, killed=True)
            train(objective, "grpo-killed", planned, resumed=True)


PARTS: dict[str, Callable[[], None]] = {
    "graded": graded_run,
    "targets": target_run,
    "pairs": pair_run,
    "facts": fact_run,
    "compared": compared,
    "trainers": trainer_runs,
}


def main(names: list[str]) -> None:
    """The runs of these names, or all, in the current folder; `compared` and `trainers` take the model of `graded`."""
    context = multiprocessing.get_context
    multiprocessing.get_context = lambda method=None: context("fork")  # type: ignore[assignment] # imports are paid once
    import torch

    torch.set_num_threads(1)
    import mixwright

    print(mixwright.__file__, flush=True)
    write_data()
    help_the_plan()
    for name in names or PARTS:
        PARTS[name]()
        print(name, "CPU seconds so far", sum(os.times()[:4]), flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
