"""Made-up rollouts of RL post-training runs (GRPO-like), each with one known fault planted or none.

Makes: `make_run(kind, seed)` gives rows (step, task, prompt, completion, reward) and a map step -> KL to the start in
nats per token (empty if that run logs none). A run has 1 to 3 tasks; the fault sits in the task that `plan` names as
planted, the others are healthy (in "drift" they are good and flat, as the KL is the run's). The plan's difficulty is in
[0, 1): 0 is clear, above 2/3 (a third of the seeds) subtle; for "healthy" it shrinks the gain. Each answer has a set
chance of being right that moves with the step, and the text is written to fit. Deterministic.
Does not make: any real model's text, token-level data, losses, several turns or tools, reward hacking beyond the kinds,
two faults in one run, faults that come and go, malformed rows. Nothing is learned from one prompt to another.
"""

import json
import math
import random
from operator import add, mul, sub
from types import SimpleNamespace as Space

KINDS = ("luck", "shortcut", "too hard", "stale band", "drift", "healthy")
VARIANTS = ("rise", "few values", "one word", "hard", "good", "kl", "mastered", "partial", "few prompts", "no repeats")
FEW = {"yes_no": ["yes", "no"], "triage": ["high", "medium", "low"], "choice": ["A", "B", "C", "D"]}
SUMS, PARTS, CALC = ["math_word", "trace"], ["json_record", "free_text"], {"+": add, "-": sub, "*": mul}
ALL = [*SUMS, *PARTS, *FEW, "short_fact"]
NAMES = ["Mira", "Tom", "Asha", "Leo", "Nadia", "Pavel", "Ines", "Omar", "Greta", "Kofi", "Yuki", "Sara", "Bruno"]
ITEMS = ["marbles", "stamps", "apples", "tickets", "bricks", "shells", "coins", "pencils", "books", "candles", "eggs"]
PETS = ["cat", "parrot", "tortoise", "hamster", "rabbit", "dog", "goldfish", "ferret", "gecko", "canary", "snake"]
CITIES = {"Peru": "Lima", "Kenya": "Nairobi", "Japan": "Tokyo", "Italy": "Rome", "Fiji": "Suva", "Cuba": "Havana"}
GROUPS = {
    "fruit": ["plum", "mango", "pear", "fig", "cherry", "quince"],
    "bird": ["heron", "wren", "finch", "osprey"],
    "tool": ["chisel", "hammer", "pliers", "saw", "rasp"],
    "metal": ["zinc", "nickel", "tin", "cobalt", "lead"],
    "fabric": ["linen", "denim", "velvet", "tweed", "silk"],
    "fish": ["carp", "trout", "eel", "pike", "perch"],
}
TICKETS = {
    "high": ("is down for all customers", "lost last night's orders"),
    "low": ("has a typo", "has an old logo"),
    "medium": ("takes a minute to load", "sends each mail twice", "fails for one of our users"),
}
OPEN = (
    "Let's work through this one step at a time.",
    "Okay, I'll go in order.",
    "Let me think about it.",
    "To solve this, I start from what the question says and go on from there.",
    "Here is how I would do this.",
)
CHECK = (
    "Checking this again, nothing seems to be missing.",
    "I went over each line once more and it looks right.",
    "That uses every piece of information in the question.",
    "Let me double check: yes, the same result again.",
)
MARKS = {
    "hash": ("#### {}",),
    "box": ("\\boxed{{{}}}", "So the final answer is \\boxed{{{}}}.", "$\\boxed{{{}}}$"),
    "say": ("The answer is {}.", "Answer: {}", "So the answer is {}."),
    "plain": ("{}", "{}.", "{}", "It's {}."),
}
ASK = {"hash": " End with '#### ' and the answer.", "box": " Put the final answer in \\boxed{}."}
SAYS = {
    "+": ("{w} then buys {n} more.", "A friend adds {n}."),
    "*": ("A year on there are {n} times as many.",),
    "-": ("{w} gives {n} of them away.", "Then {n} get lost.", "{n} are sold at a market."),
}
LINES = (
    ("That makes {e} {t}.", "Now there are {e} {t}.", "Then we get {e}, so {v} {t} at this point."),
    ("x becomes {e}.", "After line {i} we have {e}.", "Next, {e}, so x is {v}."),
)
NOTES = ("I saw the {} by the door", "there was {} all over it", "someone left {} behind", "we spoke of {} a lot")
THUS = ("That points to {}.", "So I would say {}.", "Of the possible answers, {} fits best.", "It has to be {}, then.")


def numbers(r: random.Random, task: Space, hard: bool) -> Space:
    """Make a word problem or a program of several steps."""
    who, item, ops, code = r.choice(NAMES), r.choice(ITEMS), list[tuple[str, int]](), task.family == "trace"
    value = start = r.randint(5, 40) * (r.randint(7, 19) if hard else 1)
    for _ in range(r.randint(5, 7) if hard else r.randint(2, 4)):
        op, n = r.choice("++--*"), r.randint(2, 90 if hard else 25)
        ops.append(("+" if op == "-" and n >= value else op, n % 5 + 2 if op == "*" else n))
        value = CALC[ops[-1][0]](value, ops[-1][1])
    text = " ".join([f"{who} has {start} {item}.", *(r.choice(SAYS[op]).format(w=who, n=n) for op, n in ops)])
    show = ["What does this print?", f"x = {start}", *(f"x = x {o} {n}" for o, n in ops), "print(x)"]
    text = "\n".join(show) if code else f"{text} How many {item} are there now?"

    def work(q: random.Random, target: str) -> list[str]:
        slip, now, out = q.randint(max(i * (o == "*") for i, (o, _) in enumerate(ops)), len(ops) - 1), start, []
        for i, (o, n) in enumerate(ops):
            was, now = now, CALC[o](now, n) + (int(target) - value) * (i == slip)
            out.append(q.choice(LINES[code]).format(e=f"{was} {o} {n} = {now}", i=i + 2, v=now, t=item))
        return out

    misses = (1, -1, 2, -2, 10, -10, ops[-1][1], -ops[-1][1], r.randint(4, 60), r.randint(4, 60))
    return Space(text=text, answer=str(value), wrong=[str(value + d) for d in misses], work=work, parts={})


def parted(r: random.Random, task: Space, hard: bool) -> Space:
    """Make a record of several fields."""
    parts: dict[str, str | int] = {"name": r.choice(NAMES), "age": r.randint(18, 90), "pet": r.choice(PETS)}
    parts |= {"city": r.choice([*CITIES.values()])} | ({"crc": r.getrandbits(9)} if hard else {})
    told = "; ".join(f"{k} {v}" for k, v in r.sample([*parts.items()], len(parts)) if k != "crc")
    text = f"Write as JSON with keys {', '.join(parts)}: {told}."
    if task.family == "free_text":
        parts = {w: w for w in r.sample([*sum(GROUPS.values(), ITEMS)], r.choice((3, 4, 5)))}
        text = f"Write a short note by {r.choice(NAMES)} about a storm that mentions: {', '.join(parts)}."
    return Space(text=text, parts=parts)


def read_off(r: random.Random, task: Space, hard: bool) -> Space:
    """Make a question whose answer is read off, of a few values or a fact."""
    who, values = r.choice(NAMES), task.order
    answer = values[0] if values and r.random() < task.skew else r.choice(values[task.skew > 0 :] or [""])
    if task.family == "yes_no":
        a = r.randint(40, 400)
        b = a + r.randint(1, 30) * (1 if answer == "yes" else -1)
        text = r.choice(
            (
                f"A lift carries {b} kg. {who}'s crates weigh {a} kg. Can they go up at once? Say yes or no.",
                f"{who} has {b} coins and a kite costs {a}. Is that enough (yes or no)?",
            )
        )
        clue = f"the two numbers to compare are {a} and {b}"
    elif task.family == "triage":
        clue = f"the {r.choice(('shop', 'printer', 'login', 'report', 'search', 'app'))} {r.choice(TICKETS[answer])}"
        text = f"Ticket {r.randint(100, 9999)} from {who}: {clue}. Priority (high, medium or low)?"
    elif task.family == "choice":
        cat = r.choice(list(GROUPS))
        words = r.sample([w for g in GROUPS if g != cat for w in GROUPS[g]], 4)
        words["ABCD".index(answer)] = r.choice(GROUPS[cat])
        clue = f"going through {', '.join(words)}, only one of them is a {cat}"
        text = "\n".join([f"Which of these is a {cat}?", *(f"{k}) {w}" for k, w in zip("ABCD", words, strict=True))])
    elif hard:
        place = "".join(r.choice(("bro", "van", "kel", "ti", "mor", "sund", "ha")) for _ in range(3)).title()
        values, clue = [str(r.randint(1480, 1900)) for _ in range(40)], f"the records on {place} are scarce"
        answer, text = values[0], f"In what year was the village of {place} first named in a record?"
    elif r.random() < 0.1:
        answer, values = CITIES[land := r.choice(list(CITIES))], [*CITIES.values()]
        clue, text = f"{land} is a country that I know", f"{r.choice(('Name', 'What is'))} the capital of {land}."
    else:
        (n1, n2, n3), values = r.sample(NAMES, 3), r.sample(PETS, 3)
        answer, clue = values[1], f"{n2} is the one who is asked about, between {n1} and {n3}"
        text = f"{n1} keeps a {values[0]}, {n2} a {values[1]} and {n3} a {values[2]}. Which animal does {n2} keep?"
    return Space(
        text=text,
        answer=answer,
        wrong=[v for v in values if v != answer],
        parts={},
        work=lambda q, to: [f"{q.choice(('Here', 'As I see it'))}, {clue}.", q.choice(THUS).format(to)],
    )


def complete(r: random.Random, task: Space, prompt: Space, x: float) -> tuple[str, float]:
    """Write a completion and its reward, at a share `x` of the run."""
    worked, (low, high), n = r.random() < task.work, task.low_high, max(1, len(prompt.parts))
    go = {"line": x, "early": 1 - math.exp(-4 * x), "late": 1 / (1 + math.exp(-12 * (x - 0.6)))}[task.shape]
    p = min(0.995, max(0.005, task.start + (task.end - task.start) * go))
    p = 1 / (1 + math.exp(-(math.log(p / (1 - p)) + prompt.shift)))
    if task.plant == "stale band":
        goal, go = {"up": 1.0, "down": 0.0}.get(prompt.fate, prompt.first), (x - prompt.turn) / 0.2 + 0.5
        p = prompt.first + (goal - prompt.first) * min(1.0, max(0.0, go))
    elif task.plant == "shortcut":
        worked = r.random() >= task.jump * (1 + task.grow * x)
        p = min(0.95, math.exp(prompt.shift - task.spread**2 / 2) * (task.if_worked if worked else task.if_jumped))
    p = {"dead": 0.0, "known": 0.93}.get(prompt.fate, p)
    ok = [k for k in prompt.parts if r.random() < (p if task.partial else p ** (1 / n))]
    if prompt.parts:
        score = len(ok) / n if task.partial else float(len(ok) == n)
        some = [k for k in prompt.parts if k in ok or r.random() < 0.6]
        text = json.dumps({k: prompt.parts[k] if k in ok else r.choice((None, r.randint(100, 199))) for k in some})
        text = f"```json\n{text}\n```" if r.random() < 0.4 else text if ok else text[:-1]
        if task.family == "free_text":
            said = [*(r.choice(NOTES).format(w) for w in ok), r.choice(("it was a long day", "the light was going"))]
            text = " ".join(s.capitalize() + "." for s in r.sample(said, len(said)))
    else:
        answer = prompt.answer if r.random() < p else r.choice(prompt.wrong)
        if task.plant == "luck" and prompt.fate != "known":
            bias = task.bias + (task.bias_end - task.bias) * x
            answer = task.order[0] if r.random() < bias else r.choice(task.order[1:])
        score = float(answer == prompt.answer)
        text = r.choice(MARKS[task.mark]).format(answer.capitalize() if r.random() < 0.4 else answer)
        if worked:
            steps = [r.choice(OPEN)] * (r.random() < 0.8) + prompt.work(r, answer)
            steps += r.sample(CHECK, min(4, int(r.expovariate(0.9) + task.longer * x)))
            text = r.choice((" ", "\n", "\n\n")).join([*steps, text])
            text = text[: int(len(text) * r.uniform(0.5, 0.85))] if not score and r.random() < task.cut else text
        score = 1 - score if r.random() < task.flip else score
    text = r.choice(("Hmm, wait, wait. ", "As an attentive helper: ")) + text if r.random() < task.filler * x else text
    return text, round(low + (high - low) * score + r.gauss(0, task.noise), 3)


def healthy(r: random.Random, variant: str, d: float, allow: list[str]) -> Space:
    """Set a task that learns."""
    only = {"few values": FEW, "one word": ["short_fact", "choice"], "hard": SUMS, "partial": PARTS}.get(variant, ALL)
    fam = r.choice([f for f in allow if f in only] or allow)
    sums, gain, order = fam in SUMS, 0.42 - 0.34 * d + r.uniform(-0.02, 0.03), FEW.get(fam, [])
    start = max(r.uniform(0.25, 0.5), {2: 0.8, 3: 0.66, 4: 0.55}.get(len(order), 0.0) + r.uniform(0, 0.05))
    t = Space(
        family=fam,
        mark=r.choice(("hash", "box", "say") if sums else ("plain", "say", "box")),
        fates={},
        work=r.uniform(0.85, 1.0) if sums else r.choice((0, 0, 0.8)),
        start=start,
        end=min(0.95, start + gain),
        shape=r.choice(("line", "early")),
        spread=r.uniform(0.6, 1.3),
        hard=False,
        skew=0.0,
        filler=0.0,
        turn=0.3,
        low_high=r.choice(((0, 1),) * 8 + ((-1, 1), (0.1, 1))),
        flip=r.choice((0.0, 0.0, 0.01, 0.02)),
        plant="",
        partial=fam == "free_text" or variant == "partial" or r.random() < 0.4,
        cut=r.choice((0, 0, 0.05)),
        longer=r.choice((0, 0, 1.5)),
        noise=r.choice((0, 0, 0, 0, 0.02)),
        order=r.sample(order, len(order)),
    )
    if variant in ("few values", "one word") and not sums:
        t.mark, t.work, t.flip = "plain", 0.0, 0.0
    elif variant == "hard" and sums:
        t.start, t.hard, t.flip, t.spread, t.end = (lo := r.uniform(0.05, 0.09)), True, 0.0, 0.7, lo + 0.11 - 0.06 * d
    elif variant in ("good", "flat"):
        t.start, t.end = (lo := r.uniform(0.78, 0.86)), lo + (0.08 - 0.05 * d) * (variant == "good")
    elif variant == "kl":
        t.end = min(0.95, start + max(gain, 0.2))
    elif variant == "mastered":
        t.end, t.shape, t.spread = 0.985, "late", 0.7
    return t


def plan(kind: str, seed: int) -> Space:
    """Set a run: its tasks, the planted one, and its difficulty."""
    r, d = random.Random(f"plan {kind} {seed}"), (0.1 + 0.37 * KINDS.index(kind) + seed * 0.618034) % 1.0
    variant = VARIANTS[seed % len(VARIANTS)] if kind == "healthy" else kind
    homes = {
        "luck": list(FEW),
        "shortcut": SUMS,
        "stale band": [*SUMS, "json_record", "choice", "short_fact"],
        "too hard": [*SUMS, "json_record", "short_fact"],
    }.get(kind, ALL)
    t = healthy(r, variant, d, homes)
    t.plant = "" if kind == "healthy" else kind
    if kind not in ("drift", "healthy"):
        t.low_high, t.flip, t.noise, t.partial = r.choice(((0, 1), (0, 1), (0, 1), (0.1, 1), (-1, 1))), 0.0, 0.0, False
    if kind == "luck":  # even guesses, or mostly the commonest answer and more and more so
        even, t.fates = 1 / len(t.order) + r.uniform(-0.03, 0.05), {"known": 0.4 * d * (d > 1 / 3)}
        t.skew, t.bias, t.bias_end = r.choice(((even, even, even), (r.uniform(0.55, 0.7), 0.6, r.uniform(0.8, 0.95))))
    elif kind == "shortcut":
        rate, share, t.jump, t.grow = r.uniform(0.03, 0.1), 0.96 - 0.36 * d, r.uniform(0.1, 0.2), r.choice((0, 0.5, 1))
        t.if_jumped, t.if_worked, t.hard = rate * share / t.jump, rate * (1 - share) / (1 - t.jump), True
    elif kind == "too hard":
        t.fates = {"dead": 0.75 - 0.53 * d}
    elif kind == "stale band":
        t.fates, t.turn = {"up": 0.74 - 0.22 * d, "down": r.uniform(0.08, 0.22)}, 0.25 + 0.25 * d
    elif kind == "drift":
        t.start, t.filler, t.end = (lo := min(t.start, 0.8)), r.choice((0.0, 0.0, 0.5)), lo - r.uniform(0.0, 0.06)
    tasks, count = [t], r.choice((1, 1, 2, 3))
    while len(tasks) < count:
        name = "flat" if kind == "drift" else r.choice(("rise", "few values", "one word", "hard", "good", "partial"))
        other = healthy(r, name, d, [f for f in ALL if f not in {o.family for o in tasks}])
        tasks.insert(r.randint(0, len(tasks)), other)
    steps, prompts, epochs = r.randint(30, 120), max(r.randint(4, 16), 2 * count + 2), r.choice((1, 1, 2, 4, 8))
    group = max(4, min(r.choice((4, 6, 8, 8, 12, 16)), 9000 // (steps * prompts)))
    epochs = {"too hard": max(epochs, 3), "few prompts": steps // 3, "no repeats": 1}.get(variant, epochs)
    kl = {"drift": 10 ** (0.3 - 1.3 * d + r.uniform(-0.1, 0.1)), "kl": r.uniform(0.2, 0.8)}.get(
        variant, r.choice((0.0, 1.0, 1.0)) * 10 ** r.uniform(-2.6, -1.5)
    )
    return Space(
        tasks=tasks,
        planted=t.family if t.plant else "",
        difficulty=d,
        variant=variant,
        steps=steps,
        prompts=prompts,
        group=group,
        epochs=epochs,
        kl=kl,
        kl_every=r.choice((1, 1, 2, 5)),
    )


def make_run(kind: str, seed: int) -> tuple[list[dict], dict[int, float]]:
    """Make rows of a run, and its divergence by step."""
    run, r, rows, kls = plan(kind, seed), random.Random(f"run {kind} {seed}"), list[dict](), dict[int, float]()
    size, seen = max(run.prompts, -(-run.steps * run.prompts // (run.epochs * len(run.tasks)))), set[str]()
    for task in run.tasks:
        task.pool, maker = [], numbers if task.family in SUMS else parted if task.family in PARTS else read_off
        while len(task.pool) < size:
            fate = r.choices([*task.fates, ""], [*task.fates.values(), 1 - sum(task.fates.values())])[0]
            q = maker(r, task, task.hard or fate == "dead")
            if q.text not in seen:
                seen.add(q.text)
                q.fate, q.text = fate, q.text + ("" if q.parts else ASK.get(task.mark, ""))
                q.shift, q.first, q.turn = r.gauss(0, task.spread), r.uniform(0.25, 0.75), r.gauss(task.turn, 0.05)
                task.pool.append(q)
    for slot in range(run.steps * run.prompts):
        step, task = slot // run.prompts, run.tasks[slot % len(run.tasks)]
        q, x = task.pool[slot // len(run.tasks) % size], step / (run.steps - 1)
        for _ in range(run.group):
            text, reward = complete(r, task, q, x)
            rows.append({"step": step, "task": task.family, "prompt": q.text, "completion": text, "reward": reward})
        if run.kl and step % run.kl_every == 0 and step not in kls:
            path = x**1.1 if run.variant in ("drift", "kl") else 1 - math.exp(-5 * x)
            kls[step] = round(max(0.0, run.kl * path * (1 + r.gauss(0, 0.08)) + abs(r.gauss(0, 3e-4))), 6)
    return rows, kls
