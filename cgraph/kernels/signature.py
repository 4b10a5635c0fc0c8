"""What the arguments of a kernel family are called and what they hold: one record, read by both sides of a call.

A family's signature stands below ``cgraph/kernels/signatures`` under the family's own name: that of ``gemm.tile`` is
`TILE` in ``signatures/gemm.py``, as its emitter is `tile` in ``llvm/gemm.py``. Callers pack arguments by name
(`Signature.call`), emitters read them by name (`Builder.args`), and whoever keeps or shows a call names them
(`Signature.named`, `text_of`). Nothing here or there needs LLVM.

An argument is a word of 64 bits, or several. Its kind says what a call gives and what a kernel reads:

    i8              a whole number
    f8              a float64
    f4*, dtype*     the address of elements of a dtype, or of the dtype that the param of this name says
    address         an address to calculate with
    address?        the same, or None, which is read as 0
    Words           a list of such words
"""

from collections.abc import Callable, Mapping, Sequence
from functools import cache, cached_property
from importlib import import_module
from types import NoneType, SimpleNamespace
from typing import Any

from cgraph.kernels.kernel import Call, Kernel, Param, Pointer
from cgraph.record import Record


class Words(Record, eq=False):
    """A list among the arguments.

    Fields
        kinds: of the words of one item
        count: how many items there are, from the params and from the arguments in front of the list by name; those
            are numbers at a call and values in an emitter
    """

    kinds: tuple[str, ...]
    count: Callable[[SimpleNamespace], Any]

    def size(self, known: SimpleNamespace) -> Any:
        """Words of all items."""
        return self.count(known) * len(self.kinds)


Kind = str | Words
Args = Mapping[str, Kind]


class Signature(Record, eq=False):
    """The arguments of a kernel family, in the order of their words.

    Fields
        family: as in `Kernel`
        params: the names of the kernel's params
        args: the kind of each argument, by name
    """

    family: str
    params: tuple[str, ...]
    args: Args

    @cached_property
    def types(self) -> dict[str, tuple[type, ...]]:
        """What a call may give for each argument of one word."""
        return {name: types_of(kind) for name, kind in self.args.items() if isinstance(kind, str)}

    def call(self, params: tuple[Param, ...], tasks: int, chunk: int = 1, /, **given: Any) -> Call:
        """A call of the kernel with these params.

        Raises
            TypeError: an argument is missing, unknown, of another type or, a list, of another length
        """
        if given.keys() != self.args.keys() or len(params) != len(self.params):
            raise TypeError(self.complaint(params, given))
        known = self.scope(params)
        words: list[int | float | Pointer] = []
        for name, kind in self.args.items():
            value = given[name]
            if isinstance(kind, Words):
                words += self.listed(name, kind, value, kind.size(known))
            elif isinstance(given[name], self.types[name]):
                words.append(0 if value is None else value)
                setattr(known, name, value)
            else:
                raise TypeError(f"{self.family}: argument {name} is {value!r}, no {kind}")
        return Call(Kernel(self.family, params), tuple(words), tasks, chunk)

    def listed(self, name: str, kind: Words, value: Sequence, size: int) -> Sequence:
        """The words of a list, after a look at them."""
        if len(value) != size:
            raise TypeError(f"{self.family}: argument {name} has {len(value)} words, not {size}")
        for i, word in enumerate(value):
            expected = kind.kinds[i % len(kind.kinds)]
            if not isinstance(word, types_of(expected)):
                raise TypeError(f"{self.family}: argument {name}[{i}] is {word!r}, no {expected}")
        return value

    def complaint(self, params: tuple[Param, ...], given: Mapping[str, Any]) -> str:
        """What is wrong with the names of a call's arguments, or with the number of its params."""
        if len(params) != len(self.params):
            return f"{self.family} has the params {', '.join(self.params)}, not {params}"
        missing, unknown = self.args.keys() - given.keys(), given.keys() - self.args.keys()
        wrong = [f"needs {x}" for x in sorted(missing)] + [f"does not take {x}" for x in sorted(unknown)]
        return f"{self.family}({', '.join(self.args)}) {', '.join(wrong)}"

    def scope(self, params: Sequence[Param]) -> SimpleNamespace:
        """A kernel's params by name."""
        return SimpleNamespace(**dict(zip(self.params, params)))

    def named(self, call: Call) -> dict[str, Any]:
        """The arguments of a call of this family by name, lists as tuples: what `call` was given."""
        assert isinstance(call.kernel, Kernel)
        known, at = self.scope(call.kernel.params), 0
        found: dict[str, Any] = {}
        for name, kind in self.args.items():
            size = kind.size(known) if isinstance(kind, Words) else 1
            value: Any = call.args[at : at + size] if isinstance(kind, Words) else call.args[at]
            found[name] = None if kind == "address?" and value == 0 else value
            setattr(known, name, value)
            at += size
        return found


def types_of(kind: str) -> tuple[type, ...]:
    """The types of what a call may give for a word of this kind."""
    if kind in ("i8", "f8"):
        return (int,) if kind == "i8" else (float,)
    return (Pointer, NoneType) if kind.endswith("?") else (Pointer,)


@cache
def signature_of(family: str) -> Signature:
    """The signature of a family, by its place."""
    module, name = family.split(".")
    return getattr(import_module(f"cgraph.kernels.signatures.{module}"), name.upper())


def text_of(call: Call) -> str:
    """A call with the names of its params and arguments, for people: ``move.fills(itemsize=4 …) out=arena+64 …``."""
    if not isinstance(call.kernel, Kernel):
        return f"Python function, {len(call.args)} words"
    signature = signature_of(call.kernel.family)
    params = " ".join(f"{name}={value}" for name, value in zip(signature.params, call.kernel.params))
    args = " ".join(f"{name}={word_text(value)}" for name, value in signature.named(call).items())
    return f"{call.kernel.family}({params}) {args}, {call.tasks} tasks"


def word_text(value: Any) -> str:
    """An argument as text; memory by its key, an array by its dtype and shape."""
    if isinstance(value, tuple):
        return f"[{' '.join(map(word_text, value))}]"
    if not isinstance(value, Pointer):
        return str(value)
    base = value.base
    key = base if isinstance(base, str) else getattr(base, "name", None) or type(base).__name__
    return f"{key}+{value.offset}"
