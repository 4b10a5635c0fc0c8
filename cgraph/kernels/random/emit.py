"""Random numbers by Philox 4x32-10; `cgraph.kernels.philox` is the reference implementation.

A group is 16 blocks of four words, one block per lane: 64 elements of 4 bytes or 32 of 8. The key is data: two words in
memory. uniform, bits and bernoulli have the reference's bits; normal differs by the rounding of log, sin and cos.
"""

from math import pi

from llvmlite import ir

from cgraph.kernels.llvm.build import Builder
from cgraph.kernels.llvm.values import Val, nbytes_of
from cgraph.kernels.llvm.vlog import log
from cgraph.kernels.llvm.vtrig import cos, sin
from cgraph.kernels.philox import LANES, MULTIPLIERS, ROUNDS, STEPS


def fill(k: Builder, kind: str, dtype: str) -> None:
    """`kind`: ``bits``, ``uniform``, ``normal`` or ``bernoulli`` (out ``b1``). Task: some groups."""
    args = k.args()
    size = LANES * (2 if nbytes_of(dtype) == 8 else 4)
    key = (args.key.load(0), args.key.load(1))
    out, room = k.pointer(args.out, dtype), k.stack_ptr("u1" if dtype == "b1" else dtype, size).as_dtype(dtype)
    inside = k.wrap(k.b.ptrtoint(room.v, ir.IntType(64)), "i8")
    first, last = k.tasks()
    groups = (args.count + (size - 1)) // size
    with k.loop(first * args.each, k.smaller(last * args.each, groups)) as group:
        start = group * size
        rest = args.count - start
        whole = rest >= size
        at = k.pointer(k.select(whole, args.out + start * nbytes_of(dtype), inside), dtype)
        counter = k.iota("u8", LANES) + k.cast(group * LANES, "u8")
        for place, value in enumerate(VALUES[kind](k, words(k, key, counter), dtype, args.probability)):
            at.store(value, place * LANES)
        with k.if_(~whole), k.loop(0, rest) as i:
            (out + start + i).store((room + i).load())


def words(k: Builder, key: tuple[Val, Val], counter: Val) -> list[Val]:
    """Return the four words of blocks by their numbers."""
    zero = k.const(0, "u4", counter.lanes)
    c0, c1, c2, c3 = k.cast(counter, "u4"), k.cast(counter >> 32, "u4"), zero, zero
    k0, k1 = key[0], key[1]
    for _ in range(ROUNDS):
        high, low = product(k, c0, MULTIPLIERS[0])
        other_high, other_low = product(k, c2, MULTIPLIERS[1])
        c0, c1, c2, c3 = other_high ^ c1 ^ k0, other_low, high ^ c3 ^ k1, low
        k0, k1 = k0 + STEPS[0], k1 + STEPS[1]
    return [c0, c1, c2, c3]


def product(k: Builder, x: Val, factor: int) -> tuple[Val, Val]:
    """Return the high and low word of a product of two words."""
    both = k.cast(x, "u8") * factor
    return k.cast(both >> 32, "u4"), k.cast(both, "u4")


def pairs(k: Builder, block: list[Val]) -> list[Val]:
    """Return two 64-bit integers from four words."""
    wide = [k.cast(x, "u8") for x in block]
    return [wide[0] | (wide[1] << 32), wide[2] | (wide[3] << 32)]


def raw(k: Builder, block: list[Val], dtype: str, probability: Val) -> list[Val]:
    return block if nbytes_of(dtype) == 4 else pairs(k, block)


def uniform(k: Builder, block: list[Val], dtype: str, probability: Val) -> list[Val]:
    if dtype == "f4":
        return [signed_to_float(k, x >> 8, "f4") * 2.0**-24 for x in block]
    return [signed_to_float(k, x >> 11, "f8") * 2.0**-53 for x in pairs(k, block)]


def signed_to_float(k: Builder, x: Val, dtype: str) -> Val:
    """Convert an unsigned integer without its top bit to a float; signed conversions are often single instructions."""
    return k.cast(k.bits(x, f"i{x.dtype[1:]}"), dtype)


def normal(k: Builder, block: list[Val], dtype: str, probability: Val) -> list[Val]:
    """Return normal values by the Box-Muller transform."""
    values: list[Val] = []
    if dtype == "f4":
        floats = [k.cast(x, "f4") for x in block]
        drawn = [((floats[i] + 0.5) * 2.0**-32, floats[i + 1] * (2.0**-32 * 2 * pi)) for i in (0, 2)]
    else:
        x, y = (signed_to_float(k, v >> 11, "f8") for v in pairs(k, block))
        drawn = [((x + 0.5) * 2.0**-53, y * (2.0**-53 * 2 * pi))]
    for u, angle in drawn:
        radius = k.intrinsic("sqrt", -2.0 * log(k, u))
        values += [radius * cos(k, angle), radius * sin(k, angle)]
    return values


def bernoulli(k: Builder, block: list[Val], dtype: str, probability: Val) -> list[Val]:
    return [k.cast(x, "f8") < probability * 2.0**32 for x in block]


VALUES = {"bits": raw, "uniform": uniform, "normal": normal, "bernoulli": bernoulli}
