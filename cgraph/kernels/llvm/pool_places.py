"""Max pooling's gradient on plain images ``[planes, h, w]``: where a window's largest element is, and adding there."""

from types import SimpleNamespace

from cgraph.kernels.llvm.build import Builder, Val

ARGS = {
    "h": "i8", "w": "i8", "rows": "i8", "columns": "i8", "r": "i8", "s": "i8",
    "down": "i8", "across": "i8", "top": "i8", "left": "i8", "tall": "i8", "wide": "i8",
}  # fmt: skip


def places(k: Builder, dtype: str) -> None:
    """The position of each window's largest element, in C order; the first of equal ones, the first NaN before all.

    Task: one row of windows of one plane.
    """
    a = k.args(x=dtype + "*", out="i4*", **ARGS)
    first, last = k.tasks()
    with k.loop(first, last) as task:
        plane, row = task // a.rows, task % a.rows
        x = a.x + plane * a.h * a.w
        with k.loop(0, a.columns) as column:
            best, place = k.slot(k.const(0, dtype)), k.slot(k.const(-1, "i8"))
            for_each_tap(k, a, row, column, lambda y, z, tap: keep_larger(k, x.load(y * a.w + z), tap, best, place))
            a.out.store(k.cast(k.larger(place.value, 0), "i4"), task * a.columns + column)


def keep_larger(k: Builder, value: Val, tap: Val, best, place) -> None:
    nan_first = (value != value) & (best.value == best.value)
    taken = (place.value < 0) | (value > best.value) | nan_first
    place.value = k.select(taken, tap, place.value)
    best.value = k.select(taken, value, best.value)


def for_each_tap(k: Builder, a: SimpleNamespace, row: Val, column: Val, body) -> None:
    """``body(y, x, tap)`` for every tap of a window that lies inside the image."""
    with k.loop(0, a.r) as i:
        y = row * a.down - a.top + i * a.tall
        with k.if_((y >= 0) & (y < a.h)), k.loop(0, a.s) as j:
            x = column * a.across - a.left + j * a.wide
            with k.if_((x >= 0) & (x < a.w)):
                body(y, x, i * a.s + j)


def spread(k: Builder, dtype: str) -> None:
    """Every window's element added to its place, zeros elsewhere. Task: one plane."""
    a = k.args(places="i4*", g=dtype + "*", out=dtype + "*", **ARGS)
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
