"""Max pooling's gradient: the index of each window's largest element, and sums at these indices.

On channel-blocked images a vector is a block's channels, each with an index of its own; on plain ones it is one value.
"""

from cgraph.kernels.llvm.build import Builder
from cgraph.kernels.llvm.emitter import final
from cgraph.kernels.llvm.flow import divmod_of, fold
from cgraph.kernels.llvm.values import Val
from cgraph.kernels.llvm.windows import larger_with_tap, least


@final
def indices(k: Builder, dtype: str, is_blocked: bool) -> None:
    """Return the index of each window's largest element, in C order; the first of equal ones, the first NaN before all.

    Task: one row of windows of one plane.
    """
    a = k.args()
    lanes = k.target.lanes_of(dtype) if is_blocked else 0
    with k.task_loop() as task:
        plane, row = divmod_of(task, a.rows)
        image, channel = divmod_of(plane, a.planes)
        r = [(a.row_table + row * 4).load(i) for i in range(4)]
        x = a.x + (image * a.x_image + channel * a.x_plane + r[3])
        out = a.p + (image * a.p_image + channel * a.p_plane + row * a.p_row)
        with k.loop(0, a.columns) as column:
            s = [(a.column_table + column * 4).load(i) for i in range(4)]
            start = numbered(k, r[0] * a.taps + s[0], lanes)
            with fold(k, r[0], r[1], [x + s[3], least(k, dtype, lanes), start]) as down:
                with fold(k, s[0], s[1], down.values) as across:
                    at, best, place = across.values
                    tap = numbered(k, down.i * a.taps + across.i, lanes)
                    across.next = [at + a.tap_column, *larger_with_tap(k, at.load(lanes=lanes), tap, best, place)]
                down.next = [down.values[0] + a.tap_row, *across.values[1:]]
            out.store(down.values[2], column * a.p_column)


def numbered(k: Builder, tap: Val, lanes: int) -> Val:
    """Return a tap's number, in every lane."""
    number = k.cast(tap, "i4")
    return k.splat(number, lanes) if lanes else number


@final
def spread_blocked(k: Builder, dtype: str) -> None:
    """``x``: every window's element `g` added at its index `p`, zeros elsewhere. Task: one plane of an image."""
    a = k.args()
    lanes = k.target.lanes_of(dtype)
    with k.task_loop() as task:
        image, channel = divmod_of(task, a.planes)
        x = a.x + (image * a.x_image + channel * a.x_plane)
        with k.loop(0, a.height) as y, k.loop(0, a.width) as z:
            (x + y * a.x_row).store(k.const(0, dtype, lanes), z * lanes)
        with k.loop(0, a.rows) as row, k.loop(0, a.columns) as column:
            place = (a.p + (image * a.p_image + channel * a.p_plane + row * a.p_row)).load(column * a.p_column, lanes)
            g = (a.g + (image * a.g_image + channel * a.g_plane + row * a.g_row)).load(column * lanes, lanes)
            r = [(a.row_table + row * 4).load(i) for i in range(4)]
            s = [(a.column_table + column * 4).load(i) for i in range(4)]
            with k.loop(r[0], r[1]) as i, k.loop(s[0], s[1]) as j:
                at = x + (r[3] + s[3] + (i - r[0]) * a.tap_row + (j - s[0]) * a.tap_column)
                is_match = place == numbered(k, i * a.taps + j, lanes)
                at.store(at.load(0, lanes) + k.select(is_match, g, k.const(0, dtype, lanes)))


def spread(k: Builder, dtype: str) -> None:
    """On plain images in C order, add every window's element at its index, zeros elsewhere. Task: one plane."""
    a = k.args()
    first, last = k.tasks()
    lanes = k.target.lanes_of(dtype)
    with k.loop(first, last) as plane:
        out = a.out + plane * a.h * a.w
        k.tail_loop(a.h * a.w, lanes, lambda i, n: out.store(k.const(0, dtype, n), i))
        with k.loop(0, a.rows) as row, k.loop(0, a.columns) as column:
            at = (plane * a.rows + row) * a.columns + column
            tap = k.cast(a.places.load(at), "i8")
            y = row * a.down - a.top + tap // a.s * a.tall
            x = column * a.across - a.left + tap % a.s * a.wide
            with k.if_((y >= 0) & (y < a.h) & (x >= 0) & (x < a.w)):
                place = y * a.w + x
                out.store(out.load(place) + a.g.load(at), place)
