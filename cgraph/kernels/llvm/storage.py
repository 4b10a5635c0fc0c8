"""Storage dtypes in kernels: loads widen to float32, stores round.

Codes of storage dtypes name only types of memory, as ``b1`` is a byte there. Every target
gives the same bits: by one instruction where it exists, by integer arithmetic elsewhere.
"""

from typing import Any

from cgraph.dtypes.convert import BELOW_DOUBLE, DOUBLE_BITS
from cgraph.dtypes.storage import BY_CODE, StorageDtype
from cgraph.kernels.llvm import ir

Builder = Any  # of `cgraph.kernels.llvm.build`, which reads this file
Val = Any  # of `cgraph.kernels.llvm.values`, which does so too
EXACT = frozenset(("b1", "i1", "u1", "i2", "u2"))  # what float32 holds


def register_dtype(dtype: str) -> str:
    """Return the dtype in a register of a value with this dtype in memory."""
    return "f4" if dtype in BY_CODE else dtype


def memory_dtype(dtype: str) -> str:
    """Return the code of the bits in memory: unsigned integers for a storage dtype, else `dtype`."""
    return BY_CODE[dtype].unsigned if dtype in BY_CODE else dtype


def widen(k: Builder, raw: Val, dtype: str) -> Val:
    """Return float32 numbers of the bits of a storage dtype."""
    storage = BY_CODE[dtype]
    if not is_one_instruction(k, storage):
        return storage.widen(k, raw)
    half = k.b.bitcast(raw.v, lanes_of(ir.HALF, raw.lanes))
    return k.wrap(k.b.fpext(half, lanes_of(ir.FLOAT, raw.lanes)), "f4", raw.lanes)


def narrow(k: Builder, x: Val, dtype: str) -> Val:
    """Return the bits of float32 numbers rounded to a storage dtype: to nearest, ties to even."""
    storage = BY_CODE[dtype]
    if not is_one_instruction(k, storage):
        return storage.round(k, x)
    half = k.b.fptrunc(x.v, lanes_of(ir.HALF, x.lanes))
    return k.wrap(k.b.bitcast(half, lanes_of(ir.IntType(storage.bits), x.lanes)), storage.unsigned, x.lanes)


def is_one_instruction(k: Builder, storage: StorageDtype) -> bool:
    """Return True if the target converts the storage dtype in one instruction."""
    return storage.llvm == "half" and k.target.converts_half


def round_to_storage(k: Builder, x: Val, dtype: str) -> Val:
    """Return numbers rounded once to a storage dtype, as float32."""
    if x.dtype != "f4":
        x = k.cast(x, "f4") if x.dtype in EXACT else round_to_odd(k, as_float64(k, x))
    return widen(k, narrow(k, x, dtype), dtype)


def as_float64(k: Builder, x: Val) -> Val:
    """Return numbers as float64, to be rounded to odd: see `cgraph.dtypes.convert.as_float64`."""
    if x.dtype not in ("i8", "u8"):
        return k.cast(x, "f8")
    largest = 1 << DOUBLE_BITS
    is_large = (x >= largest) | (x <= -largest) if x.dtype == "i8" else x >= largest
    odd = ((x | BELOW_DOUBLE) ^ BELOW_DOUBLE) | (BELOW_DOUBLE + 1)
    return k.cast(k.select(is_large & ((x & BELOW_DOUBLE) != 0), odd, x), "f8")


def round_to_odd(k: Builder, x: Val) -> Val:
    """Return float64 as float32, rounded to odd: see `cgraph.dtypes.convert.round_to_odd`."""
    near = k.cast(x, "f4")
    back, bits = k.cast(near, "f8"), k.bits(near, "u4")
    beyond = k.cast(k.intrinsic("fabs", back) > k.intrinsic("fabs", x), "u4")
    is_inexact = (back < x) | (back > x)
    return k.bits(k.select(is_inexact, (bits - beyond) | 1, bits), "f4")


def lanes_of(kind: ir.Type, lanes: int) -> ir.Type:
    """Return the type of `lanes` elements; 0 lanes is a scalar."""
    return ir.VectorType(kind, lanes) if lanes else kind
