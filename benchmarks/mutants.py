"""Benchmark of the tests by mutation: 120 times one token of a module that decides is changed, and its tests are run.

Each mutant is made in a copy of the tree. The tests that ran its line when nothing was changed are run, those that import
the module first and of these the quickest first, up to 15 CPU seconds of them; a line that runs at import is tested by
whatever runs the module. A test that fails, or takes several times its time, has noticed. What no test can notice is
listed with the reason in `equivalent_mutants.yaml` and left out of the share. A run that was stopped goes on where it was;
a later one takes over what was noticed in a module that is the same by a test that is the same, and asks again about what
survived other tests. Tests that train a model are not asked: a mutant that only they would notice counts as
missed. `make mutants` sets up what it needs; about half an hour on two cores. After MUTANTS_MINUTES, where set, none
is begun: the result then holds those that were judged from the first of the sample on, says that it is cut, and reaches
no goal.
"""

from __future__ import annotations

import ast
import hashlib
import itertools
import json
import math
import os
import re
import resource
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Collection, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from importlib import import_module
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from queue import SimpleQueue
from typing import Any

from benchmarks._mutant_tests import FILE
from benchmarks._mutations import Mutant, equivalent, made, mutated, record, sample, spots
from benchmarks._report import Goal, Result, run
from mixwright.estimates.intervals import share_interval

ROOT = Path(__file__).parent.parent
KEPT = ROOT / "build" / "mutants"
EQUIVALENT = Path(__file__).parent / "equivalent_mutants.yaml"
MODULES = (
    *("estimates/*", "audit/checks/*", "plan/planners/*"),
    *(
        f"audit/{name}"
        for name in ("case", "chance", "leaks", "near_duplicates", "overlap", "repeats", "siblings", "wrapped")
    ),
    *(f"plan/{name}" for name in ("cells", "forecast", "validate", "baseline")),
    *(f"steer/{kind}/*" for kind in ("selectors", "gates", "controllers", "monitors")),
    *(f"steer/{name}" for name in ("engine", "ledger", "policy", "answers", "canaries", "snapshot", "task_order")),
    *(f"trial/{name}" for name in ("effects", "judging", "paired_statistics", "summary", "seed_rows")),
    *("verdict/claims", "verdict/gate"),
)
"""Under `mixwright/`."""
NOT_ASKED = re.compile(
    r"test_(trainers|benchmark|grpo|dpo|sft|train_settings|layout|slim|page_browser|lints|learner|learning|examples"
    r"|selectors_trl|slow_graders|corpus_scale|uncaught|system_errors|plugin_package|skeleton|wrong_settings"
    r"|cli|hostile_folders|verdict_page|verdict_trial|trial_pool)"
)
"""Test files that train models, start programs, draw pages or look at the tree: minutes, and no test of one decision."""
COUNT, SEED, QUICK = 120, 0, 8
BUDGET, FILES = 15.0, 8
"""CPU seconds of tests per mutant, and test files, which take about a second each to import."""
PROCESSES = 2
MINUTES = "MUTANTS_MINUTES"
"""Environment variable."""
TOO_LONG = (-signal.SIGXCPU, -signal.SIGKILL)
TOOLS = ("cosmic-ray", "coverage", "pytest", "hypothesis")
GOAL = 0.9


def sources() -> dict[str, str]:
    """Path -> text of every module that decides."""
    found = {path for name in MODULES for path in (ROOT / "mixwright").glob(f"{name}.py") if path.name != "__init__.py"}
    return {str(path.relative_to(ROOT)): path.read_text(encoding="utf-8") for path in sorted(found)}


def asked(modules: Collection[str] = ()) -> list[str]:
    """The test files that are asked; only those that import one of some modules, when there are any."""
    found = {
        f"tests/{path.name}": path for path in sorted((ROOT / "tests").glob("test_*.py")) if not NOT_ASKED.match(path.name)
    }
    return [name for name, path in found.items() if not modules or any(imports(path.read_text(), of) for of in modules)]


def imports(text: str, module: str) -> bool:
    """Whether a test file names a module."""
    return re.search(rf"\b{re.escape(module.removesuffix('.py').replace('/', '.'))}\b", text) is not None


def copy(place: Path) -> Path:
    """A fresh copy of what git knows of the tree, with its changes."""
    shutil.rmtree(place, ignore_errors=True)
    names = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"], cwd=ROOT, capture_output=True, check=True
    )
    for name in filter(None, names.stdout.decode().split("\0")):
        if (ROOT / name).is_file() and not name.startswith("benchmarks/results"):
            (place / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, place / name)
    return place


def clone(place: Path, other: Path) -> Path:
    """A copy of a copy, with what was compiled."""
    shutil.rmtree(other, ignore_errors=True)
    return Path(shutil.copytree(place, other))


def digest(*texts: str) -> str:
    """Of some texts, brief."""
    return hashlib.sha256("\0".join(texts).encode("utf-8", "surrogatepass")).hexdigest()[:16]


def versions(place: Path, modules: Mapping[str, str]) -> dict[str, str]:
    """Digest of each module that decides, with what tests share: an outcome is not taken over where either has changed."""
    paths = [path for path in sorted((place / "tests").glob("**/*.py")) if not path.name.startswith("test_")]
    shared = [path.read_text(encoding="utf-8") for path in paths]
    return {name: digest(text, *shared) for name, text in modules.items()}


def sources_of_tests(text: str) -> dict[str, str]:
    """Name -> source of every function of a test file, its decorators included."""
    lines, found = text.splitlines(), {}
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            first = min([node.lineno, *(word.lineno for word in node.decorator_list)])
            found[node.name] = "\n".join(lines[first - 1 : node.end_lineno])
    return found


def python(place: Path, *words: str, seconds: int = 3600, **more: str) -> tuple[int | None, str]:
    """Exit status and output of Python in a copy; no status when it had not ended after so many CPU seconds.

    CPU time, so that a busy machine makes no test late; ten times as long by the clock, for those that wait for ever.
    """
    given = {"PYTHONPATH": str(place), "OMP_NUM_THREADS": "1", **more}
    with subprocess.Popen(
        [sys.executable, *words], cwd=place, env=os.environ | given, text=True, errors="replace", start_new_session=True,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL,
    ) as child:  # fmt: skip
        resource.prlimit(child.pid, resource.RLIMIT_CPU, (seconds, seconds))
        try:
            said, _ = child.communicate(timeout=10 * seconds)
            return (None if child.returncode in TOO_LONG else child.returncode), said
        except subprocess.TimeoutExpired:
            os.killpg(child.pid, signal.SIGKILL)  # its workers, too: it leads a session of its own
            return None, child.communicate()[0]


PYTEST = ("-m", "pytest", "-q", "-p", "no:cacheprovider", "-m", "not slow", "--tb=line")


class LineTests:
    """What each test takes and which lines it runs, found by running all of them once, nothing changed."""

    def __init__(self, place: Path, kept: Path, names: Sequence[str]) -> None:
        self._place, self._kept, self.seconds, self.lines = place, kept, {}, {}
        kept.mkdir(parents=True, exist_ok=True)
        with ThreadPoolExecutor(PROCESSES) as threads:
            for name, found in zip(names, threads.map(self._run, names), strict=True):
                self.seconds |= found
                print(f"{name}: {len(found)} tests, {sum(found.values()):.1f} s", flush=True)
        self._texts = {name: (place / name).read_text(encoding="utf-8") for name in names}
        self._sources = {name: sources_of_tests(text) for name, text in self._texts.items()}
        for name in names:
            self._read(name)

    def _run(self, name: str) -> dict[str, float]:
        """Seconds of the tests of a file, its lines in a data file beside."""
        times, data = self._files(name)
        if not times.is_file():
            words = ("-m", "coverage", "run", f"--data-file={data}", "--source=mixwright", *PYTEST)
            status, said = python(self._place, *words, "-p", "benchmarks._mutant_tests", name, MUTANT_TESTS=str(times))
            if not times.is_file():
                raise RuntimeError(f"{name} did not run (exit status {status}): {said[-2000:]}")
        return json.loads(times.read_text(encoding="utf-8"))

    def _files(self, name: str) -> tuple[Path, Path]:
        """Where the times and the lines of a test file are kept, as long as it does not change."""
        stem = f"{Path(name).stem}-{digest((self._place / name).read_text(encoding='utf-8'))}"
        return self._kept / f"{stem}.json", self._kept / f"{stem}.coverage"

    def source(self, tests: Iterable[str]) -> str:
        """Digest of the source of some tests, named as pytest does."""
        names = (test.partition("[")[0] for test in tests)
        parts = sorted({(name.partition("::")[0], name.rpartition("::")[2]) for name in names})
        return digest(*(self._sources.get(file, {}).get(name, "") for file, name in parts))

    def _read(self, name: str) -> None:
        data = import_module("coverage").CoverageData(str(self._files(name)[1]))
        data.read()
        for path in data.measured_files():
            module = str(Path(path).relative_to(self._place))
            for line, contexts in data.contexts_by_lineno(path).items():
                self.lines.setdefault((module, line), set()).update(filter(None, contexts))

    def of(self, module: str, line: int) -> list[str]:
        """The tests to be run for a line, those that import the module first, then the quickest."""
        contexts = self.lines.get((module, line)) or set().union(
            *(found for place, found in self.lines.items() if place[0] == module)
        )
        files = {name.removesuffix(FILE) for name in contexts if name.endswith(FILE)}
        tests = [test for test in self.seconds if test in contexts or test.partition("::")[0] in files]
        own = {name for name, text in self._texts.items() if imports(text, module)}
        tests.sort(key=lambda test: (test.partition("::")[0] not in own, self.seconds[test], test))
        chosen, spent, used = [], 0.0, set()
        for test in tests:
            file = test.partition("::")[0]
            if (chosen and spent + self.seconds[test] > BUDGET) or (file not in used and len(used) == FILES):
                continue
            chosen, spent, used = [*chosen, test], spent + self.seconds[test], used | {file}
        return chosen


class Runner:
    """Makes mutants in copies of the tree and asks the tests."""

    def __init__(
        self, places: Sequence[Path], tests: LineTests, kept: Path, code: Mapping[str, str], minutes: float = math.inf
    ) -> None:
        self._free: SimpleQueue[Path] = SimpleQueue()
        for place in places:
            self._free.put(place)
        self._tests, self._kept, self._code, self._until = tests, kept, code, time.monotonic() + 60 * minutes
        lines = self._kept.read_text(encoding="utf-8").splitlines() if self._kept.is_file() else []
        self._known = {(row["module"], row["was"], row["becomes"]): row for row in map(json.loads, lines)}

    def row(self, mutant: Mutant) -> dict[str, Any]:
        """What became of a mutant, from an earlier run where that still holds; no outcome when the time is up."""
        if not self._holds(mutant):
            if time.monotonic() > self._until:
                return record(mutant) | {"outcome": None}
            place = self._free.get()
            try:
                self._known[mutant.key] = record(mutant) | self._ask(mutant, place) | {"code": self._code[mutant.module]}
            finally:
                self._free.put(place)
            with self._kept.open("a", encoding="utf-8") as file:
                file.write(json.dumps(self._known[mutant.key]) + "\n")
        row = self._known[mutant.key]
        print(f"{row['outcome']:<9} {mutant.module}:{mutant.line}  {mutant.was}  ->  {mutant.becomes}", flush=True)
        return row

    def _holds(self, mutant: Mutant) -> bool:
        """Whether its module is the same, and the test that noticed it; where none did, all tests that are asked."""
        row = self._known.get(mutant.key)
        if row is None or row["code"] != self._code[mutant.module]:
            return False
        by = noticed_by(row["because"])
        return row["source"] == self._tests.source([by] if by else self._tests.of(mutant.module, mutant.line))

    def _ask(self, mutant: Mutant, place: Path) -> dict[str, Any]:
        tests = self._tests.of(mutant.module, mutant.line)
        if not tests:
            return {"outcome": "survived", "tests": 0, "seconds": 0.0, "because": "no test runs it", "source": digest()}
        path, start = place / mutant.module, time.monotonic()
        source = path.read_text(encoding="utf-8")
        asks, allowed = (*PYTEST, "-x"), 20 + 3 * int(sum(self._tests.seconds[test] for test in tests))
        path.write_text(mutated(source, mutant.operator, mutant.occurrence), encoding="utf-8")
        for compiled in (path.parent / "__pycache__").glob(f"{path.stem}.*"):
            compiled.unlink()  # it is told from the source by time and size, which may be the same
        try:
            status, said = python(place, *asks, *tests, seconds=allowed, PYTHONDONTWRITEBYTECODE="1")
            if status == 4:  # a test of that name is gone: names may be made of what was changed
                files = dict.fromkeys(test.partition("::")[0] for test in tests)
                status, said = python(place, *asks, *files, seconds=allowed, PYTHONDONTWRITEBYTECODE="1")
        finally:
            path.write_text(source, encoding="utf-8")
        because = next((line for line in said.splitlines() if line.startswith(("FAILED ", "ERROR "))), "")
        outcome = "survived" if status == 0 else "timeout" if status is None else "killed"
        seconds = round(time.monotonic() - start, 1)
        by = noticed_by(because)
        source = self._tests.source([by] if by else tests)
        return {"outcome": outcome, "tests": len(tests), "seconds": seconds, "because": because[:300], "source": source}


def noticed_by(because: str) -> str:
    """The test that failed, as pytest names it; empty where a whole file did, or none."""
    found = re.match(r"FAILED (\S+::.*?)(?: - |$)", because)
    return found[1] if found else ""


def unfair(rows: Sequence[dict[str, Any]], place: Path) -> list[str]:
    """Tests that noticed a mutant, but fail in a fresh copy with nothing changed, too."""
    names = set(filter(None, (noticed_by(row["because"]) for row in rows)))
    if not names:
        return []
    _, said = python(place, *PYTEST, *sorted(names))
    return [line for line in said.splitlines() if line.startswith(("FAILED ", "ERROR "))]


def measure(quick: bool) -> Result:
    """All of it; the headline is the share of mutants that were noticed."""
    texts = sources()
    found = sample((s for module, text in texts.items() for s in spots(module, text)), QUICK if quick else COUNT, SEED)
    drawn = [made(spot, texts[spot.module]) for spot in found]
    place = copy(KEPT / "copy0")
    code = versions(place, texts)
    kept = KEPT / digest(*code.values())
    tests = LineTests(place, kept, asked({mutant.module for mutant in drawn} if quick else ()))
    places = [place, *(clone(place, KEPT / f"copy{number}") for number in range(1, PROCESSES))]
    told = KEPT / ("quick.jsonl" if quick else "rows.jsonl")  # a quick run asks fewer tests
    runner = Runner(places, tests, told, code, float(os.environ.get(MINUTES, "inf")))
    with ThreadPoolExecutor(PROCESSES) as threads:
        rows = list(itertools.takewhile(lambda row: row["outcome"] is not None, threads.map(runner.row, drawn)))
    if wrong := unfair(rows, place):
        raise RuntimeError(f"these fail without a change: {wrong}")
    reasons = equivalent(EQUIVALENT)
    rows = [row | {"equivalent": reasons.get((row["module"], row["was"], row["becomes"]), "")} for row in rows]
    return judged(rows, len(drawn))


def judged(rows: Sequence[dict[str, Any]], sampled: int) -> Result:
    """The share that was noticed, of those that are not equivalent.

    Args:
        rows: of the mutants judged.
        sampled: how many were drawn; with fewer rows the result is cut.

    Raises:
        ValueError: one that is called equivalent was noticed.
    """
    if wrong := [row for row in rows if row["equivalent"] and row["outcome"] != "survived"]:
        raise ValueError(f"called equivalent, but noticed: {wrong}")
    told = [row for row in rows if not row["equivalent"]]
    noticed = [row for row in told if row["outcome"] != "survived"]
    share = share_interval(len(noticed), len(told))
    by_error = sum("Error" in row["because"] and "AssertionError" not in row["because"] for row in noticed)
    figures = {
        "mutants": len(rows),
        "sampled": sampled,
        "cut": len(rows) < sampled,
        "equivalent": len(rows) - len(told),
        "killed": sum(row["outcome"] == "killed" for row in told),
        "of them by an error, not an assertion": by_error,
        "timeout": sum(row["outcome"] == "timeout" for row in told),
        "survived": len(told) - len(noticed),
    }
    used = {name: version(name) for name in TOOLS if find_spec(name.replace("-", "_"))}
    settings = {"seed": SEED, "modules": list(MODULES), "CPU seconds of tests per mutant": BUDGET, "tools": used}
    reached, cut = share.value >= GOAL and len(rows) == sampled, f" (cut: the first {len(rows)} of {sampled})"
    goal = Goal("mutants noticed, of those that are not equivalent", share, f">= {GOAL}", reached)
    unit = "share of mutants that a test notices" + (cut if len(rows) < sampled else "")
    return Result(share, unit, [SEED], rows, figures, settings, goals=[goal])


if __name__ == "__main__":
    run("mutants", __doc__, measure)
