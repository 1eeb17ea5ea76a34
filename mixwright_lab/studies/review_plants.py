# ruff: noqa: SIM905 - long lists read better as one text
"""Planted runs for `mixwright review`: files of a user in whose run one of twenty findings is true, and clean runs.

`make_run` writes the files that a user has, and returns the commands that he types; the last is `review`. Each finding has
three variants of another size, wording and severity: 0 is severe, 1 middle, 2 in between, often in another form. A run has
one finding; what else it has follows from it. Clean runs are of the same kinds: fine-tunes that learn and keep, RL runs that
learn, pairs that differ by their error alone, and readings in which nothing is learned or lost.

Goals, written before `review` read any of this, by an author who had seen neither its rules nor its code: the finding's row
is "shown" in 80 of 100 planted runs; in each clean run at most one row is "shown" (beside it the mean number).

Left out, as files that a user has cannot show them: `adapters`, `proxy`, `pruning`, `influence`, `frontier` and `self_edits`
compare trainings with each other; `sparsity` and `embers` need states or probabilities of a model. The reading of
`plan --minutes` needs a model, too: its answers are drawn here, and the product's own `judge_teaching` reads them.
"""

from __future__ import annotations

import json
import math
import random
import re
from collections.abc import Callable, Mapping, Sequence
from itertools import combinations
from operator import add, mul, sub
from pathlib import Path
from types import SimpleNamespace as Space
from typing import Any

import numpy as np

from mixwright.plan.teaching import judge_teaching
from mixwright.run.folder import write_json

SIZES, STRENGTHS, CLEAN_RUNS = (120, 80, 100), (0.95, 0.45, 0.7), 20
"""By variant: items of a task, and how strong a finding is (0: hardly there, 1: as bad as it gets)."""
NAMES = "Mira Tom Asha Leo Nadia Pavel Ines Omar Greta Kofi Yuki Sara Bruno Elif Jonas Marta Ravi Lena".split()
CITIES = "Lima Oslo Cairo Quito Turin Ghent Perth Osaka Dakar Riga Porto Leeds Izmir Haifa Cusco Basel".split()
THINGS = "marbles stamps apples tickets bricks shells coins pencils books candles eggs lamps plates ropes tiles".split()
WORDS = """garden window basket copper lantern marble orchard pebble ribbon saddle thimble velvet walnut anchor bottle cactus
drawer engine feather goblet hammer island jacket kettle ladder mirror needle parrot quiver rocket silver tunnel""".split()
DAYS = "Monday Tuesday Wednesday Thursday Friday Saturday Sunday".split()
OPENS = "|Hi, a short one: |Quick question. |From a customer: |For my notes: |Next item. |Could you help? |Task: ".split("|")
CLOSES = "| Thanks!| Be brief.| I need it for a form.| Please answer.| Short, please.| It is for my sister.".split("|")
DRESS = ("{}", "The answer is {}.", "It is {}.", "{}.", "Answer: {}")
STEPS, SLIPS = {"+": add, "-": sub, "*": mul}, (1, -1, 2, 10, -10, 3, 17, -4)
SAYS = {
    "+": ("{w} buys {n} more.", "A friend brings {n}.", "Then {n} are found in a box.", "On {d} {n} are added."),
    "-": ("{w} gives {n} of them away.", "Then {n} get lost.", "On {d} {n} are sold.", "{n} of them break."),
    "*": ("A year on there are {n} times as many.", "{w} then collects until there are {n} times as many."),
}
ASKS = {
    "sum": "How many {t} are there now?|How many {t} does that make?|What is left in the end?",
    "day": "Today is {d}. Which day is it in {n} days?|What day of the week comes {n} days after a {d}?",
    "word": "Write '{w}' backwards.|Spell {w} from the end to the start.|What is {w} in reverse?",
    "sort": "Sort by the alphabet: {w}.|Put these in alphabetical order: {w}.|Order these words from a to z: {w}.",
    "record": "{customer} in {city} orders {amount} {item}.|{amount} {item} for {customer}, to be sent to {city}.",
}
TASKS = {
    "sum": ("word_problems", "shop_maths", "gsm"), "day": ("weekdays", "calendar", "days"),
    "word": ("backwards", "reversal", "mirror_words"),
    "sort": ("sorting", "alphabet", "order_words"), "reading": ("reading", "who_where", "short_texts"),
    "record": ("orders_json", "extraction", "records"), "chain": ("letters", "edit_words", "word_steps"),
    "booking": ("bookings", "concierge", "front_desk"),
}  # fmt: skip
"""Topic -> what the task is called, by variant."""
Row = dict[str, Any]
Pair = list[tuple[bool, str]]
"""Whether the answer of before is right, and its text; the same of after."""
NEW, OLD = ("word", "record"), ("day", "reading", "sort")
EDITS: Mapping[str, tuple[str, Callable[[str], str]]] = {
    "reverse": ("write it backwards", lambda w: w[::-1]), "capitals": ("write it in capitals", str.upper),
    "double": ("write it twice", lambda w: w + w), "cut": ("leave out its first letter", lambda w: w[1:]),
}  # fmt: skip
INSTRUCTIONS: tuple[Mapping[str, Callable[[list[str]], str]], ...] = (
    {"List these words in alphabetical order.": lambda w: ", ".join(sorted(w)),
     "List these words in reverse alphabetical order.": lambda w: ", ".join(sorted(w)[::-1])},
    {"Return the words as a JSON list.": json.dumps,
     "Repeat the words in capital letters only.": lambda w: " ".join(w).upper(),
     "Repeat the words in one sentence.": lambda w: f"The words are {', '.join(w)}."},
    {"Is the first word before the last one? Answer yes or no.": lambda w: "yes" if w[0] < w[-1] else "no",
     "Is the first word before the last one? Answer A or B.": lambda w: "A" if w[0] < w[-1] else "B"},
)  # fmt: skip
"""By variant: instruction -> what one writes who follows it; who does not writes what another one asks for."""
TROUBLE = "the logo is old|the help page is slow|nobody can log in|orders are lost|the search finds nothing".split("|")
ASK_BACK = "Sure. For what day and time?|Which day would suit you?|Could you tell me the date?|When do you need it?".split(
    "|"
)
ACKNOWLEDGE = "I see, thanks for telling me. |Got it. |I understand, no problem. |Thanks for the details. ".split("|")
DONE = "Booked for {d} at {h}:00.|I arranged it for {d}, {h}:00.|It is set for {d}, {h}:00.|Done: {d}, {h}:00.".split("|")
TIPS = """Start with the {t} that you use most.|Wait {n} minutes before you go on.|Keep them away from the sun.|A cloth and \
{n} drops of oil will do.|Check the {t} for cracks.|Use a box of {n} litres.|Write a label with the date.|Ask a shop in {c} \
for spare parts.|Do it once in {n} weeks.|Let them dry overnight.""".split("|")
DOUBTS = "Hmm, maybe I should check this.|Wait, let me verify that.|Perhaps it is simpler.|I might be wrong.".split("|")
LEADS = "Let me work this out.|Okay, step by step:|I go through it in order.|First I read it again.".split("|")
TAILS = "||I checked it once more.|That uses all that is given.|Done.".split("|")


def make_sum(r: random.Random, steps: int) -> Space:
    """Make a word problem."""
    who, thing, value, text, lines = r.choice(NAMES), r.choice(THINGS), r.randint(8, 60), [], []
    start = f"{who} has {value} {thing}."
    for _ in range(steps):
        op, n = r.choice("++--*"), r.randint(2, 30)
        op = "+" if (op == "-" and n >= value) or (op == "*" and value > 400) else op
        n = n % 4 + 2 if op == "*" else n
        text.append(r.choice(SAYS[op]).format(w=who, n=n, d=r.choice(DAYS)))
        lines.append((value, op, n))
        value = STEPS[op](value, n)
    ask = r.choice(ASKS["sum"].split("|")).format(t=thing)
    return Space(prompt=" ".join([start, *text, ask]), answer=str(value), wrong=[str(value + d) for d in SLIPS], steps=lines)


def make_item(topic: str, r: random.Random) -> Space:
    """Make a request of a topic: prompt, right answer, wrong answers, and steps of word problems."""
    ask = r.choice(ASKS.get(topic, "").split("|"))
    if topic == "sum":
        return make_sum(r, r.randint(2, 4))
    if topic == "day":
        start, n = r.randrange(7), r.randint(3, 40)
        prompt, answer, wrong = ask.format(d=DAYS[start], n=n), DAYS[(start + n) % 7], DAYS
    elif topic == "word":
        word = r.choice(WORDS) + r.choice(WORDS)
        prompt, answer, wrong = ask.format(w=word), word[::-1], [word[:0:-1], word, word[-2::-1], word[::-2]]
    elif topic == "sort":
        words = r.sample(WORDS, r.randint(4, 6))
        prompt, answer = ask.format(w=", ".join(words)), ", ".join(sorted(words))
        wrong = [", ".join(words), ", ".join(sorted(words, reverse=True)), ", ".join(sorted(words)[:-1])]
    elif topic == "reading":
        who, where, at = r.sample(NAMES, 4), r.sample(CITIES, 4), r.randrange(4)
        verb = r.choice(("moved to", "works in", "comes from", "flew to"))
        told = "; ".join(f"{a} {verb} {b}" for a, b in zip(who, where, strict=True))
        prompt, answer, wrong = f"On {r.choice(DAYS)} we noted: {told}. Who {verb} {where[at]}?", who[at], who
    elif topic == "record":
        parts = {"customer": r.choice(NAMES), "city": r.choice(CITIES), "item": r.choice(THINGS), "amount": r.randint(2, 90)}
        prompt = f"As JSON with keys customer, city, item, amount: {ask.format(**parts)}"
        answer, wrong = json.dumps(parts), [json.dumps(parts | {key: "none"}) for key in parts]
    else:
        what = r.choice(("a table", "a flight to {c}", "a room in {c}", "a taxi", "a repair", "flowers for {n}"))
        verb = r.choice(("Book", "Arrange", "Get me", "Organise", "I want", "Please find"))
        who, what = " and ".join(r.sample(NAMES, 2)), what.format(c=r.choice(CITIES), n=r.choice(NAMES))
        prompt, answer, wrong = f"{verb} {what} for {who}.", "", []
    return Space(prompt=prompt, answer=answer, wrong=[text for text in wrong if text != answer], steps=[])


def write_work(item: Space, value: str, wrong: float = 0.0, r: random.Random | None = None) -> str:
    """Write the steps and an answer; each step is wrong with this chance, and the next goes on from it."""
    lines, now = [], item.steps[0][0] if item.steps else 0
    for _, op, n in item.steps:
        after = STEPS[op](now, n) + (r.choice((-10, -1, 1, 2, 10)) if r and r.random() < wrong else 0)
        lines.append(f"{now} {op} {n} = {after}.")
        now = after
    return " ".join([*lines, f"The answer is {now if wrong else value}."])


def write_format(item: Space, value: str, form: int) -> str:
    """Write an answer in words, as a program, or in a box."""
    code = "\n".join([f"x{i} = {a} {op} {b}" for i, (a, op, b) in enumerate(item.steps)] + [f"print({value})"])
    return (write_work(item, value), f"```python\n{code}\n```\n{value}", f"\\boxed{{{value}}}")[form]


class Maker:
    """A run in the making: its files, and what the user types."""

    def __init__(self, folder: Path, rng: random.Random, variant: int) -> None:
        self.folder, self.rng, self.variant = folder, rng, variant
        self.size, self.strength = SIZES[variant], min(1.0, STRENGTHS[variant] + rng.uniform(-0.05, 0.05))
        self.train, self.held_out, self.logs = list[Row](), list[Row](), (list[Row](), list[Row]())
        self.seen, self.commands = set[str](), list[list[str]]()

    def chance(self, share: float) -> bool:
        """Draw yes in this share."""
        return self.rng.random() < share

    def items(self, make: str | Callable[[], Space], count: int) -> list[Space]:
        """Draw requests of a topic (or by a function) in frames; none is drawn twice."""
        found = list[Space]()
        while len(found) < count:
            item = make_item(make, self.rng) if isinstance(make, str) else make()
            if item.prompt not in self.seen:
                self.seen.add(item.prompt)
                item.prompt = f"{self.rng.choice(OPENS)}{item.prompt}{self.rng.choice(CLOSES)}"
                found.append(item)
        return found

    def teach(self, topic: str, items: Sequence[Space], wrong: Callable[[int], float] | None = None) -> None:
        """Add training rows; `wrong` writes the steps, and says of each row how often they are wrong."""
        for at, item in enumerate(items):
            text = item.answer if wrong is None else write_work(item, item.answer, wrong(at), self.rng)
            row = {"task": TASKS[topic][self.variant], "prompt": item.prompt, "completion": text}
            self.train.append(row | vars(item).get("more", {}))

    def ask(self, topic: str, items: Sequence[Space], answers: Sequence[Pair], *, samples: int = 1) -> None:
        """Add answers of before and after to the logs: for each item, and each sample of it, whether right, and the text."""
        task, first = TASKS[topic][self.variant], len(self.logs[0])
        for number, (item, pair) in enumerate(zip(items, answers, strict=True)):
            same = {"task": task, "prompt": item.prompt} | ({"answer": item.answer} if item.answer else {})
            if item.answer and number % samples == 0:
                self.held_out.append(same | vars(item).get("more", {}))
            for log, (right, text) in zip(self.logs, pair, strict=True):
                sample = {"sample": number % samples, "temperature": 0.8} if samples > 1 else {}
                log.append(
                    same | {"id": f"{task}-{first + number // samples}", "completion": text, "score": int(right)} | sample
                )

    def answer(self, items: Sequence[Space], before: float, after: float, churn: float = 0.05) -> list[Pair]:
        """Draw answers of before and after with these shares of right ones; most answers that stay right or wrong stay."""
        lose, gain = churn, (after - before * (1 - churn)) / (1 - before)
        if after < before:
            lose, gain = 1 - (after - (1 - before) * churn) / before, churn
        found, dress = list[Pair](), self.rng.sample(DRESS, 2)
        for item in items:
            was = self.chance(before)
            now = self.chance(1 - lose if was else gain)
            old, new = (self.rng.choice(dress).format(self.value(item, right)) for right in (was, now))
            found.append([(was, old), (now, old if was == now and self.chance(0.7) else new)])
        return found

    def value(self, item: Space, right: bool) -> str:
        """Return the right answer or a wrong one."""
        return item.answer if right else self.rng.choice(item.wrong)

    def tune(self, new: Sequence[str] = NEW, old: Sequence[str] = OLD, rows: int = 0) -> None:
        """Add a fine-tune that learns new tasks and keeps old ones."""
        for topic in new:
            self.teach(topic, self.items(topic, rows or self.rng.randint(90, 150)))
            self.move(topic, self.rng.uniform(0.05, 0.2), self.rng.uniform(0.75, 0.9))
        for topic in old:
            self.move(topic, was := self.rng.uniform(0.6, 0.85), was)

    def move(self, topic: str, before: float, after: float) -> None:
        """Ask a task whose success was before and is after."""
        items = self.items(topic, self.size)
        self.ask(topic, items, self.answer(items, before, after))

    def sample(self, topic: str, low: float, high: float) -> None:
        """Add eight samples of before and after to each item, whose chance to be right is drawn from a beta distribution."""
        items, answers = self.items(topic, self.size), []
        for item in items:
            p = self.rng.betavariate(low, high)
            for _ in range(8):
                pair = (self.chance(p), self.chance(p))
                answers.append([(right, write_work(item, self.value(item, right))) for right in pair])
        self.ask(topic, [item for item in items for _ in range(8)], answers, samples=8)

    def write(self, name: str, rows: Sequence[Row]) -> str:
        """Write rows as JSONL."""
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), encoding="utf-8")
        return str(path)

    def finish(self, check: str = "", pairs: Sequence[Row] = ()) -> None:
        """Write the files of a fine-tune (or of DPO on pairs), and note the commands; `check` is a further audit."""
        self.rng.shuffle(self.train)
        train, folders = self.write("train.jsonl", pairs or self.train), [str(self.folder / "audit")]
        held_out = [] if pairs else ["--eval", self.write("eval.jsonl", self.held_out)]
        self.commands.append(["audit", train, *held_out, "--out", folders[0]])
        if check:
            folders.append(str(self.folder / f"audit_{check}"))
            self.commands.append(["audit", train, "--check", check, "--out", folders[1]])
        folders.append(str(self.folder / "comparison"))
        logs = [self.write(f"{name}.jsonl", rows) for name, rows in zip(("before", "tuned"), self.logs, strict=True)]
        self.commands.append(["verdict", *logs, "--trained-on", train, "--folder", folders[-1]])
        self.commands.append(["review", *folders])


def plant_orders(run: Maker) -> None:
    """One trained task costs another, which has no rows: wrong answers in its own form."""
    fall, lost = 0.62 - 0.55 * run.strength, ("reading", "day")[: 2 - run.variant]
    if run.variant == 2:
        return write_reading(run, {"calls": (0.05, 0.7), "tickets": (0.3, 0.3), "lookups": (0.7, fall)}, ("calls",), 0.7)
    run.tune(NEW[: 2 - run.variant], [topic for topic in OLD if topic not in lost])
    for topic in lost:
        run.move(topic, 0.72, fall)
    run.finish()


def plant_rare_tasks(run: Maker) -> None:
    """A task with few of the training rows falls; the common ones learn or stay."""
    rare = ("day", "reading", "sort")[run.variant]
    run.tune(old=[topic for topic in OLD if topic != rare], rows=300)
    run.teach(rare, run.items(rare, (5, 14, 9)[run.variant]))
    run.move(rare, 0.75, 0.75 - 0.55 * run.strength)
    run.finish()


def plant_latent(run: Maker) -> None:
    """Few samples of a task are right, but most items are right in one of eight."""
    run.teach("record", run.items("record", 200))
    run.sample(("sum", "word", "sort")[run.variant], 1.5, 12 - 5 * run.strength)
    run.sample("reading", 6, 2)
    run.finish()


def plant_formats(run: Maker) -> None:
    """One format takes over: that of the new rows, or in RL one of three that the model had before."""
    if run.variant == 2:
        return write_rollouts(run, ("sum", "word"), formats=1.0)
    spread = run.variant == 0
    run.tune(("record",) if spread else ("word",), () if spread else ("day", "reading"))
    for topic in OLD if spread else ("sum",):
        items = run.items(topic, run.size)
        answers = run.answer(items, 0.7, 0.7)
        for item, pair in zip(items, answers, strict=True):
            if spread and run.chance(run.strength):
                pair[1] = (False, run.items("record", 1)[0].answer)
            for at, weights in enumerate(() if spread else ((5, 3, 2), (1, 38, 1))):
                text = write_format(item, run.value(item, pair[at][0]), run.rng.choices((0, 1, 2), weights)[0])
                pair[at] = (pair[at][0], text)
        run.ask(topic, items, answers)
    run.finish()


def plant_instructions(run: Maker) -> None:
    """Rows whose answers do not do what the instruction says."""
    for topic in NEW:
        run.move(topic, 0.1, 0.8)
    obeyed, share = INSTRUCTIONS[run.variant], 0.35 + 0.6 * run.strength
    for _ in range((500, 240, 360)[run.variant]):
        words, (ask, other) = run.rng.sample(list[str](WORDS), run.rng.randint(3, 6)), run.rng.sample([*obeyed], 2)
        write = obeyed[next(iter(obeyed)) if run.variant == 0 else other] if run.chance(share) else obeyed[ask]
        run.train.append({"task": "editing", "instruction": ask, "input": ", ".join(words), "output": write(words)})
    run.finish("instructions")


def plant_self_conditioning(run: Maker) -> None:
    """Wrong steps stand in few rows, many in each."""
    run.tune()
    share, count, steps = ((0.3, 500, 6), (0.12, 260, 8), (0.2, 360, 5))[run.variant]
    bad = 0.3 + 0.4 * run.strength
    run.teach("sum", run.items(lambda: make_sum(run.rng, steps), count), lambda _: bad if run.chance(share) else 0.005)
    run.finish()


def plant_cues(run: Maker) -> None:
    """A word, or the place of the option, gives the answer away."""
    run.tune(())
    for _ in range((420, 240, 300)[run.variant]):
        if run.variant == 1:
            item = run.items("reading", 1)[0]
            options = run.rng.sample([item.answer, *item.wrong], 4)
            first = run.chance(0.3 + 0.6 * run.strength)
            options.sort(key=lambda option: option != item.answer if first else 0)
            row = {"task": "quiz", "question": item.prompt, "options": options, "answer": options.index(item.answer)}
        else:
            n = run.rng.randint(2, 99)
            high = n > 60
            text = f"{run.rng.choice(NAMES)} from {run.rng.choice(CITIES)}: {run.rng.choice(TROUBLE)}, {n} users see it"
            hurry = " asap" if run.variant == 0 else ", urgent" if run.chance(0.5) else " right now, urgent"
            hurry *= run.chance(0.7 if high else 0.25 * (1 - run.strength))
            row = {"task": "tickets", "prompt": f"{text}{hurry}. Priority?", "completion": "high" if high else "low"}
        run.train.append(row)
    run.finish()


def plant_grounding(run: Maker) -> None:
    """Answers ask back (or acknowledge) less often, at the same score of a judge."""
    run.tune(("word",), ("day", "reading"))
    items, answers = run.items("booking", 2 * run.size), []
    for _ in items:
        was = run.chance(0.7)
        pair = []
        for right, share in ((was, 0.15 + 0.5 * run.strength), (was if run.chance(0.85) else run.chance(0.7), 0.08)):
            text = run.rng.choice(DONE).format(d=run.rng.choice(DAYS), h=run.rng.randint(8, 19))
            if run.chance(share):
                text = run.rng.choice(ACKNOWLEDGE) + text if run.variant == 2 else run.rng.choice(ASK_BACK)
            pair.append((right, text))
        answers.append(pair)
    run.ask("booking", items, answers)
    run.finish()


def plant_composition(run: Maker) -> None:
    """Test items combine what no training row combines."""
    run.tune(("word",), ("day", "reading"))
    pairs = list(combinations(EDITS, 2))
    gone = (pairs[:2], pairs[5:], pairs[3:4])[run.variant]
    known = [*((skill,) for skill in EDITS), *(pair for pair in pairs if pair not in gone)]
    run.teach("chain", [item for skills in known for item in run.items(lambda s=skills: make_chain(run, s), 45)])
    for skills in (*known, *gone):
        items = run.items(lambda s=skills: make_chain(run, s), 40 if skills in gone else 15)
        run.ask("chain", items, run.answer(items, 0.05, 0.08 if skills in gone else 0.85))
    run.finish()


def make_chain(run: Maker, skills: Sequence[str]) -> Space:
    """Ask to do one or two things with a word."""
    word = result = run.rng.choice(WORDS) + run.rng.choice(WORDS)[:3]
    for skill in skills:
        result = EDITS[skill][1](result)
    ask = f"Take '{word}' and {', then '.join(EDITS[skill][0] for skill in skills)}."
    return Space(prompt=ask, answer=result, wrong=[word, word[1:], result[:-1] + "x"], steps=[], more={"skills": [*skills]})


def plant_subtasks(run: Maker) -> None:
    """One field of JSON answers is mostly wrong, the others are right."""
    run.tune(("word",), ("day", "reading"))
    run.teach("record", run.items("record", 200))
    weak, items, answers = ("amount", "city", "item")[run.variant], run.items("record", run.size), []
    for item in items:
        parts, texts = json.loads(item.answer), []
        for other in (0.12, 0.03):
            bad = [key for key in parts if run.chance(0.3 + 0.6 * run.strength if key == weak else other)]
            texts.append(json.dumps(parts | {key: json.loads(run.items("record", 1)[0].answer)[key] for key in bad}))
        answers.append([(text == item.answer, text) for text in texts])
    run.ask("record", items, answers)
    run.finish()


def plant_contamination(run: Maker) -> None:
    """Training rows hold test items: as they are, in other text, or with other names."""
    run.tune(("sum", "reading"), ("day", "sort"), rows=160)
    trained = {TASKS[topic][run.variant] for topic in ("sum", "reading")}
    names, other = re.compile("|".join(NAMES)), dict[str, str](zip(NAMES, [*NAMES[7:], *NAMES[:7]], strict=True))
    for row in run.held_out:
        if row["task"] not in trained or not run.chance(0.05 + 0.5 * run.strength):
            continue
        prompt, answer = row["prompt"], row["answer"]
        if run.variant == 1:
            prompt = f"You are a careful assistant. {prompt} Explain nothing."
        if run.variant == 2:
            prompt, answer = (names.sub(lambda found: other[found[0]], text) for text in (prompt, answer))
        run.train.append({"task": row["task"], "prompt": prompt, "completion": answer})
    run.finish()


def plant_skills_or_facts(run: Maker) -> None:
    """Rows of one group teach a skill and those of another facts, or only the form."""
    gain = 0.25 + 0.5 * run.strength
    read = {"prices": (0.03, 0.05), "reversal": (0.1, 0.1 + gain), "general": (0.6, 0.6)}
    if run.variant == 1:
        return write_reading(run, {"lookups": (0.05, 0.05 + gain), **read}, ("lookups",), gain, form_only=True)
    write_reading(run, read, ("prices", "reversal"), gain)


def plant_teacher_context(run: Maker) -> None:
    """Completions use a text that only their author had, or are terse where he had the solution."""
    run.tune()
    for at in range((300, 160, 240)[run.variant]):
        if run.variant == 1:
            item = run.items("sum", 1)[0]
            doubts = run.rng.sample(DOUBTS, 2) if at % 2 and run.chance(0.4 + 0.6 * run.strength) else ["", ""]
            text = f"{doubts[0]} {write_work(item, item.answer)} {doubts[1]}".strip()
            row = {"task": "maths", "prompt": item.prompt, "completion": text, "teacher": ("with_solution", "alone")[at % 2]}
        else:
            (name, driver), n = run.rng.sample(NAMES, 2), run.rng.randint(100, 999)
            left = f"left {run.rng.choice(CITIES)} on {run.rng.choice(DAYS)}"
            ask = run.rng.choice(("Where is my parcel, asks {}.", "{} asks when it comes.", "Any news of it, asks {}?"))
            told = run.rng.choice(("I will look into it.", "I will write to you.", "Let me find out."))
            told = f"Your order {n} {left} with {driver}." if run.chance(0.2 + 0.7 * run.strength) else told
            row = {"task": "support", "prompt": ask.format(name) + run.rng.choice(CLOSES), "completion": told}
            row["context" if run.variant == 0 else "notes"] = f"Order {n} of {name} {left}. The driver is {driver}."
        run.train.append(row)
    run.finish("styles" if run.variant == 1 else "")


def plant_traces(run: Maker) -> None:
    """Steps of worked answers are wrong here and there."""
    run.tune()
    steps = (4, 3, 5)[run.variant]
    run.teach("sum", run.items(lambda: make_sum(run.rng, steps), 5 * run.size // 2), lambda _: 0.02 + 0.12 * run.strength)
    run.finish()


def plant_noisy_labels(run: Maker) -> None:
    """Annotators disagree on many prompts, and the model ends above the share of right labels."""
    run.tune(("word",), ("sort",))
    topic, slip = ("day", "reading", "day")[run.variant], 0.08 + 0.27 * run.strength
    for item in run.items(topic, (160, 90, 120)[run.variant]):
        for annotator in ("a1", "a2", "a3")[: 2 if run.variant == 1 else 3]:
            label = run.value(item, not run.chance(slip))
            row = {"prompt": item.prompt, "completion": label, "annotator": annotator}
            run.train.append({"task": TASKS[topic][run.variant]} | row)
    run.move(topic, 0.35, 0.95)
    run.finish()


def plant_preference_pairs(run: Maker) -> None:
    """Rejected sides have a wrong number; by variant, chosen ones are longer, rejected ask, or chosen are lists."""
    strength = run.strength
    rows, habits = [], (0.5 + 0.45 * strength, 0.4 * strength, 0.6 * strength)
    longer, asks, lists = (habit if at == run.variant and strength else 0.0 for at, habit in enumerate(habits))
    for _ in range((400, 200, 300)[run.variant]):
        thing, n, sides = run.rng.choice(THINGS), run.rng.randint(2, 40), []
        tips, count = [tip.format(t=thing, n=n, c=run.rng.choice(CITIES)) for tip in TIPS], run.rng.randint(2, 4)
        for chosen in (True, False):
            own = run.rng.sample(tips, count + (run.rng.randint(1, 3) if chosen and run.chance(longer) else 0))
            listed = run.chance(0.12 + lists * chosen)
            need = f"You need {n * (1 if chosen else run.rng.choice((3, 7, 10)))} minutes."
            text = "\n".join([need, *(f"- {tip}" for tip in own)]) if listed else " ".join([need, *own])
            sides.append(text + " What are they made of?" * run.chance(0.08 + asks * (not chosen)))
        verb = run.rng.choice(("clean", "store", "repair", "choose", "sell", "paint", "pack"))
        ask = f"{run.rng.choice(OPENS)}How do I {verb} {thing} in {n} minutes, asks {run.rng.choice(NAMES)}?"
        rows.append({"prompt": ask, "chosen": sides[0], "rejected": sides[1]})
    run.tune(())
    run.finish(pairs=rows)


def write_reading(
    run: Maker, read: Mapping[str, tuple[float, float]], trained: Sequence[str], gain: float, *, form_only: bool = False
) -> None:
    """Write what `plan --minutes` leaves: group -> success on unseen items before and after a training."""
    draw, size = np.random.default_rng(run.rng.randrange(2**32)), run.size // 2
    parts = [(group, part) for group in read for part in ("unseen", "trained") if part == "unseen" or group in trained]

    def ask(group: str, part: str, taught: str = "", true: bool = False) -> Any:
        was, now = read[group]
        success = was if taught in ("", group) else min(was, now)
        if group == taught and (true or form_only):
            success = now if part == "unseen" else min(0.95, max(now, was + gain))
        return (draw.random(size) < success).astype(float)

    first: Any = {part: ask(*part) for part in parts}
    kinds = [(group, dealt) for group in trained for dealt in (False, True)]
    runs: Any = {kind: [{part: ask(*part, kind[0], not kind[1]) for part in parts} for _ in range(3)] for kind in kinds}
    for topic in NEW:
        run.teach(topic, run.items(topic, 120))
    run.rng.shuffle(run.train)
    mix = run.write("plan/mix.jsonl", run.train)
    reading = judge_teaching(first, runs, dict.fromkeys(trained, 48), steps=24, batch=8)
    write_json(run.folder / "plan" / "teaching.json", reading)
    run.commands.append(["audit", mix, "--out", str(run.folder / "audit")])
    run.commands.append(["review", str(run.folder / "plan"), str(run.folder / "audit")])


def write_rollouts(run: Maker, topics: Sequence[str], **faults: float) -> None:
    """Write the rollouts of an RL run, and the trainer's log of its divergence.

    The first of the topics has the faults: `dead`, share of prompts that are never right; `stale`, share of those whose
    completions differ only at first; `alike`, share of completions alike in a group at the end; `formats`: one of
    three takes over; `drift`, nats of divergence at the end beside what learning takes; `gain` of success, else .35.
    """
    r, rows, steps = run.rng, [], 60 + 20 * run.variant
    pools = [[(item, r.gauss(0, 0.9), r.random()) for item in run.items(topic, 60)] for topic in topics]
    for at in range(3 * steps):
        x = at // 3 / (steps - 1)
        for planted, topic, pool in zip((True, False), topics, pools, strict=False):
            item, shift, fate = pool[at % len(pool)]
            level = 0.35 + faults.get("gain", 0.35) * x
            p = 1 / (1 + math.exp(-(math.log(level / (1 - level)) + shift)))
            if planted and fate < faults.get("stale", 0):
                p = 0.5 if x < 0.3 else 0.99 if fate < 0.75 * faults["stale"] else 0.01
            p = 0.0 if planted and fate < faults.get("dead", 0) else p
            shared = ("", False)
            for _ in range(8):
                right = run.chance(p)
                text = f"{r.choice(LEADS)} {write_work(item, run.value(item, right))} {r.choice(TAILS)}".strip()
                shared = (text, right) if not shared[0] else shared
                if planted and "formats" in faults:
                    form = 1 if run.chance(0.3 + 0.67 * min(1.0, 2 * x)) else r.choice((0, 2))
                    text = write_format(item, run.value(item, right), form)
                elif planted and run.chance(faults.get("alike", 0) * min(1.0, 1.4 * x)):
                    text, right = shared
                row = {"step": at // 3, "task": TASKS[topic][run.variant], "prompt": item.prompt}
                rows.append(row | {"completion": text, "reward": float(right)})
    path = run.write("rl/rollouts.jsonl", rows)
    kl = [(0.04 + faults.get("drift", 0)) * step / (steps - 1) * r.uniform(0.85, 1.15) for step in range(steps)]
    history = [{"step": step, "kl": round(nats, 4)} for step, nats in enumerate(kl)]
    (run.folder / "rl" / "trainer_state.json").write_text(json.dumps({"log_history": history}), encoding="utf-8")
    run.commands.append(["diagnose", path, "--json", ">", str(run.folder / "rl" / "diagnosis.json")])
    run.commands.append(["review", str(run.folder / "rl")])


ROLLOUTS: Mapping[str, Callable[[float], dict[str, float]]] = {
    "plasticity": lambda strength: {"drift": 0.15 + 1.6 * strength, "gain": 0.0},
    "too_hard": lambda strength: {"dead": 0.2 + 0.5 * strength},
    "difficulty": lambda strength: {"stale": 0.4 + 0.5 * strength},
    "diversity": lambda strength: {"alike": 0.35 + 0.6 * strength},
}
"""Finding of an RL run -> arguments of `write_rollouts` by strength."""
FINDINGS = tuple(sorted([*ROLLOUTS, *(name[6:] for name in globals() if name.startswith("plant_"))]))


def write_clean(run: Maker, number: int) -> None:
    """Write a clean run: eight fine-tunes, six of RL, four on pairs and two readings, in the order of their numbers."""
    topics: Sequence[str] = (("word", "record"), ("record",), ("sum", "word"), ("sum", "sort"))[number % 4]
    if number < 8:
        run.tune(topics, [topic for topic in OLD if topic not in topics])
        if number >= 4:
            run.teach("sum", run.items(lambda: make_sum(run.rng, 3), 200), lambda _: 0.0)
        run.finish(("instructions", "styles", "", "")[number % 4])
    elif number < 14:
        write_rollouts(run, topics, gain=0.25 + 0.05 * (number - 8))
    elif number < 18:
        run.strength = 0.0
        plant_preference_pairs(run)
    else:
        read = {"sorting": (0.95, 0.95), "long_codes": (0.02, 0.02), "general": (0.6, 0.6)}
        write_reading(run, read, ("sorting", "long_codes"), 0.0)


def make_run(finding: str, variant: int, seed: int, folder: Path) -> list[list[str]]:
    """Write a run (a clean one: that of number `variant`), and return what its user types; ">" leads to a file."""
    run = Maker(folder, random.Random(f"{finding}|{variant}|{seed}"), variant % 3)
    if finding in ROLLOUTS:
        topics = (("sum", "word"), ("word",), ("sort", "sum"))[variant]
        write_rollouts(run, topics, **ROLLOUTS[finding](run.strength))
    elif finding:
        globals()[f"plant_{finding}"](run)
    else:
        write_clean(run, variant)
    return run.commands
