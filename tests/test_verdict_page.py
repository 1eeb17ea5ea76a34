"""The page: self-contained, escaped, readable by contrast, complete, reproducible, and made without torch."""

from __future__ import annotations

import json
import re
import shutil
from html.parser import HTMLParser
from pathlib import Path

import pytest
from _example_run import build, build_pair, example_page
from rich.console import Console

import mixwright.verdict
from mixwright.catalog import listing
from mixwright.errors import InputError
from mixwright.run.folder import RunFolder
from mixwright.verdict.page.blocks import Claims, Fold, Forest, ForestRow, Grid, Paragraph, Table, keep_filled
from mixwright.verdict.page.charts import COLOUR_BY_STANDIN, render_svg
from mixwright.verdict.page.page import HEAT_COLOUR_COUNT
from mixwright.verdict.page.text import to_visible
from mixwright.verdict.rules.claims import judge
from mixwright.verdict.stage import render, sections, summarise

CSS = (Path(mixwright.verdict.__file__).with_name("page") / "page.css").read_text(encoding="utf-8")
HOSTILE = {
    "chain_sum": "<script>alert(1)</script>",
    "gcd": "</style></title><img src=x onerror=alert(1)>",
    "products": "{{7*7}}{% raw %}$\\frac{1}{2}$",
    "spell_backward": "\u202eevil\x1b[31m\x00\u200b\ud800",
    "count_bits": '" onmouseover="alert(1)',
    "lcm": "[bold red]loud[/] " + "long" * 80,
}
VOID = {"meta", "br", "wbr", "img", "line", "use", "path", "hr", "link"}


class Reader(HTMLParser):
    """Collects tags and text, and refuses what is not balanced."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[str] = []
        self.open: list[str] = []
        self.feed(text)
        assert not self.open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        if tag not in VOID:
            assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.texts.append(data)


@pytest.fixture
def page() -> str:
    return example_page()


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> str:
    names = {name: text.replace("\ud800", "") for name, text in HOSTILE.items()}
    return render(build(tmp_path_factory.mktemp("hostile"), seeds=2, rename=names)).read_text(encoding="utf-8")


def test_nothing_comes_from_outside_and_nothing_runs(page: str, hostile: str) -> None:
    for text in (page, hostile):
        reader = Reader(text)
        policy = next(a for t, a in reader.tags if t == "meta" and a.get("http-equiv") == "Content-Security-Policy")
        assert (policy["content"] or "").startswith("default-src 'none'; style-src 'unsafe-inline'; img-src data:")
        names = {tag for tag, _ in reader.tags}
        assert not names & {"script", "img", "iframe", "link", "object", "embed", "form", "base", "foreignobject", "image"}
        for _, attributes in reader.tags:
            assert not [name for name in attributes if name.startswith("on") or name in ("src", "srcset", "action")]
            references = [v for k, v in attributes.items() if k in ("href", "xlink:href")]
            assert all(value and value.startswith("#") for value in references)
        assert "@import" not in text
        assert not re.search(r"url\((?!#)", text)


def test_strings_from_data_are_escaped_and_hidden_characters_shown(hostile: str) -> None:
    words = "".join(Reader(hostile).texts)
    assert "<script>alert(1)</script>" in words
    assert "{{7*7}}" in words
    assert "⟨U+202E⟩evil⟨U+001B⟩[31m⟨U+0000⟩⟨U+200B⟩" in words
    assert not re.search("[\u0000-\u0008\u000e-\u001f\u202a-\u202e\u2066-\u2069]", hostile)
    assert "<script" not in hostile.lower()


def test_visible_keeps_lone_surrogates_writable() -> None:
    assert to_visible("a\ud800b\tc\nd") == "a⟨U+D800⟩b\tc\nd"
    assert to_visible("héllo 日本 ✓") == "héllo 日本 ✓"
    assert to_visible("x" * 10, limit=4) == "xxxx… (6 more characters)"


def test_the_terminal_gets_neither_markup_nor_control_characters(tmp_path: Path) -> None:
    names = {name: text.replace("\ud800", "") for name, text in HOSTILE.items()}
    run = build(tmp_path, seeds=2, rename=names)
    console = Console(record=True, width=400, file=(tmp_path / "out.txt").open("w", encoding="utf-8"))
    summarise(run, console, full=True)
    text = console.export_text()
    console.file.close()
    assert "[bold red]loud[/]" in text
    assert "\x1b[31m" not in text
    assert "\u202e" not in text


def test_the_terminal_says_what_the_page_says(tmp_path: Path) -> None:
    run = build(tmp_path)  # five seeds: with fewer nothing is said to be learnt
    console = Console(record=True, width=120, file=(tmp_path / "out.txt").open("w", encoding="utf-8"))
    summarise(run, console)
    console.file.close()
    text = console.export_text()
    assert "Learnt" in text
    assert "chain_sum level 2" in text
    assert "499 of 500" in text
    assert "Settings" not in text


def test_first_screen(page: str) -> None:
    first, _, rest = page.partition('class="rest')
    words = (
        "Train with this plan only if a loss on products level 1 is acceptable",
        "steering=&#34;",
        "steered helps",
        "success against frozen",
        "equal_shares",
        "Learnt",
        "Damaged",
        "499 of 500 eval",
    )
    for word in words:
        assert word in first
    # the mechanism is told in the rows of every branch, and never where the verdict stands
    for word in ("zero-signal", "informative groups"):
        assert word not in first
        assert word in rest
    assert "Competence before and after" in rest
    names = (
        "Trial arms",
        "Where the difference lies",
        "loss_type",
        "scale_rewards",
        "Decisions and alarms",
    )
    for word in (*names, "Completions before and after", "mixwright run demo.yaml", "refuse.count_bits@1"):
        assert word in rest


def test_numbers_on_the_page_are_those_of_the_claims(tmp_path: Path, page: str) -> None:
    words = " ".join("".join(Reader(page).texts).split())
    claims = [c for c in judge(build(tmp_path)) if c.arm == "steered" and c.kind in ("learnt", "damaged")]
    assert claims
    for claim in claims:
        assert f"{round(100 * claim.before)} → {round(100 * claim.after)} %" in words


def test_tables_have_captions_and_scopes(page: str) -> None:
    tags = [tag for tag, _ in Reader(page).tags]
    assert tags.count("h1") == 1
    assert tags.count("caption") == tags.count("table")
    assert all(attributes.get("scope") in ("col", "row") for tag, attributes in Reader(page).tags if tag == "th")
    charts = [attributes for tag, attributes in Reader(page).tags if tag == "svg" and "aria-hidden" not in attributes]
    assert charts
    assert all(chart.get("role") == "img" and chart.get("aria-label") for chart in charts)


def test_the_same_run_gives_the_same_bytes(tmp_path: Path) -> None:
    run = build(tmp_path, seeds=1)
    first = render(run).read_bytes()
    run.page.unlink()
    assert render(run).read_bytes() == first


@pytest.mark.parametrize("part", ["audit.json", "plan.yaml", "manifest.json", "trial/result.json", "trial"])
def test_every_part_may_be_missing(tmp_path: Path, part: str) -> None:
    run = build(tmp_path, seeds=1)
    path = run.path / part
    shutil.rmtree(path) if path.is_dir() else path.unlink()
    Reader(render(run).read_text(encoding="utf-8"))


def test_a_run_without_results_has_a_page_that_says_so_and_what_is_no_run_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "begun" / "measure").mkdir(parents=True)
    assert "nothing to show" in render(RunFolder(tmp_path / "begun")).read_text(encoding="utf-8")
    (tmp_path / "other").mkdir()
    for name in ("absent", "other"):
        with pytest.raises(InputError, match="a run folder"):
            render(RunFolder(tmp_path / name))
    assert not (tmp_path / "absent").exists()
    assert not list((tmp_path / "other").iterdir()), "no page is written into a folder that is no run"


def test_a_broken_line_is_named(tmp_path: Path) -> None:
    run = build(tmp_path, seeds=1)
    path = run.branch("steered", 0) / "decisions.jsonl"
    whole_lines = len(path.read_text(encoding="utf-8").splitlines())
    with path.open("a") as file:
        file.write("{broken\n")
    with pytest.raises(InputError, match=rf"decisions\.jsonl, line {whole_lines + 1}"):
        render(run)
    assert not run.page.exists()


def test_a_plain_pair_of_checkpoints(tmp_path: Path) -> None:
    text = render(build_pair(tmp_path)).read_text(encoding="utf-8")
    assert re.search(r"512 held-out items, success: improves. \d+ learnt, 1 damaged, \d+ cannot tell", text)
    assert '<h1 class="tone-bad">Do not ship AFTER: products level 1 is damaged.</h1>' in text
    for part in ("= change of S", "+ change of D", "After against before"):
        assert part in text
    assert "Trial arms" not in text


def test_a_plain_pair_that_fell_is_red(tmp_path: Path) -> None:
    run = build_pair(tmp_path)
    names = [run.measurements(name) for name in ("before", "after")]
    first = names[0].read_bytes()
    names[0].write_bytes(names[1].read_bytes())
    names[1].write_bytes(first)
    text = render(run).read_text(encoding="utf-8")
    assert '<h1 class="tone-bad">Do not ship AFTER: ' in text
    assert "512 held-out items, success: worsens." in text


@pytest.mark.parametrize("gone", [("effects",), ("effects", "rows"), ("effects", "rows", "judgements", "notes")])
def test_no_table_chart_or_fold_is_empty(tmp_path: Path, gone: tuple[str, ...]) -> None:
    run = build(tmp_path / "run", seeds=1)
    result = json.loads(run.result.read_text(encoding="utf-8"))
    run.result.write_text(json.dumps(result | {name: [] for name in gone}), encoding="utf-8")
    text = re.sub(r">\s+<", "><", render(run).read_text(encoding="utf-8"))
    for empty in ("<tbody></tbody>", "</summary></details>", '<div class="grid"></div>', "</h2></section>"):
        assert empty not in text


def test_a_block_with_nothing_in_it_is_left_out() -> None:
    table, text = Table("t", ("a",), ()), Paragraph("said")
    kept = keep_filled([table, Fold("f", (table, Grid((table,)))), Fold("g", (table, text)), Claims("c", ()), text])
    assert kept == [Fold("g", (text,)), text]


def test_every_section_is_silent_without_files(tmp_path: Path) -> None:
    assert len(listing("sections")) >= 12
    assert sections(RunFolder(tmp_path)) == []


def _palettes() -> dict[str, dict[str, str]]:
    light = dict(re.findall(r"--([a-z0-9-]+): (#[0-9a-f]{6})", CSS[: CSS.index("@media")]))
    dark = dict(re.findall(r"--([a-z0-9-]+): (#[0-9a-f]{6})", CSS[CSS.index("@media") : CSS.index("* { box-sizing")]))
    return {"light": light, "dark": dark}


def _contrast(one: str, other: str) -> float:
    """WCAG 2.1 contrast ratio."""

    def luminance(colour: str) -> float:
        parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
        red, green, blue = (c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts)
        return 0.2126 * red + 0.7152 * green + 0.0722 * blue

    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


def test_contrast_by_hand() -> None:
    assert _contrast("#ffffff", "#000000") == pytest.approx(21)
    assert _contrast("#777777", "#ffffff") == pytest.approx(4.478, abs=0.001)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_contrast_is_aa(scheme: str) -> None:
    palette = _palettes()[scheme]
    assert palette.keys() == _palettes()["light"].keys()
    for ground in ("page", "panel"):
        for text in ("ink", "quiet", "good", "bad", "caution"):
            assert _contrast(palette[text], palette[ground]) >= 4.5, (text, ground)
        for mark in ("series-1", "series-2", "series-3", "series-4", "quiet", "focus"):
            assert _contrast(palette[mark], palette[ground]) >= 3, (mark, ground)
    assert _contrast(palette["series-1"], palette["noise"]) >= 3
    assert _contrast(palette["series-2"], palette["noise"]) >= 3
    assert _contrast(palette["quiet"], palette["noise"]) >= 4.5
    for heat in range(HEAT_COLOUR_COUNT):
        assert _contrast(palette[f"heat-ink-{heat}"], palette[f"heat-{heat}"]) >= 4.5, heat


def test_every_colour_of_a_chart_is_the_pages() -> None:
    text = render_svg(Forest("c", "a", "x", (ForestRow("<b>&", 0.1, 0.0, 0.2, (0.1,)),), 0.05))
    assert "&lt;b&gt;&amp;" in text
    assert set(re.findall(r"#[0-9a-fA-F]{6}\b", text)) == set()
    variables = set(re.findall(r"var\(--([a-z0-9-]+)\)", text))
    assert variables <= {value[6:-1] for value in COLOUR_BY_STANDIN.values()} & _palettes()["light"].keys()
