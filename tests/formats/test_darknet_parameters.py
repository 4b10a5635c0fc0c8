"""Sources of Darknet's parameters: headers of every version, drawn values within their limit, and requests."""

import numpy as np
import pytest

from cgraph.errors import FormatError
from cgraph.formats.allowance import Allowance
from cgraph.formats.darknet.parameters import LARGEST, FreeParameters, RandomParameters, StoredParameters, random_array
from tests.support.tolerance import near


def stored(folder, header, values):
    path = folder / "net.weights"
    path.write_bytes(np.array(header, "<i4").tobytes() + np.array(values, "<f4").tobytes())
    return StoredParameters(path, Allowance(0))


@pytest.mark.parametrize(
    ("version", "words", "transposed"),
    [
        ((0, 0), 4, False),
        ((0, 1), 4, False),
        ((0, 2), 5, False),
        ((1, 0), 5, False),
        ((1000, 0), 5, False),
        ((0, 1000), 5, False),
        ((1001, 0), 4, True),
        ((0, 1001), 4, True),
    ],
)
def test_the_version_tells_the_header_and_the_order_of_matrices(tmp_path, version, words, transposed):
    source = stored(tmp_path, [*version, *[9] * (words - 2)], [1.5, 2.5])
    assert source.transposed is transposed
    np.testing.assert_array_equal(source.take((2,), "bias", None).op.array, [1.5, 2.5])
    source.finish()


def test_arrays_follow_each_other_and_what_is_left_is_counted(tmp_path):
    source = stored(tmp_path, [0, 2, 0, 0, 0], np.arange(10))
    first, second = source.take((2, 3), "filters", None), source.take((3,), "bias", 7.0)
    np.testing.assert_array_equal(first.op.array, [[0, 1, 2], [3, 4, 5]])
    np.testing.assert_array_equal(second.op.array, [6, 7, 8])  # not what training starts from
    assert (first.name, second.name) == ("filters", "bias")
    with pytest.raises(FormatError, match=r"net.weights: 4 bytes are left after the last layer"):
        source.finish()
    with pytest.raises(FormatError, match=r"net.weights: 1.scale \[2\] needs 8 bytes, 4 are left"):
        source.take((2,), "1.scale", None)
    assert source.take((1,), "last", None).op.array == 9
    source.finish()


def test_a_file_without_a_header_or_with_a_part_of_a_number_is_refused(tmp_path):
    path = tmp_path / "net.weights"
    path.write_bytes(bytes(15))
    with pytest.raises(FormatError, match="net.weights: 15 bytes are not a .weights file"):
        StoredParameters(path, Allowance(0))
    path.write_bytes(bytes(16 + 3))
    with pytest.raises(FormatError, match="net.weights: 3 bytes after the header are not float32"):
        StoredParameters(path, Allowance(0))
    path.write_bytes(bytes(16))
    StoredParameters(path, Allowance(0)).finish()


def test_the_size_of_the_file_widens_the_allowance(tmp_path):
    path, allowance = tmp_path / "net.weights", Allowance(3)
    path.write_bytes(bytes(32))
    StoredParameters(path, allowance)
    assert allowance.file_nbytes == 35


def test_drawn_values_come_from_the_seed_in_turn_and_starts_draw_nothing():
    a, b = RandomParameters(3, 10_000), RandomParameters(3, 10_000)
    first = a.take((4, 5), "x", None).op.array
    assert first.dtype == np.float32
    np.testing.assert_array_equal(b.take((6,), "scale", 1.0).op.array, np.ones(6, "f4"))
    np.testing.assert_array_equal(b.take((4, 5), "x", None).op.array, first)
    assert not np.array_equal(a.take((4, 5), "y", None).op.array, first)
    assert not np.array_equal(RandomParameters(4, 10_000).take((4, 5), "x", None).op.array, first)
    a.finish()


def test_all_drawn_parameters_together_have_a_limit():
    source = RandomParameters(0, 40)
    source.take((6,), "scale", 1.0)
    with pytest.raises(FormatError, match=r"bias \[5\] would draw 20 B, 16 B are left; raise drawn="):
        source.take((5,), "bias", 0.0)
    source.take((4,), "bias", 0.0)
    assert source.left == 0


@pytest.mark.parametrize(("shape", "inputs"), [((100, 50, 3, 4), 600), ((60_000, 2), 2), ((60_000,), 1)])
def test_the_variance_is_two_by_the_number_of_inputs(shape, inputs):
    values = random_array(np.random.default_rng(0), shape, None)
    assert values.shape == shape and values.dtype == np.float32
    assert values.std() == near(np.sqrt(2 / inputs), "drawn deviations")
    assert random_array(np.random.default_rng(0), (3, 0), None).shape == (3, 0)


def test_open_parameters_are_listed_with_their_start_and_need_no_memory():
    source = FreeParameters()
    x, y = source.take((2, 3), "filters", None), source.take((2,), "scale", 1.0)
    assert source.requests == [(x, None), (y, 1.0)]
    assert (x.name, x.shape, str(x.dtype)) == ("filters", (2, 3), "float32")
    source.take((LARGEST // 4,), "all", None)
    with pytest.raises(FormatError, match=r"more \[274877906945\] needs more than 1099511627776 bytes"):
        source.take((LARGEST // 4 + 1,), "more", None)
    assert len(source.requests) == 3
    source.finish()
