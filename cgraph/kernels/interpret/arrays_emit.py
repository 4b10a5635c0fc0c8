"""The entry of a call with arrays: native code checks them, binds their addresses and runs the table.

Python's part of such a call would take longer than a small function's kernels.
"""

from types import SimpleNamespace

from cgraph.kernels.control import ARRAYS, OTHER_ARRAYS, STOPPED
from cgraph.kernels.interpret.emit import WAITING
from cgraph.kernels.llvm import ir
from cgraph.kernels.llvm.build import INDEX, POINTER, Builder
from cgraph.kernels.llvm.emitter import called_as
from cgraph.kernels.llvm.values import Ptr, Val
from cgraph.system.array_fields import DATA, DTYPE, DTYPE_WORD, FLAGS, IN_ORDER, NDIM, SHAPE


@called_as(ir.FunctionType(INDEX, [INDEX] * 2))
def enter(k: Builder, clock: int, futex: int):
    """``rows = enter(words, arrays)``: check and bind the arrays of a tuple, and run the rows of a table.

    Return the number of rows that ran; OTHER_ARRAYS if an array does not fit, or lies in the arena; STOPPED less the
    number of rows if the stop word is set. Some addresses may then be bound. No row runs if there are none, or if a run
    waits for a core. Words: `cgraph.kernels.control.ARRAYS`. Params: as of `lead`.
    """
    at, arrays = (k.wrap(x, "i8") for x in k.function.args)
    words = k.pointer(at, "i8")
    w = SimpleNamespace(**{name: words.load(i) for i, name in enumerate(ARRAYS)})
    number, record = k.slot(0, "i8"), k.slot(at + 8 * len(ARRAYS))
    result = k.slot(OTHER_ARRAYS, "i8")
    with k.if_(load(k, arrays + w.head) == w.count):
        with k.loop_while() as loop:
            loop.until(number.value == w.count)
            array = load(k, arrays + w.items + number.value * 8) + w.head
            loop.until(load(k, array - 8) != w.kind)
            entry = k.pointer(record.value, "i8")
            loop.until(~fits(k, array, entry, w.head))
            address = load(k, array + DATA)
            loop.until((address >= w.first) & (address < w.last))
            record.value = record.value + 8 * bind(k, entry, address, w.args)
            number.value = number.value + 1
        with k.if_(number.value == w.count):
            result.value = run(k, w)
    k.b.ret(result.value.v)


def load(k: Builder, address: Val) -> Val:
    return k.pointer(address, "i8").load()


def load_half(k: Builder, address: Val) -> Val:
    return k.cast(k.pointer(address, "i4").load(), "i8")


def fits(k: Builder, array: Val, entry: Ptr, head: Val) -> Val:
    """Return whether an array has the dtype and shape of an entry. Addresses of fields are after the object's head."""
    dtype = load(k, load(k, array + DTYPE) + head + DTYPE_WORD)
    in_order = (load_half(k, array + FLAGS) & IN_ORDER) == IN_ORDER
    same = k.slot((dtype == entry.load(0)) & in_order & (load_half(k, array + NDIM) == entry.load(1)))
    with k.if_(same.value):
        sizes = k.pointer(load(k, array + SHAPE), "i8")
        with k.loop(0, entry.load(1)) as axis:
            same.value = same.value & (sizes.load(axis) == entry.load(axis + 3))
    return same.value


def bind(k: Builder, entry: Ptr, address: Val, args: Val) -> Val:
    """Write an array's address plus each offset among the arguments; return the number of words of its entry."""
    first, count = entry.load(1) + 3, entry.load(2)
    places, target = entry + first, k.pointer(args, "i8")
    with k.loop(0, count) as i:
        target.store(address + places.load(i * 2 + 1), places.load(i * 2))
    return first + count * 2


def run(k: Builder, w: SimpleNamespace) -> Val:
    """Run the rows on this thread, and return the result of `enter`."""
    stop, ran = k.pointer(w.stop, "i8"), k.slot(0, "i8")
    stop.store(0)
    with k.if_((w.rows > 0) & (k.pointer(w.cores, "i8").load(WAITING) == 0)):
        operands = (w.cores, w.table, k.const(0, "i8"), w.rows, w.stop, w.slice)
        alone = k.b.inttoptr(w.alone.v, POINTER)
        ran.value = k.wrap(k.b.call(alone, [x.v for x in operands], INDEX), "i8")
        with k.if_(stop.load() != 0):
            ran.value = k.const(STOPPED, "i8") - ran.value
    return ran.value
