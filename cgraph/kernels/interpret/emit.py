"""The interpreter: runs a table of kernel calls, on one thread or on a team of threads. It is not itself a kernel.

Table: int64 ``[rows, 4]``; a row is the kernel's address, the address of its arguments, its tasks, its chunk. A row is
divided into shares of `chunk` tasks. A *control row* has a small number instead of an address: `control` and `jump`.

A team shares a few words of memory. Its *word* is ``epoch << 32 | limit << 24 | shares``: a row is published for
members up to `limit` (255: the run is over). Each member has a word of its own, ``epoch << 32 | left``, which counts
down the shares of that member's part of the row. A member's part is the same in every row, so that a thread finds in
its core's cache what it wrote in the row before. A thread takes a share by lowering a member's word in a
compare-and-swap; the row's fields then stay valid until the share is reported. Members first take their own part, then
the shares that others have left. Threads report to `finished`; the one that reports a row's last share owns the table
until it publishes the next row with a new epoch. Nobody waits for a thread that has taken nothing (a full barrier would
wait for one that lost its core), the owner runs rows of one share without publishing them, and between runs threads
wait exactly as between rows: spin, yield, then sleep on the epoch (futex, or short sleeps on systems without it).

The owner also decides to stop: at the end of the table, if the stop word is set, before a Python function (kernel 0),
or after the time slice. The caller then returns to Python, so that signals are handled. The owner also waits for
weights that a reader copies from a file, within the slice.

The cores of the process are a few words too: how many are free, and how many runs wait for one. They are taken on entry
and returned on exit, and so is a team: an exception in the caller's Python code never leaves one taken. Without a free
core the caller waits for one as long as a slice, then returns to Python.
"""

from types import SimpleNamespace

from cgraph.kernels.control import CONTROLS, FAILED, FREED, PASSED, READ, READ_FAILED, STALLED
from cgraph.kernels.interpret.atomics import (
    add,
    call,
    give_way,
    load,
    now,
    pause,
    sleep_briefly,
    store,
    swap,
)
from cgraph.kernels.interpret.jumps import jump
from cgraph.kernels.llvm import ir
from cgraph.kernels.llvm.build import INDEX, POINTER, Builder
from cgraph.kernels.llvm.emitter import called_as
from cgraph.kernels.llvm.values import Ptr, Val
from cgraph.system.machine import MONOTONIC_CLOCK

# Words of a team, 16 to a pair of cache lines.
WORD, FINISHED, ASLEEP, QUIT, BUSY = 0, 16, 32, 48, 49
TABLE, ROW, ROWS, LIMIT, STOP, DEADLINE = range(64, 70)
FUNCTION, ARGS, TASKS, CHUNK, SHARES = range(80, 85)
MEMBERS, MOST_MEMBERS = 96, 64
PRESENT = 1  # beside the word of a member
TEAM_WORDS = MEMBERS + 16 * MOST_MEMBERS
# Words of the cores.
FREE, WAITING, IN_USE, CORES_WORDS = 0, 16, 17, 32
TEAM_BUSY = -1  # instead of a row: another run has the team

PAUSES, YIELDS, NAP_MICROSECONDS = 500, 300, 50
MOST_SHARES, OVER = 1 << 23, 255
CREDIT = 4
WAIT_NANOSECONDS = 20_000_000
FUTEX_WAIT, FUTEX_WAKE = 9 | 128, 10 | 128  # by bit set, private to the process
FUTEX_WAIT_FOR, ANY = 0 | 128, 0xFFFFFFFF  # for a time; whoever waits


@called_as(ir.FunctionType(INDEX, [INDEX] * 6))
def alone(k: Builder, clock: int, futex: int):
    """``row = alone(cores, table, row, rows, stop, nanoseconds)``: run rows on this thread, without atomics.

    Return the next row: `rows`, or less if there is no core, the next row is a Python function, the word at `stop` is
    set or the time is over. The clock is read once per few tasks. Params: as of `lead`.
    """
    cores, start, first, rows, flag, slice_ = (k.wrap(x, "i8") for x in k.function.args)
    t = SimpleNamespace(cores=k.pointer(cores, "i8"), clock=clock, futex=futex)
    table, stop, row = k.pointer(start, "i8"), k.pointer(flag, "i8"), k.slot(first)
    with k.if_(take_cores(k, t, k.const(1, "i8")) > 0):
        deadline, credit = now(k, clock) + slice_, k.slot(0, "i8")
        with k.loop_while() as w:
            w.until(row.value >= rows)
            w.until(stop.load() != 0)
            entry = table + row.value * 4
            w.until(entry.load(0) == 0)
            tasks = k.slot(entry.load(2))
            w.until(~run_row(k, t, entry, row, tasks, stop, deadline))
            credit.value = credit.value + tasks.value
            over = k.slot(0, "b1")
            with k.if_(credit.value >= CREDIT):
                credit.value = 0
                over.value = now(k, clock) > deadline
            w.until(over.value)
        give_cores(k, t, k.const(1, "i8"))
    k.b.ret(row.value.v)


@called_as(ir.FunctionType(INDEX, [INDEX] * 8))
def lead(k: Builder, clock: int, futex: int):
    """``row = lead(cores, team, most, table, row, rows, stop, nanoseconds)``: run rows as member 0 of a team.

    Return as `alone` does, or TEAM_BUSY. At most `most` threads take part, including the caller's. Params: the clock's
    number; the system call's number, 0 if there is no futex.
    """
    cores, team, most, table, row, rows, stop, slice_ = (k.wrap(x, "i8") for x in k.function.args)
    t = SimpleNamespace(cores=k.pointer(cores, "i8"), at=k.pointer(team, "i8"), clock=clock, futex=futex)
    result, count = k.slot(row), take_cores(k, t, most)
    with k.if_(count > 0):
        result.value = k.const(TEAM_BUSY, "i8")
        with k.if_(swap(k, t.at + BUSY, k.const(0, "i8"), k.const(1, "i8"))):
            fields = ((LIMIT, count - 1), (TABLE, table), (ROW, row), (ROWS, rows), (STOP, stop))
            for place, x in (*fields, (DEADLINE, now(k, clock) + slice_)):
                t.at.store(x, place)
            take_part(k, t, k.const(0, "i8"))
            result.value = t.at.load(ROW)
            store(k, t.at + BUSY, k.const(0, "i8"))
        give_cores(k, t, count)
    k.b.ret(result.value.v)


@called_as(ir.FunctionType(INDEX, [INDEX] * 2))
def follow(k: Builder, clock: int, futex: int):
    """``follow(team, member)``: take part in the team's runs until QUIT is set; return at once if the member exists.

    Params: as of `lead`.
    """
    team, member = (k.wrap(x, "i8") for x in k.function.args)
    t = SimpleNamespace(at=k.pointer(team, "i8"), clock=clock, futex=futex)
    with k.if_(swap(k, t.at + (member * 16 + (MEMBERS + PRESENT)), k.const(0, "i8"), k.const(1, "i8"))):
        take_part(k, t, member)
    k.b.ret(member.v)


@called_as(ir.FunctionType(INDEX, [INDEX] * 2))
def hold(k: Builder, clock: int, futex: int):
    """``count = hold(cores, target)``: take the cores that runs return, and return how many are taken now.

    Fewer than `target` if others did not become free within a slice. Params: as of `lead`.
    """
    cores, target = (k.wrap(x, "i8") for x in k.function.args)
    t = SimpleNamespace(cores=k.pointer(cores, "i8"), clock=clock, futex=futex)
    more = target - load(k, t.cores + IN_USE)
    with k.if_(more > 0):
        add(k, t.cores + IN_USE, take_cores(k, t, more))
    k.b.ret(load(k, t.cores + IN_USE).v)


@called_as(ir.FunctionType(INDEX, [INDEX] * 1))
def release(k: Builder, clock: int, futex: int):
    """``count = release(cores)``: return all cores that `hold` took. Params: as of `lead`."""
    t = SimpleNamespace(cores=k.pointer(k.wrap(k.function.args[0], "i8"), "i8"), clock=clock, futex=futex)
    count = k.wrap(k.b.atomic_rmw("xchg", (t.cores + IN_USE).v, k.const(0, "i8").v, "seq_cst"), "i8")
    give_cores(k, t, count)
    k.b.ret(count.v)


def take_cores(k: Builder, t: SimpleNamespace, most: Val) -> Val:
    """Take the free cores, at most `most`, and return how many: 0 if none became free in time."""
    count, deadline = k.slot(0, "i8"), now(k, t.clock) + WAIT_NANOSECONDS
    with k.loop_while() as w:
        free = load(k, t.cores + FREE)
        with k.if_else(free > 0) as (some, none):
            with some:
                share = k.smaller(free, most)
                with k.if_(swap(k, t.cores + FREE, free, free - share)):
                    count.value = share
            with none:
                add(k, t.cores + WAITING, k.const(1, "i8"))
                nap(k, t, t.cores + FREE, k.const(0, "i8"))
                add(k, t.cores + WAITING, k.const(-1, "i8"))
        w.until((count.value > 0) | (now(k, t.clock) > deadline))
    return count.value


def give_cores(k: Builder, t: SimpleNamespace, count: Val) -> None:
    """Return cores, and wake the runs that wait for one."""
    add(k, t.cores + FREE, count)
    with k.if_(load(k, t.cores + WAITING) != 0, likely=False):
        wake(k, t, t.cores + FREE)


def take_part(k: Builder, t: SimpleNamespace, member: Val) -> None:
    """Work on published rows: member 0 begins as the owner and works until the run is over, others until QUIT."""
    owner, spins, last_epoch = k.slot(member == 0), k.slot(0, "i8"), k.slot(-1, "i8")
    with k.loop_while() as w:
        with k.if_(owner.value):
            advance(k, t)
            owner.value = k.const(0, "b1")
            spins.value = 0
        word = load(k, t.at + WORD)
        is_out = ((word & 0xFFFFFF) > 0) & (member <= limit_of(word)) & ((word >> 32) != last_epoch.value)
        with k.if_else(is_out) as (then, otherwise):
            with then:
                owner.value = work(k, t, word, member)
                last_epoch.value = word >> 32
                spins.value = 0
            with otherwise:
                w.until((member == 0) & (limit_of(word) == OVER))
                w.until((member != 0) & (load(k, t.at + QUIT) != 0))
                wait(k, t, word, member, spins)


def limit_of(word: Val) -> Val:
    """Return the last member that takes part."""
    return (word >> 24) & 0xFF


def advance(k: Builder, t: SimpleNamespace) -> None:
    """As the owner, run rows of one share, and publish the next row of several shares, or the end."""
    table, stop = k.pointer(t.at.load(TABLE), "i8"), k.pointer(t.at.load(STOP), "i8")
    rows, deadline = t.at.load(ROWS), t.at.load(DEADLINE)
    row, shares, credit = k.slot(t.at.load(ROW)), k.slot(0, "i8"), k.slot(CREDIT, "i8")
    with k.loop_while() as w:
        shares.value = 0
        w.until((row.value >= rows) | (stop.load() != 0))
        over = k.slot(0, "b1")
        with k.if_(credit.value >= CREDIT):
            credit.value = 0
            over.value = now(k, t.clock) > deadline
        w.until(over.value)
        entry = table + row.value * 4
        w.until(entry.load(0) == 0)
        tasks = k.slot(entry.load(2))
        chunk = k.larger(entry.load(3), tasks.value // MOST_SHARES + 1)
        shares.value = k.select(is_control(entry), k.const(1, "i8"), (tasks.value + chunk - 1) // chunk)
        with k.if_(shares.value > 1):
            row.value = row.value + 1
            for place, x in ((FUNCTION, entry.load(0)), (ARGS, entry.load(1)), (TASKS, tasks.value), (CHUNK, chunk)):
                t.at.store(x, place)
        w.until(shares.value > 1)
        shares.value = 0
        w.until(~run_row(k, t, entry, row, tasks, stop, deadline))
        credit.value = credit.value + tasks.value
    t.at.store(row.value, ROW)
    t.at.store(shares.value, SHARES)
    t.at.store(0, FINISHED)
    publish(k, t, shares.value)


def is_control(entry: Ptr) -> Val:
    return entry.load(0) <= CONTROLS


def run_row(k: Builder, t: SimpleNamespace, entry: Ptr, row, tasks, stop: Ptr, deadline: Val) -> Val:
    """Run a whole row and set `row` to the next one; return False if what it waits for did not come.

    For a control row, set `tasks` to 1.
    """
    distance = k.slot(1, "i8")
    with k.if_else(is_control(entry)) as (is_control_row, is_call):
        with is_control_row:
            tasks.value = 1
            with k.if_else(entry.load(0) <= PASSED) as (is_of_ring, is_jump):
                with is_of_ring:
                    distance.value = k.cast(control(k, t, entry, stop, deadline), "i8")
                with is_jump:
                    distance.value = jump(k, entry)
        with is_call, k.if_(tasks.value > 0):
            call(k, entry.load(0), entry.load(1), k.const(0, "i8"), tasks.value)
    row.value = row.value + distance.value
    return distance.value != 0


def control(k: Builder, t: SimpleNamespace, entry: Ptr, stop: Ptr, deadline: Val) -> Val:
    """WAIT: wait until the row's number of pieces has been read. PASSED: release that number of pieces.

    Return False if the slice ends first, or if reading failed: then the stop word is set.
    """
    words, number, there = k.pointer(entry.load(1), "i8"), entry.load(2), k.slot(1, "b1")
    with k.if_else(entry.load(0) == PASSED) as (passed, waits):
        with passed:
            store(k, words + FREED, number)
            wake(k, t, words + FREED)
        with waits, k.if_(load(k, words + READ) < number):
            start = now(k, MONOTONIC_CLOCK)
            there.value = k.const(0, "b1")
            with k.loop_while() as w:
                pieces = load(k, words + READ)
                there.value = pieces >= number
                w.until(there.value | (load(k, words + FAILED) != 0) | (now(k, t.clock) > deadline))
                nap(k, t, words + READ, pieces)
            stalled = words + (number + (STALLED - 1))
            stalled.store(stalled.load() + (now(k, MONOTONIC_CLOCK) - start))
            with k.if_((load(k, words + FAILED) != 0) & ~there.value):
                stop.store(READ_FAILED)
    return there.value


def nap(k: Builder, t: SimpleNamespace, at: Ptr, value: Val) -> None:
    """Sleep until the word differs from `value`, at most for a slice."""
    if not t.futex:
        sleep_briefly(k, NAP_MICROSECONDS)
        return
    time = k.stack_ptr("i8", 2)
    time.store(0, 0)
    time.store(WAIT_NANOSECONDS, 1)
    system_call(
        k, t.futex, at, FUTEX_WAIT_FOR, value & ANY, k.const(ANY, "i8"), k.wrap(k.b.ptrtoint(time.v, INDEX), "i8")
    )


def wake(k: Builder, t: SimpleNamespace, at: Ptr) -> None:
    """Wake all threads that sleep on the word."""
    if t.futex:
        system_call(k, t.futex, at, FUTEX_WAKE, 0x7FFFFFFF, k.const(ANY, "i8"))


def publish(k: Builder, t: SimpleNamespace, shares: Val) -> None:
    """Start a new epoch with this many shares, 0 at the end, and wake the members that take part."""
    limit, over = t.at.load(LIMIT), shares == 0
    mates = k.select(over, k.const(1, "i8"), (k.const(2, "i8") << limit) - 1)
    mates = k.select(load(k, t.at + QUIT) != 0, k.const(-1, "i8"), mates)
    epoch = (load(k, t.at + WORD) >> 32) + 1
    with k.if_(~over), k.loop(0, limit + 1) as member:
        left = first_share(shares, member + 1, limit) - first_share(shares, member, limit)
        store(k, t.at + (MEMBERS + member * 16), (epoch << 32) | left)
    word = (epoch << 32) | (k.select(over, k.const(OVER, "i8"), limit) << 24) | shares
    k.b.atomic_rmw("xchg", (t.at + WORD).v, word.v, "seq_cst")  # after the last one, a member touches no field
    if not t.futex:
        return
    sleeping = load(k, t.at + ASLEEP) & mates
    with k.if_(sleeping != 0, likely=False):
        mask = (sleeping | (sleeping >> 32)) & 0xFFFFFFFF
        system_call(k, t.futex, (t.at + WORD).plus_bytes(4), FUTEX_WAKE, 0x7FFFFFFF, mask)


def first_share(shares: Val, member: Val, limit: Val) -> Val:
    """Return the first share of a member's part of a row; members divide it evenly, in order."""
    return shares * member // (limit + 1)


def work(k: Builder, t: SimpleNamespace, word: Val, member: Val) -> Val:
    """Run the remaining shares of the row in `word`, the member's own part first; return True after the row's last."""
    epoch, limit, done = word >> 32, limit_of(word), k.slot(0, "i8")
    with k.loop(0, limit + 1) as i:
        whose = (member + i) % (limit + 1)
        at = t.at + (MEMBERS + whose * 16)
        with k.loop_while() as w:
            old = load(k, at)
            left = old & 0xFFFFFFFF
            w.until(((old >> 32) != epoch) | (left == 0))
            with k.if_(swap(k, at, old, old - 1)):
                function, args, tasks, chunk, shares = (t.at.load(i) for i in (FUNCTION, ARGS, TASKS, CHUNK, SHARES))
                first = (first_share(shares, whose + 1, limit) - left) * chunk
                call(k, function, args, first, k.smaller(first + chunk, tasks))
                done.value = done.value + 1
    was_last = k.slot(0, "b1")
    with k.if_(done.value > 0):
        shares = t.at.load(SHARES)  # before the report: the row's fields are the next owner's after the last one
        before = k.wrap(k.b.atomic_rmw("add", (t.at + FINISHED).v, done.value.v, "acq_rel"), "i8")
        was_last.value = before + done.value == shares
    return was_last.value


def wait(k: Builder, t: SimpleNamespace, word: Val, member: Val, spins) -> None:
    """Wait one step for another epoch than `word`'s: first a pause, then a yield, at last a sleep."""
    n = spins.value
    spins.value = n + 1
    with k.if_else(n < PAUSES) as (then, otherwise):
        with then:
            pause(k)
        with otherwise, k.if_else(n < PAUSES + YIELDS) as (briefly, long):
            with briefly:
                give_way(k)
            with long:
                sleep(k, t, word, member)
                spins.value = 0


def sleep(k: Builder, t: SimpleNamespace, word: Val, member: Val) -> None:
    """Sleep until the epoch changes. No change is missed: the kernel compares it again after ASLEEP is set."""
    if not t.futex:
        sleep_briefly(k, NAP_MICROSECONDS)
        return
    bit = k.const(1, "i8") << member
    k.b.atomic_rmw("or", (t.at + ASLEEP).v, bit.v, "seq_cst")
    mask = k.const(1, "i8") << (member & 31)
    system_call(k, t.futex, (t.at + WORD).plus_bytes(4), FUTEX_WAIT, word >> 32, mask)
    k.b.atomic_rmw("and", (t.at + ASLEEP).v, (~bit).v, "seq_cst")


def system_call(k: Builder, number: int, at: Ptr, what: int, value, mask: Val, timeout: Val | None = None) -> None:
    """``futex(at, what, value, timeout, nothing, mask)``"""
    function = k.declare("syscall", INDEX, [INDEX, POINTER, INDEX, INDEX, INDEX, INDEX, INDEX])
    zero = k.const(0, "i8").v
    time = timeout.v if timeout is not None else zero
    operands = [k.const(number, "i8").v, at.v, k.const(what, "i8").v, k.val(value, "i8").v, time, zero, mask.v]
    k.b.call(function, operands)
