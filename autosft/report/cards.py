"""Model card and data card of an exported checkpoint, as Markdown."""

from __future__ import annotations

import html
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from autosft.report.text import clean, score

View = Mapping[str, Any]


def write_cards(view: View, folder: Path) -> tuple[Path, Path]:
    """Write `README.md` and `DATA_CARD.md`.

    Args:
        view: What `autosft.meta.export.export_checkpoint` returns.
        folder: The exported folder.
    """
    model, data = folder / "README.md", folder / "DATA_CARD.md"
    model.write_text(_render("model_card.md.j2", model_facts(view)), encoding="utf-8")
    data.write_text(_render("data_card.md.j2", data_facts(view)), encoding="utf-8")
    return model, data


def model_facts(view: View) -> dict[str, Any]:
    """Return what the model card shows."""
    report, build = view["report"], view["build"]
    rounds = {r["round"]: r for r in report["rounds"]}
    first, chosen = rounds[0], rounds[view["round"]]
    leaves = [
        {"name": leaf["leaf"], "before": _at(leaf, 0), "after": _at(leaf, view["round"])}
        for leaf in report["leaves"]
    ]
    plan = build["plans"].get(str(view["seed"])) or next(iter(build["plans"].values()))
    return {
        "name": report["status"]["campaign"],
        "round": view["round"],
        "seed": view["seed"],
        "claimed": view["claimed"],
        "verdict": chosen["verdict"],
        "base_fingerprint": report["facts"]["base_fingerprint"],
        "train_tokens": plan["train_tokens"],
        "loss_tokens": plan["loss_tokens"],
        "steps": build["optimizer_steps"],
        "passes": build["passes"],
        "dtype": view["checkpoint"]["dtype"],
        "parameters": view["checkpoint"]["parameters"],
        "build": build["fingerprint"],
        "n_seeds": chosen["n_seeds"],
        "score0": score(first["score"]),
        "ci0": _interval(first),
        "score": score(chosen["score"]),
        "ci": _interval(chosen),
        "leaves": leaves,
        "suites": report["facts"]["primary"],
        "held_out": "held-out suites, where sealed, are scored once by `autosft holdout score`.",
    }


def data_facts(view: View) -> dict[str, Any]:
    """Return what the data card shows."""
    build = view["build"]
    plan = build["plans"].get(str(view["seed"])) or next(iter(build["plans"].values()))
    return {
        "name": view["report"]["status"]["campaign"],
        "round": view["round"],
        "rows": build["rows"],
        "unique_tokens": build["unique_tokens"],
        "passes": build["passes"],
        "train_tokens": plan["train_tokens"],
        "pool": view["recipe"]["pool"],
        "build": build["fingerprint"],
        "sources": [
            {
                **source,
                "share": build["token_share"].get(source["source"], 0.0),
                "methods": ", ".join(f"{n:,} {method}" for method, n in sorted(source["methods"].items())),
            }
            for source in view["sources"]
        ],
        "actions": [
            {
                "kind": diff["kind"],
                "family": diff["family"] or "no effect",
                "added": f"{diff['rows_added']:,}",
                "removed": f"{diff['rows_removed']:,}",
                "changed": f"{diff['rows_changed']:,}",
                "tokens": diff["tokens_delta"],
            }
            for diff in build["diffs"]
        ],
        "dropped": build["dropped"],
        "contaminated": view["receipt"]["contaminated"],
    }


def _at(leaf: View, number: int) -> str:
    found = leaf["rounds"].get(str(number))
    return "not measured" if found is None else score(found["score"])


def _interval(r: View) -> str:
    return f"{score(r['ci_low'])} to {score(r['ci_high'])}"


def _cell(text: object) -> str:
    """Return foreign text as one line that is neither markup nor a table border."""
    return html.escape(clean(text, limit=300), quote=False).replace("|", "\\|").replace("`", "\\`")


def _render(template: str, facts: View) -> str:
    from jinja2 import Environment, PackageLoader, StrictUndefined

    environment = Environment(
        loader=PackageLoader("autosft.report", "templates"),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        autoescape=False,  # Markdown; `cell` escapes what was written by rows, models and people
    )
    environment.filters["cell"] = _cell
    return environment.get_template(template).render(**facts)
