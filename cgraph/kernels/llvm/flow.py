"""Loops that carry values, and memory access with masks: additions to the Builder for register-tiled emitters.

Everything here is final code: values stay in registers as phi nodes, so emitters that use it may be ``@final``.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from types import SimpleNamespace

from cgraph.kernels.llvm import ir, storage
from cgraph.kernels.llvm.build import POINTER, VOID, Builder
from cgraph.kernels.llvm.values import BOOL, MutableValue, Ptr, Val, vector_type

Carried = Val | Ptr


@contextmanager
def fold(k: Builder, low, high, init: Sequence[Carried], step=1) -> Iterator[SimpleNamespace]:
    """Emit ``for i in range(low, high, step)`` with values carried from one iteration to the next.

    ``s.i`` is the index, ``s.values`` are the values at the start of the iteration and, after the loop, the last ones;
    the body sets ``s.next``.
    """
    low, high, step = (k.counter(x) for x in (low, high, step))
    before = k.b.block
    head, body, end = (k.function.append_basic_block(n) for n in ("fold", "fold_body", "fold_end"))
    k.b.branch(head)
    k.b.position_at_end(head)
    i = k.b.phi(low.type)
    i.add_incoming(low, before)
    phis = [k.b.phi(x.v.type) for x in init]
    for phi, x in zip(phis, init):
        phi.add_incoming(x.v, before)
    values = [rewrap(x, p) for x, p in zip(init, phis)]
    k.b.cbranch(k.b.icmp_signed("<", i, high), body, end)
    k.b.position_at_end(body)
    state = SimpleNamespace(i=k.index(i), values=values, next=None)
    yield state
    for phi, x in zip(phis, state.next):
        phi.add_incoming(x.v, k.b.block)
    i.add_incoming(k.b.add(i, step), k.b.block)
    k.b.branch(head)
    k.b.position_at_end(end)


@contextmanager
def repeat(k: Builder, count: Val, init: Sequence[Carried]) -> Iterator[SimpleNamespace]:
    """Emit a loop of `count` iterations, at least one, that counts down; with carried values as in `fold`."""
    before, high = k.b.block, k.counter(count)
    body, end = (k.function.append_basic_block(n) for n in ("repeat", "repeat_end"))
    k.b.branch(body)
    k.b.position_at_end(body)
    rest = k.b.phi(high.type)
    rest.add_incoming(high, before)
    phis = [k.b.phi(x.v.type) for x in init]
    for phi, x in zip(phis, init):
        phi.add_incoming(x.v, before)
    state = SimpleNamespace(values=[rewrap(x, p) for x, p in zip(init, phis)], next=None)
    yield state
    for phi, x in zip(phis, state.next):
        phi.add_incoming(x.v, k.b.block)
    less = k.b.sub(rest, ir.Constant(rest.type, 1))
    rest.add_incoming(less, k.b.block)
    k.b.cbranch(k.b.icmp_signed("!=", less, ir.Constant(rest.type, 0)), body, end)
    k.b.position_at_end(end)
    state.values = state.next


@contextmanager
def banded_rows(k: Builder, planes: Val, rows: Val, band: Val) -> Iterator[tuple[Val, Val, Val]]:
    """Yield image, plane and row of each task of a call, in the order of `cgraph.kernels.views.row_bands`."""
    with each_task(k, (rows + band - 1) // band, planes, band) as (image, number, plane, row):
        row = number * band + row
        with k.if_(k.count(row) < k.count(rows)):
            yield image, plane, row


@contextmanager
def each_task(k: Builder, *sizes: Val) -> Iterator[list[Val]]:
    """Yield the tasks of a call as several digits, the last one fastest; an unbounded first digit precedes them.

    They are counted, not divided: four divisions would slow short tasks down.
    """
    first, last = k.tasks()
    rest, slots = k.count(first), []
    for size in map(k.count, reversed(sizes)):
        rest, digit = divmod_of(rest, size)
        slots.append((k.slot(digit), size))
    outermost = k.slot(rest)
    with k.loop(first, last):
        values = [k.cast(slot.value, "i8") for slot, _ in slots]
        digits = [k.cast(outermost.value, "i8"), *values[::-1]]
        count_up(k, [*slots, (outermost, None)])
        yield digits


def count_up(k: Builder, digits: Sequence[tuple[MutableValue, Val | None]]) -> None:
    """Add one, the first digit fastest; a digit that reaches its size returns to 0 and increments the next one."""
    (slot, size), *others = digits
    slot.value = slot.value + 1
    if size is not None:
        with k.if_(slot.value == size, likely=False):
            slot.value = 0
            count_up(k, others)


def divmod_of(x: Val, y: Val | int) -> tuple[Val, Val]:
    """Return quotient and remainder."""
    quotient = x // y
    return quotient, x - quotient * y


@contextmanager
def change_if(k: Builder, condition: Val, init: Sequence[Carried]) -> Iterator[SimpleNamespace]:
    """Emit values that change if `condition` holds: the body sets ``s.next``; ``s.values`` are valid afterwards."""
    before = k.b.block
    body, end = (k.function.append_basic_block(n) for n in ("changed", "changed_end"))
    k.b.cbranch(condition.v, body, end)
    k.b.position_at_end(body)
    state = SimpleNamespace(values=None, next=None)
    yield state
    after = k.b.block
    k.b.branch(end)
    k.b.position_at_end(end)
    state.values = []
    for old, new in zip(init, state.next):
        phi = k.b.phi(old.v.type)
        phi.add_incoming(old.v, before)
        phi.add_incoming(new.v, after)
        state.values.append(rewrap(old, phi))


def rewrap(x: Carried, v: ir.Value) -> Carried:
    """Return a value like `x` (dtype, lanes) whose LLVM value is `v`."""
    k = x.k
    return Ptr(k, v, x.dtype) if isinstance(x, Ptr) else Val(k, v, x.dtype, x.lanes)


def choose(k: Builder, condition: Val, x: Ptr, y: Ptr) -> Ptr:
    """Return one of two addresses."""
    return Ptr(k, k.b.select(condition.v, x.v, y.v), x.dtype)


def prefetch(k: Builder, at: Ptr, write: bool = False, locality: int = 3) -> None:
    """Prefetch the cache line at `at`: `locality` 3 into L1, 2 into L2."""
    word = ir.IntType(32)
    function = k.declare("llvm.prefetch.p0", VOID, [POINTER, word, word, word])
    k.b.call(function, [at.v, ir.Constant(word, int(write)), ir.Constant(word, locality), ir.Constant(word, 1)])


def apart(k: Builder, at: Ptr) -> Ptr:
    """Return the same address, whose origin the code generator does not know: it gets a register of its own."""
    return at if k.target.code == "ptx" else Ptr(k, hide(k, at.v), at.dtype)


def hidden(k: Builder, x: Val) -> Val:
    """Return the same number, whose origin the code generator does not know: it does not compute it again."""
    return x if k.target.code == "ptx" else k.wrap(hide(k, x.v), x.dtype)


def hide(k: Builder, v: ir.Value) -> ir.Value:
    """Return the same value from an instruction of no length."""
    return k.b.call(ir.InlineAsm(ir.FunctionType(v.type, [v.type]), "", "=r,0", side_effect=False), [v])


def first_lanes(k: Builder, count: Val, lanes: int) -> Val:
    """Return the mask of the lanes before `count` (which may be <= 0 or >= lanes)."""
    return k.iota("i4", lanes) < k.splat(k.cast(k.smaller(count, lanes), "i4"), lanes)


def masked_load(k: Builder, at: Ptr, mask: Val) -> Val:
    """The elements at `at` where `mask` holds, zero elsewhere; other elements are not touched."""
    if at.dtype in storage.BY_CODE:
        return storage.widen(k, masked_load(k, at.as_dtype(storage.memory_dtype(at.dtype)), mask), at.dtype)
    kind = vector_type(at.dtype, mask.lanes)
    name = f"llvm.masked.load.v{mask.lanes}{suffix(at.dtype)}.p0"
    word, bits = ir.IntType(32), ir.VectorType(BOOL, mask.lanes)
    function = k.declare(name, kind, [POINTER, word, bits, kind])
    align = ir.Constant(word, int(at.dtype[1:]))
    zero = k.const(0, at.dtype, mask.lanes)
    return k.wrap(k.b.call(function, [at.v, align, mask.v, zero.v]), at.dtype, mask.lanes)


def masked_store(k: Builder, at: Ptr, x: Val, mask: Val) -> None:
    """Write the lanes of `x` where `mask` holds; other elements are not touched."""
    if at.dtype in storage.BY_CODE:
        masked_store(k, at.as_dtype(storage.memory_dtype(at.dtype)), storage.narrow(k, x, at.dtype), mask)
        return
    kind = vector_type(x.dtype, x.lanes)
    word, bits = ir.IntType(32), ir.VectorType(BOOL, x.lanes)
    function = k.declare(f"llvm.masked.store.v{x.lanes}{suffix(x.dtype)}.p0", VOID, [kind, POINTER, word, bits])
    k.b.call(function, [x.v, at.v, ir.Constant(word, int(x.dtype[1:])), mask.v])


def suffix(dtype: str) -> str:
    return f"{'f' if dtype[0] == 'f' else 'i'}{8 * int(dtype[1:])}"


def shuffle(k: Builder, x: Val, y: Val, lanes: Sequence[int]) -> Val:
    """Return lanes of `x` (0 .. lanes - 1) and `y` (the numbers after)."""
    mask = ir.Constant(ir.VectorType(ir.IntType(32), len(lanes)), list(lanes))
    return k.wrap(k.b.shuffle_vector(x.v, y.v, mask), x.dtype, len(lanes))


def transpose(k: Builder, rows: Sequence[Val]) -> list[Val]:
    """Return the transpose of a square of vectors, by exchanging ever larger squares: lanes * log2(lanes) shuffles."""
    rows, lanes = list(rows), len(rows)
    width = 1
    while width < lanes:
        for i in range(lanes):
            if i & width:
                continue
            x, y = rows[i], rows[i | width]
            low = [j if not j & width else lanes + (j ^ width) for j in range(lanes)]
            high = [j ^ width if not j & width else lanes + j for j in range(lanes)]
            rows[i], rows[i | width] = shuffle(k, x, y, low), shuffle(k, x, y, high)
        width *= 2
    return rows


def total(k: Builder, x: Val) -> Val:
    """Return the sum of all lanes, by halves: always in the same order."""
    lanes = x.lanes
    while lanes > 1:
        lanes //= 2
        x = shuffle(k, x, x, range(lanes)) + shuffle(k, x, x, range(lanes, 2 * lanes))
    return k.lane(x, 0)


def put_where(k: Builder, place: Ptr, mask: Val, _: int, y: Val) -> None:
    masked_store(k, place, y, mask)
