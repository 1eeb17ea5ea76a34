"""Study of narrow SFT on SmolLM2-135M-Instruct: what it takes away, and what keeps it, at equal success on the new task.

The new task has 2,000 rows; four tasks that the model half knows (capitals, opposites, sums, products) have 60 rows each
and 100 test items each. Three public sets of short questions are in no training row: past tenses, plurals, and the
companies that make a product. Every training is 40 steps of 16 rows with LoRA on all linear layers and differs in its
rows alone, or in the one thing that the name of the arm says. Arms:

- `frozen`, and `prompted`: the best of five system messages, chosen on other rows, and no training;
- `narrow` (new rows only), its adapter times .25, .5 and .75, its adapter after 5, 10 and 20 steps, half and a fifth of the
  rate, a penalty on the divergence from the start: the rivals that rehearse nothing;
- `uniform` (all rows as they come: 10.7 % are old), `equal shares` (a fifth each), `plan` (`mixwright plan`, which is a
  quarter of true rows here), `own` (a quarter of the model's own answers to the same prompts), `self-made` (a quarter of
  prompts and answers that the model made), `chat` (a quarter of unrelated public chat rows: the null of rehearsal);
- a quarter of 60 true rows of one, two or four old tasks (drawn by the seed): variety at the same amount, read on the tasks
  that nobody rehearsed. No goal; added after the rows of the other arms were seen;
- an eighth each of two kinds of rows (true rows, own answers, chat), a tenth and a half of own answers, and a penalty of ten
  and a hundred times the weight. Added after all others were seen. Expected: true rows with own answers end at most five
  points under true rows alone on the old tasks, and above them on the tasks without rows; a penalty that keeps half of the
  old tasks keeps the new one from being learnt (under half of it right). Read with their intervals, and no goal;
- replay by kind: facts (capitals, opposites) by own answers, skills (sums, products) by true rows. Added on 30 November
  2026, the kinds named by hand, goals before its first row: at most five points under `plan` and under `own` at the lower
  end of the interval, in the mean of all eight tasks.

Expectations, written before the first seed that counts: `plan` keeps at least half of what `narrow` loses of the four tasks,
the interval of their difference has no 0, and the new task is at most five points lower at its interval's lower end. If
`narrow` loses under five points there is nothing to keep, and that is the result. Whether scaling, stopping or chat rows do
as well is read at equal success on the new task, between the points of their curves.

Settings were chosen on seed 3. The arms of the primary question run first, for all seeds; then the harmless trainings that
the study of the gate needs; then the rivals. Two processes of one thread run at once; each finished row is kept, all answers
with it, in `real_sft.rows.jsonl`, and a run that was stopped goes on; on an accelerator `real_device` makes rows. Public
files are read from the folder that MIXWRIGHT_PUBLIC names (`mixwright_lab/studies/public_sets.py` says which). Weights are
Q4_1, dequantised.

    MIXWRIGHT_PUBLIC=FOLDER python -m mixwright_lab.studies.real_sft [--quick] [--report]
"""

from __future__ import annotations

import os
from collections.abc import Mapping

from mixwright_lab.studies.real_models import (
    ARMS_OF_JOB,
    BY_KIND,
    CHAT,
    FROZEN,
    HARMLESS,
    NARROW,
    OWN,
    PLAN,
    PROMPTED,
    UNIFORM,
)
from mixwright_lab.studies.report import Goal, Result, interval, run
from mixwright_lab.studies.sft_study import GROUPS, MOST_NEW_LOSS, Arms, SFTStudy, differences

SEEDS = (101, 127, 149, 173, 197)
FIRST_ARMS = (FROZEN, PROMPTED, NARROW, PLAN, CHAT, UNIFORM)
"""Arms of the primary question, made of every seed before any other arm is."""
STUDY = SFTStudy(
    "real_sft", SEEDS, ARMS_OF_JOB, FIRST_ARMS, gate_seeds=SEEDS[:2], gate_jobs={arm: (arm,) for arm in HARMLESS}
)


def judge_kinds(by_seed: Mapping[int, Arms]) -> list[Goal]:
    """Return the goals of replay by kind; nothing before two seeds have it."""
    found = []
    for other in (PLAN, OWN):
        values = differences(by_seed.values(), BY_KIND, other, GROUPS["all"])
        if len(values) > 1:
            found.append(Goal.not_under(f"{BY_KIND}, less {other}, all tasks, points", interval(values), -MOST_NEW_LOSS))
    return found


def measure(quick: bool, begin: bool = True) -> Result:
    """Do the jobs that are left: the first arms of all seeds, then the harmless trainings, then the other arms."""
    if begin:
        STUDY.run_jobs(quick, (FIRST_ARMS, tuple(HARMLESS), STUDY.arms))
    unit = "points that SFT on the new rows alone loses of the four tasks"
    return STUDY.read_result(quick, unit, STUDY.compare_with_plan, judge_kinds)


if __name__ == "__main__":
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    run("real_sft", __doc__, measure, kept=True)
