"""Attributes, operands and sizes that the importer does not take: each is refused by name, where the file is read."""

from typing import Any

import numpy as np
import pytest
from onnx import helper, numpy_helper

from cgraph.errors import FormatError
from cgraph.formats.allowance import Allowance
from cgraph.formats.onnx import load
from cgraph.formats.onnx.tensors import array_of, sparse_array
from tests.support.onnx_models import FLOAT, INT64, model_of, one

X = ("x", FLOAT, (2, 4))
IMAGE = ("x", FLOAT, (1, 3, 4, 4))
ROWS = ("x", FLOAT, (3, 1, 2))  # of a recurrent layer: length, batch, size
FIVE = np.ones(5, "f4")


def recurrent(kind: str, rows: int, **attributes: Any) -> bytes:
    weights = {"w": np.zeros((1, rows, 2), "f4"), "r": np.zeros((1, rows, 5), "f4")}
    return one(kind, [ROWS], weights, hidden_size=5, **attributes)


def text(**changes: Any) -> bytes:
    given = {
        "mode": "TF", "min_gram_length": 1, "max_gram_length": 1, "max_skip_count": 0, "ngram_counts": [0],
        "ngram_indexes": [0, 1], "pool_int64s": [5, 6],
    }  # fmt: skip
    return one("TfIdfVectorizer", [("x", INT64, (4,))], **{k: v for k, v in (given | changes).items() if v is not None})


def with_attribute(kind: int) -> bytes:
    """A node whose attribute is of kind; what it holds is empty."""
    node = helper.make_node("Elu", ["x"], ["y"])
    node.attribute.add(name="alpha", type=kind)
    return model_of([node], [X])


REFUSED = {
    "no kind of attribute": (with_attribute(0), "attribute alpha is of kind"),
    "sparse tensors in an attribute": (with_attribute(12), "attribute alpha is of kind"),
    "types in an attribute": (with_attribute(14), "attribute alpha is of kind"),
    "an operand that is missing": (model_of([helper.make_node("Add", ["x", ""], ["y"])], [X]), "operand 1 is missing"),
    "a number that is several": (one("Dropout", [X], {"r": FIVE}, opset=12), "operand 1 has 5 elements"),
    "a ratio": (one("Dropout", [X], {"r": np.float32(1.0), "t": np.bool_(True)}), r"ratio 1.0 is outside \[0, 1\)"),
    "a direction": (recurrent("RNN", 5, direction="sideways"), "direction 'sideways'"),
    "rows of gates": (recurrent("GRU", 5), "weights of 5 rows do not fit 3 gates of 5"),
    "an activation of a layer": (recurrent("RNN", 5, activations=["sin"]), "activation 'sin'"),
    "reduction of writes": (
        one("ScatterND", [X], {"i": np.zeros((1, 2), np.int64), "v": FIVE[:1]}, reduction="mean"),
        "reduction 'mean'",
    ),
    "reduction of a loss": (
        one("NegativeLogLikelihoodLoss", [X], {"t": np.zeros(2, np.int64)}, reduction="most"),
        "reduction 'most'",
    ),
    "a norm": (one("LpNormalization", [X], p=3), "p=3 is not supported"),
    "quantization to floats": (
        one("QuantizeLinear", [X], {"s": np.float32(1), "z": np.float32(0)}),
        "quantization to float32",
    ),
    "how pixels count": (
        one("Resize", [IMAGE], {"r": FIVE[:0], "s": FIVE[:4] * 2}, coordinate_transformation_mode="odd"),
        "coordinates 'odd'",
    ),
    "how places are rounded": (
        one("Resize", [("x", FLOAT, (4,))], {"r": FIVE[:0], "s": np.array([1.5], "f4")}, nearest_mode="odd"),
        "nearest_mode 'odd'",
    ),
    "how pixels are joined": (one("Resize", [IMAGE], {"r": FIVE[:0], "s": FIVE[:4]}, mode="odd"), "mode 'odd'"),
    "no size": (one("Resize", [IMAGE], {"r": FIVE[:0], "s": FIVE[:0]}), "neither scales nor sizes"),
    "a scale of 0": (one("Resize", [IMAGE], {"r": FIVE[:0], "s": FIVE[:4] * 0}), "must be above 0"),
    "padding of samples": (
        one("GridSample", [IMAGE], {"g": np.zeros((1, 2, 2, 2), "f4")}, padding_mode="odd"),
        "padding 'odd'",
    ),
    "a grid of one axis": (
        one("AffineGrid", [("x", FLOAT, (1, 2, 3))], {"n": np.array([1, 1, 4])}),
        "is not supported. Give",
    ),
    "a window over three axes": (
        one("DeformConv", [("x", FLOAT, (1, 1, 3, 3, 3))], {"f": np.ones((1, 1, 1, 1, 1), "f4"), "o": FIVE}),
        "3 axes besides batch",
    ),
    "an open axis of nothing": (
        one("Reshape", [("x", FLOAT, (0, 3))], {"s": np.array([0, -1, 0])}, allowzero=1),
        "leaves axis -1",
    ),
    "lengths that do not add up": (one("Split", [X], {"n": np.array([1, 2])}, axis=1), "do not add up to axis 1"),
    "lengths below 0": (one("Split", [X], {"n": np.array([-1, 5])}, axis=1), "do not add up to axis 1"),
    "too few pads": (one("Pad", [X], {"p": np.array([1, 1, 1])}), "do not fit 2 axes: give two for each"),
    "no window": (one("STFT", [("x", FLOAT, (1, 8, 1))], {"n": np.int64(2)}), "neither a window nor a frame"),
    "a window that does not fit": (
        one("STFT", [("x", FLOAT, (1, 8, 1))], {"n": np.int64(2), "w": np.ones(9, "f4")}),
        "frames of 9 every 2",
    ),
    "a step of 0": (
        one("STFT", [("x", FLOAT, (1, 8, 1))], {"n": np.int64(0), "w": np.ones(8, "f4")}),
        "frames of 8 every 0",
    ),
    "n-grams of strings": (text(pool_int64s=None, pool_strings=["a", "b"]), "operand 0 holds no strings"),
    "runs at negative places": (text(ngram_indexes=[0, -1]), r"ngram_indexes \[0, -1\] do not fit"),
    "runs behind the last": (text(ngram_counts=[0, 3]), r"ngram_counts \[0, 3\] .* do not fit"),
    "runs that go back": (text(ngram_counts=[2, 1], max_gram_length=2), r"ngram_counts \[2, 1\] .* do not fit"),
    "heads that nobody counts": (
        one("RotaryEmbedding", [("x", FLOAT, (1, 2, 8))], {name: np.ones((1, 2, 4), "f4") for name in "cs"}, 23),
        "num_heads is missing",
    ),
    "no sequence": (one("SequenceLength", [X]), "operand 0 is not a sequence"),
    "an empty optional": (
        model_of([helper.make_node("OptionalGetElement", [""], ["y"])], [X], opset=18),
        "the optional is empty",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_not_supported_is_named(name):
    raw, match = REFUSED[name]
    with pytest.raises(FormatError, match=match):
        load(raw)


def sparse(shape: tuple[int, ...], indices: Any, values: Any = (1.0, 2.0)) -> np.ndarray:
    values = numpy_helper.from_array(np.array(values, "f4"), "w")
    proto = helper.make_sparse_tensor(values, numpy_helper.from_array(np.array(indices, np.int64)), shape)
    return sparse_array(proto, array_of, Allowance(0))


def test_sparse_tensors_have_positions_in_order_or_by_axis():
    np.testing.assert_array_equal(sparse((2, 2), [0, 3]), [[1, 0], [0, 2]])
    np.testing.assert_array_equal(sparse((2, 2), [[0, 1], [1, 0]]), [[0, 1], [2, 0]])


@pytest.mark.parametrize(
    "indices", [[0, 4], [-1, 0], [0], [[0, 2], [1, 0]], [[0, 0], [-1, 0]], [[0], [1]], [[0, 0, 0], [1, 0, 0]]]
)
def test_positions_outside_a_sparse_tensor_are_refused(indices):
    with pytest.raises(FormatError, match="indices outside"):
        sparse((2, 2), indices)


def test_a_tensor_holds_as_many_values_as_its_shape_says_of_its_own_dtype():
    proto = helper.make_tensor("w", FLOAT, (2,), [1.0, 2.0])
    np.testing.assert_array_equal(array_of(proto), [1, 2])
    proto.float_data.append(3.0)
    with pytest.raises(FormatError, match="holds 3 values"):
        array_of(proto)
    small = helper.make_tensor("w", 3, (1,), [127])  # int8
    assert array_of(small) == 127
    small.int32_data[0] = 128
    with pytest.raises(FormatError, match="int8 cannot represent"):
        array_of(small)
