"""Instructions of the interpreter: words that threads share, clocks, and calls of kernels by address."""

from cgraph.kernels.isa.systems import is_windows
from cgraph.kernels.llvm import ir
from cgraph.kernels.llvm.build import INDEX, POINTER, VOID, Builder
from cgraph.kernels.llvm.instructions import call_void
from cgraph.kernels.llvm.values import Ptr, Val

INT = ir.IntType(32)
BILLION = 1_000_000_000


def call(k: Builder, function: Val, args: Val, first: Val, last: Val) -> None:
    """Call the kernel at an address."""
    at = k.b.inttoptr(function.v, POINTER)
    k.b.call(at, [k.b.inttoptr(args.v, POINTER), first.v, last.v], VOID)


def load(k: Builder, at: Ptr) -> Val:
    return k.wrap(k.b.load_atomic(at.v, "seq_cst", 8, typ=INDEX), "i8")


def store(k: Builder, at: Ptr, value: Val) -> None:
    k.b.atomic_rmw("xchg", at.v, value.v, "release")


def swap(k: Builder, at: Ptr, old: Val, new: Val) -> Val:
    """Write `new` if the word is `old`; return whether it was."""
    return k.wrap(k.b.cmpxchg(at.v, old.v, new.v, "acq_rel", "acquire"), "b1")


def add(k: Builder, at: Ptr, value: Val) -> None:
    k.b.atomic_rmw("add", at.v, value.v, "seq_cst")


def pause(k: Builder) -> None:
    """Signal to the core that this thread spins, if there is an instruction for it."""
    call_void(k, "pause")


def now(k: Builder, clock: int) -> Val:
    """Return the nanoseconds of a system clock by its number; Windows has one clock, that of `time.perf_counter_ns`."""
    time = k.stack_ptr("i8", 2)
    if is_windows(k.module.triple):
        for name, place in (("QueryPerformanceCounter", time), ("QueryPerformanceFrequency", time + 1)):
            k.b.call(k.declare(name, INT, [POINTER]), [place.v])
        ticks, frequency = time.load(0), time.load(1)
        whole, rest = ticks // frequency, ticks % frequency
        return whole * BILLION + rest * BILLION // frequency
    k.b.call(k.declare("clock_gettime", INT, [INT, POINTER]), [ir.Constant(INT, clock), time.v])
    return time.load(0) * BILLION + time.load(1)


def sleep_briefly(k: Builder, microseconds: int) -> None:
    """Sleep some microseconds, on Windows a millisecond or more."""
    if is_windows(k.module.triple):
        k.b.call(k.declare("Sleep", VOID, [INT]), [ir.Constant(INT, -(-microseconds // 1000))])
    else:
        k.b.call(k.declare("usleep", INT, [INT]), [ir.Constant(INT, microseconds)])


def give_way(k: Builder) -> None:
    """Let another thread use the core."""
    k.b.call(k.declare("SwitchToThread" if is_windows(k.module.triple) else "sched_yield", INT, []), [])
