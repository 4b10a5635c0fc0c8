"""quantise: a model with 8-bit values, calibrated on samples."""

import os
from typing import Any

import numpy as np

import cgraph as cg
from cgraph import InputError, Var
from nn.checks import check_integer
from nn.compile import Predictor, fitting
from nn.deprecation import renamed_keyword
from nn.layer import Layer, Sample, check_model


class QuantisedPredictor(Predictor):
    """A quantised model. Call it like any Predictor.

    Fields
        network: graph, inputs and report of the quantiser
    """

    def __init__(
        self, network: Any, samples: tuple[Sample, ...], batch: int, names: tuple[str, ...] | None, **options: Any
    ) -> None:
        """
        Parameters
            names: names of several results, empty if they have none; None for one result
        """
        outputs = dict(zip(names, network.outputs)) if names else network.outputs
        super().__init__(cg.compile(outputs, network.inputs, **options), samples, batch, names is not None)
        self.network = network

    @property
    def report(self) -> Any:
        """Loss of accuracy and saved bytes: a `cgraph.quantiser.Report`, which prints as text."""
        return self.network.report

    def save(self, path: str | os.PathLike) -> None:
        """Write the model as ONNX with QuantizeLinear and DequantizeLinear, for `batch` samples at once."""
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
    """Quantise a model's convolutions and matrix products, and the ops between them.

    Parameters
        samples: an array ``[count, ...]``, or a tuple of one for each input: representative inputs. Samples after
            the last complete batch are not used
        labels: class of each sample; the report then has the accuracy of the float and of the quantised model
        batch: samples computed at once
        progress: show progress of operations that take more than a second
        compiled: options for ``cgraph.compile``, by name
        options: method, images, symmetric, correct, skip, agreement, sensitivity: see `cgraph.quantiser.Choices`.
            A layer's name is that of its weights
    Raises
        UnassignedError: a Parameter has no value
        InputError: fewer samples than a batch, or samples of another shape
        GraphError: no layer to quantise, or no layer of a name
    """
    check_model(model)
    arrays = samples if isinstance(samples, tuple) else (np.asarray(samples),)
    kinds = model.samples
    if kinds is None:
        kinds = tuple(Sample(np.shape(x)[1:], model.input_dtype(np.asarray(x).dtype).name) for x in arrays)
    check_integer("batch", batch, 1)
    if len(arrays) != len(kinds):
        raise InputError(f"the model takes {len(kinds)} inputs, not {len(arrays)}. Pass an array for each.")
    data = [fitting(x, kind, i) for i, (x, kind) in enumerate(zip(arrays, kinds))]
    count = min(map(len, data)) // batch
    runs = [tuple(x[i * batch : (i + 1) * batch] for x in data) for i in range(count)]
    inputs = [Var((batch, *kind.shape), kind.dtype, f"input{i}") for i, kind in enumerate(kinds)]
    result = model(*inputs)
    names = tuple(result) if isinstance(result, dict) else () if isinstance(result, tuple) else None
    outputs = tuple(result.values()) if isinstance(result, dict) else result
    right = None if labels is None else np.asarray(labels)[: count * batch]
    tell = {"tell": cg.quantiser.Bars()} if progress else {}
    network = cg.quantiser.quantise(outputs, inputs, runs, right, **tell, **options)
    return QuantisedPredictor(network, tuple(kinds), batch, names, **(compiled or {}))
