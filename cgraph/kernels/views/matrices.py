"""Views of matrices for kernels: groups of equal products at a constant stride, transposed where that is faster."""

from collections.abc import Iterator
from itertools import product

from cgraph.kernels.kernel import Pointer, View, collapse
from cgraph.record import Record, replace


class Operand(Record):
    """Matrices at a constant stride. Strides in elements: of a matrix (`batch`), a row, a column."""

    at: Pointer
    batch: int
    row: int
    column: int
    dtype: str

    @property
    def itemsize(self) -> int:
        return int(self.dtype[1:])

    @property
    def transposed(self) -> "Operand":
        return replace(self, row=self.column, column=self.row)

    def moved(self, batch: int = 0, row: int = 0, column: int = 0) -> "Operand":
        """Return the part that begins at this matrix, row and column."""
        elements = batch * self.batch + row * self.row + column * self.column
        return replace(self, at=self.at + elements * self.itemsize)


class Matrices(Record):
    """`count` products ``[m, k] @ [k, n]`` of one dtype; a constant side may be stored in another."""

    dtype: str
    count: int
    m: int
    n: int
    k: int
    a: Operand
    b: Operand
    out: Operand
    bias: Operand | None = None

    @property
    def transposed(self) -> "Matrices":
        """The same products as ``out.T = b.T @ a.T``."""
        bias = self.bias.transposed if self.bias else None
        a, b, out = self.b.transposed, self.a.transposed, self.out.transposed
        return replace(self, m=self.n, n=self.m, a=a, b=b, out=out, bias=bias)


def each_matrices(out: View, a: View, b: View, bias: View | None) -> Iterator[Matrices]:
    """Yield groups of products, not yet transposed: one if the batch axes merge, else one per outer index."""
    if not out.size:
        return
    views = [a, b, out, *([bias] if bias else [])]
    shape, strides = collapse(out.shape[:-2], *(v.strides[:-2] for v in views))
    count = shape[-1] if shape else 1
    (m, n), k = out.shape[-2:], a.shape[-1]
    for index in product(*map(range, shape[:-1])):
        x, y, z, *rest = (operand(v, index, steps) for v, steps in zip(views, strides))
        yield merge_batch(Matrices(out.dtype, count, m, n, k, x, y, z, rest[0] if rest else None))


def operand(v: View, index: tuple[int, ...], steps: tuple[int, ...]) -> Operand:
    """Return the matrices of `v` at an outer index; `steps` are bytes along each batch axis."""
    at = v.at + sum(i * step for i, step in zip(index, steps))
    batch, row, column = (s // v.itemsize for s in (steps[-1] if steps else 0, *v.strides[-2:]))
    return Operand(at, batch, row, column, v.dtype)


def merge_batch(x: Matrices) -> Matrices:
    """Merge contiguous matrices that share `b` into one tall matrix."""
    rows = [x.a, x.out, *([x.bias] if x.bias else [])]
    if x.count == 1 or x.b.batch or (x.m > 1 and any(y.batch != x.m * y.row for y in rows)):
        return x
    a, out, *bias = (replace(y, row=y.batch // x.m) for y in rows)
    return replace(x, count=1, m=x.count * x.m, a=a, out=out, bias=bias[0] if bias else None)


def orient(x: Matrices) -> Matrices:
    """Make rows of the result contiguous if possible; one row times rows of `b` becomes a column of dot products."""
    if x.m == 1 and x.n > 1:
        as_dot = x.b.row == 1 and x.b.column != 1 and x.a.column == 1
        return x.transposed if as_dot or x.out.column != 1 else x
    if x.n == 1 and x.m > 1:
        return x.transposed if x.a.row == 1 and x.a.column != 1 and x.out.row == 1 else x
    return x.transposed if x.out.column != 1 and x.out.row == 1 else x
