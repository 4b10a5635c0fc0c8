"""The product of a block: a square of results in registers, both sides through shared memory, two steps deep.

16 by 16 threads have `each` by `each` results in registers. While half a step of `DEPTH` products is computed, one
side's elements of the next step are loaded into registers; they go to the other half of shared memory, and there is one
barrier per step. Sums run along k in order, each addition fused with its product.
"""

from collections.abc import Callable

from cgraph.kernels.gemm.gpu_signature import DEPTH, SIDE, THREADS
from cgraph.kernels.llvm.gpu_build import GpuBuilder
from cgraph.kernels.llvm.values import Ptr, Val, nbytes_of

ACCESS = 16  # bytes that a thread reads or writes at once
Address = Callable[[Val, Val], Callable[[Val], Ptr]]


class ProductTile:
    """A thread's position in its block.

    Fields
        lines: rows, and columns, of the block's results
        each: rows, and columns, of a thread's results
        chunk: neighbouring results of a thread
        sums: variables; room: shared memory of each side
        width: elements from one product to the next in shared memory; more than `lines`, so that writes along k use
            different banks
    """

    def __init__(self, k: GpuBuilder, dtype: str, lines: int) -> None:
        self.k, self.dtype, self.lines = k, dtype, lines
        self.each, self.chunk = lines // SIDE, min(4, lines // SIDE)
        self.align = min(ACCESS, self.chunk * nbytes_of(dtype))
        self.width = lines + ACCESS // nbytes_of(dtype)
        self.thread = k.thread()
        self.row, self.column = self.thread // SIDE, self.thread % SIDE
        self.room = [k.shared(dtype, 2 * DEPTH * self.width) for _ in range(2)]
        self.sums = [[k.slot(0, dtype) for _ in range(self.each)] for _ in range(self.each)]

    def results(self) -> tuple[list[list[Val]], list[Val], list[Val]]:
        """Return a thread's sums, rows of columns, and their rows and columns in the tile."""
        thread = self.k.thread(anew=True)
        rows, columns = ([self.line(place, i) for i in range(self.each)] for place in (thread // SIDE, thread % SIDE))
        return [[x.value for x in row] for row in self.sums], rows, columns

    def line(self, place: Val, i: int) -> Val:
        """Return the `i`-th row or column of a thread at `place` among the 16."""
        return place * self.chunk + (i // self.chunk * SIDE * self.chunk + i % self.chunk)

    def multiply(self, left: "Side", right: "Side", low: Val, high: Val) -> None:
        """Add the products ``low .. high``, one or more, to all results of a thread.

        The first step takes what whole steps leave over, so the loop needs no checks.
        """
        k, sides, room = self.k, (left, right), self.room
        rest = (high - low - 1) % DEPTH + 1
        for side, shared in zip(sides, room):
            side.put(side.fetch(low, rest), shared)
        k.barrier()
        stage = k.slot(0, "i8")
        with k.loop(low + rest, high, DEPTH) as first:
            here, there = stage.value, DEPTH * self.width - stage.value
            for half, side in enumerate(sides):  # one after the other: fewer elements in registers
                values = side.fetch(first)
                for depth in range(half * DEPTH // 2, (half + 1) * DEPTH // 2):
                    self.step(room[0] + here, room[1] + here, depth)
                side.put(values, room[half] + there)
            k.barrier()
            stage.value = there
        with k.loop(0, DEPTH) as last:
            self.step(room[0] + stage.value, room[1] + stage.value, last)

    def step(self, left: Ptr, right: Ptr, depth: Val | int) -> None:
        """Add one product to every result."""
        xs, ys = self.elements(left, self.row, depth), self.elements(right, self.column, depth)
        for row, x in zip(self.sums, xs):
            for total, y in zip(row, ys):
                total.value = self.k.fma(x, y, total.value) if x.is_float else x * y + total.value

    def elements(self, shared: Ptr, place: Val, depth: Val | int) -> list[Val]:
        """Return a thread's factors: one element for each of its rows or columns."""
        k, at = self.k, shared + place * self.chunk + depth * self.width
        chunks = [at.load(i * SIDE, self.chunk, align=self.align) for i in range(0, self.each, self.chunk)]
        return [k.lane(x, j) for x in chunks for j in range(self.chunk)]


class Side:
    """One operand of a product: the elements that a thread copies from memory to shared memory.

    Beyond the last line the last one is read again, for results that are not stored.

    Fields
        form: ``k``: a thread copies neighbours along k, so that few addresses change; ``lines``: neighbouring threads
            copy neighbouring lines
        at: function of a step's beginning that returns the address of a line and a depth of the first step
        count: number of lines of the block
    """

    def __init__(self, tile: ProductTile, form: str, at: Address, count: Val) -> None:
        self.tile, self.k = tile, tile.k
        run = tile.chunk if form == "k" else 1
        per = DEPTH // run if form == "k" else tile.lines
        fast, slow = tile.thread % per * run, tile.thread // per
        line, depth = (slow, fast) if form == "k" else (fast, slow)
        steps = [(i * (THREADS // per), j) for i in range(tile.each // run) for j in range(run)]
        steps = steps if form == "k" else [(j, i) for i, j in steps]
        self.depths = [depth + down for _, down in steps]
        self.addresses = [at(tile.k.smaller(line + i, count - 1), depth + j) for i, j in steps]
        self.own, self.places = depth * tile.width + line, [j * tile.width + i for i, j in steps]

    def fetch(self, first: Val, there: Val | None = None) -> list[Val]:
        """Return a thread's elements of the step that begins at `first`; 0 beyond the products that are `there`."""
        if there is None:
            return [at(first).load() for at in self.addresses]
        slots = [self.k.slot(0, self.tile.dtype) for _ in self.addresses]
        for slot, at, depth in zip(slots, self.addresses, self.depths):
            with self.k.if_(depth < there):
                slot.value = at(first).load()
        return [slot.value for slot in slots]

    def put(self, values: list[Val], shared: Ptr) -> None:
        at = shared + self.own
        for x, place in zip(values, self.places):
            at.store(x, place)
