"""Small runs recorded by value, to show that a change of names or files changed no result.

`python -m tests.recorded_runs record FOLDER [--tree TREE]` does small runs of every kind with the package of TREE (this
checkout, or a `git worktree` of an earlier commit) and writes what they left to FOLDER/values.json: GRPO with every arm
of a trial, SFT, DPO, miners, planners, exports, a comparison with the gate, the trainers without steering, with the default
one and with a plan, and a GRPO run that is killed after a save and resumed.
`python -m tests.recorded_runs compare A B` compares two such folders and exits with 1 where a value differs. Times, paths,
versions and digests of settings are left out. About three minutes of one core.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
UNLIKE = re.compile(
    r"/(created|command|versions?|digest|commit|price|pace|inventory|made_of)\b|seconds|memory|runtime|per_second|step_time|bytes$|/manifest\.json/parent$"
)
"""Paths whose values say when, where and with which version, and not what came out."""
TIMES = re.compile(
    r"\d{4}-\d\d-\d\dT[\d:.+]+|"
    r"[\d.,]+(?= (CPU )?(seconds|s\b|minutes?\b|min\b|hours?\b|tokens per second|MB|GB))"
)
"""Moments, and numbers in sentences that a clock or a memory gave."""
SILENT = {"tokenizer.json"}
"""Files that are not read, beside those of other kinds, as logs."""
VECTOR = 16
"""Numbers in a cell of a table above which they are compared as one."""
SHOWN = 25
"""Differences that are printed per file."""


class _Sentences(HTMLParser):
    """What a reader sees of a page, piece by piece."""

    def __init__(self) -> None:
        super().__init__()
        self.pieces: Counter[str] = Counter()
        self._hidden = 0

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        self._hidden += tag in ("style", "script")

    def handle_endtag(self, tag: str) -> None:
        self._hidden -= tag in ("style", "script")

    def handle_data(self, data: str) -> None:
        if not self._hidden and data.strip():
            self.pieces[" ".join(data.split())] += 1


def content(path: Path) -> Any:
    """What a file holds, as JSON has it; None for one that says nothing of a result."""
    import yaml

    if path.name in SILENT:
        return None
    if path.suffix in (".safetensors", ".npz", ".bin"):
        return hashlib.sha256(path.read_bytes()).hexdigest() if path.suffix == ".safetensors" else None
    if path.suffix == ".parquet":
        import pyarrow.parquet as pq

        columns = pq.read_table(path).to_pydict()
        return {name: [shortened(value) for value in column] for name, column in columns.items()}
    text = path.read_text(encoding="utf-8", errors="replace") if path.suffix in (".json", ".jsonl", ".yaml", ".html") else ""
    if path.suffix == ".json":
        return json.loads(text)
    if path.suffix == ".jsonl":
        return [json.loads(line) for line in text.splitlines()]
    if path.suffix == ".yaml":
        return yaml.safe_load(text)
    if path.suffix == ".html":
        page = _Sentences()
        page.feed(text)
        return dict(page.pieces)
    return None


def shortened(value: Any) -> Any:
    """A vector (a gradient's sketch, a hidden state) as its digest; any other value as it is."""
    long = isinstance(value, list) and len(value) > VECTOR
    return hashlib.sha256(json.dumps(value).encode()).hexdigest() if long else value


def flat(data: Any, path: str) -> Iterator[tuple[str, Any]]:
    """Every single value of nested data, with its path."""
    if isinstance(data, Mapping):
        for key, value in data.items():
            yield from flat(value, f"{path}/{key}")
    elif isinstance(data, list):
        yield f"{path}/length", len(data)
        for place, value in enumerate(data):
            yield from flat(value, f"{path}/{place}")
    else:
        yield path, data


def values(folder: Path) -> dict[str, Any]:
    """Path -> value of all that the runs in a folder left, without times and places."""
    found: dict[str, Any] = {}
    for path in sorted(folder.rglob("*")):
        data = content(path) if path.is_file() else None
        if data is None:
            continue
        for name, value in flat(data, str(path.relative_to(folder))):
            if not UNLIKE.search(name):
                found[TIMES.sub("#", name)] = stripped(value, folder)
    return found


def stripped(value: Any, folder: Path) -> Any:
    """A value without what the clock and the place gave to its text."""
    if isinstance(value, str):
        return TIMES.sub("#", value.replace(str(folder), "FOLDER"))
    return value if isinstance(value, int | float | bool | None) else str(value)


def record(folder: Path, tree: Path, parts: Sequence[str]) -> None:
    """Do the runs with the package of `tree`, and write their values. Raises CalledProcessError when one cannot be done."""
    runs = folder / "runs"
    runs.mkdir(parents=True)
    own = {"OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1", "HF_DATASETS_OFFLINE": "1", "TOKENIZERS_PARALLELISM": "false"}
    own |= {"PYTHONHASHSEED": "0"}  # PEFT writes a set, in its order
    command = [sys.executable, "-P", str(HERE / "_recorded_run.py"), *parts]
    with (folder / "output.txt").open("w", encoding="utf-8") as output:
        environment = os.environ | own | {"PYTHONPATH": str(tree.resolve())}
        subprocess.run(command, cwd=runs, env=environment, stdout=output, stderr=subprocess.STDOUT, check=True)
    found = values(runs.resolve())
    (folder / "values.json").write_text(json.dumps(found, indent=0), encoding="utf-8")
    cpu = os.times().children_user + os.times().children_system
    print(f"{len(found):,} values in {folder}; {cpu:.0f} CPU seconds")


def differences(one: Mapping[str, Any], other: Mapping[str, Any]) -> dict[str, tuple[Any, Any]]:
    """Path -> both values, where they differ or one is missing."""
    missing = "(missing)"
    pairs = {path: (one.get(path, missing), other.get(path, missing)) for path in {**one, **other}}
    return {path: (a, b) for path, (a, b) in pairs.items() if a != b or type(a) is not type(b)}


def compare(one: Path, other: Path) -> int:
    """Print how many values are equal and which are not; 1 where some are not."""
    here, there = (json.loads((folder / "values.json").read_text(encoding="utf-8")) for folder in (one, other))
    found = differences(here, there)
    both = len(here.keys() & there.keys())
    for part in dict.fromkeys(path.split("/")[0] for path in {**here, **there}):
        count = sum(path.split("/")[0] == part for path in here)
        print(f"{part}: {count:,} values, {sum(path.split('/')[0] == part for path in found):,} different")
    shown: Counter[str] = Counter()
    for path, (a, b) in found.items():
        file = re.split(r"(?<=\.json)/|(?<=\.jsonl)/|(?<=\.yaml)/|(?<=\.parquet)/|(?<=\.html)/", path)[0]
        shown[file] += 1
        if shown[file] <= SHOWN:
            print(f"  {path}: {a!r:.160} -> {b!r:.160}")
    for file, count in shown.items():
        if count > SHOWN:
            print(f"  {file}: {count - SHOWN:,} more")
    kinds = Counter(type(value).__name__ for value in here.values()).most_common()
    print(f"{both:,} values compared ({', '.join(f'{n:,} {kind}' for kind, n in kinds)}), {len(found):,} different")
    return 1 if found else 0


def main() -> int:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    verbs = parser.add_subparsers(dest="verb", required=True)
    recording = verbs.add_parser("record", help="do the runs and write FOLDER/values.json")
    recording.add_argument("folder", type=Path)
    recording.add_argument("--tree", type=Path, default=HERE.parent, help="checkout whose package is run")
    recording.add_argument("--parts", nargs="*", default=(), help="only these: graded targets pairs facts compared trainers")
    comparing = verbs.add_parser("compare", help="compare two recordings")
    comparing.add_argument("folders", type=Path, nargs=2)
    given = parser.parse_args()
    if given.verb == "compare":
        return compare(*given.folders)
    record(given.folder, given.tree, given.parts)
    return 0


if __name__ == "__main__":
    sys.exit(main())
