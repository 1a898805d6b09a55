"""Parts of parameter schemas that several actions share."""

from __future__ import annotations

from typing import Annotated, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field

from autosft.pool import Pool
from autosft.types import Row

Name = Annotated[str, Field(min_length=1, max_length=200)]
Names = Annotated[list[Name], Field(max_length=200)]
Share = Annotated[float, Field(gt=0, le=1)]
Checks = Literal["all", "content", "form"]


class ActionParams(BaseModel):
    """Parameters of an action: a closed schema with bounded values."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


class RowFilter(ActionParams):
    """Parameters of an action that works on some of the rows."""

    leaves: Names | None = Field(None, description="Only rows of these leaves; null means any.")
    sources: Names | None = Field(None, description="Only rows of these sources; null means any.")

    def selects(self, pool: Pool) -> NDArray[np.bool_]:
        """Return which rows of a pool the filter lets through."""
        chosen = np.ones(len(pool), dtype=bool)
        if self.leaves is not None:
            wanted: set[str | None] = set(self.leaves)
            chosen &= np.fromiter((leaf in wanted for leaf in pool.leaves), dtype=bool, count=len(pool))
        if self.sources is not None:
            sources = set(self.sources)
            chosen &= np.fromiter((source in sources for source in pool.sources), dtype=bool, count=len(pool))
        return chosen


class VerdictFilter(RowFilter):
    """Parameters of an action that works on rows failing their own requirements."""

    requirements: Names | None = Field(
        None, description="Only failures of these requirement ids; null means any."
    )
    checks: Checks = Field("all", description="Failures of content, of form, or of either count.")

    def counted(self, row: Row, failed: list[str]) -> list[str]:
        """Return the failed requirements (ids without copy number) that the filter counts."""
        names = [name.split("#", 1)[0] for name in failed]
        return [n for n in names if self.requirements is None or n in self.requirements]
