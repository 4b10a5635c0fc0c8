"""Numbers of 16 bits in the halves of words: instructions of processors without vectors, elsewhere arithmetic."""

from cgraph.kernels.llvm import ir
from cgraph.kernels.llvm.build import Builder
from cgraph.kernels.llvm.instructions import call_instruction, has_instruction
from cgraph.kernels.llvm.values import Ptr, Val


def bytes_as_halves(k: Builder, word: Val, odd: int, signed: bool) -> Val:
    """Return bytes 0 and 2 of a word, or bytes 1 and 3, as two numbers of 16 bits."""
    operation = "signed bytes" if signed else "unsigned bytes"
    if has_instruction(k, operation):
        later = k.intrinsic("fshr", word, word, k.const(8, "i4")) if odd else word  # rotated, as the instructions can
        return call_instruction(k, operation, 0, later)
    dtype = "i4" if signed else "u4"
    low, high = ((k.bits(word << 24 - 8 * (odd + at), dtype) >> 24) for at in (0, 2))
    return k.bits(low & 0xFFFF | high << 16, "i4")


def add_products(k: Builder, x: Val, y: Val, total: Val) -> Val:
    """Return ``total`` plus the products of both halves."""
    if has_instruction(k, "halves dot"):
        return call_instruction(k, "halves dot", 0, x, y, total)
    return add_product(k, x, y, add_product(k, x, y, total, 0), 1)


def add_product(k: Builder, x: Val, y: Val, total: Val, high: int) -> Val:
    """Return ``total`` plus the product of the low halves, or of the high ones."""
    operation = "high halves" if high else "low halves"
    if has_instruction(k, operation):
        return call_instruction(k, operation, 0, x, y, total)
    left, right = ((z << 16 * (1 - high)) >> 16 for z in (x, y))
    return total + left * right


def add_crossed(k: Builder, x: Val, y: Val, total: Val, high: int) -> Val:
    """Return ``total`` plus the product of the low half of `x` and the high half of `y`; with `high` of the others."""
    operation = "high by low" if high else "low by high"
    if has_instruction(k, operation):
        return call_instruction(k, operation, 0, x, y, total)
    left, right = ((z << 16 * (1 - upper)) >> 16 for z, upper in ((x, high), (y, 1 - high)))
    return total + left * right


def low_halves(k: Builder, x: Val, y: Val) -> Val:
    """Return the low half of `x`, then that of `y`."""
    return (x & 0xFFFF) | (y << 16)


def high_halves(k: Builder, x: Val, y: Val) -> Val:
    """Return the high half of `x`, then that of `y`."""
    return k.bits(k.bits(x, "u4") >> 16, "i4") | (y & -0x10000)


def upper_product(k: Builder, x: Val, y: Val, added: int = 0) -> Val:
    """Return the upper word of ``x * y + added``, which is one instruction."""
    return k.cast((k.cast(x, "i8") * k.cast(y, "i8") + added) >> 32, "i4")


def saturated_byte(k: Builder, x: Val) -> Val:
    """Return the byte without a sign that is nearest to an int32, as an int32."""
    if has_instruction(k, "saturated byte"):
        return call_instruction(k, "saturated byte", 0, x)
    return k.smaller(k.larger(x, 0), 255)


def load_pair(k: Builder, at: Ptr) -> tuple[Val, Val]:
    """Return two neighbouring words.

    The load is volatile: ARM's code generator makes it one instruction, and splits other ones.
    """
    both = k.wrap(k.b.load(at.v, ir.IntType(64), align=4, volatile=True), "u8")
    return k.cast(both, "i4"), k.cast(both >> 32, "i4")


def store_pair(k: Builder, at: Ptr, x: Val, y: Val) -> None:
    """Store two neighbouring words, volatile as in `load_pair`."""
    both = k.cast(k.bits(x, "u4"), "u8") | k.cast(k.bits(y, "u4"), "u8") << 32
    k.b.store(both.v, at.v, align=4, volatile=True)
