"""Attention with one block of threads for a band of 16 queries, 16 threads for each query.

As in `cgraph.kernels.attention.emit`, only the scores of one block of keys exist at a time, in shared memory; a running
maximum and sum pass over the blocks, and a query's result does not depend on the other queries of its band. A thread
computes every 16th key of a block, then every 16th column of the result in registers. Every thread of a query computes
the maximum and the sum of a block itself, in the order of the keys.
"""

from math import inf

from cgraph.kernels.attention.emit import Forms, Unit
from cgraph.kernels.attention.gpu_signature import ACROSS, ROWS, THREADS
from cgraph.kernels.attention.signature import KEYS
from cgraph.kernels.llvm.flow import divmod_of
from cgraph.kernels.llvm.gpu_build import GpuBuilder, block
from cgraph.kernels.llvm.values import Ptr, Val


@block(THREADS)
def band(k: GpuBuilder, dtype: str, depth: int, mask: str, rule: Forms) -> None:
    own = Query(k, dtype, depth, mask, rule)
    a, first, stop = own.a, *own.keys_seen(own.batch, own.row, ROWS)
    own.fetch()
    most, total = k.slot(-inf, dtype), k.slot(0.0, dtype)
    results = [k.slot(0.0, dtype) for _ in range(depth // ACROSS)]
    with k.loop(first, stop, KEYS) as key:
        count = k.smaller(stop - key, KEYS)
        k.barrier()
        own.score(key, count)
        k.barrier()
        old = most.value
        with k.loop(0, count) as j:
            most.value = own.larger(most.value, own.weight(j).load())
        base = own.base_of(most.value)
        k.barrier()
        with k.loop(own.lane, count, ACROSS) as j:
            own.weight(j).store(own.exponential(own.weight(j).load(), base))
        k.barrier()
        factor, new = own.exponential(old, base), k.slot(0.0, dtype)
        with k.loop(0, count) as j:
            new.value = new.value + own.weight(j).load()
        total.value = k.fma(total.value, factor, new.value)
        values = own.first_of("v", own.batch, own.group) + key * a.v_row
        for i, result in enumerate(results):
            column = own.lane + i * ACROSS
            with k.if_(column < a.e):
                summed = k.slot(0.0, dtype)
                with k.loop(0, count) as j:
                    value = values.load(j * a.v_row + column * a.v_step)
                    summed.value = k.fma(value, own.weight(j).load(), summed.value)
                result.value = k.fma(result.value, factor, summed.value)
    with k.if_(own.is_there):
        out = own.first_of("o", own.batch, own.head) + own.query * a.o_row
        for i, result in enumerate(results):
            column = own.lane + i * ACROSS
            with k.if_(column < a.e):
                out.store(result.value * own.share(total.value), column * a.o_step)


class Query(Unit):
    """A thread's position in its block and its query.

    Fields
        batch, group, row: the block's heads of keys, and its first query among those that share it
        head, query: those of this thread; those of the last query if `is_there` is False
        lane: position of this thread among those of its query
    """

    def __init__(self, k: GpuBuilder, dtype: str, depth: int, mask: str, rule: Forms) -> None:
        super().__init__(k, dtype, mask, rule)
        a, thread = self.a, k.thread()
        self.batch, self.group, number = k.block_digits(a.groups, a.bands)
        self.row, self.line, self.lane = number * ROWS, thread // ACROSS, thread % ACROSS
        at = self.row + self.line
        self.is_there = at < a.queries
        head, self.query = divmod_of(k.smaller(at, a.queries - 1), a.m)
        self.head = self.group * self.heads_of_group + head
        self.numbers = k.shared(dtype, ROWS * depth) + self.line * depth
        self.weights = k.shared(dtype, ROWS * KEYS) + self.line * KEYS

    def weight(self, key: Val) -> Ptr:
        """Return the address of a key's weight for this query."""
        return self.weights + key

    def fetch(self) -> None:
        """Load the scaled query into shared memory."""
        k, a = self.k, self.a
        x, scale = self.first_of("q", self.batch, self.head) + self.query * a.q_row, k.cast(a.scale, self.dtype)
        with k.loop(self.lane, a.d, ACROSS) as i:
            self.numbers.store(x.load(i * a.q_step) * scale, i)

    def score(self, key: Val, count: Val) -> None:
        """Store the capped and masked products of the query and the block's keys."""
        k, a = self.k, self.a
        keys = self.first_of("k", self.batch, self.group) + key * a.k_row
        with k.loop(self.lane, count, ACROSS) as j:
            total = k.slot(0.0, self.dtype)
            with k.loop(0, a.d) as i:
                total.value = k.fma(keys.load(j * a.k_row + i * a.k_step), self.numbers.load(i), total.value)
            self.weight(j).store(self.masked(total.value, key + j))

    def masked(self, score: Val, key: Val) -> Val:
        """Return the score, or minus infinity where the key is masked."""
        k, a = self.k, self.a
        hidden = k.const(-inf, self.dtype)
        if self.capped:
            score = self.between(score)
        if self.causal:
            position = self.position_of_first(self.batch) + self.query
            score = k.select((key <= position) & (key > position - a.window), score, hidden)
        if self.mask:
            mask = (self.first_of("s", self.batch, self.head) + self.query * a.s_row).load(key * a.s_step)
            score = k.select(mask, score, hidden) if self.mask == "bool" else score + mask
        return score
