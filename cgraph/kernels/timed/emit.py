"""A wrapper of a kernel call that records its times. It replaces the kernel in a recorded table.

Arguments: int64 ``[4]``: the kernel's address, the address of its own arguments, the row, the address of a log. Log: a
word that counts calls, and the most entries, alone in their cache lines, then entries of int64 ``[6]``: row, first
task, last task (excluded), begin and end in nanoseconds, the thread. Calls beyond the most entries are not recorded.
"""

from cgraph.kernels.interpret.atomics import call, now
from cgraph.kernels.llvm import ir
from cgraph.kernels.llvm.build import INDEX, KERNEL_TYPE, Builder
from cgraph.kernels.llvm.emitter import called_as

ENTRIES, FIELDS, MOST = 16, 6, 8  # words before the first entry; of an entry; the word of the most entries


@called_as(KERNEL_TYPE)
def timed(k: Builder, clock: int):
    """``timed(args, first, last)``: call the kernel, and record times and thread. Params: the clock's number."""
    at, first, last = k.function.args
    args = k.pointer(k.wrap(k.b.ptrtoint(at, INDEX), "i8"), "i8")
    begin = now(k, clock)
    call(k, args.load(0), args.load(1), k.wrap(first, "i8"), k.wrap(last, "i8"))
    end = now(k, clock)
    log = k.pointer(args.load(3), "i8")
    number = k.wrap(k.b.atomic_rmw("add", log.v, ir.Constant(INDEX, 1), "monotonic"), "i8")
    with k.if_(number < log.load(MOST)):
        thread = k.wrap(k.b.call(k.declare("pthread_self", INDEX, []), []), "i8")
        entry = log + (number * FIELDS + ENTRIES)
        for place, x in enumerate((args.load(2), k.wrap(first, "i8"), k.wrap(last, "i8"), begin, end, thread)):
            entry.store(x, place)
    k.b.ret_void()
