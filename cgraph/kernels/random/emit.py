"""Random numbers by Philox 4x32-10; `cgraph.kernels.philox` is the reference implementation.

A group is 16 blocks of four words, one block per lane: 64 elements of 4 bytes or 32 of 8. The key is data: two words in
memory. uniform, bits and bernoulli have the reference's bits; normal differs by the rounding of log, sin and cos.
"""

from math import pi

from cgraph.kernels.llvm import ir
from cgraph.kernels.llvm.build import Builder
from cgraph.kernels.llvm.values import Val, nbytes_of
from cgraph.kernels.llvm.vlog import log
from cgraph.kernels.llvm.vtrig import cos, sin
from cgraph.kernels.philox import LANES, MULTIPLIERS, ROUNDS, STEPS

LOW = 0xFFFFFFFF
# the bits of 2**52, whose fraction counts ones; those of 2**84, whose fraction counts 2**32s, and 2**84 + 2**52
LOW_PART = 0x433 << 52
HIGH_PART = (0x453 << 52, 2.0**84 + 2.0**52)


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
    """Return the four words of blocks by their numbers.

    A word is the low half of a 64-bit lane, so that no lane moves between rounds: only the low halves are multiplied.
    """
    zero = k.const(0, "u8", counter.lanes)
    c0, c1, c2, c3 = counter, counter >> 32, zero, zero
    k0, k1 = (k.cast(x, "u8") for x in key)
    for _ in range(ROUNDS):
        x, y = (c0 & LOW) * MULTIPLIERS[0], (c2 & LOW) * MULTIPLIERS[1]
        c0, c1, c2, c3 = (y >> 32) ^ (c1 ^ k0), y, (x >> 32) ^ (c3 ^ k1), x
        k0, k1 = k0 + STEPS[0], k1 + STEPS[1]
    return [k.cast(x, "u4") for x in (c0, c1, c2, c3)]


def pairs(k: Builder, block: list[Val]) -> list[Val]:
    """Return two 64-bit integers from four words."""
    wide = [k.cast(x, "u8") for x in block]
    return [wide[0] | (wide[1] << 32), wide[2] | (wide[3] << 32)]


def raw(k: Builder, block: list[Val], dtype: str, probability: Val) -> list[Val]:
    return block if nbytes_of(dtype) == 4 else pairs(k, block)


def uniform(k: Builder, block: list[Val], dtype: str, probability: Val) -> list[Val]:
    if dtype == "f4":
        return [to_float(k, x >> 8, "f4") * 2.0**-24 for x in block]
    return [to_float(k, x >> 11, "f8") * 2.0**-53 for x in pairs(k, block)]


def to_float(k: Builder, x: Val, dtype: str) -> Val:
    """Convert unsigned integers with at most as many bits as a float's fraction has, exactly.

    Of 64 bits, each half becomes the low bits of a float: few processors convert vectors of such integers.
    """
    if dtype == "f4":
        return k.cast(k.bits(x, "i4"), "f4")
    high = k.bits((x >> 32) | HIGH_PART[0], "f8") - HIGH_PART[1]
    return high + k.bits((x & LOW) | LOW_PART, "f8")


def normal(k: Builder, block: list[Val], dtype: str, probability: Val) -> list[Val]:
    """Return normal values by the Box-Muller transform."""
    values: list[Val] = []
    if dtype == "f4":
        floats = [k.cast(x, "f4") for x in block]
        drawn = [((floats[i] + 0.5) * 2.0**-32, floats[i + 1] * (2.0**-32 * 2 * pi)) for i in (0, 2)]
    else:
        x, y = (to_float(k, v >> 11, "f8") for v in pairs(k, block))
        drawn = [((x + 0.5) * 2.0**-53, y * (2.0**-53 * 2 * pi))]
    for u, angle in drawn:
        radius = k.intrinsic("sqrt", -2.0 * log(k, u))
        values += [radius * cos(k, angle), radius * sin(k, angle)]
    return values


def bernoulli(k: Builder, block: list[Val], dtype: str, probability: Val) -> list[Val]:
    return [k.cast(x, "f8") < probability * 2.0**32 for x in block]


VALUES = {"bits": raw, "uniform": uniform, "normal": normal, "bernoulli": bernoulli}
