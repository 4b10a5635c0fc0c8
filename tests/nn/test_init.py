import numpy as np
import pytest

from cgraph.errors import InputError
from nn import init
from tests.support.tolerance import assert_near


@pytest.mark.parametrize(("shape", "fans"), [((3,), (3, 3)), ((4, 7), (4, 7)), ((8, 3, 5, 5), (75, 200)), ((), (1, 1))])
def test_fans_are_axes_of_matrices_and_windows_of_filters(shape, fans):
    assert init.fans(shape) == fans


@pytest.mark.parametrize("fan", ["in", "out", "mean"])
@pytest.mark.parametrize("normal", [True, False])
def test_the_variance_is_gain_over_fan(fan, normal):
    values = init.Scaled(2.0, fan, normal)((300, 500), np.random.default_rng(0))
    want = 2.0 / {"in": 300, "out": 500, "mean": 400}[fan]
    assert values.dtype == np.float32 and abs(values.var() / want - 1) < 0.02


@pytest.mark.parametrize("shape", [(5, 5), (3, 7), (7, 3), (4, 2, 3)])
def test_orthogonal_rows_or_columns_are_orthonormal(shape):
    matrix = init.Orthogonal()(shape, np.random.default_rng(0)).reshape(shape[0], -1)
    small = matrix @ matrix.T if matrix.shape[0] <= matrix.shape[1] else matrix.T @ matrix
    assert_near(small, np.eye(len(small)), "float32 formulas near zero")


def test_a_truncated_normal_has_no_value_beyond_two_deviations():
    assert np.abs(init.TruncatedNormal(0.5)((1000,), np.random.default_rng(0))).max() <= 1.0


def drawn(start, shape=(5, 8), seed=0):
    return start(shape, np.random.default_rng(seed))


@pytest.mark.parametrize(("low", "high"), [(-0.05, 0.05), (0.0, 1.0), (2.0, 5.0), (-3.0, -1.0), (-1.0, 3.0)])
def test_uniform_values_fill_their_range(low, high):
    values = drawn(init.Uniform(low, high), (5000,))
    assert values.dtype == np.float32 and low <= values.min() and values.max() <= high
    assert values.min() - low < 0.01 * (high - low) > high - values.max()


@pytest.mark.parametrize("normal", [True, False])
@pytest.mark.parametrize("shape", [(2, 3), (3, 2), (1, 8), (5, 2, 3, 1), (7,), ()], ids=str)
def test_a_fan_divides_the_variance_exactly_also_where_the_mean_is_no_integer(normal, shape):
    fan_in, fan_out = init.fans(shape)
    unit = drawn(init.Scaled(fan_in, "in", normal), shape).astype("f8")  # a variance of 1
    for fan, count in (("in", fan_in), ("out", fan_out), ("mean", (fan_in + fan_out) / 2)):
        assert_near(
            drawn(init.Scaled(0.5, fan, normal), shape), unit * np.sqrt(0.5 / count), "float32 formulas near zero"
        )


@pytest.mark.parametrize(
    "start", [init.Scaled(1.0, x, y) for x in ("in", "out", "mean") for y in (True, False)], ids=str
)
@pytest.mark.parametrize("shape", [(0, 3), (3, 0), (0,), (2, 3, 0)], ids=str)
def test_a_weight_without_elements_has_a_first_value_too(start, shape):
    assert drawn(start, shape).shape == shape


@pytest.mark.parametrize(
    ("start", "fields", "value"),
    [
        (init.Constant, {}, {"value": 2.5}),
        (init.Gaussian, {"mean": 0.0, "deviation": 0.05}, {"mean": 3.0}),
        (init.TruncatedNormal, {"deviation": 0.05}, {}),
        (init.Uniform, {"low": -0.05, "high": 0.05}, {}),
        (init.Orthogonal, {"gain": 1.0}, {}),
        (init.Identity, {"gain": 1.0}, {}),
    ],
)
def test_defaults_are_those_of_the_docstrings_and_results_float32(start, fields, value):
    assert np.array_equal(drawn(start()), drawn(start(**fields)))
    other = drawn(start(**value))
    assert other.dtype == np.float32 and other.shape == (5, 8)


def test_mean_deviation_and_gain_move_and_stretch_what_is_drawn():
    plain = drawn(init.Gaussian(0.0, 1.0)).astype("f8")
    assert_near(drawn(init.Gaussian(3.0, 2.0)), 3 + 2 * plain, "float32 formulas near zero")
    assert_near(drawn(init.TruncatedNormal(2.0)), 40 * drawn(init.TruncatedNormal()).astype("f8"), "float32 formulas")
    assert_near(drawn(init.Orthogonal(2.0)), 2 * drawn(init.Orthogonal()).astype("f8"), "float32 formulas")
    np.testing.assert_array_equal(drawn(init.Identity(3.0)), 3 * np.eye(5, 8))
    np.testing.assert_array_equal(drawn(init.Constant(2.5)), np.full((5, 8), 2.5))


def test_the_named_initialisers_are_those_of_their_papers():
    scales = {"LECUN": (1.0, "in"), "GLOROT": (1.0, "mean"), "HE": (2.0, "in")}
    for name, (gain, fan) in scales.items():
        assert getattr(init, f"{name}_NORMAL") == init.Scaled(gain, fan, True)
        assert getattr(init, f"{name}_UNIFORM") == init.Scaled(gain, fan, False)
    bound = np.abs(drawn(init.STANDARD, (16, 2000))).max()
    assert 0.249 < bound <= 0.25 and init.TANH == init.GLOROT_UNIFORM


@pytest.mark.parametrize("gain", [-1.0, float("nan")])
def test_a_gain_below_zero_and_an_unknown_fan_are_refused(gain):
    for start in (init.Scaled(gain, "in", True), init.Scaled(1.0, "out of range", True)):
        with pytest.raises(InputError, match="Use 'in', 'out' or 'mean'"):
            drawn(start)
    assert not drawn(init.Scaled(0.0, "in", True)).any()


def test_an_own_function_gets_shape_and_generator_and_its_result_is_float32():
    values = drawn(init.Custom(lambda shape, rng: rng.random(shape)))
    assert values.dtype == np.float32
    np.testing.assert_array_equal(values, np.random.default_rng(0).random((5, 8)).astype("f4"))
