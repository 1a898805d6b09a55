"""Terminal views of single things: hypotheses, the tree of rounds, a difference of rounds, checks, builds."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from autosft.report.tables import View, families_text, make_table, plain_text
from autosft.report.text import clean, count, score

if TYPE_CHECKING:
    from rich.console import Console

SAMPLE_CHARACTERS = 320
LEAVES_SHOWN = 5
_STYLES = {"ok": "green", "warn": "yellow", "fail": "bold red"}
_OUTCOMES = {"supported": "green", "refuted": "red", "abandoned": "yellow"}


def show_hypotheses(console: Console, hypotheses: Sequence[View]) -> None:
    """Print each hypothesis: claim, outcome, predicted against measured for the score and its main leaves."""
    if not hypotheses:
        console.print("No hypothesis is registered yet.")
        return
    for row in hypotheses:
        state = str(row["state"])
        head = plain_text(f"round {row['round']}, hypothesis {row['id']}:", "bold")
        console.print(head.append(" ").append_text(plain_text(state, _OUTCOMES.get(state, ""))))
        _indented(console, row["claim"])
        if row.get("why"):
            _indented(console, f"why: {row['why']}", style="yellow")
        if row.get("invalidated"):
            _indented(console, f"does not count: {row['invalidated']}", style="yellow")
        if row["predicted_score"] is not None:
            _indented(console, _score_line(row))
        leaves = row["leaves"]
        for leaf in leaves[:LEAVES_SHOWN]:
            _indented(console, _leaf_line(leaf), 4)
        if len(leaves) > LEAVES_SHOWN:
            _indented(console, f"and {len(leaves) - LEAVES_SHOWN} more leaves (--json has all)", 4)


def _score_line(row: View) -> str:
    if row["actual_score"] is None:
        return f"score: {score(row['predicted_score'], signed=True)} predicted, not measured"
    interval = ""
    if row["ci_low"] is not None:
        interval = f" [{score(row['ci_low'], signed=True)}, {score(row['ci_high'], signed=True)}]"
    return (
        f"score: {score(row['predicted_score'], signed=True)} predicted, "
        f"{score(row['actual_score'], signed=True)}{interval} measured"
    )


def _leaf_line(leaf: View) -> str:
    measured = "not measured" if leaf["actual"] is None else f"{score(leaf['actual'], signed=True)} measured"
    verdict = f" ({leaf['verdict']})" if leaf.get("verdict") else ""
    return f"{leaf['leaf']}: {score(leaf['predicted'], signed=True)} predicted, {measured}{verdict}"


def show_lineage(console: Console, rounds: Sequence[View]) -> None:
    """Print the tree of rounds, children below their parents."""
    if not rounds:
        console.print("No finished round yet.")
        return
    from rich.tree import Tree

    by_round = {row["round"]: row for row in rounds}
    roots = [row for row in rounds if row["parent"] not in by_round]
    for root in roots:
        tree = Tree(_node(root), guide_style="dim")
        _grow(tree, root, by_round)
        console.print(tree)
    console.print("* incumbent   ! claimed best   x does not count", style="dim")


def _grow(tree: Any, row: View, by_round: Mapping[int, View]) -> None:
    for child in row["children"]:
        _grow(tree.add(_node(by_round[child])), by_round[child], by_round)


def _node(row: View) -> Any:
    marks = "".join(m for m, key in (("*", "incumbent"), ("!", "claimed_best")) if row[key])
    marks += "x" if row["invalidated"] else ""
    parts = [f"round {row['round']}{' ' + marks if marks else ''}", score(row["score"])]
    parts += [families_text(row["families"])] if row["families"] else []
    if row["arm"] != "main":
        kept = "" if row["kept"] is None else (", kept" if row["kept"] else ", not kept")
        parts.append(f"{row['arm']} of a revision ({row['trigger']}{kept})")
    parts += ["parent chosen by the operator"] if row["parent_chosen"] else []
    parts += [str(row["verdict"])] if row["status"] != "ok" else []
    parts += [f"does not count: {row['invalidated']}"] if row["invalidated"] else []
    return plain_text(", ".join(parts), "dim" if row["invalidated"] else "")


def show_diff(console: Console, diff: View) -> None:
    """Print what differs between two rounds: actions, row counts, shares of tokens, sample rows."""
    a, b, rows, tokens = diff["a"], diff["b"], diff["rows"], diff["tokens"]
    console.print(plain_text(f"round {b} compared with round {a}", "bold"))
    scores = diff["scores"]
    _indented(console, f"score {score(scores['a'])} -> {score(scores['b'])}")
    _indented(console, f"rows {count(rows['a'])} -> {count(rows['b'])}: {_row_counts(rows)}")
    _indented(
        console,
        f"unique tokens {count(tokens['unique_a'])} -> {count(tokens['unique_b'])}, "
        f"passes {tokens['passes_a']:.2f} -> {tokens['passes_b']:.2f}",
    )
    recipe = diff["recipe"]
    console.print(plain_text(f"recipe ({len(recipe['shared'])} actions shared)", "bold"))
    for sign, style, calls in (("-", "red", recipe["dropped"]), ("+", "green", recipe["added"])):
        for call in calls:
            _indented(console, f"{sign} {call['kind']} {_compact(call['params'])}", style=style)
    if not recipe["dropped"] and not recipe["added"]:
        _indented(console, "the same actions")
    moved = [row for row in diff["token_share"] if abs(row["delta"]) >= 0.0005]
    if moved:
        console.print(plain_text("share of training tokens", "bold"))
        for row in moved:
            _indented(console, f"{row['label'] or '(none)'}: {row['a']:.1%} -> {row['b']:.1%}")
    _show_samples(console, diff["samples"])


def _row_counts(rows: View) -> str:
    names = ("added", "removed", "changed", "reweighted", "moved", "kept")
    return ", ".join(f"{count(rows[name])} {name}" for name in names)


def _show_samples(console: Console, samples: View) -> None:
    for kind in ("changed", "removed", "added"):
        if not samples[kind]:
            continue
        console.print(plain_text(f"{kind} rows, a sample", "bold"))
        for row in samples[kind]:
            where = f"{row['source']}, leaf {row['leaf'] or 'none'}"
            _indented(console, f"{where}: {row['reason'] or 'no reason kept'}", style="dim")
            if kind == "changed":
                for part in ("prompt", "response"):
                    before, after = row[f"{part}_a"], row[f"{part}_b"]
                    lines = [("=", before)] if before == after else [("-", before), ("+", after)]
                    for sign, text in lines:
                        _indented(console, f"{sign} {part}: {clean(text, limit=SAMPLE_CHARACTERS)}", 4)
            else:
                for part in ("prompt", "response"):
                    _indented(console, f"{part}: {clean(row[part], limit=SAMPLE_CHARACTERS)}", 4)


def show_doctor(console: Console, rows: Sequence[View]) -> None:
    """Print one line a check, with its fix where it is not fine."""
    table = make_table("", "check", "seen")
    for row in rows:
        seen = clean(row["seen"]) + (f"\nfix: {clean(row['fix'])}" if row["fix"] else "")
        # Cleaning joins lines, and the fix stands on its own one.
        from rich.text import Text

        table.add_row(plain_text(row["state"], _STYLES[row["state"]]), plain_text(row["name"]), Text(seen))
    console.print(table)
    failed = sum(row["state"] == "fail" for row in rows)
    console.print("All is well." if not failed else f"{failed} of {len(rows)} checks fail.")


def show_build(console: Console, done: View) -> None:
    """Print a build's receipt in words."""
    facts = done["facts"]
    console.print(plain_text(f"build {done['build']}", "bold"))
    for line in _build_lines(facts):
        _indented(console, line)
    if done["identical"]:
        _indented(console, "every file equals the campaign's own build of this recipe", style="green")
    elif done["identical"] is False:
        _indented(
            console, f"DIFFERS from the campaign's own build in {', '.join(done['differs'])}", style="red"
        )
    if done["path"]:
        _indented(console, f"kept in {done['path']}")


def _build_lines(facts: View) -> Iterable[str]:
    yield f"{count(facts['rows'])} rows, {count(facts['unique_tokens'])} unique tokens"
    yield (
        f"{count(facts['train_tokens'])} training tokens ({count(facts['loss_tokens'])} with loss) in "
        f"{count(facts['optimizer_steps'])} steps, {facts['passes']:.2f} passes"
    )
    contaminated = ", ".join(f"{name} {count(n)}" for name, n in facts["contaminated"].items()) or "none"
    yield f"rows dropped because they hold evaluation text: {contaminated}"
    for diff in facts["diffs"]:
        yield f"{diff['kind']}: {_row_changes(diff)}"
    for seed, plan in facts["plans"].items():
        yield f"plan of seed {seed}: {plan['sha']}"
    for warning in facts["warnings"]:
        yield f"warning: {warning}"


def _row_changes(diff: View) -> str:
    names = ("added", "removed", "changed", "reweighted", "moved")
    found = [f"{count(diff[f'rows_{name}'])} {name}" for name in names if diff[f"rows_{name}"]]
    return ", ".join(found) or "changes nothing"


def _compact(params: Mapping[str, Any]) -> str:
    return clean(json.dumps(params, ensure_ascii=False, default=str), limit=200) if params else ""


def _indented(console: Console, text: object, by: int = 2, *, style: str = "") -> None:
    from rich.padding import Padding

    console.print(Padding(plain_text(text, style), (0, 0, 0, by), expand=False))


def show_leaf(console: Console, rounds: Sequence[View]) -> None:
    """Print one leaf over the rounds, and the batch of actions that moved it."""
    table = make_table("round", "from", "score", "parent", "rows", "verdict", "moved by")
    for row in rounds:
        table.add_row(
            plain_text(f"{row['round']}{'*' if row['targeted'] else ''}"),
            plain_text("-" if row["parent"] is None else row["parent"]),
            plain_text(score(row["score"])),
            plain_text(score(row["parent_score"])),
            plain_text(count(row["supply_rows"])),
            plain_text(row["verdict"] or "-"),
            plain_text(", ".join(row["batch"]) or "-"),
        )
    console.print(table)
    console.print("* targeted by the round's hypothesis", style="dim")


def show_histogram(console: Console, view: View) -> None:
    """Print the families of several campaigns, a line a round."""
    names = [str(name) for name in view["campaigns"]]
    table = make_table("round", *(f"[{i}]" for i in range(len(names))))
    for row in view["rounds"]:
        cells = [families_text(row["families"][str(i)]) for i in range(len(names))]
        table.add_row(plain_text(row["round"]), *(plain_text(cell) for cell in cells))
    console.print(table)
    for i, name in enumerate(names):
        console.print(plain_text(f"[{i}] {name}", "dim"))
