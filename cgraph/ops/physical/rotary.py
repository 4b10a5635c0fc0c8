"""Rotary positions: each pair of elements of a row is rotated by the angle of its position."""

from functools import lru_cache, partial

import numpy as np

from cgraph.errors import ShapeError
from cgraph.ir.graph import Op
from cgraph.ir.row_rule import RowRule, rows_of_all
from cgraph.ir.spec import Spec
from cgraph.ir.work import Work
from cgraph.kernels.expression import Program, Trace
from cgraph.kernels.kernel import Call, View
from cgraph.kernels.pointwise.calls import fused_calls
from cgraph.kernels.target import Target


class Rotary(Op):
    """``x * cosines + turned(x) * sines``, where `turned` maps each pair (a, b) of a row to (-b, a).

    Operands
        x: floats ``[..., d]`` with an even d
        cosines, sines: both ``[..., d]``, or both ``[..., d / 2]`` if the elements of a pair share them; their other
            axes are those of `x`
    Fields
        adjacent: pairs are elements 2 i and 2 i + 1; otherwise elements i and i + d / 2
    Raises
        ShapeError: d is odd, or the tables have other shapes
    Source
        Su et al. 2021, arXiv:2104.09864
    """

    adjacent: bool

    def infer(self, x: Spec, cosines: Spec, sines: Spec) -> Spec:
        *lead, d = x.shape
        if d % 2 or cosines.shape != sines.shape or cosines.shape not in ((*lead, d), (*lead, d // 2)):
            raise ShapeError(
                f"rotary: tables {cosines} and {sines} do not fit rows {x}; use even rows, and their shape"
            )
        return x

    def meaning(self, x, cosines, sines):
        a, b = halves(x, self.adjacent)
        tables = [halves(t, self.adjacent) if t.shape == x.shape else (t, t) for t in (cosines, sines)]
        (c, other_c), (s, other_s) = tables
        out = np.empty_like(x)
        first, second = halves(out, self.adjacent)
        first[...], second[...] = a * c - b * s, b * other_c + a * other_s
        return out

    def row_rule(self, *specs: Spec) -> RowRule | None:
        return rows_of_all(self, *(s.shape for s in specs)) if specs[0].ndim > 1 else None

    def work(self, target: Target, x: Spec, cosines: Spec, sines: Spec) -> Work:
        calls = partial(rotary_calls, target, self.adjacent)
        return Work(calls, overwrites=(0,), strided=True)


def halves(x: np.ndarray, adjacent: bool) -> tuple[np.ndarray, np.ndarray]:
    """Return the first and the second elements of all pairs of an array ``[..., d]``."""
    d = x.shape[-1] // 2
    return (x[..., 0::2], x[..., 1::2]) if adjacent else (x[..., :d], x[..., d:])


def rotary_calls(target: Target, adjacent: bool, out: View, x: View, cosines: View, sines: View) -> list[Call]:
    """Return one call, which reads each element once: of complex numbers if adjacent elements are contiguous."""
    shares = cosines.shape != x.shape
    whole = (out, x) if shares else (out, x, cosines, sines)
    if adjacent and all(v.strides[-1] == v.itemsize for v in whole):
        out, x, *tables = (complex_view(v) for v in whole)
        program = complex_program(x.dtype, shares)
        return fused_calls(target, program, (len(program) - 1,), (out,), (x, *(tables or (cosines, sines))))
    outs, xs = half_views(out, adjacent), list(half_views(x, adjacent))
    for table in (cosines, sines):
        xs += [table] if shares else half_views(table, adjacent)
    program, results = split_program(x.dtype, shares)
    return fused_calls(target, program, results, outs, tuple(xs))


def half_views(x: View, adjacent: bool) -> tuple[View, View]:
    """Return views of the first and the second elements of all pairs."""
    d, stride = x.shape[-1] // 2, x.strides[-1]
    shape, strides = (*x.shape[:-1], d), (*x.strides[:-1], 2 * stride if adjacent else stride)
    first, second = (View(x.at + at, shape, strides, x.dtype) for at in (0, stride if adjacent else d * stride))
    return first, second


def complex_view(x: View) -> View:
    """Return a view of adjacent elements as complex numbers."""
    return View(x.at, (*x.shape[:-1], x.shape[-1] // 2), (*x.strides[:-1], 2 * x.itemsize), f"c{2 * x.itemsize}")


@lru_cache(maxsize=64)
def complex_program(dtype: str, shares: bool) -> Program:
    """Return the program of ``x c s``: complex x, and tables of the same dtype or, if `shares`, of its parts'."""
    m = Trace()
    table = f"f{int(dtype[1:]) // 2}" if shares else dtype
    x, c, s = m.load(0, dtype), m.load(1, table), m.load(2, table)
    (c, other_c), (s, other_s) = [(t, t) if shares else (t.re, t.im) for t in (c, s)]
    return m.program(m.pair(x.re * c - x.im * s, x.im * other_c + x.re * other_s))


@lru_cache(maxsize=64)
def split_program(dtype: str, shares: bool) -> tuple[Program, tuple[int, ...]]:
    """Return the program of two results of ``a b c s`` if the elements of a pair share the tables, else of
    ``a b c c' s s'``, and their positions.
    """
    m = Trace()
    a, b, *tables = (m.load(i, dtype) for i in range(4 if shares else 6))
    c, other_c, s, other_s = (tables[0], tables[0], tables[1], tables[1]) if shares else tables
    return m.joint_program(a * c - b * s, b * other_c + a * other_s)
