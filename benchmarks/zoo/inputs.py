"""Inputs for the files of the zoo."""

from pathlib import Path

import numpy as np

from benchmarks.zoo.architectures import LENGTH, TOKENS

BATCH = 2


def feeds_of(path: Path, seed: int) -> dict[str, np.ndarray]:
    """Return values for the inputs of a file: normal numbers, tokens, and ones for the mask after tokens.

    An open first axis has the size `BATCH`, other open axes `LENGTH`.
    """
    import onnx

    graph = onnx.load(path, load_external_data=False).graph
    stored = {x.name for x in graph.initializer}
    rng = np.random.default_rng(seed)
    feeds: dict[str, np.ndarray] = {}
    for value in graph.input:
        if value.name in stored:
            continue
        kind = value.type.tensor_type
        shape = [d.dim_value or (LENGTH if i else BATCH) for i, d in enumerate(kind.shape.dim)]
        feeds[value.name] = numbers(rng, shape, onnx.helper.tensor_dtype_to_np_dtype(kind.elem_type), bool(feeds))
    return feeds


def numbers(rng: np.random.Generator, shape: list[int], dtype: np.dtype, is_mask: bool) -> np.ndarray:
    if dtype.kind == "f":
        return rng.normal(size=shape).astype(dtype)
    return np.ones(shape, dtype) if is_mask or dtype.kind not in "iu" else rng.integers(3, TOKENS, shape).astype(dtype)
