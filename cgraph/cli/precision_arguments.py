"""Arguments about the precision of weights and products."""

import argparse
from typing import Any

from cgraph.dtypes.storage import BY_NAME


def add_precision(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--weights-dtype",
        choices=tuple(BY_NAME),
        help="round large weights to this dtype and store them so: fewer bytes, computed in float32",
    )
    parser.add_argument(
        "--precision",
        choices=("bf16",),
        help="allow convolutions and products to round to bfloat16, where that is faster",
    )


def precision_options(args: argparse.Namespace) -> dict[str, Any]:
    """Return the requested options of `compile` about the precision of weights and products."""
    return {name: getattr(args, name) for name in ("weights_dtype", "precision") if getattr(args, name)}
