"""The page in a real browser: phone and desktop, light and dark; no overflow, nothing fetched, contrast AA as drawn.

A frame of the wanted size holds the page as it is, and a script outside of it looks in and writes what it found; the page's
own policy allows no script. Needs a Chromium binary; CI installs it. MIXWRIGHT_CHROMIUM names another one.
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
from _example_run import build

from mixwright.verdict.stage import render

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
    "--virtual-time-budget=8000",
]
WIDTHS = {375: 812, 1440: 900}
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
  page.querySelectorAll('details').forEach(d => { d.open = true; });
  const pale = [], small = [], out = [];
  const walker = page.createTreeWalker(page.body, NodeFilter.SHOW_TEXT);
  for (let text = walker.nextNode(); text; text = walker.nextNode()) {
    const node = text.parentElement;
    if (!text.data.trim() || node.closest('.unseen, style, defs')) continue;
    const style = view.getComputedStyle(node), inside = node.closest('svg');
    const scale = inside ? inside.getBoundingClientRect().width / inside.viewBox.baseVal.width : 1;
    const size = parseFloat(style.fontSize) * scale, ink = colour(inside ? style.fill : style.color);
    const [a, b] = [light(ink), light(ground(view, node))].sort((x, y) => x - y);
    if ((b + 0.05) / (a + 0.05) < 4.5) pale.push([text.data.trim(), style.color, (b + 0.05) / (a + 0.05)]);
    if (size < 11.5) small.push([text.data.trim(), size]);
    const range = page.createRange(); range.selectNodeContents(text);
    if (!node.closest('.scroll, pre') && range.getBoundingClientRect().right > wide + 1) out.push(text.data.trim());
  }
  const scrolls = page.documentElement.scrollWidth;
  page.querySelectorAll('details').forEach(d => { d.open = false; });
  const tops = [...page.querySelectorAll('h1, .first h2, .first .claims tr:first-child, .first p.tone-bad')]
    .filter(n => !n.closest('details')).map(n => n.getBoundingClientRect().bottom);
  const cards = [...page.querySelectorAll('.first > section')].map(n => n.getBoundingClientRect())
    .map(box => [box.left, box.right, box.top]);
  const fetched = view.performance.getEntriesByType('resource').map(e => e.name);
  return {wide, scrolls, cards, pale, small, out, tops, fetched,
          ground: view.getComputedStyle(page.body).backgroundColor, scripts: page.scripts.length, title: page.title};
}
addEventListener('load', () => {
  const found = {};
  for (const frame of document.querySelectorAll('iframe')) found[frame.width] = look(frame);
  document.getElementById('found').textContent = JSON.stringify(found);
});
</script>"""


def look(page: Path, folder: Path, scheme: str) -> dict[str, Any]:
    """What the browser found, by width."""
    frames = "".join(
        f'<iframe src="{page.as_uri()}" width="{w}" height="{h}" style="border:0"></iframe>' for w, h in WIDTHS.items()
    )
    probe = folder / f"probe-{scheme}.html"
    probe.write_text(PROBE.replace("FRAMES", frames), encoding="utf-8")
    preference = f"--blink-settings=preferredColorScheme={int(scheme == 'light')}"
    command = [
        str(CHROMIUM),
        *FLAGS,
        preference,
        f"--user-data-dir={folder / scheme}",
        "--window-size=1900,1800",
        "--dump-dom",
    ]
    done = subprocess.run([*command, probe.as_uri()], capture_output=True, text=True, timeout=120, check=False)
    match = re.search(r'<pre id="found">(.*?)</pre>', done.stdout, re.DOTALL)
    assert match, done.stderr[-2000:]
    return json.loads(html.unescape(match.group(1)))


LONG = {"chain_sum": "a_very_long_task_name_" * 4, "gcd": "unbroken" * 12, "lcm": "‮⁦مرحبا"}


@pytest.fixture(scope="module", params=["light", "dark"])
def seen(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Any]]:
    folder = tmp_path_factory.mktemp("browser")
    names = LONG if request.param == "dark" else {}
    return {"scheme": request.param, **look(render(build(folder / "run", rename=names)), folder, request.param)}


@pytest.mark.parametrize("width", [str(width) for width in WIDTHS])
def test_it_reads_well(seen: dict[str, dict[str, Any]], width: str) -> None:
    found = seen[width]
    assert found["title"].startswith("Verdict")
    assert found["wide"] == int(width)
    assert found["scrolls"] <= int(width), "the page scrolls sideways"
    assert found["out"] == []
    assert found["pale"] == []
    assert found["small"] == []


@pytest.mark.parametrize("width", [str(width) for width in WIDTHS])
def test_it_fetches_and_runs_nothing(seen: dict[str, dict[str, Any]], width: str) -> None:
    assert seen[width]["fetched"] == []
    assert seen[width]["scripts"] == 0


def test_the_first_screen_holds_the_verdict(seen: dict[str, dict[str, Any]]) -> None:
    tops = seen["1440"]["tops"]
    assert len(tops) >= 6
    assert max(tops) < WIDTHS[1440]


def test_three_cards_fill_the_width_and_stand_under_each_other_on_a_phone(seen: dict[str, dict[str, Any]]) -> None:
    wide, narrow = seen["1440"]["cards"], seen["375"]["cards"]
    assert len(wide) == len(narrow) == 3
    assert len({top for _, _, top in wide}) == 1, "side by side"
    body = 1328 - 2 * 24
    assert wide[-1][1] - wide[0][0] == pytest.approx(body, abs=2)
    assert len({top for _, _, top in narrow}) == 3


def test_light_is_light_and_dark_is_dark(seen: dict[str, dict[str, Any]]) -> None:
    red = int(re.findall(r"\d+", str(seen["375"]["ground"]))[0])
    assert (red > 200) == (seen["scheme"] == "light")
    assert red > 200 or red < 60
