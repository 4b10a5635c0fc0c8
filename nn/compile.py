"""compile: a model as a Predictor for inference on any number of samples."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Unpack

import numpy as np

import cgraph as cg
from cgraph import Function, InputError, Var
from cgraph.ir.spec import Spec
from cgraph.planning.options import COMPILE_KEYWORDS, CompileKeywords
from cgraph.running.results import Results
from cgraph.storage.batches import in_batches
from cgraph.storage.cell import fitting_array
from cgraph.system.keywords import checks_keywords
from nn.checks import check_integer
from nn.layer import L, Layer, Sample, check_model, map_parameters
from nn.weights import check_assigned


class Predictor:
    """A compiled model. Call it with an array for each input, of any number of samples.

    Fields
        function: computes `batch` samples at once; the last, incomplete batch is padded with zeros
        samples: one sample of each input
    """

    def __init__(self, function: Function, samples: Sequence[Sample], batch: int, several: bool) -> None:
        self.function, self.samples, self.batch = function, tuple(samples), batch
        self._several = several

    def __call__(self, *arrays: Any) -> Any:
        """Return the model's results for all samples: one array, or several that also take the names of a dictionary.

        Raises
            InputError: wrong number of arrays, samples of another shape, or arrays of different lengths
        """
        samples = [fitting(array, sample, i) for i, (array, sample) in enumerate(self._pairs(arrays))]
        count = len(samples[0])
        if any(len(x) != count for x in samples):
            raise InputError(
                f"the inputs have {', '.join(str(len(x)) for x in samples)} samples. Pass as many of each."
            )
        outputs = in_batches(self.function, samples, self.batch, self.function.results)
        return Results(outputs, self.function.names) if self._several else outputs[0]

    def map_batches(self, *arrays: Any, threads: int = 1) -> Any:
        """Return the model's results for dask arrays, block by block on workers; see `cgraph.dist.map_batches`."""
        outputs = cg.dist.map_batches(self.function, *arrays, threads=threads)
        return outputs if self._several else outputs[0]

    if not TYPE_CHECKING:  # for a type checker, a Predictor would have every attribute

        def __getattr__(self, name: str) -> Any:
            """Raise AttributeError that names the Function's attribute."""
            remedy = f"; use .function.{name}" if hasattr(Function, name) else ""
            raise AttributeError(f"Predictor has no attribute {name!r}{remedy}")

    def _pairs(self, arrays: tuple) -> list[tuple[Any, Sample]]:
        if len(arrays) != len(self.samples):
            raise InputError(f"the model takes {len(self.samples)} inputs, not {len(arrays)}. Pass one array for each.")
        return list(zip(arrays, self.samples))


@checks_keywords(COMPILE_KEYWORDS)
def compile(
    model: Layer,
    batch: int = 1,
    samples: Sequence[Sample] | None = None,
    *,
    frozen: bool = True,
    **options: Unpack[CompileKeywords],
) -> Predictor:
    """Compile `model` for inference: no dropout, running statistics.

    Parameters
        batch: samples computed at once. A larger batch is faster for layers with many weights, such as Linear; images
            are mostly faster one by one, because a layer's result is still in cache for the next layer
        samples: one sample of each input; the model's own by default
        frozen: the current weights become constants of the Function, which is fastest; otherwise every run reads the
            weights anew
        options: for ``cgraph.compile``
    Raises
        UnassignedError: a Parameter has no value
        InputError: neither the model nor `samples` defines the shape of a sample
    """
    check_model(model)
    samples = samples_of(model, samples)
    check_integer("batch", batch, 0)
    if batch < 1:
        raise InputError(f"a batch of {batch} samples. Pass batch= of at least 1.")
    if frozen:
        model = freeze(model)
    inputs = [Var((batch, *sample.shape), sample.dtype, f"input{i}") for i, sample in enumerate(samples)]
    result = model(*inputs)
    several = isinstance(result, tuple | dict)
    function = cg.compile(result if several else [result], inputs, **options)
    return Predictor(function, samples, batch, several)


def samples_of(model: Layer, samples: Sequence[Sample] | None) -> Sequence[Sample]:
    """Return one sample of each input: `samples`, or the model's own. InputError when there is none."""
    own = model.samples if samples is None else samples
    if own is None:
        raise InputError("the model does not say what a sample is. Pass samples=[nn.Sample(shape)].")
    if not own:
        raise InputError("samples is empty. Pass one nn.Sample for each input of the model.")
    return own


def freeze(model: L) -> L:
    """Return the same model with constants in place of its Parameters.

    Later assignments to a Parameter do not change the constants. UnassignedError when one has no value.
    """
    check_model(model)
    check_assigned(model)
    return map_parameters(model, lambda x: cg.Const(x.cell.share(), copy=False))


def fitting(array: Any, sample: Sample, i: int) -> np.ndarray:
    """Return `array` as samples of this shape and dtype, float64 rounded to float32. InputError if it does not fit."""
    samples = np.asarray(array) if isinstance(array, np.ndarray) else np.asarray(array, sample.dtype)
    if samples.shape[1:] != tuple(sample.shape) or samples.ndim == 0:
        sizes = f"{sample.dtype}[any,{','.join(map(str, sample.shape))}]"
        raise InputError(
            f"input {i} is {samples.dtype}{list(samples.shape)}, the model takes {sizes}. Reshape or cast it."
        )
    return fitting_array(samples, Spec(samples.shape, np.dtype(sample.dtype)), f"input {i}")
