"""Operators with random attributes, and operands and sizes known only at run time: the same answer, or a refusal.

An operand's axis becomes one of dynamic length by leaving out slices of a longer one, which hold NaN. So
whatever stands behind a value would show.
"""

import zlib
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from cgraph.errors import FormatError, InputError
from cgraph.formats.model import Model
from cgraph.formats.onnx import load
from cgraph.formats.unspecified import UnknownError
from tests.support.draws import Draws
from tests.support.onnx_draws import DRAWN
from tests.support.tolerance import assert_close

SEEDS = range(3)
OLDEST = 9  # of opsets with Compress
MOST = 30  # of what nothing else bounds
CLOSED = (
    "AffineGrid", "AveragePool", "BlackmanWindow", "Col2Im", "ConvInteger", "DFT", "DeformConv", "DepthToSpace",
    "Det", "DynamicQuantizeLinear", "GlobalAveragePool", "GlobalLpPool", "GlobalMaxPool", "GridSample",
    "GroupNormalization", "HammingWindow", "HannWindow", "InstanceNormalization", "LRN", "LpPool", "MatMulInteger",
    "MaxRoiPool", "MaxUnpool", "MeanVarianceNormalization", "MelWeightMatrix", "NegativeLogLikelihoodLoss",
    "QLinearConv", "QLinearMatMul", "RMSNormalization", "Range", "ReverseSequence",
    "RotaryEmbedding", "STFT", "SoftmaxCrossEntropyLoss", "SpaceToDepth", "TensorScatter", "Upsample",
    "com.microsoft.Attention", "com.microsoft.CDist", "com.microsoft.DynamicQuantizeMatMul",
    "com.microsoft.EmbedLayerNormalization", "com.microsoft.FusedConv", "com.microsoft.GroupQueryAttention",
    "com.microsoft.Inverse", "com.microsoft.MatMulIntegerToFloat", "com.microsoft.MatMulNBits",
    "com.microsoft.MultiHeadAttention", "com.microsoft.NhwcMaxPool", "com.microsoft.QAttention",
    "com.microsoft.QGemm", "com.microsoft.QLinearAdd", "com.microsoft.QLinearAveragePool",
    "com.microsoft.QLinearConcat", "com.microsoft.QLinearGlobalAveragePool", "com.microsoft.QLinearLeakyRelu",
    "com.microsoft.QLinearMul", "com.microsoft.QLinearSigmoid", "com.microsoft.QLinearSoftmax",
    "com.microsoft.QLinearWhere", "com.microsoft.RotaryEmbedding", "com.microsoft.SkipLayerNormalization",
    "com.microsoft.SkipSimplifiedLayerNormalization",
)  # fmt: skip
"""Kinds of which no operand takes an axis of dynamic length that is drawn, or that have none to open."""
SAMPLED = (
    "AveragePool", "Conv", "ConvTranspose", "DepthToSpace", "GRU", "GlobalAveragePool", "GlobalLpPool", "GlobalMaxPool",
    "GridSample", "GroupNormalization", "InstanceNormalization", "LRN", "LSTM", "LpPool", "MaxPool", "RNN", "RoiAlign",
    "SpaceToDepth", "com.microsoft.FusedConv",
)  # fmt: skip
"""Kinds that take any number of samples, or of steps of a sequence, along the first axis of an operand."""
SIZED = (
    "CenterCropPad", "Expand", "NonMaxSuppression", "OneHot", "Pad", "QLinearConv", "Range", "Reshape", "Resize",
    "Slice", "Split", "Tile", "TopK", "com.microsoft.GroupQueryAttention",
)  # fmt: skip
"""Kinds of which a size or a position may be known only at run time; all others ask for it, or have none."""


def drawn(kind: str, seed: int) -> tuple[Any, dict[str, np.ndarray], list[np.ndarray]]:
    """A model, what it is given, and the results."""
    model = DRAWN[kind](Draws(zlib.crc32(kind.encode()), seed))
    return onnx.load_from_string(model.raw), dict(model.given), results(load(model.raw), model.given)


def results(model: Model, given: Any) -> list[np.ndarray]:
    return model.compile(engine="reference")(*(given[x.name] for x in model.inputs))


def with_open_axis(
    proto: Any, name: str, x: np.ndarray, rng: np.random.Generator, axis: int
) -> tuple[bytes, dict[str, Any]]:
    """The model with an input that a mask makes of a longer one, and what that and the mask are."""
    kept = rng.permutation([True] * x.shape[axis] + [False] * int(rng.integers(4)))
    wide = np.full((*x.shape[:axis], len(kept), *x.shape[axis + 1 :]), np.nan if x.dtype.kind == "f" else 0, x.dtype)
    wide[(slice(None),) * axis + (kept,)] = x
    made = onnx.ModelProto()
    made.CopyFrom(proto)
    (old,) = [v for v in made.graph.input if v.name == name]
    kind = old.type.tensor_type.elem_type
    made.graph.input.remove(old)
    for part, what, shape in (("wide", kind, wide.shape), ("kept", TensorProto.BOOL, kept.shape)):
        made.graph.input.append(helper.make_tensor_value_info(f"{name}_{part}", what, shape))
    made.graph.node.insert(0, helper.make_node("Compress", [f"{name}_wide", f"{name}_kept"], [name], axis=axis))
    return made.SerializeToString(), {f"{name}_wide": wide, f"{name}_kept": kept}


def opset_of(proto: Any) -> int:
    return next(x.version for x in proto.opset_import if not x.domain)


def opened(kind: str, seed: int) -> int:
    """How many operands may have an axis of dynamic length; AssertionError where the answer is another one."""
    proto, given, wanted = drawn(kind, seed)
    rng, count = np.random.default_rng(seed), 0
    for name, x in given.items():
        if x.ndim == 0 or opset_of(proto) < OLDEST:
            continue
        raw, more = with_open_axis(proto, name, x, rng, int(rng.integers(x.ndim)))
        try:
            found = results(load(raw), given | more)
        except FormatError as error:
            says = "known only at run time" in str(error) or "a dynamic number of" in str(error)
            assert unknown_of(error) or says, (seed, error)
            continue
        except InputError as error:  # one element stands beside a longer axis
            assert "lengths known only at run time do not fit" in str(error) and 1 in x.shape, (seed, error)
            continue
        count += 1
        compare(found, wanted, (seed, name))
    return count


def compare(found: list[np.ndarray], wanted: list[np.ndarray], what: Any) -> None:
    for mine, theirs in zip(found, wanted, strict=True):
        assert (mine.shape, mine.dtype) == (theirs.shape, theirs.dtype), what
        assert_close(mine, theirs, 8)


def sized(kind: str, seed: int) -> int:
    """Whether some integers that are constants may be known only at run time; the answer must be the same."""
    proto, given, wanted = drawn(kind, seed)
    rows = [t for t in proto.graph.initializer if t.data_type in (TensorProto.INT64, TensorProto.INT32)]
    sizes = {t.name: numpy_helper.to_array(t) for t in rows if len(t.dims) <= 1 and 0 not in t.dims}
    for t in [t for t in rows if t.name in sizes]:
        proto.graph.initializer.remove(t)
        proto.graph.input.append(helper.make_tensor_value_info(t.name, t.data_type, t.dims))
    values = given | sizes
    found = built(proto.SerializeToString(), values)
    compare(results(found, values), wanted, seed)
    return bool(sizes.keys() - found.fixed.keys())


def built(raw: bytes, values: dict[str, np.ndarray]) -> Model:
    """The model, with what it asks for and nothing more."""
    constants: dict[str, np.ndarray] = {}
    maximum: dict[str, int] = {}
    for _ in range(12):
        try:
            return load(raw, constants=constants, maximum=maximum)
        except FormatError as error:
            asked = unknown_of(error)
            assert asked, error
            wanted = [name for name in asked.maximum if name not in maximum]
            if wanted:
                maximum[wanted[0]] = max(int(values[wanted[0]].max()), 0) if wanted[0] in values else MOST
            else:
                constants |= {name: values[name] for name in asked.constants}
    raise AssertionError(f"asked for {list(constants)} and {maximum}")


def test_operands_of_open_length_give_the_same_answer_or_are_refused():
    counts = {kind: sum(opened(kind, seed) for seed in SEEDS) for kind in DRAWN}
    assert sorted(kind for kind, n in counts.items() if not n) == sorted(CLOSED)


@pytest.mark.parametrize("kind", SAMPLED)
def test_the_number_of_samples_or_steps_may_be_known_only_when_run(kind):
    for seed in SEEDS:
        proto, given, wanted = drawn(kind, seed)
        name = "x2" if kind == "RoiAlign" else "x0"  # of RoiAlign the images of the boxes
        raw, more = with_open_axis(proto, name, given[name], np.random.default_rng(seed), 0)
        compare(results(load(raw), given | more), wanted, seed)


@pytest.mark.parametrize(
    ("kind", "least"), [("Conv", 12), ("ConvTranspose", 8), ("MaxPool", 6), ("BatchNormalization", 12)]
)
def test_images_may_have_sides_known_only_when_run(kind, least):
    """Each side of an image; what needs the sides to place windows is refused by name."""
    answers = 0
    for seed in range(12):
        proto, given, wanted = drawn(kind, seed)
        for axis in range(2, given["x0"].ndim):
            raw, more = with_open_axis(proto, "x0", given["x0"], np.random.default_rng(seed), axis)
            try:
                found = results(load(raw), given | more)
            except FormatError as error:
                assert f"along axis {axis} of" in str(error) and "Give" in str(error), (seed, error)
                continue
            answers += 1
            compare(found, wanted, (seed, axis))
    assert answers >= least


def test_sizes_known_only_when_run_give_the_same_answer():
    counts = {kind: sum(sized(kind, seed) for seed in SEEDS) for kind in DRAWN}
    assert sorted(kind for kind, n in counts.items() if n) == sorted(SIZED)


def unknown_of(error: BaseException | None) -> UnknownError | None:
    """The error that says which values a file needs, behind those that name the node and the file."""
    while error is not None and not isinstance(error, UnknownError):
        error = error.__cause__
    return error
