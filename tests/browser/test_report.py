"""The report in a real browser: nothing is cut off on a phone, everything can be read in both colours and on
paper, and the page asks the network for nothing."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from pathlib import Path

import pytest

from autosft.meta.views_report import campaign_report
from autosft.report import write_page
from tests.browser.chromium import Chromium, find_chromium
from tests.report.records import HOSTILE, branched

BINARY = find_chromium()
pytestmark = pytest.mark.skipif(
    BINARY is None, reason="no Chromium found (install the package `chromium`, or set CHROMIUM)"
)
PHONE, DESK = 380, 1280

# Text too close in colour to its background, by WCAG's contrast ratio; SVG text is filled, not coloured.
CONTRAST = """
(() => {
  const parse = c => { const m = c.match(/[\\d.]+/g).map(Number); return m.length < 4 ? [...m, 1] : m; };
  const over = (top, under) => top.slice(0, 3).map((v, i) => v * top[3] + under[i] * (1 - top[3]));
  const light = rgb => {
    const [r, g, b] = rgb.map(v => (v /= 255) <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const behind = node => {
    const stack = [];
    for (let n = node; n; n = n.parentElement) stack.push(parse(getComputedStyle(n).backgroundColor));
    return stack.reverse().reduce((under, top) => over(top, under), [255, 255, 255]);
  };
  const bad = [];
  for (const node of document.querySelectorAll('body *')) {
    const own = [...node.childNodes].some(n => n.nodeType === 3 && n.textContent.trim());
    if (!own || !node.getClientRects().length) continue;
    const style = getComputedStyle(node), inside = node.closest('svg');
    const ground = behind(inside ? inside.parentElement : node);
    const ink = over(parse(inside ? style.fill : style.color), ground);
    const [a, b] = [light(ink), light(ground)].sort((x, y) => y - x);
    const ratio = (a + 0.05) / (b + 0.05);
    if (ratio < 4.5)
      bad.push(node.tagName + ' ' + node.textContent.slice(0, 30) + ' ' + ratio.toFixed(2));
  }
  return bad;
})()
"""
# Elements that reach beyond the window and do not scroll in a box of their own.
OVERFLOW = """
[...document.querySelectorAll('body *')].filter(
  n => n.getClientRects().length && n.getBoundingClientRect().right > innerWidth + 1
    && !n.closest('.scroll, .lineage')
).map(n => n.tagName + ' ' + n.className + ' ' + n.textContent.slice(0, 40))
"""
SMALL_TEXT = """
[...document.querySelectorAll('svg text')].filter(n => n.getClientRects().length)
  .map(n => n.getBoundingClientRect().height).filter(h => h < 10).length
"""


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Chromium]:
    assert BINARY is not None
    with Chromium(BINARY, tmp_path_factory.mktemp("profile")) as started:
        yield started


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The report of a campaign with every section, hostile text included."""
    folder = tmp_path_factory.mktemp("page")
    campaign = branched(folder / "made", text=HOSTILE, name="made")
    return write_page(campaign_report(campaign), folder / "report.html")


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("width", [PHONE, DESK])
def test_readable_at_every_width_in_both_colours(
    width: int, dark: bool, browser: Chromium, page: Path, tmp_path: Path
) -> None:
    browser.open(page, width=width, dark=dark)
    browser.evaluate("document.querySelectorAll('details').forEach(d => d.open = true)")
    assert browser.evaluate("document.documentElement.scrollWidth") == width
    assert browser.evaluate(OVERFLOW) == []
    assert browser.evaluate(CONTRAST) == []
    assert browser.evaluate(SMALL_TEXT) == 0
    shown = browser.evaluate(
        "[...document.querySelectorAll('figure')].map("
        "f => [...f.querySelectorAll('svg')].filter(s => s.getClientRects().length).length)"
    )
    assert shown and set(shown) == {1}, "one drawing of each chart is shown"
    ground = browser.evaluate("getComputedStyle(document.body).backgroundColor")
    assert (int(ground.split("(")[1].split(",")[0]) < 100) is dark
    picture = browser.screenshot()
    (tmp_path / "page.png").write_bytes(picture)
    assert struct.unpack(">II", picture[16:24])[0] == width and len(picture) > 50_000


def test_the_contrast_check_can_fail(browser: Chromium, tmp_path: Path) -> None:
    page = tmp_path / "pale.html"
    page.write_text(
        "<body style='background:#fff'><p style='color:#ccc'>pale</p><svg><text>dark</text></svg>"
    )
    browser.open(page, width=PHONE, dark=False)
    assert [line.split()[:2] for line in browser.evaluate(CONTRAST)] == [["P", "pale"]]


def test_nothing_is_fetched_and_no_text_becomes_an_element(browser: Chromium, page: Path) -> None:
    browser.open(page, width=DESK, dark=False)
    assert browser.requests == [page.absolute().as_uri()]
    assert browser.evaluate("document.querySelectorAll('script, img, iframe').length") == 0
    assert "Page.javascriptDialogOpening" not in browser.events
    assert "<script>alert('x')</script>" in browser.evaluate("document.body.innerText")


def test_it_prints(browser: Chromium, page: Path) -> None:
    browser.open(page, width=DESK, dark=True)
    printed = browser.pdf()
    assert printed.startswith(b"%PDF") and 2 <= printed.count(b"/Type /Page\n") <= 12
    browser.send("Emulation.setEmulatedMedia", media="print")
    assert browser.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    assert browser.evaluate(CONTRAST) == []
    browser.send("Emulation.setEmulatedMedia", media="")
