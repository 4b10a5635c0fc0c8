"""Reader of the part of pickle that describes data. It calls nothing.

A function call in the pickle becomes a `PickledCall`, a persistent object a `PersistentId`. The caller lists the names
that a pickle may use; any other is refused before it has an effect. Values may share parts, so a few instructions can
describe a tuple of 2**40 elements: nothing here walks, compares or prints a value.
"""

import pickletools
import sys
from collections.abc import Callable
from typing import Any

from cgraph.errors import FormatError, damaged_file
from cgraph.formats.allowance import Allowance
from cgraph.record import Record

INSTRUCTION = 128  # upper bound of the bytes that one instruction creates, beside text, numbers and tuples
POINTER = 8
LONGEST_TEXT = 16 << 20
LONGEST_LINE = 1 << 12
LARGEST_KEY = 1 << 48  # a number, whose text is short


class Global(Record):
    """The name of a function or class in a pickle."""

    module: str
    name: str


class PickledCall(Record, eq=False):
    """A function call in a pickle, which is not executed."""

    function: Global
    args: tuple


class PersistentId(Record, eq=False):
    """The persistent id of an object that is stored outside the pickle."""

    record: Any


MARK = object()
DICT = Global("collections", "OrderedDict")
CONSTANTS: dict[str, Callable[[], Any]] = {
    "NONE": lambda: None,
    "NEWTRUE": lambda: True,
    "NEWFALSE": lambda: False,
    "EMPTY_DICT": dict,
    "EMPTY_LIST": list,
    "EMPTY_TUPLE": tuple,
}
LITERALS = frozenset("BININT BININT1 BININT2 LONG1 LONG4 BINFLOAT BINUNICODE SHORT_BINUNICODE BINUNICODE8".split())
TUPLES = {"TUPLE1": 1, "TUPLE2": 2, "TUPLE3": 3}
IGNORED = frozenset(("PROTO", "FRAME"))


def describe(x: Any) -> str:
    """Return a value as text for a message: numbers and short text unchanged, otherwise its type and size."""
    if x is None or isinstance(x, bool | float):
        return repr(x)
    if isinstance(x, int):
        return repr(x) if abs(x) < 2**64 else "a huge number"
    if isinstance(x, str):
        return f"{x[:40]!r}"
    if isinstance(x, Global):
        return f"{x.module}.{x.name}"
    if isinstance(x, tuple | list | dict):
        return f"a {type(x).__name__} of {len(x)}"
    return f"a {type(x).__name__}"


class ByteStream:
    """A sequential reader of bytes. Changes: its position."""

    def __init__(self, data: memoryview) -> None:
        self.data, self.at = data, 0

    def read(self, count: int) -> bytes:
        """Return the next bytes; fewer at the end."""
        if count > LONGEST_TEXT:
            raise FormatError(
                f"it has a text or number of {count} bytes; at most {LONGEST_TEXT} are read. Save tensors only (a "
                "state_dict)"
            )
        data = bytes(self.data[self.at : self.at + count])
        self.at += len(data)
        return data

    def readline(self) -> bytes:
        """Return the next bytes up to the end of a line."""
        head = bytes(self.data[self.at : self.at + LONGEST_LINE])
        line = head[: head.find(b"\n") + 1]
        if not line:
            raise FormatError(f"it has a line of over {len(head)} bytes")
        self.at += len(line)
        return line

    def tell(self) -> int:
        return self.at


class PickleReader:
    """The stack and memo of the pickle machine. Changes: with each instruction."""

    def __init__(self, allowed: frozenset[Global], allowance: Allowance) -> None:
        self.allowed, self.allowance = allowed, allowance
        self.stack: list[Any] = []
        self.memo: list[Any] = []

    def step(self, name: str, arg: Any) -> None:
        """Execute one instruction. FormatError if it does not describe data."""
        self.allowance.spend("its description", nbytes=INSTRUCTION + (0 if arg is None else sys.getsizeof(arg)))
        if name in IGNORED:
            return
        if name in LITERALS:
            self.stack.append(arg)
        elif name in CONSTANTS:
            self.stack.append(CONSTANTS[name]())
        elif name == "MARK":
            self.stack.append(MARK)
        elif name in ("BINPUT", "LONG_BINPUT"):
            self.memoize(arg, self.top())
        elif name == "MEMOIZE":
            self.memo.append(self.top())
        elif name in ("BINGET", "LONG_BINGET"):
            self.stack.append(self.remembered(arg))
        elif name in TUPLES:
            self.stack.append(tuple(reversed([self.pop() for _ in range(TUPLES[name])])))
        elif name == "TUPLE":
            self.stack.append(tuple(self.since_mark()))
        elif name in ("APPEND", "APPENDS"):
            values = [self.pop()] if name == "APPEND" else self.since_mark()
            self.container(list).extend(values)
        elif name in ("SETITEM", "SETITEMS"):
            self.set_items([self.pop(), self.pop()][::-1] if name == "SETITEM" else self.since_mark())
        else:
            self.step_object(name, arg)

    def step_object(self, name: str, arg: Any) -> None:
        """Execute an instruction that names or creates an object."""
        if name == "GLOBAL":
            self.stack.append(self.named(*arg.split(" ", 1)))
        elif name == "STACK_GLOBAL":
            second, first = self.pop(), self.pop()
            self.stack.append(self.named(first, second))
        elif name == "BINPERSID":
            self.stack.append(PersistentId(self.pop()))
        elif name == "REDUCE":
            args, function = self.pop(), self.pop()
            self.stack.append(self.called(function, args))
        elif name == "BUILD":
            self.pop()  # attributes of a dictionary: versions of modules, which nothing here reads
            self.container(dict)
        else:
            raise FormatError(f"instruction {name} does not describe data. Save tensors only (a state_dict)")

    def named(self, module: Any, name: Any) -> Global:
        if not isinstance(module, str) or not isinstance(name, str) or Global(module, name) not in self.allowed:
            raise FormatError(
                f"it names {describe(module)}.{describe(name)}, which is not allowed. Save tensors only (a state_dict)"
            )
        return Global(module, name)

    def called(self, function: Any, args: Any) -> Any:
        if not isinstance(function, Global) or not isinstance(args, tuple):
            raise FormatError(f"it calls {describe(function)}, which is not allowed. Save tensors only (a state_dict)")
        if function != DICT:
            return PickledCall(function, args)
        if args:
            raise FormatError(
                f"it creates a dictionary from {len(args)} arguments, which is not supported. Save a plain dict of "
                "tensors"
            )
        return {}

    def set_items(self, values: list) -> None:
        """Add entries to a dictionary under their keys as text, since crafted integer keys could collide."""
        if len(values) % 2 or not all(map(is_key, values[::2])):
            kinds = ", ".join(sorted({type(x).__name__ for x in values[::2]}))
            raise damaged_file(f"a dictionary has keys that are neither text nor numbers, or lacks a value: {kinds}")
        self.container(dict).update(zip(map(str, values[::2]), values[1::2]))

    def memoize(self, number: int, value: Any) -> None:
        """Store a value in the memo. Numbers must count up from 0 or (Python 2) 1; others are refused."""
        if not self.memo and number == 1:
            self.memo.append(MARK)
        if number > len(self.memo):
            raise damaged_file(f"its memo has {len(self.memo)} values, and the next one has the number {number}")
        self.memo[number : number + 1] = [value]

    def remembered(self, number: int) -> Any:
        """Return a value of the memo."""
        if number >= len(self.memo) or self.memo[number] is MARK:
            raise damaged_file(f"its memo has {len(self.memo)} values, none of the number {number}")
        return self.memo[number]

    def container(self, kind: type) -> Any:
        if type(self.top()) is not kind:
            raise FormatError(f"{describe(self.top())} is not a {kind.__name__}. Save tensors only (a state_dict)")
        return self.top()

    def top(self) -> Any:
        if not self.stack or self.stack[-1] is MARK:
            raise damaged_file("an instruction reads its empty stack")
        return self.stack[-1]

    def pop(self) -> Any:
        value = self.top()
        self.stack.pop()
        return value

    def since_mark(self) -> list:
        """Pop all values above the last mark, and the mark."""
        at = next((i for i in reversed(range(len(self.stack))) if self.stack[i] is MARK), None)
        if at is None:
            raise damaged_file("an instruction needs a mark that is absent")
        self.allowance.spend("its description", nbytes=POINTER * (len(self.stack) - at))
        items = self.stack[at + 1 :]
        del self.stack[at:]
        return items


def is_key(x: Any) -> bool:
    return isinstance(x, str) or (isinstance(x, int) and abs(x) < LARGEST_KEY)


def read_pickle(stream: ByteStream, allowed: frozenset[Global], allowance: Allowance) -> Any:
    """Return the value of the next pickle in `stream`, which may use the names in `allowed` only.

    Raises
        FormatError: it is malformed, holds more than data, or takes too much memory
    """
    reader = PickleReader(allowed, allowance)
    try:
        for opcode, arg, _ in pickletools.genops(stream):  # type: ignore[arg-type]
            if opcode.name == "STOP":
                break
            reader.step(opcode.name, arg)
    except FormatError:
        raise
    except (ValueError, KeyError, IndexError, UnicodeError, TypeError) as error:
        raise damaged_file(f"malformed pickle: {error}") from error
    return reader.pop()
