"""Picture of a budget curve: extra milliseconds of plans across, bytes of their arenas upwards.

One dot is one plan; the line shows the bytes needed for a given extra time. The plan within the requested budget is
red. A tooltip on each dot lists the plan's means.
"""

from collections.abc import Sequence

from cgraph.errors import bytes_text
from cgraph.record import Record
from cgraph.view.sheet import Svg, heading, style_of
from cgraph.view.text import markup

WIDTH, HEIGHT = 900, 460  # size of the picture, in pixels
LEFT, TOP, RIGHT, BOTTOM = 96, 74, 110, 60  # margins
TICKS = 5

STYLE = """
.curve{stroke:#2563eb;stroke-width:1.5;fill:none}
.plan{fill:#2563eb}.asked{fill:#dc2626}
"""


class Point(Record):
    """A plan within a budget.

    Fields
        nbytes: bytes of the arena
        means: order of the steps, regions in bands, rematerialisation
        bands: bands beyond one per step
        again: number of steps that are computed again
        calls: additional calls compared with the plan without changes
        seconds: predicted time of these calls
        asked: True for the plan within the requested budget
    """

    nbytes: int
    means: str
    bands: int
    again: int
    calls: int
    seconds: float
    asked: bool


def curve_svg(points: Sequence[Point], title: str) -> Svg:
    """Return the picture of plans by falling bytes, at least one, as an SVG text."""
    longest, most = max(x.seconds for x in points) or 1e-6, max(points[0].nbytes, 1)

    def at(seconds: float, nbytes: float) -> tuple[float, float]:
        x = LEFT + seconds / longest * (WIDTH - LEFT - RIGHT)
        return x, HEIGHT - BOTTOM - nbytes / most * (HEIGHT - BOTTOM - TOP)

    lines = [
        heading(WIDTH, HEIGHT),
        style_of(STYLE),
        '<rect class="sheet" width="100%" height="100%"/>',
        f'<text class="title" x="{LEFT}" y="28">{markup(title)}</text>',
        f'<text x="{LEFT}" y="48">bytes of the arena against predicted milliseconds of further calls</text>',
    ]
    for i in range(TICKS + 1):
        x, y = at(longest * i / TICKS, most * i / TICKS)
        lines += [
            f'<path class="grid" d="M{LEFT} {y:.1f}H{WIDTH - RIGHT}"/>',
            f'<text class="end" x="{LEFT - 8}" y="{y + 4:.1f}">{bytes_text(most * i // TICKS)}</text>',
            f'<text class="middle" x="{x:.1f}" y="{HEIGHT - BOTTOM + 18}">{longest * 1e3 * i / TICKS:.3g}</text>',
        ]
    lines += [
        f'<path class="axis" d="M{LEFT} {TOP}V{HEIGHT - BOTTOM}H{WIDTH - RIGHT}"/>',
        f'<text class="middle" x="{(LEFT + WIDTH - RIGHT) / 2}" y="{HEIGHT - BOTTOM + 40}">milliseconds</text>',
        f'<path class="curve" d="{staircase([at(x.seconds, x.nbytes) for x in cheapest(points)])}"/>',
    ]
    for point in points:
        x, y = at(point.seconds, point.nbytes)
        about = f"{point.nbytes} bytes, {point.calls} calls more, {point.again} steps again\n{point.means}"
        style = "asked" if point.asked else "plan"
        lines.append(f'<circle class="{style}" cx="{x:.1f}" cy="{y:.1f}" r="5"><title>{markup(about)}</title></circle>')
        lines.append(f'<text x="{x + 9:.1f}" y="{y - 6:.1f}">{bytes_text(point.nbytes)}</text>')
    return Svg("\n".join([*lines, "</svg>"]) + "\n")


def cheapest(points: Sequence[Point]) -> list[Point]:
    """Return the Pareto front: plans with no other that needs fewer bytes and less time, by rising time."""
    front: list[Point] = []
    for point in sorted(points, key=lambda x: (x.seconds, x.nbytes)):
        if not front or point.nbytes < front[-1].nbytes:
            front.append(point)
    return front


def staircase(corners: Sequence[tuple[float, float]]) -> str:
    """Return a path that goes across to each corner, then down to it."""
    (x, y), *rest = corners
    return f"M{x:.1f} {y:.1f}" + "".join(f"H{x:.1f}V{y:.1f}" for x, y in rest)
