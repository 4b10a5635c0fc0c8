"""Lookup of kernel families by name, and the text form of a call."""

import struct
from collections.abc import Sequence
from functools import cache
from importlib import import_module
from itertools import cycle
from typing import Any

from cgraph.kernels.kernel import Kernel
from cgraph.kernels.signature import Kind, Signature, Words


def place_of(family: str, part: str) -> tuple[str, str]:
    """Return the module and the name of a family's `part`, which is ``signature`` or ``emit``.

    ``gemm.tile`` is `tile` of ``cgraph/kernels/gemm/emit.py``; ``gemm.gpu.tile`` is `tile` of ``gemm/gpu_emit.py``.
    """
    folder, *variant, name = family.split(".")
    return ".".join(("cgraph.kernels", folder, "_".join((*variant, part)))), name


@cache
def signature_of(family: str) -> Signature:
    """Return the signature of a family."""
    module, name = place_of(family, "signature")
    return getattr(import_module(module), name.upper())


def text_of(kernel: Kernel, words: Sequence[Any]) -> str:
    """Return a call as text with the names of params and arguments: ``move.fills(itemsize=4 …) out=… …``.

    The words are those of a `Call`, or of a program: integers as int64, floats by their bits, memory by any name.
    """
    signature = signature_of(kernel.family)
    params = " ".join(f"{name}={value}" for name, value in zip(signature.params, kernel.params))
    named = signature.named(kernel.params, words)
    args = " ".join(f"{name}={word_text(kind, named[name])}" for name, kind in signature.args.items())
    return f"{kernel.family}({params}) {args}"


def word_text(kind: Kind, value: Any) -> str:
    """Return an argument of this kind as text."""
    if isinstance(kind, Words):
        return f"[{' '.join(map(word_text, cycle(kind.kinds), value))}]"
    if kind == "f8" and isinstance(value, int):
        value = struct.unpack("d", struct.pack("q", value))[0]
    return str(value)
