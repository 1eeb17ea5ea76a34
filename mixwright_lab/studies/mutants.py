"""Study of the tests by mutation: 120 times one token of a module that decides is changed, and its tests are run.

cosmic-ray makes each mutant in a clone of the last commit and runs pytest there, until a test fails or `SECONDS` are over:
both count as noticed. Asked are the test files that name the module (a plug-in by its name), those of its folder where none
does, but for those that train models or start programs. The sample is drawn by hash, so that other edits leave a token
drawn. What no test can notice stands with its reason in `equivalent_mutants.yaml` and is left out of the share.
"""

from __future__ import annotations

import ast
import hashlib
import re
import shutil
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

import yaml

from mixwright.estimates.intervals import share_interval
from mixwright_lab.studies.report import Goal, Result, run

ROOT = Path(__file__).parents[2]
CLONE = ROOT / "build" / "mutants"
EQUIVALENT = Path(__file__).parent / "equivalent_mutants.yaml"
MODULES = (
    *("estimates/*", "audit/checks/*", "plan/planners/*", "verdict/rules/cells", "verdict/rules/gate"),
    *(f"audit/{name}" for name in ("chance", "leaks", "near_duplicates")),
    *("audit/wrapped", "plan/cells", "plan/validate", "plan/baseline"),
    "steer/selectors/*",
    *(f"steer/{name}" for name in ("gates", "controllers", "engine", "ledger", "policy")),
    *(f"trial/{name}" for name in ("effects", "summary", "seed_rows")),
)
"""Under `mixwright/`."""
NOT_ASKED = re.compile(
    r"test_(trainers|study|studies|grpo|dpo|sft|train_settings|layout|slim|page_browser|learner|learning|examples"
    r"|selectors_trl|slow_graders|corpus_scale|uncaught|system_errors|plugin_package|skeleton|wrong_settings"
    r"|cli|hostile_folders|workers)"
)
"""Test files that train models, start programs, draw pages or look at the tree: minutes, and no test of one decision."""
PAIRS = {
    "Binary": "Add_Sub Sub_Add Mul_Div Div_Mul FloorDiv_Mul Mod_Mul Pow_Mul",
    "Comparison": "Lt_LtE Lt_GtE LtE_Lt LtE_Gt Gt_GtE Gt_LtE GtE_Gt GtE_Lt Eq_NotEq NotEq_Eq Is_IsNot IsNot_Is",
    "Unary": "USub_UAdd Delete_USub Delete_Not Delete_Invert",
}
"""The others that cosmic-ray knows mostly raise a TypeError, which any test would find."""
OPERATORS = (
    *(f"Replace{kind}Operator_{pair}" for kind, pairs in PAIRS.items() for pair in pairs.split()),
    *("ReplaceTrueWithFalse", "ReplaceFalseWithTrue", "ReplaceAndWithOr", "ReplaceOrWithAnd", "AddNot", "NumberReplacer"),
    *("ReplaceBreakWithContinue", "ReplaceContinueWithBreak", "ZeroIterationForLoop", "ExceptionReplacer"),
)
COUNT, SEED, QUICK, SECONDS, FILES, GOAL = 120, 0, 4, 300.0, 8, 0.9


def sources() -> dict[str, str]:
    """Path -> text of every module that decides."""
    found = {path for name in MODULES for path in (ROOT / "mixwright").glob(f"{name}.py") if path.name != "__init__.py"}
    return {str(path.relative_to(ROOT)): path.read_text(encoding="utf-8") for path in sorted(found)}


def asked_of(module: str) -> list[str]:
    """The test files that are asked about a module."""
    folder, stem = Path(module).with_suffix("").parts[-2:]
    paths = [path for path in sorted((ROOT / "tests").glob("test_*.py")) if not NOT_ASKED.match(path.name)]
    texts = {f"tests/{path.name}": path.read_text(encoding="utf-8") for path in paths}
    named = (rf"\b{folder}\.{stem}\b", rf"[\"']{stem}[\"']", rf"\b{folder}\b")
    found = ([name for name, text in texts.items() if re.search(words, text)] for words in named)
    return next(filter(None, found))[:FILES]


def spots(module: str, source: str) -> Iterator[tuple[str, int, Any]]:
    """Each line and column, both without indentation, with a change there; none in annotations, messages and decorators."""
    left_out: set[int] = set()
    for node in ast.walk(ast.parse(source)):
        inert = [node] if isinstance(node, ast.JoinedStr | ast.Raise) else [*getattr(node, "decorator_list", ())]
        inert += [part for name in ("annotation", "returns") if (part := getattr(node, name, None)) is not None]
        left_out |= {line for part in inert for line in range(part.lineno, (part.end_lineno or 0) + 1)}
    trees, change = import_module("cosmic_ray.ast"), import_module("cosmic_ray.work_item").MutationSpec
    lines, nodes = source.splitlines(), list(trees.ast_nodes(trees.get_ast(source)))
    for name in (f"core/{name}" for name in OPERATORS):
        operator = import_module("cosmic_ray.plugins").get_operator(name)()
        places = (place for node in nodes for place in operator.mutation_positions(node))
        for occurrence, (start, end) in enumerate(places):
            if start[0] not in left_out:
                indent = len(lines[start[0] - 1]) - len(was := lines[start[0] - 1].lstrip())
                yield was.rstrip(), start[1] - indent, change(module, name, occurrence, start, end)


def sample(found: Iterable[tuple[str, int, Any]], count: int, seed: int) -> list[Any]:
    """`count` tokens, drawn evenly, and one change of each."""

    def rank(*words: object) -> str:
        return hashlib.sha256("\0".join(map(str, (seed, *words))).encode()).hexdigest()

    tokens: dict[tuple[str, str, int], list[Any]] = {}
    for line, column, change in found:
        tokens.setdefault((str(change.module_path), line, column), []).append(change)
    chosen = sorted(tokens.items(), key=lambda token: rank(*token[0]))[:count]
    return [min(all_of, key=lambda one: rank(*token, one.operator_name)) for token, all_of in chosen]


def ask(change: Any, place: Path) -> dict[str, Any]:
    """What the tests say of a mutant that is made in a clone."""
    module = str(change.module_path)
    own = import_module("attrs").evolve(change, module_path=place / module)
    words = ("env", "-C", str(place), f"PYTHONPATH={place}", "OMP_NUM_THREADS=1", sys.executable, "-m", "pytest", "-q", "-x")
    command = (*words, "-p", "no:cacheprovider", "-m", "'not slow'", "--tb=line", *asked_of(module))
    told = import_module("cosmic_ray.mutating").mutate_and_test([own], " ".join(command), SECONDS)
    diff = [line for line in (told.diff or "").splitlines() if not line.startswith(("+++", "---"))]
    was, becomes = (" ".join(line[1:].strip() for line in diff if line.startswith(sign)) for sign in "-+")
    outcome = str((told.test_outcome or told.worker_outcome).value)
    because = next((line for line in (told.output or "").splitlines() if line.startswith(("FAILED ", "ERROR "))), "")
    print(f"{outcome:<9} {module}:{change.start_pos[0]}  {was}  ->  {becomes}", flush=True)
    return {"module": module, "was": was, "becomes": becomes, "outcome": outcome, "because": because[:300]}


def measure(quick: bool) -> Result:
    """The share of mutants that were noticed, of those that are not equivalent."""
    shutil.rmtree(CLONE, ignore_errors=True)
    subprocess.run(["git", "clone", "-q", "--shared", str(ROOT), str(CLONE)], check=True)
    every = (spot for module, text in sources().items() for spot in spots(module, text))
    rows = [ask(change, CLONE) for change in sample(every, QUICK if quick else COUNT, SEED)]
    return judged(rows, yaml.safe_load(EQUIVALENT.read_text(encoding="utf-8")))


def judged(rows: Sequence[Mapping[str, Any]], equivalent: Sequence[Mapping[str, str]]) -> Result:
    """The share that was noticed. Raises ValueError where one that is called equivalent was noticed, or one did not run."""
    reasons = {(one["module"], one["was"], one["becomes"]): one["reason"] for one in equivalent}
    rows = [row | {"equivalent": reasons.get((row["module"], row["was"], row["becomes"]), "")} for row in map(dict, rows)]
    if wrong := [row for row in rows if row["outcome"] not in ("survived", *([] if row["equivalent"] else ["killed"]))]:
        raise ValueError(f"called equivalent, but noticed; or not run: {wrong}")
    told = [row["outcome"] for row in rows if not row["equivalent"]]
    share = share_interval(told.count("killed"), len(told))
    figures = {"mutants": len(rows), "equivalent": len(rows) - len(told), "survived": told.count("survived")}
    goal = Goal.at_least("mutants noticed, of those that are not equivalent", share, GOAL)
    return Result(share, "share of mutants that a test notices", [SEED], rows, figures, {"files": FILES}, goals=[goal])


if __name__ == "__main__":
    run("mutants", __doc__, measure)
