"""What a run leaves beside weights: the loss curve, each row's loss, and the rows in the order consumed.

Everything is recorded from the batches the model was given, so that an order action can be proven here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from autosft.executor.builds import TrainingSet


@dataclass
class Ledger:
    """Collects one run. Losses are sums over a row's loss tokens, in nats."""

    data: TrainingSet
    _rows: list[NDArray[np.int64]] = field(default_factory=list)
    _tokens: list[NDArray[np.int64]] = field(default_factory=list)
    _loss_tokens: list[NDArray[np.int64]] = field(default_factory=list)
    _loss_sums: list[NDArray[np.float64]] = field(default_factory=list)
    _steps: list[int] = field(default_factory=list)
    _rates: list[tuple[float, float]] = field(default_factory=list)

    def consume(
        self,
        step: int,
        rows: NDArray[np.int64],
        tokens: NDArray[np.int64],
        loss_tokens: NDArray[np.int64],
        loss_sums: NDArray[np.float64],
    ) -> None:
        """Note one forward pass: row indices in the order fed, and what each contributed."""
        self._rows.append(rows)
        self._tokens.append(tokens)
        self._loss_tokens.append(loss_tokens)
        self._loss_sums.append(loss_sums)
        self._steps.append(step)

    def stepped(self, lr: float, grad_norm: float) -> None:
        """Note one optimiser step."""
        self._rates.append((lr, grad_norm))

    def write(self, folder: Path) -> dict[str, Any]:
        """Write the three tables and return the run's totals.

        Returns:
            train_tokens, loss_tokens, optimizer_steps; first_loss and final_loss (over a tenth of the steps).
        """
        rows = np.concatenate(self._rows)
        tokens = np.concatenate(self._tokens)
        loss_tokens = np.concatenate(self._loss_tokens)
        sums = np.concatenate(self._loss_sums)
        steps = np.repeat(self._steps, [len(r) for r in self._rows])
        self._write_consumed(folder, rows, steps, tokens, loss_tokens)
        self._write_row_loss(folder, rows, loss_tokens, sums)
        self._write_curve(folder, rows, steps, tokens, loss_tokens, sums)
        part = max(1, len(self._rates) // 10)
        early, late = steps < part, steps >= len(self._rates) - part
        return {
            "train_tokens": int(tokens.sum()),
            "loss_tokens": int(loss_tokens.sum()),
            "optimizer_steps": len(self._rates),
            "first_loss": _ratio(sums[early].sum(), loss_tokens[early].sum()),
            "final_loss": _ratio(sums[late].sum(), loss_tokens[late].sum()),
        }

    def _write_consumed(
        self,
        folder: Path,
        rows: NDArray[np.int64],
        steps: NDArray[np.int64],
        tokens: NDArray[np.int64],
        loss_tokens: NDArray[np.int64],
    ) -> None:
        ids = self.data.ids
        _write(
            folder / "consumed.parquet",
            {
                "position": np.arange(len(rows), dtype=np.int64),
                "step": steps,
                "sequence": self.data.sequence_of[: len(rows)],
                "row": rows,
                "id": [ids[row] for row in rows.tolist()],
                "tokens": tokens,
                "loss_tokens": loss_tokens,
            },
        )

    def _write_row_loss(
        self, folder: Path, rows: NDArray[np.int64], loss_tokens: NDArray[np.int64], sums: NDArray[np.float64]
    ) -> None:
        seen, first, counts = np.unique(rows, return_index=True, return_counts=True)
        _, last = np.unique(rows[::-1], return_index=True)
        last = len(rows) - 1 - last
        data = self.data
        _write(
            folder / "row_loss.parquet",
            {
                "row": seen,
                "id": [data.ids[row] for row in seen.tolist()],
                "source": [data.sources[row] for row in seen.tolist()],
                "leaf": [data.leaves[row] for row in seen.tolist()],
                "passes": counts.astype(np.int64),
                "loss_tokens": loss_tokens[first],
                "first_loss": _ratios(sums[first], loss_tokens[first]),
                "last_loss": _ratios(sums[last], loss_tokens[last]),
            },
        )

    def _write_curve(
        self,
        folder: Path,
        rows: NDArray[np.int64],
        steps: NDArray[np.int64],
        tokens: NDArray[np.int64],
        loss_tokens: NDArray[np.int64],
        sums: NDArray[np.float64],
    ) -> None:
        names = sorted(set(self.data.sources))
        number = {name: k for k, name in enumerate(names)}
        source_of_row = np.array([number[name] for name in self.data.sources], dtype=np.int64)
        n_steps, n_sources = len(self._rates), len(names)
        cell = steps * n_sources + source_of_row[rows]
        shape = (n_steps, n_sources)
        cells = n_steps * n_sources
        by_loss = np.bincount(cell, weights=sums, minlength=cells).reshape(shape)
        by_loss_tokens = np.bincount(cell, weights=loss_tokens, minlength=cells).reshape(shape)
        by_tokens = np.bincount(cell, weights=tokens, minlength=cells).reshape(shape)
        columns: dict[str, list[Any]] = {
            name: [] for name in ("step", "source", "loss", "tokens", "loss_tokens", "lr", "grad_norm")
        }
        for step, (lr, grad_norm) in enumerate(self._rates):
            lines: list[tuple[str, Any, Any, Any, float | None, float | None]] = [
                ("", by_loss[step].sum(), by_tokens[step].sum(), by_loss_tokens[step].sum(), lr, grad_norm)
            ]
            present = np.flatnonzero(by_tokens[step])
            lines += [
                (names[k], by_loss[step, k], by_tokens[step, k], by_loss_tokens[step, k], None, None)
                for k in present
            ]
            for source, loss, n_tokens, n_loss, rate, norm in lines:
                values = (step, source, _ratio(loss, n_loss), int(n_tokens), int(n_loss), rate, norm)
                for column, value in zip(columns.values(), values, strict=True):
                    column.append(value)
        _write(folder / "loss_curve.parquet", columns)


def _ratio(total: float, count: float) -> float | None:
    return float(total) / float(count) if count else None


def _ratios(totals: NDArray[np.float64], counts: NDArray[np.int64]) -> list[float | None]:
    return [_ratio(t, c) for t, c in zip(totals.tolist(), counts.tolist(), strict=True)]


def _write(path: Path, columns: Mapping[str, Any]) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    strings = ("id", "source", "leaf")
    floats = ("loss", "lr", "grad_norm", "first_loss", "last_loss")
    kinds = {
        name: pa.string() if name in strings else pa.float64() if name in floats else pa.int64()
        for name in columns
    }
    arrays = [pa.array(values, type=kinds[name]) for name, values in columns.items()]
    pq.write_table(pa.table(arrays, names=list(columns)), path)
