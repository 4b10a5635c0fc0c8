"""The pointwise kernel: a scalar program over whole arrays, with vector loads, arithmetic and stores.

A task is a range of rows times a range of columns. Along a row each operand is read as whole vectors (``v``), as one
value for all (``s``, stride 0), as one repeated vector of one register (``p``, stride 0) or of two (``q``), or element
by element (``g``). The partial vectors at the ends of a row use the same code: a vector that overlaps its neighbour or,
if an output is one of the operands, small buffers on the stack. An element's bits therefore do not depend on where a
task ends, and the program is compiled once. A vector may be several registers wide, so that their chains of operations
overlap. An output may be one of the operands: a block is read before it is written.
"""

from collections.abc import Iterable, Iterator
from itertools import product

from cgraph.kernels.expression import Program
from cgraph.kernels.kernel import LINE
from cgraph.kernels.llvm import ir, storage
from cgraph.kernels.llvm.build import Builder
from cgraph.kernels.llvm.flow import divmod_of, prefetch
from cgraph.kernels.llvm.values import Ptr, Val, nbytes_of
from cgraph.kernels.llvm.vmath import evaluate
from cgraph.kernels.walk.emit import load_strided, store_strided, walk
from cgraph.record import Record, replace

WORD = 4  # bytes
LONG_ROW = 8  # vectors; only such a row is worth aligning


class RowStream(Record):
    """One operand or output of a kernel.

    Fields
        dtype: of its elements
        access: ``v``, ``s``, ``p``, ``q`` or ``g`` (above); an output is ``v`` or ``g``
        base, stride: address and bytes between columns, arguments of the kernel
        buffer: scratch for the last columns of a row
    """

    dtype: str
    access: str
    base: Val
    stride: Val
    buffer: Ptr


def pointwise(
    k: Builder, program: Program, results: tuple[int, ...], ins: str, outs: str, registers: int, past_cache: bool
) -> None:
    """`registers`: how many of them make one vector of the widest dtype; `past_cache`: the one output, of that dtype,
    is written to memory without being read into the cache first.

    The streams are the operands, then the outputs. Task: some rows, one block of columns.
    """
    is_short = k.target.dot == "halves" and not set("pq") & set(ins) and not past_cache
    lanes = scalar_lanes(program, ins + outs) if is_short else lanes_for(k, program) * registers
    dtypes = operand_dtypes(program, len(ins)) + [program[i][1] for i in results]
    a = k.args()
    streams = streams_of(k, stream_list(a.streams, len(dtypes)), dtypes, ins + outs, lanes)
    row_kernel = Row(k, program, results, streams, len(ins), lanes, past_cache)
    apart = k.const(not past_cache, "b1")
    for x, out in product(streams[: len(ins)], streams[len(ins) :]):
        apart = apart & (x.base != out.base)
    with k.task_loop() as task:
        band, block = (k.cast(x, "i8") for x in divmod_of(k.count(task), k.count(a.blocks)))
        low, start = band * a.rows_each, block * a.block
        high, end = k.smaller(low + a.rows_each, a.rows), k.smaller(start + a.block, a.columns)

        def row(_: Val, offsets: list[Val], start: Val = start, end: Val = end) -> None:
            starts = [s.base + o + start * s.stride for s, o in zip(streams, offsets)]
            if is_short:
                row_kernel.emit_short(starts, end - start)
            else:
                row_kernel.emit(starts, end - start, apart)

        walk(k, a.axes, a.rank, len(streams), low, high, row)


def lanes_for(k: Builder, program: Program) -> int:
    """Lanes of the widest dtype of a program."""
    return min(k.target.lanes_of(instruction[1]) for instruction in program)


def scalar_lanes(program: Program, accesses: str) -> int:
    """Lanes on a processor without vectors: as many bytes as a word has if all are adjacent, else one element."""
    is_bytes = all(instruction[1] in ("u1", "i1") for instruction in program) and "g" not in accesses
    return WORD if is_bytes else 1


def operand_dtypes(program: Program, count: int) -> list[str]:
    """Return the dtype of each operand; an operand that is never read counts as bytes."""
    dtypes = {instruction[2]: instruction[1] for instruction in program if instruction[0] == "load"}
    return [dtypes.get(i, "u1") for i in range(count)]


def streams_of(
    k: Builder, places: Iterable[tuple[Val, Val]], dtypes: list[str], accesses: str, room: int
) -> list[RowStream]:
    """Return operands and outputs with these addresses and column strides, and buffers for `room` elements."""
    return [
        RowStream(d, access, base, stride, buffer_of_ones(k, d, room))
        for (base, stride), d, access in zip(places, dtypes, accesses)
    ]


def stream_list(streams: Ptr, count: int) -> Iterator[tuple[Val, Val]]:
    """Yield address and column stride of each array in the list `streams` of the arguments."""
    return ((streams.load(2 * i), streams.load(2 * i + 1)) for i in range(count))


def buffer_of_ones(k: Builder, dtype: str, count: int) -> Ptr:
    """Return an array of ones on the stack, so that lanes past the end of a row compute valid values."""
    memory = k.stack_ptr("u1" if dtype == "b1" else dtype, count)
    kind = storage.register_dtype(memory.dtype)
    memory.store(k.const(1, kind, count), align=64)
    return memory.as_dtype(dtype)


def load_vector(k: Builder, s: RowStream, at: Val, column: Val, lanes: int, in_buffer: bool = False) -> Val:
    """Return `lanes` elements of a stream from `column` on; `at` is the address of column 0."""
    if s.access == "v" or in_buffer:
        return (k.pointer(at, s.dtype) + column).load(0, lanes)
    return load_strided(k, k.pointer(at + column * s.stride, s.dtype), s.stride, lanes)


class Row(Record):
    """Emits the code of one row."""

    k: Builder
    program: Program
    results: tuple[int, ...]
    streams: list[RowStream]
    operands: int
    lanes: int
    past_cache: bool

    def emit(self, starts: list[Val], count: Val, apart: Val, ahead: Val | None = None) -> None:
        """Emit `count` columns from the addresses `starts`: up to the alignment of `out`, whole vectors, the rest.

        The first and the last part go through the buffers. If `apart` says that outputs and operands share no bytes,
        they are whole vectors too, which compute some elements of the middle a second time. A short row, or one of
        strided items or with a repeated vector, has no first part. `ahead` is an address; the columns computed at a
        time are also prefetched from it.
        """
        k = self.k
        repeats = any(s.access in "pq" for s in self.streams)
        aligns = self.streams[-1].access == "v" and not repeats
        head = self.unaligned(starts[-1], count) if aligns else k.const(0, "i8")
        whole = (count - head) // self.lanes
        splats = {i: self.repeated(s, starts[i]) for i, s in enumerate(self.streams) if s.access in "spq"}
        twice = k.const(0, "b1") if repeats else apart & (count >= self.lanes)
        with k.loop(0 if aligns else 1, 3) as phase:
            tail = k.select(twice, count - self.lanes, head + whole * self.lanes)
            first = k.select(phase == 0, 0, k.select(phase == 1, head, tail))
            left = k.select(phase == 0, head, count - head - whole * self.lanes)
            buffered = (phase != 1) & (left > 0) & ~twice
            here = [at + first * self.step(s) for at, s in zip(starts, self.streams)]
            with k.if_(buffered):
                self.copy(here, left, into_buffers=True)
            at = [
                k.select(buffered, k.wrap(k.b.ptrtoint(s.buffer.v, ir.IntType(64)), "i8"), a)
                for a, s in zip(here, self.streams)
            ]
            strides = [k.select(buffered, nbytes_of(s.dtype), s.stride) for s in self.streams]
            with k.loop(0, k.select(phase == 1, whole, k.smaller(left, 1))) as i:
                if ahead is not None:
                    self.fetch(ahead, first + i * self.lanes)
                self.block(at, strides, i * self.lanes, splats)
            with k.if_(buffered):
                self.copy(here, left, into_buffers=False)

    def emit_short(self, starts: list[Val], count: Val) -> None:
        """Emit `count` columns from the addresses `starts` in little code: whole vectors, then single elements."""
        k, whole = self.k, (count // self.lanes) * self.lanes
        for first, last, lanes in ((0, whole, self.lanes), (whole, count, 1)):
            if first is whole and self.lanes == 1:
                continue
            part = replace(self, lanes=lanes)
            splats = {i: part.repeated(s, starts[i]) for i, s in enumerate(self.streams) if s.access == "s"}
            with k.loop(first, last, lanes) as column:
                part.block(starts, [s.stride for s in self.streams], column, splats)

    def step(self, s: RowStream) -> Val | int:
        """Return the bytes from one column to the next, a constant if columns are contiguous."""
        return nbytes_of(s.dtype) if s.access == "v" else s.stride

    def repeated(self, s: RowStream, address: Val) -> Val:
        """Return the vector of an operand along a whole row: one value in all lanes, or a vector of one or two
        registers.
        """
        at = self.k.pointer(address, s.dtype)
        if s.access == "s":
            return self.k.splat(at.load(), self.lanes)
        if s.access == "q":
            return at.load(0, self.lanes)
        vector = at.load(0, lanes_for(self.k, self.program))
        while vector.lanes < self.lanes:
            vector = self.k.join(vector, vector)
        return vector

    def unaligned(self, address: Val, count: Val) -> Val:
        """Return the columns before the first aligned address: by a register's bytes, or by a vector's past the cache.

        Accesses across two cache lines cost twice as much as others. Short rows are not aligned.
        """
        itemsize = nbytes_of(self.streams[-1].dtype)
        lanes = self.lanes if self.past_cache else lanes_for(self.k, self.program)
        before = self.k.smaller((-address & (lanes * itemsize - 1)) // itemsize, count)
        return before if self.past_cache else self.k.select(count < LONG_ROW * self.lanes, 0, before)

    def fetch(self, ahead: Val, column: Val) -> None:
        itemsize = nbytes_of(self.streams[-1].dtype)
        for line in range(0, self.lanes * itemsize, LINE):
            prefetch(self.k, self.k.pointer(ahead + column * itemsize + line, "u1"))

    def copy(self, here: list[Val], count: Val, into_buffers: bool) -> None:
        """Copy the operands' columns from `here` on into the buffers, or the outputs' columns out of them."""
        indices = range(self.operands) if into_buffers else range(self.operands, len(self.streams))
        for i in indices:
            stream = self.streams[i]
            if stream.access in "spq":
                continue
            if stream.access == "v":
                at = self.k.pointer(here[i], stream.dtype)
                source, target = (at, stream.buffer) if into_buffers else (stream.buffer, at)
                self.k.copy_bytes(target, source, count * nbytes_of(stream.dtype))
                continue
            with self.k.loop(0, count) as j:
                outside = self.k.pointer(here[i] + j * stream.stride, stream.dtype)
                inside = stream.buffer + j
                source, target = (outside, inside) if into_buffers else (inside, outside)
                target.store(source.load())

    def block(self, at: list[Val], strides: list[Val], column: Val, splats: dict[int, Val]) -> None:
        """Emit one vector, from `column` on."""

        def load(i: int) -> Val:
            s = self.streams[i]
            if s.access in "spq":
                return splats[i]
            return load_vector(self.k, replace(s, stride=strides[i]), at[i], column, self.lanes)

        values = evaluate(self.k, self.program, load, self.lanes)
        for i, position in enumerate(self.results, self.operands):
            self.store(i, at[i], strides[i], column, values[position])

    def store(self, i: int, at: Val, stride: Val, column: Val, value: Val) -> None:
        s = self.streams[i]
        if s.access == "v":
            (self.k.pointer(at, s.dtype) + column).store(value, past_cache=self.past_cache)
        else:
            store_strided(self.k, self.k.pointer(at + column * stride, s.dtype), stride, value)
