"""quantise: a model whose values are bytes, by what samples make of it."""

import os
from typing import Any

import numpy as np

import cgraph as cg
from cgraph import InputError, Var
from nn.compile import Predictor, fitting
from nn.deprecation import renamed_keyword
from nn.layer import Layer, Sample


class QuantisedPredictor(Predictor):
    """A model on bytes. Call it as any Predictor.

    Fields
        network: the graph, its inputs, and the report
    """

    def __init__(self, network: Any, samples: tuple[Sample, ...], batch: int, several: bool, **options: Any) -> None:
        super().__init__(network.compile(**options), samples, batch, several)
        self.network = network

    @property
    def report(self) -> Any:
        """What it costs in accuracy and saves in bytes: a `cgraph.quantiser.Report`, which prints as a text."""
        return self.network.report

    def save(self, path: str | os.PathLike) -> None:
        """Write it as ONNX with QuantizeLinear and DequantizeLinear, for `batch` samples at once."""
        cg.formats.onnx.save(os.fspath(path), self.network.outputs, self.network.inputs)


@renamed_keyword("wanted", "labels")
def quantise(
    model: Layer,
    samples: Any,
    labels: Any = None,
    batch: int = 1,
    *,
    progress: bool = True,
    compiled: Any = None,
    **options: Any,
) -> QuantisedPredictor:
    """Quantise a model's convolutions and products, and what lies between them.

    Parameters
        samples: an array ``[count, ...]``, or a tuple of one for each input: what the model will meet, as it sees it.
            Those behind the last whole batch are left out
        labels: the class of each sample, to count right answers of the floats and of the bytes
        batch: samples computed at once
        progress: show how far it is, where that takes longer than a second
        compiled: options for ``cgraph.compile``, by name
        options: method, images, symmetric, correct, skip, agreement, sensitivity: see `cgraph.quantiser.Choices`.
            A layer's name is that of its weights
    Raises
        UnassignedError: a Parameter has no value
        InputError: fewer samples than a batch, or of another shape
        GraphError: no layer to quantise, or none of a name
    """
    arrays = samples if isinstance(samples, tuple) else (np.asarray(samples),)
    kinds = model.samples
    if kinds is None:
        kinds = tuple(Sample(np.shape(x)[1:], np.asarray(x).dtype.name) for x in arrays)
    if len(arrays) != len(kinds) or batch < 1:
        raise InputError(f"the model takes {len(kinds)} inputs, and is given {len(arrays)}, {batch} samples at once")
    data = [fitting(x, kind, i) for i, (x, kind) in enumerate(zip(arrays, kinds))]
    count = min(map(len, data)) // batch
    runs = [tuple(x[i * batch : (i + 1) * batch] for x in data) for i in range(count)]
    inputs = [Var((batch, *kind.shape), kind.dtype, f"input{i}") for i, kind in enumerate(kinds)]
    result = model(*inputs)
    several = isinstance(result, tuple)
    right = None if labels is None else np.asarray(labels)[: count * batch]
    tell = {"tell": cg.quantiser.Bars()} if progress else {}
    network = cg.quantiser.quantise(result, inputs, runs, right, **tell, **options)
    return QuantisedPredictor(network, tuple(kinds), batch, several, **(compiled or {}))
