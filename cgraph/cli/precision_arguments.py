"""Arguments about the precision of weights and products."""

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import Any

from cgraph.cli.samples import Runs
from cgraph.dtypes.storage import BY_NAME
from cgraph.errors import FormatError, GraphError
from cgraph.planning.mixed_precision import BF16, Tolerance

MOST_SAMPLES = 64  # runs of a model with which errors are measured


def add_precision(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--weights-dtype",
        choices=tuple(BY_NAME),
        help="round large weights to this dtype and store them so: fewer bytes, computed in float32",
    )
    parser.add_argument(
        "--precision",
        type=precision_argument,
        metavar="bf16|ERROR",
        help="allow convolutions and products to round to bfloat16, where that is faster; with a number, such as 0.01, "
        "only in layers that keep the relative error of the outputs within it",
    )
    parser.add_argument(
        "--samples",
        type=Path,
        metavar="FOLDER",
        help="inputs with which --precision ERROR is measured: pictures, .npy or .npz files; or one such file",
    )
    parser.set_defaults(most=MOST_SAMPLES)


def precision_argument(text: str) -> str | Tolerance:
    """Return ``bf16``, or a tolerance without samples. ArgumentTypeError for anything else."""
    if text == BF16:
        return text
    try:
        return Tolerance(float(text), ())
    except GraphError as error:
        raise argparse.ArgumentTypeError(str(error)) from None
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is neither {BF16} nor a number, such as 0.01") from None


def precision_options(args: argparse.Namespace, samples: Callable[[], Runs]) -> dict[str, Any]:
    """Return the requested options of `compile` about the precision of weights and products.

    Parameters
        samples: returns the arrays of runs with which a tolerance is measured
    Raises
        FormatError: there are samples, but nothing to measure
    """
    options = {name: getattr(args, name) for name in ("weights_dtype", "precision") if getattr(args, name)}
    if isinstance(args.precision, Tolerance):
        options["precision"] = Tolerance(args.precision.error, samples())
    elif args.samples is not None:
        raise FormatError("--samples is for --precision ERROR, such as --precision 0.01. Leave it out, or give both")
    return options
