"""The interpreter: runs a table of kernel calls, alone or as one of a team of threads. Not a kernel itself.

Table: int64 ``[rows, 4]``, each row the kernel's address, the address of its arguments, its tasks, its chunk. A row is
cut into shares of `chunk` tasks.

A team shares a few words of memory. Its one *word* holds ``epoch << 32 | limit << 24 | shares``: a row is out, for
members up to `limit` (255: the run is over). Each member has a word of its own, ``epoch << 32 | left``: it counts down
the shares of that member's part of the row, which is the same part of every row, so that a thread finds in its core's
cache what it wrote there in the row before. Whoever lowers a member's word in a compare-and-swap has taken a share, and
knows that the row's fields are valid and stay so until the share is reported; members first take their own part, then
what the others have left. Threads report to `finished`; the one that reports the last share of a row owns the table
until it publishes the next row with a new epoch. So nobody waits for a thread that has taken nothing (a full barrier
would wait for one that lost its core), rows of one share are run by the owner without telling anyone, and between runs
threads wait exactly as between rows: spin, yield, then sleep on the epoch (futex; where there is none, naps).

The owner also decides to stop: the table has ended, the stop word is set, or the run's time slice is over, after which
the caller goes back to Python and returns, so that signals are handled.
"""

from types import SimpleNamespace

from llvmlite import ir

from cgraph.kernels.llvm.build import INDEX, KERNEL_TYPE, POINTER, VOID, Builder, Ptr, Val
from cgraph.kernels.llvm.compile import called_as

# Words of a team, 16 to a pair of cache lines.
WORD, FINISHED, ASLEEP, QUIT = 0, 16, 32, 48
TABLE, ROW, ROWS, LIMIT, STOP, DEADLINE = range(64, 70)
FUNCTION, ARGS, TASKS, CHUNK, SHARES = range(80, 85)
MEMBERS, MOST_MEMBERS = 96, 64
TEAM_WORDS = MEMBERS + 16 * MOST_MEMBERS

PAUSES, YIELDS, NAP_MICROSECONDS = 500, 300, 50
MOST_SHARES, OVER = 1 << 23, 255
CREDIT = 4
FUTEX_WAIT, FUTEX_WAKE = 9 | 128, 10 | 128  # by bit set, private to the process
INT = ir.IntType(32)


@called_as(ir.FunctionType(INDEX, [INDEX] * 5))
def alone(k: Builder, clock: int):
    """``row = alone(table, row, rows, stop, nanoseconds)``: run rows on this thread, without atomics.

    Returns the next row: `rows`, or less when the word at `stop` is set or the time is over. The clock is read once
    per few tasks. Params: the clock's number.
    """
    start, first, rows, flag, slice_ = (k.wrap(x, "i8") for x in k.function.args)
    table, stop = k.pointer(start, "i8"), k.pointer(flag, "i8")
    deadline = now(k, clock) + slice_
    row, credit = k.slot(first), k.slot(0, "i8")
    with k.loop_while() as w:
        w.until(row.value >= rows)
        w.until(stop.load() != 0)
        entry = table + row.value * 4
        tasks = entry.load(2)
        with k.if_(tasks > 0):
            call(k, entry.load(0), entry.load(1), k.const(0, "i8"), tasks)
        row.value = row.value + 1
        credit.value = credit.value + tasks
        over = k.slot(0, "b1")
        with k.if_(credit.value >= CREDIT):
            credit.value = 0
            over.value = now(k, clock) > deadline
        w.until(over.value)
    k.b.ret(row.value.v)


@called_as(ir.FunctionType(INDEX, [INDEX] * 8))
def crew(k: Builder, clock: int, futex: int):
    """``row = crew(team, member, limit, table, row, rows, stop, nanoseconds)``: take part in the team's runs.

    Member 0 starts a run with members up to `limit` and returns the next row when it is over. The others need only the
    first two arguments and return when QUIT is set. Params: the clock's number; the system call's number, 0 where
    there is no futex.
    """
    team, member, limit, table, row, rows, stop, slice_ = (k.wrap(x, "i8") for x in k.function.args)
    t = SimpleNamespace(at=k.pointer(team, "i8"), clock=clock, futex=futex)
    owner, spins, seen = k.slot(member == 0), k.slot(0, "i8"), k.slot(-1, "i8")
    with k.if_(member == 0):
        fields = ((LIMIT, limit), (TABLE, table), (ROW, row), (ROWS, rows), (STOP, stop))
        for place, x in (*fields, (DEADLINE, now(k, clock) + slice_)):
            t.at.store(x, place)
    with k.loop_while() as w:
        with k.if_(owner.value):
            advance(k, t)
            owner.value = k.const(0, "b1")
            spins.value = 0
        word = load(k, t.at + WORD)
        is_out = ((word & 0xFFFFFF) > 0) & (member <= limit_of(word)) & ((word >> 32) != seen.value)
        with k.if_else(is_out) as (then, otherwise):
            with then:
                owner.value = work(k, t, word, member)
                seen.value = word >> 32
                spins.value = 0
            with otherwise:
                w.until((member == 0) & (limit_of(word) == OVER))
                w.until((member != 0) & (load(k, t.at + QUIT) != 0))
                wait(k, t, word, member, spins)
    k.b.ret((t.at + ROW).load().v)


def limit_of(word: Val) -> Val:
    """The last member that takes part."""
    return (word >> 24) & 0xFF


def advance(k: Builder, t: SimpleNamespace) -> None:
    """As the owner: run rows of one share, and publish the next row of several, or the end."""
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
        tasks = entry.load(2)
        chunk = k.larger(entry.load(3), tasks // MOST_SHARES + 1)
        shares.value = (tasks + chunk - 1) // chunk
        row.value = row.value + 1
        credit.value = credit.value + tasks
        with k.if_(shares.value > 1):
            for place, x in ((FUNCTION, entry.load(0)), (ARGS, entry.load(1)), (TASKS, tasks), (CHUNK, chunk)):
                t.at.store(x, place)
        w.until(shares.value > 1)
        with k.if_(tasks > 0):
            call(k, entry.load(0), entry.load(1), k.const(0, "i8"), tasks)
    t.at.store(row.value, ROW)
    t.at.store(shares.value, SHARES)
    t.at.store(0, FINISHED)
    publish(k, t, shares.value)


def publish(k: Builder, t: SimpleNamespace, shares: Val) -> None:
    """Start a new epoch with this many shares, 0 at the end, and wake whom it concerns."""
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
    """Where a member's part of a row begins; members share it out evenly, in order."""
    return shares * member // (limit + 1)


def work(k: Builder, t: SimpleNamespace, word: Val, member: Val) -> Val:
    """Run what is left of the row published in `word`, the member's own part first; true when it was the row's last."""
    epoch, limit, done = word >> 32, limit_of(word), k.slot(0, "i8")
    with k.loop(0, limit + 1) as i:
        whose = (member + i) % (limit + 1)
        at = t.at + (MEMBERS + whose * 16)
        with k.loop_while() as w:
            seen = load(k, at)
            left = seen & 0xFFFFFFFF
            w.until(((seen >> 32) != epoch) | (left == 0))
            taken = k.b.cmpxchg(at.v, seen.v, (seen - 1).v, "acq_rel", "acquire")
            with k.if_(k.wrap(k.b.extract_value(taken, 1), "b1")):
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
    """One step of waiting for another epoch than `word`'s: a pause, then a yield, at last a sleep."""
    n = spins.value
    spins.value = n + 1
    with k.if_else(n < PAUSES) as (then, otherwise):
        with then:
            pause(k)
        with otherwise, k.if_else(n < PAUSES + YIELDS) as (briefly, long):
            with briefly:
                k.b.call(k.declare("sched_yield", INT, []), [])
            with long:
                sleep(k, t, word, member)
                spins.value = 0


def sleep(k: Builder, t: SimpleNamespace, word: Val, member: Val) -> None:
    """Sleep until the epoch changes; it is not missed: the kernel compares it again after ASLEEP is set."""
    if not t.futex:
        k.b.call(k.declare("usleep", INT, [INT]), [ir.Constant(INT, NAP_MICROSECONDS)])
        return
    bit = k.const(1, "i8") << member
    k.b.atomic_rmw("or", (t.at + ASLEEP).v, bit.v, "seq_cst")
    mask = k.const(1, "i8") << (member & 31)
    system_call(k, t.futex, (t.at + WORD).plus_bytes(4), FUTEX_WAIT, word >> 32, mask)
    k.b.atomic_rmw("and", (t.at + ASLEEP).v, (~bit).v, "seq_cst")


def system_call(k: Builder, number: int, at: Ptr, what: int, value, mask: Val) -> None:
    """``futex(at, what, value, no timeout, nothing, mask)``"""
    function = k.declare("syscall", INDEX, [INDEX, POINTER, INDEX, INDEX, INDEX, INDEX, INDEX])
    zero = k.const(0, "i8").v
    operands = [k.const(number, "i8").v, at.v, k.const(what, "i8").v, k.val(value, "i8").v, zero, zero, mask.v]
    k.b.call(function, operands)


def call(k: Builder, function: Val, args: Val, first: Val, last: Val) -> None:
    """Call the kernel at an address."""
    at = k.b.inttoptr(function.v, KERNEL_TYPE.as_pointer())
    k.b.call(at, [k.b.inttoptr(args.v, POINTER), first.v, last.v])


def load(k: Builder, at: Ptr) -> Val:
    return k.wrap(k.b.load_atomic(at.v, "seq_cst", 8, typ=INDEX), "i8")


def store(k: Builder, at: Ptr, value: Val) -> None:
    k.b.atomic_rmw("xchg", at.v, value.v, "release")  # llvmlite has no atomic store through an untyped pointer


def pause(k: Builder) -> None:
    """Tell the core that it spins, where there is an instruction for it."""
    if k.module.triple.startswith("x86_64"):
        k.b.call(k.declare("llvm.x86.sse2.pause", VOID, []), [])


def now(k: Builder, clock: int) -> Val:
    """Nanoseconds of the system's clock of this number."""
    time = k.stack_ptr("i8", 2)
    k.b.call(k.declare("clock_gettime", INT, [INT, POINTER]), [ir.Constant(INT, clock), time.v])
    return time.load(0) * 1_000_000_000 + time.load(1)
