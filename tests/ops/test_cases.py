"""Every op of `tests/ops/cases.py`: infer, kernels, overwriting, engine, gradients of first and second order."""

import zlib
from collections.abc import Iterator

import numpy as np
import pytest

import cgraph as cg
from cgraph.autodiff import gradient
from cgraph.engine.cpu.engine import CpuEngine
from cgraph.engine.cuda.engine import SIMULATED, CudaEngine
from cgraph.engine.reference import evaluate
from cgraph.errors import PlanError
from cgraph.ir.graph import OPS, Node, Op
from cgraph.ir.spec import Bundle, Spec
from cgraph.ir.traverse import post_order
from cgraph.kernels.kernel import Pointer, View
from cgraph.kernels.target import target_named
from cgraph.ops.family import Pointwise
from cgraph.ops.leaf import Var
from tests.ops.cases import CASES, Case, Draw
from tests.support.kernels import ORDERS, TARGETS
from tests.support.ops import computing, contiguous, kernel_result, own_views, scattered, values_of, work_of
from tests.support.tolerance import assert_close, largest, near

every_case = pytest.mark.parametrize("case", CASES, ids=str)
every_smooth_case = pytest.mark.parametrize("case", [c for c in CASES if c.smooth], ids=str)
every_twice_smooth_case = pytest.mark.parametrize("case", [c for c in CASES if c.smooth and c.twice], ids=str)
SLOW = pytest.mark.slow
STEP = 1e-5


class Drawn:
    """A row as a graph with values.

    Fields
        xs: a Var per draw; outputs: what the row builds; given: the Vars' values
    """

    def __init__(self, case: Case) -> None:
        self.rng = np.random.default_rng(zlib.crc32(str(case).encode()))
        self.xs = [Var(d.shape, d.dtype, f"x{i}") for i, d in enumerate(case.draws)]
        found = case.build(*self.xs)
        self.outputs = [found] if isinstance(found, Node) else list(found)
        self.given: dict[Node, np.ndarray] = {x: d.array(self.rng) for x, d in zip(self.xs, case.draws)}

    @property
    def floats(self) -> list[Var]:
        return [x for x in self.xs if x.dtype.kind in "fc"]

    def total(self) -> Node:
        """A number that depends on both parts of every float output, each element with a weight of its own."""
        floats = [part for y in self.outputs if y.dtype.kind in "fc" for part in parts_of(y)]
        parts = [cg.sum(y * self.rng.uniform(0.5, 1.5, y.shape)) for y in floats]
        return sum(parts[1:], parts[0])

    def directions(self) -> dict[Var, np.ndarray]:
        return {x: Draw(x.shape, str(x.dtype), -1, 1).array(self.rng) for x in self.floats}

    def moved(self, along: dict[Var, np.ndarray], step: float) -> dict[Node, np.ndarray]:
        return self.given | {x: self.given[x] + step * d for x, d in along.items()}


def nodes_of(drawn: Drawn, smooth: bool) -> list[Node]:
    """The outputs, and the gradients for every float operand."""
    return [*drawn.outputs, *(gradient(drawn.total(), drawn.floats) if smooth and drawn.floats else [])]


def parts_of(y: Node) -> list[Node]:
    return [cg.real(y), cg.imag(y)] if y.dtype.kind == "c" else [y]


@pytest.fixture(autouse=True)
def quiet(capsys):
    """What `lazy_print` writes stays inside."""


@every_case
def test_infer_agrees_with_meaning(case):
    drawn = Drawn(case)
    values_of(nodes_of(drawn, case.smooth), drawn.given)


@every_case
def test_kernels_equal_meaning_whatever_the_order_of_tasks(case):
    drawn = Drawn(case)
    known = values_of(nodes_of(drawn, case.smooth), drawn.given)
    for node in computing(known):
        xs = [contiguous(known[x]) for x in node.operands]
        results = [kernel_result(node, xs, order) for order in ORDERS]
        for got, *others, want in zip(*results, results_of(known[node])):
            assert_close(got, want, case.scale, terms_of(node, xs, want))
            for other in others:
                assert got.tobytes() == other.tobytes(), node


@every_case
@pytest.mark.parametrize("name", TARGETS)
def test_every_target_asks_for_the_workspace_that_it_uses(case, name):
    drawn, target = Drawn(case), target_named(name)
    known = values_of(nodes_of(drawn, case.smooth), drawn.given)
    for node in computing(known):
        if name != "host":
            got = kernel_result(node, [contiguous(known[x]) for x in node.operands], "all", target=target)
            for one, want in zip(got, results_of(known[node])):
                assert_close(one, want, case.scale, terms_of(node, [known[x] for x in node.operands], want))
        work, out, xs = work_of(node, target), own_views(node), [own_views(x) for x in node.operands]
        nbytes = work.needs(out, xs)
        assert nbytes <= work.nbytes
        if nbytes:
            with pytest.raises(PlanError, match="workspace"):
                work.placed(out, tuple(xs), View(Pointer("arena"), (nbytes - 1,), (1,), "u1"))


@every_case
def test_kernels_read_operands_of_any_strides(case):
    drawn = Drawn(case)
    known = values_of(nodes_of(drawn, case.smooth), drawn.given)
    for node in computing(known):
        if not work_of(node).strided or any(isinstance(x.spec, Bundle) for x in node.operands):
            continue
        got = kernel_result(node, [scattered(known[x]) for x in node.operands], "all")
        for one, want in zip(got, results_of(known[node])):
            assert_close(one, want, case.scale, terms_of(node, [known[x] for x in node.operands], want))


@every_case
def test_a_result_may_take_the_bytes_that_it_has_permission_for(case):
    drawn = Drawn(case)
    known = values_of(nodes_of(drawn, case.smooth), drawn.given)
    for node in computing(known):
        for i in work_of(node).overwrites:
            xs = [contiguous(known[x]) for x in node.operands]
            want = kernel_result(node, xs, "all")[0]
            out = xs[i].reshape(-1).view(np.uint8).view(node.dtype).reshape(node.shape)
            shared = kernel_result(node, [*xs[:i], xs[i], *xs[i + 1 :]], "reverse", out)[0]
            assert shared.tobytes() == want.tobytes(), (node, i)


@every_case
@pytest.mark.parametrize("single", [False, True], ids=["float64", "float32"])
def test_compiled_equals_reference_in_poison_mode_on_any_number_of_threads(case, single):
    drawn = Drawn(case.in_float32() if single else case)
    outputs = nodes_of(drawn, case.smooth)
    given = [drawn.given[x] for x in drawn.xs]
    with np.errstate(all="ignore"):
        want = evaluate(outputs, drawn.given)
    more = 2 + (CASES.index(case) + single) % 2  # each row and each precision meets both, each pair of them one
    runs = [cg.compile(outputs, drawn.xs, engine=CpuEngine(threads=n, poison=True))(*given) for n in (1, more)]
    for got, *others, expected in zip(*runs, want):
        assert_close(got, expected, case.scale)
        for other in others:
            assert got.tobytes() == other.tobytes()


@pytest.mark.parametrize("case", [pytest.param(c, marks=SLOW if i % 8 else ()) for i, c in enumerate(CASES)], ids=str)
def test_a_simulated_gpu_equals_reference_in_poison_mode(case):
    drawn = Drawn(case.in_float32())
    outputs = nodes_of(drawn, case.smooth)
    with np.errstate(all="ignore"):
        want = evaluate(outputs, drawn.given)
    in_blocks = cg.compile(outputs, drawn.xs, engine=CudaEngine(SIMULATED, poison=True))
    functions = [in_blocks]
    if any(kernel.is_block for kernel in in_blocks.program.code.compiled_kernels):
        functions.append(cg.compile(outputs, drawn.xs, engine=CudaEngine(SIMULATED, poison=True, blocks=False)))
    for function in functions:
        for got, expected in zip(function(*(drawn.given[x] for x in drawn.xs)), want):
            assert_close(got, expected, case.scale)


@every_smooth_case
def test_gradients_agree_with_differences(case):
    drawn = Drawn(case)
    y, along = drawn.total(), drawn.directions()
    assert_slope(drawn, y, slope_of(y, along), along)


@every_twice_smooth_case
def test_second_gradients_agree_with_differences(case):
    drawn = Drawn(case)
    along, other = drawn.directions(), drawn.directions()
    slope = slope_of(drawn.total(), along)
    assert_slope(drawn, slope, slope_of(slope, other), other)


def slope_of(y: Node, along: dict[Var, np.ndarray]) -> Node:
    """The slope of `y` in a direction, by its gradients: dy/dx - i dy/dy for complex operands, times the direction."""
    found = gradient(y, list(along))
    return sum(cg.sum(cg.real(g * d)) for g, d in zip(found, along.values()))


def assert_slope(drawn: Drawn, y: Node, slope: Node, along: dict[Var, np.ndarray]) -> None:
    """The slope of `y` in a direction is the central difference."""
    with np.errstate(all="ignore"):
        after, before = (float(evaluate([y], drawn.moved(along, s))[0]) for s in (STEP, -STEP))
        found, value = (float(v) for v in evaluate([slope, y], drawn.given))
    assert found == near((after - before) / (2 * STEP), "central differences of a sum", 1 + abs(value))


def results_of(value: np.ndarray | tuple[np.ndarray, ...]) -> list[np.ndarray]:
    return [np.asarray(v) for v in value] if isinstance(value, tuple) else [np.asarray(value)]


def every_op(base: type = Op) -> Iterator[type]:
    for op in base.__subclasses__():
        yield op
        yield from every_op(op)


NAMED = {"arange", "astype-complex", "astype-float", "cumprod", "digitize", "eye", "prod"}
"""Rows that name a dtype, and one of integers beside bins of float64."""


def test_rows_of_float32_compute_in_float32_throughout():
    wide = (np.dtype("float64"), np.dtype("complex128"))
    rows = [case for case in CASES if any(np.dtype(d.dtype) in wide for d in case.draws)]
    nodes = [(str(case), x) for case in rows for x in post_order(Drawn(case.in_float32()).outputs)]
    assert {row for row, x in nodes if any(spec.dtype in wide for spec in specs_of(x))} == NAMED


def specs_of(node: Node) -> tuple[Spec, ...]:
    return node.spec.specs if isinstance(node.spec, Bundle) else (node.spec,)


def test_every_public_function_has_a_row():
    named = {name for name, function in OPS.items() if function.__module__.startswith("cgraph.ops.")}
    missing = named - {case.op for case in CASES}
    assert not missing, f"no row in tests/ops/cases.py for {sorted(missing)}"


LOGICAL = "cgraph.ops."
BELOW_LOWERING = ("cgraph.ops.physical.", "cgraph.ops.fused")
WITHOUT_ROWS = {
    "Contiguous",
    "Prefix",
    "KnownFixedProduct",
    "SingularValues",
    "TallSvd",
    "TreeSums",
}  # made by readers and passes, with tests of their own


def test_every_op_is_in_a_graph_of_some_row():
    seen = set()
    for case in CASES:
        drawn = Drawn(case)
        seen.update(type(node.op) for node in post_order(nodes_of(drawn, case.smooth)))
    wanted = {
        op for op in every_op()
        if op.__module__.startswith(LOGICAL) and not op.__module__.startswith(BELOW_LOWERING)
        and not op.__subclasses__() and op.__name__ not in WITHOUT_ROWS
    }  # fmt: skip
    missing = wanted - seen
    assert not missing, f"no row in tests/ops/cases.py makes {sorted(op.__name__ for op in missing)}"


SUMS = {"Sum", "Matmul", "Conv1d", "Conv2d", "Conv3d"}  # of products of operands: of magnitudes they are the terms


def terms_of(node: Node, operands: list, want: np.ndarray) -> np.ndarray | float:
    """What may cancel in each element of a node's result, by its operands."""
    arrays = [x for x in operands if isinstance(x, np.ndarray) and x.dtype.kind in "fc"]
    if type(node.op).__name__ in SUMS and len(arrays) == len(operands):
        return np.abs(np.asarray(node.op.meaning(*map(np.abs, arrays))))
    if isinstance(node.op, Pointwise) and want.dtype.kind == "f" and all(np.isfinite(x).all() for x in arrays):
        return np.max([np.broadcast_to(np.abs(x), want.shape) for x in (*arrays, want)], axis=0)
    return largest(want, *arrays)
