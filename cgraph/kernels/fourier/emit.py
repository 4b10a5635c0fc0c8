"""Fourier transforms by factors of their length, several lines at a time in the lanes of vectors.

A task copies some lines to its scratch, passes over them once for each factor, from one buffer to another (Stockham's
order, which needs no sorting), and writes the results. Every lane has the same operations, without fused products, so
the bits of a line do not depend on its neighbours, the lanes or the threads.
Source: C. Van Loan, Computational Frameworks for the Fast Fourier Transform, 1992, chapter 1.
"""

from collections.abc import Sequence
from math import cos, pi, sin, sqrt
from types import SimpleNamespace

from cgraph.kernels.llvm.build import Builder
from cgraph.kernels.llvm.values import MutableValue, Ptr, Val
from cgraph.kernels.llvm.vcomplex import shuffle_lanes
from cgraph.kernels.walk.emit import each_run
from cgraph.record import Record

Number = tuple[Val, Val]  # real and imaginary part, in each lane of a different line


def lines(k: Builder, dtype: str, lanes: int, reads: str, writes: str, by_chirp: bool) -> None:
    """Transform lines. Task: some of them."""
    a = k.args()
    with k.task_loop() as task:
        low = task * a.each
        high = k.smaller(low + a.each, a.lines)
        scratch = a.scratch + task * a.room
        buffers = Buffers.of(k, dtype, lanes, scratch, scratch + a.room // 2)
        run = each_run(k, a.axes, a.rank, 2, low, high)
        with run as (_, count, offsets, steps), k.loop(0, count, max(lanes, 1)) as i:
            places = [k.smaller(i + lane, count - 1) for lane in range(max(lanes, 1))]
            out, x = (
                [base + offset + place * step for place in places]
                for base, offset, step in zip((a.out, a.x), offsets, steps)
            )
            LineGroup(k, a, dtype, lanes, buffers, out, x).transform(reads, writes, by_chirp)


class Buffers(Record):
    """Two arrays of numbers: passes read the one and write the other. Their addresses are variables.

    Fields
        dtype: of parts
        lanes: of each part
    """

    k: Builder
    dtype: str
    lanes: int
    full: MutableValue
    free: MutableValue

    @classmethod
    def of(cls, k: Builder, dtype: str, lanes: int, first: Val, second: Val) -> "Buffers":
        return cls(k, dtype, lanes, k.slot(first), k.slot(second))

    def full_at(self, i: Val | int) -> Ptr:
        """Return the address of number i of the full buffer."""
        return self.number(self.k.pointer(self.full.value, self.dtype), i)

    def free_at(self, i: Val | int) -> Ptr:
        """Return the address of number i of the free buffer."""
        return self.number(self.k.pointer(self.free.value, self.dtype), i)

    def number(self, at: Ptr, i: Val | int) -> Ptr:
        """Return the address i numbers further."""
        return at + i * (2 * max(self.lanes, 1))

    def load(self, at: Ptr, i: Val | int = 0) -> Number:
        """Return the number i numbers after an address."""
        at = self.number(at, i)
        return at.load(0, self.lanes), at.load(max(self.lanes, 1), self.lanes)

    def store(self, at: Ptr, z: Number, i: Val | int = 0) -> None:
        """Set the number i numbers after an address."""
        at = self.number(at, i)
        at.store(z[0])
        at.store(z[1], max(self.lanes, 1))

    def swap(self) -> None:
        """Make the free buffer the full one."""
        self.full.value, self.free.value = self.free.value, self.full.value


class LineGroup(Record):
    """Some lines that are transformed together, one in each lane.

    Fields
        args: of the kernel
        dtype: of parts
        out, x: address of each lane's line in the output and in x; the last ones may be equal
    """

    k: Builder
    args: SimpleNamespace
    dtype: str
    lanes: int
    buffers: Buffers
    out: Sequence[Val]
    x: Sequence[Val]

    def transform(self, reads: str, writes: str, by_chirp: bool) -> None:
        """Emit the whole transform."""
        k, a = self.k, self.args
        inverse = a.inverse != 0
        with k.loop(0, a.n) as j:
            z = exchange(k, inverse, self.read(reads, j))
            self.buffers.store(self.buffers.full_at(j), times(z, self.table(a.chirp, j)) if by_chirp else z)
        if by_chirp:
            with k.loop(a.n, a.size) as j:
                zero = k.val(0.0, self.dtype, self.lanes)
                self.buffers.store(self.buffers.full_at(j), (zero, zero))
            self.passes()
            with k.loop(0, a.size) as j:  # a transform of exchanged parts is the inverse one
                at = self.buffers.full_at(j)
                re, im = times(self.buffers.load(at), self.table(a.spectrum, j))
                self.buffers.store(at, (im, re))
        self.passes()
        scale = k.cast(a.scale, self.dtype)
        with k.loop(0, a.count) as j:
            z = self.unpack(by_chirp, j) if writes == "packed" else self.result(by_chirp, j)
            re, im = exchange(k, inverse, z)
            if writes in ("half", "packed"):
                im = self.real_ends(j, im, a.n * 2 if writes == "packed" else a.n)
            self.write(writes, j, (re * scale, im * scale))

    def table(self, address: Val, j: Val) -> Number:
        """Return a number of a table, in every lane."""
        at = self.k.pointer(address, self.dtype) + j * 2
        return self.broadcast(at.load(0)), self.broadcast(at.load(1))

    def broadcast(self, x: Val) -> Val:
        return self.k.splat(x, self.lanes) if self.lanes else x

    # -- reading and writing --------------------------------------------------------------------------------------
    def read(self, what: str, j: Val) -> Number:
        """Return point j of each line's transform, as `what` says how x stores them."""
        if what == "pairs":
            return self.gather("real", j * 2)[0], self.gather("real", j * 2 + 1)[0]
        if what == "half":
            return self.read_half(j)
        return self.pack(j) if what == "packed" else self.gather(what, j)

    def read_half(self, j: Val) -> Number:
        """Return number j of spectra whose second half is the conjugate of the first."""
        k, n = self.k, self.args.n
        re, im = self.gather("complex", k.smaller(j, n - j))
        im = self.real_ends(j, im, n)
        return re, k.select(j * 2 > n, -im, im)

    def real_ends(self, j: Val, im: Val, n: Val) -> Val:
        """Return the imaginary part of number j in the spectrum of n real numbers: 0 at the first and the middle one.

        Also where the computed one is NaN, as in NumPy.
        """
        return self.k.select((j == 0) | (j * 2 == n), self.k.val(0.0, self.dtype, self.lanes), im)

    def pack(self, j: Val) -> Number:
        """Return number j of the spectrum of pairs: of 2 n real numbers, the even ones are real parts, the odd ones
        imaginary.
        """
        n = self.args.n
        (re, im), (other_re, other_im) = self.gather("complex", j), self.gather("complex", n - j)
        im, other_im = self.real_ends(j, im, n * 2), self.real_ends(n - j, other_im, n * 2)
        even, odd = halves((re, im), (other_re, -other_im))
        re, im = self.times_root((odd[0], -odd[1]), self.args.turns, j)  # the conjugate of odd times that of the root
        return plus(even, (im, re))

    def result(self, by_chirp: bool, j: Val) -> Number:
        """Return number j of the transform, as it is after the last pass."""
        z = self.buffers.load(self.buffers.full_at(j))
        return times((z[1], z[0]), self.table(self.args.chirp, j)) if by_chirp else z

    def unpack(self, by_chirp: bool, j: Val) -> Number:
        """Return number j of the first half of the spectrum of 2 n real numbers, from the spectrum of pairs."""
        k, n = self.k, self.args.n
        re, im = self.result(by_chirp, k.select(j == 0, j, n - j))
        even, odd = halves(self.result(by_chirp, k.select(j == n, j - n, j)), (re, -im))
        return plus(even, self.times_root(rotate(odd), self.args.turns, j))

    def gather(self, what: str, j: Val) -> Number:
        """Return number j as it is stored, complex or real."""
        k, offset = self.k, j * self.args.x_n
        lines = [k.pointer(address + offset, self.dtype) for address in self.x]
        if what == "real":
            re = [x.load(0) for x in lines]
            return self.lanes_of(re), k.val(0.0, self.dtype, self.lanes)
        if not self.lanes:
            return lines[0].load(0), lines[0].load(1)
        both = [x.load(0, 2) for x in lines]
        while len(both) > 1:
            both = [k.join(x, y) for x, y in zip(both[::2], both[1::2])]
        return even_and_odd(k, both[0])

    def lanes_of(self, xs: Sequence[Val]) -> Val:
        """Return a vector of one number for each lane."""
        if not self.lanes:
            return xs[0]
        vector = self.k.const(0, self.dtype, self.lanes)
        for lane, x in enumerate(xs):
            vector = self.k.with_lane(vector, lane, x)
        return vector

    def write(self, what: str, j: Val, z: Number) -> None:
        """Write number j of each line, as `what` says how the output stores them."""
        if what == "pairs":
            self.write("real", j * 2, (z[0], z[0]))
            self.write("real", j * 2 + 1, (z[1], z[1]))
            return
        k, offset = self.k, j * self.args.out_n
        lines = [k.pointer(address + offset, self.dtype) for address in self.out]
        if not self.lanes:
            for i, part in enumerate(z[:1] if what == "real" else z):
                lines[0].store(part, i)
            return
        if what == "real":
            for lane, at in enumerate(lines):
                at.store(k.lane(z[0], lane))
            return
        both = alternating(k, *z)
        for lane, at in enumerate(lines):
            at.store(k.slice(both, 2 * lane, 2))

    # -- passes ---------------------------------------------------------------------------------------------------
    def passes(self) -> None:
        """Emit one pass for each factor; the result is in the full buffer."""
        k, a = self.k, self.args
        stride, rest = k.slot(1, "i8"), k.slot(a.size)
        with k.loop(0, a.stages) as stage:
            radix = a.radices.load(stage)
            count = rest.value // radix
            for special, butterfly in BUTTERFLIES.items():
                with k.if_(radix == special):
                    self.special_pass(special, butterfly, stride.value, count)
            with k.if_(radix > max(BUTTERFLIES)):
                self.general_pass(radix, stride.value, count)
            self.buffers.swap()
            stride.value, rest.value = stride.value * radix, count

    def special_pass(self, radix: int, butterfly, stride: Val, count: Val) -> None:
        """Emit the pass of a factor with separate code: the results at `p` = 0 are not multiplied by 1."""
        self.butterflies(radix, butterfly, stride, count, self.k.const(0, "i8"), [])
        with self.k.loop(1, count) as p:
            twiddles = [self.table(self.args.roots, p * stride * i) for i in range(1, radix)]
            self.butterflies(radix, butterfly, stride, count, p, twiddles)

    def butterflies(self, radix: int, butterfly, stride: Val, count: Val, p: Val, twiddles: Sequence[Number]) -> None:
        """Emit the transforms of `radix` numbers at one position, their results times the twiddles."""
        sources = [self.buffers.full_at(stride * (p + count * i)) for i in range(radix)]
        targets = [self.buffers.free_at(stride * (p * radix + i)) for i in range(radix)]
        with self.k.loop(0, stride) as q:
            first, *others = butterfly(*(self.buffers.load(x, q) for x in sources))
            if twiddles:
                others = list(map(times, others, twiddles))
            for at, x in zip(targets, [first, *others]):
                self.buffers.store(at, x, q)

    def general_pass(self, radix: Val, stride: Val, count: Val) -> None:
        """Emit the pass of any factor: all sums, one after the other."""
        k, a = self.k, self.args
        zero = k.val(0.0, self.dtype, self.lanes)
        apart = a.size // radix
        with k.loop(0, count) as p, k.loop(0, stride) as q, k.loop(0, radix) as i:
            re, im, turn = k.slot(zero), k.slot(zero), k.slot(0, "i8")
            with k.loop(0, radix) as j:
                x = self.buffers.load(self.buffers.full_at(q + stride * (p + count * j)))
                x = self.times_root(x, a.roots, turn.value * apart)
                re.value, im.value = re.value + x[0], im.value + x[1]
                further = turn.value + i  # i * (j + 1), modulo the radix
                turn.value = k.select(further < radix, further, further - radix)
            z = self.times_root((re.value, im.value), a.roots, p * stride * i)
            self.buffers.store(self.buffers.free_at(q + stride * (p * radix + i)), z)

    def times_root(self, x: Number, roots: Val, i: Val) -> Number:
        """Return a number times a root of a table; for the first root the number itself, also if it is not finite."""
        k, product = self.k, times(x, self.table(roots, i))
        return k.select(i == 0, x[0], product[0]), k.select(i == 0, x[1], product[1])


def exchange(k: Builder, condition: Val, z: Number) -> Number:
    """Exchange real and imaginary part if `condition` holds: on both sides of a transform, this makes the inverse."""
    return k.select(condition, z[1], z[0]), k.select(condition, z[0], z[1])


def even_and_odd(k: Builder, x: Val) -> Number:
    """Return every second lane, from the first and from the second one on."""
    return shuffle_lanes(k, x, x, range(0, x.lanes, 2)), shuffle_lanes(k, x, x, range(1, x.lanes, 2))


def alternating(k: Builder, x: Val, y: Val) -> Val:
    """Return the lanes of two vectors in turns."""
    return shuffle_lanes(k, x, y, [i for lane in range(x.lanes) for i in (lane, lane + x.lanes)])


def times(x: Number, y: Number) -> Number:
    return x[0] * y[0] - x[1] * y[1], x[0] * y[1] + x[1] * y[0]


def plus(x: Number, y: Number) -> Number:
    return x[0] + y[0], x[1] + y[1]


def minus(x: Number, y: Number) -> Number:
    return x[0] - y[0], x[1] - y[1]


def multiply(x: Number, factor: float) -> Number:
    return x[0] * factor, x[1] * factor


def halves(x: Number, y: Number) -> tuple[Number, Number]:
    """Return half of the sum and of the difference."""
    return multiply(plus(x, y), 0.5), multiply(minus(x, y), 0.5)


def rotate(x: Number) -> Number:
    """Return -i x."""
    return x[1], -x[0]


def of_two(x: Number, y: Number) -> tuple[Number, ...]:
    return plus(x, y), minus(x, y)


def of_three(x: Number, y: Number, z: Number) -> tuple[Number, ...]:
    both = plus(y, z)
    middle, side = minus(x, multiply(both, 0.5)), rotate(multiply(minus(y, z), sqrt(0.75)))
    return plus(x, both), plus(middle, side), minus(middle, side)


def of_four(w: Number, x: Number, y: Number, z: Number) -> tuple[Number, ...]:
    even, odd, even_apart, odd_apart = plus(w, y), plus(x, z), minus(w, y), rotate(minus(x, z))
    return plus(even, odd), plus(even_apart, odd_apart), minus(even, odd), minus(even_apart, odd_apart)


def of_five(v: Number, w: Number, x: Number, y: Number, z: Number) -> tuple[Number, ...]:
    outer, inner, outer_apart, inner_apart = plus(w, z), plus(x, y), minus(w, z), minus(x, y)
    (c1, c2), (s1, s2) = ([f(2 * pi * i / 5) for i in (1, 2)] for f in (cos, sin))
    near = plus(v, plus(multiply(outer, c1), multiply(inner, c2)))
    far = plus(v, plus(multiply(outer, c2), multiply(inner, c1)))
    near_side = rotate(plus(multiply(outer_apart, s1), multiply(inner_apart, s2)))
    far_side = rotate(minus(multiply(outer_apart, s2), multiply(inner_apart, s1)))
    first = plus(v, plus(outer, inner))
    return first, plus(near, near_side), plus(far, far_side), minus(far, far_side), minus(near, near_side)


BUTTERFLIES = {2: of_two, 3: of_three, 4: of_four, 5: of_five}
"""Transforms of few points, by their number."""
