"""The reader of a ring of weights: copies pieces of a file into memory ahead of the kernels. It is not itself a kernel.

Reader and run share words. READ counts the available pieces, FREED those that no kernel needs any more; each side
sleeps on the other's word (futex, or short sleeps on systems without it). FAILED is the error of `pread`, HALT ends the
reading.
"""

from types import SimpleNamespace

from cgraph.kernels.control import FAILED, FREED, HALT, READ
from cgraph.kernels.interpret.atomics import INT, load, store
from cgraph.kernels.interpret.emit import nap, wake
from cgraph.kernels.isa.systems import errno_function, is_windows
from cgraph.kernels.llvm import ir
from cgraph.kernels.llvm.build import INDEX, POINTER, Builder
from cgraph.kernels.llvm.emitter import called_as
from cgraph.kernels.llvm.values import Val

INTERRUPTED, ENDED = 4, -1  # EINTR; the file is shorter than it was
NO_FUNCTION = 40  # Windows's ENOSYS


@called_as(ir.FunctionType(INDEX, [INDEX] * 4))
def read(k: Builder, clock: int, futex: int):
    """``n = read(words, orders, count, file)``: read pieces until all are done, HALT is set, or one cannot be read.

    Orders: int64 ``[count, 5]``: offset in the file, bytes, destination address, pieces that must be freed before, and
    the value of READ afterwards. Return the number of pieces read.
    """
    words, orders, count, file = (k.wrap(x, "i8") for x in k.function.args)
    t = SimpleNamespace(words=k.pointer(words, "i8"), clock=clock, futex=futex, file=file)
    start, done = k.pointer(orders, "i8"), k.slot(0, "i8")
    with k.loop_while() as w:
        w.until(done.value >= count)
        order = start + done.value * 5
        await_freed(k, t, order.load(3))
        w.until(load(k, t.words + HALT) != 0)
        w.until(~read_whole(k, t, order.load(0), order.load(1), order.load(2)))
        store(k, t.words + READ, order.load(4))
        wake(k, t, t.words + READ)
        done.value = done.value + 1
    k.b.ret(done.value.v)


@called_as(ir.FunctionType(INDEX, [INDEX] * 1))
def halt(k: Builder, clock: int, futex: int):
    """``halt(words)``: stop the reader wherever it waits. Params: as of `read`."""
    at = k.pointer(k.wrap(k.function.args[0], "i8"), "i8")
    store(k, at + HALT, k.const(1, "i8"))
    wake(k, SimpleNamespace(futex=futex), at + FREED)
    k.b.ret(k.const(0, "i8").v)


def await_freed(k: Builder, t: SimpleNamespace, count: Val) -> None:
    """Sleep until `count` pieces are freed, or HALT."""
    with k.loop_while() as w:
        freed = load(k, t.words + FREED)
        w.until((freed >= count) | (load(k, t.words + HALT) != 0))
        nap(k, t, t.words + FREED, freed)


def read_whole(k: Builder, t: SimpleNamespace, offset: Val, nbytes: Val, address: Val) -> Val:
    """Read all bytes of a piece; return False after an error, with its number in FAILED.

    One call reads the whole piece: a thread that returns from a read waits for a core, some milliseconds while kernels
    use them all. Reads of 1 MiB made YOLOv4 40 % slower; reads of its slices of 4 MiB cost nothing.
    """
    if is_windows(k.module.triple):  # it has no pread
        store(k, t.words + FAILED, k.const(NO_FUNCTION, "i8"))
        wake(k, t, t.words + READ)
        return k.const(0, "b1")
    pread = k.declare("pread", INDEX, [INT, POINTER, INDEX, INDEX])
    at, fine = k.slot(0, "i8"), k.slot(1, "b1")
    with k.loop_while() as w:
        w.until((at.value >= nbytes) | ~fine.value)
        size = nbytes - at.value
        room = k.b.inttoptr((address + at.value).v, POINTER)
        file = k.b.trunc(t.file.v, INT)
        count = k.wrap(k.b.call(pread, [file, room, size.v, (offset + at.value).v]), "i8")
        with k.if_else(count > 0) as (some, none):
            with some:
                at.value = at.value + count
            with none:
                problem = k.select(count == 0, k.const(ENDED, "i8"), error_number(k))
                with k.if_(problem != INTERRUPTED):
                    store(k, t.words + FAILED, problem)
                    wake(k, t, t.words + READ)
                    fine.value = k.const(0, "b1")
    return fine.value


def error_number(k: Builder) -> Val:
    """Return the C library's errno of this thread."""
    place = k.b.call(k.declare(errno_function(k.module.triple), POINTER, []), [])
    return k.wrap(k.b.sext(k.b.load(place, typ=INT), INDEX), "i8")
