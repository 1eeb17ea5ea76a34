"""The GitHub action and the pre-commit hooks: their shell steps with programs that write down how they were called."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml
from cli_call import Call, write
from test_direct import checkpoint

ROOT = Path(__file__).parent.parent
ACTION = yaml.safe_load((ROOT / "action.yml").read_text(encoding="utf-8"))
HOOKS = {hook["id"]: hook for hook in yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text(encoding="utf-8"))}
RECORD = '#!/bin/bash\nprintf \'%s\\n\' "$@" >> "$0.called"\necho >> "$0.called"\n'


def run_step(
    name: str, folder: Path, programs: dict[str, str], **variables: str
) -> tuple[int, str, dict[str, list[list[str]]]]:
    """Exit code, output, and program -> its calls, of a step."""
    step = next(step for step in ACTION["runs"]["steps"] if step.get("name") == name)
    bin_folder = folder / "bin"
    bin_folder.mkdir(exist_ok=True)
    for program, then in programs.items():
        (bin_folder / program).write_text(RECORD + then, encoding="utf-8")
        (bin_folder / program).chmod(0o755)
    given = {"GITHUB_STEP_SUMMARY": "summary.md", "GITHUB_OUTPUT": "outputs", "GITHUB_REPOSITORY": "own/model"}
    environment = {"PATH": f"{bin_folder}:{os.environ['PATH']}"} | given | dict.fromkeys(step["env"], "") | variables
    command = ["bash", "--noprofile", "--norc", "-e", "-o", "pipefail", "-c", step["run"]]
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    calls = {}
    for program in programs:
        called = bin_folder / f"{program}.called"
        calls[program] = (
            [one.split("\n") for one in called.read_text().strip("\n").split("\n\n")] if called.is_file() else []
        )
    return done.returncode, done.stdout + done.stderr, calls


def verdict(folder: Path, code: int, **variables: str) -> tuple[int, list[str], str]:
    then = f"echo '### answer' > mixwright-verdict.md\nexit {code}\n"
    end, _, calls = run_step("Verdict", folder, {"mixwright": then}, BEFORE="a b", AFTER="$(touch hacked)", **variables)
    written = folder / "outputs"
    return end, calls["mixwright"][0], written.read_text(encoding="utf-8") if written.is_file() else ""


@pytest.mark.parametrize(("code", "outcome"), [(0, "passed"), (3, "damaged"), (4, "inconclusive")])
def test_a_verdict_is_summary_and_outcome_whatever_it_says(code: int, outcome: str, tmp_path: Path) -> None:
    more = {"PROTECT": "sums\nold tasks\n", "MARGIN": "10", "OPTIONS": "--greedy\n--samples\n0"}
    end, called, outputs = verdict(tmp_path, code, **more)
    assert (end, outputs) == (0, f"outcome={outcome}\n")
    assert called[:3] == ["verdict", "a b", "$(touch hacked)"]
    assert called[-9:] == ["--margin", "10", "--protect", "sums", "--protect", "old tasks", "--greedy", "--samples", "0"]
    assert "--eval" not in called
    assert (tmp_path / "summary.md").read_text() == "### answer\n"
    assert not (tmp_path / "hacked").exists()


@pytest.mark.parametrize("code", [1, 2])
def test_a_verdict_that_could_not_be_made_fails_the_job(code: int, tmp_path: Path) -> None:
    end, _, outputs = verdict(tmp_path, code, EVAL="eval.jsonl")
    assert (end, outputs) == (code, "")


@pytest.mark.parametrize(
    ("outcome", "inconclusive", "code"),
    [
        ("passed", "warn", 0),
        ("damaged", "warn", 3),
        ("inconclusive", "warn", 0),
        ("inconclusive", "fail", 4),
        ("", "warn", 3),
    ],
)
def test_the_gate_fails_for_damage_and_warns_where_it_cannot_tell(
    outcome: str, inconclusive: str, code: int, tmp_path: Path
) -> None:
    end, out, _ = run_step("Gate", tmp_path, {}, OUTCOME=outcome, INCONCLUSIVE=inconclusive)
    assert end == code
    assert ("::warning::" in out) == (outcome == "inconclusive")


@pytest.mark.parametrize("known", ["", "12\n34"])
def test_one_comment_is_written_and_then_kept_up_to_date(known: str, tmp_path: Path) -> None:
    (tmp_path / "mixwright-verdict.md").write_text("### answer\n", encoding="utf-8")
    then = f"[[ $* != *--paginate* ]] || printf '{known}'\n"
    end, out, calls = run_step("Comment", tmp_path, {"gh": then}, NUMBER="7")
    assert (end, out) == (0, "")
    target = "repos/own/model/issues/comments/12" if known else "repos/own/model/issues/7/comments"
    assert target in calls["gh"][1]
    assert ("PATCH" in calls["gh"][1]) == bool(known)
    assert (tmp_path / "mixwright-comment.md").read_text() == "<!-- mixwright verdict -->\n### answer\n"


def test_a_comment_that_is_not_allowed_warns(tmp_path: Path) -> None:
    (tmp_path / "mixwright-verdict.md").write_text("### answer\n", encoding="utf-8")
    end, out, _ = run_step("Comment", tmp_path, {"gh": "exit 1\n"}, NUMBER="7")
    assert end == 0
    assert "::warning::" in out


def test_inputs_reach_a_step_as_variables_alone() -> None:
    """An expression inside a script would run whatever a branch's name says."""
    scripts = [step["run"] for step in ACTION["runs"]["steps"] if "run" in step]
    assert len(scripts) >= 4
    assert not any("${{" in script for script in scripts)


def test_the_audit_hook_fails_on_an_error_of_a_changed_file(call: Call) -> None:
    entry = HOOKS["mixwright-audit"]["entry"].split()
    assert entry.pop(0) == "mixwright"
    rows: list[Any] = [{"prompt": f"say {n}", "completion": str(n)} for n in range(9)]
    leaked = write("eval.jsonl", [{"prompt": "say 1", "answer": "1"}])
    assert call(*entry, "--eval", leaked, write("train.jsonl", rows))[0] == 3
    assert call(*entry, write("sound.jsonl", [{"prompt": f"word {n} of", "completion": f"a{n}"} for n in range(9)]))[0] == 0


def test_the_preview_hook_names_its_file_and_model_itself(call: Call) -> None:
    hook = HOOKS["mixwright-preview"]
    assert hook["pass_filenames"] is False
    checkpoint("model", chat=True)
    entry = hook["entry"].split()[1:]
    rows = [{"prompt": f"say {n}", "completion": str(n)} for n in range(9)]
    assert call(*entry, write("train.jsonl", rows), "--model", "model")[0] in (0, 3)
