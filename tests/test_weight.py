"""The weight of the code: nodes of the syntax tree of .py, and lines of .html, .js, .css and .yaml, by top package.

A ratchet. A change that makes a package heavier raises its number here and says in one line what users get for it; one that
makes it lighter lowers the number. Files are printed, not limited. Packing lines does not help: nodes are counted.

    python tests/test_weight.py     prints the table (`make check` does)
"""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
LIMITS = {
    "mixwright": 427_000,
    "mixwright_extras": 89_500,
    "mixwright_lab": 227_300,
    "tests": 483_100,
}
"""Package -> most nodes and lines that it may have."""
RAISED: tuple[str, ...] = (
    "mixwright +1,000, tests +700: twenty wrong results, crashes and refused next commands that three readers found",
    "mixwright_lab +3,500: a positive control for every finding, cards on known answers, subtasks and procedures",
    "mixwright +700, tests +1,100: what a tester showed to be false of languages, questions, refusals and constant labels; "
    "length explains a loss only if nearly all of it shows it, and an answer is forgotten only where its form is as it was",
    "mixwright +200, tests +200: an interim analysis grades new answers alone; mixwright_lab +2,000: the study of questions "
    "back, and replay by kind",
    "mixwright_lab +14,300: cards on six more findings; studies of remedies, of the map and of skills used together",
    "mixwright_extras +200: what only its miners use of short trainings; tests +400: formats of commands",
    "mixwright +4,900, tests +2,500, mixwright_lab +1,980: a model judges free text, corrected by labels; graded scores",
    "mixwright +930, tests +930: combinations of skills; +1,300: tool calls in further forms, a ninth sealed family",
    "mixwright_lab +8,950: planted runs for `review`, by an author who had not seen its rules",
    "mixwright +4,700, tests +5,000: `review` answers five questions about a run and has a row for each of 28 findings",
    "mixwright +3,900, tests +1,700: `plan --minutes` says what rows teach and whom they cost; the section of the probe "
    "`transfer` is gone (extras -450)",
    "mixwright_lab +1,150: the study of what rows teach; tests +1,090: the GitHub action runs against stand-ins",
    "mixwright +1,550, tests +1,000: a verdict on two tables of a million answers takes 10 CPU seconds in place of 164, "
    "and half of the memory",
    "mixwright +1,922: answers of all samples are one file that others can read; targets, template, truncation are checks, "
    "and preview reads what Axolotl leaves out; headlines name the task that fell, and equal answers are named",
    "mixwright_lab +2,187: the study that compares labels with those of TRL and Axolotl on public chat files",
    "tests +2,514: the table of answers, and the same figures from a model and a log of it",
    "mixwright +332: `preview` and three checks show which tokens a training learns, and two checks read single rows and "
    "prompts; one signature per verb and no prices before measuring took 8,400 away before",
    "mixwright_lab +2,115: the study of faults that the loss does not show",
    "tests +2,108: twelve planted faults on five chat families, labels against TRL's, and how a command is made from a verb",
    "mixwright +1,476: a comparison on general requests asks harder rungs only where easier ones were right, takes "
    "--max-items, and a new task of the user does not keep it from passing; help in groups, and example files",
    "mixwright +5,847: one command writes a file to train on with replay, general requests are compared in two groups with "
    "a bound each, and answers are found by every later command",
    "mixwright_lab +4,729: the study of general replay in three worlds",
    "tests +3,802: groups, the file with replay, and that requests, items and the demo share nothing",
    "mixwright +12,576: whoever has no rows asks a general suite of 24 families, and tasks without a grader are compared by "
    "what the models answered",
    "mixwright_lab +765: the study of harmless and ruined changes of style, and two more parts of read answers",
    "tests +2,519: the suite, its grader, and answers that are lost or kept",
    "mixwright +5,503: graders read sentences in any words and JSON by field, a gate leaves out what it cannot read, and an "
    "export replaces no input",
    "mixwright_lab +1,089: the study that compares graders with two readers",
    "mixwright +861, tests +1,245: headlines name what fell, equal answers are said to be so, copies of prompts are not "
    "replayed, and mix.jsonl has one form and the tasks of its plan",
    "mixwright +248, tests +572: rules as gold answers are graded as rules, a plan by hand gets its rows to rehearse, and "
    "TRL's mixture loses no task",
    "mixwright +1,246, tests +1,752: errors say what to do in plain words, preview names what it does not read of an "
    "Axolotl config, and a log's nulls are kept for every task",
    "tests +1,614: scores of items by hand are files of answers, and one table whichever harness logged the answers",
    "mixwright +302, tests +313: what is missing is told before minutes of measuring, and forgotten arguments are named",
    "mixwright +884, tests +837: the audit compares several files with each other, and --fix removes every exact repeat and "
    "empty answer",
    "mixwright +514, tests +248: plan keeps to --budget, rewards can be named as files, and logs say what to log instead",
    "mixwright_extras +74,848: methods that did not help on a real model left the core (mixwright -75,000)",
    "tests +506: extras import one module of the core, and a verdict reads its evidence once",
    "mixwright_lab +2: canary passes are one class (mixwright -2,280 with the trainers' room)",
    "mixwright +12,560: a verdict says why each task got worse and whether answers are forgotten or covered, compares what "
    "answers do before and after, and names columns whose items fell; diagnose, audit and rewards see behaviours",
    "mixwright_lab +15,230: planted causes and behaviours, and what is still known on SmolLM2",
    "tests +6,420: causes, behaviours, columns and what is still known, by hand and on clean pairs",
    "mixwright +6,450: rows with tools and tool calls are audited against their schemas, previewed, measured, graded, "
    "trained by SFT and exported",
    "mixwright_lab +2,500: the study of planted faults of calls in public rows",
    "tests +2,500: forms of calls, schemas, templates with and without tools",
    "mixwright +3,700: causes of RL runs, protected behaviours in any trainer, thoughts before answers and arguments of the "
    "chat template (check `styles` moved to mixwright_extras +1,095)",
    "mixwright_lab +5,750, tests +2,900: planted RL runs by another author, and what is above by hand",
    "mixwright +4,900, tests +4,300: `review` answers five questions from the files of a run, and says of 28 findings "
    "whether it is shown, excluded, not told, or which file would tell",
    "mixwright_lab +7,200: exports of SmolLM2 that are equal or damaged, narrow training on public tool calls, and what "
    "the gate asks on eight layouts (mixwright -17,200)",
    "mixwright_extras +18,500: checks of reworded items and of clustered wrong steps, familiarity, Reasoning Gym, trusted "
    "rows, displacement and tiny models left the core (mixwright -24,000)",
    "mixwright +780, tests +350: `review` judges hidden ability, weak parts of answers, noisy labels and losses of tasks "
    "without rows, and verdicts on logs have parts of answers",
)
"""Why a number went up, newest last: what users get for it."""
LINES_COUNT = (".html", ".js", ".css", ".yaml")


def weigh(package: str) -> tuple[int, int]:
    """Return the weight of a package and the number of its files."""
    weight = files = 0
    for path in sorted((ROOT / package).rglob("*")):
        if path.suffix == ".py":
            weight += sum(1 for _ in ast.walk(ast.parse(path.read_text(encoding="utf-8"))))
        elif path.suffix in LINES_COUNT:
            weight += len(path.read_text(encoding="utf-8").splitlines())
        else:
            continue
        files += 1
    return weight, files


@pytest.mark.parametrize("package", LIMITS)
def test_no_package_grows_unsaid(package: str) -> None:
    assert weigh(package)[0] <= LIMITS[package]


if __name__ == "__main__":
    print("package         weight     limit  files")
    for name, limit in LIMITS.items():
        weight, files = weigh(name)
        print(f"{name:<14} {weight:>7,} {limit:>9,} {files:>6}")
