"""The page: one file without script or network, honest words, harmless whatever a row or a model wrote."""

from __future__ import annotations

import copy
import itertools
import re
import xml.etree.ElementTree as ElementTree
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from autosft.errors import CampaignError
from autosft.meta.views_report import campaign_report
from autosft.report import render_page, summary, write_page
from autosft.report.charts import Point, both, score_curve, ticks
from autosft.report.tree import branches
from tests.report.records import HOSTILE, Made, Writer

VOID = {"meta", "br", "img", "link", "input", "hr"}


class Outline(HTMLParser):
    """Collects tags, attributes and text; checks that tags are closed in order."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str, str | None]] = []
        self.text: list[str] = []
        self._open: list[str] = []
        self.feed(text)
        assert not self._open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += [(tag, name, value) for name, value in attrs]
        if tag not in VOID and not self.get_starttag_text().endswith("/>"):  # type: ignore[union-attr]
            self._open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += [(tag, name, value) for name, value in attrs]

    def handle_endtag(self, tag: str) -> None:
        assert self._open and self._open.pop() == tag, tag

    def handle_data(self, data: str) -> None:
        self.text.append(data)


def test_the_page_is_whole_and_self_contained(everything: Path) -> None:
    page = render_page(campaign_report(everything))
    outline = Outline(page)
    assert not {"script", "iframe", "img", "link", "object", "embed"} & set(outline.tags)
    assert not [a for a in outline.attributes if a[1].startswith("on") or a[1] in ("src", "href", "style")]
    assert not re.search(r"url\(|@import|https?://", page)
    ids = [value for tag, name, value in outline.attributes if name == "id" and tag == "section"]
    expected = "summary scores claims actions leaves lineage hypotheses pool strategy provenance"
    assert ids == expected.split()


def test_every_chart_has_words_and_a_table_beside_it(everything: Path) -> None:
    page = render_page(campaign_report(everything))
    labels = [v for t, n, v in Outline(page).attributes if t == "svg" and n == "aria-label"]
    assert len(labels) == 12 and all(label and len(label) > 20 for label in labels), labels
    drawings = re.findall(r"<svg.*?</svg>", page, re.S)
    assert len(drawings) == 13
    for drawing in drawings:
        ElementTree.fromstring(drawing)
        assert "nan" not in drawing and "inf" not in drawing
    for figure in ("scores", "claims", "actions", "hypotheses", "pool"):
        section = page.split(f'id="{figure}"')[1].split("</section>")[0]
        assert "<table" in section, figure


def test_hostile_text_stays_text(hostile: Path) -> None:
    page = render_page(campaign_report(hostile))
    outline = Outline(page)
    assert "script" not in outline.tags and "img" not in outline.tags
    assert not [a for a in outline.attributes if a[1].startswith("on")]
    shown = "".join(outline.text)
    assert "<script>alert('x')</script>" in shown, "it is shown as what it is"
    assert "\x1b" not in page and "\u202e" not in page and HOSTILE not in page


def test_equal_records_give_equal_bytes(everything: Path) -> None:
    assert render_page(campaign_report(everything)) == render_page(campaign_report(everything))


def test_no_gain_is_called_none(flat: Path) -> None:
    view = campaign_report(flat)
    words = summary.headline(view)
    assert "not distinguishable" in words or "No recipe scored higher" in words
    page = "".join(Outline(render_page(view)).text)
    assert "could have found a true difference" in page and "confirmed" not in page
    assert view["status"]["state"] == "interrupted" and "was interrupted" in page


def test_rounds_that_were_all_abandoned_are_no_comparison(tmp_path: Path) -> None:
    made = Writer(tmp_path / "made")
    made.add(Made(0.3, parent=None))
    made.add(Made(None, 0))
    fork = {"trigger": "plateau", "text": "stuck", "parent": 0, "continuation": 2, "rival": 3}
    made.journal.append("revision.opened", "2", fork)
    view = campaign_report(made.stop())
    assert summary.headline(view) == "No changed recipe has been measured: every one was abandoned."
    words = " ".join(summary.sentences(view))
    assert "which is better is not decided" in words and "Round 1 was abandoned" in words


def test_an_unconfirmed_gain_is_not_called_confirmed(everything: Path) -> None:
    view = copy.deepcopy(campaign_report(everything))
    assert "confirmed with fresh training seeds" in summary.headline(view)
    view["gain"].update(claimed=False)
    assert "not confirmed" in summary.headline(view) and "not claimed" in summary.headline(view)
    view["gain"].update(verdict="not distinguishable")
    assert summary.headline(view).startswith("No gain is established")


def test_the_summary_says_what_does_not_count(everything: Path) -> None:
    words = " ".join(summary.sentences(campaign_report(everything)))
    assert "Rounds 3 and 4 do not count" in words and "Round 2 was abandoned" in words
    assert "round 3 (" not in words, "an invalidated round is no new best"
    assert "rival was kept once" in words and "Only the data differed" in words
    assert "of the untouched pool's unique tokens" in words


def test_a_campaign_without_rounds_has_a_page(tmp_path: Path) -> None:
    made = Writer(tmp_path / "made")
    made.add(Made(0.3, parent=None, open=True))
    page = render_page(campaign_report(made.folder))
    assert "No round has been measured yet." in page and "<svg" not in page


def test_two_hundred_rounds_stay_readable(tmp_path: Path) -> None:
    made = Writer(tmp_path / "made")
    made.add(Made(0.3, parent=None))
    view = campaign_report(made.folder)
    view["rounds"] = [{**view["rounds"][0], "round": n, "set_new_best": n < 30} for n in range(200)]
    page = render_page(view)
    assert page.count('scope="col">') < 200
    ticks_shown = re.findall(r'text-anchor="middle">(\d+)</text>', page)
    assert 5 < len(ticks_shown) < 60
    assert "<details open>" not in page, "long lists are folded"


def test_writing_refuses_a_place_that_cannot_be_written(everything: Path, tmp_path: Path) -> None:
    view: dict[str, Any] = campaign_report(everything)
    path = write_page(view, tmp_path / "report.html")
    assert path.read_text(encoding="utf-8") == render_page(view)
    with pytest.raises(CampaignError, match="cannot be written"):
        write_page(view, tmp_path / "missing" / "report.html")
    assert [p.name for p in tmp_path.iterdir()] == ["report.html"]


@pytest.mark.parametrize(
    ("low", "high", "least"), [(0.0, 1.0, 0.0), (0.31, 0.33, 0.0), (-0.4, 0.5, 0.0), (0, 0, 0), (0, 2, 1.0)]
)
def test_ticks_cover_the_range_with_round_numbers(low: float, high: float, least: float) -> None:
    found = ticks(low, high, least=least)
    assert found[0] <= low and found[-1] >= high and 2 <= len(found) <= 8
    steps = {round(b - a, 9) for a, b in itertools.pairwise(found)}
    assert len(steps) == 1 and min(steps) >= least


def test_a_lonely_round_can_be_drawn() -> None:
    drawn = both(score_curve, [Point(0, 0.0, 0.0, 0.0)], band=None, best=[(0, 0.0)], lost=[], title="one")
    assert drawn.count("<svg") == 2 and "nan" not in drawn


def test_branches_never_share_a_place() -> None:
    tree = [
        (0, None, "valid"),
        (1, 0, "valid"),
        (2, 1, "valid"),
        (3, 1, "valid"),
        (4, 2, "valid"),
        (5, 3, "x"),
    ]
    drawn = branches(tree)
    places = re.findall(r'cx="(\d+)" cy="(\d+)"', drawn)
    assert len(set(places)) == len(tree) and len({x for x, _ in places}) > 1
