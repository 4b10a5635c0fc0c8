"""Kernel families by name: the signature of a family, and a call of it as text."""

import struct
from collections.abc import Sequence
from functools import cache
from importlib import import_module
from itertools import cycle
from typing import Any

from cgraph.kernels.kernel import Kernel
from cgraph.kernels.signature import Kind, Signature, Words


@cache
def signature_of(family: str) -> Signature:
    """The signature of a family, by its place."""
    module, _, name = family.rpartition(".")
    return getattr(import_module(f"cgraph.kernels.signatures.{module}"), name.upper())


def text_of(kernel: Kernel, words: Sequence[Any]) -> str:
    """A kernel and the words of a call, with the names of params and arguments: ``move.fills(itemsize=4 …) out=… …``.

    Words are those of a `Call`, or of a program: numbers as int64, floats by their bits, memory by any name.
    """
    signature = signature_of(kernel.family)
    params = " ".join(f"{name}={value}" for name, value in zip(signature.params, kernel.params))
    named = signature.named(kernel.params, words)
    args = " ".join(f"{name}={word_text(kind, named[name])}" for name, kind in signature.args.items())
    return f"{kernel.family}({params}) {args}"


def word_text(kind: Kind, value: Any) -> str:
    """An argument of this kind as text."""
    if isinstance(kind, Words):
        return f"[{' '.join(map(word_text, cycle(kind.kinds), value))}]"
    if kind == "f8" and isinstance(value, int):
        value = struct.unpack("d", struct.pack("q", value))[0]
    return str(value)
