"""compile and Function: what is refused before anything is lowered, what a Function says of itself, and its slots."""

import pickle

import numpy as np
import pytest

import cgraph as cg
from cgraph import function as function_module
from cgraph import slots
from cgraph.engine.cpu.engine import CpuEngine
from cgraph.errors import BudgetError, FormatError, GraphError, ShapeError
from cgraph.formats.trimmed_function import TrimmedFunction
from cgraph.function import EVALUATED, Function, RowsFunction, way_to_fit, without_freeze
from cgraph.planning.options import CompileOptions, Request
from cgraph.record import replace
from cgraph.running.results import Results
from cgraph.running.trimming_runner import Case, Trims
from cgraph.storage.function_cache import FunctionCache

A = np.arange(3, dtype="f4")
X, Y = cg.Var((3,), name="x"), cg.Var((3,), name="y")


def cell(value, name="w") -> cg.Var:
    return cg.Var(np.asarray(value), name=name)


# -- outputs, inputs and their names -----------------------------------------------------------------------------------


def test_one_node_gives_an_array_and_a_collection_of_one_gives_a_list():
    for inputs in (X, [X], (X,)):
        assert cg.compile(X * 2, inputs)(A).tolist() == [0, 2, 4]
    for outputs in ([X * 2], (X * 2,), {"twice": X * 2}):
        (result,) = cg.compile(outputs, [X])(A)
        assert result.tolist() == [0, 2, 4]


def test_inputs_are_passed_and_outputs_come_in_the_order_in_which_they_are_listed():
    for inputs, values in (([X, Y], (A, A + 10)), ([Y, X], (A + 10, A))):
        f = cg.compile({"d": X - Y, "x": X * 1, "s": X + Y}, inputs)
        results = f(*values)
        assert f.names == ("d", "x", "s") and isinstance(results, Results)
        assert [r.tolist() for r in results] == [[-10] * 3, [0, 1, 2], [10, 12, 14]]


def test_an_input_that_nothing_reads_is_passed_all_the_same():
    f = cg.compile(X + 1, [Y, X])
    assert [x.name for x in f.inputs] == ["y", "x"] and f(A + 5, A).tolist() == [1, 2, 3]


def test_update_edges_alone_return_nothing_and_write_all_at_once():
    a, b = cell([1.0, 2.0], "a"), cell([3.0, 4.0], "b")
    f = cg.compile([], [], {a: b, b: a + b})
    assert list(f()) == [] and (a.value.tolist(), b.value.tolist()) == ([3, 4], [4, 6])
    assert list(f.updates) == [a, b] and f.updated == (a, b)


def test_cells_are_the_vars_that_are_read_and_are_not_inputs():
    w, v, written = cell([1.0], "w"), cell([2.0], "v"), cell([0.0], "written")
    x = cg.Var((1,), "float64", "x")
    f = cg.compile([x * v], [x], {written: w + x})
    assert set(f.cells) == {v, w} and f.updated == (written,) and f.inputs == (x,)
    assert f([5.0])[0].tolist() == [10] and written.value.tolist() == [6]


def test_a_cell_that_changes_between_calls_is_read_anew():
    w, x = cell([1.0, 2.0]), cg.Var((2,), "float64", "x")
    f = cg.compile(cg.cumsum(cg.cumsum(w)) + cg.cumsum(cg.cumsum(x)), [x], changing=[x])
    assert len(f.compiled.layout.steps) > 1
    for value in ([1.0, 2.0], [1.0, 2.0], [3.0, 5.0]):
        w.assign(value)
        for _ in range(2):
            assert f([1.0, 0.0]).tolist() == [1 + value[0], 2 + 2 * value[0] + value[1]]


def test_a_frozen_var_is_no_cell_and_keeps_its_value():
    w = cell([1.0, 2.0])
    frozen, read = cg.compile(w * 3, [], freeze=[w]), cg.compile(w * 3, [])
    w.assign([5.0, 6.0])
    assert (frozen.cells, read.cells) == ((), (w,))
    assert (frozen().tolist(), read().tolist()) == ([3, 6], [15, 18])


# -- what is refused ---------------------------------------------------------------------------------------------------

INTEGERS = cg.Var((3,), "int32", "n")
REFUSALS = {
    "nothing": (([], []), "at least one output or update edge"),
    "an array as an output": (([X, A], [X]), r"array\(\[0., 1., 2.\], dtype=float32\) is not a node"),
    "a node as an input": ((X * 2, [X * 2]), "is not a Var: only a Var can be an input"),
    "an update of a node": ((X, [X], {X * 2: X}), "is not a Var: only a Var can be an input or the target"),
    "an update by an array": ((X, [X], {Y: A}), "is not a node"),
    "two inputs of a name": ((X, [X, cg.Var((3,), name="x")]), "two inputs are called 'x'"),
    "a function": ((np.sin, [X]), "For a Python function use cg.jit"),
    "updates that are a list": ((X, [X], [(Y, X)]), "a dict from Var to node"),
    "a name that is a number": (({1: X}, [X]), "the name of an output is a text, not 1"),
    "an update of another shape": ((X, [X], {Y: X[:2]}), r"the update of y float32\[3\] is .*Reshape or slice it"),
    "an update of another dtype": ((X, [X], {Y: INTEGERS * 2}), r"Convert it with \.astype\('float32'\)"),
    "a node behind an input": ((X * 2, [X, X * 2]), "is not a Var: only a Var can be an input"),
    "two of three inputs of a name": ((X, [Y, X, cg.Var((3,), name="x")]), "two inputs are called 'x'"),
    "a second update of another dtype": ((X, [X], {Y: X + 1, cell(A, "z"): INTEGERS}), r"the update of z float32\[3\]"),
    "a second update of a node": ((X, [X], {Y: X + 1, X * 2: X}), "is not a Var: only a Var can be an input or"),
    "a second update by an array": ((X, [X], {Y: X + 1, cell(A, "z"): A}), "is not a node"),
    "a second name that is a number": (({"y": X, 1: X}, [X]), "the name of an output is a text, not 1"),
}


@pytest.mark.parametrize("name", REFUSALS)
def test_what_compile_refuses(name):
    args, says = REFUSALS[name]
    with pytest.raises((GraphError, ShapeError), match=says):
        cg.compile(*args)


def test_the_dtype_is_what_to_convert_only_where_the_shape_is_that_of_the_var():
    assert "astype('float32')" in way_to_fit(INTEGERS, X)
    assert "Reshape" in way_to_fit(cg.Var((2,), name="z"), X) and "Reshape" in way_to_fit(cg.Var((2,), "int32"), X)


IMAGE, OTHER = cg.Var((1, 1, 4, 5), name="image"), cg.Var((1, 1, 4, 5), name="other")
EMPTY = cg.Var((1, 0, 4, 5), name="empty")
ROWS = {
    "another node": ((IMAGE * 2, [IMAGE]), [IMAGE, OTHER], "not an input or output"),
    "three axes": ((IMAGE[0], [IMAGE]), [IMAGE, IMAGE[0]], r"float32\[1,4,5\], but only images"),
    "nothing in it": ((EMPTY * 2, [EMPTY]), [EMPTY], "have rows"),
    "outputs alone": ((IMAGE * 2, [IMAGE]), [IMAGE * 2], "names outputs only"),
    "two outputs": (([IMAGE * 2, IMAGE + 1], [IMAGE]), [IMAGE, IMAGE * 2, IMAGE + 1], "names 2 outputs; at most one"),
}


@pytest.mark.parametrize("name", ROWS)
def test_rows_that_cannot_be_streamed(name):
    (outputs, inputs), rows, says = ROWS[name]
    with pytest.raises(GraphError, match=says):
        cg.compile(outputs, inputs, rows=rows)


def test_rows_need_an_engine_that_feeds_them_and_give_a_function_of_rows():
    with pytest.raises(GraphError, match="the engine cuda.* takes images whole"):
        cg.compile(IMAGE * 2, [IMAGE], rows=[IMAGE], engine="cuda-sim")
    image = np.arange(20, dtype="f4").reshape(1, 1, 4, 5)
    first, second = OTHER * 2, cg.relu(IMAGE + 1)
    for rows, positions in (([IMAGE], set()), ([IMAGE, second], {1})):
        f = cg.compile([first, second], [IMAGE, OTHER], rows=rows)
        assert type(f) is RowsFunction and f.fed == {IMAGE} and f.pictures.keys() == positions
        assert [x.shape for x in f.results] == [(1, 1, 4, 5)] * 2
        got = f(image, image)
        assert np.array_equal(got[0], image * 2) and np.array_equal(got[1], image + 1)
    bands = []
    assert f(image, image, out=[np.zeros_like(image), lambda band: bands.append(band.copy())])[1] is None
    assert np.array_equal(np.concatenate(bands, 2), image + 1)
    assert type(cg.compile(first, [OTHER])) is Function


# -- what a Function says of itself ------------------------------------------------------------------------------------


def test_a_function_without_a_plan_says_so():
    f = cg.compile(X + 1, [X], engine="reference")
    assert f.compiled is None and f.incremental is None
    for read in (lambda: f.plan, lambda: f.nbytes):
        with pytest.raises(GraphError, match="there is no plan"):
            read()
    assert repr(f) == "<Function (x float32[3]) -> float32[3]>"
    planned = cg.compile(X + 1, [X])
    assert planned.nbytes == planned.plan.nbytes == planned.compiled.nbytes > 0


def test_reports_traces_files_and_notebooks_get_the_function_and_its_arguments(monkeypatch, tmp_path):
    f, g, calls = cg.compile(X + 1, [X]), cg.compile(X + 1, [X], threads=1), []
    for name in ("report", "write_trace", "function_html", "function_svg", "save_functions", "export_function"):
        monkeypatch.setattr(slots, name, lambda *args, name=name, **named: calls.append((name, args, named)) or name)
    assert (f.report(), f._repr_html_(), f._repr_svg_()) == ("report", "function_html", "function_svg")
    f.trace("t.json", A, most=3)
    f.save("folder", also=[g], names=["a"])
    f.save("folder")
    assert f.export("there", form="c") == "export_function"
    assert calls == [
        *((name, (f,), {}) for name in ("report", "function_html", "function_svg")),
        ("write_trace", (f, "t.json", (A,), {"most": 3}), {}),
        ("save_functions", ([f, g], "folder", None, ["a"]), {}),
        ("save_functions", ([f], "folder", None, ()), {}),
        ("export_function", (f, "there"), {"form": "c"}),
    ]


def test_a_graph_is_saved_beside_a_function_without_cells_and_updates_alone(monkeypatch):
    saved, w = [], cell([1.0])
    monkeypatch.setattr(slots, "save_functions", lambda *args: saved.append(args))
    for f in (cg.compile(w * 2, []), cg.compile([], [], {w: cg.Const([2.0])})):
        with pytest.raises(FormatError, match="Save it without graph="):
            f.save("folder", graph=b"")
        f.save("folder")
    f = cg.compile(X * 2, [X])
    f.save("folder", graph=b"graph")
    assert len(saved) == 3 and saved[-1] == ([f], "folder", b"graph", ())


def test_a_pickled_function_computes_the_same_with_cells_of_its_own():
    w = cell([1.0, 2.0])
    f = cg.compile({"y": w * 3}, [], {w: w + 1})
    other = pickle.loads(pickle.dumps(f))
    assert other.names == ("y",) and other()["y"].tolist() == [3, 6] == f()["y"].tolist()
    assert f()["y"].tolist() == [6, 9] == other()["y"].tolist() and w.value.tolist() == [3, 4]


# -- eval and item -----------------------------------------------------------------------------------------------------


def test_eval_keeps_its_function_and_reads_cells_anew():
    w = cell([1.0, 2.0])
    node = cg.square(w)
    assert cg.eval(node).tolist() == [1, 4]
    function = EVALUATED.get(node)
    w.assign([3.0, 4.0])
    assert cg.eval(node).tolist() == [9, 16] and EVALUATED.get(node) is function is not None


def test_functions_of_eval_count_with_their_constants(monkeypatch):
    cache, constant = FunctionCache(most=4, most_nbytes=1 << 20), cg.Const(np.ones((40, 50), "f4"))
    monkeypatch.setattr(function_module, "EVALUATED", cache)
    cg.eval(cg.cumsum(constant, 0) * cell(2.0))
    assert constant.nbytes <= cache.nbytes < 1 << 20 and len(cache) == 1


@pytest.mark.parametrize("is_too_large", [False, True])
def test_an_engine_that_has_no_plan_within_a_budget_gives_way_to_the_other_one(monkeypatch, is_too_large):
    """What is saved is compiled by the other one, with the same names, and has them."""
    asked, request = [], Request((X * 2,), (X,), {})
    other = CpuEngine(threads=1)

    def compile_on(backend, *given):
        asked.append((backend, *given))
        if is_too_large and backend is not other:
            raise BudgetError("too large")
        return Function(request, plain.compiled, plain.program, given[2], given[3]), given[1]

    plain = cg.compile({"y": X * 2}, X)
    monkeypatch.setattr(function_module, "engines_of", lambda backend, roots, options: (backend, other))
    monkeypatch.setattr(function_module, "compile_on", compile_on)
    options = CompileOptions()
    f = function_module.compile_request(request, options, CpuEngine(), False, ("y",))
    assert [x[0] is other for x in asked] == ([False, True] if is_too_large else [False])
    assert all(x[1:] == (request, options, False, ("y",)) for x in asked) and f.names == ("y",)
    if is_too_large:
        assert f.for_saving() is f
        return
    f.names = ("renamed",)
    savable = f.for_saving()
    assert savable is not f and savable.names == ("renamed",) and asked[-1][0] is other and asked[-1][4] == ("y",)


def test_what_is_compiled_again_to_be_saved_keeps_what_its_class_adds(tmp_path):
    """Lengths of results, and the number of names, which is not that of the program's outputs."""
    n = cg.Var((), "int64", "n")
    graph = {"y": X * 2, "length": cg.maximum(n, 0)}, [X, n]
    f, other = (cg.compile(*graph) for _ in range(2))
    f.compile_savable = lambda: other
    trimmed = TrimmedFunction.of(f, Trims([[Case(None, 0, {0: 1})]], ()))
    savable = trimmed.for_saving()
    assert type(savable) is TrimmedFunction and savable.program is other.program and savable.trims is trimmed.trims
    trimmed.save(tmp_path / "saved")
    for one in (savable, cg.load(tmp_path / "saved"), pickle.loads(pickle.dumps(trimmed))):
        assert one.names == ("y",) and [x.tolist() for x in one(A, 2)] == [[0, 2]]


@pytest.mark.parametrize("precision", [None, "bf16"])
def test_a_function_tells_how_its_layers_are_computed_if_that_was_left_open(precision):
    f = cg.compile(X @ np.ones((3, 4), "f4"), X, precision=precision)
    assert (f.precision is None) == (precision is None)


@pytest.mark.parametrize("value", [True, 3, 2.5])
def test_an_item_is_a_python_number(value):
    assert type(cg.item(cg.Const(value))) is type(value) and cg.item(cg.Const([[value]])) == value
    with pytest.raises(ValueError):
        cg.item(cg.Const([value, value]))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"memory": "best"}, "there is no memory strategy 'best'"),
        ({"order": "sideways"}, "there is no order 'sideways'"),
        ({"weights_dtype": "float16", "passes": False}, "passes=False runs none"),
        ({"precision": "bf16", "passes": False}, "passes=False runs none"),
    ],
)
def test_options_that_cannot_be_are_refused_before_any_work(options, message, monkeypatch):
    x = cg.Var((2,), name="x")
    monkeypatch.setattr(CpuEngine, "lower", lambda *_: pytest.fail("the graph was lowered"))
    with pytest.raises(GraphError, match=message):
        cg.compile(x + 1, [x], **options)


class Measured(Exception):
    """Ends a compile behind its first trial."""


@pytest.mark.parametrize("is_named", [True, False])
def test_trials_of_a_tolerance_are_planned_fast_and_change_nothing(is_named, monkeypatch, tmp_path):
    """They have the outputs, the sources of updates, and the options that decide about bits."""
    x, w = cg.Var((4, 4), name="x"), cell(np.eye(4, dtype="f4"), "w")
    noted, told, plan = [], [], CpuEngine.plan
    monkeypatch.setattr(CpuEngine, "plan", lambda *given: noted.append(given[1:]) or plan(*given))

    def choose(build, tolerance, inputs, names):
        told.append((inputs, list(names)))
        build(None)()
        raise Measured

    monkeypatch.setattr(function_module, "choose_precision", choose)
    outputs = {"y": x * 2 @ w} if is_named else [x * 2 @ w]
    options = {
        "memory": "exact", "order": "least_memory", "changing": [w], "budget": "1MiB", "recompute": True, "bands": 8,
        "winograd": False, "weights_dtype": "float16", "precision": cg.Tolerance(0.5, [np.ones((4, 4))], ["w"]),
        "freeze": [x], "engine": CpuEngine(tiles=False),
    }  # fmt: skip
    x.assign(np.ones((4, 4)))
    with pytest.raises(Measured):
        cg.compile(outputs, [], {w: w + x}, **options)
    ((request, trial),) = noted
    assert told == [((), ["y" if is_named else "output0", "w"])]
    assert len(request.outputs) == 2 and request.updates == {} and w.value.tolist() == np.eye(4).tolist()
    assert (trial.memory, trial.order, trial.recompute) == ("greedy_by_size", "depth_first", False)
    assert (trial.budget, trial.bands, trial.weights, trial.changing, trial.rows) == (None, None, None, (), ())
    assert (trial.winograd, trial.passes, trial.weights_dtype) == (False, True, "float16")


def test_a_compile_again_has_the_values_of_frozen_vars_and_the_other_options():
    w, v = cell([1.0, 2.0]), cell([5.0, 6.0], "v")
    y = w * 3
    request = Request((y, v * 2), (), {v: w + v})
    options = CompileOptions(freeze=(w,), rows=(y, v), winograd=False, order="least_memory")
    again, kept = without_freeze(request, options)
    assert kept == replace(options, freeze=(), rows=(again.outputs[0], v)) and again.outputs[0] is not y
    w.assign([9.0, 9.0])
    values = cg.compile([*again.outputs, again.updates[v]], [])()
    assert [x.tolist() for x in values] == [[3, 6], [10, 12], [6, 8]] and again.inputs == ()
