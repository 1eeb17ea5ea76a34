"""Rollouts of RL runs: read in the forms of several trainers, and what is wrong with them is found, and only that."""

from __future__ import annotations

import gzip
import json
import random
import sqlite3
import time
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from cli_call import Call

from mixwright.errors import InputError
from mixwright.logs.diagnosis import diagnose, summarise
from mixwright.logs.rollouts import RolloutLog, read_rollouts

pytestmark = pytest.mark.filterwarnings("ignore:.*gradient_checkpointing.*:FutureWarning")  # TRL sets the older name
STEPS, PROMPTS, SIZE = 30, 4, 4


def rows(**changed: Any) -> Iterator[dict[str, Any]]:
    """A healthy run in plain form: two tasks, rewards that differ within groups and rise slowly."""
    rng = random.Random(3)
    for step in range(1, STEPS + 1):
        for number in range(PROMPTS):
            task = "sums" if number % 2 else "letters"
            for sample in range(SIZE):
                right = sample == 0 or (sample > 1 and rng.random() < step / STEPS)
                row = {
                    "step": step,
                    "task": task,
                    "prompt": f"{task} {step} {number}",
                    "completion": f"it is {rng.randrange(10**6)}",
                    "reward": float(right),
                }
                yield row | {name: value(row) if callable(value) else value for name, value in changed.items()}


def write(path: Path, made: Iterator[dict[str, Any]] | list[dict[str, Any]]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in made), encoding="utf-8")
    return path


def found(path: Path) -> dict[str, str]:
    return {seen.check: seen.severity for seen in diagnose(read_rollouts(str(path)))}


def test_a_healthy_run_has_no_finding(tmp_path: Path) -> None:
    assert found(write(tmp_path / "a.jsonl", rows())) == {}


def after(step: int, value: Any) -> Any:
    return lambda row: value if row["step"] > step else row["reward"]


@pytest.mark.parametrize(
    ("changed", "check", "severity"),
    [
        ({"reward": lambda row: 0.0 if row["step"] % 10 else row["reward"]}, "hard groups", "error"),
        ({"reward": lambda row: 1.0 if row["step"] % 3 else row["reward"]}, "groups", "warning"),
        ({"reward": lambda row: 0.0 if row["task"] == "sums" and row["step"] > 3 else row["reward"]}, "starved", "warning"),
        ({"reward": after(20, 0.0)}, "collapse", "error"),
        ({"reward": lambda row: None if row["step"] == 7 else row["reward"]}, "unscored", "warning"),
        ({"completion": "the same"}, "same", "warning"),
        ({"completion": lambda row: "" if row["step"] > 25 else row["completion"]}, "empty", "warning"),
        ({"completion": "go on and " * 40}, "loops", "warning"),
        ({"cut": lambda row: row["step"] > 20}, "cut", "warning"),
    ],
)
def test_what_is_wrong_is_found(changed: dict[str, Any], check: str, severity: str, tmp_path: Path) -> None:
    assert found(write(tmp_path / "a.jsonl", rows(**changed)))[check] == severity


def test_a_collapse_is_dated_in_each_task(tmp_path: Path) -> None:
    seen = [
        one
        for one in diagnose(read_rollouts(str(write(tmp_path / "a.jsonl", rows(reward=after(20, 0.0))))))
        if one.check == "collapse"
    ]
    assert sorted(str(one.task) for one in seen) == ["letters", "sums"]
    assert all("began after step 20" in one.message for one in seen)


def dead(groups: int, silent: int, task: str = "sums") -> Iterator[dict[str, Any]]:
    """Groups of eight, of which the first ones earn nothing."""
    for group in range(groups):
        for sample in range(8):
            reward = float(group >= silent and sample % 2)
            yield {"step": group, "task": task, "prompt": f"{task} {group}", "completion": f"{sample}", "reward": reward}


@pytest.mark.parametrize(
    ("groups", "silent", "severity"), [(10, 8, "info"), (19, 19, "info"), (10, 0, "info"), (20, 16, "warning")]
)
def test_few_groups_are_counted_and_not_judged(groups: int, silent: int, severity: str, tmp_path: Path) -> None:
    seen = diagnose(read_rollouts(str(write(tmp_path / "a.jsonl", dead(groups, silent)))))
    found = [one for one in seen if "groups" in one.check]
    assert [(one.severity, one.task, one.count, one.total) for one in found] == [(severity, "sums", silent, groups)]
    if severity == "info":
        assert f"{silent} of {groups} groups" in found[0].message


def test_tasks_with_few_groups_are_counted_together(tmp_path: Path) -> None:
    made = [*dead(5, 4), *dead(6, 6, "letters"), *dead(20, 0, "words")]
    (seen,) = diagnose(read_rollouts(str(write(tmp_path / "a.jsonl", made))))
    assert (seen.check, seen.severity, seen.task, seen.count, seen.total) == ("groups", "info", None, 10, 11)


def test_harder_tasks_later_are_no_collapse(tmp_path: Path) -> None:
    """First an easy task, then a hard one, both rising: the mean over both falls."""
    changed = {
        "task": lambda row: "easy" if row["step"] <= 15 else "hard",
        "reward": lambda row: float(
            (int(row["completion"].split()[2]) % 100) < (80 + row["step"] if row["step"] <= 15 else row["step"])
        ),
    }
    assert "collapse" not in found(write(tmp_path / "a.jsonl", rows(**changed)))


@pytest.mark.parametrize(("end", "check"), [("and then the", "cut"), ("#### 152", "")])
def test_a_text_that_ends_in_a_figure_is_not_cut(end: str, check: str, tmp_path: Path) -> None:
    texts = {"completion": lambda row: f"{row['completion']} {'so it goes on ' * 20}{end}"}
    assert ("cut" in found(write(tmp_path / "a.jsonl", rows(**texts)))) == bool(check)


def test_equal_words_are_no_loss_of_diversity(tmp_path: Path) -> None:
    assert "same" not in found(write(tmp_path / "a.jsonl", rows(completion="yes")))


@pytest.mark.parametrize("seed", range(20))
def test_noise_is_no_collapse(seed: int, tmp_path: Path) -> None:
    """Few groups, slowly rising."""
    rng = random.Random(seed)
    made = [
        {
            "step": step,
            "prompt": f"{step} {number}",
            "completion": str(rng.random()),
            "reward": float(rng.random() < 0.2 + step / 100),
        }
        for step in range(1, 13)
        for number in (0, 0, 0, 0, 1, 1, 1, 1)
    ]
    assert "collapse" not in found(write(tmp_path / "a.jsonl", made))


def test_all_right_is_not_called_wrong(tmp_path: Path) -> None:
    (seen,) = diagnose(read_rollouts(str(write(tmp_path / "a.jsonl", rows(reward=1.0, task="all")))))
    assert "every completion of the task earned 1" in seen.message
    assert "easier prompts" not in seen.remedy


@pytest.mark.parametrize(
    ("name", "step"),
    [
        ("step_7/rank_0.jsonl", 7),
        ("step-8.jsonl", 8),
        ("run3/00012.jsonl", 12),
        ("x.jsonl", 0),
        ("max_steps_500/3.jsonl", 3),
        ("save_steps_10/4.JSONL", 4),
        ("global_step_5/max_step_9.jsonl", 5),
    ],
)
def test_steps_are_read_from_names(name: str, step: int, tmp_path: Path) -> None:
    (tmp_path / "in" / name).parent.mkdir(parents=True)
    write(tmp_path / "in" / name, [{"prompt": "a", "completion": "b", "reward": 1, "task": 3}])
    (one,) = read_rollouts(str(tmp_path / "in")).rollouts
    assert (one.step, one.task) == (step, "3")


def test_longer_completions_without_a_higher_reward(tmp_path: Path) -> None:
    def reward(row: dict[str, Any]) -> float:
        return float(int(row["completion"].split()[2]) % (2 if row["step"] <= 10 else 3) == 0)

    longer = {"reward": reward, "completion": lambda row: f"{row['completion']} " + "x" * (4 * row["step"])}
    assert "length" in found(write(tmp_path / "a.jsonl", rows(**longer)))


def test_skill_is_not_shown_by_the_commonest_answer(tmp_path: Path) -> None:
    """Three of four right answers are yes; yes is always answered, in two wordings."""
    said = {
        "answer": lambda row: "no" if int(row["prompt"][-1]) == 0 else "yes",
        "reward": lambda row: float(int(row["prompt"][-1]) != 0),
    }
    assert found(write(tmp_path / "a.jsonl", rows(**said, task="all")))["one answer"] == "warning"


def test_what_explains_equal_rewards_comes_before_them(tmp_path: Path) -> None:
    """Completions that stop in mid-sentence at one length, and a part that never pays."""
    text = {"completion": lambda row: "so that we add the two numbers of it " * 12 + "and", "reward": 0.0}
    seen = diagnose(read_rollouts(str(write(tmp_path / "a.jsonl", rows(**text)))))
    assert [(one.check, one.severity) for one in seen if one.severity == "error"][:2] == [
        ("cut", "error"),
        ("groups", "error"),
    ]
    parts = {"metrics": {"accuracy": 0.0, "format": 1.0}, "reward": 1.0}
    seen = diagnose(read_rollouts(str(write(tmp_path / "b.jsonl", rows(**parts)))))
    assert (seen[0].check, seen[0].severity) == ("never paid", "error")
    assert "'accuracy' earned 0 on all 480" in seen[0].message
    whole = {"completion": lambda row: "We add the two numbers of it. " * 12, "reward": 0.0}
    assert "cut" not in found(write(tmp_path / "c.jsonl", rows(**whole)))


def test_parts_of_a_reward(tmp_path: Path) -> None:
    """One never differs, one makes nearly all of the rest."""
    rng = random.Random(1)
    by_task = {"metrics": lambda row: {"sound" if row["task"] == "sums" else "spelled": row["reward"]}}
    assert not diagnose(read_rollouts(str(write(tmp_path / "b.jsonl", rows(**by_task))))), "rewards of one task each"
    parts = {"metrics": lambda row: {"format": 1.0, "right": 10 * row["reward"], "brevity": rng.random() / 10}}
    seen = [one.message for one in diagnose(read_rollouts(str(write(tmp_path / "a.jsonl", rows(**parts)))))]
    assert any("'format' earned 1 on all 480" in message for message in seen)
    assert any("'right' makes" in message for message in seen)
    assert not any("'brevity'" in message for message in seen)


def in_verl(row: dict[str, Any]) -> dict[str, Any]:
    return {
        "input": row["prompt"],
        "output": row["completion"],
        "gts": "5",
        "score": row["reward"],
        "step": row["step"],
        "acc": 1.0,
    }


def in_verifiers(row: dict[str, Any]) -> dict[str, Any]:
    chat = [{"role": "user", "content": row["prompt"]}]
    told = [{"role": "assistant", "content": row["completion"]}]
    ids = {"example_id": zlib.crc32(row["prompt"].encode()), "task": row["task"]}
    return ids | {
        "prompt": chat,
        "completion": told,
        "answer": "5",
        "reward": row["reward"],
        "metrics": {"right": row["reward"]},
    }


def comparable(log: RolloutLog) -> list[tuple[int, str, float | None]]:
    return sorted((one.step, one.completion, one.reward) for one in log.rollouts)


def test_forms_of_trainers_read_the_same(tmp_path: Path) -> None:
    """The same rollouts as plain lines, as verl dumps them, as results of verifiers, and as TRL's tables."""
    made = list(rows())
    plain = read_rollouts(str(write(tmp_path / "plain.jsonl", made)))
    for name in ("verl", "prime", "trl"):
        (tmp_path / name).mkdir()
    for step in range(1, STEPS + 1):
        own = [row for row in made if row["step"] == step]
        write(tmp_path / "verl" / f"{step}.jsonl", [in_verl(row) for row in own])
        (tmp_path / "prime" / f"step_{step}").mkdir()
        write(tmp_path / "prime" / f"step_{step}" / "train_rollouts.jsonl", [in_verifiers(row) for row in own])
        columns = {
            "step": [step] * len(own),
            "prompt": [row["prompt"] for row in own],
            "completion": [row["completion"] for row in own],
        }
        columns |= {"right": [row["reward"] for row in own], "advantage": [0.1] * len(own)}
        pq.write_table(pa.table(columns), tmp_path / "trl" / f"completions_{step:05d}.parquet")
    for name, form in (("verl", "verl"), ("prime", "verifiers"), ("trl", "TRL")):
        log = read_rollouts(str(tmp_path / name))
        assert log.form == form
        assert comparable(log) == comparable(plain), name
        assert len({one.group for one in log.rollouts}) == STEPS * PROMPTS, name


def in_swift(own: list[dict[str, Any]], step: int) -> dict[str, Any]:
    """A line of completions.jsonl: one object of columns, its steps as texts."""
    table = {"step": [str(step)] * len(own), "prompt": [f"<|im_start|>user\n{row['prompt']}" for row in own]}
    table |= {"completion": [row["completion"] for row in own], "MathAccuracy": [row["reward"] for row in own]}
    return table | {"advantages": [0.1] * len(own), "solution": ["5"] * len(own), "entropy": [1.5] * len(own)}


def in_tinker(own: list[dict[str, Any]], step: int) -> list[dict[str, Any]]:
    """Summaries of an iteration, without texts: tokens are counted alone."""
    return [
        {"schema_version": 1, "split": "train", "iteration": step, "group_idx": place // SIZE, "traj_idx": place % SIZE}
        | {"tags": [row["task"]], "sampling_client_step": step, "total_reward": row["reward"], "final_reward": 0.0}
        | {"trajectory_metrics": {}, "final_ob_len": 9}
        | {"steps": [{"ac_len": 4, "reward": row["reward"], "metrics": {"correct": row["reward"], "format": 1}, "logs": {}}]}
        for place, row in enumerate(own)
    ]


def of_step(made: list[dict[str, Any]], step: int) -> list[dict[str, Any]]:
    return [row for row in made if row["step"] == step]


def test_columns_of_ms_swift(tmp_path: Path) -> None:
    made = list(rows())
    path = write(tmp_path / "completions.jsonl", [in_swift(of_step(made, step), step) for step in range(1, STEPS + 1)])
    log = read_rollouts(str(path))
    assert log.form == "ms-swift"
    assert comparable(log) == comparable(read_rollouts(str(write(tmp_path / "plain.jsonl", made))))
    assert {tuple(one.parts) for one in log.rollouts} == {("MathAccuracy",)}
    assert {one.gold for one in log.rollouts} == {"5"}
    assert len(log.groups) == STEPS * PROMPTS


def test_summaries_of_tinker(tmp_path: Path) -> None:
    """Rollouts of training alone, whose groups are those of an iteration; completions without texts are not empty ones."""
    made = list(rows())
    for step in range(1, STEPS + 1):
        folder = tmp_path / f"iteration_{step:06d}"
        folder.mkdir()
        write(folder / "train_rollout_summaries.jsonl", in_tinker(of_step(made, step), step))
        write(folder / "eval_gsm8k_rollout_summaries.jsonl", in_tinker(of_step(made, step), step))
    write(tmp_path / "metrics.jsonl", [{"step": 1, "progress/batch": 1}])
    log = read_rollouts(str(tmp_path))
    assert (log.form, len(log.rollouts), len(log.groups)) == ("Tinker", len(made), STEPS * PROMPTS)
    assert {one.task for one in log.rollouts} == {"sums", "letters"}
    assert len({one.prompt for one in log.rollouts}) == STEPS * PROMPTS
    assert {name: severity for name, severity in found(tmp_path).items() if severity != "info"} == {"parts": "warning"}


def test_the_newest_run_of_a_trackio_project(tmp_path: Path) -> None:
    """Tables, with NaN as text as trackio writes it, and traces with a reward."""
    table = [
        {"step": step, "prompt": "a", "completion": f"b {sample}", "right": right, "advantage": 0.5}
        for step in (1, 2)
        for sample, right in enumerate((1.0, "NaN"))
    ]
    with sqlite3.connect(tmp_path / "demo.db") as db:
        db.execute("CREATE TABLE metrics (id INTEGER PRIMARY KEY, run_id TEXT, run_name TEXT, step INTEGER, metrics TEXT)")
        db.execute("CREATE TABLE traces (run_id TEXT, step INTEGER, trace_index INTEGER, messages TEXT, metadata TEXT)")
        tables = [{"completions": {"_type": "trackio.table", "_value": part}} for part in (table[:2], table[2:])]
        for run, values in (("old", tables[0]), ("new", tables[0]), ("new", {"loss": 0.3}), ("new", tables[1])):
            row = (run, run, 9, json.dumps(values).encode())
            db.execute("INSERT INTO metrics (run_id, run_name, step, metrics) VALUES (?, ?, ?, ?)", row)
        messages = [{"role": "user", "content": "q"}, {"role": "assistant", "content": "yes"}]
        rollout = {"reward": 0.5, "reward_std": 0.1, "rewards/right": 1.0, "group_id": 4}
        for metadata in (rollout, {"session_id": "no rollout"}):
            row = ("new", 3, 0, json.dumps(messages).encode(), json.dumps(metadata).encode())
            db.execute("INSERT INTO traces VALUES (?, ?, ?, ?, ?)", row)
    log = read_rollouts(str(tmp_path / "demo.db"))
    assert [(one.step, one.completion, one.reward, dict(one.parts)) for one in log.rollouts] == [
        (1, "b 0", 1.0, {"right": 1.0}),
        (1, "b 1", None, {}),
        (2, "b 0", 1.0, {"right": 1.0}),
        (2, "b 1", None, {}),
        (3, "yes", 0.5, {"right": 1.0}),
    ]
    sqlite3.connect(tmp_path / "other.db").execute("CREATE TABLE a (b)").connection.close()
    with pytest.raises(InputError, match=r"other\.db: expected a project of trackio, got no such table: metrics"):
        read_rollouts(str(tmp_path / "other.db"))


def test_completions_from_the_hub(tmp_path: Path) -> None:
    """As a data set of `log_completions_hub_repo` is downloaded: tables with chat messages beside a card."""
    chat = [{"role": "user", "content": "a"}], [{"role": "assistant", "content": "b", "tool_calls": None}]
    columns = {"step": [5] * 2, "prompt": [chat[0]] * 2, "completion": [chat[1]] * 2, "right": [1.0, None]}
    pq.write_table(pa.table(columns | {"advantage": [0.5, -0.5]}), tmp_path / "completions_00005.parquet")
    (tmp_path / "README.md").write_text("---\ntags:\n- trl-logs\n---\n")
    (tmp_path / ".gitattributes").write_text("*.parquet filter=lfs\n")
    log = read_rollouts(str(tmp_path))
    assert [(log.form, one.step, one.completion, one.reward) for one in log.rollouts] == [
        ("TRL", 5, "b", 1.0),
        ("TRL", 5, "b", None),
    ]


def test_following_a_run_tells_each_finding_once(call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The file grows twice by a half, first into half a line; an interrupt ends with the report of everything."""
    made = [json.dumps(row) + "\n" for row in rows(reward=after(20, 0.0), completion="the same")]
    path = tmp_path / "a.jsonl"
    path.write_text("".join(made[:200]))
    more = iter(["".join(made[200:300]) + made[300][:20], made[300][20:] + "".join(made[301:])])

    def sleep(seconds: int) -> None:
        assert seconds == 5
        with path.open("a") as file:
            file.write(next(more, "") or interrupt())

    def interrupt() -> str:
        raise KeyboardInterrupt

    monkeypatch.setattr(time, "sleep", sleep)
    code, out, _ = call("diagnose", str(path), "--follow", "5", "--json")
    assert code == 0
    told = []
    while out.strip():
        report, end = json.JSONDecoder().raw_decode(out.lstrip())
        out = out.lstrip()[end:]
        told.append((report["read"].split()[1], {(seen["check"], seen["task"]) for seen in report["observations"]}))
    assert [count for count, _ in told] == ["200", "480", "480"]
    (_, first), (_, second), (_, last) = told
    assert ("collapse", "sums") in second
    assert first
    assert not first & second
    assert last <= first | second


def test_a_table_that_trl_wrote(tmp_path: Path) -> None:
    from trainers_tiny import make
    from trl import GRPOTrainer

    trainer = make(GRPOTrainer, tmp_path, {"log_completions": True, "num_completions_to_print": 0})
    trainer.train()
    log = read_rollouts(str(tmp_path / "completions"))
    assert (log.form, len(log.rollouts)) == ("TRL", 24)
    assert {one.step for one in log.rollouts} == {1, 2, 3}
    means = [line["rewards/vowels/mean"] for line in trainer.state.log_history if "reward" in line]
    for step, mean in enumerate(means, start=1):
        assert sum(one.reward for one in log.rollouts if one.step == step) / 8 == pytest.approx(mean)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ('{"prompt": "a", "completion": "b"}\n', "a completion and a reward in every row"),
        ('{"prompt": "a"', "JSON"),
        ("[1, 2]\n", "a row with a completion and its reward"),
        ('{"completion": "b", "reward": "0.5"}\n', "a number, true, false or null as reward"),
    ],
)
def test_what_is_no_rollout_is_refused_with_its_place(text: str, told: str, tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text(text)
    with pytest.raises(InputError, match=told):
        read_rollouts(str(tmp_path / "a.jsonl"))
    with pytest.raises(InputError, match="a file or folder of rollouts"):
        read_rollouts(str(tmp_path / "nowhere.jsonl"))


@pytest.mark.parametrize(("step", "read"), [(10, 10), (10.0, 10), ("10", 10), (None, 7)])
def test_steps_are_read_from_rows(step: Any, read: int, tmp_path: Path) -> None:
    path = write(tmp_path / "7.jsonl", [{"prompt": "a", "completion": "b", "reward": 1, "step": step}])
    assert read_rollouts(str(path)).rollouts[0].step == read


@pytest.mark.parametrize("step", ["ten", "1e1", 1.5, 1e300, float("nan"), True])
def test_what_is_no_step_is_refused(step: Any, tmp_path: Path) -> None:
    made = [{"prompt": "a", "completion": "b", "reward": 1, "step": step}]
    with pytest.raises(InputError, match=r"a\.jsonl, line 1: expected a whole number as step"):
        read_rollouts(str(write(tmp_path / "a.jsonl", made)))


@pytest.mark.parametrize("name", ["2.JSONL", "2.ndjson.gz", "2.json", "2.json.gz", "2.parquet", "2.PARQUET"])
def test_every_file_of_a_folder_is_read_whatever_it_is_called(name: str, tmp_path: Path) -> None:
    made = [{"prompt": "a", "completion": "b", "reward": 1}]
    write(tmp_path / "1.jsonl", made)
    (tmp_path / "config.json").write_text('{"reward": "exact"}')
    if name.lower().endswith("parquet"):
        pq.write_table(pa.Table.from_pylist(made), tmp_path / name)
    else:
        data = json.dumps(made if ".json" in name and ".jsonl" not in name else made[0]).encode()
        (tmp_path / name).write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
    assert [one.step for one in read_rollouts(str(tmp_path)).rollouts] == [1, 2]
    for empty, told in (
        ("", "rows as JSON or Parquet, got an empty or incomplete file"),
        ("[]", "at least one row, got none"),
    ):
        (tmp_path / "3.jsonl").write_text(empty)
        with pytest.raises(InputError, match=rf"3\.jsonl: expected {told}"):
            read_rollouts(str(tmp_path))


@pytest.mark.parametrize("prompt", ["", " ", None])
def test_completions_without_prompts_are_no_group(prompt: str | None, tmp_path: Path) -> None:
    """All earn the same, so that every group would be without a signal."""
    log = read_rollouts(str(write(tmp_path / "a.jsonl", rows(prompt=prompt, reward=1.0))))
    (seen,) = diagnose(log)
    assert (seen.check, seen.severity, seen.count) == ("no prompt", "warning", 480)
    assert "480 completions of 0 groups" in summarise(log)


def test_the_command(call: Call, tmp_path: Path) -> None:
    path = write(tmp_path / "a.jsonl", rows(reward=after(20, 0.0)))
    code, out, _ = call("diagnose", str(path))
    assert code == 0
    assert "plain: 480 completions of 120 groups, 30 steps, 2 tasks" in out
    assert "collapse" in out
    assert call("diagnose", str(path), "--fail-on", "error")[0] == 3
    assert json.loads(call("diagnose", str(path), "--json")[1])["observations"][0]["check"] == "collapse"


def test_texts_of_json_are_read_and_bookkeeping_is_no_part(tmp_path: Path) -> None:
    """As a results file of verifiers has them that went through a table."""
    made = [in_verifiers(row) for row in rows()]
    for row in made:
        row |= {name: json.dumps(row[name]) for name in ("prompt", "completion", "metrics")}
        row |= {"problem_id": len(row["prompt"]), "num_input_tokens": 3, "is_completed": True, "num_turns": 1}
    log = read_rollouts(str(write(tmp_path / "results.jsonl", made)))
    assert {tuple(one.parts) for one in log.rollouts} == {("right",)}
    assert comparable(log)[0][1] == next(iter(sorted(row["completion"] for row in rows())))


def test_rollouts_as_nemo_gym_writes_them(tmp_path: Path) -> None:
    made = [
        {
            "responses_create_params": {"input": [{"role": "user", "content": f"q{n // 2}"}]},
            "response": {
                "output": [
                    {"type": "reasoning", "summary": []},
                    {"type": "message", "content": [{"type": "output_text", "text": f"a{n}"}]},
                ]
            },
            "reward": float(n % 2),
            "library_reward": float(n % 2),
            "_ng_task_index": n // 2,
            "_ng_rollout_index": n % 2,
        }
        for n in range(8)
    ]
    log = read_rollouts(str(write(tmp_path / "rollouts.jsonl", made)))
    assert log.form == "NeMo Gym"
    assert [(one.completion, one.reward) for one in log.rollouts] == [(f"a{n}", float(n % 2)) for n in range(8)]
    assert len({one.group for one in log.rollouts}) == 4
    assert {tuple(one.parts) for one in log.rollouts} == {("library_reward",)}
