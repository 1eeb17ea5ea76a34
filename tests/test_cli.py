"""The command line: flags, exit codes, what goes to stdout, and wrong inputs told in one line."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path

import pytest
from answer_rows import write_measured
from cli_call import Call, load_commands, sums, write

from mixwright.config import CorpusConfig, RunConfig, TrainConfig
from mixwright.errors import InputError
from mixwright.records import Measurement
from mixwright.run.folder import RunFolder, answers_file, read_plan, read_yaml, write_plan
from mixwright.run.opening import open_run_folder
from mixwright.verbs.help import ASK_SERVERS, GROUPS, MATTER_MOST, SERVER_OPTIONS, VERBS_BY_HEADING

MEASURING = (
    "--adapter --batch-size --budget --chat-template --column --engine --eval --grader --greedy --items "
    "--max-new-tokens --parallel --samples --served-model --system --task --temperature --template"
)
"""How a checkpoint is measured without a YAML."""


def flags(words: str, own: str, shared: str = MEASURING) -> str:
    return " ".join([words, *sorted([*own.split(), *shared.split()])])


FLAGS = {
    "audit": "TRAIN --check --column --context --cue --eval --fail-on --fix --full --grader --json --mask --out --task",
    "measure": flags(
        "MODEL|URL|LOG|RUN.YAML", "--cluster --folder --fresh --full --gpus-per-worker --json --start --suite-seed"
    ),
    "plan": flags(
        "MODEL|RUN.YAML TRAIN",
        "--batch --dry-run --export --export-to --folder --json --keep --minutes --objective --only-replay --output"
        " --planner --replay --share --steps",
    ),
    "verdict": flags(
        "BEFORE|RUN AFTER",
        "--baseline --bless --cannot-tell --each --example --folder --full --gate --json --judge"
        " --judge-labels --judge-model --judge-rubric --judge-sample --junit --log-to --margin --markdown"
        " --max-items --protect --protect-behaviour --repeat --same --suite --suite-seed --trained-on --until-decided --why",
    ),
    "review": "RUN... --full --json",
    "run": "RUN.YAML|TRAIN --budget --cluster --data --dry-run --engine --eval --folder --gpus-per-worker --init --json "
    "--model --objective --only --output",
    "rewards": "FUNCTIONS --column --completion --eval --fail-on --full --items --json --weight",
    "diagnose": "ROLLOUTS --fail-on --follow --full --json --log-to",
    "init": "FOLDER --json",
    "preview": "TRAIN --column --config --fail-on --full --json --max-length --model --rows --template",
    "mine": "RUN.YAML --budget --cluster --engine --export-to --folder --gpus-per-worker --json --keep --miner --try",
    "list": "KIND --json",
    "explain": "NAME --json --run",
    "schema": "KIND --json",
    "dial": flags("BASE TUNED", "--alpha --max-loss --json --keep"),
    "replicates": "RUN|SCORES --json --target",
    "scan": "RUN.YAML --cluster --columns --engine --folder --gpus-per-worker --json --sample",
}
"""Frozen on purpose: scripts depend on them. A change here is a line in the CHANGELOG."""


def test_the_flags_are_frozen() -> None:
    found = {}
    for name, verb in load_commands().items():
        options = [p for p in verb.params if p.param_type_name == "option" and p.name != "help"]
        words = [p.metavar or p.name.upper() for p in verb.params if p.param_type_name == "argument"]
        found[name] = " ".join([*words, *sorted(option.opts[0] for option in options)])
    assert found == FLAGS
    assert list(found) == list(FLAGS), "the verbs come in the order of the help"


HEAVY = ("torch", "transformers", "trl", "datasets", "scipy", "pandas", "matplotlib", "pyarrow", "numpy", "reasoning_gym")
"""What `--help`, `list` and `explain` need nothing of; with any of them they would take more than half a second."""


@pytest.mark.parametrize("arguments", [["--help"], ["list"], ["explain", "difficulty"]])
def test_help_list_and_explain_import_nothing_heavy(arguments: list[str]) -> None:
    command = [sys.executable, "-X", "importtime", "-m", "mixwright", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout
    imported = {line.rpartition("|")[2].strip() for line in done.stderr.splitlines() if line.startswith("import time:")}
    assert "mixwright" in imported
    assert imported.isdisjoint(HEAVY)


def test_the_example_is_a_report_without_torch(tmp_path: Path) -> None:
    code = "import sys; from mixwright.__main__ import app; app(['verdict', '--example'], standalone_mode=False)"
    code += "; assert 'torch' not in sys.modules"
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert done.stdout.startswith("DO NOT SHIP tuned.jsonl")
    assert "58 of the 58 lost answers" in done.stdout
    assert "none of the causes" not in done.stdout, "the format explains all of them"
    assert (tmp_path / "runs" / "example" / "verdict.html").is_file()


def test_example_files_go_into_a_new_folder_and_nowhere_else(call: Call) -> None:
    code, out, _ = call("init", "files")
    assert (code, "Next: mixwright verdict files/before.jsonl files/tuned.jsonl" in out) == (0, True)
    assert call("audit", "files/train.jsonl", "--eval", "files/eval.jsonl", "--fail-on", "error")[0] == 0
    assert call("init", "files")[:2] == (code, out), "they are there already"
    Path("files/train.jsonl").write_text("mine", encoding="utf-8")
    code, _, err = call("init", "files")
    assert (code, "a new or empty folder" in err) == (1, True)


def test_usage_errors_are_the_users(call: Call) -> None:
    for arguments in (
        ["no-such-verb"],
        ["audit"],
        ["audit", "x.jsonl", "--no-such-flag"],
        ["verdict", "x", "y", "--items", "z"],
    ):
        code, out, err = call(*arguments)
        assert (code, out) == (1, ""), arguments
        assert err


def test_a_bug_of_ours_is_exit_code_2_with_its_traceback(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mixwright.verbs.audit.run_audit", lambda *_, **__: 1 / 0)
    code, out, err = call("audit", write("a.jsonl", sums()))
    assert (code, out) == (2, "")
    assert "ZeroDivisionError" in err
    assert err.rstrip().endswith("with the lines above.")


def test_audit_prints_observations_and_nothing_else(call: Call) -> None:
    code, out, _ = call("audit", write("train.jsonl", sums()), "--eval", write("eval.jsonl", sums(10, 35)), "--json")
    found = json.loads(out)
    assert code == 0
    assert list(found) == ["observations"]
    assert {"check", "task", "severity", "count", "total", "message", "remedy"} <= set(found["observations"][0])
    leaks = [o for o in found["observations"] if o["severity"] == "error" and o["check"] == "contamination"]
    assert [o["count"] for o in leaks] == [5]


def test_control_characters_of_the_data_do_not_reach_the_terminal(call: Call) -> None:
    rows = [{"task": "evil\x1b[31m[red]", "prompt": f"{n}", "completion": ""} for n in range(9)]
    rows += [{"task": "other", "prompt": f"What of {n}?", "completion": "All of it."} for n in range(9)]
    code, out, _ = call("audit", write("evil.jsonl", rows), "--full")
    assert code == 0
    assert "\x1b" not in out
    assert "[red]" in out


def test_list_and_explain_know_every_kind(call: Call) -> None:
    entries = json.loads(call("list", "--json")[1])
    assert {"checks", "probes", "planners", "selectors", "gates", "arms", "sections"} <= {entry["kind"] for entry in entries}
    code, out, _ = call("explain", "difficulty")
    assert code == 0
    assert out.index("planners.difficulty") < out.index("selectors.difficulty")
    assert "Blind spot:" in out
    code, _, err = call("explain", "difficulti")
    assert code == 1
    assert "difficulty" in err


def test_list_names_kinds_without_plugins_and_explain_lists_some_for_a_far_name(call: Call) -> None:
    from mixwright.catalog import KIND_BY_NAME, listing

    lines = call("list")[1].splitlines()
    assert [line.split()[0] for line in lines if not line.startswith(" ")] == list(KIND_BY_NAME)
    assert [line for line in lines if "none yet" in line] == [f"{k}  (none yet)" for k in KIND_BY_NAME if not listing(k)]
    _, _, err = call("explain", "qqqqqq")
    assert "Some of them: " in err
    assert "Nearest" not in err


def test_the_version(call: Call) -> None:
    assert call("--version") == (0, f"mixwright {version('mixwright')}\n", "")
    assert "--version" in call("--help")[1]
    assert "audit TRAIN, verdict BEFORE AFTER" in " ".join(call("--help")[1].split())


def test_help_shows_what_most_people_need_first_and_every_verb_once_under_a_heading(call: Call) -> None:
    headings: dict[str, list[str]] = {}
    for line in call("--help")[1].splitlines():
        if line.endswith(":") and not line.startswith(" "):
            headings[line[:-1]] = []
        elif headings and line.startswith("  "):
            headings[list(headings)[-1]].append(line.split()[0])
    del headings["Options"]
    assert headings.pop("Extras") == ["dial", "replicates", "scan"]
    assert headings == {heading: list(names) for heading, names in VERBS_BY_HEADING.items()}


def test_the_help_of_a_verb_begins_with_what_matters_most_and_names_every_option_once(call: Call) -> None:
    of_groups = [option for words in GROUPS.values() for option in words.split()]
    assert len(of_groups) == len(set(of_groups))
    for name, verb in load_commands().items():
        out = call(name, "--help")[1]
        options = [parameter.opts[0] for parameter in verb.params if parameter.param_type_name == "option"]
        shown = [line.split()[0] for line in out.splitlines() if line.startswith("  --")]
        refused = () if name in ASK_SERVERS else SERVER_OPTIONS
        assert sorted(shown) == sorted({*options, "--help"} - {*refused}), name
        assert not set(MATTER_MOST.get(name, ())) - set(options), name
        if name in MATTER_MOST:
            assert set(shown[: len(MATTER_MOST[name])]) == set(MATTER_MOST[name])


def test_wrong_data_is_told_in_one_line_and_leaves_nothing(call: Call) -> None:
    Path("bad.jsonl").write_text('{"prompt": "1+1=", "answer": "2"}\n\n{"prompt": "1+1"\n', encoding="utf-8")
    Path("run.yaml").write_text("corpus: {train: bad.jsonl}\ntrain: {steps: 2}\n", encoding="utf-8")
    for arguments in (["run", "run.yaml"], ["run", "run.yaml", "--dry-run"], ["measure", "run.yaml"]):
        code, out, err = call(*arguments)
        assert (code, out) == (1, ""), err
        assert err.startswith("error: bad.jsonl, line 3: ")
        assert err.count("\n") == 1
        assert sorted(path.name for path in Path().iterdir()) == ["bad.jsonl", "run.yaml"]


def test_plan_and_steer_rehearse_without_a_model(call: Call) -> None:
    write("a.jsonl", sums())
    Path("run.yaml").write_text("corpus: {train: a.jsonl, eval_share: 0.25}\ntrain: {steps: 5}\n", encoding="utf-8")
    assert "mixwright measure" in call("plan", "run.yaml")[2]
    rows = [
        Measurement("competence", "sum", name, 0.4, 0.3, 0.5, 64, "share", null=0.1, null_of="luck")
        for name in ("pass@1", "greedy")
    ]
    run = RunFolder("runs/run")
    write_measured(run.measurements("before"), rows)
    code, out, _ = call("plan", "run.yaml", "--dry-run")
    assert (code, run.plan.exists()) == (0, False)
    assert out.startswith("Train on your rows alone: 5 steps of GRPO")
    assert call("plan", "run.yaml")[0] == 0
    plan = read_plan(run.plan)
    write_plan(run.plan, replace(plan, stages=(replace(plan.stages[0], weights={"summ": 1.0}),)))
    code, _, err = call("run", "run.yaml", "--only", "steer", "--dry-run")
    assert code == 1
    assert "summ" in err
    assert err.count("\n") == 1


def test_other_settings_need_another_folder_once_something_rests_on_them(tmp_path: Path) -> None:
    source = write(str(tmp_path / "a.jsonl"), sums())
    run = RunFolder(tmp_path / "run")

    def begin(steps: int) -> None:
        with open_run_folder(RunConfig(CorpusConfig(source), train=TrainConfig(steps=steps)), run):
            assert read_yaml(run.path / "run.yaml", RunConfig).train.steps == steps

    begin(5)
    begin(6)  # nothing was finished, so corrected settings go on in the same folder
    run.plan.touch()
    begin(6)
    with pytest.raises(InputError, match=r"another train \(steps\).*plan.yaml was made with the old one"):
        begin(7)


def test_a_stage_whose_forerunner_did_not_run_leaves_no_folder(call: Call) -> None:
    write("a.jsonl", sums())
    Path("run.yaml").write_text("corpus: {train: a.jsonl}\n", encoding="utf-8")
    only = {name: ("run", "run.yaml", "--only", name) for name in ("steer", "trial")}
    for command, needed in ((("plan", "run.yaml"), "measure"), (only["steer"], "plan"), (only["trial"], "plan")):
        code, _, err = call(*command)
        assert code == 1
        assert f"Run `mixwright {needed}` first." in err
        assert not Path("runs").exists()


def test_a_comparison_is_never_written_over_a_run(call: Call) -> None:
    write("a.jsonl", sums())
    for made in ("corpus", "bases", "plan.yaml"):
        inside = Path("run") / made
        inside.parent.mkdir(exist_ok=True)
        inside.touch() if inside.suffix else inside.mkdir()
        code, _, err = call("verdict", "--no-suite", "before", "after", "--eval", "a.jsonl", "--folder", "run")
        assert code == 1
        assert f"run: expected a new folder, or that of an earlier comparison, got a run, which has {made}" in err
        inside.unlink() if inside.suffix else inside.rmdir()


def test_a_verdict_passes_closes_or_is_inconclusive(call: Call, tmp_path: Path) -> None:
    from _example_run import build_pair, item_rows

    build_pair(tmp_path / "run")
    assert call("verdict", "--no-suite", "run", "--protect", "products@1")[0] == 3
    assert call("verdict", "--no-suite", "run", "--protect", "chain_sum@1")[0] == 4
    assert call("verdict", "--no-suite", "run", "--protect", "chain_sum@1", "--cannot-tell", "warn")[0] == 0
    code, _, err = call("verdict", "--no-suite", "run")
    assert code == 4, "asked again without options, the gate is asked what it was asked"
    assert "gate.json" in err
    Path("run/gate.json").unlink()
    code, out, _ = call("verdict", "--no-suite", "run", "--gate")
    assert code == 3, "nobody named what matters, and a cell is shown to be damaged"
    assert "products level 1" in out
    assert call("verdict", "--no-suite", "run", "--no-gate")[0] == 0
    assert call("verdict", "--no-suite", "run", "--protect", "chain")[0] == 1
    assert call("verdict", "--no-suite", "run", "--cannot-tell", "pass")[0] == 1
    assert call("verdict", "--no-suite", "nowhere")[0] == 1
    names = ("greedy", "pass@1", "greedy.swapped", "pass@1.swapped", "chance")
    rows = item_rows(("add", None), {name: [float("." not in name and name != "chance")] * 1000 for name in names})
    for name in ("before", "after"):
        write_measured(RunFolder("good").measurements(name), rows)
    assert call("verdict", "--no-suite", "good", "--markdown", "note.md", "--junit", "junit.xml")[0] == 0
    assert Path("note.md").is_file()
    assert Path("junit.xml").is_file()
    for options in (("--markdown", ""), ("--junit", "good/gate.json"), ("--markdown", "good/verdict.html")):
        assert call("verdict", "--no-suite", "good", *options)[0] == 1, options
    assert call("verdict", "--no-suite", "good", "--each")[0] == 0


def test_a_folder_of_an_earlier_version_is_refused_with_the_reason(call: Call, tmp_path: Path) -> None:
    from _example_run import item_rows

    rows = item_rows(("add", None), {"greedy": [1.0] * 9, "pass@1": [0.5] * 9})
    for name in ("before", "after"):
        path = tmp_path / "old" / "trial" / "steered-0" / f"{name}.parquet"
        write_measured(path, rows)
        answers_file(path).unlink()
    code, _, err = call("verdict", "--no-suite", "old")
    assert code == 1
    assert "before.answers.parquet" in err
    assert err.rstrip().endswith("Measure again, in a new folder.")
    assert "Traceback" not in err
