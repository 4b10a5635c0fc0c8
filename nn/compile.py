"""compile: a model as a Function for inference that takes any number of samples."""

from collections.abc import Sequence
from typing import Any

import numpy as np

import cgraph as cg
from cgraph import Function, InputError, Var
from cgraph.storage.batches import in_batches
from nn.checks import check_integer, check_kind
from nn.layer import L, Layer, Sample, map_parameters
from nn.weights import check_assigned


class Predictor:
    """A compiled model. Call it with an array for each input, of any number of samples.

    Fields
        function: computes `batch` samples at once; the last, ragged batch is filled up with zeros
        samples: one sample of each input
    """

    def __init__(self, function: Function, samples: Sequence[Sample], batch: int, several: bool) -> None:
        self.function, self.samples, self.batch = function, tuple(samples), batch
        self._several = several

    def __call__(self, *arrays: Any) -> Any:
        """The model's results for all samples: one array, or a tuple of them.

        Raises
            InputError: another number of arrays, samples of another shape, or arrays of different lengths
        """
        samples = [fitting(array, sample, i) for i, (array, sample) in enumerate(self._pairs(arrays))]
        count = len(samples[0])
        if any(len(x) != count for x in samples):
            raise InputError(f"the inputs have {', '.join(str(len(x)) for x in samples)} samples")
        outputs = in_batches(self.function, samples, self.batch, self.function.results)
        return tuple(outputs) if self._several else outputs[0]

    def map_batches(self, *arrays: Any, threads: int = 1) -> Any:
        """The model's results for dask arrays, block by block, by workers: see `cgraph.dist.map_batches`."""
        outputs = cg.dist.map_batches(self.function, *arrays, threads=threads)
        return outputs if self._several else outputs[0]

    def _pairs(self, arrays: tuple) -> list[tuple[Any, Sample]]:
        if len(arrays) != len(self.samples):
            raise InputError(f"the model takes {len(self.samples)} inputs, and is given {len(arrays)}")
        return list(zip(arrays, self.samples))


def compile(
    model: Layer,
    batch: int = 1,
    samples: Sequence[Sample] | None = None,
    *,
    frozen: bool = True,
    **options: Any,
) -> Predictor:
    """Compile `model` for inference: no dropout, running statistics.

    Parameters
        batch: samples computed at once. More are quicker where weights are many beside a sample's values, as in Linear
            layers; images are mostly quicker one by one, since what a layer wrote is still in cache
        samples: one sample of each input; the model's own by default
        frozen: the weights as they are now become part of the Function, which is the quickest; otherwise it reads
            them at every run
        options: for ``cgraph.compile``
    Raises
        UnassignedError: a Parameter has no value
        InputError: neither the model nor the caller says what a sample is
    """
    check_kind("model", model, Layer, "a Layer, with its Parameters")
    samples = samples_of(model, samples)
    check_integer("batch", batch, 0)
    if batch < 1:
        raise InputError(f"a batch of {batch} samples")
    if frozen:
        model = freeze(model)
    inputs = [Var((batch, *sample.shape), sample.dtype, f"input{i}") for i, sample in enumerate(samples)]
    result = model(*inputs)
    several = isinstance(result, tuple)
    function = cg.compile(list(result) if several else [result], inputs, **options)
    return Predictor(function, samples, batch, several)


def samples_of(model: Layer, samples: Sequence[Sample] | None) -> Sequence[Sample]:
    """One sample of each input: those that are given, else the model's own. InputError when there is none."""
    own = model.samples if samples is None else samples
    if own is None:
        raise InputError("the model does not say what a sample is; give samples=[nn.Sample(shape)]")
    if not own:
        raise InputError("samples is empty; it has one nn.Sample for each input of the model")
    return own


def freeze(model: L) -> L:
    """The same model with constants in place of its Parameters; a Parameter that is assigned later takes new bytes.

    UnassignedError when one has no value.
    """
    check_assigned(model)
    return map_parameters(model, lambda x: cg.Const(x.cell.share(), copy=False))


def fitting(array: Any, sample: Sample, i: int) -> np.ndarray:
    """`array` as samples of this kind, or InputError."""
    samples = np.asarray(array) if isinstance(array, np.ndarray) else np.asarray(array, sample.dtype)
    if samples.shape[1:] != tuple(sample.shape) or samples.ndim == 0 or samples.dtype != np.dtype(sample.dtype):
        sizes = f"{sample.dtype}[any,{','.join(map(str, sample.shape))}]"
        raise InputError(f"input {i} is {samples.dtype}{list(samples.shape)}, the model takes {sizes}")
    return samples
