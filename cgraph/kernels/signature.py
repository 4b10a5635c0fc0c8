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

    def size(self, scope: SimpleNamespace) -> Any:
        """Words of all items."""
        return self.count(scope) * len(self.kinds)


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
    def types(self) -> tuple[type | tuple[type, ...], ...]:
        """What a call may give for each argument."""
        return tuple(types_of(kind) for kind in self.args.values())

    @cached_property
    def lists(self) -> tuple[str, ...]:
        """The arguments that are lists."""
        return tuple(name for name, kind in self.args.items() if isinstance(kind, Words))

    def call(self, params: tuple[Param, ...], tasks: int, chunk: int = 1, /, **args: Any) -> Call:
        """A call of the kernel with these params.

        Raises
            TypeError: an argument is missing, unknown, of another type or, a list, of another length
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
        """The words of all arguments, those of lists among them after a look at them."""
        scope, words = self.scope(params, args), []
        for name, kind in self.args.items():
            if isinstance(kind, Words):
                self.check_list(name, kind, args[name], kind.size(scope))
                words += args[name]
            else:
                words.append(args[name])
        return words

    def check_list(self, name: str, kind: Words, value: Sequence, size: int) -> None:
        """TypeError when a list is not `size` words of its kinds."""
        if len(value) != size:
            raise TypeError(f"{self.family}: argument {name} has {len(value)} words, not {size}")
        kinds = kind.kinds * (size // len(kind.kinds))
        for i, (word, expected) in enumerate(zip(value, kinds)):
            if not isinstance(word, types_of(expected)):
                raise TypeError(f"{self.family}: argument {name}[{i}] is {word!r}, no {expected}")

    def complaint(self, params: tuple[Param, ...], args: Mapping[str, Any]) -> str:
        """What is wrong with the params, the names or the types of a call."""
        if len(params) != len(self.params):
            return f"{self.family} has the params {', '.join(self.params)}, not {params}"
        missing, unknown = self.args.keys() - args.keys(), args.keys() - self.args.keys()
        wrong = [f"needs {x}" for x in sorted(missing)] + [f"does not take {x}" for x in sorted(unknown)]
        if wrong:
            return f"{self.family}({', '.join(self.args)}) {', '.join(wrong)}"
        name = next(name for name, types in zip(self.args, self.types) if not isinstance(args[name], types))
        kind = "list" if isinstance(self.args[name], Words) else self.args[name]
        return f"{self.family}: argument {name} is {args[name]!r}, no {kind}"

    def scope(self, params: Sequence[Param], args: Mapping[str, Any] | None = None) -> SimpleNamespace:
        """A kernel's params and the arguments of a call by name."""
        return SimpleNamespace(**dict(zip(self.params, params)), **(args or {}))

    def named(self, params: Sequence[Param], words: Sequence[Any]) -> dict[str, Any]:
        """The words of a call by the names of their arguments, lists as tuples: what `call` was given."""
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
    """The types of what a call may give for an argument of this kind."""
    if isinstance(kind, Words):
        return list, tuple
    if kind in ("i8", "f8"):
        return int if kind == "i8" else float
    return (Pointer, NoneType) if kind.endswith("?") else Pointer
