"""Names of PyTorch's and Keras's layers that `nn` does not have: an error that says what to use."""

from collections.abc import Iterable, Mapping
from difflib import get_close_matches

from nn.layers.function import ACTIVATIONS

ELSEWHERE = {
    "adaptiveavgpool2d": "nn.GlobalAvgPool()",
    "batchnormalization": "nn.BatchNorm",
    "convtranspose1d": "nn.TransposeConv1d",
    "convtranspose2d": "nn.TransposeConv2d",
    "convtranspose3d": "nn.TransposeConv3d",
    "dataloader": "nn.Loader",
    "dense": "nn.Linear",
    "evaluate": "nn.compile(model), and compare its results with the targets",
    "fit": "nn.train",
    "functional": "the functions of cgraph, such as cgraph.relu",
    "globalaveragepooling2d": "nn.GlobalAvgPool()",
    "identity": 'nn.Activation("none")',
    "layernormalization": "nn.LayerNorm",
    "load": "nn.load_weights(path, model), or cgraph.load(folder) of a saved function",
    "model": "nn.Layer or nn.Sequential",
    "module": "nn.Layer",
    "predict": "nn.compile(model), and call it with samples",
    "save": "nn.save_weights(path, model), or nn.compile(model).function.save(folder)",
    "silu": 'nn.Activation("swish")',
}
"""Names in lower case, and what to use instead."""
MEMBERS = {
    "bce": "nn.losses.binary_cross_entropy",
    "bcewithlogitsloss": "nn.losses.binary_cross_entropy",
    "binarycrossentropy": "nn.losses.binary_cross_entropy",
    "categoricalcrossentropy": "nn.losses.cross_entropy",
    "cosineannealinglr": "nn.optim.Cosine",
    "cosinedecay": "nn.optim.Cosine",
    "crossentropyloss": "nn.losses.cross_entropy",
    "ema": "nn.optim.ExponentialAverage",
    "exponentialdecay": "nn.optim.ExpDecay",
    "exponentiallr": "nn.optim.ExpDecay",
    "huberloss": "nn.losses.huber",
    "l1loss": "nn.losses.l1",
    "mae": "nn.losses.l1",
    "meansquarederror": "nn.losses.quadratic",
    "momentum": "nn.optim.Standard, as momentum= of an Optimiser",
    "mse": "nn.losses.quadratic",
    "mseloss": "nn.losses.quadratic",
    "multisteplr": "nn.optim.Steps",
    "optimizer": "nn.Optimiser",
    "reducelronplateau": "nn.optim.Plateau",
    "sgd": "nn.optim.GradientDescent",
    "smoothl1loss": "nn.losses.huber",
    "sparsecategoricalcrossentropy": "nn.losses.cross_entropy",
    "steplr": "nn.optim.Steps",
}
"""Losses, optimisers and rates of other libraries: names in lower case, and what to use instead."""


def missing_name(name: str, names: Iterable[str], members: Mapping[str, Iterable[str]]) -> AttributeError:
    """Return the error for a name that the package does not have.

    Parameters
        names: those that it has
        members: those that its modules have, by module
    """
    plain = name.replace("_", "").lower()
    activations = {x.replace("_", ""): x for x in ACTIVATIONS}
    same = {x.lower(): x for x in names}
    base = plain.replace("pooling", "pool").replace("average", "avg")
    near = get_close_matches(name, list(names), 1)
    owner = next((module for module, others in members.items() if name in others), None)
    if plain in ELSEWHERE or plain in MEMBERS:
        remedy = f"use {ELSEWHERE.get(plain) or MEMBERS[plain]}"
    elif plain in activations:
        remedy = f'use nn.Activation("{activations[plain]}")'
    elif base in same or base[:-2] in same:  # MaxPooling2D, BatchNorm2d
        remedy = f"use nn.{same.get(base) or same[base[:-2]]}"
    elif owner:
        remedy = f"use nn.{owner}.{name}"
    elif near:
        remedy = f"the nearest is nn.{near[0]}"
    else:
        remedy = "see dir(nn)"
    return AttributeError(f"nn has no attribute {name!r}; {remedy}")


def missing_member(module: str, name: str, names: Iterable[str]) -> AttributeError:
    """Return the error for a name that a module of losses, metrics or optimisers does not have.

    Parameters
        names: those that it has
    """
    plain = name.replace("_", "").lower()
    same = {x.replace("_", "").lower(): x for x in names}
    near = get_close_matches(plain, same, 1)
    member = plain if plain in same else near[0] if near else None
    if plain in MEMBERS:
        remedy = f"use {MEMBERS[plain]}"
    elif member is not None:
        remedy = f"the nearest is {module}.{same[member]}"
    else:
        remedy = f"see dir({module})"
    return AttributeError(f"{module} has no attribute {name!r}; {remedy}")
