"""Functions of arrays whose sizes vary: NumPy's values at any size, in the memory of the largest."""

import threading
import time
from contextlib import contextmanager
from types import SimpleNamespace
from weakref import ref

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import helper

import cgraph as cg
from cgraph.engine.cpu.engine import CpuEngine
from cgraph.engine.reference import evaluate
from cgraph.errors import FormatError, GraphError, InputError
from cgraph.formats import onnx
from cgraph.kernels import store
from tests.support.emulated import PairsEngine
from tests.support.kernels import TARGETS
from tests.support.onnx_models import FLOAT, INT64, model_of
from tests.support.patience import PATIENCE
from tests.support.tolerance import assert_close


def weights(seed, *shape):
    return np.random.default_rng(seed).standard_normal(shape).astype("f4")


def dense():
    """Two layers over a batch of sequences, and how many rows came so far."""
    w, v = cg.Const(weights(0, 12, 20)), cg.Const(weights(1, 20, 5))
    rows = cg.Var((), name="rows").assign(0.0)

    def build(sizes):
        x = cg.Var((sizes["batch"], sizes["length"], 12), name="x")
        mask = cg.Var((sizes["batch"], sizes["length"]), name="mask")
        y = cg.softmax(cg.tanh(x @ w) @ v, 2) * cg.expand_dims(mask, 2)
        return [y, cg.mean(y, 1)], [x, mask], {rows: rows + float(sizes["batch"])}

    return build, {"x": ("batch", "length", 12), "mask": ("batch", "length")}, rows


def images():
    """Convolutions over images of any height."""
    first, second = cg.Const(weights(2, 16, 3, 3, 3) * 0.3), cg.Const(weights(3, 16, 16, 3, 3) * 0.1)

    def build(sizes):
        x = cg.Var((1, 3, sizes["height"], 40), name="x")
        y = cg.max_pool2d(cg.relu(cg.conv2d(x, first, 1, 1)), 2)
        return cg.relu(cg.conv2d(y, second, 1, 1)), [x]

    return build, {"x": (1, 3, "height", 40)}


def inputs_of(shapes, sizes, seed):
    rng = np.random.default_rng(seed)
    fixed = {x: [sizes.get(n, n) for n in shape] for x, shape in shapes.items()}
    return {x: rng.standard_normal(shape).astype("f4") for x, shape in fixed.items()}


def meant(build, sizes, values):
    outputs, inputs, *_ = build(sizes)
    single = isinstance(outputs, cg.Node)
    found = evaluate([outputs] if single else outputs, {x: values[x.name] for x in inputs})
    return found[0] if single else found


@settings(max_examples=6, deadline=None)
@given(
    order=st.lists(st.tuples(st.integers(1, 6), st.integers(1, 9)), min_size=3, max_size=8),
    threads=st.sampled_from((1, 2)),
    poison=st.booleans(),
)
def test_any_size_gives_what_its_graph_means(order, threads, poison):
    build, shapes, rows = dense()
    function = cg.compile_sizes(build, shapes, {"batch": 6, "length": 9}, engine=CpuEngine("host", threads, poison))
    whole = function.nbytes
    for i, (batch, length) in enumerate(order):
        sizes = {"batch": batch, "length": length}
        values = inputs_of(shapes, sizes, i)
        for got, want in zip(function(**values), meant(build, sizes, values)):
            assert_close(got, want)
    assert rows.value == sum(batch for batch, _ in order)
    assert function.nbytes == whole


@pytest.mark.parametrize("target", TARGETS)
def test_a_height_gives_the_bits_of_a_function_of_that_height_alone(target):
    build, shapes = images()
    engine = CpuEngine(target, 2, True)
    function = cg.compile_sizes(build, shapes, {"height": 64}, engine=engine)
    for height in (64, 5, 33, 64, 5, 62):
        values = inputs_of(shapes, {"height": height}, height)
        outputs, inputs = build({"height": height})
        np.testing.assert_array_equal(function(**values), cg.compile(outputs, inputs, engine=engine)(**values))
        assert function.at(height=height).nbytes <= function.nbytes


def test_all_sizes_run_in_one_memory_and_what_was_kept_is_not_read_when_another_ran():
    base = cg.Var((40, 40), name="base").assign(weights(4, 40, 40))
    calls = []

    def build(sizes):
        x = cg.Var((sizes["n"], 40), name="x")
        slow = cg.delay(lambda a: calls.append(sizes["n"]) or a @ a, base)
        return x @ cg.tanh(slow), [x]

    function = cg.compile_sizes(build, {"x": ("n", 40)}, {"n": 9})
    places = []
    for n in (9, 4):
        held = function.at(n=n)._take()
        places.append(held.instance.arena)
        function.at(n=n)._give(held)
    assert np.shares_memory(*places)
    for n in (9, 9, 4, 9, 4, 4):
        x = weights(n, n, 40)
        assert_close(function(x), x @ np.tanh(base.value @ base.value), 10)
    base.assign(weights(5, 40, 40))
    x = weights(6, 4, 40)
    assert_close(function(x), x @ np.tanh(base.value @ base.value), 10)


def test_what_does_not_depend_on_the_inputs_is_kept_while_the_size_stays():
    base = cg.Var((30, 30), name="base").assign(weights(4, 30, 30))

    def build(sizes):
        x = cg.Var((sizes["n"], 30), name="x")
        return x @ cg.exp(cg.tanh(base)), [x]

    function = cg.compile_sizes(build, {"x": ("n", 30)}, {"n": 8}, changing=())
    steps = []
    one = function.at(n=8)
    run = type(one.program.instance()).run
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            type(one.program.instance()), "run", lambda self, s=None, **more: (steps.append(s), run(self, s, **more))[1]
        )
        for n in (8, 8, 3, 8):
            function(weights(n, n, 30))
    assert steps[0] is None or len(steps[0]) == len(one.compiled.layout.steps)
    assert [s if s is None else len(s) for s in steps[2:]] == [s if s is None else len(s) for s in (steps[0],) * 2]


def test_threads_that_call_at_once_get_memory_each():
    build, shapes = images()
    function = cg.compile_sizes(build, shapes, {"height": 48})
    wrong = []

    def work(seed):
        for i in range(12):
            height = 8 + (seed * 7 + i * 5) % 40
            values = inputs_of(shapes, {"height": height}, seed)
            want = function.at(height=height)(**values)
            if not np.array_equal(function(**values), want):
                wrong.append(height)

    several = [threading.Thread(target=work, args=(seed,)) for seed in range(3)]
    for thread in several:
        thread.start()
    for thread in several:
        thread.join(PATIENCE)
    assert not wrong and not any(thread.is_alive() for thread in several)


def test_a_new_size_compiles_no_kernel(monkeypatch):
    build, shapes, _ = dense()
    function = cg.compile_sizes(build, shapes, {"batch": 48, "length": 40})
    function(**inputs_of(shapes, {"batch": 40, "length": 30}, 0))
    monkeypatch.setattr(store.KernelStore, "_compile_and_store", None)  # who compiled one would fail
    for batch in (47, 33, 32):
        function(**inputs_of(shapes, {"batch": batch, "length": 31}, 0))


def test_without_a_maximum_memory_grows_with_what_comes():
    build, shapes = images()
    function = cg.compile_sizes(build, shapes)
    assert function.nbytes == 0
    found = []
    for height in (8, 64, 8):
        values = inputs_of(shapes, {"height": height}, 1)
        outputs, inputs = build({"height": height})
        np.testing.assert_array_equal(function(**values), cg.compile(outputs, inputs)(**values))
        found.append(function.nbytes)
    assert found[0] < found[1] == found[2] == function.at(height=64).nbytes


def test_results_stay_when_it_runs_again_unless_they_are_only_looked_at():
    f = cg.compile_sizes(lambda sizes: sines(sizes["n"]), {"x": ("n",)})
    x = np.linspace(0, 1, 9, dtype="float32")
    kept, seen = f(x), f(x, copy=False)
    assert_close(seen, np.sin(x))
    f(x + 1)
    assert_close(kept, np.sin(x))
    assert np.array_equal(seen, f(x + 1, copy=False)) and not np.array_equal(seen, kept)


def sines(n):
    x = cg.Var((n,), name="x")
    return cg.sin(x), [x]


def test_more_sizes_than_are_kept_go_on_in_the_same_memory():
    build, shapes, _ = dense()
    function = cg.compile_sizes(build, shapes, {"batch": 40, "length": 2}, engine="reference")
    for batch in range(1, 25):
        values = inputs_of(shapes, {"batch": batch, "length": 2}, batch)
        assert_close(function(**values)[0], meant(build, {"batch": batch, "length": 2}, values)[0])
    assert "16 sizes" in repr(function)


def test_a_size_that_was_called_last_is_removed_last():
    function = cg.compile_sizes(lambda sizes: sines(sizes["n"]), {"x": ("n",)}, {"n": 40})
    often = ref(function.at(n=1).program)
    for n in range(2, 30):
        function(np.ones(n, "f4"))
        for _ in range(3):
            function(np.ones(1, "f4"))
    assert "16 sizes" in repr(function) and often() is function.at(n=1).program


def test_a_size_that_is_put_aside_while_it_runs_leaves_nothing_in_the_memory():
    def build(sizes):
        x = cg.Var((sizes["n"],), name="x")
        return cg.delay(lambda a: [others(), a][1], x), [x]

    def others():
        for n in range(2, 20) if seen else ():
            function.at(n=n)

    function, seen = cg.compile_sizes(build, {"x": ("n",)}, {"n": 20}), []
    seen.append(ref(function.at(n=1).program))
    assert function(np.ones(1, "f4")) == 1
    function(np.ones(20, "f4"))
    assert "16 sizes" in repr(function) and seen[0]() is None


def test_attributes_of_a_function_of_one_size_are_named_with_all_sizes():
    build, shapes, _ = dense()
    function = cg.compile_sizes(build, shapes)
    for name in ("plan", "report", "trace", "state", "returning"):
        with pytest.raises(AttributeError, match=rf"no attribute '{name}': .* Use at\(batch=1, length=1\).{name}"):
            getattr(function, name)
    for name in ("_take", "no_name", "__array__"):
        with pytest.raises(AttributeError, match=f"^SizedFunction has no attribute '{name}'$"):
            getattr(function, name)


def test_refusals_name_the_size(tmp_path):
    build, shapes, rows = dense()
    with pytest.raises(GraphError, match="no size varies"):
        cg.compile_sizes(build, {"x": (1, 2, 12)})
    for most, names in [
        ({"batch": 4}, "batch"),
        ({}, "nothing"),
        ({"batch": 4, "length": 4, "n": 1}, "batch, length, n"),
    ]:
        with pytest.raises(GraphError, match=f"most gives {names}; sizes are batch, length"):
            cg.compile_sizes(build, shapes, most)
    with pytest.raises(GraphError, match="the graph has the inputs x, mask; shapes has x"):
        cg.compile_sizes(build, {"x": ("batch", "length", 12)}, {"batch": 4, "length": 4})
    turned = dict(reversed(shapes.items()))
    with pytest.raises(GraphError, match="the graph has the inputs x, mask; shapes has mask, x. Name the Vars"):
        cg.compile_sizes(build, turned, {"batch": 4, "length": 4})
    with pytest.raises(GraphError, match="the graph has the inputs x, mask; shapes has mask, x. Name the Vars"):
        cg.compile_sizes(build, turned)(np.zeros((3, 2), "f4"), np.zeros((3, 2, 12), "f4"))
    function = cg.compile_sizes(build, shapes, {"batch": 4, "length": 4})
    x, mask = np.zeros((3, 2, 12), "f4"), np.zeros((3, 2), "f4")
    wrong = {
        "batch is 3 in x and 2 in mask": ((x, mask[:2]), {}),
        "batch is 5; it was compiled for 4 at most": ((np.zeros((5, 2, 12), "f4"), np.zeros((5, 2), "f4")), {}),
        "x has 2 axes, not the 3": ((mask, mask), {}),
        r"input mask \[batch,length\] is missing. Pass mask=array": ((x,), {}),
        "input .x. is given twice": ((x,), {"x": x}),
        "the Function has no input .z.. Use one of x, mask": ((), {"z": x}),
        "inputs, got 3": ((x, x, x), {}),
        r"x expects float32\[3,2,12\], got int64": ((x.astype("i8"), mask), {}),
        r"x expects float32\[3,2,12\], got float32\[3,2,11\]": ((x[..., :11], mask), {}),
    }
    for text, (args, named) in wrong.items():
        with pytest.raises(InputError, match=text):
            function(*args, **named)
    with pytest.raises(InputError, match="sizes are batch, length, not batch"):
        function.at(batch=2)
    with pytest.raises(FormatError, match="several sizes is not saved; save one of them"):
        function.save(tmp_path / "all")
    assert rows.value == 0
    function.at(batch=2, length=1).save(tmp_path / "one")
    assert cg.load(tmp_path / "one")(x[:2, :1], mask[:2, :1])[0].shape == (2, 1, 5)


# -- ONNX --------------------------------------------------------------------------------------------------------------


def sequence_model():
    """Attention over sequences of any length in batches of any size; the third axis of one input has no name."""
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["h"]),
        helper.make_node("Transpose", ["h"], ["t"], perm=[0, 2, 1]),
        helper.make_node("MatMul", ["h", "t"], ["s"]),
        helper.make_node("Softmax", ["s"], ["p"], axis=-1),
        helper.make_node("MatMul", ["p", "h"], ["a"]),
        helper.make_node("Shape", ["x"], ["shape"]),
        helper.make_node("Slice", ["shape", "zero", "two"], ["head"]),
        helper.make_node("Concat", ["head", "eight"], ["to"], axis=0),
        helper.make_node("Reshape", ["a", "to"], ["y"]),
    ]
    constants = {"w": weights(7, 6, 8) * 0.5, "zero": [0], "two": [2], "eight": [8]}
    return model_of(nodes, [("x", FLOAT, ("batch", "length", 6))], constants)


def test_a_model_with_open_sizes_agrees_with_onnxruntime_at_each_of_them():
    runtime = pytest.importorskip("onnxruntime")
    body = sequence_model()
    session = runtime.InferenceSession(body, providers=["CPUExecutionProvider"])
    function = onnx.compile_sizes(body, {"batch": 5, "length": 17})
    free = onnx.compile_sizes(body)
    for batch, length in ((5, 17), (1, 1), (3, 16), (5, 2), (2, 17)):
        x = weights(batch, batch, length, 6)
        (want,) = session.run(None, {"x": x})
        for found in (function, free):
            assert_close(found(x)[0], want, 10)
    assert function.nbytes == function.at(batch=5, length=17).nbytes == free.nbytes


def test_axes_without_names_are_called_after_their_input():
    body = model_of([helper.make_node("Relu", ["x"], ["y"])], [("x", FLOAT, (None, 3))])
    function = onnx.compile_sizes(body)
    np.testing.assert_array_equal(function(-np.ones((4, 3), "f4"))[0], np.zeros((4, 3)))
    with pytest.raises(GraphError, match=r"sizes are x\.0"):
        onnx.compile_sizes(body, {"N": 3})
    with pytest.raises(FormatError, match="not a tensor of a fixed number of axes"):
        onnx.compile_sizes(model_of([helper.make_node("Relu", ["x"], ["y"])], [("x", FLOAT, None)]))
    with pytest.raises(GraphError, match="no size varies"):
        onnx.compile_sizes(model_of([helper.make_node("Relu", ["x"], ["y"])], [("x", INT64, (2, 3))]))


def test_of_many_sizes_those_that_came_last_are_kept(monkeypatch):
    """Came, not were compiled: a size that is used again outlives one that is not."""
    monkeypatch.setattr("cgraph.sizes.MOST_KEPT", 3)
    built = []

    def build(sizes):
        built.append(sizes["n"])
        x = cg.Var((sizes["n"],), name="x")
        return x * 2.0, [x]

    function = cg.compile_sizes(build, {"x": ("n",)})
    for n in (1, 2, 3, 1, 4, 1, 3, 2):
        np.testing.assert_array_equal(function(np.ones(n, "f4")), np.full(n, 2.0))
    assert built == [1, 2, 3, 4, 2]


def test_a_tolerance_is_measured_once_at_the_sizes_of_its_samples():
    w = np.random.default_rng(0).standard_normal((8, 8)).astype("f4")

    def build(sizes):
        x = cg.Var((sizes["n"], 8), name="x")
        return x @ w, x

    options = {"engine": PairsEngine(), "precision": cg.Tolerance(0.5, [np.ones((3, 8), "f4")])}
    function = cg.compile_sizes(build, {"x": ("n", 8)}, most={"n": 5}, **options)
    first, other = function.at(n=3).precision, function.at(n=4).precision
    assert first.bf16_layers == other.bf16_layers == {"matmul"} and first.errors == other.errors
    assert first.layers[0].multiply_adds < other.layers[0].multiply_adds
    for sample in ((np.ones((3, 8), "f4"),), [np.ones((3, 8), "f4")]):
        alike = options | {"precision": cg.Tolerance(0.5, [sample])}
        assert cg.compile_sizes(build, {"x": ("n", 8)}, **alike).at(n=3).precision == first
    for samples in ([], [(1, 2)]):
        with pytest.raises(InputError, match="samples with 1 arrays each"):
            cg.compile_sizes(build, {"x": ("n", 8)}, **options | {"precision": cg.Tolerance(0.5, samples)})
    with pytest.raises(InputError, match="n is 6"):
        wide = cg.Tolerance(0.5, [np.ones((6, 8), "f4")])
        cg.compile_sizes(build, {"x": ("n", 8)}, most={"n": 5}, **options | {"precision": wide})


def test_members_of_a_function_are_found_at_a_size():
    f = cg.compile_sizes(lambda sizes: ((x := cg.Var((sizes["n"], 3), name="x")) + 1, [x]), {"x": ("n", 3)})
    others = [x for x in set(dir(cg.Function)) - set(dir(f)) if not x.startswith("_")]
    assert "report" in others
    for name in others:
        with pytest.raises(AttributeError, match=rf"SizedFunction has no attribute '{name}': .* Use at\(n=1\)\.{name}"):
            getattr(f, name)
    with pytest.raises(AttributeError, match="SizedFunction has no attribute 'zzz'$"):
        f.zzz  # noqa: B018


def pair(sizes):
    x = cg.Var((sizes["n"],), name="x")
    return {"twice": x * 2, "more": x + 1}, [x]


def test_outputs_come_by_name_at_any_size():
    f = cg.compile_sizes(pair, {"x": ("n",)})
    for n in (3, 3, 5, 3, 1):
        x = np.arange(n, dtype="f4")
        for value in (x, x.astype("f8"), x.tolist()):  # arrays that fit, and others
            for got in (f.run(["more", "twice"], {"x": value}), f.run(None, {"x": value})[::-1]):
                assert [y.tolist() for y in got] == [(x + 1).tolist(), (2 * x).tolist()]
            assert f.run(["twice"], {"x": value})[0].tolist() == (2 * x).tolist()
            assert f.run([], {"x": value}) == [] and f(x=value)["more"].tolist() == (x + 1).tolist()
        f(x)  # the next call may take the fast path
        rooms = [np.zeros(n, "f4") for _ in range(2)]
        assert [a is b for a, b in zip(f(x, out=rooms), rooms, strict=True)] == [True, True]
        assert [y.tolist() for y in rooms] == [(2 * x).tolist(), (x + 1).tolist()]
    assert repr(f) == "<SizedFunction (x [n]); 3 sizes>"
    for names, inputs, text in (
        (["no"], {"x": x}, "no output 'no'. Use one of twice, more"), (None, {"y": x}, "no input 'y'. Use one of x"),
        (None, {}, "input x .n. is missing"), ("more", {"x": x}, "takes a list of output names"),
    ):  # fmt: skip
        with pytest.raises(InputError, match=text):
            f.run(names, inputs)


@pytest.mark.parametrize("budget", [None, "1MiB"])
@pytest.mark.parametrize("most", [None, {"n": 900}])
def test_each_later_size_fits_in_the_memory_of_the_largest_and_in_the_budget(budget, most):
    budgets, x = [], cg.Var((900,), name="x")
    nbytes = cg.compile(cg.sin(x) * cg.sum(x), [x]).nbytes

    def build(sizes):
        x = cg.Var((sizes["n"],), name="x")

        def compiled(**options):
            budgets.append(options.get("budget"))
            return cg.compile(cg.sin(x) * cg.sum(x), [x], **options)

        return compiled

    function = cg.compile_sizes(build, {"x": ("n",)}, most, budget=budget)
    for n in (900, 5, 7):
        function.at(n=n)
    assert budgets == [budget, *([nbytes] * 2 if most else [budget] * 2)] and function.nbytes == nbytes


def test_a_size_that_one_input_has_twice_is_one_size():
    def build(sizes):
        x, y = cg.Var((sizes["n"], sizes["n"]), name="x"), cg.Var((3, sizes["m"], sizes["n"]), name="y")
        return y @ x, [x, y]

    function = cg.compile_sizes(build, {"x": ("n", "n"), "y": (3, "m", "n")})
    assert function.at(m=5, n=2) is function.at(n=2, m=5) and function.at(m=5, n=2).inputs[1].shape == (3, 5, 2)
    for n, m in ((2, 5), (5, 2), (2, 5), (1, 1)):
        x, y = weights(n, n, n), weights(m, 3, m, n)
        assert_close(function(x, y), y @ x)
    for x, y, text in (
        ((2, 3), (3, 1, 2), "n is 2 in x and 3 in x. Give both one size"),
        ((2, 2), (3, 1, 4), "n is 2 in x and 4 in y. Give both one size"),
        ((2, 2), (1, 2), r"y has 2 axes, not the 3 of \[3,m,n\]. Reshape it"),
    ):
        with pytest.raises(InputError, match=text):
            function(np.zeros(x, "f4"), np.zeros(y, "f4"))


@pytest.mark.parametrize(
    ("build", "shapes", "most", "text"),
    [
        (None, {"x": ("n",)}, None, "compile_sizes needs a function and a dict from input name to shape, got None"),
        (pair, [("x", ("n",))], None, "needs a function and a dict"),
        (pair, {"x": "n"}, None, "needs a function and a dict"),
        (pair, {"x": ("n",), "y": 3}, None, "needs a function and a dict"),
        (pair, {"x": ("n",), "y": (1.5,)}, None, "needs a function and a dict"),
        (pair, {"x": ("n",)}, [4], "most gives the largest sizes by name, not .4."),
        (pair, {"x": ("n",)}, 4, "most gives the largest sizes by name, not 4"),
        (pair, {}, None, "no size varies"),
        (lambda sizes: pair(sizes)[:1], {"x": ("n",)}, {"n": 4}, "build gives outputs, inputs and, perhaps"),
        (lambda sizes: (*pair(sizes), {}, {}), {"x": ("n",)}, {"n": 4}, "build gives outputs, inputs and, perhaps"),
        (lambda sizes: list(pair(sizes)), {"x": ("n",)}, {"n": 4}, "build gives outputs, inputs and, perhaps"),
    ],
)
def test_what_compile_sizes_refuses_before_a_call(build, shapes, most, text):
    with pytest.raises(GraphError, match=text):
        cg.compile_sizes(build, shapes, most)


@pytest.mark.parametrize("last", ["at", "call"])
def test_a_size_that_was_asked_for_last_is_removed_last(monkeypatch, last):
    """By a call with arrays that need no conversion too, after another size was asked for."""
    monkeypatch.setattr("cgraph.sizes.MOST_KEPT", 2)
    f, one = cg.compile_sizes(lambda sizes: sines(sizes["n"]), {"x": ("n",)}), np.ones(1, "f4")
    for _ in range(2):
        f(one)
    f.at(n=2)
    if last == "at":
        f.at(n=1)
    else:
        f(one)
    f.at(n=3)
    assert list(f._functions) == [(1,), (3,)]


def test_sizes_wait_for_one_another_and_are_made_one_at_a_time(monkeypatch):
    build, shapes, _ = dense()
    f, made = cg.compile_sizes(build, shapes, threads=2), []
    assert f.at(batch=1, length=2)._turns is f.at(batch=2, length=2)._turns
    assert f.at(batch=2, length=2).program.threads == 2
    making = f._making.run
    monkeypatch.setattr(f, "_making", SimpleNamespace(run=lambda work: made.append(1) or making(work)))
    for _ in range(2):
        assert f.at(batch=3, length=2) is f._functions[3, 2]
    assert made == [1]
    with pytest.raises(FormatError, match="function.at\\(batch="):
        f.save("somewhere")


def test_views_are_returned_also_after_calls_with_arrays_that_need_no_conversion():
    f, x = cg.compile_sizes(lambda sizes: sines(sizes["n"]), {"x": ("n",)}), np.ones(5, "f4")
    for _ in range(3):
        f(x)
    assert np.shares_memory(f(x, copy=False), f(x, copy=False)) and not np.shares_memory(f(x), f(x))


def test_what_ran_at_a_size_that_is_removed_leaves_the_memory_at_once(monkeypatch):
    monkeypatch.setattr("cgraph.sizes.MOST_KEPT", 1)
    f, swept = cg.compile_sizes(lambda sizes: sines(sizes["n"]), {"x": ("n",)}), []
    f.at(n=1)
    monkeypatch.setattr(f._rooms, "sweep", lambda: swept.append(len(f._functions)))
    f.at(n=2)
    f.at(n=2)
    assert swept == [0] and list(f._functions) == [(2,)]


def test_inputs_that_there_are_not_are_refused_by_the_size_of_the_last_call_too():
    f = cg.compile_sizes(pair, {"x": ("n",)})
    x = np.arange(3, dtype="f4")
    f(x)
    for _ in range(2):
        for call in (lambda: f.run(None, {"x": x, "z": x}), lambda: f(x=x, z=x), lambda: f({"x": x, "z": x})):
            with pytest.raises(InputError, match="no input .z.. Use one of x"):
                call()
        with pytest.raises(InputError, match="got 2"):
            f(x, x)
        assert f.run(None, {"x": x})[0].tolist() == [0, 2, 4]


@pytest.mark.parametrize("way", ["a call", "a run", "at"])
def test_each_way_of_use_makes_a_size_the_last_one(way, monkeypatch):
    """Of three that are kept: that which was used longest ago goes."""
    monkeypatch.setattr("cgraph.sizes.MOST_KEPT", 3)
    built = []

    def build(sizes):
        built.append(sizes["n"])
        return pair(sizes)

    f = cg.compile_sizes(build, {"x": ("n",)})
    ones = {n: np.ones(n, "f4") for n in range(1, 5)}
    use = {"a call": lambda n: f(ones[n]), "a run": lambda n: f.run(None, {"x": ones[n]}), "at": lambda n: f.at(n=n)}
    for n in (1, 2, 3):
        f(ones[n])
    use[way](1)
    use[way](4)  # in the place of 2
    assert built == [1, 2, 3, 4]
    for n in (1, 3, 4):
        use[way](n)
    assert built == [1, 2, 3, 4]
    use[way](2)
    assert built == [1, 2, 3, 4, 2]


def test_sizes_are_found_at_the_axis_that_has_them():
    """Not the first axis, nor that of the first input, and twice in one input."""

    def build(sizes):
        x, y = cg.Var((2, sizes["a"]), name="x"), cg.Var((sizes["b"], 3, sizes["b"]), name="y")
        return [x * 2, y + 1], [x, y]

    f = cg.compile_sizes(build, {"x": (2, "a"), "y": ("b", 3, "b")}, {"a": 5, "b": 4})
    assert f.sizes == ("a", "b")
    for a, b in ((5, 4), (1, 2), (5, 2), (1, 4), (1, 2)):
        x, y = weights(a, 2, a), weights(b, b, 3, b)
        for _ in range(2):
            got = f(x, y)
            np.testing.assert_array_equal(got[0], x * 2)
            np.testing.assert_array_equal(got[1], y + 1)
    with pytest.raises(InputError, match="b is 2 in y and 3 in y. Give both one size"):
        f(x, np.ones((2, 3, 3), "f4"))
    for name, shapes in (("a", ((2, 6), (2, 3, 2))), ("b", ((2, 1), (5, 3, 5)))):
        with pytest.raises(InputError, match=f"{name} is [56]; it was compiled for [45] at most"):
            f(*(np.ones(shape, "f4") for shape in shapes))


def test_garbage_is_rarely_collected_while_a_size_is_compiled(monkeypatch):
    inside, seen = [], []

    @contextmanager
    def rare_collections():
        inside.append(True)
        yield
        inside.pop()

    def build(sizes):
        seen.append(bool(inside))
        return pair(sizes)

    monkeypatch.setattr("cgraph.sizes.rare_collections", rare_collections)
    f = cg.compile_sizes(build, {"x": ("n",)}, {"n": 4})
    f(np.ones(3, "f4"))
    f.at(n=2)
    assert seen == [True] * 3 and not inside


def test_threads_that_need_one_new_size_compile_it_once():
    built = []

    def build(sizes):
        built.append(sizes["n"])
        time.sleep(0.05)
        return pair(sizes)

    f = cg.compile_sizes(build, {"x": ("n",)})
    found = []
    work = lambda n: found.append(f(np.arange(n, dtype="f4"))["more"].tolist())  # noqa: E731
    threads = [threading.Thread(target=work, args=(n,)) for n in (3, 3, 2, 3, 2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE)
    assert sorted(built) == [2, 3] and sorted(found) == [[1, 2]] * 2 + [[1, 2, 3]] * 3


@pytest.mark.parametrize("count", [0, 1, 4])
def test_a_builder_returns_two_or_three_values_or_a_function(count):
    def build(sizes):
        return tuple(range(count))

    with pytest.raises(GraphError, match="build gives outputs, inputs and, perhaps, update edges, not .*Return such"):
        cg.compile_sizes(build, {"x": ("n",)}).at(n=1)
    for other in (None, [1, 2], {"y": 1}):
        with pytest.raises(GraphError, match="build gives outputs, inputs"):
            cg.compile_sizes(lambda sizes, other=other: other, {"x": ("n",)}).at(n=1)

    def later(sizes):
        outputs, inputs = pair(sizes)
        return lambda **options: options_of.append(options) or cg.compile(outputs, inputs, **options)

    options_of = []
    f = cg.compile_sizes(later, {"x": ("n",)}, threads=1, budget="1MiB")
    assert f(np.ones(3, "f4"))["twice"].tolist() == [2, 2, 2]
    assert options_of == [{"threads": 1, "budget": "1MiB"}]


@pytest.mark.parametrize(
    ("build", "shapes"),
    [(3, {"x": ("n",)}), (pair, [("x", ("n",))]), (pair, {"x": "n"}), (pair, {"x": 3}), (pair, {"x": (1.5,)}),
     (pair, {"x": ("n",), "y": None})],
)  # fmt: skip
def test_shapes_are_lists_of_integers_and_names_by_input(build, shapes):
    with pytest.raises(GraphError, match="compile_sizes needs a function and a dict from input name to shape"):
        cg.compile_sizes(build, shapes)


@pytest.mark.parametrize("most", [3, [("n", 3)], "n"])
def test_the_largest_sizes_are_given_by_name(most):
    with pytest.raises(GraphError, match="most gives the largest sizes by name, not .* Pass a dict"):
        cg.compile_sizes(pair, {"x": ("n",)}, most)


def test_options_are_checked_before_anything_is_built():
    built = []
    for options in ({"memory": 3}, {"budget": "much"}, {"recompute": "x"}):
        with pytest.raises(GraphError):
            cg.compile_sizes(lambda sizes: built.append(sizes), {"x": ("n",)}, **options)
    assert not built
    for options in ({"engine": "reference"}, {"threads": 2}, {"engine": CpuEngine("host", 1)}):
        assert cg.compile_sizes(pair, {"x": ("n",)}, **options)(np.ones(2, "f4"))["more"].tolist() == [2, 2]


@pytest.mark.parametrize("wrong", ["b", "c"])
def test_a_size_that_differs_is_named_with_the_first_input_that_has_it(wrong):
    def build(sizes):
        variables = [cg.Var((sizes["n"],), name=name) for name in "abc"]
        return variables[0] + variables[1] * variables[2], variables

    function = cg.compile_sizes(build, dict.fromkeys("abc", ("n",)))
    arrays = {name: np.ones(3 if name == wrong else 2, "f4") for name in "abc"}
    with pytest.raises(InputError, match=f"^n is 2 in a and 3 in {wrong}. Give both one size$"):
        function(**arrays)
