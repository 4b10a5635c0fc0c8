"""Attention in bands of queries: only the scores of one band with one block of keys exist at a time.

Queries lie side by side in vectors, so a query's maximum and sum stay in one lane. Scores are a register tile of a few
keys by all queries of a band; results are a tile of a few columns of the values by these queries. Keys and values are
read in place, one number at a time. A running maximum and sum pass over the blocks of keys: sums made with an earlier
maximum are multiplied by the exponential of the difference. Lanes beyond the last query repeat it.

A query's result does not depend on the other queries of its band: blocks begin at multiples of `KEYS`, and masked keys
add zeros. Sums run over a block first, then over blocks, so rounding errors do not grow with the length.

Source: Milakov and Gimelshein 2018, arXiv:1805.02867; Dao et al. 2022, arXiv:2205.14135.
"""

from collections.abc import Callable
from math import inf

from cgraph.kernels.attention.signature import KEYS
from cgraph.kernels.llvm.build import Builder
from cgraph.kernels.llvm.emitter import final
from cgraph.kernels.llvm.flow import change_if, divmod_of, fold, transpose
from cgraph.kernels.llvm.multiply import multiply_add
from cgraph.kernels.llvm.values import Ptr, Val
from cgraph.kernels.llvm.vexp import exp_down
from cgraph.kernels.llvm.vhyperbolic import tanh
from cgraph.kernels.llvm.windows import larger

UNROLL = 4
LARGEST = {"f4": float.fromhex("0x1.fffffep+127"), "f8": float.fromhex("0x1.fffffffffffffp+1023")}
Forms = tuple[bool, bool, bool]  # later keys hidden, scores capped, safe


@final
def bands(k: Builder, dtype: str, rows: int, vectors: int, rest: int, mask: str, spread: bool, rule: Forms) -> None:
    """Emit the kernel. Task: a sequence of units, each a band of the queries that share a head of keys."""
    band = Band(k, dtype, rows, vectors, mask, spread, rule)
    a = band.a
    with k.task_loop() as task:
        scratch = a.scratch + task * a.scratch_size
        band.place(scratch)
        with k.loop(task * a.each, k.smaller((task + 1) * a.each, a.units)) as unit:
            others, number = divmod_of(unit, a.bands)
            batch, group = divmod_of(others, a.groups)
            row = number * band.width
            with k.if_(number < a.bands - bool(rest)):
                band.emit(batch, group, row)
            if rest:
                last = Band(k, dtype, rest, 1, mask, spread, rule)
                with k.if_(number == a.bands - 1):
                    last.place(scratch)
                    last.emit(batch, group, row)


class Unit:
    """Arguments and addresses shared by the emitters of attention.

    Fields
        block: keys of a block
    """

    block = KEYS

    def __init__(self, k: Builder, dtype: str, mask: str, rule: Forms) -> None:
        self.k, self.a, self.dtype, self.mask = k, k.args(), dtype, mask
        self.causal, self.capped, self.safe = rule
        self.lanes = k.target.lanes_of(dtype)
        self.heads_of_group = self.a.heads // self.a.groups

    def first_of(self, letter: str, batch: Val, head: Val) -> Ptr:
        """Return the first element of a head of ``q k v``, ``o`` for the result or ``s`` for the mask."""
        a = self.a
        masks = self.k.pointer(a.masks, "b1" if self.mask == "bool" else self.dtype)
        at = {"q": a.q, "k": a.k, "v": a.v, "o": a.out, "s": masks}[letter]
        return at + (batch * getattr(a, f"{letter}_batch") + head * getattr(a, f"{letter}_head"))

    def between(self, score: Val) -> Val:
        """Return scores squashed by tanh between the cap and its negative."""
        cap = self.k.val(self.k.cast(self.a.cap, self.dtype), self.dtype, score.lanes)
        return tanh(self.k, score / cap) * cap

    def larger(self, most: Val, score: Val) -> Val:
        """Return the maximum; where rows may be safe, it stays NaN from the first NaN on."""
        return larger(self.k, most, score) if self.safe else self.k.larger(most, score)

    def base_of(self, most: Val) -> Val:
        """Return what is subtracted from the scores of a row whose maximum is `most`.

        A safe row of a maximum that is not finite has infinity, so that all its weights are 0.
        """
        k = self.k
        if self.safe:
            return k.select((most > -inf) & (most < inf), most, k.const(inf, self.dtype, most.lanes))
        return k.select(most == -inf, k.const(0, self.dtype, most.lanes), most)  # for a query without unmasked keys

    def exponential(self, score: Val, base: Val) -> Val:
        """Return ``exp(score - base)``; 0 for an infinite base of a safe row, whatever the score."""
        score = self.k.smaller(score, LARGEST[self.dtype]) if self.safe else score
        return exp_down(self.k, score - base)

    def share(self, total: Val) -> Val:
        """Return the reciprocal of a sum of weights; 1 for a safe row without weights."""
        one = self.k.const(1, self.dtype, total.lanes)
        return one / (self.k.select(total == 0, one, total) if self.safe else total)

    def position_of_first(self, batch: Val) -> Val:
        """Return the position of a batch's first query among the keys."""
        k, a = self.k, self.a
        with change_if(k, a.start != 0, [k.const(0, "i8")]) as s:
            s.next = [k.pointer(a.start, "i8").load(batch * a.start_step)]
        return s.values[0]

    def keys_seen(self, batch: Val, row: Val, width: int) -> tuple[Val, Val]:
        """Return the range of keys that some of `width` queries attend to, from the begin of a block."""
        k, a = self.k, self.a
        if not self.causal:
            return k.const(0, "i8"), a.n
        head, query = divmod_of(row, a.m)
        other, end = divmod_of(k.smaller(row + width, a.queries) - 1, a.m)
        one = head == other
        before = self.position_of_first(batch)
        low = k.larger(before + k.select(one, query, 0) - a.window + 1, 0)
        high = before + k.select(one, end, a.m - 1) + 1
        return low - low % self.block, k.larger(k.smaller(high, a.n), 0)


class Band(Unit):
    """The emitter of one unit. Its scratch holds ``[d, width]``, ``[e, width]``, ``[keys, width]`` and rows."""

    def __init__(self, k: Builder, dtype: str, rows: int, vectors: int, mask: str, spread: bool, rule: Forms) -> None:
        super().__init__(k, dtype, mask, rule)
        self.rows, self.spread = rows, spread
        self.width = vectors * self.lanes
        self.columns = range(0, self.width, self.lanes)  # where each vector of queries begins

    def place(self, scratch: Ptr) -> None:
        """Set the addresses in a task's scratch."""
        self.queries, rest = scratch, scratch + self.a.d * self.width
        self.weights, rest = rest, rest + (self.block + self.rows) * self.width
        self.most, self.total, self.factor, positions, self.result = (rest + i * self.width for i in range(5))
        self.positions = positions.as_dtype("i4")

    def emit(self, batch: Val, group: Val, row: Val) -> None:
        """Emit the band that begins at `row`."""
        k = self.k
        first, stop = self.keys_seen(batch, row, self.width)
        self.start(batch, group, row)
        keys, values = self.sides(batch, group)
        with k.loop(first, stop, self.block) as key:
            count = k.smaller(stop - key, self.block)
            self.score(keys, key, count)
            if self.capped:
                self.cap(count)
            if self.causal:
                self.hide(key, count)
            if self.mask:
                self.apply_masks(self.first_of("s", batch, group * self.heads_of_group), row, key, count)
            self.weigh(count)
            self.add(values, key, count)
        self.write(batch, group, row)

    def sides(self, batch: Val, group: Val) -> tuple[Ptr, Ptr]:
        """Return the addresses of a head's keys and values."""
        return self.first_of("k", batch, group), self.first_of("v", batch, group)

    # -- queries --------------------------------------------------------------------------------------------------
    def places(self, row: Val) -> list[tuple[Val, Val]]:
        """Return head and query of each lane of a vector that begins at `row`: by counting, without divisions."""
        k, a = self.k, self.a
        last = a.queries - 1
        head, query = divmod_of(k.smaller(row, last), a.m)
        pairs = [(head, query)]
        for i in range(1, self.lanes):
            goes_on = row + i <= last
            wraps = query + 1 == a.m
            head, query = (
                k.select(goes_on & wraps, head + 1, head),
                k.select(goes_on, k.select(wraps, 0, query + 1), query),
            )
            pairs.append((head, query))
        return pairs

    def start(self, batch: Val, group: Val, row: Val) -> None:
        """Store the band's queries, scaled and transposed, and clear the sums."""
        k, a = self.k, self.a
        scale = k.splat(k.cast(a.scale, self.dtype), self.lanes)
        before = self.position_of_first(batch) if self.causal else None
        base = self.first_of("q", batch, group * self.heads_of_group)
        whole = k.select(a.q_step == 1, a.d - a.d % self.lanes, 0)
        with k.loop(0, self.width, self.lanes) as at:
            places = self.places(row + at)
            starts = [base + (head * a.q_head + query * a.q_row) for head, query in places]
            with k.if_else(self.side_by_side(places, a.q_row)) as (lines, rows):
                with lines, k.loop(0, a.d) as x:
                    self.queries.store(starts[0].load(x * a.q_step, self.lanes) * scale, x * self.width + at)
                with rows:
                    self.store_queries(starts, whole, scale, at)
            with k.loop(0, a.e + self.rows) as x:
                self.result.store(k.const(0, self.dtype, self.lanes), x * self.width + at)
            self.most.store(k.const(-inf, self.dtype, self.lanes), at)
            self.total.store(k.const(0, self.dtype, self.lanes), at)
            if before is not None:
                self.positions.store(vector_of(k, [k.cast(before + query, "i4") for _, query in places]), at)

    def side_by_side(self, places: list[tuple[Val, Val]], step: Val) -> Val:
        """Return whether the lanes of a vector are adjacent in memory, `step` elements being from query to query."""
        return (step == 1) & (places[0][1] + self.lanes <= self.a.m)

    def store_queries(self, starts: list[Ptr], whole: Val, scale: Val, at: Val) -> None:
        """Store a vector of queries, scaled: squares of the first `whole` numbers of each, then single numbers."""
        k, a = self.k, self.a
        with k.loop(0, whole, self.lanes) as x:
            square = transpose(k, [(q + x).load(lanes=self.lanes) * scale for q in starts])
            for i, line in enumerate(square):
                self.queries.store(line, (x + i) * self.width + at)
        with k.loop(whole, a.d) as x:
            self.queries.store(vector_of(k, load_each(starts, x * a.q_step)) * scale, x * self.width + at)

    # -- one block of keys ----------------------------------------------------------------------------------------
    def score(self, keys: Ptr, key: Val, count: Val) -> None:
        """Store the products of keys and queries. The last tile repeats the last key; its surplus is not read."""
        k, a, keys = self.k, self.a, keys + key * self.a.k_row
        with k.loop(0, count, self.rows) as i:
            starts = [keys + k.smaller(i + j, count - 1) * a.k_row for j in range(self.rows)]
            sums = self.summed(a.d, lambda x: load_each(starts, x * a.k_step), lambda x: self.vectors(self.queries, x))
            for j in range(self.rows):
                for v, at in enumerate(self.columns):
                    self.weights.store(sums[j * len(self.columns) + v], (i + j) * self.width + at)

    def cap(self, count: Val) -> None:
        """Squash the scores between the cap and its negative."""
        with self.k.loop(0, count) as i:
            for at, score in zip(self.columns, self.vectors(self.weights, i)):
                self.weights.store(self.between(score), i * self.width + at)

    def hide(self, key: Val, count: Val) -> None:
        """Apply minus infinity to the scores of later keys, and of those before the window."""
        k = self.k
        reach, hidden = k.splat(k.cast(self.a.window, "i4"), self.lanes), k.const(-inf, self.dtype, self.lanes)
        with k.loop(0, self.width, self.lanes) as at:
            position = self.positions.load(at, self.lanes)
            with k.loop(0, count) as i:
                place, there = self.weights + (i * self.width + at), k.splat(k.cast(key + i, "i4"), self.lanes)
                visible = (there <= position) & (there > position - reach)
                place.store(k.select(visible, place.load(lanes=self.lanes), hidden))

    def apply_masks(self, first: Ptr, row: Val, key: Val, count: Val) -> None:
        """Apply the mask, which is `first` for the first query: of several keys at a time where they are adjacent."""
        k, a = self.k, self.a
        with k.loop(0, self.width, self.lanes) as at:
            starts = [
                first + (head * a.s_head + query * a.s_row + key * a.s_step) for head, query in self.places(row + at)
            ]
            scores = self.weights + at
            whole = k.const(0, "i8") if self.spread else k.select(a.s_step == 1, count - count % self.lanes, 0)
            with k.loop(0, whole, self.lanes) as i:
                for j, line in enumerate(transpose(k, [self.mask_row(start + i) for start in starts])):
                    self.apply_mask(scores + (i + j) * self.width, line)
            with k.loop(whole, count) as i:
                step = i * a.s_step
                one = (
                    k.splat(starts[0].load(step), self.lanes) if self.spread else vector_of(k, load_each(starts, step))
                )
                self.apply_mask(scores + i * self.width, one)

    def mask_row(self, start: Ptr) -> Val:
        """Load the mask of one query for a vector of keys; of bools, integers."""
        if self.mask == "bool":
            return self.k.cast(start.as_dtype("u1").load(lanes=self.lanes), "i4")
        return start.load(lanes=self.lanes)

    def apply_mask(self, place: Ptr, line: Val) -> None:
        """Apply the mask of one key to the scores of a vector of queries."""
        k, score = self.k, place.load(lanes=self.lanes)
        if self.mask != "bool":
            place.store(score + line)
            return
        visible = line if line.dtype == "b1" else line != 0
        place.store(k.select(visible, score, k.const(-inf, self.dtype, self.lanes)))

    def weigh(self, count: Val) -> None:
        """Replace scores by exponentials; update the maximum, the sum and the factor of earlier sums."""
        k = self.k
        old = self.vectors(self.most, 0)
        with fold(k, 0, count, old) as s:
            s.next = [self.larger(x, y) for x, y in zip(s.values, self.vectors(self.weights, s.i))]
        zero = k.const(0, self.dtype, self.lanes)
        bases = [self.base_of(x) for x in s.values]
        factors = [self.exponential(x, base) for x, base in zip(old, bases)]
        with fold(k, 0, count, [zero] * len(bases)) as t:
            terms = [self.exponential(x, base) for x, base in zip(self.vectors(self.weights, t.i), bases)]
            for at, term in zip(self.columns, terms):
                self.weights.store(term, t.i * self.width + at)
            t.next = [y + term for y, term in zip(t.values, terms)]
        for at, most, factor, total in zip(self.columns, s.values, factors, t.values):
            self.most.store(most, at)
            self.factor.store(factor, at)
            self.total.store(k.fma(self.total.load(at, self.lanes), factor, total), at)

    def add(self, values: Ptr, key: Val, count: Val) -> None:
        """Add the weighted sum of the block's values to the result."""
        k, a, values = self.k, self.a, values + key * self.a.v_row
        with k.loop(0, a.e, self.rows) as column:
            starts = [values + k.smaller(column + i, a.e - 1) * a.v_step for i in range(self.rows)]
            sums = self.summed(count, lambda i: load_each(starts, i * a.v_row), lambda i: self.vectors(self.weights, i))
            for j in range(self.rows):
                for v, at in enumerate(self.columns):
                    place, factor = self.result + ((column + j) * self.width + at), self.factor.load(at, self.lanes)
                    place.store(k.fma(place.load(lanes=self.lanes), factor, sums[j * len(self.columns) + v]))

    def summed(self, count: Val, scalars: Callable[[Val], list[Val]], vectors: Callable[[Val], list[Val]]) -> list[Val]:
        """Return the tile of sums of scalars times vectors, in order."""
        k = self.k
        sums = [k.const(0, self.dtype, self.lanes)] * (self.rows * len(self.columns))
        whole = count - count % UNROLL
        for low, high, steps in ((0, whole, UNROLL), (whole, count, 1)):
            with fold(k, low, high, sums, steps) as s:
                totals = s.values
                for i in range(steps):
                    totals = multiply_add(k, totals, scalars(s.i + i), vectors(s.i + i))
                s.next = totals
            sums = s.values
        return sums

    def vectors(self, x: Ptr, row: Val | int) -> list[Val]:
        """Load a row of the scratch for all queries."""
        return [x.load(row * self.width + at, self.lanes) for at in self.columns]

    # -- the result -----------------------------------------------------------------------------------------------
    def write(self, batch: Val, group: Val, row: Val) -> None:
        """Store the band's rows of the result; lanes beyond the last query store its row again."""
        k, a = self.k, self.a
        base = self.first_of("o", batch, group * self.heads_of_group)
        whole = k.select(a.o_step == 1, a.e - a.e % self.lanes, 0)
        with k.loop(0, self.width, self.lanes) as at:
            places = self.places(row + at)
            starts = [base + (head * a.o_head + query * a.o_row) for head, query in places]
            share = self.share(self.total.load(at, self.lanes))
            with k.if_else(self.side_by_side(places, a.o_row)) as (lines, rows):
                with lines, k.loop(0, a.e) as x:
                    starts[0].store(self.result.load(x * self.width + at, self.lanes) * share, x * a.o_step)
                with rows:
                    self.write_rows(starts, whole, share, at)

    def write_rows(self, starts: list[Ptr], whole: Val, share: Val, at: Val) -> None:
        """Store a vector of queries' results: squares of the first `whole` numbers of each, then single numbers."""
        k, a = self.k, self.a
        with k.loop(0, whole, self.lanes) as x:
            lines = [self.result.load((x + i) * self.width + at, self.lanes) * share for i in range(self.lanes)]
            for start, line in zip(starts, transpose(k, lines)):
                start.store(line, x)
        with k.loop(whole, a.e) as x:
            line = self.result.load(x * self.width + at, self.lanes) * share
            for i, start in enumerate(starts):
                start.store(k.lane(line, i), x * a.o_step)


def load_each(starts: list[Ptr], offset: Val) -> list[Val]:
    """Load the element at one offset from each address."""
    return [start.load(offset) for start in starts]


def vector_of(k: Builder, xs: list[Val]) -> Val:
    """Return scalars as a vector."""
    vector = k.const(0, xs[0].dtype, len(xs))
    for i, x in enumerate(xs):
        vector = k.wrap(k.b.insert_element(vector.v, x.v, k.const(i, "i4").v), x.dtype, len(xs))
    return vector
