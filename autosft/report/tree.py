"""The tree of rounds as a drawing: a column of dots joined to their parents, beside rows of text."""

from __future__ import annotations

from collections.abc import Sequence

from markupsafe import Markup


def branches(parents: Sequence[tuple[int, int | None, str]], row: int = 44, lane: int = 16) -> Markup:
    """Return the tree of rounds as a column of dots, one row high each, joined to their parents.

    Args:
        parents: (round, parent, style), oldest first.
        row: Height of a row in pixels; the page sets rows of text beside it.
        lane: Pixels between two branches.
    """
    lanes = _lanes(parents)
    at = {number: i for i, (number, _, _) in enumerate(parents)}
    place = {n: ((lanes[n] + 0.5) * lane + 4, (at[n] + 0.5) * row) for n in at}
    width, height = (max(lanes.values(), default=0) + 1) * lane + 8, len(parents) * row
    parts = []
    for number, parent, style in parents:
        x, y = place[number]
        if parent in place:
            px, py = place[parent]
            bend = (
                f"M{px:.0f} {py:.0f}V{y - row * 0.6:.0f}Q{px:.0f} {y:.0f} {x:.0f} {y:.0f}"
                if px != x
                else f"M{px:.0f} {py:.0f}V{y:.0f}"
            )
            parts.append(Markup('<path class="edge {}" d="{}"/>').format(style, bend))
    for number, _, style in parents:
        x, y = place[number]
        parts.append(
            Markup('<circle class="dot {}" cx="{}" cy="{}" r="5.5"/>').format(style, f"{x:.0f}", f"{y:.0f}")
        )
    head = Markup('<svg class="branches" viewBox="0 0 {} {}" width="{}" height="{}" aria-hidden="true">')
    return head.format(width, height, width, height) + Markup("").join(parts) + Markup("</svg>")


def _lanes(parents: Sequence[tuple[int, int | None, str]]) -> dict[int, int]:
    """Give each round a lane: the last child takes its parent's, the others the first free one."""
    last_child: dict[int | None, int] = {}
    for i, (_, parent, _) in enumerate(parents):
        last_child[parent] = i
    lanes: dict[int, int] = {}
    busy: dict[int, int] = {}  # lane -> row up to which an edge or a dot needs it
    for i, (number, parent, _) in enumerate(parents):
        own = lanes.get(parent) if parent is not None else None
        # A parent's lane belongs to its last child, so that edges to later siblings never cross a dot.
        if own is not None and last_child[parent] == i:
            lanes[number] = own
        else:
            lanes[number] = next(k for k in range(len(parents) + 1) if busy.get(k, -1) < i and k != own)
        busy[lanes[number]] = max(busy.get(lanes[number], -1), last_child.get(number, i))
    return lanes
