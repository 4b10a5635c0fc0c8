"""State of a running reduction: how a value enters it and how two states combine.

Sums of floats have two levels: a short chain of plain additions, which is added every `CHAIN` additions to a sum of two
floats that includes rounding errors (Knuth's exact sum). The error is that of the chain, about `CHAIN` / 2 units of
rounding at worst, whatever the length; NumPy's pairwise sum has chains of 16 and a tree above them.
The index of an extreme value starts at 0 and moves only when a value is better, so ties keep the first.
"""

from math import inf

from cgraph.kernels.llvm.build import Builder
from cgraph.kernels.llvm.values import MutableValue, Val, nbytes_of
from cgraph.kernels.llvm.vcomplex import join_parts, parts
from cgraph.kernels.llvm.vfloat import two_sum
from cgraph.kernels.llvm.vmath import largest, smallest
from cgraph.record import Record

State = list[Val]


class Accumulator(Record):
    """One kind of reduction of values of one dtype.

    Fields
        kind: ``sum prod min max any all argmin argmax``
        dtype: of the values
        indexed: values come with their own index, in any order (argmin and argmax of partial results)
        short: at most `CHAIN` values enter a lane, so a sum does not keep its rounding errors
    """

    k: Builder
    kind: str
    dtype: str
    indexed: bool = False
    short: bool = False

    @property
    def finds_index(self) -> bool:
        return self.kind.startswith("arg")

    @property
    def keeps_errors(self) -> bool:
        return self.kind == "sum" and self.dtype[0] in "fc" and not self.short

    @property
    def dtypes(self) -> list[str]:
        """Dtypes of a state's parts."""
        return [self.dtype, "i8"] if self.finds_index else [self.dtype]

    @property
    def total_dtypes(self) -> list[str]:
        return [self.dtype, self.dtype] if self.keeps_errors else self.dtypes

    def start(self, lanes: int) -> State:
        """The state before any value."""
        return [self.k.const(x, d, lanes) for x, d in zip((self.identity(), 0), self.dtypes)]

    def total_start(self, lanes: int) -> State:
        return [self.k.const(x, d, lanes) for x, d in zip((self.identity(), 0), self.total_dtypes)]

    def identity(self) -> float | int:
        """Return the value that changes nothing."""
        return identity_of(self.kind, self.dtype)

    def add(self, state: State, value: Val, index: Val | None) -> State:
        """Return the state with one more value, and its index for argmin and argmax."""
        if not self.finds_index:
            return [self.combine(state[0], value)]
        assert index is not None
        if self.indexed:
            return self.join(state, [value, index])
        best, place = state
        better = self.beats(value, best)
        return [self.k.select(better, value, best), self.k.select(better, index, place)]

    def combine(self, x: Val, y: Val) -> Val:
        match self.kind:
            case "sum":
                return x + y
            case "prod":
                return x * y
            case "min":
                return smallest(self.k, x, y)
            case "max":
                return largest(self.k, x, y)
            case "any":
                return x | y
        return x & y

    def beats(self, x: Val, y: Val) -> Val:
        """Return True where `x` is strictly better than `y`. A NaN is better than any number."""
        wins = x > y if self.kind == "argmax" else x < y
        if not x.is_float:
            return wins
        return (wins | self.k.is_nan(x)) & ~self.k.is_nan(y)

    def flush(self, total: State, state: State) -> State:
        """Return the total with a state added."""
        if not self.keeps_errors:
            return self.join(total, state)
        high, error = two_sum(total[0], state[0])
        return [high, total[1] + error]

    def join(self, x: State, y: State) -> State:
        """Return the combination of two totals."""
        if self.keeps_errors:
            high, error = two_sum(x[0], y[0])
            return [high, (x[1] + y[1]) + error]
        if not self.finds_index:
            return [self.combine(x[0], y[0])]
        equal = ~self.beats(x[0], y[0]) & ~self.beats(y[0], x[0])
        second = self.beats(y[0], x[0]) | (equal & (y[1] < x[1]))
        return [self.k.select(second, b, a) for a, b in zip(x, y)]

    def finish(self, total: State) -> State:
        """Return the value of a total, and its index for argmin and argmax."""
        if not self.keeps_errors:
            return total
        high, low = total
        if self.dtype[0] == "c":
            return [join_parts(self.k, self.rounded(parts(self.k, high), parts(self.k, low)), high.lanes)]
        return [self.rounded(high, low)]

    def rounded(self, high: Val, low: Val) -> Val:
        """Return the sum of both; an infinity has no rounding error."""
        return self.k.select(self.k.is_nan(low), high, high + low)

    def join_lanes(self, total: State) -> State:
        """Combine the lanes of a total pairwise, upper half with lower half, down to one."""
        while total[0].lanes > 1:
            half = total[0].lanes // 2
            low = [self.k.slice(x, 0, half) for x in total]
            high = [self.k.slice(x, half, half) for x in total]
            total = self.join(low, high)
        return [self.k.lane(x, 0) for x in total] if total[0].lanes else total


def identity_of(kind: str, dtype: str) -> float | int:
    """Return the value that a reduction starts from."""
    if kind in ("sum", "any"):
        return 0
    if kind in ("prod", "all"):
        return 1
    smallest_wins = kind in ("min", "argmin")
    if dtype[0] == "f":
        return inf if smallest_wins else -inf
    if dtype == "b1":
        return int(smallest_wins)
    bits = 8 * nbytes_of(dtype)
    low, high = (0, 2**bits - 1) if dtype[0] == "u" else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)
    return high if smallest_wins else low


def put(slots: list[MutableValue], state: State) -> None:
    """Write a state into variables."""
    for slot, x in zip(slots, state):
        slot.value = x


def get(slots: list[MutableValue]) -> State:
    """Read a state from variables."""
    return [slot.value for slot in slots]
