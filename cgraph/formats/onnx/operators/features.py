"""What ai.onnx.ml does to rows before an estimator sees them: scaling, filling in, choosing and encoding columns."""

from typing import Any

import numpy as np

from cgraph.errors import FormatError
from cgraph.formats.names import cg
from cgraph.formats.onnx.context import Context, operator
from cgraph.ir.graph import Node

LEAST = 1e-30  # rows of norm 0 are divided by this


@operator("ai.onnx.ml.Scaler")
def scaler(c: Context) -> Node:
    """``(x - offset) * scale``, in float32."""
    x = cg.astype(c[0], "float32")
    offset, scale = (
        np.asarray(c.attribute(name, default), np.float32) for name, default in (("offset", 0), ("scale", 1))
    )
    return (x - offset) * scale


@operator("ai.onnx.ml.Normalizer")
def normalizer(c: Context) -> Node:
    """Rows over their largest size, the sum of sizes, or their length."""
    x, norm = cg.astype(c[0], "float32"), c.attribute("norm", "MAX")
    if norm not in ("MAX", "L1", "L2"):
        raise FormatError(f"norm {norm!r:.40} is not MAX, L1 or L2")
    size = {
        "MAX": lambda: cg.max(cg.abs(x), -1, keepdims=True),
        "L1": lambda: cg.sum(cg.abs(x), -1, keepdims=True),
        "L2": lambda: cg.sqrt(cg.sum(x * x, -1, keepdims=True)),
    }[norm]()
    return x / cg.maximum(size, np.float32(LEAST))


@operator("ai.onnx.ml.Binarizer")
def binarizer(c: Context) -> Node:
    """1 where a number is beyond the threshold."""
    return cg.astype(c[0] > np.asarray(c.attribute("threshold", 0.0), c[0].dtype), c[0].dtype)


@operator("ai.onnx.ml.Imputer")
def imputer(c: Context) -> Node:
    """Numbers, for all columns or for each, in place of one number or of NaN."""
    x = c[0]
    kind, default = ("float", np.nan) if x.dtype.kind == "f" else ("int64", 0)
    values = np.asarray(c.required(f"imputed_value_{kind}s"), x.dtype)
    replaced = c.attribute(f"replaced_value_{kind}", default)
    lost = cg.isnan(x) if replaced != replaced else cg.equal(x, np.asarray(replaced, x.dtype))
    return cg.where(lost, values, x)


@operator("ai.onnx.ml.FeatureVectorizer")
def feature_vectorizer(c: Context) -> Node:
    """Columns side by side, each operand cut, or filled with 0, to the width that is said."""
    parts = []
    for x, width in zip(c.nodes, c.required("inputdimensions"), strict=True):
        x = cg.astype(cg.reshape(x, (x.shape[0], -1)), "float32")
        c.spend(nbytes=4 * x.shape[0] * width)
        parts.append(x[:, :width] if width <= x.shape[1] else cg.pad(x, ((0, 0), (0, width - x.shape[1]))))
    return cg.concat(parts, 1)


@operator("ai.onnx.ml.ArrayFeatureExtractor")
def array_feature_extractor(c: Context) -> Node:
    """Some places of the last axis; of an axis alone, a row."""
    x, places = c[0], cg.reshape(c[1], (-1,))
    features = cg.take(x, places, -1)
    return cg.reshape(features, (1, -1)) if x.ndim == 1 else features


@operator("ai.onnx.ml.OneHotEncoder")
def one_hot_encoder(c: Context) -> Node:
    """1 in the column of a number's category, along a new last axis; of an unknown one all 0."""
    if not c.attribute("zeros", 1):
        raise FormatError("an unknown category would have to end the run; only zeros=1 is supported")
    x, categories = c[0], c.required("cats_int64s")
    whole = cg.astype(x, "int64")
    return cg.astype(cg.equal(cg.expand_dims(whole, -1), np.asarray(categories, np.int64)), "float32")


@operator("ai.onnx.ml.LabelEncoder")
def label_encoder(c: Context) -> Node:
    """The value that goes with a key, a default for any other; the first of several equal keys counts."""
    if c.attribute("keys_strings") or c.attribute("values_strings"):
        raise FormatError("keys and values that are texts are not supported")
    keys, values, default = table_of(c, "keys"), table_of(c, "values"), default_of(c)
    if len(keys) != len(values) or not len(keys):
        raise FormatError(f"{len(keys)} keys have {len(values)} values")
    x = c[0]
    order = np.argsort(keys, kind="stable")  # NaN comes last
    keys, values = keys[order], values[order]
    keys, first = np.unique(keys, return_index=True)
    place = cg.minimum(cg.searchsorted(keys.astype(x.dtype), x), len(keys) - 1)
    nearest_keys = cg.take(keys.astype(x.dtype), place, 0)
    same = cg.equal(nearest_keys, x)
    if keys.dtype.kind == "f" and np.isnan(keys[-1]):
        same = cg.logical_or(same, cg.logical_and(cg.isnan(x), cg.isnan(nearest_keys)))
    return cg.where(same, cg.take(values[first], place, 0), np.asarray(default, values.dtype))


def table_of(c: Context, name: str) -> np.ndarray:
    """Keys or values, from whichever attribute has them."""
    tensor: Any = c.attribute(f"{name}_tensor")
    if tensor is not None:
        return np.asarray(tensor).reshape(-1)
    if c.attribute(f"{name}_floats"):
        return np.asarray(c.required(f"{name}_floats"), np.float32)
    return np.asarray(c.required(f"{name}_int64s"), np.int64)


def default_of(c: Context) -> Any:
    """The value for a key that is not listed."""
    tensor = c.attribute("default_tensor")
    if tensor is not None:
        return np.asarray(tensor).reshape(-1)[0]
    if c.attribute("values_floats"):
        return c.attribute("default_float", -0.0)
    return c.attribute("default_int64", -1)
