"""Values of kernels being written: scalars and vectors with Python operators, addresses of elements, variables.

Dtypes are NumPy's short codes: ``f4 f8 i1 i2 i4 i8 u1 u2 u4 u8 b1 c8 c16``. ``b1`` is one byte in memory, one bit in a
register; a complex number is one integer of its size (`cgraph.kernels.llvm.vcomplex`). Codes of storage dtypes are only
for memory; these values are ``f4`` in a register (`cgraph.kernels.llvm.storage`). Python numbers become constants of
the other side's type; a scalar next to a vector is spread over its lanes.
"""

from functools import cache
from typing import Any

from cgraph.kernels.llvm import ir, storage

Builder = Any  # a value's builder is not imported here: `cgraph.kernels.llvm.build`
BOOL = ir.BOOL


@cache
def scalar_type(dtype: str) -> ir.Type:
    """The LLVM type of one element in a register."""
    if dtype[0] == "f":
        return ir.FLOAT if dtype == "f4" else ir.DOUBLE
    return BOOL if dtype == "b1" else ir.IntType(8 * int(dtype[1:]))


@cache
def vector_type(dtype: str, lanes: int) -> ir.Type:
    """Return the type of `lanes` elements; 0 lanes is a scalar."""
    return ir.VectorType(scalar_type(dtype), lanes) if lanes else scalar_type(dtype)


def nbytes_of(dtype: str) -> int:
    return int(dtype[1:])


def alignment_of(dtype: str) -> int:
    """Bytes: NumPy aligns a complex number as its parts."""
    return nbytes_of(dtype) // (2 if dtype[0] == "c" else 1)


class Val:
    """An SSA value. Operators append instructions; `==` and `<` give ``b1`` values."""

    __slots__ = ("dtype", "k", "lanes", "v")
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, k: Builder, v: ir.Value, dtype: str, lanes: int) -> None:
        self.k, self.v, self.dtype, self.lanes = k, v, dtype, lanes

    @property
    def is_float(self) -> bool:
        return self.dtype[0] == "f"

    def __add__(self, y):
        return self.k.binary("add", self, y)

    def __sub__(self, y):
        return self.k.binary("sub", self, y)

    def __mul__(self, y):
        return self.k.binary("mul", self, y)

    def __radd__(self, y):
        return self.k.binary("add", y, self)

    def __rsub__(self, y):
        return self.k.binary("sub", y, self)

    def __rmul__(self, y):
        return self.k.binary("mul", y, self)

    def __truediv__(self, y):
        return self.k.binary("div", self, y)

    def __rtruediv__(self, y):
        return self.k.binary("div", y, self)

    def __floordiv__(self, y):
        """Truncating integer division: for index arithmetic, where operands are >= 0."""
        return self.k.binary("div", self, y)

    def __mod__(self, y):
        """Remainder of truncating division: for index arithmetic, where operands are >= 0."""
        return self.k.binary("rem", self, y)

    def __and__(self, y):
        return self.k.binary("and_", self, y)

    def __or__(self, y):
        return self.k.binary("or_", self, y)

    def __xor__(self, y):
        return self.k.binary("xor", self, y)

    def __lshift__(self, y):
        return self.k.binary("shl", self, y)

    def __rshift__(self, y):
        return self.k.binary("shr", self, y)

    def __neg__(self):
        return self.k.neg(self)

    def __invert__(self):
        return self.k.wrap(self.k.b.not_(self.v), self.dtype, self.lanes)

    def __lt__(self, y):
        return self.k.compare("<", self, y)

    def __le__(self, y):
        return self.k.compare("<=", self, y)

    def __gt__(self, y):
        return self.k.compare(">", self, y)

    def __ge__(self, y):
        return self.k.compare(">=", self, y)

    def __eq__(self, y):  # type: ignore[override]
        return self.k.compare("==", self, y)

    def __ne__(self, y):  # type: ignore[override]
        return self.k.compare("!=", self, y)


class Ptr:
    """An address of elements of `dtype`; ``p + n`` moves by n elements."""

    __slots__ = ("dtype", "k", "v")

    def __init__(self, k: Builder, v: ir.Value, dtype: str) -> None:
        self.k, self.v, self.dtype = k, v, dtype

    def __add__(self, elements) -> "Ptr":
        if isinstance(elements, int) and elements == 0:
            return self
        index = self.k.val(elements, "i8").v
        return Ptr(self.k, self.k.b.gep(self.v, index, _memory_type(self.dtype)), self.dtype)

    def plus_bytes(self, nbytes) -> "Ptr":
        index = self.k.val(nbytes, "i8").v
        return Ptr(self.k, self.k.b.gep(self.v, index, ir.IntType(8)), self.dtype)

    def as_dtype(self, dtype: str) -> "Ptr":
        return Ptr(self.k, self.v, dtype)

    def load(self, offset=0, lanes: int = 0, align: int | None = None) -> Val:
        """The element (or `lanes` consecutive ones) at `offset` elements."""
        at = self + offset
        align = align or alignment_of(self.dtype)
        if self.dtype in storage.BY_CODE:
            return storage.widen(
                self.k, at.as_dtype(storage.memory_dtype(self.dtype)).load(0, lanes, align), self.dtype
            )
        if self.dtype != "b1":
            v = self.k.b.load(at.v, align=align, typ=vector_type(self.dtype, lanes))
            return Val(self.k, v, self.dtype, lanes)
        raw = Val(self.k, self.k.b.load(at.v, align=align, typ=vector_type("u1", lanes)), "u1", lanes)
        return raw != 0

    def store(self, value, offset=0, align: int | None = None, past_cache: bool = False) -> None:
        """Store at `offset` elements; `past_cache` needs an address aligned to the vector, and a fence."""
        at = self + offset
        value = self.k.val(value, storage.register_dtype(self.dtype))
        if self.dtype in storage.BY_CODE:
            value = storage.narrow(self.k, value, self.dtype)
        if self.dtype == "b1":
            value = self.k.cast(value, "u1")
        if past_cache:
            instruction = self.k.b.store(value.v, at.v, align=nbytes_of(value.dtype) * value.lanes)
            instruction.set_metadata("nontemporal", self.k.module.add_metadata([ir.Constant(ir.IntType(32), 1)]))
        else:
            self.k.b.store(value.v, at.v, align=align or alignment_of(self.dtype))


class MutableValue:
    """A variable that changes: ``s.value`` reads, ``s.value = x`` writes. Becomes a register."""

    __slots__ = ("dtype", "k", "lanes", "p")

    def __init__(self, k: Builder, p: ir.Value, dtype: str, lanes: int) -> None:
        self.k, self.p, self.dtype, self.lanes = k, p, dtype, lanes

    @property
    def value(self) -> Val:
        v = self.k.b.load(self.p, typ=vector_type(self.dtype, self.lanes))
        return Val(self.k, v, self.dtype, self.lanes)

    @value.setter
    def value(self, x) -> None:
        self.k.b.store(self.k.val(x, self.dtype, self.lanes).v, self.p)


def _memory_type(dtype: str) -> ir.Type:
    """The LLVM type of one element in memory."""
    return ir.IntType(8) if dtype == "b1" else scalar_type(storage.memory_dtype(dtype))
