"""Study of narrow SFT with all weights on SmolLM2-135M-Instruct: 300 steps, eight seeds, on an accelerator.

The files, arms and items of `real_sft`, whose trainings are 40 steps of LoRA. Here a training is 300 steps of 16 rows, 2.4
times the rows of the new task, at a rate of 1e-4 that falls to 0, and changes all weights. The rate was not tuned.
Arms: `frozen`, `narrow`, `uniform`, `plan` and `own`. The first five seeds are those of `real_sft`.

Expectations, written before the first seed: those of `real_sft` (`narrow` loses at least 5 points of the four rehearsed
tasks; `plan` keeps at least half of that, the interval of the difference without 0, at no more than 5 points of the new task
at its interval's lower end), and with own answers the mean of the four tasks does not fall by more than 5 points, at its
interval's lower end.

Finished rows are kept, all answers with them, in `real_all_weights.rows.jsonl`; trained models are deleted once they are
measured, for each has half a gigabyte. `real_device` makes rows on an accelerator, and nothing else does: a training takes
45 minutes of two cores. This command writes the result of the rows that are there.

    MIXWRIGHT_PUBLIC=FOLDER python -m mixwright_lab.studies.real_all_weights --report
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from mixwright_lab.studies import real_sft
from mixwright_lab.studies.real_models import FROZEN, NARROW, OWN, PLAN, TOOL_CALLS, TRAINING, UNIFORM
from mixwright_lab.studies.report import Goal, Result, interval, rounded, run
from mixwright_lab.studies.sft_study import READINGS, Arms, SFTStudy, differences, means_of

ARMS = (NARROW, UNIFORM, PLAN, OWN, FROZEN)
STUDY = SFTStudy(
    "real_all_weights",
    seeds=(*real_sft.SEEDS, 211, 233, 257),
    jobs={arm: (arm,) for arm in ARMS},
    first_arms=ARMS,
    task=replace(TOOL_CALLS, training=replace(TRAINING, steps=300, learning_rate=1e-4, rank=0)),
    deletes_models=True,
)
MOST_LOST = 5.0
"""Points of the rehearsed tasks that own answers may cost."""


def figures_of(by_seed: Mapping[int, Arms]) -> dict[str, Any]:
    """Means of each arm with intervals over the seeds that have all arms, and less all rows as they come and less before."""
    whole = STUDY.whole_seeds(by_seed)
    found: dict[str, Any] = {"seeds with all arms": len(whole)}
    for arm in ARMS if len(whole) > 1 else ():
        found[arm] = means_of(whole, arm)
        for other, word in ((UNIFORM, "uniform"), (FROZEN, "before")):
            for name, tasks in READINGS.items():
                found[arm][f"{name}, this less {word}"] = rounded(differences(whole, arm, other, tasks))
    return found


def own_goals(by_seed: Mapping[int, Arms]) -> list[Goal]:
    """What own answers leave of the rehearsed tasks."""
    change = interval(differences(by_seed.values(), OWN, FROZEN))
    return [Goal.not_under("own answers less before on the rehearsed tasks, points", change, -MOST_LOST)]


def measure(quick: bool, begin: bool = True) -> Result:
    """The rows that are there; the quick ones are made."""
    if quick and begin:
        STUDY.run_jobs(quick)
    unit = "points that SFT of all weights on the new rows alone loses of the four tasks"
    return STUDY.read_result(quick, unit, figures_of, own_goals)


if __name__ == "__main__":
    run("real_all_weights", __doc__, measure, kept=True)
