"""Small differentiable functions, by name: how they are called, and the shapes of what they take.

Values are drawn from ``low..high``, so that a function stays inside its domain and away from its corners.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

import cgraph as cg


@dataclass(frozen=True)
class Case:
    """A function of float64 nodes. `twice` says whether its second gradient is checked, too."""

    f: Callable[..., Any]
    shapes: tuple[tuple[int, ...], ...]
    low: float = -2.0
    high: float = 2.0
    twice: bool = True

    def draw(self, seed: int = 0) -> list[np.ndarray]:
        rng = np.random.default_rng(seed)
        return [rng.uniform(self.low, self.high, shape) for shape in self.shapes]


def one(low: float = -2.0, high: float = 2.0, **names: Any) -> dict[str, Case]:
    return {name: Case(f, ((3, 4),), low, high) for name, f in names.items()}


def by_name(names: str, low: float = -2.0, high: float = 2.0, shapes: tuple = ((3, 4),)) -> dict[str, Case]:
    return {name: Case(getattr(cg, name), shapes, low, high) for name in names.split()}


def symmetric(x: Any) -> Any:
    return x + cg.swapaxes(x, -1, -2)


def positive_definite(x: Any) -> Any:
    return x @ cg.swapaxes(x, -1, -2) + 3 * cg.eye(x.shape[-1], dtype="float64")


PLACES = np.array([[2, 0], [1, 1], [0, 2]])
KEY = cg.random_key(3)
PAIR = ((3, 4), (3, 4))

POINTWISE = {
    **by_name("exp exp2 expm1 sin cos sinh cosh tanh arctan arcsinh erf erfc sigmoid softplus square negative abs"),
    **by_name("relu selu celu elu gelu mish swish hard_swish hard_sigmoid softsign leaky_relu relu6"),
    **by_name("log log2 log10 log1p sqrt reciprocal", 0.5, 3.0),
    **by_name("tan arcsin arccos arctanh", -0.8, 0.8),
    **by_name("arccosh", 1.5, 4.0),
    **by_name("sign floor ceil trunc rint", 0.1, 0.4),
    **by_name("add subtract multiply maximum minimum arctan2 hypot", shapes=PAIR),
    **by_name("true_divide power", 0.5, 2.0, PAIR),
    **one(
        power_of_two=lambda x: x**2,
        power_of_three=lambda x: x**3,
        clip=lambda x: cg.clip(x, -1.0, 1.0),
        reads_one_operand_twice=lambda x: x * x * cg.sin(x) / (1 + x * x),
    ),
    "remainder": Case(lambda x, y: cg.remainder(x, y + 5), PAIR, 0.5, 2.0),
    "fmod": Case(lambda x, y: cg.fmod(x, y + 5), PAIR, 0.5, 2.0),
    "copysign": Case(cg.copysign, PAIR, 0.5, 2.0),
    "where": Case(lambda x, y: cg.where(x < y, x * x, y * y * y), PAIR),
    "broadcast": Case(lambda x, y: x * y + y, ((3, 1), (2, 1, 4))),
    "prelu": Case(cg.prelu, ((3, 4), (4,)), 0.2),
}
MOVES = {
    **one(
        reshape=lambda x: cg.reshape(x, (2, 6)),
        transpose=lambda x: x.T * 2,
        slice=lambda x: x[1:, ::-2],
        set_slice=lambda x: cg.set_slice(x, (slice(1, 3),), x[:2] * x[1:]),
        flip=lambda x: cg.flip(x, 1),
        roll=lambda x: cg.roll(x, 2, 1),
        repeat=lambda x: cg.repeat(x, 3, 0),
        tile=lambda x: cg.tile(x, (2, 1, 2)),
        pad=lambda x: cg.pad(x, ((1, 2), (0, 3))),
        pad_reflect=lambda x: cg.pad(x, ((1, 2), (0, 3)), "reflect"),
        pad_edge=lambda x: cg.pad(x, ((1, 2), (0, 3)), "edge"),
        diagonal=lambda x: cg.diagonal(x, 1),
        triu=lambda x: cg.triu(x, 1),
        tril=lambda x: cg.tril(x),
        trace=cg.trace,
        diag=lambda x: cg.diag(x[0], -1),
        take=lambda x: cg.take(x, PLACES, 1),
        take_along_axis=lambda x: cg.take_along_axis(x, PLACES, 1),
        index=lambda x: x[np.array([2, 0, 2]), np.array([1, 3, 1])],
        sort=lambda x: cg.sort(x, 0),
        top_k=lambda x: cg.top_k(x, 2)[0],
    ),
    "concat": Case(lambda x, y: cg.concat([x, y, x], 1), ((2, 3), (2, 1))),
    "stack": Case(lambda x, y: cg.stack([x, y]), ((2, 3), (2, 3))),
    "scatter_add": Case(lambda x, u: cg.scatter_add(x, np.array([1, 1, 0]), u), ((2, 3), (3, 3))),
    "put_along_axis": Case(lambda x, u: cg.put_along_axis(x, PLACES, u, 1), ((3, 4), (3, 2))),
}
REDUCTIONS = {
    **by_name("sum mean prod max min var std ptp logsumexp"),
    **one(
        sum_of_one_axis=lambda x: cg.sum(x, 0, keepdims=True),
        prod_of_one_axis=lambda x: cg.prod(x, 1),
        max_of_one_axis=lambda x: cg.max(x, 1),
        cumsum=lambda x: cg.cumsum(x, 1),
        cumprod=lambda x: cg.cumprod(x, 1),
        softmax=lambda x: cg.softmax(x, 0),
        log_softmax=lambda x: cg.log_softmax(x, 1),
        norm=lambda x: cg.norm(x, 3, 1),
    ),
}
PRODUCTS = {
    "matmul": Case(cg.matmul, ((2, 3, 4), (4, 5))),
    "matrix_vector": Case(cg.matmul, ((3, 4), (4,))),
    "outer": Case(cg.outer, ((3,), (4,))),
    "kron": Case(cg.kron, ((2, 2), (1, 3))),
    "tensordot": Case(cg.tensordot, ((2, 3, 4), (3, 4, 2))),
    "einsum": Case(lambda x, y: cg.einsum("bij,jk,bi->bk", x, y, x[..., 0]), ((2, 3, 4), (4, 5))),
    "conv1d": Case(lambda x, f: cg.conv1d(x, f, 2, 1), ((2, 2, 6), (3, 2, 3))),
    "conv2d": Case(lambda x, f: cg.conv2d(x, f, (2, 1), (1, 0, 2, 1), (1, 2)), ((2, 2, 5, 6), (3, 2, 3, 2))),
    "conv2d_in_groups": Case(lambda x, f: cg.conv2d(x, f, 1, 1, 1, 2), ((1, 4, 4, 4), (2, 2, 3, 3))),
    "conv3d": Case(lambda x, f: cg.conv3d(x, f), ((1, 2, 3, 3, 3), (2, 2, 2, 2, 2))),
    "conv_transpose1d": Case(lambda x, f: cg.conv_transpose1d(x, f, 2), ((1, 2, 4), (2, 3, 3))),
    "conv_transpose2d": Case(lambda x, f: cg.conv_transpose2d(x, f, 2, 1), ((1, 2, 3, 3), (2, 2, 3, 3))),
    "conv_transpose3d": Case(lambda x, f: cg.conv_transpose3d(x, f), ((1, 1, 2, 2, 2), (1, 2, 2, 2, 2))),
}
IMAGES = {
    "max_pool2d": Case(lambda x: cg.max_pool2d(x, 3, 2, 1), ((2, 2, 5, 5),)),
    "avg_pool2d": Case(lambda x: cg.avg_pool2d(x, 2, 2, 1), ((2, 2, 5, 5),)),
    "global_avg_pool": Case(cg.global_avg_pool, ((2, 2, 3, 3),)),
    "batch_norm": Case(cg.batch_norm, ((2, 3, 4), (3,), (3,), (3,), (3,)), 0.5),
    "batch_norm_training": Case(lambda x, s, t: cg.batch_norm_training(x, s, t)[0], ((4, 3, 2), (3,), (3,))),
    "layer_norm": Case(cg.layer_norm, ((3, 5), (5,), (5,))),
    "group_norm": Case(lambda x, s, t: cg.group_norm(x, s, t, 2), ((2, 4, 3), (4,), (4,))),
    "instance_norm": Case(cg.instance_norm, ((2, 3, 5), (3,), (3,))),
    "lrn": Case(lambda x: cg.lrn(x, 3, 0.5), ((2, 4, 3),)),
    "dropout": Case(lambda x: cg.dropout(x, KEY, 0.3) * x, ((3, 4),)),
}
MATRICES = {
    "inv": Case(lambda x: cg.inv(positive_definite(x)), ((2, 3, 3),)),
    "solve": Case(lambda x, b: cg.solve(positive_definite(x), b), ((3, 3), (3, 2))),
    "cholesky": Case(lambda x: cg.cholesky(positive_definite(x)), ((2, 3, 3),)),
    "det": Case(lambda x: cg.det(positive_definite(x)), ((2, 3, 3),), -1.0, 1.0),
    "slogdet": Case(lambda x: cg.slogdet(positive_definite(x))[1], ((3, 3),)),
    "qr": Case(lambda x: cg.concat([cg.ravel(part) for part in cg.qr(x)]), ((4, 3),)),
    "svd": Case(lambda x: cg.svd(x, full_matrices=False)[1], ((4, 3),)),
    "svd_of_all_parts": Case(lambda x: rebuilt(cg.svd(x, full_matrices=False)), ((4, 3),)),
    "eigh": Case(lambda x: cg.eigh(symmetric(x))[0], ((3, 3),)),
}


def rebuilt(parts: Any) -> Any:
    """A function of all parts of a decomposition that does not depend on the signs of vectors."""
    u, s, v = parts
    return (u * cg.sin(s)) @ v


CASES = POINTWISE | MOVES | REDUCTIONS | PRODUCTS | IMAGES | MATRICES
