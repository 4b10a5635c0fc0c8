"""Loops over rows in vectors: every element, the last ones in a vector that overlaps, which lanes lie outside."""

import numpy as np
import pytest

from cgraph.kernels.llvm.values import nbytes_of
from cgraph.kernels.pointwise.emit import streams_of
from cgraph.kernels.pointwise.rowwise import each, lanes_outside
from tests.support.emitted import every_target, run_emitted

LANES = 8


def rowwise(target, x, out, count, steps=(1, 1), reads=(0,), writes=(1,), function=lambda k, x, outside: x + 1):
    """Apply a function to `count` elements, `steps` elements apart, as the two streams of a row."""

    def write(k, x, out):
        access = "".join("v" if step == 1 else "g" for step in steps)
        places = [
            (k.wrap(k.b.ptrtoint(p.v, k.const(0, "i8").v.type), "i8"), k.const(step * nbytes_of(p.dtype), "i8"))
            for p, step in zip((x, out), steps)
        ]
        streams = streams_of(k, places, [x.dtype, out.dtype], access, LANES)

        def body(load, store, outside):
            store(1, function(k, load(0), outside))

        each(k, streams, [base for base, _ in places], k.const(count, "i8"), LANES, reads, writes, body)

    run_emitted(write, target, x, out)


@every_target
@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("steps", [(1, 1), (3, 1), (1, 2), (2, 3)])
@pytest.mark.parametrize("count", [0, 1, LANES - 1, LANES, LANES + 1, 3 * LANES - 1])
def test_every_element_is_written_once_and_nothing_beside(count, steps, dtype, target):
    x, out = np.arange(100).astype(dtype), np.full(100, -7, dtype)
    rowwise(target, x, out, count, steps)
    want = np.full(100, -7, dtype)
    want[: count * steps[1] : steps[1]] = x[: count * steps[0] : steps[0]] + 1
    np.testing.assert_array_equal(out, want)


@every_target
@pytest.mark.parametrize("chain", [None, 2])
@pytest.mark.parametrize("count", [1, LANES - 1, LANES, LANES + 3, 5 * LANES - 1, 6 * LANES])
def test_lanes_that_are_not_outside_are_every_element_once(count, chain, target):
    """The sum of all lanes that are not outside is that of the row, which is added to the result by chains."""
    x, out = np.arange(1, 100, dtype="f4"), np.zeros(1, "f4")

    def write(k, x, out):
        places = [(k.wrap(k.b.ptrtoint(x.v, k.const(0, "i8").v.type), "i8"), k.const(4, "i8"))]
        streams, total = streams_of(k, places, ["f4"], "v", LANES), k.slot(k.const(0.0, "f4", LANES))

        def body(load, store, outside):
            v = load(0)
            total.value = total.value + (v if outside is None else k.select(outside, k.const(0.0, "f4", LANES), v))

        def flush():
            for i in range(LANES):
                out.store(out.load() + k.lane(total.value, i))
            total.value = k.const(0.0, "f4", LANES)

        chained = None if chain is None else (chain, flush)
        each(k, streams, [places[0][0]], k.const(count, "i8"), LANES, (0,), (), body, chain=chained)
        if chain is None:
            flush()

    run_emitted(write, target, x, out)
    assert out[0] == x[:count].sum()


@every_target
@pytest.mark.parametrize(("rest", "is_long", "want"), [(3, True, [1] * 5 + [0] * 3), (3, False, [0] * 3 + [1] * 5)])
def test_lanes_outside_come_before_the_rest_of_a_long_row_and_after_a_short_one(rest, is_long, want, target):
    out = np.zeros(LANES, "f4")

    def write(k, out):
        outside = lanes_outside(k, k.const(rest, "i8"), k.const(is_long, "b1"), LANES)
        out.store(k.select(outside, k.const(1.0, "f4", LANES), k.const(0.0, "f4", LANES)))

    run_emitted(write, target, out)
    assert out.tolist() == want


@every_target
@pytest.mark.parametrize("count", [3, LANES + 3])
def test_streams_that_are_not_named_are_neither_read_nor_written_at_the_end(count, target):
    whole = count // LANES * LANES
    x, out = np.full(count, 5, "f4"), np.full(count, 9, "f4")
    rowwise(target, x, out, count, writes=())
    assert (out[:whole] == 6).all() and (out[whole:] == 9).all()
    rowwise(target, x, out, count, reads=())
    assert (out[whole:] == 2).all()  # the ones of the buffer


@every_target
def test_the_result_may_be_the_operand(target):
    x = np.arange(LANES + 5).astype("f4")
    rowwise(target, x, x, LANES + 5)
    np.testing.assert_array_equal(x, np.arange(LANES + 5) + 1)
