"""Layers that change shapes: what is left of each sample, and which samples they refuse."""

import numpy as np
import pytest

import cgraph as cg
import nn
from cgraph.errors import ShapeError
from tests.nn.support import assert_close, draw, run


def test_shape_layers():
    x = draw(2, 3, 4)
    assert_close(run(nn.Reshape((4, -1)), x), x.reshape(2, 4, 3))
    assert_close(run(nn.Flatten(), x), x.reshape(2, 12))
    assert_close(run(nn.Slice((slice(1, 3), 0)), x), x[:, 1:3, 0])
    assert_close(run(nn.Input((3, 4)), x), x)
    with pytest.raises(ShapeError, match="samples of shape"):
        run(nn.Input((4, 3)), x)


def test_an_input_says_what_a_sample_is():
    assert nn.Input((3, 4)).samples == (nn.Sample((3, 4), "float32"),)
    assert nn.Input([5], "int32").samples == (nn.Sample((5,), "int32"),)
    with pytest.raises(ShapeError) as error:
        nn.Input((4, 3))(cg.Var((2, 3, 4), name="x"))
    assert str(error.value).startswith("Input takes samples of shape [4, 3], not <x float32[2,3,4] at ")
    assert str(error.value).endswith("Reshape them, or change the Input.")


@pytest.mark.parametrize(
    ("shape", "want"), [((-1,), (2, 12)), ((2, -1, 3), (2, 2, 2, 3)), ((12,), (2, 12)), ((-1, 12), (2, 1, 12))]
)
def test_the_axis_of_minus_one_takes_the_rest_of_a_sample(shape, want):
    x = draw(2, 3, 4)
    got = run(nn.Reshape(shape), x)
    np.testing.assert_array_equal(got, x.reshape(want))


def test_a_shape_of_another_size_is_refused():
    with pytest.raises(ShapeError):
        nn.Reshape((5, -1))(cg.Var((2, 3, 4)))


def test_samples_of_one_number_and_of_none_are_flattened():
    assert nn.Flatten()(cg.Var((3,))).shape == (3, 1)
    assert nn.Flatten()(cg.Var((3, 0, 4))).shape == (3, 0)


@pytest.mark.parametrize(
    ("index", "want"),
    [
        (1, np.s_[:, 1]),
        (slice(1, None), np.s_[:, 1:]),
        ((slice(None), -1), np.s_[:, :, -1]),
        ((..., slice(0, 4, 2)), np.s_[..., 0:4:2]),
    ],
    ids=str,
)
def test_an_index_skips_the_batch(index, want):
    x = draw(2, 3, 4)
    np.testing.assert_array_equal(run(nn.Slice(index), x), x[want])


@pytest.mark.parametrize(
    ("sample", "shape", "want"),
    [
        ((0, 3), (-1, 3), (0, 3)),
        ((0, 3), (0, -1), (0, 0)),
        ((2, 0), (-1,), (0,)),
        ((6,), (-1, 2), (3, 2)),
        ((), (-1,), (1,)),
    ],
    ids=str,
)
@pytest.mark.parametrize("n", [0, 1, 2])
def test_the_rest_of_a_sample_may_be_empty_and_does_not_depend_on_the_batch(sample, shape, want, n):
    assert nn.Reshape(shape)(cg.Var((n, *sample))).shape == (n, *want)


@pytest.mark.parametrize("shape", [(3, 4), [3, 4]], ids=lambda x: type(x).__name__)
def test_an_input_takes_its_shape_as_any_sequence(shape):
    x = cg.Var((2, 3, 4))
    assert nn.Input(shape)(x) is x
    with pytest.raises(ShapeError, match=r"samples of shape \[3, 4\]"):
        nn.Input(shape)(cg.Var((2, 3, 5)))


@pytest.mark.parametrize("n", [0, 1, 3])
def test_a_batch_of_any_size_is_flattened(n):
    assert nn.Flatten()(cg.Var((n, 3, 4))).shape == (n, 12)
