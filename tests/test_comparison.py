"""Two checkpoints compared from the command line: what the page says of them is what was seen, and no more."""

from __future__ import annotations

from pathlib import Path

from cli_call import Call, sums, write
from trainers_tiny import model, tokenizer

from mixwright.records import RunManifest
from mixwright.runs import RunFolder, read_json


def test_settings_that_nobody_had_are_not_on_the_page(call: Call) -> None:
    for seed, name in enumerate(("before", "after")):
        model(seed).save_pretrained(name)
        tokenizer().save_pretrained(name)
    write("a.jsonl", sums(12))
    code, out, err = call("verdict", "before", "after", "--corpus", "a.jsonl", "--items", "4")
    assert code == 0, err
    run = RunFolder("runs/comparison")
    manifest = read_json(run.manifest, RunManifest)
    assert (manifest.parent, manifest.settings["checkpoint after"]) == ("before", "after")
    assert (manifest.settings["items"], manifest.settings["rows of the largest cell"]) == (4, 12)
    page, noted = run.page.read_text(encoding="utf-8"), Path("runs/comparison/run.yaml").read_text(encoding="utf-8")
    for unknown in ("learning_rate", "planner", "objective", "num_generations", "prompts_per_step", "trial seeds", "grpo"):
        assert unknown not in manifest.settings
        assert unknown not in page
        assert unknown not in noted
    assert "checkpoint after" in page
    assert out.rstrip().endswith("verdict: runs/comparison/verdict.html")
