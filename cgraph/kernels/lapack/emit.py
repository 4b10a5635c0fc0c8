"""Calls of LAPACK for one matrix after another, with NumPy's choice of functions, copies and errors."""

from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace

from cgraph.kernels.code_image import LAPACK
from cgraph.kernels.control import NO_EIGENVALUES, NO_SINGULAR_VALUES, NOT_FINITE, NOT_POSITIVE, SINGULAR
from cgraph.kernels.lapack.calls import WIDE, lapack_name
from cgraph.kernels.llvm import ir
from cgraph.kernels.llvm.build import POINTER, VOID, Builder
from cgraph.kernels.llvm.values import Ptr, Val

BAND = 8  # rows that are transposed at a time


def solve(k: Builder, dtype: str, inverts: bool) -> None:
    """Solve by elimination with row exchanges. Task: a group of matrices."""
    a, wide = k.args(), WIDE[dtype]
    with each_matrix(k, a, left=wide, right=wide, pivots="i4") as (i, rooms):
        copy_transposed(k, rooms.left, a.a + i * a.n * a.n, a.n, a.n)
        if inverts:
            fill_identity(k, rooms.right, a.n)
        else:
            copy_transposed(k, rooms.right, k.pointer(a.b, dtype) + i * a.n * a.columns, a.n, a.columns)
        info = lapack(k, dtype, "gesv", a.n, a.columns, rooms.left, a.n, rooms.pivots, rooms.right, a.n)
        stop_if(k, a, info > 0, SINGULAR)
        copy_transposed(k, a.out + i * a.n * a.columns, rooms.right, a.columns, a.n)


def determinant(k: Builder, dtype: str, parted: bool) -> None:
    """Multiply the pivots of elimination: their signs, and the logarithms of their sizes. Task: a group of matrices."""
    a, wide = k.args(), WIDE[dtype]
    with each_matrix(k, a, left=wide, pivots="i4") as (i, rooms):
        copy_transposed(k, rooms.left, a.a + i * a.n * a.n, a.n, a.n)
        info = lapack(k, dtype, "getrf", a.n, a.n, rooms.left, a.n, rooms.pivots)
        real, imag, log = (k.slot(x, "f8") for x in (1.0, 0.0, 0.0))
        with k.loop(0, a.n) as j:
            with k.if_(k.cast(rooms.pivots.load(j), "i8") != j + 1):
                real.value, imag.value = -real.value, -imag.value
            x, y = parts(k, rooms.left, j * a.n + j)
            size = k.c_function("hypot", x, y) if wide == "c16" else k.intrinsic("fabs", x)
            log.value = log.value + k.c_function("log", size)
            if wide == "c16":
                x, y = x / size, y / size
                real.value, imag.value = real.value * x - imag.value * y, real.value * y + imag.value * x
            else:
                real.value = k.select(x < 0, -real.value, real.value)
        with k.if_(info > 0):
            real.value, imag.value, log.value = 0.0, 0.0, float("-inf")
        if parted:
            store_number(k, k.pointer(a.log, real_of(dtype)), i, log.value)
        else:
            size = k.c_function("exp", log.value)
            real.value, imag.value = real.value * size, imag.value * size
        store_number(k, a.out, i, real.value, imag.value)


def cholesky(k: Builder, dtype: str) -> None:
    """Compute the factor column by column. Task: a group of matrices."""
    a = k.args()
    with each_matrix(k, a, left=WIDE[dtype]) as (i, rooms):
        left, out = rooms.left, a.out + i * a.n * a.n
        copy_transposed(k, left, a.a + i * a.n * a.n, a.n, a.n)
        stop_if(k, a, lapack(k, dtype, "potrf", "L", a.n, left, a.n) > 0, NOT_POSITIVE)
        with k.loop(0, a.n) as row, k.loop(0, a.n) as column:
            copy_if(k, column <= row, out, row * a.n + column, left, column * a.n + row)


def qr(k: Builder, dtype: str) -> None:
    """Reflect the columns onto one another, then multiply the reflections. Task: a group of matrices."""
    a, wide = k.args(), WIDE[dtype]
    least = k.smaller(a.m, a.n)
    with each_matrix(k, a, left=wide, factors=wide, work=wide) as (i, rooms):
        left, r = rooms.left, a.r + i * a.k * a.n
        copy_transposed(k, left, a.a + i * a.m * a.n, a.m, a.n)
        lapack(k, dtype, "geqrf", a.m, a.n, left, a.m, rooms.factors, rooms.work, a.size)
        with k.loop(0, a.k) as row, k.loop(0, a.n) as column:
            copy_if(k, column >= row, r, row * a.n + column, left, column * a.m + row)
        lapack(k, dtype, "orgqr", a.m, a.k, least, left, a.m, rooms.factors, rooms.work, a.size)
        copy_transposed(k, a.q + i * a.m * a.k, left, a.k, a.m)


def eigh(k: Builder, dtype: str, upper: bool) -> None:
    """Compute eigenvalues and eigenvectors by divide and conquer. Task: a group of matrices."""
    a, wide = k.args(), WIDE[dtype]
    with each_matrix(k, a, left=wide, values="f8", work=wide, reals="f8", integers="i4") as (i, rooms):
        copy_transposed(k, rooms.left, a.a + i * a.n * a.n, a.n, a.n)
        reals = [rooms.reals, a.real_size] if wide == "c16" else []
        info = lapack(
            k, dtype, "syevd", "V", "U" if upper else "L", a.n, rooms.left, a.n, rooms.values,
            rooms.work, a.size, *reals, rooms.integers, a.integer_size,
        )  # fmt: skip
        stop_if(k, a, info != 0, NO_EIGENVALUES)
        copy_transposed(k, k.pointer(a.w, real_of(dtype)) + i * a.n, rooms.values, a.n, 1)
        copy_transposed(k, a.v + i * a.n * a.n, rooms.left, a.n, a.n)


def svd(k: Builder, dtype: str, full: bool) -> None:
    """Compute singular values and vectors by divide and conquer. Task: a group of matrices."""
    a, wide = k.args(), WIDE[dtype]
    least = k.smaller(a.m, a.n)
    kinds = {"left": wide, "values": "f8", "us": wide, "vs": wide, "work": wide, "reals": "f8", "integers": "i4"}
    with each_matrix(k, a, **kinds) as (i, rooms):
        left, reals = rooms.left, [rooms.reals] if wide == "c16" else []
        copy_transposed(k, left, a.a + i * a.m * a.n, a.m, a.n)
        with stop_unless_finite(k, a, left):
            info = lapack(
                k, dtype, "gesdd", "A" if full else "S", a.m, a.n, left, a.m, rooms.values, rooms.us, a.m,
                rooms.vs, a.rows, rooms.work, a.size, *reals, rooms.integers,
            )  # fmt: skip
            stop_if(k, a, info != 0, NO_SINGULAR_VALUES)
        copy_transposed(k, k.pointer(a.s, real_of(dtype)) + i * least, rooms.values, least, 1)
        copy_transposed(k, a.u + i * a.m * a.columns, rooms.us, a.columns, a.m)
        copy_transposed(k, a.v + i * a.rows * a.n, rooms.vs, a.n, a.rows)


def tall_svd(k: Builder, dtype: str) -> None:
    """Reflect the columns onto one another, and decompose the triangle that is left: LAPACK's way to the singular
    values and right vectors of such matrices. Task: a group of matrices.
    """
    a, wide = k.args(), WIDE[dtype]
    kinds = {"left": wide, "factors": wide, "triangle": wide, "us": wide, "values": "f8", "vs": wide, "work": wide}
    with each_matrix(k, a, **kinds, reals="f8", integers="i4") as (i, rooms):
        left, triangle, reals = rooms.left, rooms.triangle, [rooms.reals] if wide == "c16" else []
        copy_transposed(k, left, a.a + i * a.m * a.n, a.m, a.n)
        with stop_unless_finite(k, a, left):
            lapack(k, dtype, "geqrf", a.m, a.n, left, a.m, rooms.factors, rooms.work, a.size)
            with k.loop(0, a.n) as column, k.loop(0, a.n) as row:
                copy_if(k, column >= row, triangle, column * a.n + row, left, column * a.m + row)
            info = lapack(
                k, dtype, "gesdd", "S", a.n, a.n, triangle, a.n, rooms.values, rooms.us, a.n, rooms.vs, a.n,
                rooms.work, a.size, *reals, rooms.integers,
            )  # fmt: skip
            stop_if(k, a, info != 0, NO_SINGULAR_VALUES)
        copy_transposed(k, k.pointer(a.s, real_of(dtype)) + i * a.n, rooms.values, a.n, 1)
        copy_transposed(k, a.v + i * a.n * a.n, rooms.vs, a.n, a.n)


def singular_values(k: Builder, dtype: str) -> None:
    """Compute singular values without vectors. Task: a group of matrices."""
    a, wide = k.args(), WIDE[dtype]
    least = k.smaller(a.m, a.n)
    with each_matrix(k, a, left=wide, values="f8", work=wide, reals="f8", integers="i4") as (i, rooms):
        left, reals = rooms.left, [rooms.reals] if wide == "c16" else []
        copy_transposed(k, left, a.a + i * a.m * a.n, a.m, a.n)
        with stop_unless_finite(k, a, left):
            info = lapack(
                k, dtype, "gesdd", "N", a.m, a.n, left, a.m, rooms.values, left, a.m, left, a.n,
                rooms.work, a.size, *reals, rooms.integers,
            )  # fmt: skip
            stop_if(k, a, info != 0, NO_SINGULAR_VALUES)
        copy_transposed(k, k.pointer(a.s, real_of(dtype)) + i * least, rooms.values, least, 1)


@contextmanager
def stop_unless_finite(k: Builder, a: SimpleNamespace, left: Ptr) -> Iterator[None]:
    """Emit what follows for finite matrices; others, on which LAPACK may not end, stop the run."""
    with k.if_else(is_finite(k, left, a.m * a.n)) as (then, otherwise):
        with then:
            yield
        with otherwise:
            a.stop.store(NO_SINGULAR_VALUES)


def eig(k: Builder, dtype: str) -> None:
    """Compute eigenvalues and eigenvectors; LAPACK may not end on NaN. Task: a group of matrices."""
    a, wide = k.args(), WIDE[dtype]
    result = dtype if dtype[0] == "c" else f"c{2 * int(dtype[1:])}"
    with each_matrix(k, a, left=wide, vectors=wide, values=wide, work=wide, reals="f8") as (i, rooms):
        w, v = k.pointer(a.w, result) + i * a.n, k.pointer(a.v, result) + i * a.n * a.n
        left, vectors, values = rooms.left, rooms.vectors, rooms.values
        copy_transposed(k, left, a.a + i * a.n * a.n, a.n, a.n)
        with k.if_else(is_finite(k, left, a.n * a.n)) as (then, otherwise):
            with then:
                pair, reals = ([values], [rooms.reals]) if wide == "c16" else ([values, values + a.n], [])
                info = lapack(
                    k, dtype, "geev", "N", "V", a.n, left, a.n, *pair, vectors, a.n, vectors, a.n,
                    rooms.work, a.size, *reals,
                )  # fmt: skip
                stop_if(k, a, info != 0, NO_EIGENVALUES)
                if wide == "c16":
                    copy_transposed(k, w, values, a.n, 1)
                    copy_transposed(k, v, vectors, a.n, a.n)
                else:
                    store_pairs(k, w, v, values, vectors, a.n)
            with otherwise:
                a.stop.store(NOT_FINITE)


def store_pairs(k: Builder, w: Ptr, v: Ptr, values: Ptr, vectors: Ptr, n: Val) -> None:
    """Store the complex eigenvalues and vectors of a real matrix: a conjugate pair has two real columns."""
    with k.loop(0, n) as j:
        imag = values.load(n + j)
        store_number(k, w, j, values.load(j), imag)
        first = j - k.cast(imag < 0, "i8")
        second = j + k.cast(imag > 0, "i8")
        with k.loop(0, n) as row:
            other = vectors.load(second * n + row)
            part = k.select(imag == 0, k.const(0, "f8"), k.select(imag < 0, -other, other))
            store_number(k, v, row * n + j, vectors.load(first * n + row), part)


@contextmanager
def each_matrix(k: Builder, a: SimpleNamespace, **kinds: str) -> Iterator[tuple[Val, SimpleNamespace]]:
    """Loop over the matrices of this call's groups; yield each one's number and the rooms of these dtypes."""
    first, last = k.tasks()
    with k.loop(first, last) as group:
        rooms = {name: k.pointer(getattr(a, name) + group * a.far, kind) for name, kind in kinds.items()}
        with k.loop(group * a.count // a.groups, (group + 1) * a.count // a.groups) as i:
            yield i, SimpleNamespace(**rooms)


def lapack(k: Builder, dtype: str, name: str, *args: Ptr | Val | str) -> Val:
    """Call LAPACK's function for a dtype with the addresses of letters, integers and arrays; return its `info`."""
    info = Ptr(k, k.stack("i4"), "i4")
    addresses = [address_of(k, x) for x in (*args, info)]
    function = k.declare(LAPACK + lapack_name(dtype, name), VOID, [POINTER] * len(addresses))
    k.b.call(function, addresses)
    return info.load()


def address_of(k: Builder, x: Ptr | Val | str) -> ir.Value:
    """Return the address of an argument of LAPACK."""
    if isinstance(x, Ptr):
        return x.v
    value = k.const(ord(x), "u1") if isinstance(x, str) else k.cast(x, "i4")
    place = Ptr(k, k.stack(value.dtype), value.dtype)
    place.store(value)
    return place.v


def stop_if(k: Builder, a: SimpleNamespace, condition: Val, word: int) -> None:
    """End the run where LAPACK has no result."""
    with k.if_(condition, likely=False):
        a.stop.store(word)


def copy_transposed(k: Builder, out: Ptr, x: Ptr, rows: Val, columns: Val | int) -> None:
    """Copy a matrix ``[rows, columns]`` into one ``[columns, rows]`` of another dtype, some rows at a time, so that
    what is written next to one another shares a cache line.
    """
    whole = k.val(rows, "i8") // BAND * BAND
    with k.loop(0, whole, BAND) as top, k.loop(0, columns) as column:
        numbers = [parts(k, x, (top + i) * columns + column) for i in range(BAND)]
        for i, number in enumerate(numbers):
            store_number(k, out, column * rows + top + i, *number)
    with k.loop(whole, rows) as row, k.loop(0, columns) as column:
        store_number(k, out, column * rows + row, *parts(k, x, row * columns + column))


def copy_if(k: Builder, condition: Val, out: Ptr, i: Val, x: Ptr, j: Val) -> None:
    """Copy element j of x to element i of out, or 0 unless the condition is true."""
    real, imag = parts(k, x, j)
    zero = k.const(0, "f8")
    store_number(k, out, i, k.select(condition, real, zero), k.select(condition, imag, zero))


def fill_identity(k: Builder, out: Ptr, n: Val) -> None:
    zero, one = k.const(0, "f8"), k.const(1, "f8")
    with k.loop(0, n) as row, k.loop(0, n) as column:
        store_number(k, out, row * n + column, k.select(row == column, one, zero), zero)


def is_finite(k: Builder, x: Ptr, count: Val) -> Val:
    """Return whether all elements are finite."""
    finite = k.slot(True, "b1")
    with k.loop(0, count) as i:
        for part in parts(k, x, i):
            finite.value = finite.value & (k.intrinsic("fabs", part) < float("inf"))
    return finite.value


def parts(k: Builder, x: Ptr, i: Val) -> tuple[Val, Val]:
    """Return the real and imaginary part of element i as float64."""
    if x.dtype[0] != "c":
        return k.cast(x.load(i), "f8"), k.const(0, "f8")
    pairs = x.as_dtype(real_of(x.dtype))
    return k.cast(pairs.load(2 * i), "f8"), k.cast(pairs.load(2 * i + 1), "f8")


def store_number(k: Builder, out: Ptr, i: Val, real: Val, imag: Val | None = None) -> None:
    """Store element i from float64 parts; the imaginary part only where the dtype is complex."""
    part = real_of(out.dtype)
    pairs = out.as_dtype(part)
    if out.dtype[0] != "c" or imag is None:
        return pairs.store(k.cast(real, part), i)
    pairs.store(k.cast(real, part), 2 * i)
    return pairs.store(k.cast(imag, part), 2 * i + 1)


def real_of(dtype: str) -> str:
    """Return the dtype of the real parts."""
    return f"f{int(dtype[1:]) // 2}" if dtype[0] == "c" else dtype
