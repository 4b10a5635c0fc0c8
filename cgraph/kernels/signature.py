"""Signatures of kernel families: the name and kind of each argument, shared by callers and emitters.

The signature of the family ``gemm.tile`` is `TILE` in ``cgraph/kernels/gemm/signature.py``; its emitter is `tile` in
``gemm/emit.py``. Callers pack arguments by name (`Signature.call`), emitters read them by name (`Builder.args`), and
code that stores or prints a call names them (`Signature.named`, `text_of`). None of this needs LLVM.

An argument is one 64-bit word, or several. Its kind is the type that a call passes and a kernel reads:

    i8              an integer
    f8              a float64
    f4*, dtype*     the address of elements of a dtype, or of the dtype in the param of this name
    address         an address for pointer arithmetic
    address?        the same, or None, which is passed as 0
    Words           a list of such words
"""

from collections.abc import Callable, Mapping, Sequence
from functools import cache, cached_property
from types import NoneType, SimpleNamespace
from typing import Any

from cgraph.kernels.kernel import Call, Kernel, Param, Pointer
from cgraph.record import Record

NARROW = 4  # bytes of a word where all words of a kernel's calls fit


class Words(Record, eq=False):
    """The kind of an argument that is a list.

    Fields
        kinds: kinds of the words of one item
        count: function that returns the number of items from the params and the arguments before the list, by name:
            integers in a call, values in an emitter
        is_unrolled: the params say the number of items, and emitters read words by numbers that they know
    """

    kinds: tuple[str, ...]
    count: Callable[[SimpleNamespace], Any]
    is_unrolled: bool = False

    def size(self, scope: SimpleNamespace) -> Any:
        """Return the number of words of all items."""
        return self.count(scope) * len(self.kinds)


class WordTable(Record, eq=False):
    """How the arguments of an exported kernel's calls are stored: equal words are in its code, others in tables.

    Fields
        constants: the words that are equal in all calls, by number, as int64; floats by their bits
        places: the first byte of each other word in a table, up to the lists that a kernel indexes
        width: bytes of a word, 4 or 8; words of 4 bytes are integers and addresses

    The words of those lists, and all that follow them, lie behind, in their order.
    """

    constants: Mapping[int, int]
    places: Mapping[int, int]
    width: int

    @property
    def first(self) -> int:
        """The number of the first word that is neither in `constants` nor in `places`."""
        return len(self.constants) + len(self.places)

    def place(self, number: Any) -> Any:
        """Return the place in a table of a word that is not a constant, in words; of a value, a value."""
        if isinstance(number, int) and number in self.places:
            return self.places[number] // self.width
        return number - self.first + len(self.places)


Kind = str | Words
Args = Mapping[str, Kind]


class Signature(Record, eq=False):
    """The names and kinds of a family's arguments, in the order of their words.

    Fields
        family: as in `Kernel`
        params: names of the kernel's params
        args: kind of each argument by name
    """

    family: str
    params: tuple[str, ...]
    args: Args

    @cached_property
    def types(self) -> tuple[type | tuple[type, ...], ...]:
        """The Python types that a call may pass for each argument."""
        return tuple(types_of(kind) for kind in self.args.values())

    @cached_property
    def lists(self) -> tuple[str, ...]:
        """The names of the arguments that are lists."""
        return tuple(name for name, kind in self.args.items() if isinstance(kind, Words))

    def unrolled_kinds(self, params: Sequence[Param]) -> list[str]:
        """Return the kinds of the words before the first list that a kernel indexes."""
        scope, kinds = self.scope(params), []
        for kind in self.args.values():
            if isinstance(kind, str):
                kinds.append(kind)
            elif kind.is_unrolled:
                kinds += kind.kinds * kind.count(scope)
            else:
                break
        return kinds

    def call(self, params: tuple[Param, ...], tasks: int, chunk: int = 1, /, **args: Any) -> Call:
        """Return a call of the kernel with these params.

        Raises
            TypeError: an argument is missing or unknown, or has a wrong type or, for a list, a wrong length
        """
        if args.keys() != self.args.keys() or len(params) != len(self.params):
            raise TypeError(self.complaint(params, args))
        values = list(map(args.__getitem__, self.args))
        if not all(map(isinstance, values, self.types)):
            raise TypeError(self.complaint(params, args))
        if self.lists:
            values = self.words(params, args)
        return Call(Kernel(self.family, params), tuple(0 if x is None else x for x in values), tasks, chunk)

    def words(self, params: tuple[Param, ...], args: Mapping[str, Any]) -> list[Any]:
        """Return the words of all arguments, with the lists checked and flattened."""
        scope, words = self.scope(params, args), []
        for name, kind in self.args.items():
            if isinstance(kind, Words):
                self.check_list(name, kind, args[name], kind.size(scope))
                words += args[name]
            else:
                words.append(args[name])
        return words

    def check_list(self, name: str, kind: Words, value: Sequence, size: int) -> None:
        """Raise TypeError unless a list has `size` words of its kinds."""
        if len(value) != size:
            raise TypeError(f"{self.family}: argument {name} has {len(value)} words, it needs {size}")
        kinds = kind.kinds * (size // len(kind.kinds))
        for i, (word, expected) in enumerate(zip(value, kinds)):
            if not isinstance(word, types_of(expected)):
                raise TypeError(f"{self.family}: argument {name}[{i}] is {word!r}, it needs the kind {expected}")

    def complaint(self, params: tuple[Param, ...], args: Mapping[str, Any]) -> str:
        """Return a message about the wrong params, names or types of a call."""
        if len(params) != len(self.params):
            return f"{self.family} takes the params ({', '.join(self.params)}), the call has {params}"
        missing, unknown = self.args.keys() - args.keys(), args.keys() - self.args.keys()
        wrong = [f"needs {x}" for x in sorted(missing)] + [f"does not take {x}" for x in sorted(unknown)]
        if wrong:
            return f"{self.family}({', '.join(self.args)}) {', '.join(wrong)}"
        name = next(name for name, types in zip(self.args, self.types) if not isinstance(args[name], types))
        kind = "list" if isinstance(self.args[name], Words) else self.args[name]
        return f"{self.family}: argument {name} is {args[name]!r}, it needs the kind {kind}"

    def scope(self, params: Sequence[Param], args: Mapping[str, Any] | None = None) -> SimpleNamespace:
        """Return a namespace of a kernel's params and the arguments of a call."""
        return SimpleNamespace(**dict(zip(self.params, params)), **(args or {}))

    def named(self, params: Sequence[Param], words: Sequence[Any]) -> dict[str, Any]:
        """Return the arguments of a call by name from its words, lists as tuples: the inverse of `call`."""
        scope, at = self.scope(params), 0
        named: dict[str, Any] = {}
        for name, kind in self.args.items():
            size = kind.size(scope) if isinstance(kind, Words) else 1
            value: Any = tuple(words[at : at + size]) if isinstance(kind, Words) else words[at]
            named[name] = None if kind == "address?" and value == 0 else value
            setattr(scope, name, value)
            at += size
        return named


@cache
def types_of(kind: Kind) -> type | tuple[type, ...]:
    """Return the Python types that a call may pass for an argument of this kind."""
    if isinstance(kind, Words):
        return list, tuple
    if kind in ("i8", "f8"):
        return int if kind == "i8" else float
    return (Pointer, NoneType) if kind.endswith("?") else Pointer
