"""Attributes that the onnx package's node tests always give, or never, compared with ONNX Runtime."""

from typing import Any

import numpy as np
import pytest
from onnx import helper

from cgraph.formats.onnx import load
from tests.support.onnx_models import FLOAT, INT64, model_of, one
from tests.support.tolerance import assert_close, assert_near

RNG = np.random.default_rng(0)
X, ROWS, IMAGE = ("x", FLOAT, (2, 4)), ("x", FLOAT, (3, 1, 2)), ("x", FLOAT, (1, 2, 5, 6))


def normal(*shape: int) -> np.ndarray:
    return RNG.normal(size=shape).astype("f4")


def layer(name: str, **attributes: Any) -> bytes:
    weights = {"w": normal(1, 3, 2), "r": normal(1, 3, 3), "b": normal(1, 6)}
    return one("RNN", [ROWS], weights, hidden_size=3, activations=[name], **attributes)


def text(**changes: Any) -> bytes:
    given = {
        "mode": "TF", "min_gram_length": 1, "max_gram_length": 2, "max_skip_count": 1, "ngram_counts": [0, 2],
        "ngram_indexes": [0, 2, 1], "pool_int64s": [0, 1, 1, 0], "weights": [0.5, 2.0, 3.0],
    }  # fmt: skip
    return one("TfIdfVectorizer", [("x", INT64, (7,))], **(given | changes))


MODELS = {
    "Swish": one("Swish", [X], opset=24),
    "Swish of another slope": one("Swish", [X], opset=24, alpha=0.5),
    "GlobalLpPool": one("GlobalLpPool", [IMAGE]),
    "GlobalLpPool of 3": one("GlobalLpPool", [IMAGE], p=3),
    "IsInf of nothing": model_of(
        [
            helper.make_node("IsInf", ["x"], ["b"], detect_negative=0, detect_positive=0),
            helper.make_node("Cast", ["b"], ["y"], to=FLOAT),
        ],
        [X],
    ),
    "GroupNormalization": one(
        "GroupNormalization", [("x", FLOAT, (2, 4, 3))], {"s": normal(4), "b": normal(4)}, num_groups=2
    ),
    "TF": text(),
    "IDF": text(mode="IDF"),
    "TFIDF": text(mode="TFIDF"),
    "HardSigmoid": one("HardSigmoid", [X]),
    "Selu": one("Selu", [X]),
    "ThresholdedRelu": one("ThresholdedRelu", [X]),
    "Shrink": one("Shrink", [X], bias=0.25),
    "LpNormalization": one("LpNormalization", [X]),
    "LpNormalization of 1": one("LpNormalization", [X], p=1, axis=0),
    "LRN": one("LRN", [IMAGE], size=3),
    "MeanVarianceNormalization": one("MeanVarianceNormalization", [IMAGE]),
    "DepthToSpace": one("DepthToSpace", [("x", FLOAT, (1, 8, 2, 3))], blocksize=2),
    "DeformConv": one("DeformConv", [IMAGE], {"f": normal(3, 2, 2, 2), "o": normal(1, 8, 4, 5)}),
    **{f"a layer of {name}": layer(name) for name in ("Relu", "Softsign", "Softplus", "Sigmoid", "Tanh")},
    "a layer of Affine": layer("Affine", activation_alpha=[0.5], activation_beta=[0.25]),
    "a layer of ScaledTanh": layer("ScaledTanh", activation_alpha=[0.5], activation_beta=[0.25]),
    "a layer of LeakyRelu": layer("LeakyRelu", activation_alpha=[0.125]),
    "a layer of HardSigmoid": layer("HardSigmoid", activation_alpha=[0.125], activation_beta=[0.25]),
    "a layer of Elu": layer("Elu", activation_alpha=[0.5]),
    "a layer of ThresholdedRelu": layer("ThresholdedRelu", activation_alpha=[0.25]),
}


REGIONS = {"r": np.array([[0, 0, 3, 4], [1, 1, 1.5, 1.5]], "f4"), "i": np.zeros(2, np.int64)}
for ratio in (0, 2):
    for way in ("half_pixel", "output_half_pixel"):
        MODELS[f"RoiAlign of {ratio} points, {way}"] = one(
            "RoiAlign", [IMAGE], REGIONS, sampling_ratio=ratio, output_height=2, coordinate_transformation_mode=way
        )
for start, end in ((-9, -12), (9, -9), (-5, -9), (3, 0), (-1, -3)):
    MODELS[f"Slice back from {start} to {end}"] = one(
        "Slice", [X], {"s": np.array([start]), "e": np.array([end]), "a": np.array([1]), "t": np.array([-1])}
    )
for way in ("round_prefer_floor", "round_prefer_ceil", "floor", "ceil"):
    for places in ("half_pixel", "pytorch_half_pixel", "asymmetric", "align_corners"):
        MODELS[f"Resize to {way}, {places}"] = one(
            "Resize", [("x", FLOAT, (2, 5))], {"r": normal(0), "s": normal(0), "n": np.array([3, 7])},
            nearest_mode=way, coordinate_transformation_mode=places,
        )  # fmt: skip


@pytest.mark.parametrize("name", MODELS)
def test_the_importer_means_what_onnx_runtime_computes(name):
    peer = pytest.importorskip("onnxruntime")
    model = load(MODELS[name])
    values = [RNG.integers(0, 2, x.shape) if x.dtype.kind == "i" else normal(*x.shape) for x in model.inputs]
    (found,) = model.compile(engine="reference")(*values)
    (want,) = peer.InferenceSession(MODELS[name]).run(None, {x.name: v for x, v in zip(model.inputs, values)})
    assert found.shape == want.shape and found.dtype == want.dtype
    assert_close(found, want)


def test_negative_padding_cuts_images():
    f = normal(3, 2, 2, 2)
    cut = load(one("Conv", [IMAGE], {"f": f}, pads=[-1, 1, 1, -2])).compile(engine="reference")
    whole = load(one("Conv", [("x", FLOAT, (1, 2, 4, 4))], {"f": f}, pads=[0, 1, 1, 0])).compile(engine="reference")
    x = normal(1, 2, 5, 6)
    np.testing.assert_array_equal(cut(x)[0], whole(x[:, :, 1:, :-2])[0])


@pytest.mark.parametrize("axis", [0, 1, 2, -2, -3])
@pytest.mark.parametrize("parts", [1, 2])
@pytest.mark.parametrize("length", [None, 2, 6])
def test_fourier_transforms_along_any_axis(axis, parts, length):
    x = normal(3, 5, 4, parts)
    along, size = range(4)[axis], x.shape[axis] if length is None else length
    given = {"n": np.int64(size), "a": np.int64(axis)}
    for inverse in (0, 1):
        (found,) = load(one("DFT", [("x", FLOAT, x.shape)], given, inverse=inverse)).compile(engine="reference")(x)
        numbers = x[..., 0] + 1j * (x[..., 1] if parts == 2 else 0)
        want = (np.fft.ifft if inverse else np.fft.fft)(numbers, size, along)
        assert_near(found, np.stack([want.real, want.imag], -1), "float32 coordinates")
