"""Sides of products that are computed: float32 numbers, rounded to bfloat16 in pairs along the sum.

A side is lines, rows of the left side or columns of the right one, of `k` numbers each. Whichever of both axes has
adjacent numbers in memory keeps them adjacent, so both are one pass of vectors.
"""

from math import prod

from cgraph.dtypes.storage import BFLOAT16
from cgraph.kernels.expression import Trace
from cgraph.kernels.kernel import Call, Pointer, View, contiguous
from cgraph.kernels.move.calls import fill_calls, part
from cgraph.kernels.pairs.calls import pair_calls
from cgraph.kernels.pairs.signature import PAIRS
from cgraph.kernels.pointwise.calls import pointwise_calls
from cgraph.kernels.target import Target
from cgraph.kernels.views.window_views import reorder_axes
from cgraph.record import Record, replace

FEW_LINES = 32  # see `gains_by_rounding`
PAIR_NBYTES = 4


def gains_by_rounding(rows: int, columns: int) -> bool:
    """Return True if a product gains more by pairs than rounding its two sides costs: an estimate.

    A product of bfloat16 numbers saves 0.009 ns of a float32 multiply-add, and rounding takes 0.2 to 0.3 ns a number:
    rates of other layers, see docs/decisions/0072.
    """
    return rows * columns >= FEW_LINES * (rows + columns)


class PairedSide(Record):
    """A side in pairs.

    Fields
        x: float32 numbers ``[..., lines, k]``, of any strides; equal matrices (stride 0) are rounded once
        lines, depth: lines, and pairs of each, with those of zeros at the end
    """

    x: View
    lines: int
    depth: int

    @staticmethod
    def of(x: View) -> "PairedSide":
        """Return the side without further lines or pairs, except the zero after the last of an odd `k`."""
        return PairedSide(x, x.shape[-2], -(-x.shape[-1] // 2))

    @property
    def keeps_lines(self) -> bool:
        """True if the numbers of a line are adjacent, in `x` and in the pairs."""
        *_, line, number = self.x.strides
        return number == self.x.itemsize or line != self.x.itemsize

    @property
    def batch(self) -> tuple[int, ...]:
        """The batch axes of the matrices in memory: 1 where `x` repeats one matrix."""
        return tuple(n if stride else 1 for n, stride in zip(self.x.shape[:-2], self.x.strides[:-2]))

    @property
    def nbytes(self) -> int:
        """Bytes of the pairs."""
        return PAIR_NBYTES * prod(self.batch) * self.lines * self.depth

    def at(self, place: Pointer) -> View:
        """Return the pairs ``[..., lines, depth]`` at an address."""
        count = len(self.batch)
        if self.keeps_lines:
            pairs = contiguous(place, (*self.batch, self.lines, self.depth), PAIRS)
        else:
            rows = contiguous(place, (*self.batch, self.depth, self.lines), PAIRS)
            pairs = reorder_axes(rows, (*range(count), count + 1, count))
        strides = [step if there else 0 for step, there in zip(pairs.strides, self.x.strides[:-2])]
        shape = (*self.x.shape[:-2], *pairs.shape[-2:])
        return View(place, shape, (*strides, *pairs.strides[-2:]), PAIRS)

    def calls(self, target: Target, place: Pointer) -> list[Call]:
        """Return the calls that write the pairs at an address."""
        x, line = first_matrices(self.x), len(self.batch)
        pairs = first_matrices(self.at(place))
        lines, k = x.shape[-2:]
        beyond = fill_calls(target, part(pairs, line, lines, self.lines - lines), 0)
        pairs = part(pairs, line, 0, lines)
        if self.keeps_lines:
            shape, strides = (*pairs.shape[:-1], 2 * self.depth), (*pairs.strides[:-1], BFLOAT16.dtype.itemsize)
            return [*pair_calls(target, View(place, shape, strides, BFLOAT16.code), x), *beyond]
        axis, whole, used = line + 1, k // 2, -(-k // 2)
        both = pointwise_calls(
            target, joining(2), part(pairs, axis, 0, whole), part(x, axis, 0, whole, 2), part(x, axis, 1, whole, 2)
        )
        last = pointwise_calls(target, joining(1), part(pairs, axis, whole, k % 2), part(x, axis, 2 * whole, k % 2))
        return [*both, *last, *fill_calls(target, part(pairs, axis, used, self.depth - used), 0), *beyond]


def joining(count: int) -> tuple[tuple, ...]:
    """Return the program that rounds one number or two and joins them to a pair; a missing second one is 0."""
    m = Trace()
    halves = [m.bits(m.cast(m.cast(m.load(i, "f4"), BFLOAT16.code), "f4"), "i4") for i in range(count)]
    low = m.bits(m.shr(m.bits(halves[0], "u4"), 16), "i4")
    return m.program(low | halves[1] if count > 1 else low)


def first_matrices(x: View) -> View:
    """Return a view with one matrix where it repeats one."""
    sizes = tuple(n if stride else 1 for n, stride in zip(x.shape[:-2], x.strides[:-2]))
    return replace(x, shape=(*sizes, *x.shape[-2:]))
