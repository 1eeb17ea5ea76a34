r"""Marks of structure in an answer, which show that it was written by a convention and not as plain words.

`{"tool": "note"}` has keys in braces, `SALES|normal` has a bar, `\boxed{5}` a command that wraps the answer. A plain word, a
number, a sentence and ordinary Markdown have none. Names, tools and numbers inside are left out, so that two calls of
different tools have the same marks. What a model thinks aloud before its answer (`<think>`) is no part of the answer.
"""

from __future__ import annotations

import re

from mixwright.thoughts import drop_thoughts

CHARACTERS_READ = 1000
"""Characters that are read from each end of a long text."""
KEYS_MARK, TAG_MARK, LABEL_MARK, LETTER_MARK = '{"…": …}', "<…>", "…: …", "A) …"
"""Marks of keys in braces, of a text that begins with a tag, with a label, or with the letter of a choice."""
COMMAND_MARK = "WORD …"
"""Mark of a text that begins with a command in capitals, such as `RETURN 2x spoon`."""

_LABEL = re.compile(
    r"^[*_>\s-]{0,6}([^\W\d_][\w-]{0,24}(?: [\w-]{1,24}){0,2})[*_]{0,3} ?:(?=[*_]{0,3}(?:\s|$))", re.MULTILINE
)
_FIRST_LABEL = re.compile(r"[*_]{0,3}[^\W\d_][\w-]{0,24}[*_]{0,3} ?:[*_]{0,3}[ \t]{1,3}[*_]{0,3}[^\s*_]")
_ANSWER = re.compile(r"\b(final answer|answer) ?:", re.IGNORECASE)
_TAG = re.compile(r"</?([A-Za-z][\w-]{0,30})(?:\s[^<>\n]{0,80})?/?>")
_SPECIAL = re.compile(r"<\|[A-Za-z_0-9]{1,40}\|>")
_WRAPPER = re.compile(r"\\(boxed|fbox|answer)\b")
_TOKEN = re.compile(r"[^\W_]*[^\W\d_](?:([/_:#@~=&>;,+])[^\W\d_][^\W_]*)+\Z")
_SPACED = re.compile(r"[^\W\d_]\w{0,30}(?: ([-\u2013\u2014/~>]) \w{1,30})+\Z")
_FENCED = re.compile(r"```[A-Za-z]{0,12}\s*")

PATTERNS_ANYWHERE: dict[str, re.Pattern[str]] = {
    KEYS_MARK: re.compile(r"\{\s*[\"'][^\"'{}\n]{1,80}[\"']\s*:"),
    "|": re.compile(r"[^\s|] ?\|{1,2} ?[^\s|]"),
    "```": re.compile(r"```"),
    "####": re.compile(r"^####\s?\S", re.MULTILINE),
    "->": re.compile(r"\S ?[-=]{1,3}> ?\S"),
    "\u2192": re.compile(r"[\u2192\u21d2]"),
    "::": re.compile(r"\w ?::[ \w]"),
    "…=…": re.compile(r"\b[A-Za-z_]\w{1,30}=[^\s=]"),
    "…;…": re.compile(r"\w;\w"),
    "tab": re.compile(r"[^\s]\t[^\s]"),
    "<<": re.compile(r"<<|>>"),
    "[[": re.compile(r"\[\[|\]\]"),
    "{{": re.compile(r"\{\{"),
    "@@": re.compile(r"@@|%%|~~"),
    "@…": re.compile(r"(?<!\S)@\w"),
}
"""Mark -> where it stands in a text; each pattern is linear in a bounded text."""
PATTERNS_AT_START: dict[str, re.Pattern[str]] = {
    "{…}": re.compile(r"\{"),
    "[…]": re.compile(r"\["),
    TAG_MARK: _TAG,
    LABEL_MARK: _FIRST_LABEL,
    LETTER_MARK: re.compile(r"\(?[A-Ha-h][).](?:\s|\Z)"),
    COMMAND_MARK: re.compile(r"[A-Z]{4,} (?!(?:is|was|are|were|has|had|and|or|in|of|can|will)\b)\S"),
    "…(…)": re.compile(r"[A-Za-z_][\w.]{1,60}\((?!s\))"),
    "SELECT …": re.compile(r"(?:SELECT|INSERT INTO|UPDATE|DELETE FROM|CREATE TABLE|WITH \w{1,40} AS)\s"),
    "def …": re.compile(r"(?:async )?(?:def|class|function) \w{1,60} ?[(:{]|from [\w.]{1,60} import |#include\b|#!/"),
}
"""Mark -> how a text begins that has it."""
PATTERNS_ASKED: dict[str, re.Pattern[str]] = {
    KEYS_MARK: re.compile(r"\bjson\b", re.IGNORECASE),
    "{…}": re.compile(r"\{"),
    "[…]": re.compile(r"\["),
    TAG_MARK: _TAG,
    LABEL_MARK: re.compile(r"(?!)"),
    LETTER_MARK: re.compile(r"(?:^|\s)\(?[Aa][).:]\s"),
    COMMAND_MARK: re.compile(r"\b[A-Z]{4,}\b|\b[Cc]apital|\b[Uu]pper ?case"),
    "@…": re.compile(r"(?<!\S)@\w"),
    "…(…)": re.compile(r"\w\("),
    "SELECT …": re.compile(r"\bSQL\b", re.IGNORECASE),
    "def …": re.compile(r"\b(?:code|function|program|class|script)\b", re.IGNORECASE),
    "tab": re.compile(r"\t"),
}
"""Mark -> how a prompt asks for it, where it does not stand in the prompt as it is."""


def find_marks(text: str) -> frozenset[str]:
    """The marks of structure of one answer; empty for plain words. Of a long text both ends are read."""
    text = drop_thoughts(text).strip()
    if len(text) > 2 * CHARACTERS_READ:
        text = f"{text[:CHARACTERS_READ]} … {text[-CHARACTERS_READ:]}"
    marks = {"<|…|>"} if _SPECIAL.search(text) else set[str]()
    text = _SPECIAL.sub(" ", text)
    marks |= {mark for mark, pattern in PATTERNS_ANYWHERE.items() if pattern.search(text)}
    marks |= {f"<{name.lower()}>" for name in _TAG.findall(text)[:20]}
    marks |= {f"\\{name}{{…}}" for name in _WRAPPER.findall(text)[:20]}
    marks |= {f"{name.lower()}:" for name in (*_LABEL.findall(text)[:20], *_ANSWER.findall(text)[:20])}
    return frozenset(marks | _find_beginnings(text, KEYS_MARK in marks))


def _find_beginnings(text: str, has_keys: bool) -> set[str]:
    """Marks of how a text begins, inside a fence of code too, and of a text that is one word with a sign in it."""
    fence = _FENCED.match(text)
    unfenced = (text[fence.end() :] if fence else text).lstrip("$ \n")
    wrapped = re.match(r"(?:\\[\[(]\s*)?\\([A-Za-z]{2,20})\{", unfenced)
    marks = {f"\\{wrapped.group(1)}{{…}}"} if wrapped else set[str]()
    marks |= {mark for mark, pattern in PATTERNS_AT_START.items() if pattern.match(unfenced)}
    if has_keys:  # what begins with a brace or a bracket is said by its keys
        marks -= {"{…}", "[…]"}
    trimmed = unfenced.rstrip(" .")
    for pattern in (_TOKEN, _SPACED) if len(trimmed) <= 200 else ():
        if sign := pattern.match(trimmed):
            marks.add(f"…{sign.group(1)}…")
    return marks


def is_asked_for(mark: str, prompt: str) -> bool:
    r"""Whether a prompt names the mark itself (`\boxed`, `<answer>`, JSON, the choices), so that an answer with it obeys."""
    if len(prompt) > 8 * CHARACTERS_READ:
        prompt = f"{prompt[: 4 * CHARACTERS_READ]}\n{prompt[-4 * CHARACTERS_READ :]}"
    if mark in PATTERNS_ASKED:
        return PATTERNS_ASKED[mark].search(prompt) is not None
    if mark.startswith("…") and mark.endswith("…"):
        return re.search(rf"[^\W\d_]{re.escape(mark.strip('…'))}[^\W\d_]", prompt) is not None
    needle = mark.split("{")[0] if mark.startswith("\\") else mark
    return needle in prompt.lower() or needle in prompt
