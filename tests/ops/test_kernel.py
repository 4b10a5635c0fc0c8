"""Users' own functions as ops: which become ops, what a compiled one may not do, names, threads, incremental runs."""

import math
import subprocess
import sys
from math import atan2
from pathlib import Path

import numpy as np
import pytest

import cgraph as cg
from cgraph.engine.cpu.engine import CpuEngine
from cgraph.engine.cuda.engine import SIMULATED, CudaEngine
from cgraph.errors import EngineError, GraphError, NoGradientError, NoKernelError, ShapeError
from cgraph.ir.spec import Spec
from cgraph.ir.traverse import post_order
from cgraph.kernels.user_function import user_function
from cgraph.ops.fused import FusedPointwise
from cgraph.ops.kernel import MOST_OPS, EachNumber
from cgraph.passes.fuse_pointwise import fuse_pointwise
from tests.support.kernels import TARGETS
from tests.support.tolerance import assert_near

ROOT = Path(__file__).parents[2]
ENGINES = ("cpu", "cuda-sim", "reference")
every_engine = pytest.mark.parametrize("engine", ENGINES)
FACTOR = 2.0


def draw(*shape, dtype="float32"):
    return np.random.default_rng(0).uniform(-2, 2, shape).astype(dtype)


def soft(x, limit):
    return x - limit if x > limit else (x + limit if x < -limit else x * 0)


def soft_of_one(x):
    return x - 1.0 if x > 1.0 else x * 0.5


def row_sums(task, out, x):
    out[task] = 0
    for j in range(x.shape[1]):
        out[task] += x[task, j]


sums = cg.kernel(row_sums, out=lambda x: ((x.shape[0],), x.dtype), tasks=lambda x: x.shape[0])


def is_compiled(node):
    return any(isinstance(x.op, EachNumber) for x in post_order([node]))


# -- values -----------------------------------------------------------------------------------------------------------


@every_engine
def test_operands_are_broadcast_and_take_one_dtype(engine):
    x, limit = cg.Var((3, 4), "int32", "x"), cg.Var((4,), "float64", "limit")
    y = cg.kernel(soft)(x, limit)
    assert y.shape == (3, 4) and y.dtype == np.float64 and is_compiled(y)
    a, b = np.arange(-6, 6, dtype="i4").reshape(3, 4), np.array([0, 0.5, 1, 9])
    want = np.sign(a) * np.maximum(abs(a) - b, 0)
    np.testing.assert_array_equal(cg.compile(y, [x, limit], engine=engine)(a, b), want)


@every_engine
def test_operands_of_any_strides_and_empty_ones(engine):
    x = cg.Var((6, 5), name="x")
    f = cg.compile([cg.kernel(soft)(x[::-2, 1:].T, 0.5), cg.kernel(soft)(x[:0], 1), sums(x[:, ::-1])], x, engine=engine)
    a = draw(6, 5)
    one, none, total = f(a)
    b = a[::-2, 1:].T
    assert_near(one, np.sign(b) * np.maximum(abs(b) - np.float32(0.5), 0), "float32 formulas")
    assert none.shape == (0, 5)
    assert_near(total, a.sum(1), "float32 sums near zero")


@pytest.mark.parametrize("name", TARGETS)
def test_every_target_and_number_of_threads_gives_the_same_bits(name):
    x = cg.Var((700, 130), "float64", "x")
    node = cg.kernel(lambda x: math.exp(-x) if x > 0 else math.sin(x) % 0.3)(x)
    runs = [cg.compile(node, x, engine=CpuEngine(name, n, poison=True))(draw(700, 130, dtype="f8")) for n in (1, 2, 3)]
    assert runs[0].tobytes() == runs[1].tobytes() == runs[2].tobytes()


def test_a_simulated_gpu_has_the_bits_of_the_processor_number_by_number():
    x = cg.Var((500,), name="x")
    node = cg.kernel(lambda x: math.exp(x) + math.tanh(x) if x > 0 else math.log(-x) * (x % 0.3))(x)
    assert is_compiled(node)
    here, there = (cg.compile(node, x, engine=e)(draw(500)) for e in ("cpu", "cuda-sim"))
    np.testing.assert_array_equal(here, there)


def test_only_what_depends_on_a_changed_var_runs_again():
    a, b = (cg.Var((40, 30), name=n).assign(draw(40, 30)) for n in "ab")
    f = cg.compile(sums(a) * sums(b), changing=[b])
    f()
    b.assign(np.ones((40, 30), "f4"))
    assert_near(f(), draw(40, 30).sum(1) * 30, "float32 long sums")


def test_a_result_takes_the_bytes_of_its_operand():
    x, kernel = cg.Var((100, 64), name="x"), cg.kernel(soft)
    f = cg.compile(kernel(kernel(cg.exp(x), 0.5), 0.25), x)
    assert f.nbytes == 100 * 64 * 4
    want = np.maximum(np.exp(draw(100, 64)) - np.float32(0.75), 0)
    assert_near(f(draw(100, 64)), want, "float32 sums near zero")


# -- functions that become ops ----------------------------------------------------------------------------------------


def test_a_function_without_branches_becomes_one_op_with_its_neighbours():
    x = cg.Var((3, 5), name="x")
    y = cg.kernel(lambda x, y: FACTOR * math.exp(-x * x) + np.sqrt(abs(y)))(x, 0.5) * 3 + 1
    assert not is_compiled(y)
    fused = fuse_pointwise((y,))[0]
    assert isinstance(fused.op, FusedPointwise) and x in fused.operands
    a = draw(3, 5)
    want = (2 * np.exp(-a * a) + np.sqrt(np.float32(0.5))) * 3 + 1
    assert_near(cg.compile(y, x)(a), want, "float32 sums")
    assert_near(cg.gradient(cg.sum(y), x).shape, (3, 5), "float64 through float32")


@pytest.mark.parametrize(
    "function",
    [
        lambda x: x - x.mean(),
        lambda x: x.sum(),
        lambda x: x[0],
        lambda x: x.T,
        lambda x: max(x, 0),
        lambda x: x if 0 < x < 1 else -x,
        lambda x: float(x),
        lambda x: math.floor(x),
    ],
)
def test_what_is_more_than_pointwise_does_not_become_ops(function):
    assert is_compiled(cg.kernel(function)(cg.Var((3, 4), name="x")))


def test_a_long_loop_is_compiled_and_a_short_one_unrolled():
    def power(count):
        def function(x):
            y = x
            for _ in range(count):
                y = y * x
            return y

        return cg.kernel(function)

    x = cg.Var((5,), "float64", "x")
    assert not is_compiled(power(3)(x)) and is_compiled(power(100)(x))
    a = 1 + draw(5, dtype="f8") / 100
    assert_near(cg.compile([power(3)(x), power(100)(x)], x)(a), [a**4, a**101], "float64 formulas")


# -- gradients --------------------------------------------------------------------------------------------------------


def test_a_compiled_kernel_without_a_gradient_says_so():
    x = cg.Var((3, 4), name="x")
    with pytest.raises(NoGradientError, match="soft"):
        cg.gradient(cg.sum(cg.kernel(soft)(x, 0.5)), x)
    with pytest.raises(NoGradientError, match="row_sums"):
        cg.gradient(cg.sum(sums(x)), x)


def cube(x, factor):
    return factor * x**3 if x < 9 else x


def cubes(task, out, x, factor):
    out[task] = factor[task] * x[task] ** 3


def cube_gradient(g, y, x, factor):
    return 3 * g * y / x, g * y / factor


@pytest.mark.parametrize("each", [
    cg.kernel(cube, grad=cube_gradient),
    cg.kernel(cubes, grad=cube_gradient, out=lambda x, _: x, tasks=lambda x, _: x.shape[0]),
], ids=["numbers", "arrays"])  # fmt: skip
def test_gradients_that_read_the_result_have_gradients_for_each_operand(each):
    x, factor = (cg.Var((3,), "float64", name) for name in ("x", "factor"))
    first = [cg.gradient(cg.sum(each(x, factor)), v) for v in (x, factor)]
    second = [cg.gradient(cg.sum(y), v) for y in first for v in (x, factor)]
    third = cg.gradient(cg.sum(second[0]), x)
    a, b = np.array([1.0, 2, -3]), np.array([2.0, 3, 5])
    got = cg.compile([*first, *second, third], [x, factor])(a, b)
    want = [3 * b * a**2, a**3, 6 * b * a, 3 * a**2, 3 * a**2, 0 * a, 6 * b]
    for one, other in zip(got, want, strict=True):
        assert_near(one, other, "float64 formulas")


def test_a_gradient_that_does_not_fit_is_refused():
    x = cg.Var((3, 4), name="x")
    for wrong in (lambda g, y, x, limit: g, lambda g, y, x, limit: (cg.sum(g), None)):
        with pytest.raises(ShapeError, match="gradient"):
            cg.gradient(cg.sum(cg.kernel(soft, grad=wrong)(x, 0.5)), x)


# -- what kernels cannot ----------------------------------------------------------------------------------------------


def raises(task, out, x):
    if x[task] < 0:
        raise ValueError("negative")
    out[task] = x[task]


def makes_an_array(task, out, x):
    out[task] = np.sort(x)[0]


def prints(task, out, x):
    print(x[task])  # noqa: T201
    out[task] = 0


def writes_an_operand(task, out, x):
    x[task] = 0
    out[task] = 0


def makes_a_list(task, out, x):
    found = [x[task]]
    for i in range(task):
        found.append(x[i])
    out[task] = len(found)


def calls_itself(task, out, x):
    out[task] = factorial(5)


def factorial(n):
    return 1 if n < 2 else n * factorial(n - 1)


def is_misspelt(task, out, x):
    out[task] = math.sinn(x[task])


@pytest.mark.parametrize("engine", ["cpu", "cuda-sim"])
@pytest.mark.parametrize(
    "function, text",
    [
        (raises, "raises exceptions"),
        (makes_an_array, "allocates arrays"),
        (prints, "uses Python objects"),
        (writes_an_operand, "is not code that Numba compiles.*readonly array"),
        (makes_a_list, "allocates arrays, lists or text"),
        (calls_itself, "is not code that Numba compiles"),
        (is_misspelt, "is not code that Numba compiles.*sinn"),
    ],
    ids=lambda x: getattr(x, "__name__", ""),
)
def test_what_a_kernel_cannot_do_is_refused_by_name(function, text, engine):
    x = cg.Var((8,), name="x")
    node = cg.kernel(function, out=lambda x: x, tasks=lambda x: 8)(x)
    with pytest.raises(NoKernelError, match=rf"(?s)kernel {function.__name__} \(test_kernel.py:\d+\).*({text})"):
        cg.compile(node, x, engine=engine)


def test_a_function_that_returns_no_number_is_refused():
    with pytest.raises(NoKernelError, match="returns .*, which is not a number"):
        cg.compile(cg.kernel(lambda x: (x, x) if x > 0 else (x, -x))(cg.Var((3,), name="x")))


def test_a_kernel_is_a_plain_function_with_both_of_out_and_tasks():
    with pytest.raises(GraphError, match="plain Python function"):
        cg.kernel(np.sin)
    with pytest.raises(GraphError, match="(out|tasks)= is missing"):
        cg.kernel(row_sums, tasks=lambda x: 3)
    with pytest.raises(ShapeError, match="row_sums: tasks returned -1"):
        cg.kernel(row_sums, out=lambda x: x, tasks=lambda x: -1)(cg.Var((2, 3)))


@pytest.mark.parametrize("place, text", [("task + 1", "outside every allocation"), ("task // 2", "race")])
def test_the_simulated_gpu_finds_tasks_that_write_where_they_must_not(place, text):
    scope = {}
    exec(f"def wrong(task, out, x):\n    out[{place}] = x[task]", scope)
    x = cg.Var((64,), name="x")
    node = cg.kernel(scope["wrong"], out=lambda x: x, tasks=lambda x: 64)(x)
    with pytest.raises(EngineError, match=rf"wrong at test_kernel.py:\d+.*{text}"):
        cg.compile(node, x, engine=CudaEngine(SIMULATED, check=True))(draw(64))


def test_plain_python_finds_positions_outside_and_operands_that_are_written():
    x = cg.Var((8,), name="x")
    for function, error in ((writes_an_operand, ValueError), (lambda task, out, x: out[task + 1], IndexError)):
        node = cg.kernel(function, out=lambda x: x, tasks=lambda x: 8)(x)
        with pytest.raises(error):
            cg.compile(node, x, engine="reference")(draw(8))


# -- names ------------------------------------------------------------------------------------------------------------


def scaled_by(factor):
    return lambda x: factor * x if x > 0 else x


def test_a_function_is_known_by_what_it_computes():
    assert user_function(scaled_by(2)) == user_function(scaled_by(2)) != user_function(scaled_by(3))
    assert user_function(scaled_by(np.ones(2))) != user_function(scaled_by(np.zeros(2)))
    x = cg.Var((3,), name="x")
    assert cg.kernel(scaled_by(2))(x) is cg.kernel(scaled_by(2))(x) is not cg.kernel(scaled_by(3))(x)


@pytest.mark.parametrize("name, value", [("FACTOR", 3.0), ("helper", lambda x: x + 2)])
def test_a_function_is_another_one_when_what_it_reads_changes(name, value):
    scope = {"FACTOR": 2.0, "helper": lambda x: x + 1}
    exec("def function(x):\n    return FACTOR * helper(x) if x > 0 else [helper(y) for y in (x,)][0]", scope)
    before = user_function(scope["function"])
    assert before == user_function(scope["function"])
    scope[name] = value
    assert before != user_function(scope["function"])


@pytest.mark.parametrize("value", [[1.0, 2.0], np.dtype("f4"), object()], ids=["list", "dtype", "object"])
def test_a_function_that_reads_what_no_text_describes_is_the_same_as_long_as_that_is(value):
    scope = {"VALUE": value}
    exec("def function(x):\n    return x if VALUE else 0.0", scope)
    before = user_function(scope["function"])
    assert before == user_function(scope["function"])
    scope["VALUE"] = [1.0, 3.0] if isinstance(value, list) else np.dtype("f8")
    assert before != user_function(scope["function"])


def test_a_graph_keeps_to_the_values_that_it_was_built_with():
    scope = {"FACTOR": 2.0}
    exec("def function(x):\n    return FACTOR * x if x > 0 else x", scope)
    x, kernel = cg.Var((2,), name="x"), cg.kernel(scope["function"])
    before = kernel(x)
    scope["FACTOR"] = 3.0
    assert cg.compile(kernel(x), x)(np.ones(2, "f4")).tolist() == [3, 3]
    with pytest.raises(NoKernelError, match="function .* reads a value that has changed since the graph was built"):
        cg.compile(before, x)


def test_functions_that_use_the_same_values_in_other_places_are_different():
    def pair(a, b):
        return lambda x: a(x) - b(x) if x > 0 else x

    f, g = (lambda x: x + 1), (lambda x: x + 2)
    assert len({user_function(pair(*xs)) for xs in ((f, g), (g, f), (f, f), (g, g))}) == 4


RUN = """
import sys
import numpy as np, cgraph as cg
from tests.ops.test_kernel import soft, sums
x = cg.Var((3, 4), name="x")
for engine in ("cpu", "cuda-sim"):
    cg.compile([cg.kernel(soft)(x, 0.5), sums(x)], x, engine=engine)(np.ones((3, 4), "float32"))
print("numba" in sys.modules)
"""


def test_a_process_that_finds_its_kernels_in_the_cache_loads_no_numba(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    command = [sys.executable, "-c", RUN]
    found = [subprocess.run(command, capture_output=True, text=True, check=True, cwd=ROOT).stdout for _ in range(2)]
    assert found == ["True\n", "False\n"]


@pytest.mark.parametrize("more, is_whole", [(-1, False), (0, False), (1, True)])
def test_a_function_of_at_most_64_ops_becomes_ops(more, is_whole, tmp_path):
    count = MOST_OPS + more
    file = tmp_path / "chain.py"
    file.write_text("def many(x):\n    y = x\n" + "    y = y + x\n" * count + "    return y\n")
    names: dict = {"__name__": "chain"}
    exec(compile(file.read_text(), str(file), "exec"), names)
    x = cg.Var((3,), "float64", "x")
    node = cg.kernel(names["many"])(x)
    assert is_compiled(node) is is_whole
    np.testing.assert_array_equal(cg.compile(node, x)(np.arange(3.0)), np.arange(3.0) * (count + 1))


sine, root = math.sin, math.sqrt


def by_names(x):
    return sine(x) * root(x) + abs(x) - atan2(x, 2.0)


@every_engine
def test_functions_of_mathematics_under_any_name_are_ops(engine):
    x = cg.Var((5,), "float64", "x")
    node = cg.kernel(by_names)(x)
    assert not is_compiled(node)
    a = np.linspace(0.1, 3, 5)
    want = [by_names(v) for v in a.tolist()]
    assert_near(cg.compile(node, x, engine=engine)(a), want, "float64 formulas near zero")


@every_engine
def test_no_task_writes_an_array_without_elements(engine):
    x = cg.Var((0, 3), name="x")
    assert sums(x).op.tasks == 0
    assert cg.compile(sums(x), x, engine=engine)(np.zeros((0, 3), "f4")).shape == (0,)
    with pytest.raises(ShapeError, match="tasks returned -1; return a number >= 0"):
        cg.kernel(row_sums, out=lambda x: ((x.shape[0],), x.dtype), tasks=lambda x: -1)(x)


def test_images_of_numbers_are_cut_by_rows():
    x, limit = cg.Var((2, 3, 8, 5), name="x"), cg.Var((2, 3, 8, 5), name="limit")
    node = cg.kernel(soft)(x, limit)
    op, specs = node.op, [v.spec for v in node.operands]
    cut = op.cut(*specs)
    assert cut.band(2, 5) is op and (cut.above, cut.below, cut.step) == (0, 0, 1)
    assert [[list(x) for x in rows] for rows in cut.reads] == [[[*range(8)], [*range(1, 9)]]] * 2
    for shape in ((3, 8, 5), (8, 5), (5,), ()):
        assert op.cut(*[Spec(shape, np.dtype("f4"))] * 2) is None


@pytest.mark.parametrize("dtype", ["int32", "float32", "float64", "bool"])
@pytest.mark.parametrize(
    "function", [lambda x: x * x - 1.5, soft_of_one, lambda x: 2.75], ids=["ops", "compiled", "constant"]
)
def test_a_result_has_the_dtype_that_is_asked_for(function, dtype):
    x, value = cg.Var((3,), "float64", "x"), np.array([-2.0, 0.5, 3.25])
    node = cg.kernel(function, dtype=dtype)(x)
    assert node.dtype == dtype and node.shape == (3,)
    want = np.array([function(v) for v in value.tolist()]).astype(dtype)
    np.testing.assert_array_equal(cg.compile(node, x)(value), want)
