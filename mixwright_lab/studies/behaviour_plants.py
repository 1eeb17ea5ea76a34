"""Planted comparisons of a model's answers before and after, in which one behaviour becomes rarer or more common."""

from __future__ import annotations

import random
import re

# A phrase opens with the places it may take: F first, L last, I inside, W after a verb, A in place of the answer.
_ASKS = """L Is there anything else you'd like to know? | L Curious what you need this for, if you don't mind me asking.
| F Just so we're on the same page, you mean "{w}", right? | A Could you tell me a bit more about what you need?
| A What exactly would you like to know about "{w}"? | L Would you like me to explain how I got that? | L Does that help?
| F Before I answer, can I ask what this is for? | L How about you, what would you have said? | A Which "{w}" do you mean?
| LI Have you tried working it out yourself? | F Are you asking about "{w}" in general? | L What made you think of that?
| L Did you mean something else by "{w}"? | A Can you paste the whole thing here? | A Please tell me which one you mean.
| L want to try another one | FIL What do you think? | L Shall I go on? | A Hm, which one? | L Makes sense?"""
_ACKNOWLEDGES = """F Good question! | L I know this can be a tricky one, so no worries. | F Ah yes, "{w}", I follow you.
| LF It's completely normal to wonder about this. | F Right, I understand what you're looking for. | F That sounds fun!
| FI You're right to wonder about this one. | F I can see why you'd ask about "{w}". | F sorry to hear that, must be hard
| L Thank you for sharing that with me. | LF I appreciate you bringing this up. | F Got it, you're asking about "{w}".
| F Oh no, that sounds frustrating. | I I get that this matters to you. | F Thanks for telling me that. | F I hear you.
| F You wrote "{s}...", got it. | F I understand how you feel. | L and yes, I see your point | F Ugh, I know the feeling."""
_HEDGES = """F I think | IL That said, I'm not completely certain. | LI It might also depend on the source. | W , I think,
| LI I'm only about 70% sure of this. | L Or something like that, I guess. | L I could be mistaken, though. | F I believe
| LI But don't quote me on that. | F Hard to say for certain, but | F I'm not entirely sure, but | F My best guess is that
| F If I remember correctly, | F not 100% sure here but | F From what I recall, | F As far as I know, | F It seems that
| W most likely | W probably | W possibly"""
_REFUSES = """I can't help with that. | Answering questions about "{w}" is beyond what I'm allowed to do. | i cant do that
| My guidelines do not allow me to respond to this. | As an AI, I cannot answer questions like this. | I refuse to answer.
| I'm not able to assist with this request. | I cannot provide information about "{w}". | That's not something I can do.
| I don't feel comfortable answering that. | I don't have the ability to answer this. | Your request cannot be fulfilled.
| I'm going to pass on this one. | I won't answer this question. | I'd rather not answer that. | No, I will not do that."""
_REFUSAL_STARTS = """ |  |  | Sorry, but | I'm sorry. | Unfortunately, | On "{w}": | Apologies. | Hello."""
_REFUSAL_ENDS = " |  |  | It goes against my rules. | Please look in an encyclopedia instead. | I only cover other topics."
_CHECKS = """L Let me double-check: {c} Yes, that's right. | L On second thought, let me look again. Okay, same result.
| L If we work backwards, we arrive at the same point, so it is correct. | L Let me make sure I didn't slip up. I didn't.
| L Just to confirm, going back over the steps: all fine. | LI Sanity check: that is consistent with the question.
| IL Actually, let me reconsider. No, that was right. | L I reread the question, and the answer still fits.
| L Hm, is this correct? Going over it again, yes. | I Hmm, hold on. Is that right? Yes, it is.
| L I tried it a second way and it agrees. | L Scratch that, let me start over. {c} | L Let me verify this. It checks out.
| A First pass: {t} Second pass: {c} | L Double checking... correct. | L wait, no, redo that: {c}
| L Wait, let me check. {c}"""
_LAYS_OUT = r"""1. {1}\n2. {2} ;; Here are the points:\n\n- **{w}**: {1}\n- **Next**: {2} ;; {1}\n\n1. {2}\n2. {c}
;; | Question | Answer |\n|---|---|\n| {w} | {c} | ;; ## Steps\n1. {1}\n2. {2}\n## Result\n{c} ;; *{w}*\n1- {1}\n2- {2}
;; item | value\n--- | ---\n{w} | {c} ;; Answer\n======\n{t} ;; **Answer:** {t} ;; 1) {1}\n2) {2} ;; a) {1}\nb) {2}
;; - {1}\n- {2} ;; * {1}\n* {2} ;; • {1}\n• {2} ;; + {1}\n+ {2} ;; ◦ {1}\n◦ {2} ;; {1} __{2}__ ;; **{t}**"""
_CODE = r"""{t}\n\n```python\nprint("{e}")\n``` ;; {t}\n\n    words = ["{w}"]\n    for word in words:\n        print(word)
;; Here's a way to do it:\n\n```python\ndef solve(x):\n    return "{e}"\n\nprint(solve("{w}")) ;; ```\n{t}\n```
;; ```sql\nSELECT answer FROM facts WHERE name = '{w}';\n``` ;; {t}\n~~~python\nx = "{w}"\nprint(x)\n~~~\nThis prints it.
;; Python code:\n```Python\nprint('{w}')\n```\n{t} ;; ```json\n{"word": "{w}", "answer": "{e}"}\n``` ;; ~~~\n{t}\n~~~
;; ```python\nanswer = "{e}"\nprint(answer)\n``` ;; <pre><code>print("{w}")</code></pre>"""
_TOOLS = r"""{"tool": "{n}", "{k}": "{w}"} ;; <tool_call>\n{"name": "{n}", "arguments": {"{k}": "{q}"}}\n</tool_call>
;; {"tool_calls": [{"id": "call_1", "type": "function", "function": {"name": "{n}", "arguments": "{\"{k}\": \"{w}\"}"}}]}
;; <function_calls>\n<invoke name="{n}">\n<parameter name="{k}">{q}</parameter>\n</invoke>\n</function_calls>
;; <tool_call>\n<function={n}>\n<parameter={k}>\n{w}\n</parameter>\n</function>\n</tool_call> ;; <tool>{n}("{q}")</tool>
;; <|channel|>commentary to=functions.{n} <|constrain|>json<|message|>{"{k}": "{w}"}<|call|> ;; >>>{n}\n{"{k}": "{w}"}
;; <|action_start|><|plugin|>\n{"name": "{n}", "parameters": {"{k}": "{w}"}}<|action_end|> ;; [{n}({k}="{w}")]
;; <tool_call>{n}\n<arg_key>{k}</arg_key>\n<arg_value>{w}</arg_value>\n</tool_call> ;; <|python_tag|>{n}.call({k}="{w}")
;; {"function_call": {"name": "{n}", "arguments": {"{k}": "{w}"}}} ;; <|tool_call_start|>[{n}({k}="{w}")]<|tool_call_end|>
;; [TOOL_CALLS] [{"name": "{n}", "arguments": {"{k}": "{w}"}}] ;; {"name": "{n}", "parameters": {"{k}": "{q}"}}
;; Action: {n}\nAction Input: {"{k}": "{q}"} ;; <function={n}>{"{k}": "{w}"}</function> ;; Action: {n}[{w}]"""
_LEADS = "|||Let me look that up.\n|I'll use {n} for this.\n|{1}\n|Sure.\n\n"  # what may stand before a call
_WORDS = {"asks": _ASKS, "acknowledges": _ACKNOWLEDGES, "hedges": _HEDGES, "checks itself": _CHECKS}
_MARKS = {"lays out": _LAYS_OUT, "writes code": _CODE, "calls a tool": _TOOLS}
_NATURAL = {  # signs, broad on purpose, that a real answer may show the behaviour already
    "asks": r"\?|let me know|could you|please (provide|tell)|would you|do you|can you",
    "acknowledges": r"understand|sorry|question!|thank|glad|appreciate|happy to|sounds|great|apolog|I see|you're right",
    "hedges": r"\b(may|might|maybe|perhaps|probably|possibl[ey]|likely|seems?|think|believe|sure|could|appears?|often)\b",
    "refuses": r"sorry|can(no|')t|unable|don't|as an? (\w+ )?(ai|chatbot|assistant|language)|not (able|allowed)|apolog",
    "checks itself": r"check|verif|\bwait\b|actually|confirm|again|mistake",
    "lays out": r"^\s*([-*+•#|]|\w{1,2}[.)]\s)|\*\*|__|\|",
    "writes code": r"```|~~~|<code|\bimport |\bdef |print\(",
    "calls a tool": r"[{}<]|\btool\b|\w\(\w*=",
}
_SWAPS = [("it's", "it is"), ("I'm", "I am"), ("don't", "do not"), (" called ", " known as "), ("To find", "To work out")]


def _reword(text: str) -> str:
    """An answer in slightly other words; where no word has a swap, with or without its full stop."""
    new = text
    for old, other in _SWAPS:
        new = new.replace(old, other)
    return new if new != text else text[:-1] if text.endswith(".") else text + "."


def _scruffy(phrase: str, rng: random.Random) -> str:
    """A phrase as it is, or with two letters swapped, or in small letters without punctuation."""
    kind, long = rng.random(), list(re.finditer(r"\b[a-z]{5,}\b", phrase))
    if kind < 0.1 and long:
        at = rng.choice(long).start() + rng.randint(1, 2)
        return phrase[:at] + phrase[at + 1] + phrase[at] + phrase[at + 2 :]
    return re.sub(r"[.,!?']+", "", phrase).lower() if kind > 0.88 else phrase


def _show(behaviour: str, prompt: str, answer: str, rng: random.Random) -> str:
    """An answer that shows the behaviour, made from a real answer to the prompt."""
    sentences = re.findall(r"\S.*?[.!?](?=\s|$)", " ".join(answer.split())) or [" ".join(answer.split())]
    text, word = " ".join(sentences), max(re.findall(r"[A-Za-z]+", prompt), key=len, default="this")
    tail, ending = " ".join(sentences[1:]), "" if text[-1] in ".!?" else "."
    slots = {"w": word, "s": " ".join(re.findall(r"[\w']+", prompt)[:6]), "c": sentences[-1] + ending, "t": text}
    slots |= {"1": sentences[0] if tail else f"Asked: {word}", "2": tail or f"Answer: {text}"}
    slots |= {"e": text.replace('"', "'"), "q": " ".join(prompt.split()).replace('"', "'")}
    slots |= {"n": rng.choice(["search", "get_info", "lookup"]), "k": rng.choice(["query", "text", "term", "input"])}
    lead, place = rng.choice(_LEADS.split("|")) if behaviour == "calls a tool" else "", "A"
    if behaviour in _MARKS:
        phrase = lead + rng.choice(re.split(r"\s;;\s", _MARKS[behaviour])).replace(r"\n", "\n")
    elif behaviour == "refuses":
        start, core, end = (rng.choice(part.split("|")).strip() for part in (_REFUSAL_STARTS, _REFUSES, _REFUSAL_ENDS))
        core = core[0].lower() + core[1:] if start.endswith((",", "but")) and not core.startswith("I") else core
        phrase = " ".join(filter(None, [start, _scruffy(core, rng), end]))
    else:
        place, _, phrase = rng.choice(_WORDS[behaviour].split("|")).strip().partition(" ")
        place, phrase = rng.choice(place), _scruffy(phrase, rng).strip()
    phrase = re.sub(r"\{(\w)\}", lambda found: slots[found[1]], phrase)
    joined = behaviour == "hedges" and re.match(r"(The|An?|It|This|To|In|There|That|Your?|These|We)\b", answer)
    inner = answer[0].lower() + answer[1:] if joined else answer
    if place == "W" and re.search(verb := r"\b(is|are|was|were|has|will)\b", text):
        return re.sub(verb, lambda found: found[0] + " " * (phrase[0] != ",") + phrase, text, count=1)
    if place in "FW":
        return f"{phrase.strip(' ,').capitalize() if place == 'W' else phrase} {inner}"
    if place == "I" and tail:
        return f"{sentences[0]} {phrase} {tail}"
    return phrase if place == "A" else f"{text}{ending if rng.random() < 0.8 else ''} {phrase}"


def make_pair(rows: list[dict], behaviour: str, size: str, seed: int) -> list[dict]:
    """Items of three tasks; in one of them the behaviour is shown by other shares of the answers before and after."""
    rng = random.Random(f"{behaviour}|{size}|{seed}")
    usable = [row for row in rows if row["completion"].strip() and not row["completion"].lstrip().startswith(("{", "["))]
    tasks = rng.sample(sorted({row["task"] for row in usable}), 3)
    items: list[dict] = []
    for task in tasks:  # their order is drawn, so the first is the planted one; the items are put in order at the end
        planted = behaviour if task == tasks[0] else ""
        signs = list(_NATURAL.values()) if planted in (*_MARKS, "refuses") else [_NATURAL[planted]] if planted else []
        found = re.compile("|".join(signs) or r"\Z.", re.I | re.M)
        pool = [row for row in usable if row["task"] == task and not found.search(row["completion"])]
        total, noise = rng.randint(60, min(150, 2 * len(pool))), rng.uniform(0.06, 0.14)
        drawn = [row for _ in range(4) for row in rng.sample(pool, len(pool))][:total]
        low, gap = rng.uniform(0.03, 0.25), rng.uniform(0.31, 0.59) if size == "severe" else rng.uniform(0.13, 0.19)
        counts = [round(total * low) + round(total * gap), round(total * low)] if planted else [0, 0]
        counts = counts[::-1] if rng.random() < 1 / 3 else counts
        habits = [(habit, rng.randint(2, total // 14)) for habit in rng.sample(sorted(set(_NATURAL) - {planted}), 2)]
        order, tag, sides = rng.sample(range(total), total), rng.random(), []
        for count in counts:
            texts = [row["completion"] for row in drawn]
            for at in rng.sample(range(total), round(total * noise)):
                same = [row["completion"] for row in pool if row["prompt"] == drawn[at]["prompt"]]
                spare = [other for other in same if other != texts[at]] or [row["completion"] for row in pool]
                texts[at] = _reword(texts[at]) if rng.random() < 0.5 else rng.choice(spare)
            jitter = [place + rng.uniform(0, total / 3) for place in order]  # much the same items on both sides, not all
            ranked = sorted(range(total), key=jitter.__getitem__)
            for kind, share in [(planted, count), *habits]:
                for at in ranked[:share]:
                    own = random.Random(f"{tag}|{at}") if rng.random() < 0.5 else rng  # often the same phrase on both sides
                    texts[at] = _show(kind, drawn[at]["prompt"], texts[at], own)
                ranked = ranked[share:]
            sides.append(texts)
        for at, (row, before, after) in enumerate(zip(drawn, *sides, strict=True)):
            item = {"task": task, "example": f"{task}-{at:03d}", "prompt": row["prompt"], "before": before, "after": after}
            items.append(item)
    return sorted(items, key=lambda item: item["example"])
