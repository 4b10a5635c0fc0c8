"""Attention of few queries, such as the single one of a decoder step, whose time is that of reading keys and values
once.

Vectors hold several keys: squares of them are transposed in registers, and a query's scores are sums over its numbers
in order. For values, vectors hold several columns. All sums have the order of those of bands, so a query has the same
bits by both kernels.

Keys are read across their rows, which the processor's prefetcher does not predict. So keys and values are prefetched
some rows ahead, a few lines between any two sums: a burst of prefetches would delay both itself and the sums.
"""

from math import inf

from cgraph.kernels.attention.emit import Forms, Unit, load_each, vector_of
from cgraph.kernels.attention.signature import KEYS
from cgraph.kernels.kernel import LINE
from cgraph.kernels.llvm.build import Builder
from cgraph.kernels.llvm.emitter import final
from cgraph.kernels.llvm.flow import divmod_of, fold, prefetch, shuffle, transpose
from cgraph.kernels.llvm.values import Ptr, Val, nbytes_of

VECTORS = 4  # columns of a value at a time
AHEAD = 8 << 10  # bytes of keys, and of values, between the read position and its prefetches


@final
def queries(k: Builder, dtype: str, count: int, mask: str, rule: Forms) -> None:
    """Task: some units one after the other, each the `count` queries that share a head of keys."""
    unit = Few(k, dtype, count, mask, rule)
    a = unit.a
    with k.task_loop() as task:
        unit.place(a.scratch + task * a.scratch_size)
        with k.loop(task * a.each, k.smaller((task + 1) * a.each, a.units)) as number:
            unit.emit(*divmod_of(number, a.groups))


class Few(Unit):
    """Emits the code of one unit; its scratch holds ``[count, d]``, ``[count, e]``, ``[count, span]`` and state."""

    def __init__(self, k: Builder, dtype: str, count: int, mask: str, rule: Forms) -> None:
        super().__init__(k, dtype, mask, rule)
        self.rows, self.span = range(count), -(-KEYS // self.lanes) * self.lanes
        self.keys_ahead, self.values_ahead = self.rows_ahead(self.a.d), self.rows_ahead(self.a.e)

    def place(self, scratch: Ptr) -> None:
        """Compute the addresses of all parts of a task's scratch."""
        count = len(self.rows)
        self.weights, rest = scratch, scratch + self.span * count
        self.most, self.total, self.factor, rest = (rest + i * count for i in range(4))
        self.query, self.result = rest, rest + self.a.d * count

    def emit(self, batch: Val, group: Val) -> None:
        k, a = self.k, self.a
        first, stop = self.keys_seen(batch, k.const(0, "i8"), len(self.rows))
        self.start(batch, group)
        keys, values = self.first_of("k", batch, group), self.first_of("v", batch, group)
        with k.loop(first, stop, KEYS) as key:
            count = k.smaller(stop - key, KEYS)
            with k.loop(0, count, self.lanes) as i:
                self.score(batch, group, keys, key, i, count)
            for row in self.rows:
                self.weigh(row, count)
            self.add(values + key * a.v_row, count)
        self.write(batch, group)

    def place_of(self, letter: str, batch: Val, group: Val, row: int) -> Ptr:
        """The row of a query in the queries, the result or the mask."""
        head, query = divmod_of(self.k.const(row, "i8"), self.a.m)
        step = getattr(self.a, f"{letter}_row")
        return self.first_of(letter, batch, group * self.heads_of_group + head) + query * step

    def start(self, batch: Val, group: Val) -> None:
        """Store the scaled queries and clear the sums."""
        k, a = self.k, self.a
        scale = k.cast(a.scale, self.dtype)
        for row in self.rows:
            x = self.place_of("q", batch, group, row)
            with k.loop(0, a.d) as i:
                self.query.store(x.load(i * a.q_step) * scale, a.d * row + i)
            with k.loop(0, a.e) as i:
                self.result.store(0.0, a.e * row + i)
            self.most.store(-inf, row)
            self.total.store(0.0, row)

    def score(self, batch: Val, group: Val, keys: Ptr, key: Val, i: Val, count: Val) -> None:
        """Store the scores of a vector of keys; minus infinity for keys that are masked or beyond the block."""
        k, a = self.k, self.a
        early = keys + (key + i + self.keys_ahead) * a.k_row
        starts = [keys + (key + k.smaller(i + lane, count - 1)) * a.k_row for lane in range(self.lanes)]
        sums = [k.const(0, self.dtype, self.lanes) for _ in self.rows]
        whole = a.d - a.d % self.lanes
        with fold(k, 0, whole, sums, self.lanes) as s:
            totals = s.values
            for j, column in enumerate(transpose(k, [(start + s.i).load(lanes=self.lanes) for start in starts])):
                self.prefetch_key(early + s.i, s.i, j)
                totals = self.multiplied(totals, column, s.i + j)
            s.next = totals
        with fold(k, whole, a.d, s.values) as t:
            t.next = self.multiplied(t.values, vector_of(k, load_each(starts, t.i)), t.i)
        number = k.iota("i4", self.lanes) + k.splat(k.cast(key + i, "i4"), self.lanes)
        for row, score in zip(self.rows, t.values):
            score = self.between(score) if self.capped else score
            score = self.hidden(batch, group, row, number, key + i, score, key + count)
            self.weights.store(score, i + self.span * row)

    def rows_ahead(self, columns: Val) -> Val:
        """Return the number of rows between the row that is read and the row that is prefetched."""
        elements = self.k.const(AHEAD // nbytes_of(self.dtype), "i8")
        return self.k.larger(divmod_of(elements, self.k.larger(columns, 1))[0], self.lanes)

    def prefetch_key(self, column: Ptr, i: Val, lane: int) -> None:
        """Prefetch a line of a key; vectors that share a line prefetch it in turn."""
        sharing = LINE // (self.lanes * nbytes_of(self.dtype))
        if lane % sharing == 0:
            turn = i // self.lanes % sharing
            prefetch(self.k, column + (turn + lane) * self.a.k_row)

    def multiplied(self, sums: list[Val], column: Val, i: Val) -> list[Val]:
        """Return the sums plus one number of each key times that of each query."""
        spread = [self.k.splat(self.query.load(self.a.d * row + i), self.lanes) for row in self.rows]
        return [self.k.fma(column, x, y) for x, y in zip(spread, sums)]

    def hidden(self, batch: Val, group: Val, row: int, number: Val, key: Val, score: Val, stop: Val) -> Val:
        """Return a query's scores with the mask and the mask by position applied."""
        k, a = self.k, self.a
        low = k.const(-inf, self.dtype, self.lanes)
        if self.causal:
            own = self.position_of_first(batch) + divmod_of(k.const(row, "i8"), a.m)[1]
            far, near = (k.splat(k.cast(x, "i4"), self.lanes) for x in (own - a.window, own))
            score = k.select((number <= near) & (number > far), score, low)
        if self.mask:
            start = self.place_of("s", batch, group, row)
            one = vector_of(k, [start.load(k.smaller(key + i, stop - 1) * a.s_step) for i in range(self.lanes)])
            score = k.select(one, score, low) if self.mask == "bool" else score + one
        return k.select(number < k.splat(k.cast(stop, "i4"), self.lanes), score, low)

    def weigh(self, row: int, count: Val) -> None:
        """Replace a query's scores by exponentials; update its maximum, its sum and the factor of earlier sums."""
        k, scores = self.k, self.weights + self.span * row
        with fold(k, 0, count, [k.const(-inf, self.dtype, self.lanes)], self.lanes) as s:
            s.next = [self.larger(s.values[0], scores.load(s.i, self.lanes))]
        old = self.most.load(row)
        most = self.larger(old, self.largest(s.values[0]))
        base = self.base_of(most)
        factor = self.exponential(old, base)
        with k.loop(0, count, self.lanes) as i:
            scores.store(self.exponential(scores.load(i, self.lanes), base), i)
        with fold(k, 0, count, [k.const(0.0, self.dtype)]) as t:
            t.next = [t.values[0] + scores.load(t.i)]
        self.most.store(most, row)
        self.factor.store(factor, row)
        self.total.store(k.fma(self.total.load(row), factor, t.values[0]), row)

    def add(self, values: Ptr, count: Val) -> None:
        """Add the weighted sum of the block's values to the result."""
        a, lanes = self.a, self.lanes
        many = a.e - a.e % (VECTORS * lanes)
        whole = a.e - a.e % lanes
        for low, high, width, vectors in ((0, many, lanes, VECTORS), (many, whole, lanes, 1), (whole, a.e, 0, 1)):
            with self.k.loop(low, high, max(width, 1) * vectors) as column:
                self.add_columns(values + column, column, count, width, vectors)

    def add_columns(self, values: Ptr, column: Val, count: Val, lanes: int, vectors: int) -> None:
        """Add some vectors of columns, or a single column without lanes."""
        k, a = self.k, self.a
        with fold(k, 0, count, [k.const(0, self.dtype, lanes)] * (len(self.rows) * vectors)) as s:
            parts = [values.load(s.i * a.v_row + v * lanes, lanes) for v in range(vectors)]
            for v in range(vectors if lanes else 0):
                prefetch(k, values + ((s.i + self.values_ahead) * a.v_row + v * lanes))
            shares = [self.weights.load(s.i + self.span * row) for row in self.rows]
            spread = [k.splat(x, lanes) if lanes else x for x in shares]
            s.next = [
                k.fma(part, spread[row], s.values[row * vectors + v])
                for row in self.rows
                for v, part in enumerate(parts)
            ]
        for row in self.rows:
            factor = self.factor.load(row)
            for v in range(vectors):
                place = self.result + (a.e * row + column + v * lanes)
                place.store(k.fma(place.load(lanes=lanes), factor, s.values[row * vectors + v]))

    def write(self, batch: Val, group: Val) -> None:
        """Store the rows of the result."""
        k, a = self.k, self.a
        for row in self.rows:
            out, share = self.place_of("o", batch, group, row), self.share(self.total.load(row))
            with k.loop(0, a.e) as i:
                out.store(self.result.load(a.e * row + i) * share, i * a.o_step)

    def largest(self, x: Val) -> Val:
        """Return the largest lane."""
        k, lanes = self.k, x.lanes
        while lanes > 1:
            lanes //= 2
            x = self.larger(shuffle(k, x, x, range(lanes)), shuffle(k, x, x, range(lanes, 2 * lanes)))
        return k.lane(x, 0)
