"""Settings that cannot work are refused before the run folder is made, in one line; so are damaged files."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from mixwright.__main__ import main
from mixwright.config import RunConfig
from mixwright.errors import InputError
from mixwright.graders import load_grader
from mixwright.records import Example, Measurement
from mixwright.run.folder import read_measurements, read_yaml, write_measurements

"""Twelve levels of nine aliases each: 12 lines that stand for 3 * 10^10 values."""
WRONG = {
    "corpus: {train: one.jsonl}\n": "expected training examples",
    "corpus: {train: nowhere.jsonl}\n": "nowhere.jsonl",
    "corpus: {train: a.jsonl}\ntrain: {stepz: 2}\n": "run.yaml, line 2",
    "corpus: {train: a.jsonl}\nplan: {planner: dificulty}\n": "difficulty",
    "corpus: {train: a.jsonl}\nmeasure: {probes: [competense]}\n": "competence",
    "corpus: {train: a.jsonl}\nmodel: {path: ./nowhere}\n": "nowhere",
    "corpus: {train: a.jsonl}\ntrain: {generations: 1}\n": "run.yaml, line 2: expected train.generations",
    "corpus: {train: a.jsonl}\ntrain:\n  learning_rate: .nan\n": "run.yaml, line 3: expected train.learning_rate",
    "corpus: {train: a.jsonl}\ntrain: {adapters: {lora: {learning_rate: 12}}}\n": "learning_rate: a number less than",
    "corpus: {train: a.jsonl}\ntrain: {temperature: 0}\n": "train.temperature",
    "corpus: {train: a.jsonl}\nmeasure: {samples: 0}\n": "measure.samples",
    "corpus: {train: a.jsonl}\nmodel: {warmup: {steps: -1}}\n": "model.warmup.steps",
    "corpus: {train: a.jsonl}\ntrial: {workers: -1}\n": "trial.workers",
    "corpus: {train: a.jsonl}\ntrial: {seeds: 0}\n": "trial.seeds",
    "corpus: {train: a.jsonl}\ntrial: {arms: [uniform, uniform]}\n": "each arm once, got uniform, uniform",
    "corpus: {train: a.jsonl}\ntrial: {nulls: [permuted, permuted]}\n": "Correct trial.nulls",
    "corpus: {train: a.jsonl}\ntrial: {arms: [uniform, steerd]}\n": "Nearest: steered",
    "corpus: {train: a.jsonl}\ntrial: {nulls: [steered]}\n": "'steered', a lever",
    "corpus: {train: a.jsonl}\nmeasure: {probes: [held_out_loss]}\n": "the probe competence",
    "corpus: {train: a.jsonl}\ntrain: {settings: {output_dir: elsewhere}}\n": "train.settings without output_dir",
    "corpus: {train: a.jsonl, eval_share: 0}\n": "corpus.eval_share",
    "corpus: {train: a.jsonl}\nplan: {options: {band: x}}\n": "band of planners.difficulty",
    "corpus: {train: a.jsonl}\ntrain: {settings: {seed: 2020-01-01}}\n": "train.settings",
    "corpus: {train: a.jsonl}\nmodel: {path: .}\n": "without config.json",
    "corpus: {train: a.jsonl}\nmodel: {path: 'tiny:3M'}\n": "tiny:3M",
    "corpus: {train: a.jsonl}\nmodel: {adapter: nowhere}\n": "nowhere: expected the folder of an adapter",
    "corpus: {train: a.jsonl}\nmodel: {heads: 3}\n": "heads 3",
    "corpus: {train: a.jsonl}\nmodel: {vocabulary: 64}\n": "model.vocabulary",
    # what used to be refused after the folder was made, some of it after minutes of warm-up and measuring
    "corpus: {train: a.jsonl}\nplan: {options: {band: [0.9, 0.1]}}\n": "band (0.9, 0.1)",
    "corpus: {train: a.jsonl}\nplan: {planner: temperature, options: {temperature: 0.5}}\n": "a temperature of at least 1",
    "corpus: {train: a.jsonl}\nplan: {planner: transfer_order}\n": "the probe transfer",
    "corpus: {train: a.jsonl}\ntrain: {settings: {foo_bar: 1}}\n": "foo_bar",
    "corpus: {train: a.jsonl}\ntrain: {objective: sft, settings: {foo_bar: 1}}\n": "'foo_bar'",
    "corpus: {train: a.jsonl}\ntrain: {objective: dpo}\n": "'chosen' in every training row, for train.objective dpo",
    "corpus: {train: pairs.jsonl}\n": "'answer' in every training row, for train.objective grpo",
    "corpus: {train: a.jsonl}\nmodel: {warmup: {cells: {frist: 1}}}\n": "'frist'",
    "corpus: {train: a.jsonl}\nmodel: {warmup: {cells: {all: 0}}}\n": "a weight above 0",
    "corpus: {train: a.jsonl}\nmodel: {warmup: {source: nowhere.jsonl}}\n": "nowhere.jsonl",
    "corpus: {train: a.jsonl}\nmodel: {warmup: {source: a.jsonl}}\n": "a.jsonl: expected warm-up prompts",
    "corpus: {train: half.jsonl}\n": "expected held-out rows with answers",
    "corpus: {train: a.jsonl}\ntrial: {protect: [frist]}\n": "(trial.protect)",
    # a setting that is read as another one, or that nobody could wait for
    "corpus: {train: a.jsonl}\ntrain: {steps: true}\n": "run.yaml, line 2: expected train.steps: a number or a text, got",
    "corpus: {train: a.jsonl, eval: ''}\n": "corpus.eval",
    "corpus: {train: a.jsonl}\ntrain: {steps: 100000000000}\n": "train.steps: a number less than or equal to 10000000",
    "corpus: {train: a.jsonl}\ntrial: {seeds: 1000000}\n": "trial.seeds: a number less than or equal to 1000",
    "corpus: {train: a.jsonl}\nmodel: {width: 1048576}\n": "model.width: a number less than or equal to 8192",
    "corpus: {train: a.jsonl}\ntrain: {steps: 5, steps: 6}\n": "run.yaml, line 2: expected each key once, got 'steps' twice",
    "corpus: {train: 2020-99-99}\n": "run.yaml: expected YAML, got month",
    "seed: " + "9" * 5000: "run.yaml: expected YAML",
    # what would else be told in pydantic's words
    "# nothing yet\n": "run.yaml: expected a mapping with corpus, measure, mine, model, plan, seed, train, trial, got no",
    "- a.jsonl\n": "a mapping with corpus, measure, mine, model, plan, seed, train, trial, got ['a.jsonl']",
    "corpus:\n": "run.yaml, line 1: expected corpus: a mapping with columns, eval, eval_share,",
    "seed: 3\n": "run.yaml: expected corpus: a value, got nothing. Add it.",
    "corpus: {train: a.jsonl}\nmeasure: {items: -.inf}\n": "line 2: expected measure.items: a finite number, got -inf",
    "corpus: {train: a.jsonl}\ntrial:\n  margin: 1e999\n": "line 3: expected trial.margin: a finite number, got '1e999'",
    "corpus: {train: a.jsonl}\ntrain: {prompts: 1e999}\n": "line 2: expected train.prompts: a whole number, got '1e999'",
    "corpus: {train: a.jsonl}\ntrial: {arms: uniform}\n": "line 2: expected trial.arms: a list, got 'uniform'",
    "corpus: {train: a.jsonl}\nmodel: {depth: 1.5}\n": "line 2: expected model.depth: a whole number, got 1.5",
    "corpus: " + "[" * 5000: "100 levels",
}


@pytest.mark.parametrize("text", WRONG, ids=WRONG.values())
def test_settings_that_cannot_work_leave_nothing(
    text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    rows = [{"prompt": f"{n}+1=", "answer": str(n + 1)} for n in range(40)]
    Path("a.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    Path("one.jsonl").write_text('{"prompt": "p", "answer": "1", "split": "eval"}\n', encoding="utf-8")
    pairs = [{"prompt": f"{n}+1=", "chosen": str(n + 1), "rejected": str(n)} for n in range(40)]
    Path("pairs.jsonl").write_text("".join(json.dumps(row) + "\n" for row in pairs), encoding="utf-8")
    halves = [{**row, "task": "sum", "split": "eval" if n % 2 else "train"} for n, row in enumerate(rows)]
    halves += [{"prompt": f"{n}*2=", "answer": str(2 * n), "task": "product", "split": "train"} for n in range(20)]
    Path("half.jsonl").write_text("".join(json.dumps(row) + "\n" for row in halves), encoding="utf-8")
    Path("run.yaml").write_text(text, encoding="utf-8")
    with pytest.raises(SystemExit) as leaving:
        main(["run", "run.yaml"])
    said = capsys.readouterr()
    assert (leaving.value.code, said.out) == (1, "")
    assert WRONG[text] in said.err
    assert said.err.count("\n") == 1
    assert not Path("runs").exists()


def test_damaged_files_and_folders_in_their_place_are_input_errors(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    rows = [Measurement("competence", "sum", "pass@1", 0.5, 0.4, 0.6, 10, "share")] * 50
    path = Path("runs/a/measure/before.parquet")
    write_measurements(path, rows)
    whole = path.read_bytes()
    path.write_bytes(whole[:4] + bytes(byte ^ 0x5A for byte in whole[4:400]) + whole[400:])
    Path("folder.yaml").mkdir()
    with pytest.raises(InputError, match=r"before.parquet: expected a Parquet file"):
        read_measurements(path)
    with pytest.raises(InputError, match=r"folder.yaml: expected a file, got a folder"):
        read_yaml(Path("folder.yaml"), RunConfig)


def test_a_folder_that_cannot_be_made_is_the_users(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("a.jsonl").write_text("".join(f'{{"prompt": "{n}+1=", "answer": "{n + 1}"}}\n' for n in range(40)))
    Path("run.yaml").write_text("corpus: {train: a.jsonl}\n")
    Path("file").touch()
    for arguments in (
        ["run", "run.yaml", "--folder", "file"],
        ["run", "run.yaml", "--folder", "file/x"],
        ["verdict", "empty"],
    ):
        with pytest.raises(SystemExit) as leaving:
            main(arguments)
        said = capsys.readouterr()
        assert (leaving.value.code, said.out) == (1, "")
        assert said.err.count("\n") == 1


def chatty(completion: str, answer: str, **_: object) -> float:
    sys.stdout.write("noise")
    return float(completion == answer)


def leaves(completion: str, answer: str, **_: object) -> float:
    raise SystemExit(0)


def test_a_grader_that_prints_or_leaves_does_not_disturb(capsys: pytest.CaptureFixture[str]) -> None:
    example = Example(id="a", task="t", prompt="p", answer="1")
    assert load_grader(f"{__name__}:chatty").grade(example, "1") == 1.0
    assert capsys.readouterr() == ("", "noise")
    with pytest.raises(InputError, match="SystemExit"):
        load_grader(f"{__name__}:leaves").grade(example, "1")
