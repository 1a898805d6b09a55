"""Looking for evaluation text in files of rows: rules to choose from, and a report of what was hit where.

    half   half of an item's 13-grams (the rule of every build); shorter items must be a whole turn
    any13  a single 13-gram of an item
    any8   a single 8-gram, unless three or more items share it: such phrases are the suite's template

Reference code is compared as code, beside the rule for texts: identifiers and numbers are its words, so that
spaces, quotes and brackets hide nothing.

Source: the 13-word rule with half of the item is Athanor's (arXiv:2610.21055), any 13-gram is that of GPT-3
(arXiv:2005.14165, appendix C).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from autosft.actions.decontaminate import HELD_OUT, NGRAM_WORDS, SHARE_OF_ITEM, BenchmarkIndex, scan
from autosft.engine.normal import normal_words
from autosft.errors import ConfigError
from autosft.evals import Suite
from autosft.pool import Pool
from autosft.types import Message, Row

Rule = Literal["half", "any13", "any8"]
RULES: tuple[Rule, ...] = ("half", "any13", "any8")
EIGHT = 8
TEMPLATE_ITEMS = 3
MAX_HITS = 200
_CODE_WORD = re.compile(r"[^\W\d]\w*|\d+(?:\.\d+)?")
_LOOKS_LIKE_CODE = re.compile(r"\bdef \w+\(|\bassert \w|\breturn\b|\bimport \w")


@dataclass(frozen=True, slots=True)
class Hit:
    """A contaminated row: its file and id, the suite, and the items it shares text with."""

    file: str
    row: str
    suite: str
    items: tuple[str, ...]


@dataclass(frozen=True)
class ContaminationReport:
    """What was found.

    Attributes:
        rule: The rule.
        rows: Rows looked at.
        contaminated: Rows that share text with any suite, held-out ones included.
        by_suite: Dev suite -> contaminated rows; `held_out` -> the total of all sealed suites.
        hits: Dev hits, the first `MAX_HITS`.
        clean: Which rows of each pool share nothing, in the order of the pools.
    """

    rule: Rule
    rows: int
    contaminated: int
    by_suite: dict[str, int]
    hits: tuple[Hit, ...]
    clean: tuple[NDArray[np.bool_], ...]

    def to_json(self) -> dict[str, Any]:
        """Return plain JSON data, the masks left out."""
        return {
            "rule": self.rule,
            "rows": self.rows,
            "contaminated": self.contaminated,
            "by_suite": self.by_suite,
            "hits": [
                {"file": h.file, "row": h.row, "suite": h.suite, "items": list(h.items)} for h in self.hits
            ],
        }


def suite_index(suite: Suite, rule: Rule = "half") -> BenchmarkIndex:
    """Return the digests of a suite under a rule.

    Raises:
        ConfigError: The rule is unknown.
    """
    if rule not in RULES:
        raise ConfigError(f"no rule {rule!r}", where="decontaminate", hint=f"one of {', '.join(RULES)}")
    n = EIGHT if rule == "any8" else NGRAM_WORDS
    index = BenchmarkIndex.from_items(suite.name, suite.reference_texts(), n)
    if rule == "half":
        return index
    if rule == "any8":
        index = _without_template(index)
    return replace(index, needed=np.ones_like(index.needed))


def look_for(
    pools: Sequence[tuple[str, Pool]],
    suites: Sequence[Suite],
    *,
    rule: Rule = "half",
    sealed: Sequence[BenchmarkIndex] = (),
) -> ContaminationReport:
    """Look for evaluation text in pools.

    Args:
        pools: (file name, rows).
        suites: Dev suites; hits are reported by item.
        rule: One of `RULES`; sealed suites keep the rule they were hashed under.
        sealed: Digests of held-out suites; their hits are one total.

    Raises:
        ConfigError: The rule is unknown.
    """
    indexes = [suite_index(suite, rule) for suite in suites]
    code = [index for suite in suites if (index := _code_index(suite)) is not None]
    by_suite = dict.fromkeys([*(s.name for s in suites), *([HELD_OUT] if sealed else [])], 0)
    finder = {suite.name: _ItemFinder(suite, EIGHT if rule == "any8" else NGRAM_WORDS) for suite in suites}
    hits: list[Hit] = []
    masks: list[NDArray[np.bool_]] = []
    for name, pool in pools:
        found = dict(scan(pool, [*indexes, *(index.hashed() for index in sealed)]))
        if code:
            as_code = _code_pool(pool)
            for suite_name, mask in scan(as_code, code).items():
                found[suite_name] = found[suite_name] | mask
        bad = np.zeros(len(pool), dtype=bool)
        for suite_name, mask in found.items():
            by_suite[suite_name] += int(mask.sum())
            bad |= mask
            if suite_name in finder:
                for at in np.flatnonzero(mask).tolist()[: max(0, MAX_HITS - len(hits))]:
                    row = pool.row(at)
                    hits.append(Hit(name, row.id, suite_name, finder[suite_name].items(row)))
        masks.append(~bad)
    rows = sum(len(pool) for _, pool in pools)
    kept = sum(int(mask.sum()) for mask in masks)
    return ContaminationReport(rule, rows, rows - kept, by_suite, tuple(hits), tuple(masks))


def _without_template(index: BenchmarkIndex) -> BenchmarkIndex:
    """Leave out n-grams that several items share: constraint sentences, not content."""
    grams, counts = np.unique(index.grams, return_counts=True)
    keep = np.isin(index.grams, grams[counts < TEMPLATE_ITEMS])
    return replace(index, grams=index.grams[keep], items=index.items[keep])


def _code_index(suite: Suite) -> BenchmarkIndex | None:
    """Index of a suite's reference code, or None where it has none."""
    texts = [
        code_words(item.reference) for item in suite.items if item.reference and _is_code(item.reference)
    ]
    long = [text for text in texts if len(text.split()) >= NGRAM_WORDS]
    return BenchmarkIndex.from_items(suite.name, long) if long else None


def code_words(text: str) -> str:
    """Return a text's identifiers and numbers, separated by spaces."""
    return " ".join(_CODE_WORD.findall(text))


def _is_code(text: str) -> bool:
    return _LOOKS_LIKE_CODE.search(text) is not None


def _code_pool(pool: Pool) -> Pool:
    """Return the rows with their turns as code words; rows without code keep nothing to find."""
    rows = []
    for row in pool.rows():
        turns = tuple(
            Message(m.role, code_words(m.content) if _is_code(m.content) else "") for m in row.messages
        )
        rows.append(replace(row, messages=turns))
    return pool.replace(list(range(len(pool))), rows)


class _ItemFinder:
    """Names the items that a contaminated row shares most n-grams with."""

    def __init__(self, suite: Suite, n: int) -> None:
        self._n = n
        self._owners: dict[tuple[str, ...], set[str]] = {}
        self._sizes: dict[str, int] = {}
        self._whole: dict[tuple[str, ...], set[str]] = {}
        for item in suite.items:
            texts = [m.content for m in item.messages if m.role != "system"] + [item.reference or ""]
            for text in texts:
                for words in [normal_words(text)] + (
                    [code_words(text).lower().split()] if _is_code(text) else []
                ):
                    grams = _grams(words, n)
                    self._sizes[item.id] = max(self._sizes.get(item.id, 1), len(grams))
                    for gram in grams:
                        self._owners.setdefault(gram, set()).add(item.id)
                    if words and not grams:
                        self._whole.setdefault(tuple(words), set()).add(item.id)

    def items(self, row: Row, most: int = 3) -> tuple[str, ...]:
        """Return up to `most` item ids, the one with the largest shared part first."""
        shared: dict[str, int] = {}
        for message in row.messages:
            words = normal_words(message.content)
            for item in self._whole.get(tuple(words), ()):
                shared[item] = shared.get(item, 0) + self._sizes.get(item, 1)
            listed = _grams(words, self._n)
            if _is_code(message.content):
                listed = listed | _grams(code_words(message.content).lower().split(), self._n)
            for gram in listed:
                for item in self._owners.get(gram, ()):
                    shared[item] = shared.get(item, 0) + 1
        ranked = sorted(shared, key=lambda item: (-shared[item] / self._sizes.get(item, 1), item))
        enough = [i for i in ranked if shared[i] >= SHARE_OF_ITEM * self._sizes.get(i, 1)]
        return tuple((enough or ranked)[:most])


def _grams(words: Sequence[str], n: int) -> set[tuple[str, ...]]:
    return {tuple(words[k : k + n]) for k in range(len(words) - n + 1)}


def sealed_indexes(digests: Iterable[Any]) -> tuple[BenchmarkIndex, ...]:
    """Return the indexes that seals hold.

    Raises:
        SuiteError: A seal holds something else.
    """
    return tuple(BenchmarkIndex.from_json(data) for data in digests)
