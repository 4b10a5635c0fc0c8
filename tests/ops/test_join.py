"""Joining, repeating and rolling: any axis, empty and single operands, promotion, and gradients of each operand."""

import numpy as np
import pytest

import cgraph as cg
from cgraph.errors import DTypeError, ShapeError
from cgraph.ir.graph import apply
from cgraph.kernels.kernel import Pointer, View
from cgraph.ops.join import Concat
from tests.support.computed import computed, gradients

X = np.arange(6.0).reshape(2, 3)


@pytest.mark.parametrize("axis", [0, 1, -1, -2, None])
def test_concat_along_any_axis_with_an_empty_operand(axis):
    wide = X if axis is None else np.concatenate([X, X], axis)
    arrays = [X, np.take(X, [], axis if axis is not None else 0), -wide]
    np.testing.assert_array_equal(computed(cg.concat(list(map(cg.Var, arrays)), axis)), np.concatenate(arrays, axis))


def test_one_operand_is_itself_and_dtypes_are_promoted():
    x = cg.Var(X)
    assert cg.concat([x]) is x
    assert cg.concat([cg.Var((1,), "int8"), cg.Var((1,), "float32"), [True]]).dtype == "float32"
    assert computed(cg.concat([x, 7 * np.ones((2, 1))], 1))[:, 3].tolist() == [7, 7]


def test_what_does_not_fit_is_refused():
    with pytest.raises(ShapeError, match="concat got no operands; pass at least one"):
        cg.concat([])
    f = cg.Var((2, 3), name="f")
    for other, message in (
        ((2,), "differ in rank or dtype"),
        ((3, 2), "differ along an axis other than 0; use another"),
    ):
        with pytest.raises(ShapeError, match=message):
            cg.concat([f, cg.Var(other)])
    with pytest.raises(ShapeError, match="axis 2 is outside the 2 axes"):
        cg.concat([f, f], 2)


def test_the_third_operand_is_checked_too():
    specs = [cg.Var(s).spec for s in ((2, 3), (2, 3), (2, 4))]
    with pytest.raises(ShapeError, match="axis other than 0"):
        Concat(0).infer(*specs)
    assert Concat(1).infer(*specs).shape == (2, 10)


def test_each_operand_has_its_place_and_its_part_of_the_gradient():
    a, b, c = cg.Var(X[:, :1]), cg.Var(X[:, :2]), cg.Var(X[:, :1])
    seed = np.arange(8.0).reshape(2, 4)
    got = gradients(cg.concat([a, b, c], 1), a, b, c, seed=seed)
    for g, want in zip(got, (seed[:, :1], seed[:, 1:3], seed[:, 3:])):
        np.testing.assert_array_equal(g, want)
    out = View(Pointer("out"), (2, 4), (32, 8), "f8")
    places = Concat(1).places(out, a.spec, b.spec, c.spec)
    assert [(v.at.offset, v.shape, v.strides) for v in places] == [
        (0, (2, 1), (32, 8)), (8, (2, 2), (32, 8)), (24, (2, 1), (32, 8)),
    ]  # fmt: skip


def test_images_are_joined_in_bands_along_channels_only():
    spec = cg.Var((1, 2, 6, 5)).spec
    assert Concat(0).cut(spec, spec) is Concat(2).cut(spec, spec) is None
    assert len(Concat(1).cut(spec, spec, spec).reads) == 3
    assert Concat(1).cut(cg.Var((2, 3, 4)).spec) is None
    assert len(Concat(1).cut(spec).reads) == 1


@pytest.mark.parametrize("axis", [0, 1, 2, -1, -3])
def test_stack_makes_an_axis(axis):
    arrays = [X, 2 * X]
    np.testing.assert_array_equal(computed(cg.stack(list(map(cg.Var, arrays)), axis)), np.stack(arrays, axis))
    assert cg.stack([cg.Var(X)] * 5).shape == (5, 2, 3)


@pytest.mark.parametrize("shift, axis", [(1, None), (-2, None), (7, 0), (-1, 1), (0, 1), ((1, -1), (0, 1)), (2, (0, 1)),
                                         ((1, 1), (1, 1)), (4, -1), ((1, 3), 1), ((1, 2), None)])  # fmt: skip
def test_roll_brings_elements_in_at_the_other_end(shift, axis):
    np.testing.assert_array_equal(computed(cg.roll(cg.Var(X), shift, axis)), np.roll(X, shift, axis))
    assert cg.roll(cg.Var((0, 3)), shift, axis).shape == (0, 3)


@pytest.mark.parametrize("shift", [1, -5, 9, [2], [1, -4]], ids=str)
@pytest.mark.parametrize("axis", [None, 0, -1, (0, 1)], ids=str)
def test_a_shift_may_be_a_value(shift, axis):
    x, s = cg.Var(X), cg.Var(np.array(shift))
    np.testing.assert_array_equal(computed(cg.roll(x, s, axis)), np.roll(X, shift, axis))
    if isinstance(shift, list):
        np.testing.assert_array_equal(computed(cg.roll(x, [s[0], *shift[1:]], axis)), np.roll(X, shift, axis))
    np.testing.assert_array_equal(
        cg.jit(np.roll, static_argnames="axis")(X, np.array(shift), axis=axis), np.roll(X, shift, axis)
    )


def test_a_shift_is_a_whole_number_for_each_axis():
    with pytest.raises(ShapeError, match="3 shifts do not fit 2 axes"):
        cg.roll(cg.Var(X), (1, 2, 3), (0, 1))
    with pytest.raises(DTypeError, match="integers"):
        cg.roll(cg.Var(X), cg.Var(()), 0)
    assert cg.roll(cg.Var((0, 3)), cg.Var((), "int64"), 0).shape == (0, 3)


def test_a_roll_by_whole_turns_is_the_operand():
    x = cg.Var(X)
    assert cg.roll(x, 6, 1) is x
    assert gradients(cg.roll(x, 1, 1), x, seed=X).tolist() == [[1, 2, 0], [4, 5, 3]]


@pytest.mark.parametrize("reps", [2, (2, 3), (2, 1, 3), 0, (1, 0), ()])
def test_tile_repeats_the_whole(reps):
    for x in (X, X[0], np.array(5.0)):
        np.testing.assert_array_equal(computed(cg.tile(cg.Var(x), reps)), np.tile(x, reps))


@pytest.mark.parametrize("axis", [None, 0, 1, -1])
@pytest.mark.parametrize("repeats", [0, 1, 3])
def test_repeat_repeats_each_element(repeats, axis):
    x = cg.Var(X)
    np.testing.assert_array_equal(computed(cg.repeat(x, repeats, axis)), np.repeat(X, repeats, axis))
    np.testing.assert_array_equal(gradients(cg.repeat(x, repeats, axis), x), np.full(X.shape, float(repeats)))


def test_each_axis_makes_another_node():
    x = cg.Var((2, 2))
    assert apply(Concat(0), x, x) is cg.concat([x, x]) is not cg.concat([x, x], 1)


def test_a_stack_of_two_shapes_names_both_operands():
    with pytest.raises(ShapeError, match=r"operands x float32\[3\] and w float32\[4\] differ in shape"):
        cg.stack([cg.Var((3,), name="x"), cg.Var((4,), name="w")])
