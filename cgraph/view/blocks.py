"""The picture of a plan: steps across, bytes upwards, one rectangle for each value.

A gap between rectangles is unused memory; the dashed line is the lower bound; the marked step has the most bytes in
use. One hue is one block of bytes. A strong left edge marks a value that takes over the bytes of another, a pale
background bytes that several values share, stripes a workspace, a dotted edge a value with views.

The SVG text is self-contained; a tooltip on each rectangle describes its value.
Time O(n log n) for n values; about 300 bytes of text each.
"""

import re
from bisect import bisect_left

from cgraph.errors import bytes_text
from cgraph.memory.problem import Plan, Problem
from cgraph.system.alignment import round_up
from cgraph.view.boxes import WORKSPACE, Box, MemoryPicture, last_drawn_steps, memory_of_plan
from cgraph.view.sheet import Svg, heading, style_of
from cgraph.view.text import COLOURS, markup, plain

WIDTH, HEIGHT = 1200, 700  # size of the picture, in pixels
LEFT, TOP, RIGHT, BOTTOM = 84, 74, 24, 130  # margins around the plan
STRIP = 50  # height of the curve of bytes in use, below the plan
TICKS = 8
THIN = 3  # pixels; an edge would hide thinner rectangles
LETTER = 6.2  # width of a letter on a rectangle
FEWEST_LETTERS = 8  # end of a shortened name
LINE = 12  # height of a line of letters
MOST_VIEWS = 8  # facts in a tooltip
UNITS = (("GiB", 2**30), ("MiB", 2**20), ("KiB", 2**10), ("B", 1))

STYLE = """
.operand{stroke:#fff;stroke-width:.7}
.operand:hover,.workspace:hover{stroke:#111827;stroke-width:2}
.thin{stroke-width:0}
.viewed{stroke:#374151;stroke-width:.7;stroke-dasharray:1.5 2}
.workspace{fill:url(#stripes);stroke:#6b7280;stroke-width:.7}
.reserved{fill-opacity:.28;stroke:none}
.over{stroke:#111827;stroke-opacity:.75;stroke-width:1.5;fill:none;pointer-events:none}
.label{pointer-events:none;font-size:10px;fill:#1f2937}
.bound{stroke:#dc2626;stroke-width:1.4;stroke-dasharray:7 4;fill:none}
.red{fill:#b91c1c}
.peak{fill:#dc2626;fill-opacity:.1;pointer-events:none}
.used{fill:#93c5fd;stroke:#2563eb;stroke-width:.8}
"""
DARK = ".red{fill:#f87171}.over{stroke:#f9fafb}.bound{stroke:#f87171}.operand{stroke:#111827}.used{fill:#1d4ed8}"
STRIPES = (
    '<defs><pattern id="stripes" width="6" height="6" patternUnits="userSpaceOnUse" patternTransform="rotate(45)">'
    '<rect width="6" height="6" fill="#f3f4f6"/><rect width="2.4" height="6" fill="#9ca3af"/></pattern></defs>'
)


def plan_svg(problem: Problem, plan: Plan, title: str = "") -> Svg:
    """Return the picture of a plan, as an SVG text, under `title` (by default the name of the strategy)."""
    return memory_svg(memory_of_plan(problem, plan), title)


def memory_svg(memory: MemoryPicture, title: str = "") -> Svg:
    """Draw a plan with its values, views and workspaces."""
    picture = _Picture(memory)
    title = title or f"Memory by {memory.strategy}"
    colours = "".join(f".c{i}{{fill:{colour}}}" for i, colour in enumerate(COLOURS))
    lines = [
        heading(WIDTH, HEIGHT),
        style_of(STYLE + colours, DARK) + STRIPES,
        '<rect class="sheet" width="100%" height="100%"/>',
        f'<text class="title" x="{LEFT}" y="28">{markup(title)}</text>',
        f'<text x="{LEFT}" y="48">{markup(summary(memory))}</text>',
        *picture.axes(),
        *(picture.reserved(x) for x in memory.reserved if x.nbytes),
        *(picture.rectangle(x, until) for x, until in zip(memory.boxes, last_drawn_steps(memory.boxes)) if x.nbytes),
        *picture.strip(),
        *picture.marks(),
        "</svg>",
    ]
    return Svg("\n".join(lines) + "\n")


def summary(memory: MemoryPicture) -> str:
    """Return the size of a plan and its bound, in one line."""
    text = f"{len(memory.boxes)} values in {bytes_text(memory.nbytes)} ({memory.nbytes} bytes)"
    if memory.lower_bound:
        text += f", {memory.ratio:.4f} × the lower bound"
    return f"{text}, by {memory.strategy}"


def about(box: Box, boxes: tuple[Box, ...]) -> str:
    """Describe one value, one fact per line."""
    lines = [
        f"{box.name} {box.spec}".rstrip(),
        f"{bytes_text(box.nbytes)} at [{box.offset}, {box.offset + box.nbytes})",
        f"steps {box.first}..{box.last}",
    ]
    if box.where:
        lines.append(box.where)
    if box.over >= 0:
        lines.append(f"takes the bytes of {boxes[box.over].name} (step {boxes[box.over].first})")
    if box.inside >= 0:
        lines.append(f"made inside {boxes[box.inside].name} (step {boxes[box.inside].first})")
    lines += [f"view: {x}" for x in box.views[:MOST_VIEWS]]
    if len(box.views) > MOST_VIEWS:
        lines.append(f"and {len(box.views) - MOST_VIEWS} more views")
    return "\n".join(lines)


def label(name: str, x: float, y: float, width: float, height: float) -> str:
    """Write the name on a rectangle, along its longer side if it does not fit across; nothing if it fits neither
    way."""
    across = fit_name(name, int((width - 6) / LETTER)) if height >= LINE else ""
    if across:
        return f'<text class="label" x="{x + 4:.6g}" y="{y + 11:.6g}">{markup(across)}</text>'
    upright = fit_name(name, int((height - 6) / LETTER)) if width >= LINE else ""
    place = f"translate({x + 9:.6g} {y + height - 4:.6g}) rotate(-90)"
    return f'<text class="label" transform="{place}">{markup(upright)}</text>' if upright else ""


def fit_name(name: str, letters: int) -> str:
    """Shorten a name to a number of letters: all of it, without its kind, or the last parts of its path.

    So ``parts.4.conv (stream)`` is ``parts.4.conv``, ``4.conv``, ``conv`` or, if that does not fit, its beginning.
    """
    if len(name) <= letters:
        return name
    path = re.split(r"(?<=[./])", re.sub(r" \([^()]*\)", "", name))
    for i in range(len(path)):
        tail = "".join(path[i:])
        if len(tail) <= letters and not tail.isdigit():
            return tail
    return path[-1][: letters - 1] + "…" if letters >= FEWEST_LETTERS else ""


class _Picture:
    """Scales from steps and bytes to pixels, and the parts of the picture."""

    def __init__(self, memory: MemoryPicture) -> None:
        self.memory = memory
        self.first, self.steps = memory.first, memory.last + 1 - memory.first
        self.top = max(memory.nbytes, 1)
        self.bottom = HEIGHT - BOTTOM
        self.ground = self.bottom + STRIP + 12  # of the curve

    def x(self, step: int) -> float:
        return LEFT + (step - self.first) * (WIDTH - LEFT - RIGHT) / self.steps

    def y(self, nbytes: int) -> float:
        return self.bottom - nbytes * (self.bottom - TOP) / self.top

    def axes(self) -> list[str]:
        """Return ticks at round steps across and at round bytes upwards, all in one unit."""
        step, nbytes = _round_step(self.steps, (1, 2, 5, 10)), _round_step(self.top, (1, 2, 4, 8, 16), 16)
        unit, size = next((name, size) for name, size in UNITS if self.top >= size)
        lines = []
        for at in range(0, self.top + 1, nbytes):
            y = self.y(at)
            lines.append(f'<path class="grid" d="M{LEFT} {y:.1f}H{WIDTH - RIGHT}"/>')
            lines.append(f'<text class="end" x="{LEFT - 8}" y="{y + 4:.1f}">{at / size:.6g} {unit}</text>')
        for at in range(round_up(self.first, step), self.first + self.steps, step):
            lines.append(f'<text class="middle" x="{self.x(at):.1f}" y="{self.ground + 18}">{at}</text>')
        lines.append(f'<path class="axis" d="M{LEFT} {TOP}V{self.bottom}H{WIDTH - RIGHT}"/>')
        lines.append(f'<text class="middle" x="{(LEFT + WIDTH - RIGHT) / 2}" y="{self.ground + 40}">step</text>')
        return lines

    def place(self, box: Box, until: int) -> tuple[float, float, float, float]:
        """Return left, top, width and height of a box that is drawn to the end of step `until`."""
        x, y = self.x(box.first), self.y(box.offset + box.nbytes)
        return x, y, self.x(until + 1) - x, self.y(box.offset) - y

    def reserved(self, box: Box) -> str:
        x, y, width, height = self.place(box, box.last)
        colour = box.block % len(COLOURS)
        return f'<rect class="reserved c{colour}" x="{x:.6g}" y="{y:.6g}" width="{width:.6g}" height="{height:.6g}"/>'

    def rectangle(self, box: Box, until: int) -> str:
        """Return one value's rectangle, with its name if there is room."""
        x, y, width, height = self.place(box, until)
        style = "workspace" if box.kind == WORKSPACE else f"operand c{box.block % len(COLOURS)}"
        style += " viewed" if box.views else " thin" if min(width, height) < THIN else ""
        text = (
            f'<rect class="{style}" x="{x:.6g}" y="{y:.6g}" width="{width:.6g}" height="{height:.6g}">'
            f"<title>{markup(about(box, self.memory.boxes))}</title></rect>"
        )
        if box.over >= 0 and width > 2 * THIN:
            text += f'<path class="over" d="M{x:.6g} {y:.6g}v{height:.6g}"/>'
        return text + label(plain(box.name), x, y, width, height)

    def strip(self) -> list[str]:
        """Return the curve of bytes in use."""
        scale = STRIP / self.top
        path = f"M{LEFT} {self.ground}"
        for step, nbytes in zip(self.memory.changes.tolist(), self.memory.in_use.tolist()):
            path += f"H{self.x(step):.6g}V{self.ground - nbytes * scale:.6g}"
        return [
            f'<path class="used" d="{path}"><title>bytes in use at each step</title></path>',
            f'<text class="end" x="{LEFT - 8}" y="{self.ground - STRIP / 2 + 4}">in use</text>',
            f'<path class="axis" d="M{LEFT} {self.ground}H{WIDTH - RIGHT}"/>',
        ]

    def marks(self) -> list[str]:
        """Return the lower bound, and the step with the most bytes in use."""
        memory = self.memory
        y, x = self.y(memory.lower_bound), self.x(memory.peak)
        width = max(self.x(memory.peak + 1) - x, 1.5)
        bound = f"lower bound {bytes_text(memory.lower_bound)}"
        note = f"{bound}; most in use {bytes_text(memory.peak_nbytes)}, at step {memory.peak}"
        middle = x + width / 2
        return [
            f'<path class="red" d="M{middle:.6g} {TOP}l-5 -8h10z"/>',
            f'<rect class="peak" x="{x:.6g}" y="{TOP}" width="{width:.6g}" height="{self.ground - TOP}"/>',
            f'<path class="bound" d="M{LEFT} {y:.6g}H{WIDTH - RIGHT}"><title>{bound}</title></path>',
            f'<text class="end red" x="{WIDTH - RIGHT}" y="{TOP - 10}">{note}</text>',
        ]


def _round_step(span: int, steps: tuple[int, ...], base: int = 10) -> int:
    """Return the smallest of `steps`, times a power of `base`, that gives at most `TICKS` ticks in a span."""
    scale = 1
    while span > TICKS * scale * steps[-1]:
        scale *= base
    return scale * steps[bisect_left(steps, -(-span // (TICKS * scale)))]
