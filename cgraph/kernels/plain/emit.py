"""Copies of plain images with padding: rows are memory copies."""

from cgraph.kernels.llvm import ir
from cgraph.kernels.llvm.build import POINTER, VOID, Builder
from cgraph.kernels.llvm.emitter import final


@final
def pad_rows(k: Builder, itemsize: int):
    """Copy images ``[n, c, h, w]`` into the middle of a contiguous ``[n, c, rows, columns]`` of zeros.

    Task: one row of `out`.
    """
    dtype = f"u{itemsize}"
    a = k.args()
    with k.task_loop() as task:
        plane, row = task // a.rows, task % a.rows - a.top
        out = a.out.plus_bytes(task * a.columns * itemsize).as_dtype(dtype)
        inside = (row >= 0) & (row < a.h)
        with k.if_else(inside) as (then, otherwise):
            with then:
                at = plane // a.c * a.x_image + plane % a.c * a.x_plane + row * a.x_row
                clear(k, out, a.left)
                copy(k, out + a.left, a.x.plus_bytes(at), a.w * itemsize)
                clear(k, out + (a.left + a.w), a.columns - a.left - a.w)
            with otherwise:
                clear(k, out, a.columns)


def clear(k: Builder, at, count) -> None:
    """Set `count` elements to zero, usually few."""
    with k.loop(0, count) as i:
        at.store(k.const(0, at.dtype), i)


def copy(k: Builder, to, source, nbytes) -> None:
    size = ir.IntType(64)
    function = k.declare("llvm.memcpy.p0.p0.i64", VOID, [POINTER, POINTER, size, ir.IntType(1)])
    k.b.call(function, [to.v, source.v, nbytes.v, ir.Constant(ir.IntType(1), 0)])
