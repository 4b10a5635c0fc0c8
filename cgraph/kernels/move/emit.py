"""Copies of arrays with any strides: contiguous, strided and alternating runs, fills, and transposes in registers.

Only the size of an item matters, not its dtype. Kernels with the param ``stream`` write past the cache, for results
larger than it.
"""

from collections.abc import Callable
from types import SimpleNamespace

from cgraph.kernels.kernel import LINE
from cgraph.kernels.llvm import ir
from cgraph.kernels.llvm.build import Builder
from cgraph.kernels.llvm.flow import shuffle, transpose
from cgraph.kernels.llvm.instructions import call_void
from cgraph.kernels.llvm.values import Ptr, Val
from cgraph.kernels.walk.emit import walk
from cgraph.record import Record

SHORT_RUN = 32  # bytes; shorter runs are copied without a call
UNROLL = 4


class RowSpan(Record):
    """Part of one row of a walk: `count` items from column `low` on.

    Fields
        at: the row's first item in each array
        steps: bytes from one column to the next in each array
        row: flat position of the row
    """

    at: list[Ptr]
    steps: list[Val]
    row: Val
    low: Val
    count: Val

    def items(self, i: int, dtype: str) -> Ptr:
        """Return the start of the part in array `i`."""
        return self.at[i].plus_bytes(self.low * self.steps[i]).as_dtype(dtype)

    def item(self, i: int, dtype: str, column: Val) -> Ptr:
        """Item ``low + column`` of array `i`."""
        return self.at[i].plus_bytes((self.low + column) * self.steps[i]).as_dtype(dtype)


def runs(k: Builder, itemsize: int, stream: bool):
    """Copy runs of items that are contiguous in both arrays. Task: some rows, one block of columns."""
    dtype = f"u{itemsize}"

    def body(run: RowSpan, _: SimpleNamespace) -> None:
        out, x = (run.at[i].as_dtype(dtype) + run.low for i in range(2))
        if stream:
            stream_run(k, out, run.count, lambda i, lanes: x.load(i, lanes, align=1))
        else:
            copy_items(k, out, x, run.count)

    each_run(k, ("out", "x"), body)
    if stream:
        finish_stream(k)


def overlapping(k: Builder):
    """Copy contiguous bytes to a place that may overlap them. Task: all bytes."""
    a = k.args()
    k.move_bytes(a.out, a.x, a.nbytes)


def fills(k: Builder, itemsize: int, stream: bool):
    """Fill runs with one item of `x` each. Task: some rows, one block of columns."""
    dtype = f"u{itemsize}"
    lanes = k.target.lanes_of(dtype)

    def body(run: RowSpan, _: SimpleNamespace) -> None:
        out = run.at[0].as_dtype(dtype) + run.low
        item = run.at[1].as_dtype(dtype).load(align=1)
        vector = k.splat(item, lanes)
        if stream:
            stream_run(k, out, run.count, lambda _, lanes: vector if lanes else item)
        else:
            k.tail_loop(run.count, lanes, lambda i, n: out.store(vector if n else item, i, align=1))

    each_run(k, ("out", "x"), body)
    if stream:
        finish_stream(k)


def backward(k: Builder, itemsize: int):
    """Copy runs whose items lie in the opposite order in `x`. Task: some rows, one block of columns."""
    dtype = f"u{itemsize}"
    lanes = k.target.lanes_of(dtype)
    order = ir.Constant(ir.VectorType(ir.IntType(32), lanes), list(range(lanes - 1, -1, -1)))

    def body(run: RowSpan, _: SimpleNamespace) -> None:
        out, x = run.items(0, dtype), run.items(1, dtype)

        def step(i: Val, n: int) -> None:
            v = x.load(1 - i - (n or 1), n, align=1)
            if n:
                v = k.wrap(k.b.shuffle_vector(v.v, v.v, order), dtype, n)
            out.store(v, i, align=1)

        k.tail_loop(run.count, lanes, step)

    each_run(k, ("out", "x"), body)


def strided(k: Builder, itemsize: int):
    """Copy runs item by item, with any step on either side. Task: some rows, one block of columns."""
    dtype = f"u{itemsize}"

    def body(run: RowSpan, _: SimpleNamespace) -> None:
        def step(i: Val, n: int) -> None:
            places = [i + j for j in range(max(n, 1))]
            items = [run.item(1, dtype, p).load(align=1) for p in places]
            for p, item in zip(places, items):
                run.item(0, dtype, p).store(item, align=1)

        k.tail_loop(run.count, UNROLL, step)

    each_run(k, ("out", "x"), body)


def zips(k: Builder, itemsize: int, count: int, lanes: int):
    """Copy `count` contiguous runs so that their items alternate in `out`. Task: some rows, one block of columns."""
    dtype = f"u{itemsize}"

    def body(run: RowSpan, a: SimpleNamespace) -> None:
        out, x = run.items(0, dtype), run.items(1, dtype)

        def step(i: Val, n: int) -> None:
            vectors = [x.plus_bytes(a.apart * r).load(i, n, align=1) for r in range(count)]
            for r in range(count):
                places = [divmod(r * n + j, count) for j in range(n)]
                out.store(pick(k, vectors, places) if n else vectors[r], i * count + r * (n or 1), align=1)

        overlapped(k, run.count, lanes, step)

    each_run(k, ("out", "x"), body)


def unzips(k: Builder, itemsize: int, count: int, lanes: int):
    """Copy `count` runs whose items alternate in `x`, each to contiguous items. Task: as `zips`."""
    dtype = f"u{itemsize}"

    def body(run: RowSpan, a: SimpleNamespace) -> None:
        out, x = run.items(0, dtype), run.items(1, dtype)

        def step(i: Val, n: int) -> None:
            vectors = [x.load(i * count + r * (n or 1), n, align=1) for r in range(count)]
            for r in range(count):
                places = [divmod(r + j * count, n)[::-1] for j in range(n)]
                out.plus_bytes(a.apart * r).store(pick(k, vectors, places) if n else vectors[r], i, align=1)

        overlapped(k, run.count, lanes, step)

    each_run(k, ("out", "x"), body)


def pick(k: Builder, vectors: list[Val], places: list[tuple[int, int]]) -> Val:
    """Return the vector of the lanes at (lane, vector)."""
    lanes, value = len(places), vectors[0]
    first = [lane if i == 0 else 0 for lane, i in places]
    for r, vector in enumerate(vectors[1:], 1):
        others = first if r == 1 else range(lanes)
        value = shuffle(k, value, vector, [lanes + lane if i == r else old for (lane, i), old in zip(places, others)])
    return value


def overlapped(k: Builder, count: Val, lanes: int, step: Callable[[Val, int], None]) -> None:
    """Emit ``step(i, lanes)`` over `count` items, the last one over items of its neighbour; fewer items one by one."""
    whole = k.select(count < lanes, 0, count)
    with k.loop(0, whole, lanes) as i:
        step(k.smaller(i, count - lanes), lanes)
    with k.loop(whole, count) as i:
        step(i, 0)


def tiles(k: Builder, itemsize: int, lanes: int):
    """Transpose matrices: ``out[j, i] = x[i, j]``; items of `out` are contiguous along i, those of `x` along j.

    Squares of `lanes` items are transposed in registers, all those of a square of cache lines in turn. The last square
    of a block overlaps its neighbour, so blocks hold at least `lanes` items each way. Task: some matrices, one block
    of i and j.
    """
    dtype = f"u{itemsize}"
    a = k.args()
    first, last = k.tasks()
    line = max(lanes, LINE // itemsize)
    with k.loop(first, last) as task:
        low_i, high_i = block_of(k, task % a.blocks_i, a.block_i, a.blocks_i, a.ni)
        rest = task // a.blocks_i
        low_j, high_j = block_of(k, rest % a.blocks_j, a.block_j, a.blocks_j, a.nj)
        row = rest // a.blocks_j * a.each

        def square(out: Ptr, x: Ptr, i: Val, j: Val) -> None:
            x = x.plus_bytes(i * a.x_i + j * itemsize).as_dtype(dtype)
            out = out.plus_bytes(j * a.out_j + i * itemsize).as_dtype(dtype)
            vectors = [x.plus_bytes(a.x_i * r).load(0, lanes, align=1) for r in range(lanes)]
            for r, vector in enumerate(transpose(k, vectors)):
                out.plus_bytes(a.out_j * r).store(vector, align=1)

        def matrix(_: Val, at: list[Val]) -> None:
            out, x = a.out.plus_bytes(at[0]), a.x.plus_bytes(at[1])
            with (
                k.loop(low_j, high_j, line) as near_j,
                k.loop(low_i, high_i, line) as near_i,
                k.loop(near_j, k.smaller(near_j + line, high_j), lanes) as j,
                k.loop(near_i, k.smaller(near_i + line, high_i), lanes) as i,
            ):
                square(out, x, k.smaller(i, high_i - lanes), k.smaller(j, high_j - lanes))

        walk(k, a.axes, a.rank, 2, row, k.smaller(row + a.each, a.rows), matrix)


def each_run(k: Builder, arrays: tuple[str, ...], body: Callable[[RowSpan, SimpleNamespace], None]) -> None:
    """Emit ``body(run, args)`` for each row and block of columns of this call's tasks; `run` makes the signature."""
    a = k.args()
    with k.task_loop() as task:
        low, high = block_of(k, task % a.blocks, a.block, a.blocks, a.columns)
        row = task // a.blocks * a.each

        def run(position: Val, offsets: list[Val]) -> None:
            at = [getattr(a, name).plus_bytes(offset) for name, offset in zip(arrays, offsets)]
            body(RowSpan(at, [getattr(a, f"{name}_step") for name in arrays], position, low, high - low), a)

        walk(k, a.axes, a.rank, len(arrays), row, k.smaller(row + a.each, a.rows), run)


def block_of(k: Builder, i: Val, block: Val, blocks: Val, whole: Val) -> tuple[Val, Val]:
    """Return the ends of block `i`; the last one takes the remainder."""
    return i * block, k.select(i == blocks - 1, whole, (i + 1) * block)


def copy_items(k: Builder, out: Ptr, x: Ptr, count: Val) -> None:
    """Copy `count` contiguous items."""
    nbytes = count * int(out.dtype[1:])
    with k.if_else(nbytes >= SHORT_RUN) as (long, short):
        with long:
            k.copy_bytes(out, x, nbytes)
        with short, k.loop(0, count) as i:
            out.store(x.load(i, align=1), i, align=1)


def stream_run(k: Builder, out: Ptr, count: Val, value: Callable[[Val, int], Val]) -> None:
    """Compute ``out[i] = value(i, lanes)`` past the cache, by whole aligned lines; single items at both ends."""
    itemsize = int(out.dtype[1:])
    lanes = k.target.lanes_of(out.dtype)
    width = lanes * itemsize
    address = k.wrap(k.b.ptrtoint(out.v, ir.IntType(64)), "i8")
    before = k.smaller(((k.const(0, "i8") - address) & (width - 1)) // itemsize, count)
    aligned = (address & (itemsize - 1)) == 0
    before = k.select(aligned, before, count)
    whole = before + (count - before) // (lanes * UNROLL) * (lanes * UNROLL)
    with k.loop(0, before) as i:
        out.store(value(i, 0), i, align=1)
    with k.loop(before, whole, lanes * UNROLL) as i:
        vectors = [value(i + u * lanes, lanes) for u in range(UNROLL)]
        for u, v in enumerate(vectors):
            store_past_cache(out + (i + u * lanes), v)
    with k.loop(whole, count) as i:
        out.store(value(i, 0), i, align=1)


def store_past_cache(at: Ptr, vector: Val) -> None:
    """Store an aligned vector past the cache."""
    k = vector.k
    hint = k.module.add_metadata([ir.Constant(ir.IntType(32), 1)])
    k.b.store(vector.v, at.v, align=vector.lanes * int(vector.dtype[1:])).set_metadata("nontemporal", hint)


def finish_stream(k: Builder) -> None:
    """Order the stores past the cache before any later signal to other threads."""
    call_void(k, "fence")
