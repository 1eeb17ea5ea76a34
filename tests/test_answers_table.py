"""One table of answers: written and read again, and the same whether a model or a log made it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import test_logs_inspect
import test_logs_lighteval
import test_logs_lm_eval
from log_rows import write_lines
from server_stub import serving

from mixwright import catalog
from mixwright.answers.score import measure_answers
from mixwright.answers.table import SCHEMA, Answers, CellNull, Header, SwapTest
from mixwright.api import Measuring, measure
from mixwright.config import MeasureConfig
from mixwright.corpus import Corpus
from mixwright.errors import InputError
from mixwright.learner.learner import Completion
from mixwright.learner.prompt_form import PromptForm
from mixwright.logs.answers import answers_of
from mixwright.logs.found_grader import FoundGrader, find_grader, to_example
from mixwright.logs.judged import judge_logs
from mixwright.logs.reading import read_log
from mixwright.measure.passes import Passes
from mixwright.records import Example, Interval

ITEM = {"task": "t", "decoding": "greedy", "sample": 0}


class Says:
    """Stands for a learner: one text for each prompt."""

    form = PromptForm()

    def __init__(self, texts: dict[str, str]) -> None:
        self.texts = texts

    def sample(self, prompts: list[str], *, count: int, **_: Any) -> list[list[Completion]]:
        return [[Completion(self.texts[prompt], (1, 2), (-0.5, 0.0), True)] * count for prompt in prompts]


def test_what_is_written_is_read(tmp_path: Path) -> None:
    test = SwapTest(Interval(0.2, 0.1, 0.3, 9), Interval(0.3, 0.2, 0.4, 9), Interval(0.4, 0.3, 0.5, 9), 0.01)
    header = Header("lm-eval", (CellNull("t", 2.0, Interval(0.1, 0.0, 0.2, 9), "most common answer", {"greedy": test}),))
    rows = [ITEM | {"item": "a", "level": 2.0, "text": "x", "cut": True, "tokens": [1, 2], "parts": [("city", True)]}]
    written = Answers.from_rows([*rows, ITEM | {"item": "b"}], header)
    written.write(tmp_path / "a.answers.parquet")
    assert Answers.read(tmp_path / "a.answers.parquet") == written
    assert [row["example"] for row in written.first_rows()] == ["a"], "of the other item nothing is known to be written"
    more = Answers.from_rows([ITEM | {"item": "c", "task": "u"}], Header("lm-eval", (replace(header.nulls[0], task="u"),)))
    assert [null.task for null in written.followed_by(more).header.nulls] == ["t", "u"]


def test_another_file_is_refused(tmp_path: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({name: [] for name in SCHEMA.names}), path)
    with pytest.raises(InputError, match="answers"):
        Answers.read(path)
    path.write_bytes(b"PAR1cut")
    with pytest.raises(InputError, match="answers"):
        Answers.read(path)


@pytest.mark.parametrize("levels", [0, 2, 9])
def test_a_model_and_a_log_of_it_give_equal_figures(levels: int, tmp_path: Path) -> None:
    """Success, S, D, kappa and chance level, of cells, of the task and of items; nine levels make small cells."""
    rng, lines = np.random.default_rng(levels), list[dict[str, Any]]()
    for place in range(30):
        gold, text = str(rng.integers(4)), str(rng.integers(4))
        line = {"task": "t", "id": str(place), "prompt": f"what {place}?", "answer": gold, "completion": text}
        lines.append(line | {"score": float(text == gold)} | ({"level": place % levels} if levels else {}))
    log = read_log(write_lines(tmp_path / "log.jsonl", lines))
    (task,) = judge_logs(log, log, {}).judged
    grader = find_grader(task)
    assert isinstance(grader, FoundGrader)
    other = measure_answers(answers_of(task, 0, "greedy", grader, log.form))
    corpus = Corpus.from_examples((to_example(item) for item in task.items), {"t": "exact"})
    texts = {line["prompt"]: line["completion"] for line in lines}
    passes = Passes(Says(texts), MeasureConfig(items=99, samples=0), corpus)  # pyright: ignore
    own = catalog.create("probes", "competence").measure(passes, corpus, np.random.default_rng([0, 0]))
    figures, logged = (
        {(row.name, row.level): (row.value, row.low, row.high, row.n) for row in rows if row.probe != "log"}
        for rows in (own, other)
    )
    assert figures.keys() == logged.keys()
    for name in figures:
        if not name[0].endswith("permutation"):  # each draws its own
            assert logged[name] == pytest.approx(figures[name], abs=1e-12), name


HITS = [n % 3 > 0 for n in range(12)]
TEXTS = [str(n + 7) if hit else "0" for n, hit in enumerate(HITS)]


def lm_eval_log(folder: Path) -> str:
    rows = [
        {"doc_id": n, "doc": {"q": n}, "target": str(n + 7), "resps": [[text]], "filtered_resps": [text], "filter": "none"}
        | {"arguments": {"gen_args_0": {"arg_0": f"{n}+7?", "arg_1": {"do_sample": False}}}, "metrics": ["exact_match"]}
        | {"exact_match": float(hit), "doc_hash": f"d{n}", "prompt_hash": f"p{n}", "target_hash": f"t{n}"}
        for n, (text, hit) in enumerate(zip(TEXTS, HITS, strict=True))
    ]
    return test_logs_lm_eval.logged(str(folder), {"sums": rows}, None)


def inspect_log(folder: Path) -> str:
    samples = [test_logs_inspect.sample(n, "C" if hit else "I") for n, hit in enumerate(HITS)]
    for n, (sample, text) in enumerate(zip(samples, TEXTS, strict=True)):
        sample |= {"input": f"{n}+7?", "target": str(n + 7), "messages": [{"role": "user", "content": f"{n}+7?"}]}
        sample["output"]["choices"][0]["message"]["content"] = sample["output"]["completion"] = text
        sample["scores"]["match"] |= {"answer": text, "explanation": text}
    return test_logs_inspect.write_json(str(folder / "log.json"), test_logs_inspect.log(samples, task="sums"))


def lighteval_log(folder: Path) -> str:
    rows = test_logs_lighteval.written(HITS)
    for n, row in enumerate(rows):
        row["doc"]["query"] = row["model_response"]["input"] = f"{n}+7?"
    return test_logs_lighteval.details(str(folder), {"sums": rows})


def plain_log(folder: Path) -> str:
    lines = [
        {"task": "sums", "id": n, "prompt": f"{n}+7?", "answer": str(n + 7), "completion": text, "score": float(hit)}
        for n, (text, hit) in enumerate(zip(TEXTS, HITS, strict=True))
    ]
    return write_lines(folder / "log.jsonl", lines)


def served_log(folder: Path) -> str:
    pytest.importorskip("openai")
    rows = [{"task": "sums", "prompt": f"{n}+7?", "answer": str(n + 7)} for n in range(12)]
    measuring = Measuring(grader=["sums=exact"])
    with serving(lambda body: TEXTS[int(body["messages"][-1]["content"].partition("+")[0])]) as stub:
        measure(stub.url, write_lines(folder / "items.jsonl", rows), measuring=measuring, folder=folder / "served")
    (log,) = (folder / "served").rglob("log.jsonl")
    return str(log)


@pytest.mark.parametrize("write_log", [lm_eval_log, inspect_log, lighteval_log, plain_log, served_log])
def test_the_same_answers_are_the_same_table_whoever_logged_them(write_log: Any, tmp_path: Path) -> None:
    log = read_log(write_log(tmp_path))
    (task,) = judge_logs(log, log, {}).judged
    grader = find_grader(task)
    assert isinstance(grader, FoundGrader)
    logged = answers_of(task, 0, "greedy", grader, log.form)
    rows = [Example(str(n), "sums", f"{n}+7?", answer=str(n + 7)) for n in range(12)]
    corpus = Corpus.from_examples(rows, {"sums": "exact"})
    says = Says({f"{n}+7?": text for n, text in enumerate(TEXTS)})
    passes = Passes(says, MeasureConfig(items=99, samples=0), corpus)  # pyright: ignore
    catalog.create("probes", "competence").measure(passes, corpus, np.random.default_rng([0, 0]))
    columns = ["prompt", "gold", "text", "decoding", "sample", "right", "swapped", "chance"]
    own, other = (
        sorted(found.table.select(columns).to_pylist(), key=lambda row: row["prompt"]) for found in (passes.answers, logged)
    )
    assert own == other
