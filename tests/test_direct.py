"""Checkpoints measured without a YAML: `measure MODEL`, `plan MODEL TRAIN`, `verdict BEFORE AFTER`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from cli_call import Call, help_of, sums, write
from trainers_tiny import model, tokenizer

from mixwright.errors import InputError
from mixwright.learner.learner import Learner
from mixwright.records import Measurement, Observation, Plan, RunManifest
from mixwright.run.folder import RunFolder, read_json, read_list, read_measurements, read_yaml
from mixwright.verbs.direct import MIN_USUAL_CELL_ITEMS, USUAL_ITEMS
from mixwright.verbs.measure import measured_lines
from mixwright.verbs.options import Measuring, parse_columns, parse_graders
from mixwright.verdict.rules.gate import items_to_measure

CHAT = "{% for m in messages %}{{ m['role'][0] + '=' + m['content'] + ' ' }}{% endfor %}a="
FAST = ("--samples", "2", "--max-new-tokens", "4")


def checkpoint(name: str, seed: int = 0, *, chat: bool = False) -> str:
    model(seed).save_pretrained(name)
    saved = tokenizer()
    if chat:
        saved.chat_template = CHAT
    saved.save_pretrained(name)
    return name


def adapter(name: str, base: str) -> str:
    """A LoRA adapter that says it belongs to `base`."""
    from peft import LoraConfig, get_peft_model

    wrapped: Any = get_peft_model(
        model(), LoraConfig(r=2, target_modules=["q_proj"], init_lora_weights=False, task_type="CAUSAL_LM")
    )
    wrapped.save_pretrained(name)
    noted = Path(name) / "adapter_config.json"
    settings = json.loads(noted.read_text(encoding="utf-8"))
    noted.write_text(json.dumps(settings | {"base_model_name_or_path": base}), encoding="utf-8")
    return name


def manifest(folder: str) -> RunManifest:
    return read_json(RunFolder(folder).manifest, RunManifest)


def test_a_checkpoint_is_measured_without_a_yaml(call: Call) -> None:
    checkpoint("now")
    code, out, err = call("measure", "now", "--eval", write("a.jsonl", sums(12)), "--items", "5", *FAST, "--json")
    assert code == 0, err
    greedy = [row for row in json.loads(out)["measurements"] if row["name"] == "greedy"]
    assert [(row["task"], row["n"]) for row in greedy] == [("sum", 5)]
    assert "completions: up to 4 tokens (as asked)" in err
    assert "measure, 5 items: 5 of 5, done" in err
    assert err.count("measure, 5 items") <= 14, "a line per tenth of the work, and not one per item"
    assert not Path("runs").exists(), "nothing is kept unless --folder says where"


def test_what_was_measured_is_kept_as_a_run_keeps_it(call: Call) -> None:
    checkpoint("now")
    write("a.jsonl", sums(12))
    arguments = ("measure", "now", "--eval", "a.jsonl", "--items", "5", *FAST, "--folder", "kept")
    code, _, err = call(*arguments)
    assert code == 0, err
    run = RunFolder("kept")
    assert read_measurements(run.measurements("now")) == read_measurements(run.measurements("before"))
    assert run.answers("now").is_file()
    settings = manifest("kept").settings
    assert (settings["items"], settings["max_new_tokens"], settings["prompts"]) == (5, 4, "plain text")
    assert not {"learning_rate", "objective", "planner", "steps"} & set(settings)
    code, _, err = call(*arguments)
    assert code == 1
    assert "Name another --folder" in err


def test_a_plan_is_made_without_a_yaml(call: Call) -> None:
    checkpoint("now")
    arguments = ("plan", "now", write("a.jsonl", sums(12)), "--objective", "grpo", "--items", "5", *FAST, "--steps", "7")
    code, out, err = call(*arguments)
    assert code == 0, err
    made = read_yaml(Path("plan.yaml"), Plan)
    assert (made.planner, made.stages[0].steps) == ("difficulty", 7)
    code, out, err = call(*arguments, "--planner", "proportional", "--objective", "sft", "--output", "mine.yaml")
    assert (code, "Plan: mine.yaml" in out.splitlines()) == (0, True), err
    made = read_yaml(Path("mine.yaml"), Plan)
    assert (made.planner, made.stages[0].objective) == ("proportional", "sft")
    code, _, err = call(*arguments, "--planner", "proportional", "--export", "trl", "--export-to", "for-trl")
    assert code == 0, err
    assert any(Path("for-trl").iterdir())
    assert call(*arguments, "--objective", "ppo")[0] == 1
    assert not Path("runs").exists()


def test_a_plan_needs_rows_that_its_objective_can_be_trained_on(call: Call) -> None:
    checkpoint("now")
    arguments = ("plan", "now", write("a.jsonl", sums(6)), *FAST, "--planner", "proportional")
    code, out, err = call(*arguments, "--objective", "dpo", "--output", "mine.yaml")
    assert (code, out) == (1, "")
    assert "'chosen' in every training row, for --objective dpo, got none in 6 of 6 rows, the first at a.jsonl:1. " in err
    assert "choose another --objective (grpo, sft)" in err
    assert "measure, 6 items" not in err, "refused before anything is measured"
    assert not Path("mine.yaml").exists()
    assert call(*arguments, "--objective", "sft")[0] == 0, "an answer is imitated, too"


WRONG = {
    "a YAML and rows": (("measure", "run.yaml", "--eval", "a.jsonl"), "RUN.YAML alone, or MODEL with rows"),
    "a checkpoint alone": (("plan", "now"), "RUN.YAML, or MODEL with rows"),
    "an option of measuring": (("measure", "run.yaml", "--items", "3"), "a checkpoint with --items"),
    "an option of planning": (("plan", "run.yaml", "--steps", "3"), "MODEL TRAIN with --steps"),
    "a run with options": (("verdict", "--no-suite", "somewhere", "--sampled"), "a checkpoint with --greedy/--sampled"),
    "no AFTER": (("verdict", "--no-suite", "now", "--eval", "a.jsonl"), "AFTER, the checkpoint to compare with BEFORE"),
    "a model alone": (("verdict", "now"), "mixwright verdict BEFORE AFTER"),
    "rows alone to verdict": (("verdict", "a.jsonl"), "mixwright verdict BEFORE AFTER"),
    "rows alone to plan": (("plan", "a.jsonl"), "mixwright plan MODEL a.jsonl"),
    "a plan without settings to try": (("plan", "now", "a.jsonl", "--dry-run"), "RUN.YAML with --dry-run"),
    "rows before the model": (("plan", "a.jsonl", "now"), "mixwright plan MODEL a.jsonl"),
    "system without template": (
        ("measure", "now", "--eval", "a.jsonl", "--system", "x", "--no-chat-template"),
        "--system or --template with the chat template",
    ),
    "an empty adapter": (
        ("measure", "now", "--eval", "a.jsonl", "--adapter", ""),
        "expected the folder of an adapter, got no adapter_config.json",
    ),
    "columns that nobody knows": (
        ("measure", "now", "--eval", "odd.jsonl"),
        "Name it: --column prompt=COLUMN, or corpus.columns: {prompt: COLUMN} in run.yaml.",
    ),
    "a temperature of 0": (("measure", "now", "--eval", "a.jsonl", "--temperature", "0"), "For deterministic answers"),
    "a folder beside a printed plan": (("plan", "now", "a.jsonl", "--objective", "grpo", "--folder", "x"), "--output FILE"),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_does_not_go_together_is_refused_in_one_line(call: Call, name: str) -> None:
    arguments, told = WRONG[name]
    checkpoint("now")
    write("a.jsonl", sums(12))
    write("odd.jsonl", [{"first": "1+1=", "second": "2"}])
    Path("run.yaml").write_text("corpus: {train: a.jsonl}\n", encoding="utf-8")
    code, out, err = call(*arguments)
    assert (code, out) == (1, "")
    assert told in err
    assert err.splitlines()[-1].startswith("error: ")
    assert not Path("runs").exists()


def test_options_with_an_equals_sign_are_read_as_they_are_meant() -> None:
    assert parse_columns(["prompt=q", "answer=a=b", "level="]) == {"prompt": "q", "answer": "a=b", "level": ""}
    assert parse_graders(None) == (None, {})
    assert parse_graders(["numeric?tolerance=0.1", "gcd=numeric?tolerance=0.5"]) == (
        "numeric?tolerance=0.1",
        {"gcd": "numeric?tolerance=0.5"},
    )
    for wrong in (["exact", "numeric"], ["gcd="], ["=exact"], ["gcd=exact", "gcd=numeric"]):
        with pytest.raises(InputError):
            parse_graders(wrong)
    assert [Measuring(greedy=greedy).decoding for greedy in (None, False, True)] == ["greedy", "sampled", "greedy"]


def test_what_is_taken_without_items_is_what_the_help_says() -> None:
    taken = [cells * items_to_measure(cells) for cells in (1, 2, 4, 8)]
    assert taken == pytest.approx([800] * 4, rel=0.02)
    assert min(items_to_measure(cells) for cells in range(1, 60)) == pytest.approx(80, abs=2)
    assert "in verdict about 800 in all, at least 80 each" in help_of("measure", "items")
    assert f"about {USUAL_ITEMS} in all, at least {MIN_USUAL_CELL_ITEMS} each" in help_of("measure", "items")


def test_both_sides_are_measured_as_asked_and_the_manifest_says_how(call: Call) -> None:
    checkpoint("before", chat=True)
    checkpoint("after", 1, chat=True)
    rows = [{"frage": f"{n}+1=", "antwort": str(n + 1), "sorte": "sum"} for n in range(12)]
    columns = [part for pair in ("prompt=frage", "answer=antwort", "task=sorte") for part in ("--column", pair)]
    write("odd.jsonl", rows)
    asked = (*columns, "--grader", "sum=numeric", "--items", "4", "--temperature", "0.5", "--batch-size", "3", "--sampled")
    code, _, err = call(
        "verdict", "--no-suite", "before", "after", "--eval", "odd.jsonl", *asked, "--system", "add", *FAST, "--no-gate"
    )
    assert code == 0, err
    settings = manifest("runs/comparison").settings
    wanted = {
        "grader": "numeric",
        "items": 4,
        "samples": 2,
        "temperature": 0.5,
        "max_new_tokens": 4,
        "batch size": 3,
        "decoding": "sampled",
        "prompts": "chat template of the tokenizer with a system message of its own",
        "system message": "add",
    }
    assert {name: settings[name] for name in wanted} == wanted
    assert "system message" in RunFolder("runs/comparison").page.read_text(encoding="utf-8")


@pytest.mark.filterwarnings("ignore:.*is_gradient_checkpointing:FutureWarning")  # peft still reads the old name
def test_an_adapter_folder_is_put_on_the_model_that_it_names_or_on_before(call: Call) -> None:
    checkpoint("base")
    checkpoint("other", 1)
    write("a.jsonl", sums(12))
    asked = ("--eval", "a.jsonl", "--items", "4", *FAST)
    for named, before, base in (("base", "other", "base"), ("hub/that-is-not-here", "other", "other")):
        code, _, err = call("verdict", "--no-suite", before, adapter("lora", named), *asked, "--no-gate")
        assert code == 0, err
        assert manifest("runs/comparison").settings["model after"] == f"{base} + lora"
        assert f"model: {base} + lora" in err
    code, _, err = call("measure", "base", *asked, "--adapter", "lora", "--folder", "kept")
    assert code == 0, err
    assert manifest("kept").settings["adapter"] == "lora"


def test_where_nothing_was_right_the_grader_is_doubted_with_an_example(call: Call) -> None:
    checkpoint("before")
    checkpoint("after", 1)
    rows = [*sums(6), *({"task": "gold", "prompt": f"{n}=", "answer": f"ZZ{n}"} for n in range(6))]
    code, _, err = call(
        "verdict", "--no-suite", "before", "after", "--eval", write("a.jsonl", rows), "--grader", "exact", *FAST, "--no-gate"
    )
    assert code == 0, err
    assert "no answer of task 'gold' was right before or after" in err
    notes = read_list(RunFolder("runs/comparison").notes, Observation)
    (gold,) = [note for note in notes if note.check == "nothing right" and note.task == "gold"]
    assert (gold.count, gold.total, gold.severity) == (6, 6, "warning")
    assert gold.evidence[0]["answer"].startswith("ZZ")
    assert "check the grader (exact)" in gold.remedy
    cut = [note for note in notes if note.check == "cut"]
    assert [note.severity for note in cut] == ["warning", "warning"], "random models do not stop within 4 tokens"
    page = RunFolder("runs/comparison").page.read_text(encoding="utf-8")
    assert "No answer of task &#39;gold&#39; was right before or after" in page


def test_the_grader_is_what_the_answers_look_like_and_tasks_without_one_are_left_out(call: Call) -> None:
    prose = "This is a long story about a fox, a hen and a farmer who never met. It has a second sentence, number {}."
    rows = [{"task": "maths", "prompt": f"{n}?", "answer": f"it is {n}\n#### {n}"} for n in range(8)]
    rows += [{"task": "tales", "prompt": f"tell {n}", "completion": prose.format(n)} for n in range(8)]
    checkpoint("now")
    asked = ("--samples", "1", "--items", "4", "--folder", "kept")
    code, _, err = call("measure", "now", "--eval", write("a.jsonl", rows), *asked)
    assert code == 0, err
    assert "grader of maths: final_answer, 8 of 8 answers end in `#### answer`; change it with --grader NAME" in err
    assert "tales is not measured, nothing to grade" in err
    more = [{"task": "yes", "prompt": f"{n}>1?", "answer": "yes" if n > 1 else "no"} for n in range(9)]
    more += [{"task": "too", "prompt": f"{n}>2?", "answer": "yes" if n > 2 else "no"} for n in range(9)]
    _, _, told = call("measure", "now", "--eval", write("more.jsonl", [*more, *sums(9)]), *FAST)
    assert "grader of yes, too: final_answer, 18 of 18 answers are one of 2 texts; change it with --grader NAME" in told
    assert "grader of sum: final_answer, 9 of 9 answers are one number; change it with --grader NAME" in told
    assert "the context leaves 62 tokens behind the longest prompt" in err
    assert manifest("kept").settings["max_new_tokens"] == 64 - 2, "prompts of two characters"
    assert {row.task for row in read_measurements(RunFolder("kept").measurements("before"))} == {"maths"}
    code, _, err = call("measure", "now", "--eval", write("b.jsonl", rows[8:]), *asked[:4])
    assert code == 1
    assert "expected rows with answers that can be graded" in err


def test_a_person_gets_a_line_per_task_and_level_and_the_rest_when_asked(call: Call) -> None:
    checkpoint("now")
    rows = [{**row, "level": n % 2} for n, row in enumerate(sums(24))] + [{**row, "task": "other"} for row in sums(9)]
    asked = ("measure", "now", "--eval", write("a.jsonl", rows), *FAST)
    code, out, err = call(*asked)
    assert code == 0, err
    lines = [line.split() for line in out.splitlines() if line.startswith("  ")]
    assert lines.pop(0)[:2] == ["task", "level"]
    tasks = [(line[0], line[1]) for line in lines if line[0] == "sum"]
    assert (tasks, len(lines)) == ([("sum", "all"), ("sum", "0"), ("sum", "1")], 4)
    assert sorted(int(line[index]) for line in lines for index in range(len(line)) if line[index] in ("9", "12", "24")) == [
        9,
        12,
        12,
        24,
    ]
    numbers = json.loads(call(*asked, "--json")[1])["measurements"]
    chance = next(row for row in numbers if (row["task"], row["name"]) == ("other", "chance"))
    assert f"{chance['value']:.1%}" in next(line for line in lines if line[0] == "other")
    assert "mixwright verdict now YOUR_MODEL --eval a.jsonl" in out


def test_a_task_of_one_level_has_one_line() -> None:
    def measured(task: str, level: float | None, n: int) -> Measurement:
        return Measurement("competence", task, "greedy", 0.5, 0.4, 0.6, n, "share", level)

    one, two = [("ant", 3.0, 7), ("ant", None, 7)], [("bee", 1.0, 4), ("bee", 2.0, 5), ("bee", None, 9)]
    partly = [("cow", 1.0, 4), ("cow", None, 6)]  # two rows have no level
    shown = measured_lines("m", [measured(*each) for each in (*one, *two, *partly)])
    lines = [line.split() for line in shown if line.split()[:1] in (["ant"], ["bee"], ["cow"])]
    expected = [("ant", "3"), ("bee", "all"), ("bee", "1"), ("bee", "2"), ("cow", "all"), ("cow", "1")]
    assert [(line[0], line[1]) for line in lines] == expected


def test_prompts_that_leave_no_room_are_found_before_anything_is_measured(call: Call) -> None:
    rows = sums(12)
    rows[3]["prompt"] = "1+" * 40
    checkpoint("now")
    code, out, err = call("measure", "now", "--eval", write("a.jsonl", rows), "--samples", "1", "--json")
    assert code == 0, err
    assert (
        "warning: 1 of 12 rows are left out, because their prompts leave no room for an answer of 16 "
        "tokens in a context of 64" in err
    )
    assert "a.jsonl:4 of task 'sum' with 80 tokens" in err
    assert {row["n"] for row in json.loads(out)["measurements"] if row["name"] == "greedy"} == {11}
    longer = [{**row, "prompt": row["prompt"] * 20} for row in sums(12)]
    code, _, err = call("measure", "now", "--eval", write("b.jsonl", longer), "--folder", "kept")
    assert code == 1
    assert "got 12 of 12 " in err
    assert "b.jsonl:1 of task 'sum' with 80 tokens" in err
    assert "measure," not in err
    assert not Path("kept").exists()


def test_a_corpus_may_be_a_path_in_python(tmp_path: Path) -> None:
    from mixwright import api
    from mixwright.corpus import read_corpus

    path = write(str(tmp_path / "a.jsonl"), [{"prompt": f"{n}?", "answer": f"it is {n}\n#### {n}"} for n in range(9)])
    rows = read_corpus(path)
    assert (len(rows), {row.split for row in rows}) == (9, {"train"})
    measuring = api.Measuring(items=3, samples=1, max_new_tokens=3)
    found = api.measure(Learner(model().eval(), tokenizer(), "now"), path, measuring=measuring)
    assert {(row.task, row.n) for row in found if row.name == "greedy"} == {("all", 3)}
    assert api.plan_measured(path, found).stages[0].weights == {"all": 1.0}
