"""Options of the standard's functions: one call of each, with arrays of both packages, and one without each option."""

import ast
import inspect
from typing import Any

import numpy as np
import pytest

import cgraph as cg
from cgraph.errors import CgraphError
from tests.support.tolerance import assert_close

xp = cg.array_api
rng = np.random.default_rng(3)
OPERANDS = {
    "x": rng.normal(size=(3, 4, 5)),
    "y": rng.normal(size=(3, 4, 5)),
    "i": rng.integers(-3, 4, (3, 4)),
    "b": rng.normal(size=(3, 4)) > 0.3,
    "row": np.array([3.0, 1, 2, 2]),
    "M": rng.normal(size=(4, 6)),
    "S": np.eye(3) * 4 + 1.5,
    "z": rng.normal(size=(3, 4)) + 1j * rng.normal(size=(3, 4)),
}
CALLS = """
xp.all(b, axis=1, keepdims=True)
xp.any(b, axis=1, keepdims=True)
xp.arange(2, stop=11, step=3, dtype=xp.float32)
xp.argmax(x, axis=1, keepdims=True)
xp.argmin(x, axis=1, keepdims=True)
xp.argsort(x, axis=0, descending=True)
xp.asarray([1, 2], dtype=xp.float32)
xp.clip(x, min=-0.5, max=0.25)
xp.concat([x, y], axis=2)
xp.count_nonzero(i, axis=1, keepdims=True)
xp.cumulative_prod(i, axis=1, dtype=xp.float64, include_initial=True)
xp.cumulative_sum(i, axis=0, dtype=xp.float64, include_initial=True)
xp.diff(x, axis=1, n=2, prepend=y[:, :1], append=y[:, 2:])
xp.expand_dims(x, axis=1)
xp.eye(3, 5, k=2, dtype=xp.float32)
xp.flip(x, axis=1)
xp.full((2, 3), 5, dtype=xp.float32)
xp.full_like(x, 5, dtype=xp.float32)
xp.isin(i, xp.asarray([1, 2]), invert=True)
xp.linspace(0, 3, 7, dtype=xp.float32, endpoint=False)
xp.max(x, axis=1, keepdims=True)
xp.mean(x, axis=1, keepdims=True)
xp.meshgrid(row, row + 1, indexing="ij")[0]
xp.min(x, axis=1, keepdims=True)
xp.ones((2, 3), dtype=xp.float32)
xp.ones_like(x, dtype=xp.float32)
xp.prod(i, axis=1, dtype=xp.float64, keepdims=True)
xp.repeat(x, 2, axis=1)
xp.roll(x, 2, axis=1)
xp.searchsorted(row, row, side="right", sorter=xp.asarray([1, 2, 3, 0]))
xp.sort(x, axis=0, descending=True)
xp.squeeze(x[:, :1, :], axis=1)
xp.stack([x, y], axis=2)
xp.std(x, axis=1, correction=1.5, keepdims=True)
xp.sum(i, axis=1, dtype=xp.float64, keepdims=True)
xp.take(x, xp.asarray([2, 0]), axis=1)
xp.take_along_axis(x, xp.asarray([[[1, 3, 0, 2, 2]]]), axis=1)
xp.tensordot(x, y, axes=((0, 1), (0, 1)))
xp.tril(M, k=1)
xp.triu(M, k=-1)
xp.unstack(x, axis=1)[2]
xp.var(x, axis=1, correction=1.5, keepdims=True)
xp.vecdot(x, y, axis=1)
xp.zeros((2, 3), dtype=xp.float32)
xp.zeros_like(x, dtype=xp.float32)
xp.linalg.cholesky(S, upper=True)
xp.linalg.cross(x[:, :3], y[:, :3], axis=1)
xp.linalg.diagonal(x, offset=1)
xp.linalg.matrix_norm(x, keepdims=True, ord=1)
xp.linalg.matrix_rank(S, rtol=0.5)
xp.linalg.pinv(S, rtol=0.5)
xp.linalg.qr(x[0].T, mode="complete")[1]
xp.linalg.svd(M, full_matrices=False)[2].shape
xp.linalg.tensordot(x, y, axes=((0, 1), (0, 1)))
xp.linalg.trace(x, offset=1)
xp.linalg.trace(i, dtype=xp.float64)
xp.linalg.vecdot(x, y, axis=1)
xp.linalg.vector_norm(x, axis=1, keepdims=True, ord=1)
xp.fft.fft(z, n=6, axis=0, norm="ortho")
xp.fft.ifft(z, n=6, axis=0, norm="ortho")
xp.fft.fftn(z, s=(2, 3), axes=(1, 0), norm="ortho")
xp.fft.ifftn(z, s=(2, 3), axes=(1, 0), norm="ortho")
xp.fft.rfft(x, n=6, axis=1, norm="ortho")
xp.fft.irfft(z, n=5, axis=0, norm="ortho")
xp.fft.rfftn(x, s=(2, 3), axes=(1, 0), norm="ortho")
xp.fft.irfftn(z, s=(2, 3), axes=(1, 0), norm="ortho")
xp.fft.hfft(z, n=5, axis=0, norm="ortho")
xp.fft.ihfft(x, n=6, axis=1, norm="ortho")
xp.fft.fftfreq(6, d=0.5)
xp.fft.rfftfreq(6, d=0.5)
xp.fft.fftshift(x, axes=1)
xp.fft.ifftshift(x, axes=1)
""".strip().split("\n")
LIKE_NUMPY = {  # what NumPy has under another form
    "xp.argsort(x, axis=0, descending=True)": "np.argsort(-x, axis=0)",
    "xp.sort(x, axis=0, descending=True)": "-np.sort(-x, axis=0)",
}


def value(call: str | ast.Expression, is_standard: bool = True) -> Any:
    """The value of a call with arrays of the standard's namespace, or with NumPy's."""
    names = {name: xp.asarray(x) if is_standard else x for name, x in OPERANDS.items()}
    code = call if isinstance(call, str) else compile(call, "a call of the table", "eval")
    found = eval(code, {"xp": xp if is_standard else np, "np": np, **names})
    return found if isinstance(found, tuple) else np.asarray(found)


@pytest.mark.parametrize("call", CALLS)
def test_a_call_gives_what_numpys_gives(call):
    got, want = value(call), value(LIKE_NUMPY.get(call, call), is_standard=False)
    assert getattr(got, "dtype", None) == getattr(want, "dtype", None)
    assert_close(np.asarray(got), np.asarray(want), 1e3)


@pytest.mark.parametrize("call", CALLS)
def test_each_option_of_a_call_matters(call):
    want = value(call)
    for i in range(len(keywords(ast.parse(call, mode="eval")))):
        tree = ast.parse(call, mode="eval")
        name = keywords(tree).pop(i).arg
        try:
            other = value(tree)
        except (CgraphError, TypeError, ValueError):
            continue
        is_same = getattr(other, "dtype", None) == getattr(want, "dtype", None) and np.array_equal(other, want)
        assert not is_same, f"{call}: {name} has no effect"


def keywords(tree: ast.AST) -> list[ast.keyword]:
    """The options of the outermost call that has some."""
    return next(x for x in ast.walk(tree) if isinstance(x, ast.Call) and x.keywords).keywords


UNPASSED = {
    "where an array lies": "asarray.copy astype.copy from_dlpack.copy reshape.copy",
    "without effect: every sort is stable": "argsort.stable sort.stable",
    "contents are not defined": "empty.dtype empty_like.dtype",
    "passed by position": "eye.n_cols",
    "the test above, since NumPy has none": "fft.fftfreq.dtype fft.rfftfreq.dtype",
}


def test_frequencies_have_the_dtype_that_is_asked_for():
    for name in ("fftfreq", "rfftfreq"):
        found = getattr(xp.fft, name)(6, d=0.5, dtype=xp.float32)
        assert found.dtype == xp.float32
        assert_close(np.asarray(found), getattr(np.fft, name)(6, 0.5).astype("float32"), 4)


def test_every_option_of_the_standards_functions_is_passed_by_some_call():
    """An option that no call passes could be forgotten on its way and no test would see it."""
    calls = [x for call in CALLS for x in ast.walk(ast.parse(call)) if isinstance(x, ast.Call)]
    passed = {f"{ast.unparse(x.func)}.{y.arg}" for x in calls for y in x.keywords}
    unpassed = set()
    for owner, module in (("xp", xp), ("xp.linalg", xp.linalg), ("xp.fft", xp.fft)):
        for name in (x for x in dir(module) if not x.startswith("_") and callable(getattr(module, x))):
            function = getattr(module, name)
            if inspect.isclass(function) or name not in dir(np if owner == "xp" else getattr(np, owner[3:])):
                continue
            for x in inspect.signature(function).parameters.values():
                if x.default is not x.empty and x.name != "device" and f"{owner}.{name}.{x.name}" not in passed:
                    unpassed.add(f"{owner}.{name}.{x.name}".removeprefix("xp."))
    assert unpassed == {x for names in UNPASSED.values() for x in names.split()}
