"""Build the documentation site from the Markdown files: `python scripts/build_site.py [--out site]`.

The same files are read on a code host and on the site; here links that leave `docs/` are turned to copies.
The pages load nothing from elsewhere, and every link inside is checked.
"""

from __future__ import annotations

import argparse
import re
import shutil
import subprocess
import sys
import tempfile
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

ROOT = Path(__file__).parents[1]
OUTSIDE = {"CONTRIBUTING.md": "contributing.md", "CHANGELOG.md": "changelog.md"}
NAV = [
    ("Start", "index.md"),
    ("Bring your own", "your-own.md"),
    ("User guide", "user-guide.md"),
    ("Agents on language models", "llm.md"),
    ("Reading a report", "report.md"),
    ("The live page", "serve.md"),
    ("Statistics", "statistics.md"),
    ("Evaluation", "evaluation.md"),
    ("Run it on your cluster", "cluster.md"),
    ("Jobs", "jobs.md"),
    ("The executor", "executor.md"),
    ("The data engine", "engine.md"),
    ("The lab", "lab.md"),
    ("Settings", "configuration.md"),
    ("Actions", "catalogue.md"),
    ("Write an action, verifier, analyst", "contributing.md"),
    ("Architecture", "architecture.md"),
    ("Measured results", "results.md"),
    ("Neighbouring systems", "neighbours.md"),
    ("Questions", "faq.md"),
    ("Open work", "open-work.md"),
    ("Changelog", "changelog.md"),
]


class Links(HTMLParser):
    """Collects what a page points to and what it can be pointed at."""

    def __init__(self) -> None:
        super().__init__()
        self.links: list[str] = []
        self.loads: list[str] = []
        self.ids: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        if given.get("id"):
            self.ids.add(str(given["id"]))
        if tag == "a" and given.get("href"):
            self.links.append(str(given["href"]))
        loaded = given.get("href") if tag == "link" and given.get("rel") != "canonical" else given.get("src")
        if tag in ("link", "script", "img", "iframe") and loaded:
            self.loads.append(str(loaded))


def assemble(folder: Path) -> None:
    """Copy the pages to `folder/docs`, links out of `docs/` turned, and write the site's settings."""
    pages = folder / "docs"
    shutil.copytree(ROOT / "docs", pages)
    for name, target in OUTSIDE.items():
        text = (ROOT / name).read_text(encoding="utf-8")
        (pages / target).write_text(re.sub(r"\]\(docs/", "](", text), encoding="utf-8")
    for page in pages.rglob("*.md"):
        text = page.read_text(encoding="utf-8")
        for name, target in OUTSIDE.items():
            text = re.sub(
                rf"\]\((?:\.\./)*{name}",
                f"]({'../' * (len(page.relative_to(pages).parts) - 1)}{target}",
                text,
            )
        page.write_text(text, encoding="utf-8")
    nav = ",\n  ".join(f'{{"{title}" = "{page}"}}' for title, page in NAV)
    settings = f"""[project]
site_name = "autosft"
site_description = "Research supervised fine-tuning data in rounds"
use_directory_urls = false
nav = [
  {nav}
]

[project.theme]
font = false
features = ["navigation.top", "content.code.copy"]

[[project.theme.palette]]
media = "(prefers-color-scheme: light)"
scheme = "default"

[[project.theme.palette]]
media = "(prefers-color-scheme: dark)"
scheme = "slate"
"""
    (folder / "zensical.toml").write_text(settings, encoding="utf-8")


def problems(site: Path) -> list[str]:
    """Return links that lead nowhere, and what pages would load from elsewhere."""
    pages: dict[Path, Links] = {}
    for file in site.rglob("*.html"):
        pages[file] = Links()
        pages[file].feed(file.read_text(encoding="utf-8"))
    found = []
    for file, page in pages.items():
        for link in page.loads:
            if urlsplit(link).netloc:
                found.append(f"{file.relative_to(site)} loads {link}")
            elif file.name != "404.html" and not (file.parent / unquote(urlsplit(link).path)).exists():
                found.append(f"{file.relative_to(site)}: no {link}")
        if file.name == "404.html":
            continue
        for link in page.links:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            target = (file.parent / unquote(parts.path)).resolve() if parts.path else file
            target = target / "index.html" if target.is_dir() else target
            if not target.exists():
                found.append(f"{file.relative_to(site)}: no {link}")
            elif parts.fragment and target in pages and unquote(parts.fragment) not in pages[target].ids:
                found.append(f"{file.relative_to(site)}: no part {link}")
    return sorted(set(found))


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--out", type=Path, default=ROOT / "site")
    out = parser.parse_args().out.absolute()
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        assemble(folder)
        done = subprocess.run(
            [sys.executable, "-m", "zensical", "build", "--clean"],
            cwd=folder,
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            sys.stderr.write(
                f"{done.stdout}{done.stderr}the site was not built; `pip install 'autosft[docs]'`?\n"
            )
            return 1
        found = problems((folder / "site").resolve())
        for line in found:
            sys.stderr.write(line + "\n")
        shutil.rmtree(out, ignore_errors=True)
        shutil.copytree(folder / "site", out)
    print(f"{len(list(out.rglob('*.html')))} pages in {out}, {len(found)} broken links")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
