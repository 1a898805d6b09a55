"""Drop rows whose text is in a language that is not wanted."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import numpy as np
from pydantic import Field

from autosft.actions.context import ActionContext
from autosft.actions.params import RowFilter
from autosft.pool import Pool
from autosft.taxonomy.verifiers.languages import language_odds
from autosft.types import Row

EXAMPLE: dict[str, Any] = {"keep": ["en"], "of": "response"}
Code = Annotated[str, Field(pattern="^[a-z]{2}(-[a-z]{2})?$")]
_READ_CHARACTERS = 2000  # more of a text hardly changes the verdict and costs time


class Params(RowFilter):
    """Wanted languages. Texts too short to tell stay, and so do those that may well be in a wanted one."""

    keep: Annotated[list[Code], Field(min_length=1, max_length=20)] = Field(
        ["en"], description="ISO 639-1 codes; for Chinese `zh-cn` or `zh-tw`."
    )
    of: Literal["row", "prompt", "response"] = Field("response", description="Which turns are read.")
    min_letters: int = Field(40, ge=10, le=10_000, description="Texts with fewer letters stay.")
    odds: float = Field(
        0.1, gt=0, le=0.5, description="Dropped where the wanted languages are less probable than this."
    )


def apply(pool: Pool, params: Params, ctx: ActionContext) -> Pool:
    """Return the pool without the rows in other languages.

    Raises:
        VerifierError: The package langdetect is not installed.
        EmptyPoolError: No row would be left.
    """
    rows = pool.rows()
    keep = np.ones(len(pool), dtype=bool)
    for index in np.flatnonzero(params.selects(pool)).tolist():
        text = _text(rows[index], params.of)
        if sum(char.isalpha() for char in text) < params.min_letters:
            continue
        # Capitals mislead the detector, whose profiles are of running text.
        odds = language_odds(text[:_READ_CHARACTERS].lower())
        if odds and sum(odds.get(code, 0.0) for code in params.keep) < params.odds:
            keep[index] = False
            ctx.because(rows[index], f"language {max(odds, key=lambda code: odds[code])}")
    return pool.keep(keep)


def _text(row: Row, of: str) -> str:
    return "\n".join(
        m.content for m in row.messages if of == "row" or (m.role == "assistant") == (of == "response")
    )
