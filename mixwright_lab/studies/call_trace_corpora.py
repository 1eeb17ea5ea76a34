"""Made corpora of conversations with tool calls and results, with or without one planted fault, for a study.

A conversation is a request, one to three calls with their results, and an answer. Later calls cite an identifier that an
earlier result, the request or the system message gave, and arguments are numbers of the request. It is written as chat
messages, or as one text with tags, as ReAct steps, or as lines of JSON.

Faults: later calls cite identifiers that nothing gave (`dangling`), the call that needs a result stands before the one
that makes it (`order`), answers state another number than the result holds (`answer`), or one argument is not the
request's number but another one by one rule (`argument`). Sound corpora have, beside a slip in up to 1 % of their
conversations, what may look like a fault: dates worked out, codes that everybody knows, hours given in minutes, one guest
more ("me and three friends"), rounded values, counts of what was found, sums, and times of day in words.
"""

from __future__ import annotations

import json
import random
import string
from dataclasses import dataclass, field
from typing import Any

from mixwright.records import Example

KINDS: tuple[str, ...] = ("dangling", "order", "answer", "argument")
CITIES = ("Lisbon", "Osaka", "Quito", "Bergen", "Tunis", "Perth", "Turin", "Leeds", "Graz", "Cork")
PEOPLE = ("Maya", "Tom", "Aisha", "Lars", "Priya", "Chen", "Olga", "Sam", "Rosa", "Kofi")


@dataclass(frozen=True)
class Domain:
    """Two tools and what is said about them."""

    task: str
    find: str
    """Tool that finds records."""
    key: str
    """What it is asked for."""
    identifier: str
    """Field of a record's identifier."""
    shape: str
    """Of identifiers: letters, digits, hex, mixed."""
    act: str
    """Tool that does something to a record."""
    number: str
    """Its argument that is a number of the request."""
    requests: tuple[str, ...]
    """With `{place}` and `{n}`."""
    value: str
    """Field of its result that the answer states."""
    answers: tuple[str, ...]
    """With `{v}`."""
    low: int
    high: int
    """Range of the value."""
    decimals: int = 0


DOMAINS = (
    Domain(
        "hotels",
        "search_hotels",
        "city",
        "hotel_id",
        "mixed",
        "book_hotel",
        "nights",
        ("Book a hotel in {place} for {n} nights.", "I need {n} nights in {place}.", "Stay in {place}, {n} nights please."),
        "total_price",
        ("Done. The total price is {v} euros.", "Your stay is booked, and it costs {v} in total.", "Booked; total: {v}."),
        200,
        4000,
        2,
    ),
    Domain(
        "shop",
        "find_product",
        "name",
        "product_id",
        "digits",
        "add_to_cart",
        "quantity",
        (
            "Put {n} lamps of the shop in {place} into my cart.",
            "Order {n} of the lamps sold in {place}.",
            "{n} lamps, branch {place}.",
        ),
        "subtotal",
        ("The subtotal is now {v} dollars.", "They are in the cart, with a subtotal of {v}.", "Subtotal: ${v}."),
        20,
        900,
        2,
    ),
    Domain(
        "loans",
        "lookup_customer",
        "branch",
        "customer_number",
        "digits",
        "quote_loan",
        "amount",
        (
            "Quote a loan of {n} for the branch {place}.",
            "What would {n} cost as a loan, branch {place}?",
            "Loan over {n} at {place}.",
        ),
        "monthly_payment",
        ("The monthly payment would be {v}.", "You would pay {v} a month.", "That is {v} per month."),
        150,
        3000,
    ),
    Domain(
        "sensors",
        "list_devices",
        "room",
        "device",
        "hex",
        "set_limit",
        "limit",
        (
            "Set the limit of the sensor in {place} to {n}.",
            "The sensor of {place} should stop at {n}.",
            "Limit {n} for {place}.",
        ),
        "current_reading",
        ("The limit is set; the current reading is {v}.", "It is done, and the sensor reads {v} now.", "Set. Reading: {v}."),
        100,
        999,
        1,
    ),
    Domain(
        "tickets",
        "find_train",
        "destination",
        "train_code",
        "letters",
        "reserve_seats",
        "seats",
        (
            "Reserve {n} seats to {place}.",
            "{n} seats on the next train to {place}, please.",
            "I'd like {n} seats for {place}.",
        ),
        "fare",
        ("The fare is {v} euros.", "Your seats are reserved for {v} euros.", "All set, the fare comes to {v}."),
        30,
        800,
        2,
    ),
    Domain(
        "orders",
        "search_orders",
        "customer",
        "order_id",
        "mixed",
        "refund_order",
        "amount",
        (
            "Refund {n} of the order of {place}.",
            "Please give {n} back on the order from {place}.",
            "{n} should be refunded, order {place}.",
        ),
        "balance",
        ("The balance is {v} now.", "Refunded. What is left is a balance of {v}.", "New balance: {v}."),
        100,
        5000,
        2,
    ),
)
NUMBERS = {"nights": (2, 21), "quantity": (2, 60), "amount": (120, 9800), "limit": (15, 480), "seats": (2, 18)}
RULES = ("ten times", "hundred times", "one more", "one less", "twice", "thousand times")


def _identifier(rng: random.Random, shape: str) -> str:
    if shape == "digits":
        return str(rng.randrange(10**6, 10**8))
    if shape == "hex":
        return "".join(rng.choices("0123456789abcdef", k=12)) + "7f"
    if shape == "letters":
        return "".join(rng.choices(string.ascii_uppercase, k=2)) + f"{rng.randrange(100, 99999)}"
    return f"{rng.choice(('H', 'ORD', 'X', 'REF'))}-{rng.randrange(1000, 999999)}"


def _by_rule(rule: str, value: int) -> int:
    factor = {"ten times": 10, "hundred times": 100, "thousand times": 1000, "twice": 2}.get(rule)
    return value * factor if factor else value + (1 if rule == "one more" else -1)


@dataclass
class Turn:
    """One thing that is said or done."""

    kind: str
    """user, call, result, answer, or said (words of the assistant before a call)."""
    text: str = ""
    name: str = ""
    data: Any = field(default_factory=dict)


def _result_value(rng: random.Random, domain: Domain) -> float | int:
    value = rng.uniform(domain.low, domain.high)
    return round(value, domain.decimals) if domain.decimals else round(value)


def _stated(rng: random.Random, value: float, *, exact: bool) -> str:
    if isinstance(value, float) and not exact and rng.random() < 0.25:
        return rng.choice((f"about {value:.0f}", f"{value:.1f}", f"{value:,.2f}"))
    return rng.choice((f"{value}", f"{value:,}")) if abs(value) >= 1000 else f"{value}"


@dataclass
class Fault:
    """What one conversation has."""

    kind: str = ""
    rule: str = ""


def _conversation(rng: random.Random, domain: Domain, fault: Fault) -> tuple[str, list[Turn]]:
    """A system message (or none) and the turns."""
    place = rng.choice(CITIES if domain.key in ("city", "destination", "room", "branch", "name") else PEOPLE)
    low, high = NUMBERS[domain.number]
    number = rng.randint(low, high)
    request, argument = rng.choice(domain.requests).format(place=place, n=number), number
    look = rng.random()
    if domain.number in ("nights", "seats") and look < 0.08:
        request, argument = f"For me and {number} friends: {domain.number} in or to {place}.", number + 1
    elif domain.number == "limit" and look < 0.1:
        request, argument = (
            f"Set the limit of the sensor in {place} to {number} minutes... I mean {number} hours.",
            number * 60,
        )
    elif domain.number == "amount" and look < 0.1:
        request, argument = f"About {number}k please, for {place}.", number * 1000
    if fault.kind == "argument":
        argument = _by_rule(fault.rule, argument)
    records = [
        {domain.identifier: _identifier(rng, domain.shape), domain.key: place, "rank": rank + 1}
        for rank in range(rng.randint(1, 4))
    ]
    chosen = rng.choice(records)
    identifier = chosen[domain.identifier]
    value = _result_value(rng, domain)
    system = ""
    if rng.random() < 0.4:
        system = f"Today is 2024-0{rng.randint(1, 9)}-1{rng.randint(0, 9)}. You can call {domain.find} and {domain.act}."
    turns = [Turn("user", request)]
    given = rng.random() < 0.25 and fault.kind not in ("order",)
    cited = _identifier(rng, domain.shape) if fault.kind == "dangling" else identifier
    asked_for = {domain.key: place}
    if rng.random() < 0.3:
        asked_for["date"] = f"2024-05-1{rng.randint(0, 9)}"
    found = {"results": records, "count": len(records)}
    first = [Turn("call", name=domain.find, data=asked_for), Turn("result", name=domain.find, data=found)]
    arguments: dict[str, Any] = {domain.identifier: cited, domain.number: argument}
    if rng.random() < 0.2:
        arguments["currency"] = rng.choice(("EUR", "USD", "JPY"))
    if isinstance(cited, str) and cited.isdigit() and rng.random() < 0.3:
        arguments[domain.identifier] = int(cited)
    outcome: dict[str, Any] = {"status": "ok", domain.value: value}
    if rng.random() < 0.5:
        outcome["reference"] = _identifier(rng, "mixed")
    second = [Turn("call", name=domain.act, data=arguments), Turn("result", name=domain.act, data=outcome)]
    if given:
        turns[0].text += f" It is {identifier.lower() if rng.random() < 0.2 else identifier}."
        body = second
    else:
        body = [*second, *first] if fault.kind == "order" else [*first, *second]
    if rng.random() < 0.4:
        body.insert(0, Turn("said", rng.choice(("Let me look.", "One moment.", "I will check that for you."))))
    turns += body
    stated = value
    if fault.kind == "answer":
        change = rng.choice((-1, 1)) * rng.randint(2, max(9, int(value // 4)))
        wrong = {"": value + change + (rng.randint(0, 9) / 10 if domain.decimals else 0), "ten times": value * 10}
        stated = round(wrong.get(fault.rule, value + 1), domain.decimals or None)
    answer = rng.choice(domain.answers).format(v=_stated(rng, stated, exact=fault.kind == "answer"))
    extra = rng.random()
    if extra < 0.1 and not given:
        answer += f" I had found {('no', 'one', 'two', 'three', 'four')[len(records)]} of them."
    elif extra < 0.2:
        answer += " " + rng.choice(
            ("Check-in is at 3 pm.", "Anything else? I am here 24/7.", "You have 30 days to change it.")
        )
    elif extra < 0.25 and fault.kind != "answer":
        answer += f" For two of these it would be {round(value * 2, domain.decimals)}."
    elif extra < 0.35 and "reference" in outcome:
        answer += f" The reference is {outcome['reference']}."
    turns.append(Turn("answer", answer))
    return system, turns


def _call(turn: Turn) -> dict[str, Any]:
    return {"name": turn.name, "arguments": turn.data}


def _as_chat(rng: random.Random, system: str, turns: list[Turn]) -> tuple[Any, Any]:
    messages = [{"role": "system", "content": system}] if system else []
    tag = rng.random() < 0.5
    for turn in turns:
        if turn.kind == "call":
            text = json.dumps(_call(turn))
            messages.append({"role": "assistant", "content": f"<tool_call>\n{text}\n</tool_call>" if tag else text})
        elif turn.kind == "result":
            messages.append({"role": "tool", "content": json.dumps(turn.data)})
        elif turn.kind == "said":
            continue  # two turns of the assistant after each other are none in a chat
        else:
            messages.append({"role": "user" if turn.kind == "user" else "assistant", "content": turn.text})
    return tuple(messages[:-1]), tuple(messages[-1:])


def _as_text(rng: random.Random, system: str, turns: list[Turn], form: str) -> tuple[str, str]:
    prompt = "\n".join(part for part in (system, turns[0].text) if part)
    lines = []
    for turn in turns[1:]:
        if turn.kind == "call":
            text = json.dumps(_call(turn))
            lines.append({
                "tags": f"<tool_call>\n{text}\n</tool_call>",
                "react": f"Action: {turn.name}\nAction Input: {json.dumps(turn.data)}",
                "lines": rng.choice((text, json.dumps({"tool": turn.name, **turn.data}))),
                "functioncall": f"<functioncall> {text}",
            }[form])  # fmt: skip
        elif turn.kind == "result":
            text = json.dumps(turn.data)
            lines.append({
                "tags": f"<tool_response>\n{text}\n</tool_response>",
                "react": f"Observation: {text}",
                "lines": f"Result: {text}",
                "functioncall": f"FUNCTION RESPONSE: {text}",
            }[form])  # fmt: skip
        else:
            lines.append(f"Final Answer: {turn.text}" if form == "react" and turn.kind == "answer" else turn.text)
    return prompt, "\n".join(lines)


@dataclass
class MadeCalls:
    """One corpus."""

    rows: list[Example]
    task: str
    """Of the fault; empty without one."""
    detail: str
    """What was planted, and in which share of the conversations."""


def make_calls(seed: int, kind: str | None, *, severe: bool) -> MadeCalls:
    """The corpus of a seed, clean or with a fault of a kind in one of its two or three tasks."""
    rng = random.Random(f"calls {seed} {kind} {severe}")
    domains = rng.sample(DOMAINS, rng.randint(2, 3))
    target = rng.choice(domains) if kind else None
    rows, detail = [], ""
    for domain in domains:
        form = rng.choice(("chat", "chat", "tags", "react", "lines", "functioncall"))
        share = rng.uniform(0.3, 0.6) if severe else rng.uniform(0.1, 0.16)
        rule = rng.choice(RULES) if kind == "argument" else rng.choice(("", "ten times", "one more"))
        if domain is target:
            detail = f"{kind}{': ' + rule if rule else ''}, {share:.3f} of the conversations, written as {form}"
        slips = rng.uniform(0, 0.01)
        for _ in range(rng.randint(200, 350)):
            fault = Fault()
            if domain is target and rng.random() < share:
                fault = Fault(kind or "", rule)
            elif rng.random() < slips:
                fault = Fault(rng.choice(KINDS), rng.choice(("ten times", "one more")))
            system, turns = _conversation(rng, domain, fault)
            prompt, target_text = _as_chat(rng, system, turns) if form == "chat" else _as_text(rng, system, turns, form)
            rows.append(Example(f"i{len(rows)}", domain.task, prompt, target=target_text))
    return MadeCalls(rows, target.task if target else "", detail)
