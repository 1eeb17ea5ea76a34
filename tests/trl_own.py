"""TRL's own tests of its SFT, DPO and GRPO trainers, run with our classes in the place of TRL's.

    python tests/trl_own.py --source TRL_CHECKOUT [--trainer sft|dpo|grpo] [--modes trl ours steered] [--workers 2]

The checkout is TRL's source at the tag of the installed version (or near it: what TRL's own classes fail then is said, and
does not count). Its tests are copied to a scratch folder and run three times: with TRL's classes, with ours and
`steering=None`, and with steering switched on. What ours fail and TRL's do not is an error of ours: exit code 1.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as xml
from collections import Counter
from importlib.metadata import version
from pathlib import Path

HERE = Path(__file__).resolve().parent
Results = dict[str, tuple[str, str]]


def run(mode: str, scratch: Path, trainers: list[str], workers: int, select: str | None) -> tuple[Results, int]:
    """Outcome (passed, failed, skipped) and reason per test, and how many trainers of ours were built."""
    out = scratch / mode
    out.mkdir()
    command = [sys.executable, "-m", "pytest", "-q", "-p", "trl_own_plugin", "-p", "no:cacheprovider", "-m", "not slow"]
    command += ["-W", "ignore", "--tb=short", f"--junit-xml={out}/results.xml", f"--basetemp={out}/temp"]
    command += ["-n", str(workers)] if workers > 1 else []
    command += ["-k", select] if select else []
    command += [f"tests/test_{trainer}_trainer.py" for trainer in trainers]
    environment = {
        **os.environ,
        "MIXWRIGHT_TRL_OWN": mode,
        "MIXWRIGHT_TRL_OWN_OUT": str(out),
        "HF_HOME": str(scratch / "home"),
        "HF_HUB_OFFLINE": "1",
        "TOKENIZERS_PARALLELISM": "false",
        "OMP_NUM_THREADS": "1",
        "PYTHONPATH": os.pathsep.join([str(HERE), os.environ.get("PYTHONPATH", "")]),
    }
    with (out / "log.txt").open("w") as log:
        subprocess.run(command, cwd=scratch / "source", env=environment, stdout=log, stderr=subprocess.STDOUT, check=False)
    found: Results = {}
    for case in xml.parse(out / "results.xml").getroot().iter("testcase"):
        name = f"{case.get('classname')}::{case.get('name')}".removeprefix("tests.")
        bad = case.find("failure") if case.find("failure") is not None else case.find("error")
        skipped = case.find("skipped")
        if bad is not None:
            found[name] = ("failed", bad.get("message") or "")
        elif skipped is not None:
            found[name] = ("skipped", skipped.get("message") or "")
        else:
            found[name] = ("passed", "")
    return found, sum(int(path.read_text()) for path in out.glob("built-*"))


def reason(text: str) -> str:
    """The first line of a skip's reason, without what differs from test to test."""
    text = re.sub(r"^Skipped: |^unconditional skip: ?", "", text.strip().splitlines()[0] if text.strip() else "no reason")
    return re.sub(r"refused under steering: expected (.*?), got .*", r"refused under steering: \1 expected", text)[:140]


def report(mode: str, found: Results, baseline: Results, built: int) -> list[str]:
    """Print the counts; returns the tests that fail here and pass with TRL's classes."""
    counts = Counter(outcome for outcome, _ in found.values())
    shown = ", ".join(f"{counts[name]} {name}" for name in ("passed", "failed", "skipped"))
    print(f"\n{mode}: {shown}; {built} trainers of ours")
    for why, count in Counter(reason(why) for outcome, why in found.values() if outcome == "skipped").most_common():
        print(f"  skipped {count:3d}: {why}")
    failed = [name for name, (outcome, _) in found.items() if outcome == "failed"]
    ours = [name for name in failed if baseline.get(name, ("passed", ""))[0] == "passed"]
    for name in failed:
        also = "" if mode == "trl" else ("  FAILS WITH OURS ALONE" if name in ours else "  (TRL's own fails too)")
        print(f"  failed: {name}: {found[name][1][:110].splitlines()[0] if found[name][1] else ''}{also}")
    return [] if mode == "trl" else ours


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--source", type=Path, required=True, help="a TRL source checkout")
    parser.add_argument("--trainer", choices=("sft", "dpo", "grpo"), action="append", help="default: all three")
    parser.add_argument("--modes", nargs="+", choices=("trl", "ours", "steered"), default=["trl", "ours", "steered"])
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--select", help="handed to pytest -k")
    parser.add_argument("--keep", type=Path, help="keep logs and results in this folder")
    given = parser.parse_args()
    trainers = given.trainer or ["sft", "dpo", "grpo"]
    scratch = Path(tempfile.mkdtemp(prefix="trl_own_"))
    (scratch / "source").mkdir()
    shutil.copytree(given.source / "tests", scratch / "source" / "tests")
    os.environ["HF_HUB_OFFLINE"] = "1"
    sys.path.insert(0, str(HERE))
    import trl_own_hub

    trl_own_hub.fill_cache(scratch / "home")
    versions = {name: version(name) for name in ("trl", "transformers", "torch")}
    tests = (given.source / "VERSION").read_text().strip() if (given.source / "VERSION").exists() else "unknown"
    print(f"tests of TRL {tests} on {', '.join(f'{name} {number}' for name, number in versions.items())}")
    baseline: Results = {}
    summary: dict[str, object] = {"name": "trl_own", "tests": tests, **versions}
    bad: list[str] = []
    for mode in given.modes:
        found, built = run(mode, scratch, trainers, given.workers, given.select)
        baseline = found if mode == "trl" else baseline
        bad += report(mode, found, baseline, built)
        summary[mode] = {**Counter(outcome for outcome, _ in found.values()), "trainers": built}
    summary["ours_alone"] = bad
    if given.keep:
        shutil.copytree(scratch, given.keep, dirs_exist_ok=True, ignore=shutil.ignore_patterns("temp", "home", "source"))
    shutil.rmtree(scratch, ignore_errors=True)
    print(json.dumps(summary))
    sys.exit(1 if bad else 0)


if __name__ == "__main__":
    main()
