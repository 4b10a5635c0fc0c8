"""Calls on batches of matrices of any size: what they have for LAPACK's arguments, and their rooms in the workspace."""

from collections.abc import Mapping, Sequence
from itertools import accumulate
from math import prod

import numpy as np

from cgraph.kernels.kernel import STOP, Call, Param, Pointer, View, scratch_pointer
from cgraph.kernels.lapack.signature import (
    CHOLESKY,
    DETERMINANT,
    EIG,
    EIGH,
    QR,
    SINGULAR_VALUES,
    SOLVE,
    SVD,
    TALL_SVD,
)
from cgraph.kernels.signature import Signature
from cgraph.kernels.target import Target, code_generation
from cgraph.record import Record
from cgraph.system.alignment import aligned
from cgraph.system.scipy_lapack import has_lapack, work_sizes

MOST_GROUPS = 16  # each has rooms of its own
WIDE = {"f4": "f8", "f8": "f8", "c8": "c16", "c16": "c16"}  # as NumPy, which computes all matrices so
LETTERS = {"f8": "d", "c16": "z"}
COMPLEX_NAMES = {"orgqr": "ungqr", "syevd": "heevd"}
REAL, INTEGER = np.dtype("float64"), np.dtype("int32")

Shape = tuple[int, ...]


class MatrixJob(Record, eq=False):
    """One LAPACK computation of a batch of matrices.

    Fields
        signature, params: of the kernel
        views: names of the arguments that are results and operands, in this order
        shape: of the matrices
        sizes: arguments that are integers
        rooms: bytes of each array in a group's part of the workspace, by argument
    """

    signature: Signature
    params: tuple[Param, ...]
    views: tuple[str, ...]
    shape: Shape
    sizes: Mapping[str, int]
    rooms: Mapping[str, int]

    @property
    def count(self) -> int:
        """Number of matrices."""
        return prod(self.shape[:-2])

    @property
    def groups(self) -> int:
        """Number of tasks."""
        return min(self.count, MOST_GROUPS)

    @property
    def group_nbytes(self) -> int:
        """Bytes of the rooms of one group."""
        return sum(map(aligned, self.rooms.values()))

    @property
    def nbytes(self) -> int:
        """Bytes of the workspace."""
        return self.groups * self.group_nbytes

    def calls(self, views: Sequence[View], workspace: View | None) -> list[Call]:
        """Return the call for views of results and operands."""
        kinds = self.signature.args
        args: dict[str, int | Pointer | None] = {name: None for name, kind in kinds.items() if kind == "address?"}
        args |= {"count": self.count, "groups": self.groups, "far": self.group_nbytes, **self.sizes}
        args |= {name: view.at for name, view in zip(self.views, views, strict=True)}
        if self.rooms:
            at = scratch_pointer(workspace, self.nbytes)
            starts = accumulate(map(aligned, self.rooms.values()), initial=0)
            args |= {name: at + start for name, start in zip(self.rooms, starts)}
        if "stop" in kinds:
            args["stop"] = Pointer(STOP)
        return [self.signature.call(self.params, self.groups, 1, **args)]


def is_for_lapack(target: Target, dtype: str, *shapes: Shape) -> bool:
    """Return True if there are kernels that call LAPACK for matrices of this dtype and these shapes.

    There are none for a GPU, nor for machines to which code is exported.
    """
    if target.code != "native" or dtype not in WIDE or not all(map(prod, shapes)):
        return False
    return code_generation(target).jit and has_lapack()


def solve_job(dtype: str, shape: Shape, columns: int | None = None) -> MatrixJob:
    """Return the solution of ``a @ x = b`` for a right side of some columns; by default the inverse of a."""
    n, each = shape[-1], number_of(dtype).itemsize
    rooms = {"left": n * n * each, "right": n * (columns or n) * each, "pivots": n * INTEGER.itemsize}
    views = ("out", "a") if columns is None else ("out", "a", "b")
    return MatrixJob(SOLVE, (dtype, columns is None), views, shape, {"n": n, "columns": columns or n}, rooms)


def determinant_job(dtype: str, shape: Shape, parted: bool) -> MatrixJob:
    """Return the determinant or, `parted`, its sign and the logarithm of its absolute value."""
    n = shape[-1]
    rooms = {"left": n * n * number_of(dtype).itemsize, "pivots": n * INTEGER.itemsize}
    views = ("out", "log", "a") if parted else ("out", "a")
    return MatrixJob(DETERMINANT, (dtype, parted), views, shape, {"n": n}, rooms)


def cholesky_job(dtype: str, shape: Shape) -> MatrixJob:
    """Return the lower Cholesky factor."""
    n = shape[-1]
    return MatrixJob(CHOLESKY, (dtype,), ("out", "a"), shape, {"n": n}, {"left": n * n * number_of(dtype).itemsize})


def qr_job(dtype: str, shape: Shape, k: int) -> MatrixJob:
    """Return q with k columns, and r."""
    (m, n), number, least = shape[-2:], number_of(dtype), min(shape[-2:])
    (size,) = work_sizes(lapack_name(dtype, "geqrf"), m, n, None, m, None, number, -1)
    (more,) = work_sizes(lapack_name(dtype, "orgqr"), m, k, least, None, m, None, number, -1)
    size = max(size, more)
    rooms = {"left": m * max(n, k), "factors": least, "work": size}
    rooms = {name: x * number.itemsize for name, x in rooms.items()}
    return MatrixJob(QR, (dtype,), ("q", "r", "a"), shape, {"m": m, "n": n, "k": k, "size": size}, rooms)


def eigh_job(dtype: str, shape: Shape, upper: bool) -> MatrixJob:
    """Return the eigenvalues and eigenvectors of Hermitian matrices."""
    n, number, name = shape[-1], number_of(dtype), lapack_name(dtype, "syevd")
    matrix, integers = ("V", "U" if upper else "L", n, None, n, None), (INTEGER, -1)
    if number.kind == "c":
        size, real_size, integer_size = work_sizes(name, *matrix, number, -1, REAL, -1, *integers)
    else:
        (size, integer_size), real_size = work_sizes(name, *matrix, number, -1, *integers), 0
    sizes = {"n": n, "size": size, "real_size": real_size, "integer_size": integer_size}
    rooms = {"left": n * n * number.itemsize, "values": n * REAL.itemsize, "work": size * number.itemsize}
    rooms |= {"integers": integer_size * INTEGER.itemsize}
    if number.kind == "c":
        rooms["reals"] = real_size * REAL.itemsize
    return MatrixJob(EIGH, (dtype, upper), ("w", "v", "a"), shape, sizes, rooms)


def svd_job(dtype: str, shape: Shape, full: bool) -> MatrixJob:
    """Return the singular values and vectors; all of these if `full`."""
    (m, n), number, least, most = shape[-2:], number_of(dtype), min(shape[-2:]), max(shape[-2:])
    columns, rows = (m, n) if full else (least, least)
    more = [None] * (1 + (number.kind == "c"))
    matrix = "A" if full else "S", m, n, None, m, None, None, m, None, rows
    (size,) = work_sizes(lapack_name(dtype, "gesdd"), *matrix, number, -1, *more)
    sizes = {"m": m, "n": n, "columns": columns, "rows": rows, "size": size}
    rooms = {"left": m * n, "us": m * columns, "vs": rows * n, "work": size}
    rooms = {name: x * number.itemsize for name, x in rooms.items()}
    rooms |= {"values": least * REAL.itemsize, "integers": 8 * least * INTEGER.itemsize}
    if number.kind == "c":  # the size that LAPACK's text states; it has no query
        rooms["reals"] = least * max(5 * least + 7, 2 * most + 2 * least + 1) * REAL.itemsize
    return MatrixJob(SVD, (dtype, full), ("u", "s", "v", "a"), shape, sizes, rooms)


def tall_svd_job(dtype: str, shape: Shape) -> MatrixJob:
    """Return the singular values and the right vectors of matrices with more rows than columns."""
    (m, n), number = shape[-2:], number_of(dtype)
    more = [None] * (1 + (number.kind == "c"))
    (size,) = work_sizes(lapack_name(dtype, "geqrf"), m, n, None, m, None, number, -1)
    (inner,) = work_sizes(lapack_name(dtype, "gesdd"), "S", n, n, None, n, None, None, n, None, n, number, -1, *more)
    size = max(size, inner)
    rooms = {"left": m * n, "factors": n, "triangle": n * n, "us": n * n, "vs": n * n, "work": size}
    rooms = {name: x * number.itemsize for name, x in rooms.items()}
    rooms |= {"values": n * REAL.itemsize, "integers": 8 * n * INTEGER.itemsize}
    if number.kind == "c":
        rooms["reals"] = n * max(5 * n + 7, 4 * n + 1) * REAL.itemsize
    return MatrixJob(TALL_SVD, (dtype,), ("s", "v", "a"), shape, {"m": m, "n": n, "size": size}, rooms)


def singular_values_job(dtype: str, shape: Shape) -> MatrixJob:
    """Return only the singular values."""
    (m, n), number, least = shape[-2:], number_of(dtype), min(shape[-2:])
    more = [None] * (1 + (number.kind == "c"))
    matrix = "N", m, n, None, m, None, None, m, None, n
    (size,) = work_sizes(lapack_name(dtype, "gesdd"), *matrix, number, -1, *more)
    rooms = {"left": m * n * number.itemsize, "work": size * number.itemsize}
    rooms |= {"values": least * REAL.itemsize, "integers": 8 * least * INTEGER.itemsize}
    if number.kind == "c":
        rooms["reals"] = 7 * least * REAL.itemsize
    return MatrixJob(SINGULAR_VALUES, (dtype,), ("s", "a"), shape, {"m": m, "n": n, "size": size}, rooms)


def eig_job(dtype: str, shape: Shape) -> MatrixJob:
    """Return the eigenvalues and eigenvectors of square matrices."""
    n, number = shape[-1], number_of(dtype)
    values, more = ([None], [None]) if number.kind == "c" else ([None, None], [])
    matrix = "N", "V", n, None, n, *values, None, n, None, n
    (size,) = work_sizes(lapack_name(dtype, "geev"), *matrix, number, -1, *more)
    rooms = {"left": n * n, "vectors": n * n, "values": len(values) * n, "work": size}
    rooms = {name: x * number.itemsize for name, x in rooms.items()}
    if number.kind == "c":
        rooms["reals"] = 2 * n * REAL.itemsize
    return MatrixJob(EIG, (dtype,), ("w", "v", "a"), shape, {"n": n, "size": size}, rooms)


def number_of(dtype: str) -> np.dtype:
    """Return the dtype in which LAPACK computes."""
    return np.dtype(WIDE[dtype])


def lapack_name(dtype: str, name: str) -> str:
    """Return LAPACK's name of a function for a dtype, from that for real matrices without its letter."""
    wide = WIDE[dtype]
    return LETTERS[wide] + (COMPLEX_NAMES.get(name, name) if wide == "c16" else name)
