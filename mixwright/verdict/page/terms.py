"""Terms of the page, each explained in a short apposition where it first stands, and nowhere else."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from mixwright.estimates.readings import Outcome
from mixwright.verdict.page.blocks import Block, Fold, Grid, Part, Terms

MEANING_BY_TERM: dict[str, str] = {
    "success": "share of right answers under the declared decoding over all held-out items, each task counted once",
    "frozen": "the starting model, not trained",
    "uniform": "rows drawn as they come",
    "equal_shares": "every task, and every level of a task, drawn equally often",
    "[low, high]": "95 % interval over {over}, in percentage points",
    "S": "what the same answers would earn if they were swapped between the prompts of the cell: the part of success that "
    "does not depend on the prompt",
    "D": "success minus S, the part of success that depends on the prompt",
    "null": "an arm that lacks what the lever knows",
    "cell": "a task at one level",
    "learnt": "success and D rose, and success lies above the chance level",
    "damaged": "success fell",
    "gives the commonest answer more often": "success and S rose, D is not shown to",
    "depends less on the prompt": "D fell, success is not shown to",
    "sharper, not more able": "sampled success and its D rose, success under the declared decoding did not",
    "no change": "the whole interval lies within 5 points of 0",
    "cannot tell": "neither a change nor its absence is shown",
    "chance level": "what the best rule without the skill (a constant answer, a place, a number of the prompt, blind "
    "choice), chosen on other rows, earns on the same held-out items",
}
"""Term -> its meaning where answers are graded."""
UNGRADED_MEANINGS: dict[Outcome, dict[str, str]] = {
    "loss": {
        "[low, high]": "95 % interval over {over}, in nats per token",
        "held-out loss": "mean negative log-probability of the given targets and their end token, in nats per token; "
        "lower is better",
        "learnt": "held-out loss fell",
        "damaged": "held-out loss rose; where the gate was asked, by more than 1 nat per token, or former answers "
        "became as much less likely",
        "no change": "the whole interval lies within 0.05 nats per token of 0",
    },
    "preference": {
        "[low, high]": "95 % interval over {over}, in the unit shown",
        "held-out preference accuracy": "share of held-out pairs whose chosen answer is likelier than the rejected one",
        "margin of chosen over rejected": "log-probability of the chosen answer minus that of the rejected one, in nats",
        "learnt": "held-out preference accuracy rose, and lies above the chance level",
        "damaged": "held-out preference accuracy fell",
        "chance level": "what a coin would earn, 50 %",
    },
}
"""The same where nothing is graded, in which these differ."""


def explain_once(
    sections: Sequence[Part], outcome: Outcome = "greedy", interval_units: str = "seeds and items"
) -> list[Part]:
    """The sections with every term explained where it first stands; what is left empty must be filtered out afterwards.

    Args:
        sections: the sections.
        outcome: what the page is about.
        interval_units: what its intervals are over.
    """
    explained_terms: set[str] = set()
    templates = MEANING_BY_TERM | UNGRADED_MEANINGS.get(outcome, {})
    meaning = {word: text.format(over=interval_units) for word, text in templates.items()}
    return [
        (name, title, order, _explain_blocks(blocks, explained_terms, meaning)) for name, title, order, blocks in sections
    ]


def _explain_blocks(blocks: Sequence[Block], explained_terms: set[str], meaning: Mapping[str, str]) -> list[Block]:
    explained: list[Block] = []
    for block in blocks:
        if isinstance(block, Terms):
            new_terms = tuple(word for word in dict.fromkeys(block.words) if word in meaning and word not in explained_terms)
            explained_terms.update(new_terms)
            explained.append(Terms(new_terms, tuple(meaning[word] for word in new_terms)))
        elif isinstance(block, Fold | Grid):
            explained.append(replace(block, blocks=tuple(_explain_blocks(block.blocks, explained_terms, meaning))))
        else:
            explained.append(block)
    return explained
