"""Products of matrices, in rows, by panels of 32 columns on tile registers.

    sums[row, column] = sum over steps of x[row, step] . w[step, column]

A step is 64 bytes of a row: 64 bytes or 32 bfloat16 numbers. A task is a group of one or two tiles of rows times two
tiles of columns. Each call of a kernel configures the registers and releases them, so that no two kernels have to
agree on them.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from types import SimpleNamespace
from typing import Any

from cgraph.kernels.conv8.emit import requantise, uses_ratios
from cgraph.kernels.kernel import LINE
from cgraph.kernels.llvm import storage
from cgraph.kernels.llvm.build import Builder
from cgraph.kernels.llvm.bytes import to_bytes
from cgraph.kernels.llvm.emitter import final
from cgraph.kernels.llvm.epilogue import ActivationEmitter
from cgraph.kernels.llvm.flow import (
    change_if,
    divmod_of,
    each_task,
    first_lanes,
    fold,
    masked_load,
    masked_store,
    prefetch,
)
from cgraph.kernels.llvm.instructions import call_instruction
from cgraph.kernels.llvm.values import Ptr, Val
from cgraph.kernels.tile_products.registers import TileInstructions, flush, tile_registers
from cgraph.kernels.tile_products.signature import ACROSS, BYTES, COLUMNS, STEP, TILE_NBYTES
from cgraph.record import Record

LEFT, RIGHT = 4, 6  # registers: sums are 0 to 3
ROWS_AT_ONCE = 4  # as many vectors as become bytes together


class Tile(Record):
    """The params of `of_bytes`; products of numbers have the first four.

    Fields
        group, height: tiles of rows in a group, rows of a tile
        ahead: cache lines of the next panel prefetched in each step, 0 if panels are cached
        result: dtype of the result
        fixed, joins: as for `cgraph.kernels.conv8.emit.Tile`
    """

    group: int
    height: int
    ahead: int
    result: str
    fixed: str = ""
    joins: str = ""


@final
def of_bytes(k: Builder, *params) -> None:
    """Emit products of unsigned bytes on the left and signed bytes on the right, and their results."""
    p, a = Tile(*params), k.args()
    overlapped_groups(k, p, a, "u1", rows_of(a, p.group), partial(finish_bytes, k, p, a))


def finish_bytes(k: Builder, p: Tile, a: SimpleNamespace, at: SimpleNamespace) -> None:
    """Emit the results of a group: bytes, floats or int32 numbers."""
    for vector in vectors(k, a, at):
        bias = (a.bias + vector.column).load(lanes=k.target.lanes)
        with each_row(k, p, a, at) as some:
            sums = [vector.load(q, "i4") + bias for q in some.indices]
            places = partial(residual_of, k.pointer(a.residual, "u1"))
            results = requantise(k, p, a, sums, places, vector.column // k.target.lanes)
            put_bytes(k, p, a, some, vector, results)


def residual_of(residual: Ptr, i: int) -> Ptr:
    """Return 0 as the address of a row's residual: products have none, so it is never read."""
    return residual


def put_bytes(k: Builder, p: Tile, a: SimpleNamespace, some: Any, vector: Any, ys: list[Val]) -> None:
    """Store the results of some rows: bytes are rounded together."""
    lanes = k.target.lanes
    if p.result == "u1":
        packed = to_bytes(k, ys, k.cast(a.zero, "i2"), k.cast(a.low, "u1"), k.cast(a.high, "u1"), uses_ratios(k, p))
        ys = [k.slice(packed, i * lanes, lanes) for i in range(len(ys))]
    for i, y in enumerate(ys):
        put(k, a, some, vector, i, y)


def put(k: Builder, a: SimpleNamespace, some: Any, vector: Any, i: int, y: Val) -> None:
    """Store the columns of row `i` of some rows, as many as the result has."""
    masked_store(k, vector.out + some.numbers[i] * a.o_step, y, vector.inside)


@final
def of_numbers(k: Builder, group: int, height: int, ahead: int, result: str) -> None:
    """Emit products of bfloat16 numbers: ``activation(beside + sums)`` in float32."""
    p, a = Tile(group, height, ahead, result), k.args()
    overlapped_groups(k, p, a, "bf16", rows_of(a, p.group), partial(finish_numbers, k, p, a))


def finish_numbers(k: Builder, p: Tile, a: SimpleNamespace, at: SimpleNamespace) -> None:
    """Emit the results of a group of products of bfloat16 numbers, row by row."""
    both, beside = list(vectors(k, a, at)), k.pointer(a.beside, p.result) + at.image * a.beside_image
    with k.loop(0, p.group) as tile:
        at.row, facts = tile, a.tiles + (at.group * p.group + tile) * 2
        with k.loop(facts.load(1), p.height) as q:
            number = facts.load(0) + q
            sums = [vector.load(q, "f4") for vector in both]
            with change_if(k, a.beside != 0, sums) as s:
                row = beside + number * a.beside_step
                s.next = [y + masked_load(k, row + x.column, x.inside) for x, y in zip(both, sums)]
            for x, y in zip(both, ActivationEmitter(k, "f4", k.target.lanes).apply(s.values)):
                masked_store(k, x.out + number * a.o_step, y, x.inside)


class LeftSides(Record, eq=False):
    """Addresses of the left sides of products.

    Fields
        first: returns the first row of each tile of a group
        offset: returns the bytes from a row to one step of it
    """

    first: Callable[[SimpleNamespace], list[Ptr]]
    offset: Callable[[Val], Val]


def rows_of(a: SimpleNamespace, group: int) -> LeftSides:
    """Return the rows of a matrix in groups of tiles."""

    def first(at: SimpleNamespace) -> list[Ptr]:
        tiles = a.tiles + at.group * (2 * group)
        return [a.x + (at.image * a.x_image + tiles.load(2 * r) * a.x_step) for r in range(group)]

    return LeftSides(first, lambda step: step * a.x_apart)


def overlapped_groups(
    k: Builder, p: Any, a: SimpleNamespace, kind: str, sides: LeftSides, finish: Callable[[SimpleNamespace], None]
) -> None:
    """Emit the groups of all tasks; the sums of each are finished while the products of the next one run.

    Parameters
        p: has `group` and `ahead`, as a Tile
        finish: emits the results of a group: its matrix, panel and number, and the address of its sums,
            ``[tile][column][row][16]`` words
    """
    registers, scratch = tile_registers(k), k.stack_ptr("u1", (LEFT + 1) * TILE_NBYTES)
    names = ("image", "panel", "group")
    last = {name: k.slot(k.const(-1, "i8")) for name in names}

    def finish_last() -> None:
        at = SimpleNamespace(sums=scratch, **{name: last[name].value for name in names})
        with k.if_(at.group >= 0):
            finish(at)

    registers.configure(a.config)
    with each_task(k, a.blocks, a.panels, a.block) as (image, block, panel, t):
        group = block * a.block + t
        with k.if_(group < a.groups):
            at = SimpleNamespace(image=image, panel=panel, group=group, t=t, sums=scratch)
            multiply(k, p, a, kind, at, registers, sides)
            finish_last()
            for i in range(p.group * ACROSS):
                registers.store(i, scratch + i * TILE_NBYTES, k.const(BYTES, "i8"))
            for name in names:
                last[name].value = getattr(at, name)
    registers.release()
    finish_last()


def multiply(
    k: Builder,
    p: Any,
    a: SimpleNamespace,
    kind: str,
    at: SimpleNamespace,
    registers: TileInstructions,
    sides: LeftSides,
) -> None:
    """Emit the sums of one group."""
    xs, w = sides.first(at), a.w + (at.image * a.w_image + at.panel * a.w_panel)
    beyond = w + next_share(k, p, a, at.t)
    for i in range(p.group * ACROSS):
        registers.zero(i)
    # vectors of 512 bits fall asleep when none is used for 0.9 microseconds; a tile store then waits for them
    with fold(k, 0, a.steps, [k.splat(k.cast(a.steps, "f4"), k.target.lanes)]) as s:
        offset, right = sides.offset(s.i), w + s.i * (ACROSS * TILE_NBYTES)
        for i in range(p.ahead):
            prefetch(k, beyond + (s.i * p.ahead + i) * LINE, locality=2)
        for r, x in enumerate(xs):
            registers.load(LEFT + r, x + offset, a.x_step)
        for c in range(ACROSS):
            registers.load(RIGHT + c, right + c * TILE_NBYTES, k.const(BYTES, "i8"))
            for r in range(p.group):
                registers.dot(kind, r * ACROSS + c, LEFT + r, RIGHT + c)
        s.next = [s.values[0] + s.values[0]]
    (at.sums + LEFT * TILE_NBYTES).as_dtype("f4").store(s.values[0])


def next_share(k: Builder, p: Any, a: SimpleNamespace, t: Val) -> Val:
    """Return the bytes to group `t`'s share of the next panel; 0 if nothing is prefetched or nothing is left."""
    share = t * a.steps * (p.ahead * LINE)
    return k.select(share < a.w_panel, a.w_panel + share, 0)


def vectors(k: Builder, a: SimpleNamespace, at: SimpleNamespace) -> Iterator[SimpleNamespace]:
    """Yield the vectors of columns of a panel, with the addresses of sums in the tile and results in the matrix."""
    lanes = k.target.lanes
    for first in range(0, ACROSS * COLUMNS, lanes):
        column = at.panel * (ACROSS * COLUMNS) + first
        inside = first_lanes(k, a.channels - column, lanes)
        load = partial(load_sums, k, at, *divmod(first, COLUMNS))
        yield SimpleNamespace(column=column, inside=inside, out=a.out + (at.image * a.o_image + column), load=load)


def load_sums(k: Builder, at: SimpleNamespace, column: int, lane: int, q: Val, dtype: str) -> Val:
    """Return one vector of the sums of row `q` of the tile `at.row`."""
    sums = (at.sums + (at.row * ACROSS + column) * TILE_NBYTES).as_dtype(dtype)
    return sums.load(q * COLUMNS + lane, k.target.lanes)


@contextmanager
def each_row(k: Builder, p: Tile, a: SimpleNamespace, at: SimpleNamespace) -> Iterator[SimpleNamespace]:
    """Yield the rows that a group stores, four at a time, by their places in a tile and in the matrix.

    The last row of a tile is repeated. Rows that overlap the tile before are skipped, so each result is written once.
    """
    with k.loop(0, p.group) as tile:
        at.row = tile
        facts = a.tiles + (at.group * p.group + tile) * 2
        with k.loop(facts.load(1), p.height, ROWS_AT_ONCE) as first:
            indices = [k.smaller(first + i, p.height - 1) for i in range(ROWS_AT_ONCE)]
            yield SimpleNamespace(indices=indices, numbers=[facts.load(0) + q for q in indices])


@final
def round_rows(k: Builder) -> None:
    """Round rows of float32 numbers to bfloat16, in blocks of one step of all rows; numbers beyond a row's end are 0.

    Task: some rows.
    """
    a, lanes = k.args(), k.target.lanes
    parts, whole = range(0, STEP, lanes), a.columns // STEP * STEP
    with k.task_loop() as task, k.loop(task * a.each, k.smaller((task + 1) * a.each, a.count)) as number:
        image, row = divmod_of(number, a.rows)
        x, out = a.x + (image * a.x_image + row * a.x_row), a.out + (image * a.o_image + row * STEP)
        with k.loop(0, whole, STEP) as column:
            store_rounded(k, out + column // STEP * a.o_step, [x.load(column + part, lanes) for part in parts])
        with k.if_(whole < a.columns):
            rest = [masked_load(k, x + (whole + i), first_lanes(k, a.columns - whole - i, lanes)) for i in parts]
            store_rounded(k, out + whole // STEP * a.o_step, rest)


def store_rounded(k: Builder, place: Ptr, ys: list[Val]) -> None:
    """Store vectors of 32 numbers rounded to bfloat16.

    Numbers below 2**-126 become 0, as in products of tiles: the instruction that rounds 32 numbers has no other mode.
    """
    if k.target.tiles == "amx":
        low, high = ys
        bits = call_instruction(k, "round to bf16", STEP, high, low)
        place.as_dtype(storage.memory_dtype(place.dtype)).store(bits)
        return
    for i, y in enumerate(ys):
        place.store(flush(k, y), i * k.target.lanes)
