"""Dispatch to kernels that are written for blocks of a GPU's threads."""

from collections.abc import Callable
from typing import Any

from cgraph.kernels.target import Target


def in_blocks(target: Target, calls: Callable[..., Any], *args: Any) -> Any:
    """Return ``calls(*args)`` on a target with blocks of threads; None elsewhere, or if the views do not fit."""
    return calls(*args) if target.has_blocks else None
