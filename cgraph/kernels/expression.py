"""Scalar expressions as plain tuples: what a pointwise op computes for one element, for any device.

An op's `scalar` facet is a Python function of traced values; calling it once writes down a straight list of
instructions. The list is hashable, so it is the key of the fused kernel; it names no op and no device.

    ("load", dtype, i)            element of operand i
    ("const", dtype, text)        a constant, written so that it compares equal to itself (floats in hex)
    (name, dtype, *positions)     a primitive applied to earlier instructions; `dtype` is the result's

Integers wrap; ``div`` and ``rem`` of integers truncate towards zero and give 0 for a zero divisor; ``min`` and ``max``
of floats are NaN when either side is; ``cast`` of a float outside an integer's range is not defined.
"""

from functools import cache

import numpy as np

from cgraph.record import Record

Program = tuple[tuple, ...]

UNARY = frozenset(
    [
        "neg",
        "abs",
        "not",
        "floor",
        "ceil",
        "rint",
        "trunc",
        "sqrt",
        "exp",
        "exp2",
        "expm1",
        "log",
        "log2",
        "log10",
        "log1p",
        "sin",
        "cos",
        "tan",
        "asin",
        "acos",
        "atan",
        "sinh",
        "cosh",
        "tanh",
        "asinh",
        "acosh",
        "atanh",
        "erf",
        "erfc",
        "gamma",
        "lgamma",
        "sigmoid",
    ]
)
BINARY = frozenset(
    [
        "add",
        "sub",
        "mul",
        "div",
        "rem",
        "min",
        "max",
        "pow",
        "atan2",
        "hypot",
        "fmod",
        "copysign",
        "and",
        "or",
        "xor",
        "shl",
        "shr",
    ]
)
COMPARE = frozenset(["lt", "le", "gt", "ge", "eq", "ne", "is_nan"])


class Traced(Record, eq=False):
    """One instruction of a program being written; operators write the next ones."""

    trace: "Trace"
    position: int
    dtype: str

    def __add__(self, y):
        return self.trace.apply("add", self, y)

    def __radd__(self, y):
        return self.trace.apply("add", y, self)

    def __sub__(self, y):
        return self.trace.apply("sub", self, y)

    def __rsub__(self, y):
        return self.trace.apply("sub", y, self)

    def __mul__(self, y):
        return self.trace.apply("mul", self, y)

    def __rmul__(self, y):
        return self.trace.apply("mul", y, self)

    def __truediv__(self, y):
        return self.trace.apply("div", self, y)

    def __rtruediv__(self, y):
        return self.trace.apply("div", y, self)

    def __and__(self, y):
        return self.trace.apply("and", self, y)

    def __or__(self, y):
        return self.trace.apply("or", self, y)

    def __xor__(self, y):
        return self.trace.apply("xor", self, y)

    def __invert__(self):
        return self.trace.apply("not", self)

    def __neg__(self):
        return self.trace.apply("neg", self)

    def __lt__(self, y):
        return self.trace.apply("lt", self, y)

    def __le__(self, y):
        return self.trace.apply("le", self, y)

    def __gt__(self, y):
        return self.trace.apply("gt", self, y)

    def __ge__(self, y):
        return self.trace.apply("ge", self, y)


class Trace:
    """Writes a program. Changes: instructions are appended; equal ones are written once.

    Every primitive is a method: ``m.exp(x)``, ``m.where(c, x, y)``, ``m.eq(x, y)``, ``m.cast(x, "f4")``.
    """

    def __init__(self) -> None:
        self.instructions: list[tuple] = []
        self._places: dict[tuple, int] = {}

    def load(self, i: int, dtype: str) -> Traced:
        return self.write(("load", dtype, i))

    def const(self, value, dtype: str) -> Traced:
        text = float(value).hex() if dtype[0] == "f" else str(int(value))
        return self.write(("const", dtype, text))

    def write(self, instruction: tuple) -> Traced:
        place = self._places.setdefault(instruction, len(self.instructions))
        if place == len(self.instructions):
            self.instructions.append(instruction)
        return Traced(self, place, instruction[1])

    def apply(self, name: str, *operands) -> Traced:
        """A primitive of operands that share one dtype; Python numbers take it too."""
        dtype = next(x.dtype for x in operands if isinstance(x, Traced))
        xs = [x if isinstance(x, Traced) else self.const(x, dtype) for x in operands]
        return self.write((name, "b1" if name in COMPARE else dtype, *(x.position for x in xs)))

    def where(self, condition: Traced, x, y) -> Traced:
        dtype = next(v.dtype for v in (x, y) if isinstance(v, Traced))
        x, y = (v if isinstance(v, Traced) else self.const(v, dtype) for v in (x, y))
        return self.write(("select", dtype, condition.position, x.position, y.position))

    def cast(self, x: Traced, dtype: str) -> Traced:
        return x if x.dtype == dtype else self.write(("cast", dtype, x.position))

    def bits(self, x: Traced, dtype: str) -> Traced:
        """The same bits read as another dtype of the same size."""
        return self.write(("bits", dtype, x.position))

    def __getattr__(self, name: str):
        if name not in UNARY | BINARY | COMPARE:
            raise AttributeError(f"no primitive is called {name!r}")
        return lambda *operands: self.apply(name, *operands)

    def program(self, result: Traced) -> Program:
        """The instructions that `result` needs, in order; the last one is the result."""
        needed = {result.position}
        for i in range(result.position, -1, -1):
            if i in needed:
                needed.update(operands_of(self.instructions[i]))
        order = sorted(needed)
        place = {old: new for new, old in enumerate(order)}
        return tuple(renumbered(self.instructions[i], place) for i in order)


def operands_of(instruction: tuple) -> tuple[int, ...]:
    """Positions that an instruction reads."""
    return () if instruction[0] in ("load", "const") else instruction[2:]


def renumbered(instruction: tuple, place: dict[int, int]) -> tuple:
    if instruction[0] in ("load", "const"):
        return instruction
    return (*instruction[:2], *(place[i] for i in instruction[2:]))


def constant_of(instruction: tuple) -> int | float:
    """The value of a ``const`` instruction."""
    return float.fromhex(instruction[2]) if instruction[1][0] == "f" else int(instruction[2])


@cache
def code_of(dtype: np.dtype) -> str:
    """NumPy's short code: ``code_of(np.dtype("float32")) == "f4"``."""
    return f"{dtype.kind}{dtype.itemsize}"
