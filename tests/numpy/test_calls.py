"""Every call of the table gives with nodes what it gives with arrays, or is refused with something that exists."""

import ast
import inspect
import re
from operator import attrgetter

import numpy as np
import pytest

import cgraph as cg
from cgraph.errors import CgraphError, NoGradientError
from tests.numpy.calls import AREAS, CALLS, REFUSED, operands
from tests.numpy.evaluated import assert_same, called, nodes, values
from tests.support.tolerance import assert_near


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("call", CALLS)
def test_nodes_give_what_numpy_gives(call, dtype):
    want = called(call, operands(dtype))
    got = values(called(call, nodes(dtype)))
    assert len(got) == len(want)
    for x, y in zip(got, want):
        assert_same(x, y, dtype)


@pytest.mark.slow
@pytest.mark.parametrize("area", AREAS)
def test_kernels_give_what_numpy_gives(area):
    names, arrays = nodes(), operands()
    mine = AREAS[area]
    found = [called(c, names) for c in mine]
    got = iter(values([x for part in found for x in part], "cpu"))
    for call, part in zip(mine, found):
        for want in called(call, arrays):
            assert_same(next(got), want)
        assert len(part) == len(called(call, arrays)), call


@pytest.mark.parametrize("call", REFUSED)
def test_what_is_refused_names_what_exists(call):
    names = nodes()
    names |= {"node": names["a"] > 0.5, "counts": names["i"]}
    with pytest.raises(CgraphError) as caught:
        called(call, names)
    text = str(caught.value)
    for owner, path in re.findall(r"\b(np|cg|x)\.([a-zA-Z0-9_.]+)", text):
        root = {"np": np, "cg": cg, "x": names["a"]}[owner]
        parts = path.rstrip(".").split(".")[: 1 if owner == "x" else None]  # what follows .eval() is an array's
        assert attrgetter(".".join(parts))(root) is not None, f"{text}: there is no {owner}.{path}"
    assert re.search(r"\buse\b|\.item\(\)|\.eval\(\)|makes another", text), text


STEPS = (
    "gap|float32|floor|ceil|trunc|fix|rint|round|sign|mod|div|spacing|nextafter|frexp|view|astype|isin|//|%|dtype=int"
)
"""Of calls whose results go in steps, or are not finite."""


WITHOUT_GRADIENT = {
    'abs(np.linalg.qr(M[:, :2], "complete").R)': "complete=False",
}
"""Calls that change smoothly and have no gradient all the same, and what the refusal names in their place."""


def smooth_calls() -> list[str]:
    """Calls of the floats `a`, `M`, `C` or `P` that change smoothly near where they are."""
    return [c for c in CALLS if re.search(r"\b(a|M|P|C)\b", c) and not re.search(STEPS, c)]


def gradients_of(call: str, names: dict[str, cg.Node], rng: np.random.Generator) -> tuple[list, list, list]:
    """The operands that a call moves, the gradient of a sum of its numbers for each, and the sum's weights."""
    numbers = [x for x in called(call, names) if isinstance(x, cg.Node)]
    found = [part for x in numbers for part in real_parts(x, cg.real, cg.imag)]
    weights = [rng.normal(size=x.shape) for x in found]
    moved = [names[n] for n in "aMPC" if re.search(rf"\b{n}\b", call)]
    if not found:
        return [], [], []
    return moved, cg.gradient(cg.sum(cg.concat([cg.ravel(x * w) for x, w in zip(found, weights)])), moved), weights


def real_parts(x, real, imag) -> list:
    """A real number itself, of a complex one both parts, of others none."""
    if x.dtype.kind == "c":
        return [real(x), imag(x)]
    return [x] if x.dtype.kind == "f" else []


@pytest.mark.parametrize("call", [c for c in smooth_calls() if c not in WITHOUT_GRADIENT])
def test_gradients_are_those_of_numpys_function_by_differences(call):
    names, arrays = nodes(), operands()
    rng = np.random.default_rng(1)
    moved, gradients, weights = gradients_of(call, names, rng)
    for x, slope in zip(moved, values(list(gradients)), strict=True):
        way = rng.normal(size=x.shape)
        way = way + way.T if x.name == "P" else way

        def along(step: float, x=x, way=way) -> float:
            results = map(np.asarray, called(call, arrays | {x.name: arrays[x.name] + step * way}))
            floats = [part for r in results for part in real_parts(r, np.real, np.imag)]
            return float(sum((np.nan_to_num(r) * w).sum() for r, w in zip(floats, weights)))

        want = (along(1e-6) - along(-1e-6)) / 2e-6
        assert_near((slope * way).sum(), want, "float32 small networks")


@pytest.mark.parametrize("call", WITHOUT_GRADIENT)
def test_the_calls_without_a_gradient_are_these_and_say_what_has_one(call):
    assert call in smooth_calls()
    with pytest.raises(NoGradientError, match=WITHOUT_GRADIENT[call]):
        gradients_of(call, nodes(), np.random.default_rng(1))


UNCALLED = {
    "functions that read no node": """arange.dtype array.dtype array.ndmin asanyarray.dtype asarray.dtype
        ascontiguousarray.dtype asfortranarray.dtype can_cast.casting einsum_path.optimize einsum_path.einsum_call
        empty.dtype empty_like.dtype empty_like.shape full.dtype identity.dtype ones.dtype zeros.dtype""",
    "where results lie, which nodes do not decide": """astype.copy nanpercentile.overwrite_input
        nanquantile.overwrite_input percentile.overwrite_input quantile.overwrite_input reshape.copy""",
    "refused, or NumPy refuses it": """einsum.dtype histogram_bin_edges.weights polyfit.cov
        polyfit.full real_if_close.tol""",
}
"""Options of functions that no call of the table passes."""


def options_in_calls() -> dict[str, tuple[set[str], int]]:
    """For each function the keywords of its calls, and the most arguments that one of them passes by position."""
    table: dict[str, tuple[set[str], int]] = {}
    for node in (x for call in CALLS for x in ast.walk(ast.parse(call))):
        if isinstance(node, ast.Call):
            words, count = table.get(ast.unparse(node.func), (set(), 0))
            table[ast.unparse(node.func)] = words | {x.arg for x in node.keywords if x.arg}, max(count, len(node.args))
    return table


def test_every_option_of_every_function_is_passed_by_some_call():
    """An option that no call passes could be forgotten on its way and no test would see it."""
    table, uncalled = options_in_calls(), set()
    for owner, module in (("np", cg.numpy), ("np.linalg", cg.numpy.linalg), ("np.fft", cg.numpy.fft)):
        for name, function in inspect.getmembers(module, inspect.isfunction):
            if name.startswith("_") or not hasattr(attrgetter(owner[3:])(np) if owner[3:] else np, name):
                continue
            words, count = table.get(f"{owner}.{name}", (set(), 0))
            for i, x in enumerate(inspect.signature(function).parameters.values()):
                is_passed = x.name in words or (x.kind is not x.KEYWORD_ONLY and i < count)
                if x.default is not x.empty and not is_passed:
                    uncalled.add(f"{owner}.{name}.{x.name}".removeprefix("np."))
    assert uncalled == {x for names in UNCALLED.values() for x in names.split()}
