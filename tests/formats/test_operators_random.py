"""Random numbers of a seed: their moments, ends, dtypes and shapes by attributes, operands and defaults."""

import numpy as np
import pytest
from onnx import TensorProto

from cgraph.errors import FormatError
from cgraph.formats.onnx import load
from tests.support.onnx_models import FLOAT, INT64, one, results_of
from tests.support.onnx_open import node, open_model

MANY = 20_000


def drawn(kind, inputs=(), **attributes):
    model = load(one(kind, inputs, **attributes))
    return model.compile(engine="reference")(*(np.full(x.shape, 0.3, x.dtype) for x in model.inputs))[0]


@pytest.mark.parametrize("like", [False, True])
def test_random_numbers_have_the_moments_that_attributes_say(like):
    def numbers(kind, **attributes):
        if like:
            return drawn(f"{kind}Like", [("x", FLOAT, (MANY,))], **attributes)
        return drawn(kind, shape=[MANY], **attributes)

    for attributes, mean, deviation in (({}, 0, 1), ({"mean": 2.0, "scale": 0.5}, 2, 0.5)):
        got = numbers("RandomNormal", **attributes)
        assert got.dtype == np.float32 and abs(got.mean() - mean) < 0.05 and abs(got.std() - deviation) < 0.03
    for attributes, low, high in (({}, 0, 1), ({"low": -3.0, "high": 2.0}, -3, 2)):
        got = numbers("RandomUniform", **attributes)
        assert low <= got.min() < low + 0.01 * (high - low) and high - 0.01 * (high - low) < got.max() < high
    assert numbers("RandomNormal", dtype=TensorProto.DOUBLE).dtype == np.float64
    np.testing.assert_array_equal(numbers("RandomNormal", seed=3.0), numbers("RandomNormal", seed=3.0))
    np.testing.assert_array_equal(numbers("RandomNormal"), numbers("RandomNormal", seed=0.0))
    assert (numbers("RandomNormal", seed=3.0) != numbers("RandomNormal", seed=4.0)).mean() > 0.9


def test_coins_fall_as_often_as_their_shares_say():
    for attributes, dtype in (({}, "float32"), ({"dtype": INT64}, "int64"), ({"seed": 5.0}, "float32")):
        got = drawn("Bernoulli", [("x", FLOAT, (MANY,))], **attributes)
        assert got.dtype == dtype and set(got.tolist()) == {0, 1} and abs(got.mean() - 0.3) < 0.02


def test_shapes_and_dtypes_come_from_attributes_or_the_operand():
    double = [("x", TensorProto.DOUBLE, (2, 3))]
    for kind in ("RandomNormal", "RandomUniform"):
        got = drawn(kind, shape=[3, 0, 2])
        assert (got.shape, got.dtype) == ((3, 0, 2), np.float32)
        for attributes, dtype in (({}, np.float64), ({"dtype": FLOAT}, np.float32)):
            got = drawn(f"{kind}Like", double, **attributes)
            assert (got.shape, got.dtype) == ((2, 3), dtype)
        with pytest.raises(FormatError, match="shape"):
            load(one(kind, []))
    assert drawn("Bernoulli", double).dtype == np.float64


def test_a_seed_is_cut_to_an_integer_and_may_be_negative():
    numbers = {seed: drawn("RandomUniform", shape=[9], seed=seed).tolist() for seed in (-1.0, 0.0, 0.75, 1.0)}
    assert numbers[0.75] == numbers[0.0] and len({str(x) for x in numbers.values()}) == 3


@pytest.mark.parametrize(("share", "want"), [(0.0, 0), (1.0, 1)])
def test_a_share_of_none_or_all_is_sure(share, want):
    model = load(one("Bernoulli", [("x", FLOAT, (500,))]))
    got = model.compile(engine="reference")(np.full(500, share, "f4"))[0]
    np.testing.assert_array_equal(got, np.full(500, want))


def test_classes_are_drawn_as_often_as_their_probabilities_say():
    shares = np.array([[0.2, 0.3, 0.5, 0], [0.9, 0.1, 0, 0]], "f4")
    with np.errstate(divide="ignore"):
        logarithms = np.log(shares)
    for attributes, dtype in (({}, "int32"), ({"dtype": INT64, "seed": 3.0}, "int64")):
        model = load(one("Multinomial", [("x", FLOAT, (2, 4))], sample_size=MANY, **attributes))
        got = model.compile(engine="reference")(logarithms)[0]
        assert got.shape == (2, MANY) and got.dtype == dtype
        assert np.abs([np.bincount(row, minlength=4) / MANY for row in got] - shares).max() < 0.02
    assert drawn("Multinomial", [("x", FLOAT, (2, 4))]).shape == (2, 1)
    with pytest.raises(FormatError, match="3 axes"):
        load(one("Multinomial", [("x", FLOAT, (2, 4, 1))]))


@pytest.mark.parametrize("ratio", [None, np.float32(0.25)])
def test_a_dropout_in_training_scales_what_its_seed_keeps(ratio):
    x, share = np.random.default_rng(0).normal(size=MANY).astype("f4"), 0.5 if ratio is None else 0.75

    def dropped(**attributes):
        return results_of("Dropout", [x, ratio, np.bool_(True)], (1, 2), by="nobody", results=2, **attributes)[0]

    masks = []
    for attributes in ({}, {"seed": 0}, {"seed": 7}, {"seed": 8}):
        y, mask = dropped(**attributes)
        assert mask.dtype == bool and abs(mask.mean() - share) < 0.02
        np.testing.assert_array_equal(y, np.where(mask, x / np.float32(share), np.float32(0)))
        masks.append(mask)
    np.testing.assert_array_equal(masks[0], masks[1])
    for other in (0, 3):
        assert (masks[2] != masks[other]).mean() > 0.3
    with pytest.raises(FormatError, match="ratio 1.0 is outside"):
        results_of("Dropout", [x, np.float32(1), np.bool_(True)], (1, 2), by="nobody")


@pytest.mark.parametrize("kind", ["RandomNormalLike", "RandomUniformLike", "Bernoulli"])
def test_as_many_numbers_are_drawn_as_an_array_of_dynamic_length_has(kind):
    nodes = [node("Slice", ["x", "zero", "n", "one"], ["part"]), node(kind, ["part"], ["y"], seed=3.0)]
    constants = {"zero": np.array([0]), "one": np.array([1])}
    function = load(open_model(nodes, {"x": ("f4", (3, 40)), "n": ("i8", (1,))}, constants)).compile()
    x = np.full((3, 40), 0.5, "f4")
    whole = function(x, np.array([40]))[0]
    assert 0 < whole.std() < 2
    for n in (0, 1, 17, 39):
        (drawn,) = function(x, np.array([n]))
        assert drawn.shape == (3, n) and drawn.dtype == np.float32
        np.testing.assert_array_equal(drawn, whole[:, :n])
