"""Two checkpoints compared from the command line: what the page says of them is what was seen, and no more."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from cli_call import Call, sums, write
from trainers_tiny import model, tokenizer

from mixwright.records import RunManifest
from mixwright.run.folder import RunFolder, read_json, read_measurements


def pair(names: Sequence[str] = ("before", "after")) -> None:
    for seed, name in enumerate(names):
        model(seed).save_pretrained(name)
        tokenizer().save_pretrained(name)


def test_settings_that_nobody_had_are_not_on_the_page(call: Call) -> None:
    pair()
    write("a.jsonl", sums(12))
    code, _, err = call("verdict", "--no-suite", "before", "after", "--eval", "a.jsonl", "--items", "4", "--no-gate")
    assert code == 0, err
    run = RunFolder("runs/comparison")
    manifest = read_json(run.manifest, RunManifest)
    assert (manifest.parent, manifest.settings["checkpoint after"]) == ("before", "after")
    assert (manifest.settings["items"], manifest.settings["rows_of_largest_cell"]) == (4, 12)
    page, noted = run.page.read_text(encoding="utf-8"), Path("runs/comparison/run.yaml").read_text(encoding="utf-8")
    for unknown in (
        "learning_rate",
        "planner",
        "objective",
        "num_generations",
        "prompts_per_step",
        "trial_seed_count",
        "grpo",
    ):
        assert unknown not in manifest.settings
        assert unknown not in page
        assert unknown not in noted
    assert "checkpoint after" in page


def test_greedy_decoding_alone_reads_the_same_and_says_nothing_of_samples(call: Call) -> None:
    pair()
    asked = ("verdict", "--no-suite", "before", "after", "--eval", write("a.jsonl", sums(12)), "--max-new-tokens", "4")
    assert call(*asked, "--samples", "2", "--folder", "both", "--no-gate")[0] == 0
    code, _, err = call(*asked, "--samples", "0", "--folder", "greedy", "--protect", "sum", "--full")
    assert code in (3, 4), err  # models of random weights: nothing passes
    sampled = {"pass@1", "pass@2", "learnability"}
    for when in ("before", "after"):
        every, alone = (read_measurements(RunFolder(name).measurements(when)) for name in ("both", "greedy"))
        names = {row.name for row in alone}
        assert {row.probe for row in alone} == {"competence"}
        assert names == {row.name for row in every if row.probe == "competence"} - sampled - {
            name for name in (row.name for row in every) if name.startswith("pass@1.")
        }
        kept = [row for row in every if row.probe == "competence" and row.name in names and ".permutation" not in row.name]
        assert [row for row in alone if ".permutation" not in row.name] == kept
    noted = read_json(RunFolder("greedy").manifest, RunManifest).settings
    assert (noted["samples"], "temperature" in noted) == (0, False)
    totals = [read_json(RunFolder(name).verdict_data, dict)["total"] for name in ("greedy", "both")]
    assert [total["sampled"] is None for total in totals] == [True, False]
    code, _, err = call(*asked, "--samples", "0", "--sampled", "--folder", "none")
    assert code == 1
    assert "expected --sampled with at least one sample" in err
    code, _, err = call("plan", "before", "a.jsonl", "--objective", "grpo", "--samples", "0")
    assert code == 1
    assert "expected samples, which the planner difficulty reads" in err
