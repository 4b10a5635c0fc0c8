"""Instructions of the target that LLVM's operations do not express, by operation: `cgraph.kernels.isa`."""

from cgraph.dtypes.storage import BFLOAT16
from cgraph.kernels.isa.architectures import instruction_of
from cgraph.kernels.llvm import ir, storage
from cgraph.kernels.llvm.build import VOID, Builder
from cgraph.kernels.llvm.values import Val, nbytes_of, vector_type


def has_instruction(k: Builder, operation: str, lanes: int = 0) -> bool:
    """Return True if the target has an instruction for an operation whose result has `lanes` lanes."""
    return instruction_of(k.target, operation, lanes) is not None


def call_instruction(k: Builder, operation: str, lanes: int, *xs: Val) -> Val:
    """Append the target's instruction for an operation and return its result, which has `lanes` lanes; of bfloat16
    numbers the bits.
    """
    row = instruction_of(k.target, operation, lanes)
    assert row and row.result, (operation, lanes, k.target.name)
    operands = [as_bits(k, x, dtype) for x, dtype in zip(xs, row.operands, strict=True)]
    constants = [k.const(value, dtype, n).v for dtype, value, n in row.constants]
    operands = [*constants, *operands] if row.constants_first else [*operands, *constants]
    result = register_type(row.result, lanes)
    f = k.declare(row.name, result, [x.type for x in operands])
    dtype = storage.memory_dtype(row.result)
    return k.wrap(k.b.bitcast(k.b.call(f, operands), vector_type(dtype, lanes)), dtype, lanes)


def call_void(k: Builder, operation: str) -> None:
    """Append the target's instruction for an operation without operands and result, if there is one."""
    row = instruction_of(k.target, operation)
    if row:
        operands = [k.const(value, dtype, n).v for dtype, value, n in row.constants]
        k.b.call(k.declare(row.name, VOID, [x.type for x in operands]), operands)


def as_bits(k: Builder, x: Val, dtype: str) -> ir.Value:
    """Return the bits of a vector as elements of another dtype."""
    return k.b.bitcast(x.v, register_type(dtype, x.lanes * nbytes_of(x.dtype) // nbytes_of(dtype)))


def register_type(dtype: str, lanes: int) -> ir.Type:
    """Return the type of a vector in an instruction; bfloat16 numbers have a type of their own there."""
    return ir.VectorType(ir.BFLOAT, lanes) if dtype == BFLOAT16.code else vector_type(dtype, lanes)
