"""Batches of matrices in C order. A task is a group of them, with rooms of its own for what LAPACK reads and writes.

LAPACK's matrices have their columns one after another, so tasks copy operands and results. As NumPy, they compute in
float64 or complex128.
"""

from cgraph.kernels.signature import Signature

# matrix i of `count` is of group i * groups // count; each group has `far` bytes of rooms
TASKS = {"count": "i8", "groups": "i8", "far": "i8"}
STOPS = {"stop": "i8*"}

SOLVE = Signature(
    "lapack.solve",
    ("dtype", "inverts"),
    # b and out are ``[n, columns]``; b is read unless the right side is the identity
    {"out": "dtype*", "a": "dtype*", "b": "address?", "n": "i8", "columns": "i8"}
    | {"left": "address", "right": "address", "pivots": "address"} | TASKS | STOPS,
)  # fmt: skip
DETERMINANT = Signature(
    "lapack.determinant",
    ("dtype", "parted"),
    # the determinant or, `parted`, its sign and the logarithm of its absolute value
    {"out": "dtype*", "log": "address?", "a": "dtype*", "n": "i8", "left": "address", "pivots": "address"} | TASKS,
)
CHOLESKY = Signature(
    "lapack.cholesky", ("dtype",), {"out": "dtype*", "a": "dtype*", "n": "i8", "left": "address"} | TASKS | STOPS
)
QR = Signature(
    "lapack.qr",
    ("dtype",),
    # q is ``[m, k]``, r is ``[k, n]``
    {"q": "dtype*", "r": "dtype*", "a": "dtype*", "m": "i8", "n": "i8", "k": "i8"}
    | {"left": "address", "factors": "address", "work": "address", "size": "i8"} | TASKS,
)  # fmt: skip
EIGH = Signature(
    "lapack.eigh",
    ("dtype", "upper"),
    # the eigenvalues w are real, and so are the rooms `values` and `reals`; real matrices have no `reals`
    {"w": "address", "v": "dtype*", "a": "dtype*", "n": "i8", "left": "address", "values": "address"}
    | {"work": "address", "size": "i8", "reals": "address?", "real_size": "i8"}
    | {"integers": "address", "integer_size": "i8"} | TASKS | STOPS,
)  # fmt: skip
SVD = Signature(
    "lapack.svd",
    ("dtype", "full"),
    # u is ``[m, columns]``, v ``[rows, n]``; s and the rooms `values` and `reals` are real
    {"u": "dtype*", "s": "address", "v": "dtype*", "a": "dtype*", "m": "i8", "n": "i8", "columns": "i8", "rows": "i8"}
    | {"left": "address", "us": "address", "values": "address", "vs": "address", "work": "address", "size": "i8"}
    | {"reals": "address?", "integers": "address"} | TASKS | STOPS,
)  # fmt: skip
# without u: of matrices of more rows than columns, by their triangular factor in the room `triangle`
TALL_SVD = Signature(
    "lapack.tall_svd",
    ("dtype",),
    {"s": "address", "v": "dtype*", "a": "dtype*", "m": "i8", "n": "i8"}
    | {"left": "address", "factors": "address", "triangle": "address", "us": "address", "values": "address"}
    | {"vs": "address", "work": "address", "size": "i8", "reals": "address?", "integers": "address"} | TASKS | STOPS,
)  # fmt: skip
SINGULAR_VALUES = Signature(
    "lapack.singular_values",
    ("dtype",),
    {"s": "address", "a": "dtype*", "m": "i8", "n": "i8", "left": "address", "values": "address"}
    | {"work": "address", "size": "i8", "reals": "address?", "integers": "address"} | TASKS | STOPS,
)  # fmt: skip
EIG = Signature(
    "lapack.eig",
    ("dtype",),
    # w and v are complex; real matrices have the real parts of their eigenvalues, then the others, in `values`
    {"w": "address", "v": "address", "a": "dtype*", "n": "i8", "left": "address", "vectors": "address"}
    | {"values": "address", "work": "address", "size": "i8", "reals": "address?"} | TASKS | STOPS,
)  # fmt: skip
