"""Exports of a plan: shares by hand, read back by the trainers' own readers where those are installed, by YAML elsewhere."""

from __future__ import annotations

import json
import shlex
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
import yaml
from cli_call import Call, sums, write

from mixwright.corpus import Corpus
from mixwright.errors import InputError
from mixwright.learner.prompt_form import PromptForm
from mixwright.records import Example, Measurement, Objective, Plan, Stage
from mixwright.run.folder import RunFolder, read_plan, write_measurements, write_plan
from mixwright.verbs import export as exporting
from mixwright.verbs.export import MIX_FILE, TextHandling, build_mix, write_mix

ROWS = [("gcd", 1.0, 30), ("gcd", 2.0, 10), ("spell it/1", None, 20)]


@pytest.fixture(autouse=True)
def few_draws(monkeypatch: pytest.MonkeyPatch) -> None:
    """Shares are read off the first draws, and files hold no more; of so few rows fewer draws say the same."""
    monkeypatch.setattr(exporting, "SIMULATED_DRAWS", 4000)


def corpus() -> Corpus:
    """60 training rows, and 5 held-out ones that must never be seen in an export."""
    rows = [
        Example(f"{task}{level}{n}", task, f"{task} {level} {n} =", answer=str(n), target=str(n), level=level)
        for task, level, count in ROWS
        for n in range(count)
    ]
    return Corpus.from_examples(
        [*rows, *(Example(f"e{n}", "gcd", f"held {n}", "1", "1", 1.0, split="eval") for n in range(5))]
    )


def planned(selector: str = "equal_levels", objective: Objective = "grpo", gcd: float = 0.75, **more: Any) -> Plan:
    weights = {"gcd": gcd, "spell it/1": 1 - gcd}
    return Plan("by hand", (Stage("training", objective, 10, weights, selector=selector, **more),))


def export_plan(plan: Plan, rows: Corpus, name: str, place: Path, **how: Any) -> list[str]:
    return write_mix(build_mix(plan, rows, **how), name, place)


def export(name: str, place: Path, plan: Plan | None = None, batch: int = 8) -> str:
    return "\n".join(export_plan(plan or planned(), corpus(), name, place, batch=batch, num_generations=4))


def settings(path: Path) -> Any:
    return yaml.safe_load(path.read_text(encoding="utf-8"))


def test_levels_have_equal_shares_of_their_task_and_rows_uniform_ones() -> None:
    equal = build_mix(planned(), corpus(), batch=8)
    assert [(part.name, part.share, len(part.rows)) for part in equal.parts] == [
        ("01_gcd_1", 0.375, 30),
        ("02_gcd_2", 0.375, 10),
        ("03_spell_it_1", 0.25, 20),
    ]
    rows = build_mix(planned("uniform"), corpus(), batch=8)
    assert [part.share for part in rows.parts] == [0.5625, 0.1875, 0.25]
    assert len(equal.order) == 80, "10 steps of 8"
    tasks = Counter(equal.corpus[int(row)].task for row in equal.order)
    assert tasks == {"gcd": 60, "spell it/1": 20}
    assert all(example.split == "train" for example in equal.corpus)


def test_a_task_of_weight_0_is_left_out_and_a_long_plan_says_how_often_its_rows_are_passed() -> None:
    mix = build_mix(planned(gcd=1.0), corpus(), batch=8)
    assert [part.share for part in mix.parts] == [0.5, 0.5]
    long = build_mix(Plan("p", (Stage("s", "grpo", 1200, {"gcd": 1.0}),)), corpus(), batch=8)
    assert (len(long.order), long.epochs) == (4000, 3), "9,600 draws of 4,000 rows"
    assert any("the first 4,000" in note for note in long.notes)


def test_it_says_what_is_lost_and_when_the_plan_keeps_uniform_sampling() -> None:
    uniform = planned("uniform", gcd=2 / 3)
    assert any("keeps uniform sampling" in note for note in build_mix(uniform, corpus(), batch=8).notes)
    steered = build_mix(planned("difficulty", gates=("too_hard",)), corpus(), batch=8).notes
    assert any("selector difficulty" in note and "draws of the start" in note for note in steered)
    assert any("gates too_hard" in note for note in steered)
    assert not any(
        "uniform sampling" in note or "draws of the start" in note for note in build_mix(planned(), corpus(), batch=8).notes
    )


def test_trl_reads_the_rows_in_the_order_of_the_draws(tmp_path: Path) -> None:
    from trl import DatasetMixtureConfig, TrlParser, get_dataset

    export("trl", tmp_path / "trl")
    parser = TrlParser(DatasetMixtureConfig)
    config, rest = parser.parse_args_and_config(
        ["--config", str(tmp_path / "trl" / "trl.yaml")], return_remaining_strings=True
    )
    own = dict(zip(rest[::2], rest[1::2], strict=True))  # for the trainer's own arguments
    assert own.pop("--shuffle_dataset") == "False"
    sizes = {"--per_device_train_batch_size": 4, "--gradient_accumulation_steps": 8, "--num_generations": 4}
    assert {name: int(value) for name, value in own.items()} == {"--max_steps": 10, **sizes}, "a step has 8 groups of 4"
    rows, mix = get_dataset(config)["train"], build_mix(planned(), corpus(), batch=8)
    assert rows["id"] == [f"{number}-{mix.corpus[int(row)].id}" for number, row in enumerate(mix.order, 1)]
    assert set(rows.column_names) == {"id", "task", "level", "prompt", "answer"}


def test_axolotl_gets_the_rows_in_the_order_of_the_draws(tmp_path: Path) -> None:
    place = tmp_path / "out"
    export("axolotl", place)
    rows = [json.loads(line) for line in (place / "rows.jsonl").read_text(encoding="utf-8").splitlines()]
    mix = build_mix(planned(), corpus(), batch=8)
    drawn = [mix.corpus[int(row)].id for row in mix.order]
    assert [row["id"] for row in rows] == [f"{number}-{name}" for number, name in enumerate(drawn, 1)]
    assert len({row["id"] for row in rows}) == 80, "a row that is drawn again has an id of its own"
    found = settings(place / "axolotl.yaml")
    assert found["datasets"] == [{"path": str(place / "rows.jsonl"), "ds_type": "json", "split": "train"}]
    kept = {
        "rl": "grpo",
        "shuffle_merged_datasets": False,
        "curriculum_sampling": True,
        "dataset_exact_deduplication": False,
    }
    assert kept.items() <= found.items()
    assert found["max_steps"] == 10
    assert (found["micro_batch_size"], found["gradient_accumulation_steps"]) == (4, 8), "completions: 8 groups of 4"
    assert found["trl"] == {"num_generations": 4}
    different = len({row["prompt"] for row in rows})
    assert f"80 rows, {different} of them different, out of 60" in " ".join(
        (place / "axolotl.yaml").read_text("utf-8").split(" #")
    )
    told = export("axolotl", place, planned("uniform", gcd=2 / 3), batch=2)
    assert "equally likely to be drawn; its 20 draws take 20 of 60 rows." in told
    export("axolotl", place, planned("uniform", "sft"))
    found = settings(place / "axolotl.yaml")
    assert found["datasets"][0]["type"]["field_output"] == "completion"
    assert "rl" not in found
    assert "trl" not in found
    assert (found["micro_batch_size"], found["gradient_accumulation_steps"]) == (1, 8)


def test_llama_factory_gets_probabilities_and_described_data_sets(tmp_path: Path) -> None:
    place = tmp_path / "out"
    told = export("llama-factory", place)
    found = settings(place / "llama_factory.yaml")
    assert found["dataset"] == "01_gcd_1,02_gcd_2,03_spell_it_1"
    assert (found["mix_strategy"], found["interleave_probs"]) == ("interleave_over", "0.375,0.375,0.25")
    assert "no GRPO" in told
    assert "stage" not in found
    info = json.loads((place / "dataset_info.json").read_text(encoding="utf-8"))
    assert info["02_gcd_2"]["columns"] == {"prompt": "instruction", "response": "output"}
    rows = [json.loads(line) for line in (place / info["02_gcd_2"]["file_name"]).read_text(encoding="utf-8").splitlines()]
    assert len(rows) == 10
    assert {"instruction": "gcd 2.0 3 =", "output": "3"} in rows


def test_verl_gets_its_five_fields(tmp_path: Path) -> None:
    place = tmp_path / "out"
    told = export("verl", place)
    rows = pq.read_table(place / "train.parquet").to_pylist()
    assert len(rows) == 80
    assert set(rows[0]) == {"data_source", "prompt", "ability", "reward_model", "extra_info"}
    assert [message["role"] for message in rows[0]["prompt"]] == ["user"]
    gold = {row["extra_info"]["id"]: row["reward_model"] for row in rows}
    assert all(model == {"style": "rule", "ground_truth": corpus_answer(key)} for key, model in gold.items())
    found = settings(place / "verl.yaml")
    assert found["data"]["shuffle"] is False
    assert found["data"]["train_files"] == [str(place / "train.parquet")]
    assert found["trainer"] == {"total_epochs": 1, "total_training_steps": 10}
    model = found["actor_rollout_ref"].pop("model")
    assert found["actor_rollout_ref"] == {"actor": {"ppo_mini_batch_size": 8}, "rollout": {"n": 4}}, "the plan's groups"
    assert "..." not in told
    assert f""" "data.train_files=['{place / "train.parquet"}']" """ in told, "quotes that people can read"
    command = shlex.split(told.partition("for your GPUs: ")[2])
    assert command[:3] == ["python3", "-m", "verl.trainer.main_ppo"]
    assert set(command[3:]) == {
        f"data.train_files=['{place / 'train.parquet'}']",
        *("data.train_batch_size=8", "data.shuffle=False", "data.prompt_key=prompt", "data.reward_fn_key=data_source"),
        *("trainer.total_epochs=1", "trainer.total_training_steps=10", "algorithm.adv_estimator=grpo"),
        *("actor_rollout_ref.actor.ppo_mini_batch_size=8", "actor_rollout_ref.rollout.n=4"),
        f"actor_rollout_ref.model.custom_chat_template='{model['custom_chat_template']}'",
        *("data.val_files=VAL_FILES", "actor_rollout_ref.model.path=PATH"),
    }
    told = "\n".join(export_plan(planned(), corpus(), "verl", tmp_path / "more", batch=8))
    assert "Set actor_rollout_ref.rollout.n" in told
    told = export("verl", tmp_path / "sft", planned("uniform", "sft"))
    assert settings(tmp_path / "sft" / "verl.yaml").keys() == {"data", "trainer", "model"}
    command = shlex.split(told.partition("for your GPUs: ")[2])
    assert command[:3] == ["torchrun", "-m", "verl.trainer.sft_trainer"], "fsdp_sft_trainer is gone since 0.7.1"
    assert set(command[3:]) == {
        f"data.train_files=['{tmp_path / 'sft' / 'train.parquet'}']",
        *("data.train_batch_size=8", "data.messages_key=messages", "model.path=PATH"),
        *("trainer.total_epochs=1", "trainer.total_training_steps=10"),
        f"model.custom_chat_template='{model['custom_chat_template']}'",
    }, "keys of verl's sft_trainer_engine.yaml: hydra refuses others"


def test_verl_gets_rows_without_a_level_before_rows_with_one(tmp_path: Path) -> None:
    rows = [
        Example("a0", "a", "a 0", answer="0"),
        *(Example(f"b{n}", "b", f"b {n}", answer="1", level=float(n % 2)) for n in range(4)),
    ]
    for seed in range(4):  # whatever row the draws begin with
        plan = Plan("by hand", (Stage("training", "grpo", 10, {"a": 0.5, "b": 0.5}, selector="uniform"),))
        export_plan(plan, Corpus.from_examples(rows), "verl", tmp_path / str(seed), batch=8, seed=seed)
        about = [row["extra_info"] for row in pq.read_table(tmp_path / str(seed) / "train.parquet").to_pylist()]
        assert {row["level"] for row in about} == {None, 0.0, 1.0}


def test_options_of_levers_that_an_export_leaves_out_are_no_obstacle() -> None:
    options = {"gates.too_hard": {"floor": 0.1}, "controllers.drift": {"target": 0.01}}
    levers = {"gates": ("too_hard",), "controllers": ("drift",)}
    with_levers = build_mix(planned("difficulty", options=options, **levers), corpus(), batch=8)
    without = build_mix(planned("difficulty"), corpus(), batch=8)
    assert [part.share for part in with_levers.parts] == [part.share for part in without.parts]


def corpus_answer(key: str) -> str | None:
    return next(example.answer for example in corpus() if example.id == key)


def test_chats_go_through_the_template_and_one_data_set_needs_no_shares(tmp_path: Path) -> None:
    ask = ({"role": "user", "content": "2 + 2 ="},)
    chats = Corpus.from_examples([Example(f"{n}", "chat", ask, target="4") for n in range(4)])
    plan = Plan("p", (Stage("s", "sft", 2, {"chat": 1.0}),))
    export_plan(plan, chats, "axolotl", tmp_path / "a", batch=2)
    assert settings(tmp_path / "a" / "axolotl.yaml")["datasets"][0]["type"] == "chat_template"
    export_plan(plan, chats, "llama_factory", tmp_path / "l", batch=2)
    assert "interleave_probs" not in settings(tmp_path / "l" / "llama_factory.yaml")


def lines(path: Path) -> list[Any]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def test_plain_prompts_become_messages_where_the_run_takes_the_chat_template(tmp_path: Path) -> None:
    reading = TextHandling(PromptForm(True, "Be short."), ("<s>", "</s>"))
    for name in ("axolotl", "llama_factory", "verl"):
        export_plan(planned("uniform", "sft"), corpus(), name, tmp_path / name, batch=8, text_handling=reading)
    for talk in (row["messages"] for row in lines(tmp_path / "axolotl" / "rows.jsonl")):
        assert [(message["role"], message["train"]) for message in talk] == [
            ("system", False),
            ("user", False),
            ("assistant", True),
        ]
    found = settings(tmp_path / "axolotl" / "axolotl.yaml")
    assert found["chat_template"] == "tokenizer_default"
    assert found["datasets"][0]["message_field_training"] == "train"
    found = settings(tmp_path / "llama_factory" / "llama_factory.yaml")
    assert (found["mask_history"], "template" in found) == (True, False), "unset, the tokenizer's own is taken"
    told = pq.read_table(tmp_path / "verl" / "train.parquet").to_pylist()[0]["messages"]
    assert [message["role"] for message in told] == ["system", "user", "assistant"]
    assert "model" not in settings(tmp_path / "verl" / "verl.yaml")


def test_plain_prompts_stay_plain_where_the_run_takes_no_chat_template(tmp_path: Path) -> None:
    reading = TextHandling(PromptForm(False), ("<s>", "</s>"))
    for name in ("axolotl", "llama_factory", "verl"):
        export_plan(planned("uniform", "sft"), corpus(), name, tmp_path / name, batch=8, text_handling=reading)
    assert all(isinstance(row["prompt"], str) for row in lines(tmp_path / "axolotl" / "rows.jsonl"))
    assert "chat_template" not in settings(tmp_path / "axolotl" / "axolotl.yaml")
    assert settings(tmp_path / "llama_factory" / "llama_factory.yaml")["template"] == "empty"
    rows = lines(tmp_path / "llama_factory" / "02_gcd_2.jsonl")
    assert {"instruction": "<s>gcd 2.0 3 =", "output": "3</s>"} in rows, "the template `empty` adds neither"
    template = settings(tmp_path / "verl" / "verl.yaml")["model"]["custom_chat_template"]
    jinja2 = pytest.importorskip("jinja2")
    talk = pq.read_table(tmp_path / "verl" / "train.parquet").to_pylist()[0]["messages"]
    made = jinja2.Template(template).render(messages=talk, bos_token="<s>", eos_token="</s>")
    assert made == f"<s>{talk[0]['content']}{talk[1]['content']}</s>"
    unknown = export_plan(planned("uniform", "sft"), corpus(), "llama_factory", tmp_path / "unknown", batch=8)
    assert any("append its end token to each answer" in line for line in unknown)


def test_the_room_of_rollouts_is_exported(tmp_path: Path) -> None:
    reading = TextHandling(max_completion_tokens=24)
    for name in ("axolotl", "llama_factory", "verl", "trl"):
        export_plan(planned(), corpus(), name, tmp_path / name, batch=8, num_generations=4, text_handling=reading)
    assert settings(tmp_path / "axolotl" / "axolotl.yaml")["trl"] == {"num_generations": 4, "max_completion_length": 24}
    assert settings(tmp_path / "llama_factory" / "llama_factory.yaml")["max_new_tokens"] == 24
    assert settings(tmp_path / "verl" / "verl.yaml")["data"]["max_response_length"] == 24
    assert settings(tmp_path / "trl" / "trl.yaml")["max_completion_length"] == 24
    export_plan(
        planned("uniform", "sft"), corpus(), "trl", tmp_path / "sft", batch=8, num_generations=4, text_handling=reading
    )
    assert not {"max_completion_length", "num_generations"} & settings(tmp_path / "sft" / "trl.yaml").keys()


def test_rows_without_a_prompt_are_completions_beside_rows_with_one_and_texts_alone(tmp_path: Path) -> None:
    plan = Plan("p", (Stage("s", "sft", 2, {"t": 1.0}, selector="uniform"),))
    for name, prompts, fields in (("both", ("", "2 ="), {"prompt", "completion"}), ("texts", ("", ""), {"text"})):
        made = Corpus.from_examples([Example(f"{n}", "t", prompt, target=f"{n}.") for n, prompt in enumerate(prompts)])
        export_plan(plan, made, "axolotl", tmp_path / name, batch=1)
        assert all(set(row) == {"id", "task", "level"} | fields for row in lines(tmp_path / name / "rows.jsonl"))
    assert settings(tmp_path / "texts" / "axolotl.yaml")["datasets"][0]["type"] == "completion"


@pytest.mark.parametrize("name", ["axolotl", "llama_factory", "verl"])
def test_chats_beside_plain_texts_are_refused(name: str, tmp_path: Path) -> None:
    rows = [Example("1", "a", "2 =", target="2"), Example("2", "b", ({"role": "user", "content": "3 ="},), target="3")]
    plan = Plan("p", (Stage("s", "sft", 4, {"a": 0.5, "b": 0.5}, selector="uniform"),))
    with pytest.raises(InputError, match="got both"):
        export_plan(plan, Corpus.from_examples(rows), name, tmp_path / "no", batch=2)
    assert not (tmp_path / "no").exists()


def test_verl_is_told_where_the_assistant_spoke_before(tmp_path: Path) -> None:
    before = ({"role": "user", "content": "hi"}, {"role": "assistant", "content": "ho"}, {"role": "user", "content": "2 ="})
    made = Corpus.from_examples([Example("1", "t", before, target="2")])
    plan = Plan("p", (Stage("s", "sft", 2, {"t": 1.0}, selector="uniform"),))
    told = export_plan(plan, made, "verl", tmp_path / "v", batch=3)
    assert any("6 rows have some before the completion" in line for line in told)


def test_an_earlier_export_is_replaced_and_nothing_else(tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "notes.txt").write_text("keep")
    with pytest.raises(InputError, match="other files"):
        export("trl", tmp_path / "mine")
    assert (tmp_path / "mine" / "notes.txt").read_text() == "keep"
    export("trl", tmp_path / "ours")
    export("verl", tmp_path / "ours")
    assert {path.name for path in (tmp_path / "ours").iterdir()} == {MIX_FILE, "train.parquet", "verl.yaml"}
    with pytest.raises(InputError, match="axolotl"):
        export("axolotol", tmp_path / "ours")
    assert (tmp_path / "ours" / "verl.yaml").exists(), "a wrong name removes nothing"
    two = planned().stages * 2
    with pytest.raises(InputError, match="one stage"):
        export("trl", tmp_path / "ours", Plan("p", two))


def test_the_command_exports_a_plan_as_it_stands(call: Call) -> None:
    write("a.jsonl", sums())
    Path("run.yaml").write_text("corpus: {train: a.jsonl, eval_share: 0.25}\ntrain: {steps: 5}\n", encoding="utf-8")
    rows = [
        Measurement("competence", "sum", name, 0.4, 0.3, 0.5, 64, "share", null=0.1, null_of="luck")
        for name in ("pass@1", "greedy")
    ]
    run = RunFolder("runs/run")
    write_measurements(run.measurements("before"), rows)
    assert "Nearest: trl." in call("plan", "run.yaml", "--export", "trll")[2]
    assert "Known: axolotl, llama-factory, trl, verl." in call("plan", "run.yaml", "--export", "nope")[2]
    assert "leave one out" in call("plan", "run.yaml", "--export", "trl", "--dry-run")[2]
    assert not run.plan.exists(), "what is refused plans nothing"
    code, out, err = call("plan", "run.yaml", "--export", "llama-factory")
    assert (code, out.splitlines()[-2:]) == (0, ["Plan: runs/run/plan.yaml", "Export: runs/run/export/llama-factory"])
    assert "selector difficulty" in err
    plan = read_plan(run.plan)
    write_plan(run.plan, Plan("edited", plan.stages, plan.cells))
    code, out, err = call("plan", "run.yaml", "--export", "verl", "--export-to", "mine")
    assert (code, out.splitlines()) == (0, ["Plan: runs/run/plan.yaml", "Export: mine"])
    assert "planner edited" in err
    assert pq.read_table("mine/train.parquet").num_rows == 40


def test_a_plan_of_rows_that_its_objective_cannot_be_trained_on_is_refused(call: Call) -> None:
    write("a.jsonl", [{"prompt": f"{n}+1=", "chosen": "1", "rejected": "2"} for n in range(20)])
    corpus, plan = {"train": "a.jsonl", "eval_share": 0}, {"planner": "proportional"}
    settings = json.dumps({"corpus": corpus, "train": {"objective": "sft"}, "plan": plan})
    Path("run.yaml").write_text(settings, encoding="utf-8")
    run = RunFolder("runs/run")
    write_measurements(run.measurements("before"), [])
    for more in ((), ("--export", "trl"), ("--dry-run",)):
        code, out, err = call("plan", "run.yaml", *more)
        assert (code, out) == (1, "")
        assert "'target' in every training row, for train.objective sft, got none in 20 of 20 rows" in err
    assert not run.plan.exists()
    assert not run.manifest.exists()
