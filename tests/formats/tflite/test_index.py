"""Gathers, one-hot, ranges and the k largest of TFLite beside NumPy, and what is refused."""

import numpy as np
import pytest

from cgraph.errors import FormatError
from tests.support.tflite_models import Network, results_of

X = np.random.default_rng(0).standard_normal((2, 3, 4)).astype("f4")
PLACES = np.array([[2, 0], [1, 1]], "i4")


@pytest.mark.parametrize("axis", [1, 2, -2])
def test_elements_are_taken_along_the_axis(axis):
    net = Network()
    y = net.op("GATHER", [net.input(X.shape), net.constant(PLACES)], axis=axis)
    np.testing.assert_array_equal(results_of(net, [y], X)[0], np.take(X, PLACES, axis), strict=True)


def test_each_element_of_a_batch_has_its_own_places():
    net = Network()
    y = net.op("GATHER", [net.input(X.shape), net.constant(PLACES)], axis=1, batch_axes=1)
    want = np.stack([np.take(x, places, 0) for x, places in zip(X, PLACES)])
    np.testing.assert_array_equal(results_of(net, [y], X)[0], want, strict=True)


def written(kind, *operands, results=1, dtype="float32", **options):
    net = Network()
    made = [net.constant(x) if isinstance(x, np.ndarray) else net.input(x) for x in operands]
    y = net.op(kind, made, *[dtype] * results, **options)
    ys = y if results > 1 else [y]
    return results_of(net, ys, *(np.ones(x, "f4") for x in operands if not isinstance(x, np.ndarray)))


def whole(*numbers):
    return np.array(numbers, "i4")


ROWS = whole(0, 1, 1)[:, None]
REFUSED = {
    "batches that differ": (lambda: written("GATHER", (3, 4), whole((1,), (0,)), axis=1, batch_axes=1), "do not fit"),
    "a batch beyond the axis": (
        lambda: written("GATHER", (2, 4), whole((1, 0), (0, 1)), axis=0, batch_axes=1), "1 axes of a batch, up to axis",
    ),
    "a batch beyond the places": (
        lambda: written("GATHER", (2, 4, 3), whole(1, 0), axis=2, batch_axes=2), "2 axes of a batch, up to axis 2",
    ),
    "a batch before the first": (
        lambda: written("GATHER", (2, 4), whole(1, 0), axis=1, batch_axes=-2), "-1 axes of a batch",
    ),
    "a negative size": (lambda: written("SCATTER_ND", ROWS, (3, 4), whole(-5, 4)), "has a negative size"),
    "positions of other axes": (lambda: written("SCATTER_ND", ROWS[:, [0] * 3], (3,), whole(5, 4)), "do not fit"),
    "updates of another shape": (lambda: written("SCATTER_ND", ROWS, (3, 3), whole(5, 4)), r"\[3,3\]"),
    "positions of three axes": (
        lambda: written("SPARSE_TO_DENSE", ROWS[None], whole(4), (3,), np.float32([0])), "do not fit",
    ),
    "positions of one axis in two": (
        lambda: written("SPARSE_TO_DENSE", whole(1, 2), whole(4, 5), (2,), np.float32([0])), "do not fit",
    ),
    "two numbers for the rest": (
        lambda: written("SPARSE_TO_DENSE", whole(1, 2), whole(4), (2,), np.float32([0, 1])), "2 numbers for the rest",
    ),
    "segments that fall": (lambda: written("SEGMENT_SUM", (3, 4), whole(0, 1, 0)), "ascending from 0"),
    "segments below 0": (lambda: written("SEGMENT_SUM", (3, 4), whole(-1, 0, 1)), "ascending from 0"),
    "segments of other rows": (lambda: written("SEGMENT_SUM", (3, 4), whole(0, 1)), "one for each row"),
    "segments of two axes": (lambda: written("SEGMENT_SUM", (1, 3), whole((0, 0, 0))), "one for each row"),
    "other rows": (lambda: written("UNSORTED_SEGMENT_MAX", (3, 4), whole(0, 1), whole(2)), "do not fit data"),
    "fewer than no segments": (
        lambda: written("UNSORTED_SEGMENT_SUM", (2,), whole(0, 0), whole(-1)), "-1 segments, .* do not fit",
    ),
    "an update that is too large": (
        lambda: written("DYNAMIC_UPDATE_SLICE", (3, 4), (3, 5), whole(0, 0)), "an update .* does not fit",
    ),
    "an update of fewer axes": (
        lambda: written("DYNAMIC_UPDATE_SLICE", (3, 4), (4,), whole(0, 0)), "an update .* does not fit",
    ),
    "a position of fewer axes": (
        lambda: written("DYNAMIC_UPDATE_SLICE", (3, 4), (1, 1), whole(0)), "an update .* does not fit",
    ),
    "boundaries that fall": (
        lambda: written("BUCKETIZE", (3,), dtype="int32", boundaries=np.float32([1, 0])), "ascending numbers",
    ),
    "no boundaries": (lambda: written("BUCKETIZE", (3,), dtype="int32"), "ascending numbers"),
    "keys of two axes": (
        lambda: written("HASHTABLE_LOOKUP", whole((1,)), whole(1, 2), (2, 3), results=2), "do not fit",
    ),
    "fewer values than keys": (
        lambda: written("HASHTABLE_LOOKUP", whole(1), whole(1, 2, 3), (2, 3), results=2), "do not fit",
    ),
    "no keys": (
        lambda: written("HASHTABLE_LOOKUP", whole(1), np.zeros(0, "i4"), np.zeros((0, 3), "f4"), results=2), "not fit",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_operands_that_do_not_fit_are_refused(name):
    act, match = REFUSED[name]
    with pytest.raises(FormatError, match=match):
        act()


@pytest.mark.parametrize("form", [{"zero": 3}, {"dtype": "uint8"}, {"scale": [0.1] * 4, "zero": (0, 1)}], ids=str)
def test_a_table_of_bytes_whose_rows_become_floats_is_symmetric_with_scales_of_rows(form):
    how = {"scale": 0.1, **form}
    net = Network()
    table = net.constant(np.ones((3, 4), how.pop("dtype", "int8")), **how)
    with pytest.raises(FormatError, match="a table whose rows become floats must be int8"):
        results_of(net, [net.op("EMBEDDING_LOOKUP", [net.constant(whole(2, 0)), table])])


def test_rows_of_a_quantised_table_keep_its_scale():
    net = Network()
    table = net.constant(np.ones((3, 4), "int8"), scale=0.1)
    y = net.op("EMBEDDING_LOOKUP", [net.constant(whole(2, 0)), table], {"dtype": "int8", "scale": 0.2})
    with pytest.raises(FormatError, match="another scale than the table"):
        results_of(net, [y])


def test_last_axis_of_indices_names_a_row():
    net = Network()
    y = net.op("GATHER_ND", [net.input(X.shape), net.constant(np.array([[1, 2], [0, 1], [1, 0]], "i4"))])
    np.testing.assert_array_equal(results_of(net, [y], X)[0], X[[1, 0, 1], [2, 1, 0]], strict=True)


@pytest.mark.parametrize("axis", [-1, 0, 1])
def test_one_hot_has_the_on_value_at_the_index_and_the_off_value_elsewhere(axis):
    places = np.array([[1, 0, 4], [3, -1, 2]], "i4")  # 4 and -1 are outside
    net = Network()
    values = [net.constant(np.array(n, dtype)) for n, dtype in ((4, "i4"), (2.5, "f4"), (-1.0, "f4"))]
    y = net.op("ONE_HOT", [net.input(places.shape, "int32"), *values], axis=axis)
    want = np.where(places[..., None] == np.arange(4), np.float32(2.5), np.float32(-1))
    want = np.moveaxis(want, -1, axis)
    np.testing.assert_array_equal(results_of(net, [y], places)[0], want, strict=True)


@pytest.mark.parametrize("odd", [2, 3])
def test_one_on_value_and_one_off_value_are_expected(odd):
    net = Network()
    values = [np.array(4, "i4"), np.array([1.0], "f4"), np.array([0.0], "f4")]
    values[odd - 1] = np.array([1.0, 2.0], "f4")
    y = net.op("ONE_HOT", [net.input((3,), "int32"), *map(net.constant, values)], axis=-1)
    want = "2 elements, the off value 1" if odd == 2 else "1 elements, the off value 2"
    with pytest.raises(FormatError, match=f"the on value has {want}; each must have one"):
        results_of(net, [y], np.zeros(3, "i4"))


@pytest.mark.parametrize("numbers", [(1, 7, 2), (1, 8, 2), (5, -2, -3), (3, 3, 1), (4, 1, 1), (0.5, 2.0, 0.5)])
def test_a_range_ends_before_its_limit(numbers):
    dtype = "f4" if isinstance(numbers[0], float) else "i4"
    net = Network()
    parts = [net.constant(np.array(n, dtype)) for n in numbers]
    name = np.dtype(dtype).name
    y = net.op("ADD", [net.input((1,), name), net.op("RANGE", parts, name)], name)
    got = results_of(net, [y], np.ones(1, dtype))[0]
    np.testing.assert_array_equal(got, np.arange(*numbers, dtype=dtype) + np.ones(1, dtype))


def test_the_largest_come_in_descending_order_with_their_indices():
    net = Network()
    pair = net.op("TOPK_V2", [net.input(X.shape), net.constant(np.array([3], "i4"))], "float32", "int32")
    values, places = results_of(net, pair, X)
    np.testing.assert_array_equal(values, -np.sort(-X)[..., :3], strict=True)
    np.testing.assert_array_equal(places, np.argsort(-X)[..., :3].astype("i4"), strict=True)


@pytest.mark.parametrize("dtype", ["uint8", "int8", "int64"])
@pytest.mark.parametrize("result", ["float32", "int32", "int64"])
def test_one_hot_has_the_dtype_of_its_result_whatever_that_of_its_indices(dtype, result):
    """Beside indices that are outside: the depth itself, and, of signed numbers, those below 0."""
    places = np.array([[0, 3, 4], [2, 200 if dtype == "uint8" else -1, 1]]).astype(dtype)
    net = Network()
    values = [net.constant(np.array(n, "i4")) for n in (4, 7, -2)]
    y = net.op("ONE_HOT", [net.input(places.shape, dtype), *values], result, axis=-1)
    want = np.where(places[..., None] == np.arange(4), 7, -2).astype(result)
    np.testing.assert_array_equal(results_of(net, [y], places)[0], want, strict=True)


@pytest.mark.parametrize(("dtypes", "count"), [(("float32", "int32"), 1), (("float32", "int64"), 4)])
def test_places_of_the_largest_have_their_own_dtype(dtypes, count):
    net = Network()
    pair = net.op("TOPK_V2", [net.input(X.shape), net.constant(np.array([count], "i4"))], *dtypes)
    found = results_of(net, pair, X)
    assert tuple(x.dtype.name for x in found) == dtypes
    np.testing.assert_array_equal(found[1], np.argsort(-X)[..., :count])
