"""Tile registers: Intel's instructions, and the same bits as memory and vector instructions.

Eight registers of up to 16 rows of 64 bytes. A product adds ``a . b`` to the int32 or float32 numbers of `c`: `a` has
rows of bytes or bfloat16 numbers, `b` has 16 columns, with 4 bytes or 2 numbers of each column side by side in a row.
A configuration of 64 bytes sets the rows and the bytes of a row of each register. Shapes that disagree end the process,
and so does a tile instruction before `configure` or after `release`.

The product of bfloat16 numbers sums the products of first numbers and those of second numbers apart, each by fused
multiply-adds in order from 0, adds both, then adds the total to `c`. It treats operands and results below 2**-126 as 0.
Sources: Intel's Software Developer's Manual, volume 2; what it leaves open about rounding was measured.
"""

from cgraph.errors import NoKernelError
from cgraph.kernels.isa.architectures import instruction_of
from cgraph.kernels.llvm.build import POINTER, VOID, Builder
from cgraph.kernels.llvm.bytes import dots
from cgraph.kernels.llvm.flow import first_lanes, fold, masked_load, masked_store
from cgraph.kernels.llvm.values import Ptr, Val, scalar_type
from cgraph.kernels.pairs.emit import lower, upper
from cgraph.kernels.tile_products.signature import BYTES, COLUMNS, TILE_NBYTES, TILES

SMALLEST = 0x00800000  # bits of 2**-126
MAGNITUDE, SIGN = 0x7FFFFFFF, -0x80000000
ROW_BYTES_AT, ROWS_AT = 16, 48  # of a configuration, as Intel defines it


class TileInstructions:
    """The instructions of the target. Registers are given by number, a constant in the instruction."""

    def __init__(self, k: Builder) -> None:
        self.k = k

    def configure(self, config: Ptr) -> None:
        self.append("configure", config)

    def release(self) -> None:
        self.append("release")

    def zero(self, tile: int) -> None:
        self.append("zero", tile)

    def load(self, tile: int, at: Ptr, stride: Val) -> None:
        """Load rows that begin `stride` bytes apart."""
        self.append("load", tile, at, stride)

    def store(self, tile: int, at: Ptr, stride: Val) -> None:
        self.append("store", tile, at, stride)

    def dot(self, kind: str, c: int, a: int, b: int) -> None:
        """Add the products of `a` and `b` to `c`; `kind` is ``u1`` (`b` is signed) or ``bf16``."""
        self.append(f"dot {kind}", c, a, b)

    def append(self, operation: str, *operands: int | Ptr | Val) -> None:
        k, row = self.k, instruction_of(self.k.target, f"tile {operation}")
        assert row, operation
        values = [k.const(x, "u1").v if isinstance(x, int) else x.v for x in operands]
        kinds = [POINTER if isinstance(x, Ptr) else scalar_type("u1" if isinstance(x, int) else "i8") for x in operands]
        k.b.call(k.declare(row.name, VOID, kinds), values)


class EmulatedTiles(TileInstructions):
    """Emulated registers in memory on the stack, for any target. Changes: `configure` sets the configuration."""

    def __init__(self, k: Builder) -> None:
        super().__init__(k)
        self.memory = k.stack_ptr("u1", TILES * TILE_NBYTES)
        self.config = self.memory

    def configure(self, config: Ptr) -> None:
        self.config = config

    def release(self) -> None:
        pass

    def rows(self, tile: int) -> Val:
        """Return the rows of a register."""
        return self.k.cast((self.config + (ROWS_AT + tile)).load(), "i8")

    def words(self, tile: int) -> Val:
        """Return the words of four bytes in a row of a register."""
        nbytes = (self.config + (ROW_BYTES_AT + 2 * tile)).as_dtype("u2").load(align=1)
        return self.k.cast(nbytes, "i8") >> 2

    def row(self, tile: int, row: Val) -> Ptr:
        """Return the address of a row of a register."""
        return self.memory + (row * BYTES + tile * TILE_NBYTES)

    def zero(self, tile: int) -> None:
        k, lanes = self.k, self.k.target.lanes
        with k.loop(0, TILE_NBYTES // 4, lanes) as i:
            (self.memory + tile * TILE_NBYTES).as_dtype("i4").store(k.const(0, "i4", lanes), i)

    def load(self, tile: int, at: Ptr, stride: Val) -> None:
        k, lanes = self.k, self.k.target.lanes
        self.zero(tile)
        with k.loop(0, self.rows(tile)) as row, k.loop(0, COLUMNS, lanes) as word:
            mask = first_lanes(k, self.words(tile) - word, lanes)
            words = masked_load(k, at.plus_bytes(row * stride).as_dtype("i4") + word, mask)
            self.row(tile, row).as_dtype("i4").store(words, word)

    def store(self, tile: int, at: Ptr, stride: Val) -> None:
        k, lanes = self.k, self.k.target.lanes
        with k.loop(0, self.rows(tile)) as row, k.loop(0, COLUMNS, lanes) as word:
            words = self.row(tile, row).as_dtype("i4").load(word, lanes)
            mask = first_lanes(k, self.words(tile) - word, lanes)
            masked_store(k, at.plus_bytes(row * stride).as_dtype("i4") + word, words, mask)

    def dot(self, kind: str, c: int, a: int, b: int) -> None:
        k, lanes = self.k, self.k.target.lanes
        add = self.add_bytes if kind == "u1" else self.add_numbers
        with k.loop(0, self.rows(c)) as row, k.loop(0, COLUMNS, lanes) as column:
            add(
                self.row(c, row) + column * 4,
                self.row(a, row),
                self.memory + (column * 4 + b * TILE_NBYTES),
                self.words(a),
            )

    def add_bytes(self, place: Ptr, left: Ptr, right: Ptr, words: Val) -> None:
        """Add to one vector of sums, in int32, which wraps."""
        k, lanes = self.k, self.k.target.lanes
        with fold(k, 0, words, [place.as_dtype("i4").load(lanes=lanes)]) as s:
            weights = (right + s.i * BYTES).as_dtype("i1").load(lanes=4 * lanes)
            s.next = dots(k, s.values, [left.as_dtype("i4").load(s.i)], [weights])
        place.as_dtype("i4").store(s.values[0])

    def add_numbers(self, place: Ptr, left: Ptr, right: Ptr, words: Val) -> None:
        """Add to one vector of sums, in float32."""
        k, lanes = self.k, self.k.target.lanes
        with fold(k, 0, words, [k.const(0, "f4", lanes)] * 2) as s:
            x = k.splat(left.as_dtype("i4").load(s.i), lanes)
            y = (right + s.i * BYTES).as_dtype("i4").load(lanes=lanes)
            s.next = [
                flush(k, k.fma(flush(k, half(k, x)), flush(k, half(k, y)), total))
                for half, total in zip((lower, upper), s.values)
            ]
        total = flush(k, s.values[0] + s.values[1])
        place = place.as_dtype("f4")
        place.store(flush(k, flush(k, place.load(lanes=lanes)) + total))


def flush(k: Builder, x: Val) -> Val:
    """Replace numbers below 2**-126 with a zero of the same sign."""
    bits = k.bits(x, "i4")
    return k.bits(k.select((bits & MAGNITUDE) < SMALLEST, bits & SIGN, bits), "f4")


def tile_registers(k: Builder) -> TileInstructions:
    """Return the target's tile registers. NoKernelError if it has none."""
    if not k.target.tiles:
        raise NoKernelError(f"the target {k.target.name} has no tile registers")
    return TileInstructions(k) if k.target.tiles == "amx" else EmulatedTiles(k)
