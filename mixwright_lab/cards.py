"""Cards of findings: each with its kept results and its words and numbers, as the page and README.md show them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from mixwright import catalog
from mixwright.verdict.page.text import MINUS_SIGN, NO_VALUE_SIGN, format_count
from mixwright_lab import result_files
from mixwright_lab.contracts import Finding
from mixwright_lab.judging import CANNOT_SHOW, WORDS_WORST_FIRST, Judged, Word, decide
from mixwright_lab.result_files import Result

NOT_RUN, STALE = "not run", "stale"
FINDING_PARTS = (
    ("Claim", "CLAIM"),
    ("Source", "SOURCE"),
    ("What the source shows", "WHAT_IT_SHOWS"),
    ("What the popular version gets wrong", "POPULAR_READING"),
    ("On SmolLM2", "REAL"),
)
"""Heading of each text of a finding, and its name; one that is empty is left out."""
MEANING_BY_WORD = {
    "reproduced": "the interval is above 0, and the mean reaches the least size",
    "in part": "the interval is above 0; the mean is below the least size, but the interval reaches it",
    "inconclusive": "the interval contains 0 and the least size, or there are fewer than 5 seeds",
    "not reproduced": "the whole interval is below the least size, but not below 0",
    "refuted": "the whole interval is below 0",
    CANNOT_SHOW: "of a finding: its positive control is not reproduced, so it says nothing of the claim",
    NOT_RUN: "there is no result at scale laptop",
    STALE: "claim or expectations were edited after the run; the result is not counted until the finding is run again",
}
"""Every word of a finding, best first; what it means of one contrast."""
RULE_TEXT = (
    "A contrast is a weighted sum of measured values within each seed, written before the run so that the claim "
    "predicts a value above 0. Its interval is Student's t over seeds, with the confidence that Holm's correction over "
    "the contrasts of the finding leaves (95 % or more). To be reproduced, a contrast must also reach its noise floor: "
    "with n seeds, t * sqrt(mean(d^2) / 2 * sum(w^2) / n), where d is the difference between two runs of one arm that "
    "differ only in the seed of their training, and w are the weights. If arms do not differ, their mean stays below it "
    "in 95 % of the cases. A finding has the word of one contrast of its source, the primary one; contrasts of our own do "
    "not change it. Where a positive control is named and not reproduced, this world cannot show the claim."
)


@dataclass(frozen=True, slots=True)
class Card:
    """A finding with what was kept of it."""

    name: str
    """File in `findings/`."""
    finding: type[Finding]
    """What it says and expects."""
    result: Result | None
    """At scale laptop; None where it was not run."""

    @property
    def word(self) -> str:
        """A key of `MEANING_BY_WORD`."""
        if self.result is None:
            return NOT_RUN
        return self.word_of(self.result) if self.current(self.result) else STALE

    def word_of(self, result: Result) -> Word:
        """The word of a current result, by the primary contrast that the finding names now."""
        return decide(result.contrasts, self.finding.PRIMARY, self.finding.CONTROL)

    def current(self, result: Result) -> bool:
        """Whether a result was judged by what the finding says now."""
        named = [one.name for one in result.contrasts] == [one.name for one in self.finding.EXPECT]
        return named and result.expectations == result_files.digest(self.finding)

    @property
    def fired(self) -> bool:
        """Whether the positive control of a current result is reproduced."""
        named = () if self.result is None or self.word == STALE else self.result.contrasts
        return any(one.name == self.finding.CONTROL and one.word == "reproduced" for one in named)

    @property
    def command(self) -> str:
        """Runs it again."""
        return f"python -m mixwright_lab run {self.name}"

    @property
    def remarks(self) -> str:
        """What was written after the run; of a result that is not reproduced it is said that nothing was written."""
        missing = self.word in WORDS_WORST_FIRST and self.word != "reproduced"
        return self.finding.REMARKS or ("Not written yet." if missing else "")


def collect(results: Path = result_files.RESULTS_FOLDER) -> list[Card]:
    """Every finding of the catalogue with its kept results.

    Args:
        results: folder of results.

    Raises:
        InputError: a file there is no result, or a finding needs packages that are missing.
    """

    def kept(name: str) -> Result | None:
        result = result_files.read(name, results)
        return result if result and result.scale == "laptop" else None

    return [Card(name, catalog.load("findings", name), kept(name)) for name in catalog.listing("findings")]


def unknown(results: Path = result_files.RESULTS_FOLDER) -> list[str]:
    """Files of results that belong to no finding of the catalogue."""
    known = catalog.listing("findings")
    return sorted(path.name for path in results.glob("*.json") if path.name.partition(".")[0] not in known)


def tally(cards: Sequence[Card]) -> str:
    """One sentence: how many findings have which word."""
    words = Counter(card.word for card in cards)
    judged = sum(words[word] for word in WORDS_WORST_FIRST)
    left = [f"{words[word]} {'is' if words[word] == 1 else 'are'} {word}" for word in (NOT_RUN, STALE) if words[word]]
    rest = f"; {' and '.join(left)}" if left else ""
    if not judged:
        return f"No finding has a result that counts{rest}."
    came = ", ".join(f"{words[word]} {word}" for word in reversed(WORDS_WORST_FIRST) if words[word])
    fired = sum(card.fired for card in cards)
    control = f" The positive control fired in {fired} of them; {sum(bool(card.finding.REAL) for card in cards)} were tried "
    control += "on a real model, too."
    return f"{format_count(judged, 'claim')} re-run on tiny models, by the sources' own contrasts: {came}{rest}.{control}"


def format_card(card: Card) -> str:
    """What the word rests on: contrasts by word, and the one that decides where not all are reproduced."""
    if card.result is None:
        return "Its expectations, listed below, were written before any run."
    if card.word == STALE:
        return f"Its claim or expectations were edited after the run. By the earlier version: {card.result.word}."
    one, finding = primary(card.finding, card.result), card.finding
    told = f"Published: {one.name}, {figure(one)}, where at least {number(asked(one), one.unit)} is required."
    if finding.PUBLISHED:
        told += f" Other contrasts of the source: {held(published(finding, card.result))} reproduced."
    if rest := ours(finding, card.result):
        told += f" Our own: {held(rest)} reproduced."
    told += f" Positive control: {finding.CONTROL}." if finding.CONTROL else " It has no positive control."
    named_late = card.result.primary != finding.PRIMARY
    return told + (" Which contrast is the published one was written after this run." if named_late else "")


def primary(finding: type[Finding], result: Result) -> Judged:
    """The contrast that the word comes from."""
    return next(one for one in result.contrasts if one.name == finding.PRIMARY)


def published(finding: type[Finding], result: Result) -> list[Judged]:
    """Other contrasts of the source."""
    return [one for one in result.contrasts if one.name in finding.PUBLISHED]


def ours(finding: type[Finding], result: Result) -> list[Judged]:
    """Contrasts that the source does not have, the control apart: it says nothing of the claim."""
    return [one for one in result.contrasts if one.name not in (finding.PRIMARY, finding.CONTROL, *finding.PUBLISHED)]


def held(contrasts: Sequence[Judged]) -> str:
    """How many are reproduced, as "5 of 6"."""
    return f"{sum(one.word == 'reproduced' for one in contrasts)} of {len(contrasts)}"


def asked(one: Judged) -> float:
    """The least size that counts: never below the noise floor."""
    return max(one.least, one.noise or 0.0)


def number(value: float | None, unit: str, *, sign: bool = False) -> str:
    """A value of a contrast with 3 digits: shares in points, others as they stand; a dash for None."""
    if value is None:
        return NO_VALUE_SIGN
    told = f"{100 * value if unit == 'points' else value:{'+' if sign else ''}.3g}"
    return told.replace("-", MINUS_SIGN)


def interval(one: Judged) -> str:
    """Its ends, `[2.8, 3.5]`."""
    return f"[{number(one.low, one.unit)}, {number(one.high, one.unit)}]"


def figure(one: Judged) -> str:
    """Value, ends and unit, `+3.2 [2.8, 3.5] points`."""
    return f"{number(one.value, one.unit, sign=True)} {interval(one)} {one.unit}"


def minutes(*results: Result) -> str:
    """CPU minutes of results, with one decimal."""
    return f"{sum(result.cpu_seconds for result in results) / 60:.1f}"


def seeds(result: Result) -> str:
    """How many, and from where to where: `8 seeds (0 to 7)`."""
    ends = f"{result.seeds[0]} to {result.seeds[-1]}" if len(result.seeds) > 1 else ", ".join(map(str, result.seeds))
    return f"{format_count(len(result.seeds), 'seed')} ({ends})"
