"""Charts as inline SVG: coloured by the page's style sheet, sharp in print, told in words beside them.

A chart is drawn for one width in pixels, so that its letters are as large on a phone as on a screen; the page
holds a narrow and a wide drawing and shows the one that fits. Why not a plotting library: docs/adr.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from markupsafe import Markup, escape

NARROW, WIDE = 340, 720
CHAR = 6.6  # pixels of a letter at the charts' 12 px type
TICKS = 5
DOT = 4.5
ROW = 30  # pixels of a named row
LEFT, RIGHT, TOP, BOTTOM = 40, 10, 12, 34


@dataclass(frozen=True, slots=True)
class Point:
    """A measurement at a whole-numbered position: value, interval, and how it is drawn.

    `style` is a class of the style sheet: `valid`, `void` (does not count), `fresh`.
    """

    x: int
    y: float
    low: float | None = None
    high: float | None = None
    style: str = "valid"
    label: str = ""


@dataclass(frozen=True, slots=True)
class Stack:
    """A bar: its position and its parts, (series, amount) from the bottom up."""

    x: int
    parts: tuple[tuple[int, float], ...]
    label: str = ""


def ticks(low: float, high: float, n: int = TICKS, *, least: float = 0.0) -> list[float]:
    """Return about `n` round numbers that cover [low, high], at least `least` apart."""
    high = high if high > low else low + 1.0
    span = high - low
    step = 10.0 ** math.floor(math.log10(span / n))
    step *= next((m for m in (1, 2, 5) if span / (step * m) <= n), 10)
    step = max(step, least)
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    return [round(k * step, 10) for k in range(first, last + 1)]


class _Frame:
    """Axes of a chart and the elements drawn into it."""

    def __init__(self, width: int, height: int, xs: Sequence[float], y_ticks: Sequence[float], title: str):
        self.width, self.height, self.title = width, height, title
        self._x0, self._x1 = min(xs), max(xs)
        self._y0, self._y1 = y_ticks[0], y_ticks[-1]
        self._parts: list[Markup] = []

    def x(self, value: float, *, margin: float = 0.5) -> float:
        """Return the pixel of a position; `margin` keeps half a step free on both sides."""
        low, high = self._x0 - margin, self._x1 + margin
        return LEFT + (value - low) / (high - low) * (self.width - LEFT - RIGHT)

    def y(self, value: float) -> float:
        """Return the pixel of a value."""
        frac = (value - self._y0) / ((self._y1 - self._y0) or 1.0)
        return self.height - BOTTOM - frac * (self.height - TOP - BOTTOM)

    def add(self, template: str, *values: object) -> None:
        """Add an element; values are escaped."""
        self._parts.append(Markup(template).format(*(_px(v) for v in values)))

    def y_axis(self, values: Sequence[float], form: str) -> None:
        """Draw grid lines with their numbers."""
        for value in values:
            y = self.y(value)
            self.add('<line class="grid" x1="{}" x2="{}" y1="{}" y2="{}"/>', LEFT, self.width - RIGHT, y, y)
            self.add(
                '<text class="tick" x="{}" y="{}" text-anchor="end">{}</text>',
                LEFT - 5,
                y + 4,
                form.format(value),
            )

    def x_axis(self, positions: Sequence[int], name: str) -> None:
        """Number the positions, as many as fit, and name the axis."""
        room = (self.width - LEFT - RIGHT) / max(1, len(positions))
        least = max(1, math.ceil((len(str(positions[-1])) * CHAR + 8) / room))
        every = next((n for n in (1, 2, 5, 10, 20, 25, 50, 100) if n >= least), least)
        for position in positions[::every]:
            self.add(
                '<text class="tick" x="{}" y="{}" text-anchor="middle">{}</text>',
                self.x(position),
                self.height - BOTTOM + 15,
                str(position),
            )
        self.add(
            '<text class="tick" x="{}" y="{}" text-anchor="end">{}</text>',
            self.width - RIGHT,
            self.height - 4,
            name,
        )

    def svg(self, css: str) -> Markup:
        """Return the drawing."""
        head = Markup(
            '<svg class="{}" viewBox="0 0 {} {}" width="{}" height="{}" role="img" aria-label="{}">'
        ).format(css, self.width, self.height, self.width, self.height, self.title)
        return head + Markup("").join(self._parts) + Markup("</svg>")


def _px(value: object) -> object:
    return f"{value:.1f}" if isinstance(value, float) else value


def both(draw: object, *args: object, **options: object) -> Markup:
    """Return a chart drawn twice, for phones and for wide screens and paper."""
    assert callable(draw)
    return Markup("").join(
        draw(*args, width=width, css=css, **options) for width, css in ((NARROW, "narrow"), (WIDE, "wide"))
    )


def score_curve(
    points: Sequence[Point],
    *,
    band: tuple[float, float] | None,
    best: Sequence[tuple[int, float]],
    lost: Sequence[int],
    width: int,
    css: str,
    title: str,
) -> Markup:
    """Return scores over rounds.

    Args:
        points: Scores with intervals; `fresh` ones are drawn beside the round's own.
        band: Scores that a change of training seed alone explains.
        best: (round, score) of the incumbent after each round.
        lost: Rounds without a score.
        width: Pixels.
        css: Class of the drawing.
        title: What it shows, for those who do not see it.
    """
    values = [v for p in points for v in (p.y, p.low, p.high) if v is not None] + list(band or ())
    marks = ticks(max(0.0, min(values)), min(1.0, max(values))) if values else [0.0, 1.0]
    xs = sorted({p.x for p in points} | set(lost))
    frame = _Frame(width, 240 if width < WIDE else 300, xs, marks, title)
    if band is not None:
        top, bottom = frame.y(min(band[1], marks[-1])), frame.y(max(band[0], marks[0]))
        frame.add(
            '<rect class="band" x="{}" y="{}" width="{}" height="{}"/>',
            LEFT,
            top,
            width - LEFT - RIGHT,
            bottom - top,
        )
    frame.y_axis(marks, "{:.2f}")
    frame.x_axis(xs, "round")
    if len(best) > 1:
        path = f"M{frame.x(best[0][0]):.1f} {frame.y(best[0][1]):.1f}"
        path += "".join(f"H{frame.x(x):.1f}V{frame.y(y):.1f}" for x, y in best[1:])
        frame.add('<path class="best" d="{}"/>', path)
    room = (width - LEFT - RIGHT) / max(1, len(xs))
    beside, size = min(7.0, room / 4), min(DOT, max(1.8, room * 0.45))
    for point in points:
        x = frame.x(point.x) + (beside if point.style == "fresh" else 0.0)
        if point.low is not None and point.high is not None:
            frame.add(
                '<line class="whisker {}" x1="{}" x2="{}" y1="{}" y2="{}"/>',
                point.style,
                x,
                x,
                frame.y(point.low),
                frame.y(point.high),
            )
        frame.add(
            '<g class="dot {}"><title>{}</title>{}</g>',
            point.style,
            point.label,
            _shape(point.style, x, frame.y(point.y), size),
        )
    for x in lost:
        frame.add(
            '<text class="lost" x="{}" y="{}" text-anchor="middle"><title>round {}: no score</title>✕</text>',
            frame.x(x),
            frame.height - BOTTOM - 5,
            x,
        )
    return frame.svg(css)


def _shape(style: str, x: float, y: float, size: float = DOT) -> Markup:
    if style == "fresh":
        wide = f"{size + 0.5:.1f}"
        path = '<path d="M{0} {1}l{2} {2}l-{2} {2}l-{2} -{2}z"/>'
        return Markup(path).format(f"{x:.1f}", f"{y - size - 0.5:.1f}", wide)
    return Markup('<circle cx="{}" cy="{}" r="{}"/>').format(f"{x:.1f}", f"{y:.1f}", f"{size:.1f}")


def intervals(
    rows: Sequence[tuple[str, float, float, float | None, float | None]], *, width: int, css: str, title: str
) -> Markup:
    """Return a line a row: a reference value (dot) and a measured one (diamond) with its interval.

    Args:
        rows: (name, reference, measured, lower end, upper end); no whisker where an end is None.
        width: Pixels.
        css: Class of the drawing.
        title: What it shows, for those who do not see it.
    """
    frame, x = _rows_frame(
        [row[0] for row in rows], [v for row in rows for v in row[1:] if v is not None], width, title
    )
    for i, (_, reference, measured, low, high) in enumerate(rows):
        y = ROW * (i + 0.5) + 2
        if low is not None and high is not None:
            frame.add('<line class="whisker" x1="{}" x2="{}" y1="{}" y2="{}"/>', x(low), x(high), y, y)
        if reference != measured:
            frame.add('<g class="dot valid">{}</g>', _shape("valid", x(reference), y))
        frame.add('<g class="dot fresh">{}</g>', _shape("fresh", x(measured), y))
    return frame.svg(css)


def _rows_frame(
    names: Sequence[str], values: Sequence[float], width: int, title: str
) -> tuple[_Frame, Callable[[float], float]]:
    """Return a drawing with a named row each and a scale below, and the function from value to pixel."""
    marks = ticks(min(values), max(values))
    left = 20 + CHAR * max(map(len, names))
    frame = _Frame(width, ROW * len(names) + 30, [0], marks, title)

    def x(value: float) -> float:
        return left + (value - marks[0]) / ((marks[-1] - marks[0]) or 1.0) * (width - left - 26)

    bottom = float(ROW * len(names) + 4)
    for value in marks:
        frame.add('<line class="grid" x1="{}" x2="{}" y1="4" y2="{}"/>', x(value), x(value), bottom)
        frame.add(
            '<text class="tick" x="{}" y="{}" text-anchor="middle">{}</text>',
            x(value),
            bottom + 16,
            f"{value:.2f}",
        )
    for i, name in enumerate(names):
        frame.add('<text class="name" x="0" y="{}">{}</text>', ROW * (i + 0.5) + 6, name)
    return frame, x


def dumbbells(rows: Sequence[tuple[str, float, float]], *, width: int, css: str, title: str) -> Markup:
    """Return a line a row from a first value (dot) to a second one (diamond).

    Args:
        rows: (name, first, second).
        width: Pixels.
        css: Class of the drawing.
        title: What it shows, for those who do not see it.
    """
    frame, x = _rows_frame([row[0] for row in rows], [v for row in rows for v in row[1:]], width, title)
    for i, (_, first, second) in enumerate(rows):
        y = ROW * (i + 0.5) + 2
        frame.add('<line class="whisker" x1="{}" x2="{}" y1="{}" y2="{}"/>', x(first), x(second), y, y)
        frame.add(
            '<g class="dot valid">{}</g><g class="dot fresh">{}</g>',
            _shape("valid", x(first), y),
            _shape("fresh", x(second), y),
        )
    return frame.svg(css)


def stacked_bars(
    stacks: Sequence[Stack],
    *,
    form: str,
    width: int,
    css: str,
    title: str,
    top: float | None = None,
    whole: bool = False,
) -> Markup:
    """Return one bar a round, its parts in the colours of their series.

    Args:
        stacks: The bars.
        form: How a number of the axis is written, e.g. `{:.0%}`.
        width: Pixels.
        css: Class of the drawing.
        title: What it shows, for those who do not see it.
        top: Highest value of the axis; the highest bar if None.
        whole: Amounts are whole numbers.
    """
    highest = top or max((sum(a for _, a in s.parts) for s in stacks), default=0.0) or 1.0
    marks = ticks(0.0, highest, least=1.0 if whole else 0.0)
    xs = [s.x for s in stacks]
    frame = _Frame(width, 200 if width < WIDE else 240, xs, marks, title)
    frame.y_axis(marks, form)
    frame.x_axis(xs, "round")
    bar = min(44.0, (width - LEFT - RIGHT) / max(1, len(stacks)) * 0.72)
    for stack in stacks:
        level = 0.0
        for series, amount in stack.parts:
            y0, y1 = frame.y(level), frame.y(level + amount)
            frame.add(
                '<rect class="part s{}" x="{}" y="{}" width="{}" height="{}"/>',
                series,
                frame.x(stack.x) - bar / 2,
                y1,
                bar,
                y0 - y1,
            )
            level += amount
        # Over the whole column, so that a finger or a pointer finds it.
        frame.add(
            '<rect class="hit" x="{}" y="{}" width="{}" height="{}"><title>{}</title></rect>',
            frame.x(stack.x) - bar / 2,
            TOP,
            bar,
            frame.height - TOP - BOTTOM,
            stack.label,
        )
    return frame.svg(css)


def predicted_actual(
    points: Sequence[tuple[float, float, float | None, float | None, str, str]],
    *,
    width: int,
    css: str,
    title: str,
) -> Markup:
    """Return predicted (across) against measured (up) changes; on the diagonal a prediction came true.

    Args:
        points: (predicted, measured, ci_low, ci_high, style, label), the label drawn beside the point.
        width: Pixels.
        css: Class of the drawing.
        title: What it shows, for those who do not see it.
    """
    across = ticks(min(0.0, *(p[0] for p in points)), max(0.0, *(p[0] for p in points)))
    up = [v for p in points for v in (p[1], p[2], p[3]) if v is not None]
    marks = ticks(min(0.0, *up), max(0.0, *up))
    frame = _Frame(width, 240 if width < WIDE else 300, across, marks, title)
    frame.y_axis(marks, "{:+.2f}")

    def x(value: float) -> float:
        return frame.x(value, margin=(across[-1] - across[0]) * 0.04)

    for value in across[:: 1 if width >= WIDE or len(across) < 6 else 2]:
        frame.add(
            '<text class="tick" x="{}" y="{}" text-anchor="middle">{}</text>',
            x(value),
            frame.height - BOTTOM + 15,
            f"{value:+.2f}",
        )
    frame.add(
        '<text class="tick" x="{}" y="{}" text-anchor="end">predicted change of the score</text>',
        width - RIGHT,
        frame.height - 4,
    )
    low, high = max(across[0], marks[0]), min(across[-1], marks[-1])
    if high > low:
        frame.add(
            '<line class="diagonal" x1="{}" y1="{}" x2="{}" y2="{}"/>',
            x(low),
            frame.y(low),
            x(high),
            frame.y(high),
        )
    frame.add(
        '<line class="zero" x1="{}" x2="{}" y1="{}" y2="{}"/>',
        LEFT,
        width - RIGHT,
        frame.y(0.0),
        frame.y(0.0),
    )
    for predicted, measured, ci_low, ci_high, style, label in points:
        at, y = x(predicted), frame.y(measured)
        if ci_low is not None and ci_high is not None:
            frame.add(
                '<line class="whisker {}" x1="{}" x2="{}" y1="{}" y2="{}"/>',
                style,
                at,
                at,
                frame.y(ci_low),
                frame.y(ci_high),
            )
        frame.add('<circle class="dot {}" cx="{}" cy="{}" r="4.5"/>', style, at, y)
        right = at > width - 60
        frame.add(
            '<text class="tick" x="{}" y="{}" text-anchor="{}">{}</text>',
            at + (-8 if right else 8),
            y - 6,
            "end" if right else "start",
            label,
        )
    return frame.svg(css)


def legend(entries: Iterable[tuple[str, str]]) -> Markup:
    """Return a legend: (class of the swatch, words)."""
    items = Markup("").join(
        Markup('<li><span class="swatch {}"></span>{}</li>').format(css, escape(words))
        for css, words in entries
    )
    return Markup('<ul class="legend">{}</ul>').format(items)
