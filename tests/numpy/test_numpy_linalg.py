"""``np.linalg`` on nodes: every setting, shares of rank and tolerances by matrix, chains of products, and refusals."""

import numpy as np
import pytest

import cgraph as cg
from cgraph.errors import CgraphError, NoMeaningError, ShapeError
from cgraph.numpy import linalg
from tests.numpy.evaluated import compare
from tests.support.tolerance import assert_near

RNG = np.random.default_rng(3)
A, B, TALL = RNG.standard_normal((2, 3, 3)), RNG.standard_normal((2, 3, 2)), RNG.standard_normal((5, 3))
SYMMETRIC = A + A.swapaxes(-1, -2)
DEFINITE = A @ A.swapaxes(-1, -2) + np.eye(3)


def node(x):
    return cg.Var(x.shape, x.dtype).assign(x)


def value(x):
    return cg.compile(x, engine="reference")()


def near(got, want, terms=1.0):
    assert_near(value(got), want, "float64 conditioned", terms)


@pytest.mark.parametrize(
    "call",
    [
        "cross(x, x[::-1], axis=1)", "diagonal(y, offset=1)", "diagonal(y, offset=-1)", "trace(x, offset=-1)",
        "trace(x, dtype='float32')", "vector_norm(x, axis=(0, 2), keepdims=True)", "vector_norm(x)",
        "vector_norm(x, axis=1, ord=1)", "vector_norm(x, keepdims=True)", "vector_norm(x, axis=(-1, 0), ord=3)",
        "matrix_norm(x, ord=1)", "matrix_norm(x, ord=np.inf, keepdims=True)", "matrix_norm(y)",
    ],
)  # fmt: skip
def test_diagonals_and_norms_of_unequal_axes(call):
    compare(f"np.linalg.{call}", x=A, y=B)


def test_triangles_are_read_as_named():
    for upper in (False, True):
        triangle = np.triu(DEFINITE) if upper else np.tril(DEFINITE)
        near(linalg.cholesky(node(triangle), upper=upper), np.linalg.cholesky(DEFINITE, upper=upper))
        side = "u" if upper else "L"
        want = np.linalg.eigvalsh(DEFINITE)
        near(linalg.eigvalsh(node(triangle), side), want)
        near(linalg.eigh(node(triangle), side).eigenvalues, want)
    with pytest.raises(ShapeError, match="UPLO is 'x'"):
        linalg.eigh(node(DEFINITE), "x")


def test_singular_values_of_symmetric_matrices_descend_and_give_the_matrix_back():
    x = np.diag([1.0, -3.0, 0.0])  # one eigenvalue is negative, one is zero
    u, s, vh = (value(v) for v in linalg.svd(node(x), hermitian=True))
    assert_near(s, [3, 1, 0], "float64 conditioned", 1)
    assert_near(u * s @ vh, x, "float64 conditioned", 1)
    assert_near(vh @ vh.T, np.eye(3), "float64 conditioned", 1)
    near(linalg.svd(node(SYMMETRIC), compute_uv=False, hermitian=True), np.linalg.svd(SYMMETRIC, compute_uv=False))


def test_small_singular_values_count_as_zero_by_each_tolerance():
    x = np.stack([np.diag([4.0, 1.0, 1e-3]), np.diag([4.0, 2.0, 1.0])])
    for settings in ({}, {"rtol": 1e-2}, {"rtol": np.array([0.3, 0.1])}, {"tol": 1.5}, {"tol": np.array([0.5, 3.0])}):
        assert value(linalg.matrix_rank(node(x), **settings)).tolist() == np.linalg.matrix_rank(x, **settings).tolist()
    for settings in ({}, {"rcond": 1e-2}, {"rtol": 1e-2}, {"rtol": None}, {"rcond": np.array([0.3, 0.1])}):
        near(linalg.pinv(node(x), **settings), np.linalg.pinv(x, **settings), 1000)
    assert value(linalg.matrix_rank(node(np.zeros(3)))) == 0 and value(linalg.matrix_rank(node(np.eye(3)[1]))) == 1
    tiny = np.diag([1.0, 1e-16])
    assert [value(linalg.matrix_rank(node(tiny), **share)) for share in ({}, {"rtol": 0.0})] == [1, 2]


@pytest.mark.parametrize("right", [TALL[:, 0], TALL[:, :2]], ids=["vector", "matrix"])
def test_least_squares_have_residuals_rank_and_singular_values(right):
    x = TALL[:, 1:] + 1
    for got, want in zip(linalg.lstsq(node(x), node(right)), np.linalg.lstsq(x, right), strict=True):
        near(got, want)
    deficient = np.outer(np.arange(5.0), [1, 2])
    solution, _, rank, _ = linalg.lstsq(node(deficient), node(right))
    near(solution, np.linalg.lstsq(deficient, right)[0])
    assert value(rank) == 1
    wide = linalg.lstsq(node(x.T), node(right[:2]))
    near(wide[0], np.linalg.lstsq(x.T, right[:2])[0])
    assert wide[1].shape == (0,)
    with pytest.raises(ShapeError, match="the same number of rows"):
        linalg.lstsq(node(x), node(right[:3]))


@pytest.mark.parametrize("p", [None, 2, -2, 1, -1, np.inf, "fro"])
def test_condition_numbers(p):
    near(linalg.cond(node(A), p), np.linalg.cond(A, p), 100)


@pytest.mark.parametrize("n", [0, 1, 2, 6, 7, -1, -3])
def test_powers(n):
    near(linalg.matrix_power(node(A), n), np.linalg.matrix_power(A, n), 1000)


def test_tensors_are_solved_over_the_named_axes():
    x, b = RNG.standard_normal((2, 3, 6)), RNG.standard_normal((2, 3))
    near(linalg.tensorsolve(node(x), node(b)), np.linalg.tensorsolve(x, b), 10)
    moved = np.moveaxis(x, 2, 0)
    near(linalg.tensorsolve(node(moved), node(b), (0,)), np.linalg.tensorsolve(moved, b, (0,)), 10)
    near(linalg.tensorinv(node(x)), np.linalg.tensorinv(x), 10)
    near(linalg.tensorinv(node(moved), 1), np.linalg.tensorinv(moved, 1), 10)


def test_chains_are_multiplied_in_the_cheapest_order():
    sizes = (
        30,
        35,
        15,
        5,
        10,
        20,
        25,
    )  # Cormen et al., section 15.2: 15,125 multiplications, ((A1 (A2 A3)) ((A4 A5) A6))
    arrays = [RNG.standard_normal(shape) for shape in zip(sizes, sizes[1:])]
    product = linalg.multi_dot([node(x) for x in arrays])
    assert [x.shape for x in product.operands] == [(30, 5), (5, 25)]
    assert [x.shape for x in product.operands[0].operands] == [(30, 35), (35, 5)]
    assert [x.shape for x in product.operands[1].operands] == [(5, 20), (20, 25)]
    near(product, np.linalg.multi_dot(arrays), 1e5)
    ends = [arrays[0][0], arrays[1], arrays[2][:, 0]]
    near(linalg.multi_dot([node(x) for x in ends]), np.linalg.multi_dot(ends), 1e3)


@pytest.mark.parametrize("p", [None, -2, 1, np.inf, "fro"])
def test_the_condition_number_of_a_singular_matrix_is_infinite(p):
    zeros, whole = np.zeros((2, 2)), np.eye(2) * 1e-200
    near(linalg.cond(node(np.stack([zeros, whole])), p), np.linalg.cond(np.stack([zeros, whole]), p), 100)
    if p not in (None, -2):  # exact elimination; the least singular value is rounded
        near(linalg.cond(node(np.array([[1.0, 2.0], [2.0, 4.0]])), p), np.inf)


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda x: linalg.cross(x[..., :2], x[..., :2]), ShapeError, "vectors of 3 elements"),
        (lambda x: linalg.qr(x, "raw"), NoMeaningError, "there is no mode 'raw'"),
        (lambda x: linalg.matrix_power(x[:, :2], 2), ShapeError, "not a square matrix"),
        (lambda x: linalg.tensorinv(x, 0), ShapeError, "with 0 axes of rows"),
        (lambda x: linalg.tensorsolve(x, x[0]), ShapeError, "not a square matrix for the right side"),
        (lambda x: linalg.multi_dot([x[0]]), ShapeError, "at least two operands, got 1"),
        (lambda x: linalg.multi_dot([x, x]), ShapeError, "needs matrices"),
    ],
)  # fmt: skip
def test_refusals_say_what_is_expected(call, error, text):
    assert issubclass(error, CgraphError)
    with pytest.raises(error, match=text):
        call(node(A))


@pytest.mark.parametrize("mode", ["reduced", "complete", "r"])
@pytest.mark.parametrize("shape", [(5, 3), (3, 5), (4, 4), (2, 5, 3), (1, 1)])
def test_each_mode_of_qr_has_numpys_shapes_and_the_matrix_is_the_product(shape, mode):
    x = RNG.standard_normal(shape)
    found, want = linalg.qr(node(x), mode), np.linalg.qr(x, mode)
    if mode == "r":
        assert found.shape == want.shape
        near(cg.abs(found), np.abs(want))
        return
    assert [y.shape for y in found] == [y.shape for y in want]
    near(found.Q @ found.R, x)


@pytest.mark.parametrize("name", ["svd", "pinv", "matrix_rank"])
@pytest.mark.parametrize("leading", [(), (2,)])
def test_a_hermitian_matrix_is_its_lower_triangle_for_every_function_that_is_told_so(name, leading):
    """What lies above the diagonal is not read: numbers there that would change rank, values and inverse."""
    lower = np.broadcast_to(np.array([[2.0, 0, 0], [1, 3, 0], [0, 1, 1]]), (*leading, 3, 3)).copy()
    lower[..., 0, 1:], lower[..., 1, 2] = (7, -5), 11
    lower[..., 2, 2] = 1 / 3 + 1 / 15  # the hermitian matrix has rank 2
    whole = np.tril(lower) + np.tril(lower, -1).swapaxes(-1, -2)
    assert (np.linalg.matrix_rank(whole) == 2).all() and (np.linalg.matrix_rank(lower) == 3).all()
    call = {"svd": lambda m, x: m.svd(x, compute_uv=False, hermitian=True)}.get(
        name, lambda m, x: getattr(m, name)(x, hermitian=True)
    )
    assert_near(np.asarray(call(linalg, node(lower)).eval()), call(np.linalg, lower), "float64")


SIDES = np.arange(8.0).reshape(4, 2)
DIAGONAL = np.diag([8.0, 4.0, 2.0, 1.0])


@pytest.mark.parametrize("share", [0.1, 0.125, 0.2, 0.25, 0.3, 0.5, 0.75, 1.0])
@pytest.mark.parametrize(
    "call",
    [
        "np.linalg.lstsq(x, b, rcond={})[0]", "np.linalg.lstsq(x, b, rcond={})[2]", "np.linalg.pinv(x, {})",
        "np.linalg.pinv(x, rtol={})", "np.linalg.pinv(x, {}, hermitian=True)", "np.linalg.matrix_rank(x, 8 * {})",
        "np.linalg.matrix_rank(x, rtol={})", "np.linalg.matrix_rank(x, 8 * {}, hermitian=True)",
    ],
)  # fmt: skip
def test_a_singular_value_that_equals_the_tolerance_counts_as_numpy_counts_it(call, share):
    compare(call.format(share), x=DIAGONAL, b=SIDES)


@pytest.mark.parametrize("share", [-1.0, 0.0, 1e-300, 0.999, 1.0, 2.0])
@pytest.mark.parametrize("least", [1.0, 1e-15, 1e-17])
def test_a_tolerance_that_is_no_share_is_that_of_rounding_as_in_lapack(share, least):
    x = np.diag([8.0, 4.0, 2.0, 8 * least])
    compare(f"np.linalg.lstsq(x, b, rcond={share})[2]", x=x, b=SIDES)


@pytest.mark.parametrize("x", ["a", "a[0]", "a[0, :1]", "a[0, 0]", "a[:, 0]"])
@pytest.mark.parametrize("y", ["a", "a[1]", "a[1, :0]", "a[1, 0]"])
def test_two_rows_have_an_outer_product_and_nothing_else(x, y):
    compare(f"np.linalg.outer({x}, {y})", a=np.arange(6.0).reshape(2, 3) + 1)
