"""Sizes that are computed at run time: of slices, ranges, shapes, repeats and frames, as onnxruntime has them."""

from typing import Any

import numpy as np
import pytest

import cgraph
from cgraph.errors import FormatError, InputError, PositionError
from cgraph.formats.onnx import compile_sizes, load
from tests.support.onnx_open import agrees, node, numbers, open_model

pytest.importorskip("onnxruntime")
X = ("f4", (4, 3))
PAIR, FOUR, ONE = ("i8", (2,)), ("i8", (4,)), ("i8", ())


def x_of(*shape: int) -> np.ndarray:
    return np.random.default_rng(3).normal(size=shape or (4, 3)).astype("f4")


def given(name: str, *values: Any, **others: Any) -> list[dict[str, Any]]:
    return [{name: np.array(v, np.int64), **others} for v in values]


SLICES = [
    {"x": x_of(), "s": numbers(a, b), "e": numbers(c, d)}
    for a, b, c, d in ((0, 0, 4, 3), (1, 1, -1, -1), (3, 0, 1, 2), (-9, -9, 9, 9), (2**63 - 1, 0, -(2**63), 1))
]
SIZES: dict[str, tuple] = {
    "first columns": (
        [node("Unsqueeze", ["n", "zero"], ["e"]), node("Slice", ["x", "zero", "e", "one"], ["y"])],
        {"x": X, "n": ONE},
        {"zero": numbers(0), "one": numbers(1)},
        given("n", 0, 1, 2, 3, 7, -1, -5, x=x_of()),
        {},
    ),
    "a part": ([node("Slice", ["x", "s", "e"], ["y"])], {"x": X, "s": PAIR, "e": PAIR}, {}, SLICES, {}),
    "a part backwards": (
        [node("Slice", ["x", "s", "e", "a", "t"], ["y"])],
        {"x": X, "s": PAIR, "e": PAIR},
        {"a": numbers(0, 1), "t": numbers(-1, -2)},
        SLICES,
        {},
    ),
    "a range": (
        [node("Range", ["z", "n", "o"], ["y"])],
        {"n": ONE},
        {"z": np.int64(0), "o": np.int64(1)},
        given("n", 0, 3, 8, -2),
        {"n": 8},
    ),
    "a range down": (
        [node("Range", ["n", "z", "o"], ["y"])],
        {"n": ONE},
        {"z": np.int64(0), "o": np.int64(-3)},
        given("n", 0, 3, 8),
        {"n": 8},
    ),
    "a range of floats": (
        [node("Range", ["z", "n", "o"], ["y"])],
        {"n": ("f4", ())},
        {"z": np.float32(0), "o": np.float32(0.5)},
        [{"n": np.float32(v)} for v in (0, 1.2, 3)],
        {"n": 3},
    ),
    "a range within its result": (
        [node("Range", ["a", "b", "c"], ["y"])],
        {"a": ONE, "b": ONE, "c": ONE},
        {},
        [{"a": np.int64(a), "b": np.int64(b), "c": np.int64(c)} for a, b, c in ((1, 9, 2), (9, 1, -3), (2, 1, 1))],
        {"y": 5},
    ),
    "the largest k": (
        [node("TopK", ["x", "n"], ["y", "z"], axis=1)],
        {"x": X, "n": ("i8", (1,))},
        {},
        given("n", [1], [2], [3], x=x_of()),
        {},
    ),
    "one-hot": (
        [node("OneHot", ["i", "n", "v"], ["y"])],
        {"i": ("i8", (3,)), "n": ONE},
        {"v": np.array([0, 1], "f4")},
        given("n", 1, 3, 5, i=numbers(0, -1, 2)),
        {"n": 5},
    ),
    "repeats": (
        [node("Tile", ["x", "n"], ["y"])],
        {"x": X, "n": PAIR},
        {},
        given("n", [1, 1], [2, 1], [0, 1], [1, 3], x=x_of()),
        {"n": 3},
    ),
    "expanded": (
        [node("Expand", ["x", "n"], ["y"])],
        {"x": ("f4", (1, 3)), "n": PAIR},
        {},
        given("n", [1, 1], [5, 3], [2, 1], x=x_of(1, 3)),
        {"n": 5},
    ),
    "of a shape": (
        [node("ConstantOfShape", ["n"], ["y"])],
        {"n": PAIR},
        {},
        given("n", [1, 1], [5, 3], [0, 2]),
        {"n": 5},
    ),
    "reshaped": (
        [node("Reshape", ["x", "n"], ["y"])],
        {"x": X, "n": PAIR},
        {},
        given("n", [12, 1], [2, 6], [4, 3], [3, 4], [-1, 2], [0, -1], [0, 3], x=x_of()),
        {},
    ),
    "split": (
        [node("Split", ["x", "n"], ["y", "z"], axis=0)],
        {"x": X, "n": PAIR},
        {},
        given("n", [4, 0], [2, 2], [1, 3], x=x_of()),
        {},
    ),
    "cropped": (
        [node("CenterCropPad", ["x", "n"], ["y"])],
        {"x": X, "n": PAIR},
        {},
        given("n", [2, 2], [5, 3], [4, 1], [7, 6], x=x_of()),
        {"n": 7},
    ),
    "the same length again": (
        [
            node("Slice", ["x", "s", "e"], ["a"]),
            node("Shape", ["a"], ["h"]),
            node("ConstantOfShape", ["h"], ["c"]),
            node("Add", ["a", "c"], ["d"]),
            node("Expand", ["v", "h"], ["f"]),
            node("Mul", ["d", "f"], ["y"]),
        ],
        {"x": X, "s": PAIR, "e": PAIR},
        {"v": np.float32(2)},
        SLICES,
        {},
    ),
}
for _mode in ("constant", "edge", "reflect", "wrap"):
    SIZES[f"frame {_mode}"] = (
        [node("Pad", ["x", "n", "v"], ["y"], mode=_mode)],
        {"x": X, "n": FOUR},
        {"v": np.float32(5)},
        given(
            "n", [0, 0, 0, 0], [1, 2, 2, 0], [2, 1, 3, 2], *([[-1, 0, 0, 2]] if _mode == "constant" else []), x=x_of()
        ),
        {"n": 3},
    )


@pytest.mark.parametrize("name", SIZES)
def test_a_size_that_is_computed_when_run(name):
    nodes, inputs, constants, feeds, maximum = SIZES[name]
    agrees(open_model(nodes, inputs, constants, " ".join(nodes[-1].output)), feeds, maximum)


def compressed(axis: int | None, n: int) -> bytes:
    attributes = {} if axis is None else {"axis": axis}
    return open_model([node("Compress", ["x", "m"], ["y"], **attributes)], {"x": X, "m": ("?", (n,))})


@pytest.mark.parametrize(("axis", "n"), [(None, 7), (None, 12), (0, 4), (1, 2), (-1, 3)])
def test_elements_are_kept_where_a_condition_holds_when_run(axis, n):
    rng = np.random.default_rng(1)
    agrees(compressed(axis, n), [{"x": x_of(), "m": rng.random(n) < share} for share in (0, 0.5, 1)])


@pytest.mark.parametrize("in_order", [0, 1])
def test_different_elements_are_found_when_run(in_order):
    nodes = [node("Unique", ["x"], ["y", "a", "b", "c"], sorted=in_order)]
    rng = np.random.default_rng(1)
    feeds = [{"x": rng.integers(0, most, 9).astype("f4")} for most in (4, 1, 20)]
    agrees(open_model(nodes, {"x": ("f4", (9,))}, {}, "y a b c"), feeds)


@pytest.mark.parametrize("in_order", [0, 1])
@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("open_axis", [0, 1])
def test_different_slices_of_a_value_of_dynamic_length(in_order, axis, open_axis):
    rows = node("Compress", ["x", "m"], ["rows"], axis=open_axis)
    nodes = [rows, node("Unique", ["rows"], ["y", "a", "b", "c"], sorted=in_order, axis=axis)]
    rng = np.random.default_rng(3)
    feeds = [{"x": rng.integers(0, 2, (6, 6)).astype("f4"), "m": np.arange(6) < n} for n in (1, 2, 4, 6)]
    agrees(open_model(nodes, {"x": ("f4", (6, 6)), "m": ("?", (6,))}, {}, "y a b c"), feeds)


# -- what is refused --------------------------------------------------------------------------------------------------


def test_a_length_that_nothing_bounds_is_refused_with_the_node_the_axis_and_the_way_out():
    raw = open_model([node("ConstantOfShape", ["n"], ["y"], name="zeros")], {"n": PAIR})
    ways = "maximum={'n': n} or maximum={'y': n} or constants={'n': value}"
    with pytest.raises(FormatError, match=f"in ConstantOfShape 'zeros' -> y: nothing bounds axis 0.*give {ways}"):
        load(raw)


def test_a_number_above_its_maximum_ends_the_run():
    raw = open_model([node("ConstantOfShape", ["n"], ["y"])], {"n": PAIR})
    function = load(raw, maximum={"n": 5}).compile()
    assert function(n=numbers(5, 0))[0].shape == (5, 0)
    with pytest.raises(InputError, match="maximum gives 5 for 'n'; it is larger"):
        function(n=numbers(1, 6))
    with pytest.raises(InputError, match="-1 elements along axis 0"):
        function(n=numbers(-1, 2))


def test_a_length_that_comes_of_nan_ends_the_run_where_it_is_beyond_its_bound():
    """A float between two bounds is trusted to be no NaN, which a run checks."""
    steps = [
        node("Clip", ["x", "low", "high"], ["a"]),
        node("Cast", ["a"], ["b"], to=7),
        node("Sub", ["one", "b"], ["n"]),
    ]
    constants = {"low": np.float32(-5), "high": np.float32(0), "one": np.int64(-1), "z": np.int64(0), "o": np.int64(1)}
    raw = open_model([*steps, node("Range", ["z", "n", "o"], ["y"])], {"x": ("f4", ())}, constants)
    function = agrees(raw, [{"x": np.float32(x)} for x in (-3.7, 0, -99, 5)])
    assert function.outputs[0].shape == (4,)
    with pytest.raises(InputError, match="in Range '' -> y: .*axis 0 is longer than 4"):
        function(x=np.float32(np.nan))


def test_a_result_may_be_given_less_room_than_it_could_take():
    raw = open_model([node("NonZero", ["x"], ["y"])], {"x": X})
    model = load(raw, maximum={"y": 3})
    assert model.outputs[0].shape == (2, 3)
    function, x = model.compile(), np.zeros((4, 3), "f4")
    x[1, 2] = x[3, 0] = 1
    np.testing.assert_array_equal(function(x=x)[0], [[1, 3], [2, 0]])
    with pytest.raises(InputError, match="maximum gives 3 for 'y'; it has more elements along axis 1"):
        function(x=x + 1)


@pytest.mark.parametrize(
    ("maximum", "match"),
    [
        ({"q": 5}, "maximum gives 'q', but no computed value has this name"),
        ({"n": -1}, "give an integer >= 0"),
        ({"n": 2.5}, "give an integer"),
        ({"n": True}, "give an integer"),
        ({"x": 5, "n": 5}, "maximum gives 5 for 'x', which is neither"),
    ],
)
def test_a_maximum_that_says_nothing_is_refused(maximum, match):
    raw = open_model(
        [node("Range", ["z", "n", "o"], ["y"])], {"n": ONE, "x": ("?", (2,))}, {"z": np.int64(0), "o": np.int64(1)}
    )
    with pytest.raises(FormatError, match=match):
        load(raw, maximum={"n": 9} | maximum)


def test_lengths_that_do_not_fit_end_the_run():
    nodes = [node("NonZero", ["x"], ["a"]), node("NonZero", ["m"], ["b"]), node("Add", ["a", "b"], ["y"])]
    function = load(open_model(nodes, {"x": X, "m": ("?", (4, 3))})).compile()
    assert function(x=np.eye(4, 3, dtype="f4"), m=np.eye(4, 3) > 0)[0].shape == (2, 3)
    with pytest.raises(InputError, match="in Add '' -> y: lengths known only at run time do not fit"):
        function(x=np.eye(4, 3, dtype="f4"), m=np.ones((4, 3), bool))


@pytest.mark.parametrize("k", [-1, 4])
def test_more_of_the_largest_than_there_are_end_the_run(k):
    raw = open_model([node("TopK", ["x", "k"], ["y", "z"])], {"x": X, "k": ("i8", (1,))}, {}, "y z")
    with pytest.raises(InputError, match="k is above their number|-1 elements"):
        load(raw).compile()(x=x_of(), k=numbers(k))


@pytest.mark.parametrize("place", [3, -4, 2**40])
def test_a_position_behind_an_open_length_ends_the_run(place):
    nodes = [node("NonZero", ["m"], ["n"]), node("Squeeze", ["n", "zero"], ["i"]), node("Gather", ["i", "p"], ["y"])]
    function = load(open_model(nodes, {"m": ("?", (5,)), "p": ("i8", (1,))}, {"zero": numbers(0)})).compile()
    mask = np.array([0, 1, 1, 0, 1], bool)
    assert function(m=mask, p=numbers(-3))[0] == [1]
    with pytest.raises(PositionError):
        function(m=mask, p=numbers(place))


def test_a_function_of_open_lengths_takes_no_buffers_and_is_saved(tmp_path):
    function = load(open_model([node("NonZero", ["x"], ["y"])], {"x": X})).compile()
    with pytest.raises(InputError, match="out= is not supported"):
        function(x_of(), out=[np.empty((2, 12), np.int64)])
    function.save(tmp_path / "f")
    np.testing.assert_array_equal(cgraph.load(tmp_path / "f")(x_of())[0], function(x_of())[0])
    with pytest.raises(FormatError, match="x .* cannot hold y"):
        load(open_model([node("NonZero", ["x"], ["y"])], {"x": X})).with_state({"x": "y"})


def test_a_value_that_is_given_decides_as_before():
    raw = open_model([node("NonZero", ["x"], ["y"])], {"x": X})
    model = load(raw, constants={"x": np.eye(4, 3, dtype="f4")})
    assert model.outputs[0].shape == (2, 3) and not model.is_open and list(model.fixed) == ["x"]


def test_sizes_that_vary_go_with_lengths_known_only_when_run():
    function = compile_sizes(open_model([node("NonZero", ["x"], ["y"])], {"x": ("f4", ("B", 3))}), most={"B": 4})
    for x in (np.eye(4, 3, dtype="f4"), np.ones((2, 3), "f4"), np.zeros((3, 3), "f4")):
        np.testing.assert_array_equal(function(x)[0], np.nonzero(x))


def test_a_simulated_gpu_cuts_results_too():
    function = load(open_model([node("NonZero", ["x"], ["y"])], {"x": X})).compile(engine="cuda-sim")
    np.testing.assert_array_equal(function(x=np.eye(4, 3, dtype="f4"))[0], [[0, 1, 2], [0, 1, 2]])
