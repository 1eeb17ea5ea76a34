"""Section of the words that stand on the page and were not explained where they first stand.

Source: verdict/page/terms.py; exact definitions are in docs/luck.md.
Unit: words.
Cost: none.
Blind spot: short; the docstrings of estimates/ are exact.
"""

from __future__ import annotations

from mixwright.contracts import Section
from mixwright.run.folder import RunFolder
from mixwright.verdict.page.blocks import Block, Terms
from mixwright.verdict.rules.claims import format_kind, leading_claims


class Glossary(Section):
    """The words of claims in the order of the page; what was explained above is left out of it."""

    ORDER = 85
    TITLE = "Words"

    def blocks(self, run: RunFolder) -> list[Block]:
        """The words that claims of this run use."""
        words = dict.fromkeys(format_kind(claim.kind) for claim in leading_claims(run))
        return [Terms(tuple("no change" if word.startswith("no change") else word for word in words))] if words else []
