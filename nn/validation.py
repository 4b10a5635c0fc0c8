"""What is computed after every epoch: the loss of samples that are not trained on, and metrics of them."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import cgraph as cg
from cgraph import InputError, Record, Var
from nn.checks import check_kind
from nn.compile import compile as compile_model
from nn.layer import Layer, Sample
from nn.losses import Loss, check_classes
from nn.metrics import Metric
from nn.step import sum_of

Arrays = Sequence[np.ndarray]


class ValidationResult(Record, eq=False):
    """What one validation found."""

    loss: float
    metrics: dict[str, np.ndarray]


Check = Callable[[], ValidationResult]


def validation_check(
    validation: Arrays | Callable[[], float] | None,
    model: Layer,
    loss: Loss,
    metrics: Sequence[Metric],
    batch: int,
    targets: int,
    options: dict[str, Any],
) -> Check | None:
    """A function that validates the weights as they are when it is called; None without anything to validate by."""
    if validation is None:
        return None
    check_kind("validation", validation, Callable | tuple | list, "arrays like the loader's, or a function")
    if callable(validation):
        return lambda: ValidationResult(number_of(validation), {})
    return check_of_arrays(model, loss, metrics, validation, batch, targets, options)


def number_of(validation: Callable[[], float]) -> float:
    """What a function says that training should lower."""
    number = validation()
    try:
        return float(number)
    except (TypeError, ValueError):
        raise InputError(f"validation gives {number!r:.60}; it gives one number, which training should lower") from None


def check_of_arrays(
    model: Layer,
    loss: Loss,
    metrics: Sequence[Metric],
    arrays: Arrays,
    batch: int,
    targets: int,
    options: dict[str, Any],
) -> Check:
    """Loss and metrics of all samples, for inference."""
    if len(arrays) <= targets:
        raise InputError("validation needs an array for each input of the model, and what is wanted")
    input_count = len(arrays) - targets
    inputs, target_arrays = arrays[:input_count], arrays[input_count:]
    samples = [Sample(x.shape[1:], str(x.dtype)) for x in inputs]
    predict = compile_model(model, min(batch, len(inputs[0])), samples, frozen=False, **options)
    (output,) = predict.function.outputs
    predicted = Var((len(inputs[0]), *output.shape[1:]), output.dtype, "predicted")
    answers = [Var(x.shape, x.dtype, f"wanted{i}") for i, x in enumerate(target_arrays)]
    for last in target_arrays[-1:]:
        check_classes(loss, predicted, last)
    parts = loss(predicted, *answers)
    error = sum_of(list(parts.values())) if isinstance(parts, dict) else parts
    measured = [metric.part(predicted, *answers) for metric in metrics]
    judge = cg.compile([error, *measured], [predicted, *answers], **options)

    def check() -> ValidationResult:
        error, *sums = judge(predict(*inputs), *target_arrays)
        return ValidationResult(float(error), {x.name: x.figure(part) for x, part in zip(metrics, sums)})

    return check
