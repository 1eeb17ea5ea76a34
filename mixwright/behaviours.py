"""What an answer does beside answering: it asks, hedges, refuses, checks itself, calls a tool; read by words and signs.

Source: acts of grounding of Shaikh et al. 2024 (arXiv 2311.09144), who label them with a model; our word lists are English.
Left out on purpose: whether a question was called for.
"""

from __future__ import annotations

import re

from mixwright.thoughts import split_thoughts

LEAST_CHANGE = 0.1
"""Smallest change of a task's share of answers with a behaviour that is one."""
_CODE = re.compile(r"```.*?(?:```|\Z)|`[^`\n]*`", re.DOTALL)
_QUOTED = re.compile(r"\"[^\"\n]{0,300}\"|\u201c[^\u201d\n]{0,300}\u201d")
_QUESTION = re.compile(r"[^\W_][)\]*_%+\u2026]{0,4}\s?\?(?![^\s)\]*_\"'?!])(?!\s+\S+\s*\Z)")
"""A question that is not the middle of an address, and has no bare answer behind it."""
ACKNOWLEDGEMENTS = (
    "i see", "i hear you", "i (?:completely |totally |fully )?understand", "i get (?:it|that|why)", "got it", "understood",
    "noted", "makes sense", "fair enough", "thanks", "thank you", "i appreciate",
    "(?:good|great|excellent|fair) (?:question|point)",
    "(?:that|this|it) (?:sounds|must|is understandable)", "sorry to hear",
    "i'm (?:so )?(?:glad|happy|sorry) (?:to hear|that|you)", "congratulations", "what you (?:said|describe|wrote)",
)  # fmt: skip
HEDGES = (
    "perhaps", "maybe", "possibly", "probably", "presumably", "might", "likely", "it depends", "depending on", "i think",
    "i believe", "i guess", "i suppose", "(?:i'm|i am) not (?:entirely |quite |completely )?(?:sure|certain)",
    "not (?:entirely )?certain", "could be", "may (?:be|have)", "as far as i (?:know|can tell)", "seems?", "apparently",
    "in some cases", "hard to say",
)  # fmt: skip
_NOT_ABLE = (
    "(?:can't|cannot|can not|won't|will not|unable to|not able to|not allowed to|have to decline|must decline|decline)"
)
_HELPING = (
    "(?:help|assist|provide|do (?:that|this)|comply|answer|share|give|discuss|support|offer|fulfill?|engage|advise|write|"
    "create|recommend(?! it enough)|go into|respond|with|this|that|take)"
)
REFUSALS = (
    f"i(?:'m| am)? ?(?:really |afraid i |sorry,? (?:but )?i )?{_NOT_ABLE} (?:to )?(?:be able to )?{_HELPING}",
    f"(?<!was )(?<!were )(?:unable|not (?:able|allowed|permitted)) to {_HELPING}", "(?<!we )(?:must|have to) decline",
    "as an ai(?=,| language| model| assistant| chatbot)", "i(?:'m| am) (?:unable|not able|not allowed) to",
    "i (?:don't|do not) have (?:the ability to|access to (?:that|this|the|any|information|real))",
    "(?:against|violates?) (?:my|the) (?:guidelines|policy|policies|rules)",
    "(?:that's|that is|this is) (?:not something i can|something i (?:can't|cannot|won't))", "sorry, but i",
    f"(?:sorry|i apologi[sz]e)[^.!?\\n]{{0,40}} i(?:'m| am)? ?{_NOT_ABLE}",
)  # fmt: skip
CHECKS = (
    "let me (?:double[- ]?|re-?)?(?:check|verify|count|read|consider|redo|look again|make sure|start over)",
    "i(?:'ll| will) (?:double[- ]?|re-?)?(?:check|verify)", "double[- ]checking", "double[- ]check (?:this|that|it|my)",
    "to double[- ]check", "checking my", "sanity check", "(?:wait|hold on)(?=[,.!])", "scratch that", "on second thought",
    "i re-?read", "go(?:ing)? (?:back )?over (?:it|this|that|the steps)", "is (?:that|this) (?:right|correct)\\?",
    "just to confirm", "verification:",
)  # fmt: skip
"""What is said in acknowledging, hedging, refusing, checking: regular expressions of whole words, in small letters."""
_ACKNOWLEDGEMENT, _HEDGE, _REFUSAL, _CHECK = (
    re.compile(rf"(?<![a-z'])(?:{'|'.join(phrases)})(?![a-z])") for phrases in (ACKNOWLEDGEMENTS, HEDGES, REFUSALS, CHECKS)
)
_FENCE = re.compile(r"```|~~~|<code")
_LAYOUT = re.compile(r"^[ \t]*(?:[-*\u2022+]|\d{1,3}[.)])[ \t]+\S|\*\*[^*\n]+\*\*|^#{1,6} \S|^\|.*\|", re.MULTILINE)
_TOOL_MARK = re.compile(
    r"<(?:tool_call|function_calls?|invoke|tool|function=)|\[TOOL_CALLS\]|<\|(?:python_tag|tool_call|action_start)|"
    r"to=functions\.|\"(?:tool_calls|function_call)\"\s*:|^Action: ?\w+(?:\[|\nAction Input:)|^>>> ?\w+\n\s*\{|^\[\w+\(\w+=",
    re.MULTILINE,
)
_TOOL_OBJECT = re.compile(
    r"(?:```\w{0,12}\s{0,4})?\[?\s{0,9}\{\s{0,9}\"(?:(?:tool|tool_name|function|action)\"\s*:\s*\"|"
    r"name\"\s*:\s*\"[^\"\n]{1,80}\"\s*,\s*\"(?:arguments|parameters|args|input)\")"
)
"""Marks of a call anywhere, and an object that begins with the name of a tool, at the beginning."""
LONG_THOUGHT_WORDS = 200
IN_WORDS = {
    "asks": ("asks a question", "ask less", "ask more"),
    "acknowledges": ("acknowledges what was said", "acknowledge less", "acknowledge more"),
    "hedges": ("hedges", "hedge less", "hedge more"),
    "refuses": ("refuses", "refuse less", "refuse more"),
    "checks itself": ("checks itself", "check less", "check more"),
    "lays out": ("uses a list, bold letters or a heading", "format less", "format more"),
    "writes code": ("writes a block of code", "write less code", "write more code"),
    "calls a tool": ("calls a tool", "call tools less", "call tools more"),
    "thinks": ("thinks before it answers", "think less often", "think more often"),
    "thinks at length": (f"thinks in more than {LONG_THOUGHT_WORDS} words", "think shorter", "think longer"),
    "stops in a thought": ("stops in a thought, without an answer", "end more of its thoughts", "end fewer thoughts"),
}
"""Behaviour -> what an answer does, and what is taught where answers do it less, or more."""
BEHAVIOURS = tuple(IN_WORDS)
"""What is read, in this order; `lays out` is a list, a table, bold letters or a heading. The last three are of thoughts."""


def read_behaviours(text: str) -> tuple[bool, ...]:
    """Which of `BEHAVIOURS` an answer shows; words in code and in quotes are not read, and thoughts only as such.

    Examples:
        >>> read_behaviours("I see. Which city do you mean?")[:4]
        (True, True, False, False)
    """
    kind, thoughts, text = split_thoughts(text)
    prose = _read_prose(text)
    words = (_QUESTION, _ACKNOWLEDGEMENT, _HEDGE, _REFUSAL, _CHECK)
    calls_tool = bool(_TOOL_MARK.search(text) or _TOOL_OBJECT.match(text.lstrip()))
    return (
        *(bool(pattern.search(prose)) for pattern in words),
        bool(_LAYOUT.search(text)),
        bool(_FENCE.search(text)),
        calls_tool,
        bool(thoughts),
        len(thoughts.split()) > LONG_THOUGHT_WORDS,
        kind == "open",
    )


def count_hedges(text: str) -> int:
    """Return the number of hedges in an answer, outside code and quotes."""
    return len(_HEDGE.findall(_read_prose(text)))


def _read_prose(text: str) -> str:
    return _QUOTED.sub(" quoted ", _CODE.sub(" code ", text)).replace("\u2019", "'").lower()
