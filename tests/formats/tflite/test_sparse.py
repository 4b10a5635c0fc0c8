"""Sparse constants of TFLite files: dense and compressed levels in any order, with blocks; and files that lie."""

from itertools import permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cgraph.errors import FormatError
from cgraph.formats.allowance import Allowance
from cgraph.formats.tflite import load, wire
from cgraph.formats.tflite.source import TfliteSource
from cgraph.formats.tflite.sparse import Level, next_places
from tests.support.hostile import flipped, harmless, refused
from tests.support.tflite_models import Network, Table, ints, reference, written

INT32, UINT16, UINT8 = (1, "int32"), (2, "uint16"), (3, "uint8")


def encoded(array, order, compressed, blocks=(), sizes=(), kind=INT32):
    """The nonzero values of an array in a traversal order, and its levels.

    A level is dense or compressed, which keeps the indices below which something is not 0. Blocks come last.
    """
    shape, rank = list(array.shape), array.ndim
    for axis, size in zip(blocks, sizes):
        shape[axis] //= size
    cut = [n for axis, n in enumerate(shape) for n in ((n, sizes[blocks.index(axis)]) if axis in blocks else (n,))]
    places = {axis: i for i, axis in enumerate(a for axis in range(rank) for a in
              ((axis, rank + blocks.index(axis)) if axis in blocks else (axis,)))}  # fmt: skip
    wide = array.reshape(cut).transpose([places[axis] for axis in order])
    rows, levels = [wide], []
    for i in range(wide.ndim):
        size = wide.shape[i]
        if i not in compressed:
            levels.append(Table({0: ("b", 0), 1: ("i", size)}))
            rows = [row[k] for row in rows for k in range(size)]
            continue
        found = [[k for k in range(size) if np.any(row[k])] for row in rows]
        ends = np.cumsum([0, *map(len, found)]).astype("int32")
        indices = np.array([k for part in found for k in part], kind[1])
        levels.append(Table({0: ("b", 1), 2: ("B", 1), 3: Table({0: ends}), 4: ("B", kind[0]), 5: Table({0: indices})}))
        rows = [row[k] for row, part in zip(rows, found) for k in part]
    return np.array(rows, array.dtype), levels


def sparse(net, array, order, compressed, blocks=(), sizes=(), kind=INT32):
    values, levels = encoded(array, order, compressed, blocks, sizes, kind)
    number = net.constant(values)
    table = Table({0: ints(*order), 2: levels} | ({1: ints(*blocks)} if blocks else {}))
    net.tensors[number] |= {0: ints(*array.shape), 6: table}
    return number


def drawn(rng, shape, dtype="float32"):
    return (rng.integers(1, 100, shape) * (rng.random(shape) < 0.3)).astype(dtype)


WAYS = {
    "rows": ((5, 7), (0, 1), {1}, (), ()),
    "columns": ((5, 7), (1, 0), {1}, (), ()),
    "both levels compressed": ((6, 4), (0, 1), {0, 1}, (), ()),
    "nothing compressed": ((3, 4), (1, 0), set(), (), ()),
    "blocks of columns": ((4, 12), (0, 1, 2), {1}, (1,), (4,)),
    "blocks of both axes": ((6, 8), (0, 1, 2, 3), {1}, (0, 1), (2, 4)),
    "filters": ((3, 2, 2, 8), (0, 1, 2, 3), {3}, (), ()),
    "blocks of filters": ((8, 1, 1, 8), (0, 1, 2, 3, 4, 5), {3}, (0, 3), (4, 2)),
}


@pytest.mark.parametrize("kind", [INT32, UINT16, UINT8], ids=lambda kind: kind[1])
@pytest.mark.parametrize("name", WAYS)
def test_sparse_constants_are_dense_arrays(name, kind):
    shape, *way = WAYS[name]
    array = drawn(np.random.default_rng(2), shape)
    net = Network()
    number = sparse(net, array, *way, kind)
    tensor = TfliteSource(memoryview(net.bytes(number)), "net").tensor(number)
    np.testing.assert_array_equal(tensor.array, array, strict=True)


@pytest.mark.parametrize("order", list(permutations(range(3))))
def test_levels_lie_in_any_order(order):
    array = drawn(np.random.default_rng(3), (4, 3, 5))
    net = Network()
    number = sparse(net, array, order, {2})
    assert np.array_equal(TfliteSource(memoryview(net.bytes(number)), "net").tensor(number).array, array)


@pytest.mark.parametrize("dtype", ["float32", "float16", "int8"])
@pytest.mark.parametrize("name", ["rows", "blocks of both axes"])
def test_densify_gives_what_the_reference_kernel_does(name, dtype):
    shape, *way = WAYS[name]
    array, net = drawn(np.random.default_rng(4), shape, dtype), Network()
    form = {"dtype": dtype} | ({"scale": 0.5, "zero": 0} if dtype == "int8" else {})
    number = sparse(net, array, *way)
    if dtype == "int8":
        net.tensors[number][4] = Table({2: np.array([0.5], "f4"), 3: np.array([0])})
    dense = net.op("DENSIFY", [number], form)
    dense = dense if dtype == "float32" else net.op("DEQUANTIZE", [dense])
    x = np.random.default_rng(5).integers(-5, 5, shape).astype("f4")
    model = net.bytes(net.op("ADD", [dense, net.input(shape)]))
    np.testing.assert_array_equal(load(model).compile()(x)[0], reference(model, x)[0], strict=True)


ARRAY = np.array([[0, 1, 0, 2], [0, 0, 0, 0], [3, 0, 4, 5]], "f4")


def changed(change, order=(0, 1), compressed=(1,), blocks=(), sizes=()):
    """A file whose sparsity a function has changed."""
    net = Network()
    number = sparse(net, ARRAY, order, compressed, blocks, sizes)
    change(net.tensors[number][6])
    return net.bytes(net.op("ADD", [net.op("DENSIFY", [number]), net.input((3, 4))]))


def level(i, **fields):
    """Replace fields of level i: of its segments and indices, or its own."""
    numbers = {"format": (0, "b"), "size": (1, "i")}

    def change(table):
        for name, value in fields.items():
            if name in numbers:
                table[2][i][numbers[name][0]] = (numbers[name][1], value)
            else:
                table[2][i][{"segments": 3, "indices": 5}[name]] = Table({0: ints(*value)})

    return change


LEVELS = {
    "a level too few": (lambda table: table[2].pop(), "lacks levels"),
    "an order of fewer levels": (lambda table: table.__setitem__(0, ints(0)), "lacks levels"),
    "no order": (lambda table: table.pop(0), "lacks levels"),
    "an axis twice": (lambda table: table.__setitem__(0, ints(0, 0)), r"have the axes \[0, 0\]"),
    "an axis beyond": (lambda table: table.__setitem__(0, ints(0, 5)), r"have the axes \[0, 5\]"),
    "blocks without their level": (lambda table: table.__setitem__(1, ints(1)), "lacks levels"),
    "blocks of an axis beyond": (lambda table: table.__setitem__(1, ints(2)), r"blocks of the axes \[2\]"),
    "blocks of an axis twice": (lambda table: table.__setitem__(1, ints(1, 1)), r"blocks of the axes \[1, 1\]"),
    "another size": (level(0, size=4), "a dense level of 4 indices, not 3"),
    "a negative size": (level(0, size=-3), "a dense level of -3 indices, not 3"),
    "another format": (level(1, format=2), "a level of format 2. Use dense and compressed ones"),
    "segments of fewer rows": (level(1, segments=(0, 2, 5)), "3 segments for 3 indices"),
    "segments that do not start at 0": (level(1, segments=(1, 2, 2, 5)), "4 segments for 3 indices"),
    "segments that go back": (level(1, segments=(0, 3, 2, 5)), "4 segments for 3 indices"),
    "segments beyond the indices": (level(1, segments=(0, 2, 2, 6)), "4 segments for 3 indices"),
    "an index beyond": (level(1, indices=(1, 3, 0, 2, 4)), "indices outside a level of 4"),
    "an index before": (level(1, indices=(1, -3, 0, 2, 3)), "indices outside a level of 4"),
    "an index too few": (level(1, segments=(0, 2, 2, 4), indices=(1, 3, 0, 2)), "has 5 values at 4 indices"),
    "an index too many": (level(1, segments=(0, 2, 2, 6), indices=(1, 3, 0, 1, 2, 3)), "has 5 values at 6 indices"),
    "indices of another kind": (lambda table: table[2][1].__setitem__(4, ("B", 4)), "lacks its segments or indices"),
    "no indices": (lambda table: table[2][1].pop(5), "lacks its segments or indices"),
    "no segments": (lambda table: table[2][1].pop(2), "lacks its segments or indices"),
}


@pytest.mark.parametrize("name", LEVELS)
def test_levels_that_do_not_describe_the_tensor_are_refused(name):
    change, match = LEVELS[name]
    refused(load, changed(change), match)


@pytest.mark.parametrize("size", [0, -2, 3])
def test_blocks_that_do_not_divide_their_axis_are_refused(size):
    made = changed(level(2, size=size), (0, 1, 2), (1,), (1,), (2,))
    refused(load, made, f"cuts an axis of 4 into blocks of {size}")


def test_half_a_value_is_refused():
    net = Network()
    number = sparse(net, ARRAY, (0, 1), {1})
    net.buffers[-1][0] = net.buffers[-1][0][:-1]
    with pytest.raises(FormatError, match="needs 48 bytes, 19 are stored"):
        load(net.bytes(net.op("DENSIFY", [number])))


def test_a_few_values_of_a_huge_tensor_are_charged():
    """Where they lie takes few bytes; what they lie in, and dense levels, do not."""
    net = Network()
    number = sparse(net, ARRAY, (0, 1), {1})
    net.tensors[number][0] = ints(3, 1 << 28)
    refused(load, net.bytes(net.op("DENSIFY", [number])), "a sparse tensor would take .* while reading")
    net = Network()
    number = sparse(net, np.zeros((1, 1), "int8"), (0, 1), ())
    net.tensors[number] |= {0: ints(6000, 6000)}
    net.tensors[number][6][2] = [Table({0: ("b", 0), 1: ("i", 6000)}) for _ in range(2)]
    refused(load, net.bytes(net.op("DENSIFY", [number])), "a level of a sparse tensor would take .* bytes")


@given(st.lists(st.tuples(st.floats(0, 1), st.integers(1, 255)), min_size=1, max_size=4))
def test_changed_bytes_give_a_model_or_a_typed_error(flips):
    harmless(load, flipped(changed(lambda table: None, (0, 1, 2), (1,), (1,), (2,)), flips))


@pytest.mark.parametrize("shape", [(3, 4), (1, 1), (5,)])
def test_a_tensor_of_zeros_has_no_indices(shape):
    """Every row of its compressed level is empty."""
    net = Network()
    number = sparse(net, np.zeros(shape, "f4"), tuple(range(len(shape))), {len(shape) - 1})
    net.buffers[-1][0] = np.zeros(0, "u1")
    tensor = TfliteSource(memoryview(net.bytes(number)), "net").tensor(number)
    assert tensor.array is None, "an empty buffer holds no constant"
    places = next_places(Level(compressed([0, 0, 0, 0], []), 4, 1), np.arange(0, 12, 4), Allowance(0))
    assert places.size == 0 and places.dtype == np.int64


def compressed(segments, indices):
    """The table of a compressed level."""
    root = Table({0: ("b", 1), 2: ("B", 1), 3: Table({0: ints(*segments)}), 4: ("B", 1), 5: Table({0: ints(*indices)})})
    raw = memoryview(written(root))
    return wire.Table(raw, wire.unpack(raw, 0, "I"))


@pytest.mark.parametrize("size", [4, 3])
def test_indices_of_a_level_reach_its_last_and_rows_keep_their_own(size):
    level = Level(compressed([0, 2, 2, 3], [0, 3, 1]), size, 10)
    if size == 3:
        with pytest.raises(FormatError, match="indices outside a level of 3"):
            next_places(level, np.array([0, 100, 200]), Allowance(0))
        return
    assert next_places(level, np.array([0, 100, 200]), Allowance(0)).tolist() == [0, 30, 210]
