"""Scalar programs: the computation of a pointwise op for one element, as plain tuples for any device.

An op's `scalar` facet is a Python function of traced values. Calling it once records a list of instructions. The list
is hashable and is the key of the fused kernel; it names no op and no device.

    ("load", dtype, i)            element of operand i
    ("const", dtype, text)        a constant, written so that it compares equal to itself (floats in hex)
    (name, dtype, *positions)     a primitive applied to earlier instructions; `dtype` is the result's

A complex number (``c8 c16``) is only loaded, split (``real imag``) and combined (``pair``); its arithmetic consists of
real instructions, which `cgraph.kernels.complex_math` writes.

Integers wrap; ``div`` and ``rem`` of integers truncate towards zero and give 0 for a zero divisor; ``min`` and ``max``
of floats are NaN when either side is; ``cast`` of a float outside an integer's range is not defined.
"""

from typing import Any

from cgraph.kernels.complex_math import FORMULAS
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
        "ndtr",
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
        "gcd",
    ]
)
COMPARE = frozenset(["lt", "le", "gt", "ge", "eq", "ne", "is_nan"])


class Value(Record, eq=False):
    """A value of a program under construction; its operators append instructions."""

    trace: "Trace"
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


class Traced(Value, eq=False):
    """A real value: one instruction of a program under construction."""

    position: int


class Pair(Value, eq=False):
    """A complex value of a program under construction: its two real parts."""

    re: Traced
    im: Traced


class Trace:
    """A program under construction. Changes: instructions are appended; equal ones are written once.

    Every primitive is a method: ``m.exp(x)``, ``m.where(c, x, y)``, ``m.eq(x, y)``, ``m.cast(x, "f4")``.
    """

    def __init__(self) -> None:
        self.instructions: list[tuple] = []
        self._places: dict[tuple, int] = {}

    def load(self, i: int, dtype: str) -> Any:
        whole = self.write(("load", dtype, i))
        if dtype[0] != "c":
            return whole
        part = part_of(dtype)
        return self.pair(*(self.write((name, part, whole.position)) for name in ("real", "imag")))

    def pair(self, re: Traced, im: Traced) -> Pair:
        """Return the complex number of two parts of one dtype."""
        return Pair(self, f"c{2 * int(re.dtype[1:])}", re, im)

    def const(self, value: Any, dtype: str) -> Any:
        if dtype[0] == "c":
            return self.pair(*(self.const(x, part_of(dtype)) for x in (value.real, value.imag)))
        text = float(value).hex() if dtype[0] == "f" else str(int(value))
        return self.write(("const", dtype, text))

    def write(self, instruction: tuple) -> Traced:
        place = self._places.setdefault(instruction, len(self.instructions))
        if place == len(self.instructions):
            self.instructions.append(instruction)
        return Traced(self, instruction[1], place)

    def apply(self, name: str, *operands: Any) -> Any:
        """Append a primitive of operands that share one dtype; Python numbers are converted to it."""
        dtype = next(x.dtype for x in operands if isinstance(x, Value))
        xs: list[Any] = [x if isinstance(x, Value) else self.const(x, dtype) for x in operands]
        if dtype[0] == "c":
            return FORMULAS[name](self, *xs)
        return self.write((name, "b1" if name in COMPARE else dtype, *(x.position for x in xs)))

    def where(self, condition: Traced, x: Any, y: Any) -> Any:
        dtype = next(v.dtype for v in (x, y) if isinstance(v, Value))
        x, y = (v if isinstance(v, Value) else self.const(v, dtype) for v in (x, y))
        if dtype[0] == "c":
            return self.pair(self.where(condition, x.re, y.re), self.where(condition, x.im, y.im))
        return self.write(("select", dtype, condition.position, x.position, y.position))

    def cast(self, x: Any, dtype: str) -> Any:
        """Return a value in another dtype. A complex number becomes its real part, or for bool whether it is not 0."""
        if x.dtype == dtype:
            return x
        if dtype[0] == "c":
            parts = (x.re, x.im) if x.dtype[0] == "c" else (x, self.const(0, x.dtype))
            return self.pair(*(self.cast(v, part_of(dtype)) for v in parts))
        if x.dtype[0] == "c":
            return self.apply("ne", x, 0) if dtype == "b1" else self.cast(x.re, dtype)
        return self.write(("cast", dtype, x.position))

    def bits(self, x: Traced, dtype: str) -> Traced:
        """Return the same bits as another dtype of the same size."""
        return self.write(("bits", dtype, x.position))

    def __getattr__(self, name: str):
        if name not in UNARY | BINARY | COMPARE:
            raise AttributeError(
                f"no primitive is called {name!r}. Use one of UNARY, BINARY or COMPARE in cgraph.kernels.expression"
            )
        return lambda *operands: self.apply(name, *operands)

    def program(self, result: Any) -> Program:
        """Return the instructions that `result` needs, in order; the last one is the result."""
        return self.joint_program(result)[0]

    def joint_program(self, *results: Any) -> tuple[Program, tuple[int, ...]]:
        """Return the instructions that several results need, in order, and the results' positions among them."""
        positions = [self.whole(x).position for x in results]
        needed = set(positions)
        for i in range(max(positions), -1, -1):
            if i in needed:
                needed.update(operands_of(self.instructions[i]))
        order = sorted(needed)
        place = {old: new for new, old in enumerate(order)}
        return tuple(renumber(self.instructions[i], place) for i in order), tuple(place[i] for i in positions)

    def whole(self, x: Any) -> Any:
        """Return a value as one number; a pair becomes a complex one."""
        return self.write(("pair", x.dtype, x.re.position, x.im.position)) if isinstance(x, Pair) else x


def operands_of(instruction: tuple) -> tuple[int, ...]:
    """Return the positions that an instruction reads."""
    return () if instruction[0] in ("load", "const") else instruction[2:]


def renumber(instruction: tuple, place: dict[int, int]) -> tuple:
    if instruction[0] in ("load", "const"):
        return instruction
    return (*instruction[:2], *(place[i] for i in instruction[2:]))


def constant_of(instruction: tuple) -> int | float:
    """Return the value of a ``const`` instruction."""
    return float.fromhex(instruction[2]) if instruction[1][0] == "f" else int(instruction[2])


def part_of(dtype: str) -> str:
    """Return the dtype of a complex number's parts: ``part_of("c8") == "f4"``."""
    return f"f{int(dtype[1:]) // 2}"
