"""The live page in a real browser: it follows a running campaign, a click approves, phones and colours."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.browser.chromium import find_chromium
from tests.campaigns import command

BINARY = find_chromium()
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(BINARY is None, reason="no Chromium found (install the package `chromium`)"),
]
WAIT_MS = 120_000
QUIET = ("--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update")
CONTRAST = """
() => {
  const rgb = (c) => (c.match(/[\\d.]+/g) || [0, 0, 0]).map(Number);
  const light = (c) => { const v = rgb(c).slice(0, 3).map((x) => { x /= 255; return x <= .03928 ? x / 12.92 : ((x + .055) / 1.055) ** 2.4; }); return .2126 * v[0] + .7152 * v[1] + .0722 * v[2]; };
  const back = (e) => { for (; e; e = e.parentElement) { const c = getComputedStyle(e).backgroundColor; if (rgb(c)[3] !== 0) return c; } return "rgb(255,255,255)"; };
  return [...document.querySelectorAll("h1,h2,p,td:not(.heat),th,a,dd,dt,span,button,label")].filter((e) => e.innerText && e.offsetParent)
    .map((e) => { const a = light(getComputedStyle(e).color), b = light(back(e)); return [(Math.max(a, b) + .05) / (Math.min(a, b) + .05), e.innerText.slice(0, 40)]; })
    .filter(([ratio]) => ratio < 4.5);
}
"""  # noqa: E501


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    from playwright.sync_api import sync_playwright

    with sync_playwright() as driver:
        opened = driver.chromium.launch(executable_path=BINARY, args=list(QUIET))
        yield opened
        opened.close()


@pytest.fixture(scope="module")
def live(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, Path, subprocess.Popen[bytes]]]:
    """A campaign that waits for approval in round 1, and a server beside it: (address, folder, campaign)."""
    out = tmp_path_factory.mktemp("live") / "tiny"
    log = out.with_suffix(".log").open("ab")
    campaign = subprocess.Popen(
        command(out, "campaign.rounds=1", "campaign.approve=true"),
        stdout=log,
        stderr=log,
        start_new_session=True,
    )
    while not (out / "campaign.json").exists():
        assert campaign.poll() is None, out.with_suffix(".log").read_text()
    server = subprocess.Popen(
        [sys.executable, "-m", "autosft", "serve", str(out), "--port", "0"], stdout=subprocess.PIPE, text=True
    )
    assert server.stdout is not None
    address = re.search(r"http://\S+", server.stdout.readline())
    assert address is not None
    yield address.group(), out, campaign
    for process in (server, campaign):
        process.kill()
        process.wait()


def test_it_follows_a_running_campaign_and_a_click_approves(browser: Any, live: Any) -> None:
    address, _, campaign = live
    page = browser.new_page()
    errors: list[str] = []
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.on("console", lambda line: errors.append(line.text) if line.type == "error" else None)
    page.goto(address)
    # Nothing is clicked: the page itself notices that round 0 ended and a decision waits.
    page.get_by_role("heading", name="Round 1 waits for your word").wait_for(timeout=WAIT_MS)
    page.get_by_role("button", name="Approve").click()
    page.get_by_role("link", name="1", exact=True).wait_for(timeout=WAIT_MS)
    assert campaign.wait(120) == 0
    page.get_by_text("stopped").first.wait_for(timeout=WAIT_MS)
    page.get_by_role("link", name="1", exact=True).click()
    page.get_by_text("approved by live page").wait_for(timeout=WAIT_MS)
    assert not errors
    page.close()


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 1100])
def test_pages_fit_and_can_be_read(browser: Any, live: Any, scheme: str, width: int) -> None:
    address, _, campaign = live
    campaign.wait(120)
    context = browser.new_context(color_scheme=scheme, viewport={"width": width, "height": 900})
    page = context.new_page()
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    for path in ("", "round/1", "leaves", "rows?round=1", "runs", "transcripts"):
        page.goto(f"{address}c/tiny/{path}")
        wide = page.evaluate("document.documentElement.scrollWidth > document.documentElement.clientWidth")
        assert not wide, f"{path} is wider than {width}"
        assert not page.evaluate(CONTRAST), path
    assert all(url.startswith(address) for url in asked)
    context.close()


def test_it_works_from_the_keyboard_and_without_scripts(browser: Any, live: Any) -> None:
    address, _, campaign = live
    campaign.wait(120)
    page = browser.new_page()
    page.goto(f"{address}c/tiny/rows")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.className") == "skip"
    page.get_by_label("Text").fill("no row says this (")
    page.keyboard.press("Enter")
    page.get_by_text("No row is like that.").wait_for(timeout=WAIT_MS)
    page.close()
    plain = browser.new_context(java_script_enabled=False).new_page()
    plain.goto(f"{address}c/tiny/")
    assert plain.get_by_role("heading", name="Rounds", exact=True).is_visible()
    plain.close()
