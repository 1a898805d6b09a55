"""Precision and recall of inferred requirements on IFEval's prompts; run it to print them."""

from __future__ import annotations

import json
import os
import sys
from collections import Counter
from pathlib import Path
from typing import Any

from autosft.taxonomy.infer import infer_requirements


def measure(rows: list[dict[str, Any]]) -> dict[str, dict[str, float]]:
    """Return counts, precision and recall for `all` and each id, of ids and of ids with arguments."""
    counts: dict[str, Counter[str]] = {"all": Counter()}
    for row in rows:
        stated = [
            (key, {k: v for k, v in kwargs.items() if v is not None})
            for key, kwargs in zip(row["instruction_id_list"], row["kwargs"], strict=True)
        ]
        inferred = [(r.id, dict(r.kwargs)) for r in infer_requirements(row["prompt"])]
        left = list(stated)
        for key, kwargs in inferred:
            for name in ("all", key):
                counts.setdefault(name, Counter())["inferred"] += 1
                counts[name]["id_right"] += any(key == other for other, _ in left)
            match = next(((k, a) for k, a in left if k == key and same(a, kwargs)), None)
            match = match or next(((k, a) for k, a in left if k == key), None)
            if match is not None:
                left.remove(match)
                for name in ("all", key):
                    counts[name]["found"] += 1
                    counts[name]["exact"] += same(match[1], kwargs)
        for key, _ in stated:
            for name in ("all", key):
                counts.setdefault(name, Counter())["stated"] += 1
    return {
        name: {
            "stated": c["stated"],
            "inferred": c["inferred"],
            "precision": c["found"] / max(1, c["inferred"]),
            "recall": c["found"] / max(1, c["stated"]),
            "exact_precision": c["exact"] / max(1, c["inferred"]),
            "exact_recall": c["exact"] / max(1, c["stated"]),
        }
        for name, c in counts.items()
    }


def same(stated: dict[str, Any], inferred: dict[str, Any]) -> bool:
    """Whether arguments agree, letter case, order and outer spaces aside."""

    def plain(value: Any) -> Any:
        if isinstance(value, list):
            return sorted(str(part).lower() for part in value)
        return " ".join(value.lower().split()) if isinstance(value, str) else value

    return {k: plain(v) for k, v in stated.items()} == {k: plain(v) for k, v in inferred.items()}


def read_rows() -> list[dict[str, Any]]:
    root = Path(__file__).resolve().parents[2]
    folder = Path(os.environ.get("AUTOSFT_SHARED", root.parent / "shared"))
    path = folder / "data/ifeval/input_data.jsonl"
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def main() -> None:
    found = measure(read_rows())
    for name in sorted(found, key=lambda n: (n != "all", n)):
        f = found[name]
        sys.stdout.write(
            f"{name:45} stated {f['stated']:4} inferred {f['inferred']:4}"
            f"  id P {f['precision']:.3f} R {f['recall']:.3f}"
            f"  with arguments P {f['exact_precision']:.3f} R {f['exact_recall']:.3f}\n"
        )


if __name__ == "__main__":
    main()
