"""Questions of five kinds that anyone can check, and files of them beside the demo's tool calls."""

from __future__ import annotations

import json
import random
from dataclasses import dataclass
from pathlib import Path

from mixwright_lab.demo.requests import NEW_TASK, TRAIN_ROWS, requests
from mixwright_lab.studies.jobs import write_rows

CAPITALS = (
    "France: Paris; Germany: Berlin; Portugal: Lisbon; Greece: Athens; Poland: Warsaw; Austria: Vienna; "
    "Hungary: Budapest; Ireland: Dublin; Norway: Oslo; Sweden: Stockholm; Finland: Helsinki; Denmark: Copenhagen; "
    "Iceland: Reykjavik; Belgium: Brussels; Russia: Moscow; Ukraine: Kyiv; Romania: Bucharest; Bulgaria: Sofia; "
    "Serbia: Belgrade; Croatia: Zagreb; Turkey: Ankara; Egypt: Cairo; Kenya: Nairobi; Ghana: Accra; Morocco: Rabat; "
    "Tunisia: Tunis; Algeria: Algiers; Senegal: Dakar; Japan: Tokyo; China: Beijing; South Korea: Seoul; "
    "Thailand: Bangkok; Vietnam: Hanoi; Indonesia: Jakarta; Nepal: Kathmandu; Bangladesh: Dhaka; Pakistan: Islamabad; "
    "Afghanistan: Kabul; Iran: Tehran; Iraq: Baghdad; Syria: Damascus; Lebanon: Beirut; Cuba: Havana; Canada: Ottawa; "
    "Peru: Lima; Chile: Santiago; Colombia: Bogota; Venezuela: Caracas; Ecuador: Quito; Uruguay: Montevideo; "
    "Australia: Canberra; Jamaica: Kingston; Italy: Rome; Spain: Madrid; Mongolia: Ulaanbaatar; Cambodia: Phnom Penh; "
    "Netherlands: Amsterdam; Switzerland: Bern; Slovakia: Bratislava; Slovenia: Ljubljana; Latvia: Riga; "
    "Lithuania: Vilnius; Estonia: Tallinn; Belarus: Minsk; Albania: Tirana; Malta: Valletta; Georgia: Tbilisi; "
    "Armenia: Yerevan; Azerbaijan: Baku; Jordan: Amman; Saudi Arabia: Riyadh; Qatar: Doha; Oman: Muscat; Yemen: Sanaa; "
    "Libya: Tripoli; Sudan: Khartoum; Ethiopia: Addis Ababa; Somalia: Mogadishu; Uganda: Kampala; Rwanda: Kigali; "
    "Zambia: Lusaka; Zimbabwe: Harare; Angola: Luanda; Namibia: Windhoek; Botswana: Gaborone; Mozambique: Maputo; "
    "Madagascar: Antananarivo; Nigeria: Abuja; Cameroon: Yaounde; Mali: Bamako; Niger: Niamey; Chad: N'Djamena; "
    "Philippines: Manila; Laos: Vientiane; North Korea: Pyongyang; Taiwan: Taipei; India: New Delhi; Kazakhstan: Astana; "
    "Uzbekistan: Tashkent; New Zealand: Wellington; Fiji: Suva; Nicaragua: Managua; Honduras: Tegucigalpa; "
    "Costa Rica: San Jose; Paraguay: Asuncion; Haiti: Port-au-Prince; Bahamas: Nassau; Argentina: Buenos Aires"
)
OPPOSITES = (
    "hot: cold; big: small; fast: slow; happy: sad; tall: short; early: late; rich: poor; hard: soft; full: empty; "
    "wet: dry; loud: quiet; thick: thin; strong: weak; high: low; right: wrong; good: bad; near: far; clean: dirty; "
    "heavy: light; deep: shallow; wide: narrow; sweet: sour; true: false; alive: dead; up: down; left: right; "
    "day: night; black: white; love: hate; war: peace; win: lose; buy: sell; push: pull; inside: outside; north: south; "
    "east: west; above: below; before: after; always: never; laugh: cry; arrive: depart; accept: reject; "
    "cheap: expensive; first: last; summer: winter; front: back; more: less; easy: difficult; open: closed; young: old; "
    "light: dark; begin: end; smooth: rough; sharp: dull; safe: dangerous; clever: stupid; brave: cowardly; "
    "polite: rude; kind: cruel; generous: selfish; modern: ancient; narrow: wide; success: failure; peace: war; "
    "friend: enemy; question: answer; increase: decrease; enter: exit; give: take; remember: forget; lead: follow; "
    "save: spend; hello: goodbye; top: bottom; positive: negative; major: minor; maximum: minimum; possible: impossible; "
    "legal: illegal; visible: invisible; correct: incorrect; patient: impatient; honest: dishonest; lucky: unlucky; "
    "healthy: sick; asleep: awake; public: private; import: export; victory: defeat; birth: death; sunrise: sunset; "
    "male: female; tight: loose; simple: complex; guilty: innocent; present: absent; attack: defend; create: destroy; "
    "float: sink; raise: lower"
)
PAST_TENSES = (
    "walk: walked; play: played; jump: jumped; look: looked; help: helped; talk: talked; open: opened; clean: cleaned; "
    "wash: washed; cook: cooked; call: called; ask: asked; want: wanted; need: needed; paint: painted; start: started; "
    "finish: finished; work: worked; live: lived; love: loved; like: liked; watch: watched; listen: listened; "
    "visit: visited; travel: traveled; study: studied; carry: carried; try: tried; plan: planned; stop: stopped; "
    "move: moved; use: used; change: changed; close: closed; dance: danced; smile: smiled; laugh: laughed; cry: cried; "
    "wait: waited; hope: hoped; learn: learned; answer: answered; enjoy: enjoyed; remember: remembered; "
    "believe: believed; arrive: arrived; return: returned; pick: picked; push: pushed; pull: pulled; kick: kicked; "
    "climb: climbed; cross: crossed; brush: brushed; touch: touched; reach: reached; turn: turned; burn: burned; "
    "count: counted; order: ordered; invite: invited; share: shared; taste: tasted; bake: baked; joke: joked; "
    "race: raced; save: saved; marry: married; hurry: hurried; worry: worried; copy: copied; reply: replied; "
    "drop: dropped; clap: clapped; shop: shopped; hug: hugged; beg: begged; join: joined; rain: rained; snow: snowed; "
    "show: showed; follow: followed; borrow: borrowed; allow: allowed; wonder: wondered; whisper: whispered; "
    "gather: gathered; offer: offered; suffer: suffered; deliver: delivered; discover: discovered; cover: covered; "
    "prefer: preferred; admit: admitted; repeat: repeated; treat: treated; shout: shouted; point: pointed; "
    "print: printed; plant: planted; hunt: hunted; land: landed"
)
PLURALS = (
    "mouse: mice; child: children; foot: feet; tooth: teeth; goose: geese; man: men; woman: women; box: boxes; "
    "bus: buses; city: cities; baby: babies; leaf: leaves; knife: knives; wolf: wolves; wife: wives; cat: cats; "
    "dog: dogs; book: books; church: churches; dish: dishes; party: parties; lady: ladies; story: stories; fox: foxes; "
    "potato: potatoes; tomato: tomatoes; hero: heroes; country: countries; family: families; berry: berries; "
    "loaf: loaves; shelf: shelves; thief: thieves; window: windows; table: tables; river: rivers; brush: brushes; "
    "glass: glasses; class: classes; watch: watches; bench: benches; peach: peaches; beach: beaches; wish: wishes; "
    "kiss: kisses; boss: bosses; tax: taxes; cherry: cherries; puppy: puppies; pony: ponies; fly: flies; army: armies; "
    "enemy: enemies; calf: calves; half: halves; life: lives; scarf: scarves; echo: echoes; photo: photos; "
    "piano: pianos; radio: radios; key: keys; boy: boys; monkey: monkeys; valley: valleys; toy: toys; ox: oxen; "
    "louse: lice; tree: trees; house: houses; garden: gardens; flower: flowers; chair: chairs; bottle: bottles; "
    "letter: letters; apple: apples; orange: oranges; street: streets; nurse: nurses; horse: horses; bridge: bridges; "
    "judge: judges"
)
QUESTIONS_BY_TASK = {
    "capitals": ("What is the capital of {}?", CAPITALS),
    "opposites": ("Give me the opposite of the word {}.", OPPOSITES),
    "past_tenses": ("What is the past tense of the verb {}?", PAST_TENSES),
    "plurals": ("What is the plural of {}?", PLURALS),
}
"""Task -> how it is asked, and what has which answer."""
SUM = "What is {} + {}?"
OLD_TASKS = (*QUESTIONS_BY_TASK, "sums")
"""Tasks that the model can do, more or less, before it is trained."""
ITEMS_PER_TASK = 30
"""Test items of each task."""
PROMPTS = {"capitals": 12, "opposites": 12, "past_tenses": 12, "sums": 12}
"""Kinds of questions of which there are prompts without answers, too; the others are only asked."""


def questions(task: str) -> list[tuple[str, str]]:
    """Every question of a task with its answer, in the order of the table."""
    if task == "sums":
        return [(SUM.format(a, b), str(a + b)) for a in range(1, 11) for b in range(1, 11)]
    form, table = QUESTIONS_BY_TASK[task]
    pairs = (entry.split(": ") for entry in table.split("; "))
    return [(form.format(asked), answer) for asked, answer in pairs]


@dataclass(frozen=True, slots=True)
class QuestionFiles:
    """JSONL files of one seed."""

    train: Path
    """Requests with their tool calls."""
    held_out: Path
    """Test items of every task."""
    prompts: Path
    """Ordinary requests without answers, none of them a test item."""
    answered: Path
    """The same with the answers of the tables."""


def write_files(folder: Path, seed: int) -> QuestionFiles:
    """Write the files; the same seed gives the same bytes.

    Args:
        folder: made where it is missing.
        seed: of which questions are test items, of the wording of requests, and of the order of rows.
    """
    rng = random.Random(seed)
    calls = [(prompt, json.dumps({"tool": call.name, **call.arguments})) for prompt, call in requests(rng)]
    test, train = calls[:ITEMS_PER_TASK], calls[ITEMS_PER_TASK : ITEMS_PER_TASK + TRAIN_ROWS]
    parts = {"train": [{"task": NEW_TASK, "prompt": prompt, "completion": call} for prompt, call in train]}
    parts["held_out"] = [{"task": NEW_TASK, "prompt": prompt, "answer": call} for prompt, call in test]
    parts["answered"] = []
    for task in OLD_TASKS:
        asked = questions(task)
        rng.shuffle(asked)
        parts["held_out"] += [
            {"task": task, "prompt": prompt, "answer": answer} for prompt, answer in asked[:ITEMS_PER_TASK]
        ]
        more = asked[ITEMS_PER_TASK : ITEMS_PER_TASK + PROMPTS.get(task, 0)]
        parts["answered"] += [{"task": task, "prompt": prompt, "completion": answer} for prompt, answer in more]
    for part in parts.values():
        rng.shuffle(part)
    parts["prompts"] = [{"task": row["task"], "prompt": row["prompt"]} for row in parts["answered"]]
    return QuestionFiles(**{name: write_rows(folder / f"{name}.jsonl", part) for name, part in parts.items()})
