"""Attention in bands of queries, as in `cgraph.kernels.attention.emit`, with both products on tile registers.

Scores are ``keys . queries``, results ``values . weights``: the left sides are rows of rounded keys, and of rounded
values whose rows are columns of the operand. The right sides, queries and weights of a band, are rounded and packed as
pairs of rows in the task's scratch. Softmax is that of float32 numbers, and so are the sums of weights.
"""

from collections.abc import Iterator

from cgraph.dtypes.storage import BFLOAT16
from cgraph.kernels.attention.emit import Band, Forms
from cgraph.kernels.llvm.build import Builder
from cgraph.kernels.llvm.emitter import final
from cgraph.kernels.llvm.flow import divmod_of
from cgraph.kernels.llvm.storage import narrow
from cgraph.kernels.llvm.values import Ptr, Val
from cgraph.kernels.tile_attention.signature import BLOCK
from cgraph.kernels.tile_products.emit import LEFT, RIGHT
from cgraph.kernels.tile_products.registers import TileInstructions, tile_registers
from cgraph.kernels.tile_products.signature import BYTES, COLUMNS, TILE_NBYTES

STEP = 32  # numbers of a row of a tile
GRID = 2  # tiles of sums down and across
SPARE = GRID * COLUMNS  # rows of the scratch after the last key, and after the last column of values


@final
def bands(k: Builder, dtype: str, vectors: int, mask: str, spread: bool, rule: Forms) -> None:
    """Emit the kernel. Task: a sequence of units, each a band of the queries that share a head of keys."""
    registers = tile_registers(k)
    band = TileBand(k, dtype, SPARE, vectors, mask, spread, rule)
    band.registers, a = registers, band.a
    registers.configure(a.config)
    with k.task_loop() as task:
        band.place(a.scratch + task * a.scratch_size)
        with k.loop(task * a.each, k.smaller((task + 1) * a.each, a.units)) as unit:
            rest, number = divmod_of(unit, a.bands)
            batch, group = divmod_of(rest, a.groups)
            band.emit(batch, group, number * band.width)
    registers.release()


class TileBand(Band):
    """The emitter of one unit. In addition to the scratch of a Band, it has packed sides and tiles of sums."""

    block = BLOCK
    registers: TileInstructions

    def place(self, scratch: Ptr) -> None:
        super().place(scratch)
        self.packed_queries = (self.result + (self.a.e + SPARE) * self.width).as_dtype("i4")
        self.packed_weights = self.packed_queries + self.a.depth * (self.width * STEP // 2)
        self.sums = (self.packed_weights + self.block * self.width // 2).as_dtype("u1")

    def sides(self, batch: Val, group: Val) -> tuple[Ptr, Ptr]:
        head = batch * self.a.groups + group
        return self.a.keys + head * self.a.key_head, self.a.values + head * self.a.value_head

    def start(self, batch: Val, group: Val, row: Val) -> None:
        super().start(batch, group, row)
        self.pack(self.queries, self.a.d, self.a.depth, self.packed_queries)

    def pack(self, rows: Ptr, count: Val, steps: Val, packed: Ptr) -> None:
        """Round rows ``[count, width]`` and store pairs of them as tiles ``[width / 16, steps, 16, 16]``; missing rows
        are 0.
        """
        k, zero = self.k, self.k.const(0, "f4", self.lanes)
        with k.loop(0, steps * COLUMNS) as pair:
            for at in self.columns:
                halves = []
                for row in (pair * 2, pair * 2 + 1):
                    there = k.smaller(row, count - 1)
                    value = k.select(row < count, rows.load(there * self.width + at, self.lanes), zero)
                    halves.append(k.cast(narrow(k, value, BFLOAT16.code), "i4"))
                tile, lane = divmod(at, COLUMNS)
                place = (steps * tile * COLUMNS + pair) * COLUMNS + lane
                packed.store(halves[0] | halves[1] << 16, place)

    def score(self, keys: Ptr, key: Val, count: Val) -> None:
        """Store the products of keys and queries; rows of scores beyond the last key are not read."""
        k, a = self.k, self.a
        with k.loop(0, count, GRID * COLUMNS) as i:
            rows = [keys + (key + i + COLUMNS * r) * a.key_row for r in range(GRID)]
            for first in self.pairs_of_tiles():
                self.multiply(rows, a.key_row, a.depth, self.packed_queries, first)
                for r in range(GRID):
                    for c in range(GRID):
                        place = self.weights + ((i + COLUMNS * r) * self.width + (first + c) * COLUMNS)
                        stride = k.const(self.width * 4, "i8")
                        self.registers.store(r * GRID + c, place.as_dtype("u1"), stride)

    def pairs_of_tiles(self) -> Iterator[int]:
        """Return the number of the first tile of each pair of tiles of queries."""
        return iter(range(0, self.width // COLUMNS, GRID))

    def multiply(self, rows: list[Ptr], stride: Val, steps: Val, packed: Ptr, first: int) -> None:
        """Emit the sums of `steps` steps of two tiles of rows by the packed tiles `first` and the next one."""
        k, registers = self.k, self.registers
        for i in range(GRID * GRID):
            registers.zero(i)
        with k.loop(0, steps) as step:
            for r, row in enumerate(rows):
                registers.load(LEFT + r, row + step * BYTES, stride)
            for c in range(GRID):
                right = packed.as_dtype("u1") + (steps * (first + c) + step) * TILE_NBYTES
                registers.load(RIGHT + c, right, k.const(BYTES, "i8"))
                for r in range(GRID):
                    registers.dot("bf16", r * GRID + c, LEFT + r, RIGHT + c)

    def add(self, values: Ptr, key: Val, count: Val) -> None:
        """Add the weighted sum of the block's values to the result."""
        k, a = self.k, self.a
        steps = (count + (STEP - 1)) // STEP
        self.pack(self.weights, count, steps, self.packed_weights)
        with k.loop(0, a.e, GRID * COLUMNS) as column:
            rows = [values + ((column + COLUMNS * r) * a.value_row + key * 2) for r in range(GRID)]
            for first in self.pairs_of_tiles():
                self.multiply(rows, a.value_row, steps, self.packed_weights, first)
                for i in range(GRID * GRID):
                    self.registers.store(i, self.sums + i * TILE_NBYTES, k.const(BYTES, "i8"))
                self.add_sums(column, first)

    def add_sums(self, column: Val, first: int) -> None:
        """Add four tiles of sums to the results of columns from `column` on, times the factor of earlier sums."""
        k = self.k
        for r in range(GRID):
            with k.loop(0, COLUMNS) as row:
                for at in range(0, GRID * COLUMNS, self.lanes):
                    c, lane = divmod(at, COLUMNS)
                    tile = (self.sums + (r * GRID + c) * TILE_NBYTES).as_dtype("f4")
                    total = tile.load(row * COLUMNS + lane, self.lanes)
                    query = first * COLUMNS + at
                    place = self.result + ((column + COLUMNS * r + row) * self.width + query)
                    factor = self.factor.load(query, self.lanes)
                    place.store(k.fma(place.load(lanes=self.lanes), factor, total))
