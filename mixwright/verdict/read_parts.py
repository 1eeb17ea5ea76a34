"""Readers of the parts of a run that a verdict packs (replaced)."""

from mixwright.records import AnswerPair
from mixwright.verdict.page.answers import read_answers
from mixwright.verdict.rules.evidence import leading_folders


def read_decisions(run):
    return ()


def read_stages(run):
    return {}, {}


def read_gold(sides, *, greedy):
    return ()


def read_pairs(run):
    folder = next(iter(leading_folders(run)), run.path)
    out = []
    for item in read_answers(folder / "completions.parquet"):
        b, a, t = item["before"], item["after"], item.get("beside")
        out.append(
            AnswerPair(
                str(b["task"] or ""),
                b["level"],
                str(b["prompt"] or ""),
                str(b["answer"] or ""),
                str(b["completion"] or ""),
                str(a["completion"] or ""),
                float(b["score"] or 0),
                float(a["score"] or 0),
                (bool(b.get("cut")), bool(a.get("cut"))),
                None if t is None else str(t["completion"] or ""),
                0.0 if t is None else float(t["score"] or 0),
            )
        )
    return out
