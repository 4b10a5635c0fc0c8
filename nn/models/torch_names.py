"""Conversion of published PyTorch weight files to the names and shapes of the networks here.

Each function takes the arrays of a file by name and returns arrays by path, for `nn.set_values`.
"""

from collections.abc import Mapping

import numpy as np

from cgraph import FormatError
from nn.layer import Layer
from nn.models.blazeface import BlazeFace
from nn.models.resnet import Bottleneck, ResNet

BATCHES, AUXILIARY = "num_batches_tracked", "AuxLogits."
Arrays = Mapping[str, np.ndarray]
NORM = {"scale": "weight", "shift": "bias", "mean": "running_mean", "variance": "running_var"}


def resnet_arrays(arrays: Arrays, model: ResNet, prefix: str = "") -> dict[str, np.ndarray]:
    """Return arrays of a ResNet with torchvision's names (``layer1.0.conv1.weight``) or akamaster's for CIFAR.

    Parameters
        prefix: prefix of all names, such as ``"state_dict.module."``
    """
    by_path = trunk_arrays(arrays, model.groups, prefix)
    last = "linear" if f"{prefix}linear.weight" in arrays else "fc"
    by_path["classifier.weight"] = arrays[f"{prefix}{last}.weight"].T
    by_path["classifier.bias"] = arrays[f"{prefix}{last}.bias"]
    return by_path


def trunk_arrays(arrays: Arrays, groups: tuple[tuple[Layer, ...], ...], prefix: str) -> dict[str, np.ndarray]:
    """Return the arrays of a ResNet's stem and groups."""
    by_path = conv_norm(arrays, "stem", f"{prefix}conv1", f"{prefix}bn1")
    for g, group in enumerate(groups):
        for i, block in enumerate(group):
            here, there = f"groups.{g}.{i}", f"{prefix}layer{g + 1}.{i}"
            parts = ("first", "second", "third") if isinstance(block, Bottleneck) else ("first", "second")
            for n, part in enumerate(parts, start=1):
                by_path |= conv_norm(arrays, f"{here}.{part}", f"{there}.conv{n}", f"{there}.bn{n}")
            if getattr(block, "shortcut", None) is not None:
                by_path |= conv_norm(arrays, f"{here}.shortcut", f"{there}.downsample.0", f"{there}.downsample.1")
    return by_path


def conv_norm(arrays: Arrays, here: str, conv: str, norm: str) -> dict[str, np.ndarray]:
    """Return the arrays of a ConvNorm."""
    norms = {f"{here}.norm.{ours}": arrays[f"{norm}.{theirs}"] for ours, theirs in NORM.items()}
    return {f"{here}.conv.weight": arrays[f"{conv}.weight"], **norms}


def torchvision_arrays(arrays: Arrays, model: Layer) -> dict[str, np.ndarray]:
    """Return arrays of a classifier whose layers are in torchvision's order, as all those of `nn.models` are.

    Matrices are transposed, or reshaped to filters for a 1×1 convolution. Arrays for training only are skipped:
    counters of batches, and Inception's second classifier.

    Raises
        FormatError: the file has another number of arrays, or one of another shape
    """
    read = [(name, x) for name, x in arrays.items() if not name.endswith(BATCHES) and not name.startswith(AUXILIARY)]
    variables = model.variables()
    if len(read) != len(variables):
        raise FormatError(
            f"the file has {len(read)} arrays, the network {len(variables)}. Use the file of the same network."
        )
    by_path = {}
    for (path, x), (name, array) in zip(variables.items(), read):
        array = array.T if x.ndim == 2 else array.reshape(array.shape + (1,) * (x.ndim - array.ndim))
        if array.shape != x.shape:
            raise FormatError(
                f"{name} has shape {list(array.shape)} in the order of {path}, which has {list(x.shape)}. Use the "
                "file of the same network."
            )
        by_path[path] = array
    return by_path


def blazeface_arrays(arrays: Arrays, model: BlazeFace) -> dict[str, np.ndarray]:
    """Return arrays of BlazeFace with the names of hollance's BlazeFace-PyTorch."""
    body = "backbone" if model.back else "backbone1"
    pairs = {"stem": f"{body}.0", "scores_8": "classifier_8", "scores_16": "classifier_16"}
    pairs |= {"boxes_8": "regressor_8", "boxes_16": "regressor_16"}
    for i in range(len(model.first)):
        pairs |= block_names(f"first.{i}", f"{body}.{i + 2}")
    for i in range(len(model.second)):
        pairs |= block_names(f"second.{i}", "final" if model.back else f"backbone2.{i}")
    kinds = ("weight", "bias")
    return {f"{ours}.{kind}": arrays[f"{theirs}.{kind}"] for ours, theirs in pairs.items() for kind in kinds}


def block_names(here: str, there: str) -> dict[str, str]:
    """Return PyTorch's names of a block by paths."""
    return {f"{here}.depthwise": f"{there}.convs.0", f"{here}.pointwise": f"{there}.convs.1"}
