"""Text of the laboratory: the parts of its README.md that are made from results, between markers."""

from __future__ import annotations

from collections.abc import Sequence

from mixwright.errors import InputError
from mixwright.verdict.page.text import to_line
from mixwright_lab.cards import (
    FINDING_PARTS,
    MEANING_BY_WORD,
    RULE_TEXT,
    STALE,
    Card,
    figure,
    format_card,
    held,
    minutes,
    number,
    ours,
    primary,
    published,
    seeds,
    tally,
)

WRITES = "`python -m mixwright_lab report` writes it"


def marks(name: str) -> tuple[str, str]:
    """Where a part that is made begins and ends."""
    return f"<!-- {name}: {WRITES} -->", f"<!-- /{name} -->"


def lab(page: str, cards: Sequence[Card]) -> str:
    """README.md with the words and cards of now; the rest of it is kept.

    Raises:
        InputError: its markers are not there once each.
    """
    return replaced(replaced(page, "words", words()), "findings", findings(cards))


def replaced(page: str, name: str, made: str) -> str:
    """The page with that part made anew."""
    return replace_between(page, *marks(name), made)


def replace_between(page: str, begin: str, end: str, made: str) -> str:
    """The page with what stands between two markers made anew.

    Raises:
        InputError: they are not there once each, in that order.
    """
    if (page.count(begin), page.count(end)) != (1, 1) or page.index(end) < page.index(begin):
        raise InputError(f"{begin} and then {end}, once each", "another page", "Put the markers back; nothing was written.")
    before, _, rest = page.partition(begin)
    return f"{before}{begin}\n{made}\n{end}{rest.partition(end)[2]}"


def words() -> str:
    """What the words mean."""
    return "\n".join((*_table(("word", "of a contrast"), MEANING_BY_WORD.items()), "", RULE_TEXT))


def findings(cards: Sequence[Card]) -> str:
    """The tally and a card for each."""
    parts = [tally(cards)]
    results = [card.result for card in cards if card.result]
    parts.append(f"All that is shown takes {minutes(*results)} CPU minutes. The same with charts: [lab.html](lab.html).")
    rows = [
        (
            f"[{_plain(card.name)}](#{_plain(card.name)})",
            card.word,
            _plain(figure(primary(card.finding, card.result))),
            held(published(card.finding, card.result)),
            held(ours(card.finding, card.result)),
        )
        for card in cards
        if card.result is not None and card.word != STALE
    ]
    if rows:
        parts.append(
            "\n".join(_table(("finding", "word", "published contrast", "others of the source", "ours"), rows, plain=False))
        )
    return "\n\n".join([*parts, *(_card(card) for card in cards)])


def _card(card: Card) -> str:
    result = card.result
    texts = [f"### {_plain(card.name)}", f"**{card.word.capitalize()}.** {_plain(format_card(card))}"]
    parts = ((heading, getattr(card.finding, name)) for heading, name in FINDING_PARTS)
    texts += [f"**{heading}.** {_plain(text)}" for heading, text in parts if text]
    if result is None or card.word == STALE:
        rows = [(one.name, number(one.least, one.unit), one.unit, one.refuted) for one in card.finding.EXPECT]
        texts.append("\n".join(_table(("contrast", "at least", "unit", "refuted if"), rows)))
    else:
        rows = [
            (one.name, one.word, figure(one), number(one.least, one.unit), number(one.noise, one.unit))
            for one in result.contrasts
        ]
        texts.append("\n".join(_table(("contrast", "word", "mean and interval", "least size", "noise floor"), rows)))
        if card.remarks:
            texts.append(f"**Remarks.** {_plain(card.remarks)}")
    cost = "" if result is None else f" ({seeds(result)}, {minutes(result)} CPU minutes)"
    features = ", ".join(f"`{_plain(feature)}`" for feature in card.finding.FEATURES) or "nothing"
    texts.append(f"`{_plain(card.command)}`{cost}. Mixwright plug-ins that rest on it: {features}.")
    return "\n\n".join(texts)


def _table(head: Sequence[str], rows: object, *, plain: bool = True) -> list[str]:
    told = [[_plain(text) if plain else text for text in row] for row in rows]  # type: ignore[attr-defined]
    return [f"| {' | '.join(row)} |" for row in (head, ["---"] * len(head), *told)]


def _plain(text: str) -> str:
    """Raw text as Markdown that shows it: no markup, no cells of its own, no hidden characters."""
    shown = to_line(text, limit=4000).replace("\\", "\\\\").replace("&", "&amp;").replace("<", "&lt;")
    for letter in "|*`":
        shown = shown.replace(letter, "\\" + letter)
    return shown.replace("](", "]\\(")
