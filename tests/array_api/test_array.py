"""Arrays stay lazy until they are asked, are computed once, and share Functions by the structure of their graphs."""

import gc
import operator
from types import SimpleNamespace

import numpy as np
import pytest

from cgraph import array_api as xp
from cgraph.array_api.array import MOST_NODES, Array
from cgraph.array_api.calls import COUNTS
from cgraph.array_api.values import FUNCTIONS, walk
from tests.support.tolerance import assert_near, near


def ramp(n: int = 5, dtype: str = "float64") -> xp.Array:
    return xp.asarray(np.arange(n, dtype=dtype))


def new_functions(action) -> int:
    """How many Functions an action compiles."""
    before = len(FUNCTIONS)
    action()
    return len(FUNCTIONS) - before


def test_nothing_is_computed_until_a_value_is_asked_for():
    y = xp.sum(xp.sin(ramp()) * 2 + 1)
    assert y.is_lazy and y.shape == () and y.dtype == xp.float64
    assert float(y) == near(float(np.sum(np.sin(np.arange(5.0)) * 2 + 1)), "float64 through float32")
    assert not y.is_lazy


def test_numbers_are_no_part_of_the_structure():
    float((ramp(7) * 2.5 + 1)[0])
    assert new_functions(lambda: float((ramp(7) * 3.75 + 9)[0])) == 0
    assert new_functions(lambda: (xp.where(ramp(7) > 3, ramp(7), 0.0)).value) <= 1
    assert new_functions(lambda: (xp.where(ramp(7) > 5, ramp(7), 2.0)).value) == 0


def test_shapes_and_dtypes_are_part_of_the_structure():
    np.asarray(xp.cos(ramp(11)))
    assert new_functions(lambda: np.asarray(xp.cos(ramp(12)))) == 1
    assert new_functions(lambda: np.asarray(xp.cos(ramp(11, "float32")))) == 1


def test_a_shared_array_that_is_alive_is_computed_once():
    below = xp.exp(ramp())
    one, other = below + 1, below * 2
    np.asarray(one)
    assert not below.is_lazy  # the run that gave `one` gave it too
    assert new_functions(lambda: assert_near(other, np.exp(np.arange(5.0)) * 2, "float64 through float32")) <= 1


def test_a_loop_is_run_in_pieces():
    x = ramp()
    for _ in range(2 * MOST_NODES + 3):
        x = x + 1
        assert x.count <= MOST_NODES
    np.testing.assert_array_equal(x, np.arange(5.0) + 2 * MOST_NODES + 3)


@pytest.mark.parametrize("more, is_lazy", [(-1, True), (0, True), (1, False)])
def test_an_array_waits_up_to_the_limit_of_pending_nodes(more, is_lazy):
    x = Array(ramp().node + 1.0, None, MOST_NODES + more)
    assert x.is_lazy is is_lazy
    np.testing.assert_array_equal(x, np.arange(5.0) + 1)


def test_setting_elements_leaves_other_arrays_as_they_were():
    x = ramp()
    before, same = x + 0, x
    x[1:3] = 9.0
    np.testing.assert_array_equal(before, [0, 1, 2, 3, 4])
    np.testing.assert_array_equal(same, [0, 9, 9, 3, 4])
    lazy = xp.square(ramp())
    lazy[0] = 7.0
    assert lazy.is_lazy
    lazy[lazy > 8] = 0.0
    np.testing.assert_array_equal(lazy, [7, 1, 4, 0, 0])


def test_the_array_that_it_was_made_of_may_change():
    given = np.arange(3.0)
    x = xp.asarray(given)
    given[:] = 0
    np.testing.assert_array_equal(x + 0, [0, 1, 2])
    assert xp.asarray(x, copy=False) is x


def test_an_operator_in_place_keeps_shape_and_dtype():
    x = ramp()
    x += 1
    x *= xp.asarray(2.0)
    np.testing.assert_array_equal(x, [2, 4, 6, 8, 10])
    whole = ramp(3, "int8")
    with pytest.raises(TypeError):
        whole += ramp(3, "int64")
    with pytest.raises(TypeError):
        whole + 1.5


def test_dlpack_goes_both_ways_and_never_gives_away_what_may_not_be_written():
    x = xp.square(ramp())
    np.testing.assert_array_equal(np.from_dlpack(x), np.arange(5.0) ** 2)
    np.testing.assert_array_equal(xp.from_dlpack(np.arange(4)) * 2, [0, 2, 4, 6])
    turned = xp.asarray(np.arange(6.0))[::-1]
    np.testing.assert_array_equal(np.from_dlpack(turned), [5, 4, 3, 2, 1, 0])
    with pytest.raises(BufferError):
        turned.__dlpack__(copy=False)
    np.testing.assert_array_equal(np.from_dlpack(turned, copy=True), [5, 4, 3, 2, 1, 0])
    fixed = np.arange(3.0)
    fixed.flags.writeable = False
    np.testing.assert_array_equal(np.from_dlpack(xp.asarray(fixed, copy=False), copy=True), [0, 1, 2])
    shown = np.from_dlpack(xp.asarray(fixed, copy=False))
    shown[0] = 9
    assert fixed[0] == 0


@pytest.mark.parametrize("options", [
    {"copy": True}, {"copy": False}, {"copy": None}, {"max_version": (1, 0)}, {"max_version": (0, 8)},
    {"dl_device": (1, 0)}, {"dl_device": (2, 0)}, {"stream": 1}, {"max_version": (1, 0), "copy": True}, {},
], ids=str)  # fmt: skip
@pytest.mark.parametrize("computed", [True, False])
@pytest.mark.parametrize("make", [ramp, lambda: xp.sum(ramp()), lambda: ramp()[2], lambda: xp.exp(ramp()[:0])])
def test_an_export_has_each_option_as_numpy_has_it(make, computed, options):
    """The kind of capsule or of error is NumPy's, and bytes are shared where NumPy shares them."""
    x = make()
    if computed:
        x.value  # noqa: B018 - computes it

    def exported(array):
        try:
            capsule = array.__dlpack__(**options)
        except (BufferError, RuntimeError, ValueError) as error:
            return type(error)
        shown = np.from_dlpack(SimpleNamespace(__dlpack__=lambda **_: capsule, __dlpack_device__=lambda: (1, 0)))
        return repr(capsule).split(" at ")[0], np.shares_memory(shown, x.value), shown.tolist()

    assert exported(x) == exported(np.asarray(x))


def test_what_a_graph_cannot_say_numpy_computes():
    z = xp.asarray([1 + 2j, -1j])
    assert_near(xp.exp(z) * 2, np.exp([1 + 2j, -1j]) * 2, "float64 through float32")
    np.testing.assert_array_equal(xp.unique_values(xp.asarray([3, 1, 3])), [1, 3])
    np.testing.assert_array_equal(ramp()[ramp() > 2], [3, 4])
    before = COUNTS["unique_values", "eager"], COUNTS["add", "lazy"]
    xp.unique_values(z + 1)
    assert (COUNTS["unique_values", "eager"], COUNTS["add", "lazy"]) == (before[0] + 1, before[1] + 1)


def test_an_infinity_divided_rounds_to_itself():
    x = xp.asarray([np.inf, -np.inf, 5.0, -5.0])
    found = np.asarray(x // xp.asarray([2.0, 2.0, np.inf, np.inf]))
    np.testing.assert_array_equal(found, [np.inf, -np.inf, 0.0, 0.0])
    assert np.signbit(found).tolist() == [False, True, False, True]


def test_arrays_that_nobody_holds_are_not_computed():
    x = ramp()
    y = xp.sin(xp.cos(x))
    gc.collect()
    assert new_functions(lambda: y.value) <= 1
    assert_near(y, np.sin(np.cos(np.arange(5.0))), "float64 through float32")


def test_graphs_that_read_other_operands_are_other_structures():
    """The operand that comes last, too."""
    x, y = ramp(6), ramp(6) * ramp(6)
    np.asarray(y)
    one, two = (x + y) - x, (x + y) - y
    np.testing.assert_array_equal(one, np.asarray(y))
    np.testing.assert_array_equal(two, np.asarray(x))


def test_which_arrays_are_alive_is_part_of_the_structure():
    """Of one graph, a run gives those that are alive, whichever they were when it was compiled."""

    def steps(x: xp.Array) -> list[xp.Array]:
        first = x + 2
        second = first * 3
        return [first, second, second - 5]

    first, _, last = steps(ramp(6))
    del _
    np.testing.assert_array_equal(last, (np.arange(6.0) + 2) * 3 - 5)
    np.testing.assert_array_equal(first, np.arange(6.0) + 2)
    _, second, last = steps(ramp(6))
    del first, _
    np.testing.assert_array_equal(last, (np.arange(6.0) + 2) * 3 - 5)
    np.testing.assert_array_equal(second, (np.arange(6.0) + 2) * 3)


@pytest.mark.parametrize("is_computed", [False, True])
@pytest.mark.parametrize("shape", [(), (0, 3), (5,), (2, 3), (2, 3, 4)], ids=str)
def test_attributes_are_those_of_the_value_before_and_after_it_is_computed(shape, is_computed):
    value = np.arange(np.prod(shape), dtype="float32").reshape(shape)
    x = xp.asarray(value) + 1
    if is_computed:
        x = xp.asarray(x.value)
    want = value + 1
    for name in ("dtype", "shape", "ndim", "size"):
        assert getattr(x, name) == getattr(want, name), name
        assert type(getattr(x, name)) is type(getattr(want, name)), name
    for name in ("T", "mT") if len(shape) >= 2 else ():
        if name == "mT" or len(shape) == 2:
            np.testing.assert_array_equal(getattr(x, name).value, getattr(want, name), strict=True)
    assert x.device == "cpu" and x.to_device("cpu") is x
    assert repr(x) == f"Array({np.array2string(want, separator=', ')}, dtype=float32)"
    if shape:
        assert len(x) == shape[0]
    else:
        with pytest.raises(TypeError):
            len(x)
    for device, stream in (("gpu", None), ("cpu", 1)):
        with pytest.raises(ValueError, match="Use device='cpu'"):
            x.to_device(device, stream=stream)


@pytest.mark.parametrize("change", ["in place", "elements"])
def test_a_loop_that_changes_one_array_is_run_in_pieces(change):
    x = ramp() * 1
    for i in range(MOST_NODES + 40):
        if change == "elements":
            x[i % 5] = i
        else:
            x += 1
    assert x.count <= MOST_NODES and len(walk(x.node)[0]) < MOST_NODES
    last = np.arange(MOST_NODES + 35.0, MOST_NODES + 40)
    want = last[np.argsort(last % 5)] if change == "elements" else np.arange(5.0) + MOST_NODES + 40
    np.testing.assert_array_equal(x, want)


def test_numpys_arrays_share_the_value_unless_a_copy_or_another_dtype_is_asked_for():
    x = ramp() * 2
    assert np.shares_memory(np.asarray(x), x.value) and np.shares_memory(x.__array__(copy=False), x.value)
    assert not np.shares_memory(np.array(x), x.value)
    for other in (np.asarray(x, "float32"), np.array(x, "float32", copy=True)):
        assert other.dtype == "float32" and other.tolist() == [0, 2, 4, 6, 8]
    with pytest.raises(ValueError, match="copy"):
        np.asarray(x, "float32", copy=False)
    assert x.__dlpack_device__() == np.ones(1).__dlpack_device__() == (1, 0)


@pytest.mark.parametrize("convert", [bool, int, float, complex, operator.index])
def test_an_array_of_one_number_becomes_one_of_python_and_others_do_not(convert):
    for value in (0, 3):
        got, want = convert(xp.asarray(value) * 1), convert(np.asarray(value))
        assert got == want and type(got) is type(want)
    with pytest.raises((TypeError, ValueError)):
        convert(ramp(3))
    if convert is operator.index:
        with pytest.raises(TypeError):
            convert(xp.asarray(1.5))


def test_a_value_that_cannot_be_computed_fails_each_time_and_other_values_are_computed():
    x = ramp() * 2
    outside, inside = xp.take(x, xp.asarray([7])), x + 1
    for _ in range(2):
        with pytest.raises(IndexError):
            outside.value  # noqa: B018 - computes it
        assert outside.is_lazy
    np.testing.assert_array_equal(inside, np.arange(5.0) * 2 + 1)
    np.testing.assert_array_equal(xp.take(x, xp.asarray([4])), [8])


def test_a_computed_array_is_the_leaf_of_those_that_still_wait_for_it():
    """A new leaf would make the graph of `later` compute `first` again."""
    first = xp.exp(ramp())
    waiting = first * 2
    node = first.node
    np.asarray(first)
    assert not first.is_lazy and waiting.is_lazy and first.node is node
    later = waiting + first
    assert set(later.node.operands) == {waiting.node, node}
