"""Pages in a real browser: three widths, light and dark; no overflow, nothing fetched, contrast, and the answers.

Frames of the wanted sizes hold the page as it is, and a script outside of it looks in and writes its findings. Needs a
Chromium binary; CI installs it. MIXWRIGHT_CHROMIUM names another one.
"""

from __future__ import annotations

import html
import json
import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import verdicts

from mixwright.records import Verdict
from mixwright.verdict.page.frame import GRADED_KINDS
from mixwright.verdict.page.page import render_page

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
CHROMIUM = os.environ.get("MIXWRIGHT_CHROMIUM") or next((path for name in NAMES if (path := shutil.which(name))), None)
FLAGS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-sync",
    "--disable-component-update",
    "--hide-scrollbars",
    "--allow-file-access-from-files",
    "--virtual-time-budget=20000",
    "--enable-logging=stderr",
]
WIDTHS = {375: 812, 768: 1024, 1440: 900}
pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(CHROMIUM is None, reason="no Chromium on this machine (apt-get install chromium)"),
]

PROBE = """<!doctype html><meta charset="utf-8"><body>FRAMES<pre id="found">nothing</pre><script>
const channel = c => { c /= 255; return c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4; };
const colour = text => (text.match(/[0-9.]+/g) || []).map(Number);
const light = c => 0.2126 * channel(c[0]) + 0.7152 * channel(c[1]) + 0.0722 * channel(c[2]);
function ground(view, node) {
  for (; node; node = node.parentElement) {
    const c = colour(view.getComputedStyle(node).backgroundColor);
    if (c.length === 3 || c[3] === 1) return c;
  }
  return [255, 255, 255];
}
function look(frame) {
  const view = frame.contentWindow, page = view.document, wide = page.documentElement.clientWidth;
  const bottom = selector => Math.max(0, ...[...page.querySelectorAll(selector)].map(n => n.getBoundingClientRect().bottom));
  const bottoms = {tasks: bottom('.forest tr:not(.axis)'), first: bottom('.first'), code: bottom('.first .code')};
  const rows = page.querySelectorAll('.first > section');
  const columns = new Set([...rows].map(n => n.getBoundingClientRect().left)).size;
  page.querySelectorAll('details').forEach(d => { d.open = true; });
  const pale = [], small = [], out = [];
  const walker = page.createTreeWalker(page.body, NodeFilter.SHOW_TEXT);
  for (let text = walker.nextNode(); text; text = walker.nextNode()) {
    const node = text.parentElement;
    if (!text.data.trim() || node.closest('.unseen, style, script, noscript, defs, option')) continue;
    const style = view.getComputedStyle(node), inside = node.closest('svg');
    const box = inside && inside.viewBox.baseVal;
    const scale = box && box.width ? inside.getBoundingClientRect().width / box.width : 1;
    const size = parseFloat(style.fontSize) * scale, ink = colour(inside ? style.fill : style.color);
    const [a, b] = [light(ink), light(ground(view, node))].sort((x, y) => x - y);
    if ((b + 0.05) / (a + 0.05) < 4.5) pale.push([text.data.trim(), style.color, (b + 0.05) / (a + 0.05)]);
    if (size < 11.5) small.push([text.data.trim(), size]);
    const range = page.createRange(); range.selectNodeContents(text);
    if (!node.closest('.scroll, pre') && range.getBoundingClientRect().right > wide + 1) out.push(text.data.trim());
  }
  const scrolls = page.documentElement.scrollWidth;
  const fetched = view.performance.getEntriesByType('resource').map(e => e.name);
  return {wide, scrolls, columns, bottoms, pale, small, out, fetched,
          ground: view.getComputedStyle(page.body).backgroundColor, title: page.title};
}
function use(frame) {
  const view = frame.contentWindow, page = view.document, seen = {};
  const articles = () => [...page.querySelectorAll('.list article')];
  const count = () => page.querySelector('.count').textContent;
  const press = (key, node) => (node || page.activeElement).dispatchEvent(
    new view.KeyboardEvent('keydown', {key, bubbles: true, cancelable: true}));
  const type = text => {
    const box = page.querySelector('input'); box.value = text; box.dispatchEvent(new view.Event('input'));
  };
  seen.open = page.querySelector('#answers').open;
  press('/');
  seen.searching = page.activeElement.matches('input') && page.querySelector('#answers').open;
  press('j');
  seen.typed = page.activeElement.matches('input');
  press('Escape');
  seen.left = !page.activeElement.matches('input');
  seen.kinds = [...page.querySelectorAll('.kinds button')].map(button => {
    button.click();
    return [button.textContent, count(), articles().length, button.getAttribute('aria-pressed')];
  });
  page.querySelector('.kinds button').click();
  const place = () => articles().indexOf(page.activeElement);
  seen.places = ['j', 'j', 'ArrowDown', 'k', 'ArrowUp'].map(key => { press(key); return place(); });
  const drawn = articles().length;
  for (let step = 0; step < drawn + 5; step += 1) press('j');
  seen.far = [place(), articles().length];
  const choice = page.querySelector('select');
  choice.value = '1'; choice.dispatchEvent(new view.Event('change'));
  seen.task = [count(), [...new Set(articles().map(a => a.querySelector('p').textContent.split(' · ')[0]))]];
  choice.value = ''; choice.dispatchEvent(new view.Event('change'));
  const start = performance.now();
  type('COUNTRY 77?');
  seen.search = [count(), articles().map(a => a.querySelector('pre').textContent)];
  type('no such text');
  seen.nothing = [count(), articles().length, page.querySelector('.more').hidden];
  type('');
  seen.marked = articles()[0].querySelectorAll('mark').length;
  seen.sides = articles()[0].querySelectorAll('.sides > div').length;
  seen.alert = view.alerted || false;
  return seen;
}
addEventListener('load', () => setTimeout(() => {
  const found = {};
  for (const frame of document.querySelectorAll('iframe')) found[frame.width] = DO(frame);
  document.getElementById('found').textContent = JSON.stringify(found);
}, 500));
</script>"""


def probe(page: Path, folder: Path, scheme: str, widths: dict[int, int], function: str) -> dict[str, Any]:
    """Return the findings of a function of the probe, by width; a message on the console is an error."""
    frames = "".join(
        f'<iframe src="{page.as_uri()}" width="{w}" height="{h}" style="border:0"></iframe>' for w, h in widths.items()
    )
    outer = folder / f"probe-{scheme}.html"
    outer.write_text(PROBE.replace("FRAMES", frames).replace("DO(", f"{function}("), encoding="utf-8")
    preference = f"--blink-settings=preferredColorScheme={int(scheme == 'light')}"
    data = f"--user-data-dir={folder / scheme}"
    command = [str(CHROMIUM), *FLAGS, preference, data, "--window-size=2700,1800", "--dump-dom", outer.as_uri()]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    match = re.search(r'<pre id="found">(.*?)</pre>', done.stdout, re.DOTALL)
    assert match, done.stderr[-2000:]
    assert [line for line in done.stderr.splitlines() if "CONSOLE" in line] == []
    return json.loads(html.unescape(match.group(1)))


def look(page: Path, folder: Path, scheme: str) -> dict[str, Any]:
    """Return the layout and colours of a page, by width."""
    return probe(page, folder, scheme, WIDTHS, "look")


def save(verdict: Verdict, folder: Path, count: int = 180, **more: Any) -> Path:
    """Write the page of a verdict with answers."""
    page = folder / "page.html"
    page.write_text(render_page(verdict, verdicts.pairs(count, **more)), encoding="utf-8")
    return page


LONG = ("a_very_long_task_name_" * 4, "unbroken" * 12, "\u202e\u2066\u0645\u0631\u062d\u0628\u0627")


def hostile() -> Verdict:
    """Make a verdict of which every text is long or steers a terminal."""
    tasks = tuple(verdicts.change(name, "lost", 0.9, 0.1) for name in LONG)
    changed = tuple(verdicts.pair(before=name * 9, after=name * 20) for name in LONG)
    return verdicts.damaged(tasks=tasks, pairs=changed, before=LONG[0], after=LONG[1], why=LONG, headline=LONG[0])


PAGES = {
    "damaged": verdicts.damaged,
    "trial": verdicts.trial,
    "hostile": hostile,
}


@pytest.fixture(scope="module", params=[(name, scheme) for name in PAGES for scheme in ("light", "dark")], ids="-".join)
def seen(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    name, scheme = request.param
    folder = tmp_path_factory.mktemp("browser")
    return {"name": name, "scheme": scheme, **look(save(PAGES[name](), folder), folder, scheme)}


@pytest.mark.parametrize("width", [str(width) for width in WIDTHS])
def test_it_reads_well_and_fetches_nothing(seen: dict[str, Any], width: str) -> None:
    found = seen[width]
    assert found["wide"] == int(width)
    assert found["scrolls"] <= int(width), "the page scrolls sideways"
    assert found["out"] == []
    assert found["pale"] == []
    assert found["small"] == []
    assert found["fetched"] == []


def test_the_first_screen_holds_the_answer(seen: dict[str, Any]) -> None:
    assert (seen["375"]["columns"], seen["1440"]["columns"]) == (1, 2)
    if seen["name"] != "hostile":
        assert seen["1440"]["bottoms"]["first"] < WIDTHS[1440]
        assert seen["375"]["bottoms"]["tasks"] < WIDTHS[375]
        assert seen["375"]["bottoms"]["code"] > seen["375"]["bottoms"]["tasks"], "commands come after the tasks"


def test_light_is_light_and_dark_is_dark(seen: dict[str, Any]) -> None:
    red = int(re.findall(r"\d+", str(seen["375"]["ground"]))[0])
    assert red > 200 if seen["scheme"] == "light" else red < 60


@pytest.mark.parametrize("count", [180, 20_000])
def test_answers_are_filtered_searched_and_walked_through(count: int, tmp_path: Path) -> None:
    used = probe(save(verdicts.damaged(), tmp_path, count), tmp_path, "light", {1440: 900}, "use")["1440"]
    assert (used["open"], used["searching"], used["typed"], used["left"]) == (False, True, True, True)
    pairs, whole = verdicts.pairs(count), f"{count:,}"
    kinds = [GRADED_KINDS[number // len(verdicts.TASKS) % 4] for number in range(count)]
    expected = {"all": count, **{kind: kinds.count(kind) for kind in GRADED_KINDS}}
    assert used["kinds"] == [
        [f"{kind} {number:,}", f"{number:,} of {whole}", min(number, 50), "true"] for kind, number in expected.items()
    ]
    assert used["places"] == [0, 1, 2, 1, 0]
    assert used["far"] == [55, 100], "more is drawn when it is walked to"
    of_task = sum(pair.task == pairs[1].task for pair in pairs)
    assert used["task"] == [f"{of_task:,} of {whole}", [pairs[1].task]]
    assert used["search"] == [f"1 of {whole}", [pairs[77].prompt]]
    assert used["nothing"] == [f"0 of {whole}", 0, True]


def test_a_hostile_answer_is_text(tmp_path: Path) -> None:
    evil = "</script><script>top.alerted = alerted = true</script><img src=x onerror='alerted = true'>\u2028\u202e\x1b[31m"
    page = save(verdicts.damaged(), tmp_path, after=evil)
    used = probe(page, tmp_path, "light", {1440: 900}, "use")["1440"]
    assert used["alert"] is False
