"""The picture of a plan: steps across, bytes upwards, one rectangle for each operand.

A hole between rectangles is waste; the dashed line is the lower bound, the marked step is where it comes from. The text
is one SVG file that needs nothing else; pointing at a rectangle shows the operand's name, bytes and steps.
"""

from bisect import bisect_left
from html import escape

from cgraph.errors import bytes_text
from cgraph.memory.bounds import operator_breadths
from cgraph.memory.problem import Operand, Plan, Problem

WIDTH, HEIGHT = 1200, 640  # of the picture, in pixels
LEFT, TOP, RIGHT, BOTTOM = 90, 50, 20, 50  # margins
TICKS = 8
HUE_STEP = 137.508  # degrees; neighbouring numbers get hues far apart

STYLE = """
text { font: 12px sans-serif; fill: #333 }
.end { text-anchor: end }
.middle { text-anchor: middle }
.operand { stroke: #fff; stroke-width: .5 }
.operand:hover { stroke: #000; stroke-width: 2 }
.label { pointer-events: none; font-size: 10px }
.bound { stroke: #c00; stroke-dasharray: 6 4 }
.peak { stroke: #c00; stroke-opacity: .35 }
.axis { stroke: #999 }
"""


def plan_svg(problem: Problem, plan: Plan) -> str:
    """The plan as an SVG text. Time O(n log n)."""
    picture = _Picture(problem, plan)
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}">',
        f"<style>{STYLE}</style>",
        '<rect width="100%" height="100%" fill="#fff"/>',
        f'<text x="{LEFT}" y="24">{escape(picture.title())}</text>',
        *picture.axes(),
        *(picture.rectangle(i, x, at) for i, (x, at) in enumerate(zip(problem.operands, plan.offsets)) if x.nbytes),
        *picture.marks(),
        "</svg>",
    ]
    return "\n".join(lines) + "\n"


class _Picture:
    """Scales from steps and bytes to pixels, and the parts of the picture."""

    def __init__(self, problem: Problem, plan: Plan) -> None:
        steps, breadths = operator_breadths(problem)
        peak = int(breadths.argmax()) if len(steps) else 0
        self.plan = plan
        self.count = len(problem.operands)
        self.bound = int(breadths[peak]) if len(steps) else 0
        self.peak = int(steps[peak]) if len(steps) else 0
        self.first = min((x.interval.first for x in problem.operands), default=0)
        self.steps = max((x.interval.last for x in problem.operands), default=0) + 1 - self.first
        self.top = max(plan.nbytes, 1)

    def x(self, step: int) -> float:
        return LEFT + (step - self.first) * (WIDTH - LEFT - RIGHT) / self.steps

    def y(self, nbytes: int) -> float:
        return HEIGHT - BOTTOM - nbytes * (HEIGHT - TOP - BOTTOM) / self.top

    def title(self) -> str:
        ratio = f", {self.plan.nbytes / self.bound:.4f} of the lower bound" if self.bound else ""
        name = self.plan.strategy or "plan"
        return f"{name}: {self.count} operands in {bytes_text(self.plan.nbytes)} ({self.plan.nbytes} bytes){ratio}"

    def axes(self) -> list[str]:
        """Ticks at round steps across and at round bytes upwards."""
        left, bottom = LEFT, HEIGHT - BOTTOM
        lines = [f'<path class="axis" d="M{left} {TOP}V{bottom}H{WIDTH - RIGHT}" fill="none"/>']
        step, nbytes = _round_step(self.steps, (1, 2, 5, 10)), _round_step(self.top, (1, 2, 4, 8, 16), 16)
        for at in range(-(-self.first // step) * step, self.first + self.steps, step):
            lines.append(f'<text class="middle" x="{self.x(at):.1f}" y="{bottom + 18}">{at}</text>')
        for at in range(0, self.top + 1, nbytes):
            lines.append(f'<text class="end" x="{left - 6}" y="{self.y(at) + 4:.1f}">{bytes_text(at)}</text>')
        lines.append(f'<text class="middle" x="{(left + WIDTH - RIGHT) / 2}" y="{HEIGHT - 12}">step</text>')
        return lines

    def rectangle(self, i: int, operand: Operand, at: int) -> str:
        """One operand, with its name on it where there is room."""
        first, last = operand.interval.first, operand.interval.last
        x, y = self.x(first), self.y(at + operand.nbytes)
        width, height = self.x(last + 1) - x, self.y(at) - y
        name = operand.name or f"operand {i}"
        about = f"{name}\n{bytes_text(operand.nbytes)} at [{at}, {at + operand.nbytes})\nsteps {first}..{last}"
        rectangle = (
            f'<rect class="operand" x="{x:.2f}" y="{y:.2f}" width="{width:.2f}" height="{height:.2f}" '
            f'fill="hsl({i * HUE_STEP % 360:.0f} 55% 68%)"><title>{_text(about)}</title></rect>'
        )
        if height < 12 or width < 7 * len(name):
            return rectangle
        return f'{rectangle}<text class="label" x="{x + 3:.2f}" y="{y + 11:.2f}">{_text(name)}</text>'

    def marks(self) -> list[str]:
        """The lower bound and the step that needs so much."""
        y, x = self.y(self.bound), self.x(self.peak)
        width = self.x(self.peak + 1) - x
        note = f"lower bound {bytes_text(self.bound)}, at step {self.peak}"
        return [
            f'<rect class="peak" x="{x:.2f}" y="{TOP}" width="{width:.2f}" height="{HEIGHT - TOP - BOTTOM}" '
            'fill="#c00" fill-opacity=".07" pointer-events="none"/>',
            f'<path class="bound" d="M{LEFT} {y:.2f}H{WIDTH - RIGHT}"><title>{note}</title></path>',
            f'<text class="end" x="{WIDTH - RIGHT}" y="{TOP - 8}">{note}</text>',
        ]


def _round_step(span: int, steps: tuple[int, ...], base: int = 10) -> int:
    """The smallest of `steps`, times a power of `base`, that makes at most `TICKS` ticks in a span."""
    scale = 1
    while span > TICKS * scale * steps[-1]:
        scale *= base
    return scale * steps[bisect_left(steps, -(-span // (TICKS * scale)))]


def _text(text: str) -> str:
    """Text that any SVG reader takes: escaped, without control characters."""
    return escape("".join(char if char.isprintable() or char == "\n" else "?" for char in text))
