"""Arms of a trial, one class each: the name that settings use is that of the class in small letters, `equal_shares`.

Each declares what sets it apart from the plan under trial, and nothing else. References are the simple rules that a user
could take instead, levers what is tried, and nulls lack what a lever claims to work by. The last four belong to a trial over
data (`trial.data`).
"""

from __future__ import annotations

from mixwright.contracts import Arm
from mixwright.trial.arm_plans import equal_plan, joint_plan, proportional_plan


class Frozen(Arm):
    """Reference: no training at all; the starting model as it is, measured anew for every seed.

    Source: the plainest alternative to any training: it costs nothing and cannot damage anything.
    Unit: one measurement per seed, with that seed's sampling numbers.
    Cost: one measurement per seed; no training rollouts.
    Blind spot: greedy success is the same in every seed of a starting model; only its sampled success is drawn anew.
    """

    ROLE = "reference"
    TRAINS = False


class Uniform(Arm):
    """Reference: every training example equally often, no lever.

    Source: plain GRPO or SFT over the concatenated data, what a run does when nobody decides.
    Unit: one branch per seed.
    Cost: one training run per seed.
    Blind spot: proportional to the rows the corpus happens to have; `equal_shares` is the other simple rule.
    """

    ROLE = "reference"
    CHANGE_PLAN = staticmethod(proportional_plan)


class EqualShares(Arm):
    """Reference: tasks equally often, and within a task its levels equally often; no lever.

    Source: the simplest rule against an unbalanced pool. On a wide pool it was nearly as good as the selector `difficulty`
    (contributing/evidence/controllers.md), so a lever has to beat it.
    Unit: one branch per seed.
    Cost: one training run per seed.
    Blind spot: spends as much on what is mastered or out of reach as on what can be learnt; small levels are repeated often.
    """

    ROLE = "reference"
    CHANGE_PLAN = staticmethod(equal_plan)


class Joint(Arm):
    """Reference of a trial of several stages: all of their tasks together, in one stage per objective, with as many steps.

    Each task keeps the share of draws that the stages together give it. There are no borders, so the optimiser is not reset
    on the way; `uniform`, which has the plan's borders and draws from all tasks in each stage, is the control for that.

    Source: what an order has to beat; staged training with resets beat mixed training in 2507.17512, which may be the
    resets.
    Unit: one branch per seed.
    Cost: one training run per seed.
    Blind spot: it takes the learning rate of the longest of the stages that it joins, and none of their levers.
    """

    ROLE = "reference"
    CHANGE_PLAN = staticmethod(joint_plan)


class Steered(Arm):
    """Lever: the plan under trial as it stands.

    Source: the plan of this run.
    Unit: one branch per seed.
    Cost: one training run per seed, and the measuring that the plan rests on.
    Blind spot: levers are tried together; which of them worked needs a plan with one lever.
    """


class Lora(Arm):
    """Lever: the plan, trained through LoRA, factors of low rank, and merged into plain weights at the end.

    Source: LoRA, 2106.09685; how much it learns and forgets beside full training, 2405.09673.
    Unit: one branch per seed.
    Cost: one training run per seed.
    Blind spot: a low rank may be too small for the task, and its learning rate is another one than full training's.

    Options and learning rate of the adapter stand in `train.adapters.lora`; without the latter it has that of the other
    arms.
    """

    ADAPTER = "lora"


class Permuted(Arm):
    """Null: a broken verifier under steered sampling: true rewards are permuted inside each group.

    Source: random-reward controls (Spurious Rewards, arXiv:2506.10947), made exact: mean, spread and number of
    signal-carrying groups stay the same, only which completion earned what is lost.
    Unit: one branch per seed.
    Cost: one training run per seed.
    Blind spot: it loses by taking steps on noise, so beating it says that rewards carry information, not that the lever
    works; steering still sees true rewards, so the choice of items carries information even here.
    """

    ROLE = "null"
    PERMUTED = "rewards"


class PermutedWeights(Arm):
    """Null: the lever with its task weights permuted among the tasks, by another permutation for every seed.

    Source: permutation of the labels that a method reads (permutation tests). Of use to SFT and DPO, which have no rewards.
    Unit: one branch per seed.
    Cost: one training run per seed.
    Blind spot: with two tasks there is one other order, and a small task that gets a large weight is repeated often.

    The weights as numbers stay exactly the same, so a lever that beats this null owes something to which task got which
    weight.
    """

    ROLE = "null"
    PERMUTED = "weights"


class PermutedOrder(Arm):
    """Null of a plan of several stages: the same stages in a random order, another one for every seed.

    Source: permutation of what a method decides (permutation tests); every order has its optimiser resets at the same
    places.
    Unit: one branch per seed.
    Cost: one training run per seed.
    Blind spot: with two stages there is one other order; stages of different objectives change places, too.

    A plan that beats all tasks together, but not this null, owes its gain to borders, and nothing to the order.
    """

    ROLE = "null"
    PERMUTED = "order"


class ShuffledLevels(Arm):
    """Null: the lever with false levels: they are permuted within each task before cells are measured.

    Source: permutation of the labels that a method reads (permutation tests); the selection literature's shuffled scores.
    Unit: one branch per seed; one permutation for the whole trial, among training and among held-out rows separately.
    Cost: one training run per seed, and one more measurement of every starting model.
    Blind spot: weights over tasks and evidence per example are not shuffled; what they earn alone, this null earns too.

    The starting model is measured by the shuffled cells, the plan is made anew from that with the lever's own plug-ins, and
    the run trains on rows with shuffled levels. It is judged on the true held-out items like every arm.
    """

    ROLE = "null"
    PERMUTED = "levels"


class Mined(Arm):
    """Lever of a trial over data: the plan on the rows of `trial.data`, which a miner selected or made.

    Source: none of its own; each miner names its own.
    Unit: one branch per seed.
    Cost: one training run per seed; what mining cost stands in the miner's summary.
    Blind spot: tasks keep the plan's weights, so a selection is judged within tasks; one that wants other shares needs a
    plan.
    """

    OF_DATA = True
    ROWS = "mined"


class All(Arm):
    """Reference of a trial over data: every training row of the corpus, under the plan that the selection trains under.

    Source: full-data training, the arm that selection papers compare with (LESS, 2402.04333; its re-studies beat it
    unevenly).
    Unit: one branch per seed.
    Cost: one training run per seed.
    Blind spot: at equal steps it repeats rows less often than a selection does; what a selection saves is rows, not steps.
    """

    ROLE = "reference"
    OF_DATA = True


class RandomLike(Arm):
    """Reference of a trial over data: random training rows, as many of each task as were mined, drawn anew for every seed.

    Source: random subsets of equal size, which many selection scores do not beat (2402.04333's re-studies; 2206.14486).
    Unit: one branch per seed, on rows of its own.
    Cost: one training run per seed.
    Blind spot: equal in rows per task, not in their lengths or levels; target tokens of both arms are counted and shown.

    Without it a gain of fewer rows could be that of repeating any rows more often.
    """

    ROLE = "reference"
    OF_DATA = True
    ROWS = "random_like"


class SimpleRule(Arm):
    """Reference of a trial over selected rows: what the simplest rule takes that knows as much as the miner.

    A miner that is told which tasks are the targets has to beat training on the rows of these tasks alone, which needs no
    scan.

    Source: in our own measurements the targets' rows alone were as good as rows chosen by gradients.
    Unit: one branch per seed.
    Cost: one training run per seed.
    Blind spot: equal in steps, not in rows: few rows are repeated more often.
    """

    ROLE = "reference"
    OF_DATA = True
    ROWS = "simple_rule"
