"""What the system refuses (a full disk, a limit, a long name, a cut file) is told in one line, and nothing is lost by it."""

from __future__ import annotations

import errno
import os
import resource
import subprocess
import sys
from pathlib import Path

import forked
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml
from cli_call import Call, sums, write
from test_pipeline import EDITS, made_up_rows
from trainers_tiny import model, tokenizer

import mixwright as mixwright_package
from mixwright.__main__ import main
from mixwright.errors import InputError
from mixwright.run.folder import write_text

LONG = "x" * 300
COMMANDS = (
    ("audit", LONG),
    ("audit", "a.jsonl", "--eval", LONG),
    ("measure", f"{LONG}.yaml"),
    ("plan", f"{LONG}.yaml"),
    ("run", f"{LONG}.yaml", "--only", "steer"),
    ("run", f"{LONG}.yaml", "--only", "trial"),
    ("run", f"{LONG}.yaml"),
    ("run", "run.yaml", "--folder", LONG),
    ("run", "--init", LONG),
    ("run", "--init", "a.jsonl", "--output", LONG),
    ("verdict", "--no-suite", LONG),
    ("verdict", "--no-suite", LONG, LONG, "--eval", "a.jsonl"),
    ("verdict", "--no-suite", "before", "after", "--eval", LONG),
)


@pytest.mark.parametrize("arguments", COMMANDS, ids=lambda arguments: " ".join(arguments).replace(LONG, "LONG"))
def test_a_name_that_is_too_long_is_the_users_in_every_command(arguments: tuple[str, ...], call: Call) -> None:
    write("a.jsonl", sums())
    if "run.yaml" in arguments:
        Path("run.yaml").write_text("corpus: {train: a.jsonl}\n", encoding="utf-8")
    code, out, err = call(*arguments)
    assert (code, out) == (1, "")
    assert "File name too long" in err
    lines = err.splitlines()  # what was chosen for the user may stand before
    assert [line for line in lines if line.startswith("error: ")] == lines[-1:]


def mixwright(*arguments: str, stdout: int | None = subprocess.DEVNULL, stderr: int = subprocess.PIPE) -> tuple[int, str]:
    """A command in a process of its own: exit code and stderr."""
    command = [sys.executable, "-m", "mixwright", *arguments]
    path = os.pathsep.join([str(Path(__file__).parents[1]), os.environ.get("PYTHONPATH", "")])
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}  # as a user has it
    done = subprocess.run(command, stdout=stdout, stderr=stderr, text=True, env={**environment, "PYTHONPATH": path})
    return done.returncode, done.stderr


def limited(*arguments: str, limit: int | None = None) -> tuple[int, str]:
    """A command in a copy of this process, whose files may have at most `limit` bytes: exit code and stderr."""

    def body() -> None:
        if limit:
            resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
        main(arguments)

    ended = forked.run(body)
    return ended.code, ended.err


@pytest.mark.slow
def test_a_run_that_could_not_write_goes_on_to_the_same_result(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write("two.jsonl", made_up_rows())
    graders = {"morse": "exact", "first": "exact"}
    small = {**EDITS, "trial": {**EDITS["trial"], "arms": ["uniform"]}, "corpus": {"train": "two.jsonl", "graders": graders}}
    Path("run.yaml").write_text(yaml.safe_dump(small), encoding="utf-8")
    assert limited("run", "run.yaml", "--folder", "whole")[0] == 0
    refused = []
    for limit in (2_000, 40_000):  # the corpus, the first model
        code, err = limited("run", "run.yaml", "--folder", "torn", limit=limit)
        assert code == 1, err
        assert "Traceback" not in err
        refused.append(err.splitlines()[-1])
        assert not [path for path in Path("torn").rglob(".*") if path.name != ".lock"], "nothing half-written stays"
    assert "torn/corpus/rows.parquet: expected a file within the size limit" in refused[0]
    assert "base-0" in refused[1]
    assert "ulimit -f" in refused[1]
    assert limited("run", "run.yaml", "--folder", "torn")[0] == 0
    code, err = limited("verdict", "--no-suite", "torn", limit=20_000)
    assert code == 1, err
    assert err.startswith("error: torn/verdict.json: expected a file within")
    assert Path("torn/trial/result.json").read_bytes() == Path("whole/trial/result.json").read_bytes()


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no device that is always full")
@pytest.mark.parametrize("arguments", [("list",), ("list", "--json"), ("audit", "a.jsonl", "--json")])
def test_an_output_that_cannot_be_written_is_no_bug(
    arguments: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    write("a.jsonl", sums())
    with Path("/dev/full").open("w") as full:
        code, err = mixwright(*arguments, stdout=full.fileno())
    assert code == 1
    assert err.startswith("error: standard output: expected space")
    assert err.count("\n") == 1


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no device that is always full")
def test_a_standard_error_that_cannot_be_written_changes_no_exit_code(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Progress goes there: a gate whose progress nobody reads still fails."""
    monkeypatch.chdir(tmp_path)
    logs = [str(Path(mixwright_package.__file__).parent / "example" / name) for name in ("before.jsonl", "tuned.jsonl")]
    with Path("/dev/full").open("w") as full:
        code, _ = mixwright("verdict", *logs, stderr=full.fileno())
    assert code == 3


def test_a_loop_of_links_is_no_bug(call: Call) -> None:
    Path("loop").symlink_to("loop")
    code, _, err = call("verdict", "loop", "loop", "--no-suite", "--eval", "e.jsonl")
    assert (code, "loop of symbolic links" in err) == (1, True), err


def test_a_reader_that_has_seen_enough_is_no_bug(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    reading, writing = os.pipe()
    os.close(reading)
    try:
        code, err = mixwright("list", "--json", stdout=writing)
    finally:
        os.close(writing)
    assert (code, err) == (0, "")


STDOUTS = {
    "UTF-8": {"PYTHONIOENCODING": "utf-8"},
    "ASCII": {"PYTHONIOENCODING": "ascii"},
    "Latin-1": {"PYTHONIOENCODING": "latin-1"},
    "C locale": {"LC_ALL": "C", "PYTHONCOERCECLOCALE": "0", "PYTHONUTF8": "0"},
    "closed": {},
}


@pytest.mark.parametrize("kind", STDOUTS)
def test_a_gate_has_its_exit_code_whatever_stdout_can_encode(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """60 of 60 right before and none after: 3, with every line on a stdout that is there."""
    monkeypatch.chdir(tmp_path)
    for name, right in (("before.jsonl", True), ("after.jsonl", False)):
        text = "größe" if right else "naïve — 大"
        row = {"task": "größe", "answer": "größe", "completion": text, "score": int(right)}
        write(name, [row | {"id": str(n), "prompt": f"Wie groß ist {n}?"} for n in range(60)])
    names = {name for settings in STDOUTS.values() for name in settings}
    environment = {name: value for name, value in os.environ.items() if name not in names}
    path = os.pathsep.join([str(Path(__file__).parents[1]), os.environ.get("PYTHONPATH", "")])
    done = subprocess.run(
        [sys.executable, "-m", "mixwright", "verdict", "before.jsonl", "after.jsonl", "--gate"],
        capture_output=True,
        env={**environment, **STDOUTS[kind], "PYTHONPATH": path},
        preexec_fn=(lambda: os.close(1)) if kind == "closed" else None,
    )
    assert done.returncode == 3, done.stderr[-500:]
    assert b"Traceback" not in done.stderr
    if kind != "closed":
        encoding = "latin-1" if kind == "Latin-1" else "utf-8" if kind == "UTF-8" else "ascii"
        shown = "größe".encode(encoding, "backslashreplace")
        assert shown in done.stdout
        assert b"Page: " in done.stdout, "the last line"


def test_an_old_file_stays_when_the_new_one_cannot_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "plan.yaml"
    write_text(path, "old")

    def full(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(Path, "write_text", full)
    with pytest.raises(InputError, match=r"plan.yaml: expected space.*intact.*Free some space"):
        write_text(path, "new")
    assert [file.name for file in tmp_path.iterdir()] == ["plan.yaml"]
    assert path.read_bytes() == b"old"


def test_what_libraries_say_of_a_full_disk_is_understood() -> None:
    from mixwright.errors import disk_full_error, system_error

    outer = RuntimeError("could not save")
    outer.__cause__ = OSError(errno.EFBIG, "File too large")
    assert "ulimit -f" in str(disk_full_error(outer))
    assert "Free some space" in str(
        disk_full_error(RuntimeError("[enforce fail] . PytorchStreamWriter failed writing file: file write failed"))
    )
    assert "ulimit" in str(disk_full_error(Exception("I/O error: File too large (os error 27)"), "model"))
    assert disk_full_error(ValueError("shape mismatch")) is None
    outer.__cause__ = inner = ValueError("a chain that leads back")
    inner.__cause__ = outer
    assert disk_full_error(outer) is None
    assert str(system_error(OSError(errno.EROFS, "Read-only file system", "a.json"))).startswith(
        "a.json: expected a writable file system"
    )
    nowhere = FileNotFoundError(errno.ENOENT, "No usable temporary directory found in ['/a', '/b']")
    assert "TMPDIR" in str(system_error(nowhere))


def test_a_checkpoint_that_was_cut_short_is_told_with_its_file(tmp_path: Path, call: Call) -> None:
    whole, cut = tmp_path / "whole", tmp_path / "cut"
    for folder in (whole, cut):
        model().save_pretrained(folder)
        tokenizer().save_pretrained(folder)
    os.truncate(cut / "model.safetensors", 5000)
    write("a.jsonl", sums())
    code, _, err = call("verdict", "--no-suite", str(whole), str(cut), "--eval", "a.jsonl")
    assert code == 1
    assert "cut" in err
    assert "safetensors" in err
    assert "Traceback" not in err


def test_texts_of_a_table_that_are_no_utf8_are_told(call: Call) -> None:
    broken = pa.StringArray.from_buffers(2, pa.array([0, 2, 4], pa.int32()).buffers()[1], pa.py_buffer(b"ok\xff\xfe"))
    pq.write_table(pa.table({"prompt": broken, "answer": pa.array(["1", "2"])}), "a.parquet")
    for arguments in (("audit", "a.parquet"), ("run", "--init", "a.parquet")):
        code, _, err = call(*arguments)
        assert code == 1
        assert "a.parquet: expected a Parquet file with values that Python can represent" in err
