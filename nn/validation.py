"""Validation after each epoch: loss and metrics of samples that training does not use."""

from collections.abc import Callable, Sequence

import numpy as np

import cgraph as cg
from cgraph import InputError, Record, Var
from cgraph.ir.origin import named
from nn.checks import check_kind
from nn.compile import compile as compile_model
from nn.layer import Layer, Sample
from nn.losses import check_classes
from nn.settings import StepSettings, TrainSettings
from nn.step import sum_of

Arrays = Sequence[np.ndarray]


class ValidationResult(Record, eq=False):
    """Loss and metrics of one validation."""

    loss: float
    metrics: dict[str, np.ndarray]


Check = Callable[[], ValidationResult]


def validation_check(model: Layer, settings: TrainSettings, batch: int) -> Check | None:
    """Return a function that validates the current weights, or None without ``settings.validation``.

    Parameters
        batch: samples computed at once
    """
    validation = settings.validation
    if validation is None:
        return None
    check_kind("validation", validation, Callable | tuple | list, "arrays like the loader's, or a function")
    if callable(validation):
        return lambda: ValidationResult(number_of(validation), {})
    return check_of_arrays(model, settings.step, validation, batch)


def number_of(validation: Callable[[], float]) -> float:
    """Return the number that a validation function returns. InputError when it is not a number."""
    number = validation()
    try:
        return float(number)
    except (TypeError, ValueError):
        raise InputError(f"validation() returned {number!r:.60}. Return one number, the lower the better.") from None


def check_of_arrays(model: Layer, settings: StepSettings, arrays: Arrays, batch: int) -> Check:
    """Return a function that computes loss and metrics of all samples in inference mode."""
    if len(arrays) <= settings.targets:
        raise InputError(
            f"validation has {len(arrays)} arrays, of which {settings.targets} are targets. Pass an array for each "
            "input of the model, then the targets."
        )
    input_count = len(arrays) - settings.targets
    inputs, target_arrays = arrays[:input_count], arrays[input_count:]
    samples = [Sample(x.shape[1:], str(model.input_dtype(x.dtype))) for x in inputs]
    predict = compile_model(model, min(batch, len(inputs[0])), samples, frozen=False, **settings.options)
    (output,) = predict.function.outputs
    predicted = Var((len(inputs[0]), *output.shape[1:]), output.dtype, "predicted")
    targets = [Var(x.shape, model.input_dtype(x.dtype), f"target{i}") for i, x in enumerate(target_arrays)]
    for last in target_arrays[-1:]:
        check_classes(settings.loss, predicted, last)
    with named("loss"):
        loss = settings.loss(predicted, *targets)
    error = sum_of(list(loss.values())) if isinstance(loss, dict) else loss
    measured = [metric.part(predicted, *targets) for metric in settings.metrics]
    judge = cg.compile([error, *measured], [predicted, *targets], **settings.options)

    def check() -> ValidationResult:
        error, *sums = judge(predict(*inputs), *target_arrays)
        return ValidationResult(float(error), {x.name: x.figure(part) for x, part in zip(settings.metrics, sums)})

    return check
