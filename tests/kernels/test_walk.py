"""Walks over arrays of any rank: every position once, with NumPy's strides; groups; the words of a table of axes."""

from types import SimpleNamespace

import numpy as np
import pytest

from cgraph.kernels.kernel import Kernel, Pointer
from cgraph.kernels.signature import Signature
from cgraph.kernels.walk.emit import load_strided, offsets_of, store_strided, walk, walk_groups
from cgraph.kernels.walk.signature import axes, operands_and_outputs, run, streams
from tests.support.emitted import every_target, run_emitted

SHAPES = [(1,), (5,), (3, 4), (2, 1, 3), (2, 3, 1, 4)]


def tabled(shape, *strides):
    """The axes of a walk, fastest first."""
    return np.array([(n, *s) for n, *s in list(zip(shape, *strides))[::-1]], np.int64)


def strides_of(shape):
    """Bytes of two arrays: C order of 8 bytes, and any with a flipped and a repeated axis."""
    places = np.arange(np.prod(shape)).reshape(shape)
    return places.strides, tuple(int(x) for x in np.resize([-3, 0, 700, 11], len(shape)))


def offsets_by_numpy(shape, strides, low, high):
    return [int(np.dot(np.unravel_index(i, shape), strides)) for i in range(low, high)]


@every_target
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_every_position_has_the_offsets_of_its_indices(shape, target):
    strides, n = strides_of(shape), int(np.prod(shape))
    table = tabled(shape, *strides)

    def write(k, table, ends, out):
        def body(row, offsets):
            for i, x in enumerate((out.load(row * 3) + 2, *offsets)):  # -1 for a position that is not visited yet
                out.store(x, row * 3 + i)

        walk(k, table, k.const(len(shape), "i8"), 2, ends.load(0), ends.load(1), body)

    for low, high in ((0, n), (n // 2, n), (0, n - n // 3), (n // 3, n // 3)):
        out, want = (np.full((n + 1, 3), -1) for _ in range(2))
        run_emitted(write, target, table, np.array([low, high]), out)
        want[low:high] = np.stack([np.ones(high - low), *(offsets_by_numpy(shape, s, low, high) for s in strides)], 1)
        np.testing.assert_array_equal(out, want)


@every_target
@pytest.mark.parametrize("group", [1, 2, 4])
def test_groups_do_not_go_beyond_an_axis_or_the_last_position(group, target):
    shape = (3, 5)
    strides, out = strides_of(shape), np.full((15, 3), -1)
    table = tabled(shape, *strides)

    def write(k, table, out):
        def body(row, members):
            for i, offsets in enumerate(members):
                for j, x in enumerate((k.const(len(members), "i8"), *offsets)):
                    out.store(x, (row + i) * 3 + j)

        walk_groups(k, table, k.const(2, "i8"), 2, k.const(1, "i8"), k.const(13, "i8"), group, body)

    run_emitted(write, target, table, out)
    for s, column in zip(strides, out[1:13, 1:].T):
        assert column.tolist() == offsets_by_numpy(shape, s, 1, 13)
    runs = [4, 5, 3]  # of positions along the fastest axis
    sizes = [m for run in runs for m in [group] * (run // group * group) + [1] * (run % group)]
    assert out[1:13, 0].tolist() == sizes and (out[[0, 13, 14]] == -1).all()


@every_target
def test_the_offsets_of_one_position(target):
    shape, out = (4, 3, 5), np.zeros((60, 2), np.int64)
    table = tabled(shape, *strides_of(shape))

    def write(k, table, out):
        with k.loop(0, 60) as row:
            for i, x in enumerate(offsets_of(k, table, k.const(3, "i8"), 2, row)):
                out.store(x, row * 2 + i)

    run_emitted(write, target, table, out)
    for s, column in zip(strides_of(shape), out.T):
        assert column.tolist() == offsets_by_numpy(shape, s, 0, 60)


@every_target
@pytest.mark.parametrize("dtype", ["f4", "f8", "i2", "u1", "b1"])
def test_elements_some_bytes_apart(dtype, target):
    """Forwards, backwards and one for all; what lies between stays."""
    x = (np.arange(24) * 7 % 5).astype("?" if dtype == "b1" else dtype)
    out = np.zeros((4, 24), x.dtype)
    out[3] = x[0]

    def write(k, x, out):
        size = int(dtype[1:])
        for row, (first, step) in enumerate([(0, 3), (20, -2), (5, 0)]):
            value = load_strided(k, x + first, k.const(step * size, "i8"), 4)
            store_strided(k, out + row * 24, k.const(2 * size, "i8"), value)
        (out + 3 * 24 + 1).store(load_strided(k, x + 7, k.const(99, "i8"), 0))

    run_emitted(write, target, x, out)
    want = np.zeros((4, 24), x.dtype)
    for row, places in enumerate(([0, 3, 6, 9], [20, 18, 16, 14], [5] * 4)):
        want[row, :8:2] = x[places]
    want[3], want[3, 1] = x[0], x[7]
    np.testing.assert_array_equal(out, want)


def test_tables_of_axes_have_an_extent_and_a_stride_for_each_array():
    by_name, by_count = axes("rank", lambda values: 3), axes(lambda values: len(values.ins), lambda values: 2)
    assert by_name.size(SimpleNamespace(rank=2)) == 2 * 4 and by_name.kinds == ("i8",)
    assert by_count.size(SimpleNamespace(ins="abc")) == 3 * 3
    assert streams(operands_and_outputs).size(SimpleNamespace(ins=("f4", "f4"), outs=("f8",))) == 3 * 2


def test_the_arguments_of_a_run():
    family = run("tests.own", ("dtype",), ("x", "out"), more="f8")
    assert isinstance(family, Signature) and family.params == ("dtype",)
    assert list(family.args) == [
        "x", "out", "columns", "x_step", "out_step", "block", "blocks", "each", "rows", "more", "rank", "axes"
    ]  # fmt: skip
    assert family.args["x"] == "u1*" and family.args["more"] == "f8"
    numbers = dict.fromkeys(("columns", "x_step", "out_step", "block", "blocks", "each", "rows"), 1)
    at = dict.fromkeys(("x", "out"))
    with pytest.raises(TypeError, match="axes has 5 words, it needs 6"):
        family.call(("f4",), 1, **{**numbers, **places(at), "more": 1.0, "rank": 2, "axes": [0] * 5})
    call = family.call(("f4",), 1, **{**numbers, **places(at), "more": 1.0, "rank": 2, "axes": [0] * 6})
    assert call.kernel == Kernel("tests.own", ("f4",)) and len(call.args) == 11 + 6


def places(at):

    return {name: Pointer(name) for name in at}
