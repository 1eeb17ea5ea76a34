"""The scan: each column against an independent computation, shards resumed, and a reader that needs no torch."""

from __future__ import annotations

import math
import subprocess
import sys
import zlib
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import plugin_samples as samples
import pytest
import torch
from promise_samples import contents, measurable, scan_passes

from mixwright.config import CorpusConfig, MeasureConfig, ModelConfig, RunConfig, TrainConfig
from mixwright.corpus import Corpus
from mixwright.errors import InputError
from mixwright.learner.learner import Learner
from mixwright.learner.training_rows import TrainingRow, read_training_rows, row_token_limit
from mixwright.records import Example, to_data
from mixwright.run.checked import CheckedRun
from mixwright.run.folder import RunFolder
from mixwright.run.workers import Workers
from mixwright_extras.scan import stage as scan_stage
from mixwright_extras.scan import table
from mixwright_extras.scan.passes import ScanPasses
from mixwright_extras.scan.table import Scan, column_groups, sampled_rows
from mixwright_extras.tiny.model import build_tiny

CHAT = ({"role": "user", "content": "2 + 2 ="},)
SAID = ({"role": "assistant", "content": "four"},)


@pytest.fixture(scope="module")
def tiny() -> Learner:
    torch.set_num_threads(1)
    texts = [f"{example.prompt} {example.answer}" for example in samples.corpus()]
    return build_tiny(texts, ModelConfig(width=16, depth=2, heads=2, vocabulary=300), seed=0)


@pytest.fixture(scope="module")
def rows(tiny: Learner) -> list[TrainingRow]:
    odd = [Example("bare", "add", "1 + 1 ="), Example("chat", "add", CHAT, target=SAID)]
    return list(read_training_rows(tiny, [*list(measurable())[:5], *odd, Example("t", "add", "", target="ones in 101")]))


def read(tiny: Learner, rows: list[TrainingRow], group: str) -> dict[str, np.ndarray]:
    (made,) = column_groups([group]).values()
    return dict(made.compute(rows, scan_passes(tiny, rows, made.PASSES)))


def distributions(tiny: Learner, ids: list[int]) -> torch.Tensor:
    """Log-probabilities (time - 1, vocabulary) of one row by itself, in float64 at the end."""
    with torch.no_grad():
        return torch.log_softmax(tiny.model(input_ids=torch.tensor([ids])).logits[0, :-1].double(), -1)


def test_losses_entropy_and_errors_are_those_of_single_rows(tiny: Learner, rows: list[TrainingRow]) -> None:
    likely, entropy, error = (read(tiny, rows, name) for name in ("likelihood", "entropy", "el2n"))
    for i, row in enumerate(rows):
        if not row.target:
            assert all(np.isnan(found[name][i]) for found in (likely, entropy, error) for name in found)
            continue
        logs = distributions(tiny, [*row.prompt, *row.target])[len(row.prompt) - 1 :]
        own = -logs[range(len(row.target)), list(row.target)].numpy()
        lowest = np.sort(own)[-math.ceil(0.2 * len(own)) :]
        assert likely["nll"][i] == pytest.approx(own.mean(), rel=1e-4)
        assert likely["nll_max"][i] == pytest.approx(own.max(), rel=1e-4)
        assert likely["min_k"][i] == pytest.approx(-lowest.mean(), rel=1e-4)
        assert entropy["entropy"][i] == pytest.approx(float(-(logs.exp() * logs).sum(-1).mean()), rel=1e-4)
        tokens = torch.nn.functional.one_hot(torch.tensor(row.target), logs.shape[1])
        assert error["el2n"][i] == pytest.approx(float((logs.exp() - tokens).norm(dim=1).mean()), rel=1e-4)
    text = str(rows[0].example.target)
    bits = likely["nll"][0] * len(rows[0].target) / math.log(2)
    assert likely["zlib_ratio"][0] == pytest.approx(bits / (8 * len(zlib.compress(text.encode()))), rel=1e-4)


def test_two_forward_passes_give_what_four_would(tiny: Learner, rows: list[TrainingRow]) -> None:
    alone, back = read(tiny, rows, "ifd"), read(tiny, rows, "reverse_ifd")
    nll = read(tiny, rows, "nll")["nll"]
    start = tiny.tokenizer.bos_token_id
    for i, row in enumerate(rows):
        if not row.target:
            continue
        single = distributions(tiny, [start, *row.target])[range(len(row.target)), list(row.target)]
        if row.example.prompt:
            assert alone["nll_alone"][i] == pytest.approx(-float(single.mean()), rel=1e-4)
            assert alone["ifd"][i] == pytest.approx(math.exp(nll[i] + float(single.mean())), rel=1e-3)
        own = distributions(tiny, list(row.prompt))[range(len(row.prompt) - 1), list(row.prompt[1:])]
        after = distributions(tiny, [start, *row.target, *row.prompt])
        after = after[range(1 + len(row.target), len(after)), list(row.prompt[1:])]
        if len(row.prompt) > 1:
            assert back["nll_prompt_alone"][i] == pytest.approx(-float(own.mean()), rel=1e-4)
            assert back["nll_prompt"][i] == pytest.approx(-float(after.mean()), rel=1e-4)
            assert back["r_ifd"][i] == pytest.approx(math.exp(float(own.mean() - after.mean())), rel=1e-3)
    text = [row.example.id for row in rows].index("t")
    assert np.isnan(alone["ifd"][text])


def test_hidden_states_are_means_over_the_rows_own_tokens(tiny: Learner, rows: list[TrainingRow]) -> None:
    found = read(tiny, rows, "hidden")["hidden"]
    for i, row in enumerate(rows):
        with torch.no_grad():
            states = tiny.model(input_ids=torch.tensor([[*row.prompt, *row.target]]), output_hidden_states=True)
        assert found[i] == pytest.approx(states.hidden_states[-1][0].mean(0).numpy(), abs=2e-3)


def test_an_undeclared_pass_is_not_read(tiny: Learner, rows: list[TrainingRow]) -> None:
    with pytest.raises(LookupError, match="response_only"):
        _ = ScanPasses(tiny, rows, frozenset({"target"})).response_only


def test_rollouts_count_what_the_grader_takes(tiny: Learner, rows: list[TrainingRow]) -> None:
    (group,) = column_groups(["pass_1"]).values()
    passes = scan_passes(tiny, rows, group.PASSES)
    found = group.compute(rows, passes)
    for i, made in enumerate(passes.rollouts):
        if made is None:
            assert rows[i].example.answer is None
            assert np.isnan(found["pass_1"][i])
        else:
            scores = [measurable().grade(rows[i].example, s.text, cut=not s.finished) for s in made.samples]
            assert found["pass_1"][i] == np.mean(scores)
            assert found["pass_k"][i] == max(scores)
            assert found["outcomes"][i] == len({s.text.strip() for s in made.samples})


@pytest.mark.filterwarnings("ignore::FutureWarning")
def test_rows_are_those_of_trls_sft_trainer(tiny: Learner, tmp_path: Path) -> None:
    from datasets import Dataset
    from trl.trainer.sft_config import SFTConfig
    from trl.trainer.sft_trainer import SFTTrainer

    plain = [Example("a", "t", "ones in 101? ", target="it is 2"), Example("b", "t", "7 + 1 =", target="word " * 40)]
    chat = [Example("c", "t", CHAT, target=SAID)]
    for examples in (plain, chat):
        data = [{"prompt": e.prompt, "completion": e.target} for e in examples]
        data = data if examples is plain else [{name: list(text) for name, text in row.items()} for row in data]
        config = SFTConfig(str(tmp_path), max_length=24, bf16=False, use_cpu=True, report_to="none")
        trainer = SFTTrainer(tiny.model, config, train_dataset=Dataset.from_list(data), processing_class=tiny.tokenizer)
        prepared: Any = trainer.train_dataset
        for row, own in zip(prepared, read_training_rows(tiny, examples, tokenise_together=True, limit=24), strict=True):
            assert [*own.prompt, *own.target] == row["input_ids"]
            assert list(own.target) == [label for label in row["labels"] if label != -100]
    assert next(read_training_rows(tiny, plain[1:], tokenise_together=True, limit=24)).cut_tokens > 0


def test_the_longest_row_is_the_trainers(tiny: Learner) -> None:
    assert row_token_limit(TrainConfig("sft"), tiny) == 1024
    assert row_token_limit(TrainConfig("sft", settings={"max_length": 77}), tiny) == 77
    assert row_token_limit(TrainConfig("sft", settings={"max_length": None}), tiny) == 2048
    assert row_token_limit(TrainConfig("grpo"), tiny) == 2048


def test_groups_are_found_by_their_columns_and_dear_ones_wait_to_be_named() -> None:
    assert list(column_groups(["pass_1", "nll"])) == ["competence", "likelihood"]
    assert not {"competence", "hidden", "sketch"} & set(column_groups(None))
    assert {"competence", "hidden", "sketch"} <= set(column_groups(["all"]))
    with pytest.raises(InputError, match="nll"):
        column_groups(["nlll"])


def test_a_larger_sample_holds_the_smaller_one() -> None:
    few, more = (sampled_rows(samples.corpus(), count) for count in (10, 20))
    assert set(few) < set(more)
    assert list(more) == sorted(more)
    assert len(sampled_rows(samples.corpus(), None)) == 144


@pytest.fixture
def run(tiny: Learner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[CheckedRun, Workers]:
    """A run folder whose model is a checkpoint, shards of 50 rows, and a pool that works here."""
    folder = RunFolder(tmp_path / "run")
    measurable().save(folder.corpus)
    tiny.save(tmp_path / "model")
    monkeypatch.setattr(scan_stage, "SHARD_ROWS", 50)

    class Here(Workers):
        def run(self, jobs: Any, *, title: str = "", progress: Any = None) -> list[Any]:
            return [job.function(job.argument) for job in jobs]

    measure = MeasureConfig(samples=2, max_new_tokens=3)
    config = RunConfig(CorpusConfig("x"), ModelConfig(str(tmp_path / "model")), measure)
    return CheckedRun(config, folder, measurable()), Here()


def test_what_was_killed_goes_on_to_the_same_table(run: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    checked, pool = run
    folder = checked.folder
    asked = ["nll", "ifd", "sketch", "form", "pass_1"]
    whole = scan_stage.scan_bases(checked, pool, columns=asked)
    place = folder.path / "scan" / "model"
    first = contents(place)
    assert (whole[0].rows, whole[0].shards, whole[0].made) == (144, 3, 3)
    for path in place.iterdir():
        path.unlink()
    written = table.write_shard

    def dies(path: Path, *given: Any) -> None:
        if path.name == "part-00001.parquet":
            (path.parent / f".{path.name}.123").write_bytes(b"half")
            raise KeyboardInterrupt
        written(path, *given)

    monkeypatch.setattr(scan_stage, "write_shard", dies)
    monkeypatch.setattr(pool, "count", 1)
    with pytest.raises(KeyboardInterrupt):
        scan_stage.scan_bases(checked, pool, columns=asked)
    with pytest.raises(InputError, match="part-00001"):
        Scan(folder)
    monkeypatch.setattr(scan_stage, "write_shard", written)
    again = scan_stage.scan_bases(checked, pool, columns=asked)
    assert again[0].made == 2
    assert contents(place) == first
    assert scan_stage.scan_bases(checked, pool, columns=["nll"])[0].made == 0


def test_columns_are_added_to_a_table_and_rows_are_never_lost(run: Any) -> None:
    checked, pool = run
    folder = checked.folder
    scan_stage.scan_bases(checked, pool, columns=["form"], sample=60)
    before = Scan(folder)
    assert before.names == ("id", "task", "split", "form")
    scan_stage.scan_bases(checked, pool, columns=["nll"], sample=60)
    after = Scan(folder, "model")
    assert {"form", "nll"} <= set(after.names)
    assert after.ids == before.ids
    assert len(after) == 60
    said: list[str] = []
    scan_stage.scan_bases(checked, pool, columns=["nll"], say=said.append)
    assert "scanned from other rows" in said[0]
    assert len(Scan(folder)) == 144
    with pytest.raises(InputError, match="144"):
        scan_stage.scan_bases(checked, pool, columns=["nll"], sample=60)


def test_the_reader_gives_rows_by_id_without_torch(run: Any) -> None:
    checked, pool = run
    folder = checked.folder
    with pytest.raises(InputError, match="mixwright scan"):
        Scan(folder)
    scan_stage.scan_bases(checked, pool, columns=["n_tokens", "hidden", "nll"])
    found = Scan(folder)
    assert found.column("hidden").shape == (144, 16)
    wanted = [found.ids[130], found.ids[2]]
    got = found.rows(wanted, ["id", "nll"])
    assert got["id"].tolist() == wanted
    assert got["nll"].tolist() == [found.column("nll")[130], found.column("nll")[2]]
    with pytest.raises(InputError, match="nobody"):
        found.rows(["nobody"])
    with pytest.raises(InputError, match="pass_1"):
        found.column("pass_1")
    code = f"from mixwright_extras.scan.table import Scan; Scan({str(folder.path)!r}).rows([])"
    code += "; import sys; assert 'torch' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_another_model_or_other_rows_are_scanned_anew(run: Any, tiny: Learner, tmp_path: Path) -> None:
    checked, pool = run
    folder = checked.folder
    scan_stage.scan_bases(checked, pool, columns=["nll"])
    old = Scan(folder).column("nll")
    other = build_tiny(["other words"], ModelConfig(width=16, depth=1, heads=2, vocabulary=300), seed=1)
    other.save(tmp_path / "model")
    said: list[str] = []
    scan_stage.scan_bases(checked, pool, columns=["nll"], say=said.append)
    assert "weights" in said[0]
    assert not np.array_equal(Scan(folder).column("nll"), old)


def test_answers_pairs_and_cut_rows_are_told(run: Any, tiny: Learner) -> None:
    checked, pool = run
    folder = checked.folder
    rows = [Example("a", "t", "1 + 1 =", answer="2"), Example("p", "p", "which?", chosen="this", rejected="that")]
    Corpus.from_examples([*rows, Example("l", "x", "long?", target="7 " * 400), Example("n", "x", "?")]).save(folder.corpus)
    config = replace(checked.config, train=TrainConfig("sft", settings={"max_length": 32}))
    checked = replace(checked, config=config)
    (result,) = scan_stage.scan_bases(checked, pool, columns=["n_cut"])
    told = " | ".join(result.notes)
    assert "1 of 4 rows have no target, so their answer" in told
    assert "1 of 4 rows are pairs" in told
    assert "1 of 4 rows have neither" in told
    assert "longer than 32 tokens" in told
    assert to_data(result)["rows"] == 4
