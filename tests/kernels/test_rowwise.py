"""Loops over rows in vectors: every element once, the last ones through buffers, which lanes lie outside."""

import numpy as np
import pytest

from cgraph.kernels.llvm.values import nbytes_of
from cgraph.kernels.pointwise.emit import streams_of
from cgraph.kernels.pointwise.rowwise import each
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
@pytest.mark.parametrize("count", [1, LANES, LANES + 3])
def test_only_lanes_behind_the_last_element_are_outside_and_hold_ones(count, target):
    """The sum of all lanes that are outside: ones, of which there are as many as lanes are missing."""
    x, out = np.full(40, 5, "f4"), np.zeros(40, "f4")

    def marked(k, v, outside):
        if outside is None:
            return v * 10
        ones = k.select(outside, v, k.const(0, "f4", LANES))  # 0 for an element, 1 outside
        total = k.const(0, "f4")
        for i in range(LANES):
            total = total + k.lane(ones, i)
        return k.splat(total, LANES)

    rowwise(target, x, out, count, function=marked)
    whole = count // LANES * LANES
    assert (out[:whole] == 50).all() and (out[whole:count] == -count % LANES).all() and not out[count:].any()


@every_target
def test_streams_that_are_not_named_are_neither_read_nor_written_at_the_end(target):
    x, out = np.full(LANES + 3, 5, "f4"), np.full(LANES + 3, 9, "f4")
    rowwise(target, x, out, LANES + 3, writes=())
    assert (out[:LANES] == 6).all() and (out[LANES:] == 9).all()
    rowwise(target, x, out, LANES + 3, reads=())
    assert (out[:LANES] == 6).all() and (out[LANES:] == 2).all()  # the ones of the buffer


@every_target
def test_the_result_may_be_the_operand(target):
    x = np.arange(LANES + 5).astype("f4")
    rowwise(target, x, x, LANES + 5)
    np.testing.assert_array_equal(x, np.arange(LANES + 5) + 1)
