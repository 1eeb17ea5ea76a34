"""Verbs of the command line as functions, with its options and its defaults.

    from mixwright.api import audit, measure, plan, run, verdict

Each returns what its command prints, writes the same files, and reports progress on stderr. Options that several verbs
share are records: `Measuring` (rows, and how a model is measured), `Planning`, `Gating` and `Placing`. Rows, settings and
models can also be objects in memory (`Corpus`, `CorpusConfig`, `RunConfig`, a loaded `Learner`). Verbs that work on a run
folder, and `rewards`, start processes, so a script calls them under `if __name__ == "__main__":`.
"""

from __future__ import annotations

from mixwright.verbs.audit import AuditReport, audit
from mixwright.verbs.diagnose import Diagnosis, diagnose
from mixwright.verbs.gating import Gating
from mixwright.verbs.init import init
from mixwright.verbs.measure import measure
from mixwright.verbs.mine import Mined, mine
from mixwright.verbs.options import Measuring, Placing
from mixwright.verbs.plan import plan, plan_measured
from mixwright.verbs.planned import Planning, PlanReport
from mixwright.verbs.plugins import explain, list_plugins
from mixwright.verbs.preview import Preview, preview
from mixwright.verbs.review import review
from mixwright.verbs.rewards import rewards
from mixwright.verbs.run import run, steer, trial
from mixwright.verbs.schema import schema
from mixwright.verbs.verdict import verdict

__all__ = ["AuditReport", "Diagnosis", "Gating", "Measuring", "Mined", "Placing", "PlanReport", "Planning", "Preview"]
__all__ += ["audit", "diagnose", "explain", "init", "list_plugins", "measure", "mine", "plan", "plan_measured", "preview"]
__all__ += ["review", "rewards", "run", "schema", "steer", "trial", "verdict"]
