"""The documentation: links lead somewhere, here and on the site; pages load nothing from elsewhere."""

from __future__ import annotations

import importlib.util
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
LINK = re.compile(r"\]\(([^)#\s]+)(?:#[^)]*)?\)")
spec = importlib.util.spec_from_file_location("build_site", ROOT / "scripts/build_site.py")
build_site = importlib.util.module_from_spec(spec)
spec.loader.exec_module(build_site)


def test_links_between_pages_lead_somewhere():
    pages = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]
    broken = [
        f"{page.relative_to(ROOT)}: {target}"
        for page in pages
        for target in LINK.findall(page.read_text(encoding="utf-8"))
        if "://" not in target and not (page.parent / target).exists()
    ]
    assert not broken


def test_every_page_is_in_the_navigation():
    named = {page for _, page in build_site.NAV}
    pages = {p.name for p in (ROOT / "docs").glob("*.md")} | set(build_site.OUTSIDE.values())
    assert pages == named


def test_broken_links_and_foreign_files_are_found(tmp_path):
    (tmp_path / "a.html").write_text(
        '<a href="b.html#x">b</a><a href="c.html">c</a><script src="https://example.org/x.js"></script>'
    )
    (tmp_path / "b.html").write_text('<p id="y"></p><a href="a.html">a</a>')
    assert build_site.problems(tmp_path) == [
        "a.html loads https://example.org/x.js",
        "a.html: no c.html",
        "a.html: no part b.html#x",
    ]


def test_the_site_is_built(tmp_path):
    pytest.importorskip("zensical", reason="needs the extra `docs`")
    done = subprocess.run([sys.executable, ROOT / "scripts/build_site.py", "--out", tmp_path / "site"],
                          capture_output=True, text=True, check=False)  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    assert "0 broken links" in done.stdout and (tmp_path / "site" / "your-own.html").exists()
