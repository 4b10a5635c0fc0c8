"""The text form of a graph: what it says is what the graph computes, and it can be read back."""

import re
from itertools import pairwise

import numpy as np
import pytest

import cgraph as cg
from cgraph.errors import FormatError, GraphError
from cgraph.ir.graph import Node
from cgraph.ir.traverse import post_order
from cgraph.ops.leaf import ConstOp, Var
from cgraph.passes import PASSES
from cgraph.record import Record
from cgraph.view.graph_text import fields_text
from tests.ops.cases import CASES


def script() -> tuple[Node, Node]:
    x = cg.Var((1, 3, 8, 8), name="x")
    y = cg.relu(cg.conv2d(x, cg.Const(np.ones((4, 3, 3, 3), "f4"), name="filters"), pad=1)) + 1.0
    return x, cg.softmax(cg.reshape(y, (4, 64)), axis=1) * 2.0


def constants_of(*nodes: Node) -> dict[str, np.ndarray]:
    """The arrays of a graph's constants, by number."""
    order = post_order(nodes)
    return {f"%{i}": node.op.array for i, node in enumerate(order) if isinstance(node.op, ConstOp)}


def test_a_line_for_each_node_says_op_operands_parameters_and_spec():
    x = cg.Var((2, 3), "float64", name="x")
    assert cg.text(cg.sum(x * 2.0, axis=1)).splitlines() == [
        "%0 = var x : float64[2,3]",
        "%1 = const : float64[] = 2.0",
        "%2 = broadcast_to(%1) shape=(2, 3) : float64[2,3]",
        "%3 = multiply(%0, %2) : float64[2,3]",
        "%4 = sum(%3) axes=(1,) : float64[2]",
        "return %4",
    ]


REFUSED = {"cond", "custom_gradient", "delay", "delay_array", "fori", "kernel", "lazy_print", "roi_align_levels"}
REFUSED |= {"scan", "while_loop"}


def graph_of(case) -> list[Node]:
    nodes = case.build(*(cg.Var(d.shape, d.dtype, f"x{i}") for i, d in enumerate(case.draws)))
    return [nodes] if isinstance(nodes, Node) else list(nodes)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_what_is_written_is_read_back_line_by_line(case):
    outputs = graph_of(case)
    written = cg.text(outputs)
    if "=<" in written:  # a function or a graph, which no text can give
        with pytest.raises(FormatError, match="not plain"):
            cg.graph_from_text(written, constants_of(*outputs))
        return
    again = cg.graph_from_text(written, constants_of(*outputs))
    assert cg.text(again) == written
    assert [x.op for x in post_order(again) if not isinstance(x, Var)] == [
        x.op for x in post_order(outputs) if not isinstance(x, Var)
    ]


def test_only_ops_of_functions_and_graphs_are_not_plain():
    refused = {case.op for case in CASES if "=<" in cg.text(graph_of(case))}
    assert refused == REFUSED


def test_a_trace_shows_each_pass_that_changes_the_graph_and_ends_as_all_passes_do():
    _, y = script()
    trace = cg.text(y, passes="trace")
    heads = [line.removeprefix("-- after ") for line in trace.splitlines() if line.startswith("-- after ")]
    assert heads and set(heads) <= {rewrite.__name__ for rewrite in PASSES}
    assert trace.startswith("-- as written\n" + cg.text(y))
    assert trace.endswith(cg.text(y, passes="all"))
    assert cg.text(y, passes=heads[0]) in trace


def test_the_text_after_a_pass_is_that_of_the_graph_after_it_and_all_before_it():
    _, y = script()
    nodes, texts = (y,), []
    for rewrite in PASSES:
        nodes = tuple(rewrite(nodes))
        texts.append(cg.text(nodes))
        assert cg.text(y, passes=rewrite.__name__) == texts[-1], rewrite.__name__
    assert len({*texts}) > 1 and cg.text(y, passes="all") == texts[-1]


def test_a_function_is_shown_as_it_runs_with_its_update_edges():
    x, y = script()
    w = cg.Var((4, 64), name="w").assign(np.zeros((4, 64), "f4"))
    function = cg.compile(y, [x], updates={w: w + y})
    shown = cg.text(function).splitlines()
    assert any("var w" in line for line in shown)
    steps = {type(node.op).__name__ for node in function.compiled.layout.steps}
    assert steps and len(shown) > len(steps)


@pytest.mark.parametrize("options", [{}, {"engine": "reference"}, {"engine": "cuda-sim"}, {"passes": False}], ids=str)
def test_the_text_of_a_function_has_a_line_for_each_update_edge(options):
    x, y = script()
    w, v = (cg.Var((4, 64), name=name).assign(np.zeros((4, 64), "f4")) for name in "wv")
    for updates in ({}, {w: w + y}, {w: w + y, v: v * 2 + w}):
        shown = cg.text(cg.compile(y, [x], updates, **options)).splitlines()
        names = dict(re.match(r"(%\d+) = var (\w+)", line).groups() for line in shown if " = var " in line)
        changed = [re.match(r"update (%\d+) = %\d+$", line)[1] for line in shown if line.startswith("update ")]
        assert {names[x] for x in changed} == {var.name for var in updates} and len(changed) == len(updates)


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("", "has no line 'return"),
        ("%0 = var x : float32[2]", "has no line 'return"),
        ("hello", "line 1 of the graph: 'hello' is not a node"),
        ("%0 = var x : float32[2]\n%1 = sine(%0) : float32[2]\nreturn %1", "line 2 .* no op 'sine'"),
        ("%0 = var x : float32[2]\n%1 = sin(%7) : float32[2]\nreturn %1", "line 2 of the graph: %7 is not defined"),
        ("%0 = var x : float32[2]\n%1 = sin(%0) : float32[3]\nreturn %1", r"sin gives float32\[2\], .* float32\[3\]"),
        ("%0 = var x : float32[2]\n%1 = sum(%0) axes=<Body> : float32[]\nreturn %1", "not plain"),
        ("%0 = var x : float32[2]\n%1 = sum(%0) axes=open('x') : float32[]\nreturn %1", "line 2"),
        ("%0 = var x : float32[2]\n%1 = sum(%0) axes=(0,), axis=1 : float32[]\nreturn %1", "line 2"),
        ("%0 = var x : float32[2]\n%1 = sum(%0) (0,) : float32[]\nreturn %1", "not parameters"),
        ("%0 = var x : float32[2]\n%1 = sum(%0) axes=(0,)) + op( : float32[]\nreturn %1", "not parameters"),
        ("%0 = var x : float32[2]\n%1 = sum(%0) **{} : float32[]\nreturn %1", "not parameters"),
        ("%0 = var x : float32[2]\n%1 = sum(%0) axes='ab' : float32[]\nreturn %1", "line 2"),
        ("%0 = var x : float32[2]\n%1 = sum(%0) axes=" + "(" * 5000 + " : float32[]\nreturn %1", "line 2"),
        ("%0 = var x : float32[99999999999999999999]\nreturn %0", "line 1"),
        ("%0 = var x : float32[2]\nreturn %0, %1", "line 2 .*%1 is not defined"),
        ("%0 = var x : float32[2]\nupdate %0 = %0\nreturn %0", "pass updates= to compile"),
        ("%0 = var x : nothing[2]\nreturn %0", "line 1"),
        ("%0 = const : float32[20] = sha256:00\nreturn %0", "Pass constants="),
        ("%0 = const : float32[2] = [1.0]\nreturn %0", "line 1"),
        ("%0 = const : float32[1] = [open]\nreturn %0", "line 1"),
    ],
)
def test_a_line_that_is_not_one_is_refused_by_its_number(source, message):
    with pytest.raises(FormatError, match=message):
        cg.graph_from_text(source)


def test_what_cannot_be_shown_is_refused():
    x, y = script()
    with pytest.raises(GraphError, match="there is no pass 'fuse'. Use one of .*trace"):
        cg.text(y, passes="fuse")
    with pytest.raises(GraphError, match="Pass nodes instead"):
        cg.text(cg.compile(y, [x]), passes="all")
    with pytest.raises(GraphError, match="needs nodes or a Function, got 3"):
        cg.text([y, 3])


@pytest.mark.parametrize("array", [np.arange(3.0), np.arange(300.0)], ids=["in the text", "beside the text"])
def test_names_of_vars_and_constants_are_read_back(array):
    x, weight = cg.Var(array.shape, "float64", "an image"), cg.Const(array, name="conv1/weight")
    written = cg.text(x * weight)
    (again,) = cg.graph_from_text(written, {"%1": array})
    assert {node.name for node in again.operands} == {"an image", "conv1/weight"}
    assert cg.text(again) == written


def test_names_of_files_show_no_control_characters():
    x = cg.Var((2,), name="a\x1b[2Jb")
    assert "\x1b" not in cg.text(x * 2.0)


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "int64", "uint8", "bool"])
def test_constants_keep_their_bits(dtype):
    rng = np.random.default_rng(1)
    array = (rng.standard_normal(12) * 100).astype(dtype)
    if dtype[0] == "c":
        array += 1j * rng.standard_normal(12).astype("f4")
        array[0] = complex(-0.0, np.inf)
    if dtype[0] == "f":
        array[:3] = np.nan, np.inf, -np.inf
    node = cg.Const(array) if dtype == "bool" else cg.Const(array) + cg.Const(array[:1])
    (again,) = cg.graph_from_text(cg.text(node))
    assert again.eval().tobytes() == node.eval().tobytes()


def test_an_array_of_another_checksum_is_refused():
    array = np.arange(20.0)
    written = cg.text(cg.Const(array))
    assert cg.graph_from_text(written, {"%0": array})[0].eval().tobytes() == array.tobytes()
    with pytest.raises(FormatError, match="has sha256:.* the line says sha256:.* Pass that array"):
        cg.graph_from_text(written, {"%0": array + 1})


def test_a_parameter_that_only_equals_its_default_is_written():
    """-0.0 == 0.0 and True == 1."""

    class Shift(Record):
        by: float = 0.0
        axes: tuple = (1,)

    assert list(fields_text(Shift())) == []
    assert list(fields_text(Shift(-0.0, (True,)))) == ["by=-0.0", "axes=(True,)"]


@pytest.mark.parametrize(("shape", "is_shown"), [((), True), ((0, 3), True), ((4, 4), True), ((17,), False)], ids=str)
def test_up_to_sixteen_elements_of_a_constant_are_shown(shape, is_shown):
    array = np.arange(np.prod(shape, dtype=int), dtype="int64").reshape(shape)
    line, _ = cg.text(cg.Const(array)).splitlines()
    spec, _, values = line.removeprefix("%0 = const : ").partition(" = ")
    assert spec == str(cg.Const(array).spec) and (values == repr(array.tolist())) == is_shown
    assert values.startswith("sha256:") != is_shown


def test_a_checksum_is_of_the_elements_in_their_order_however_they_lie():
    array = np.arange(20.0).reshape(4, 5)
    written = cg.text(cg.Const(array))
    for same in (np.asfortranarray(array), np.repeat(array, 2, 1)[:, ::2]):
        assert cg.text(cg.Const(same)) == written
        assert (cg.graph_from_text(written, {"%0": same})[0].eval() == array).all()
    assert cg.text(cg.Const(array[::-1])) != written != cg.text(cg.Const(array.astype("f4")))


def test_a_trace_leaves_out_each_pass_that_changes_nothing():
    _, y = script()
    _, *texts = re.split("^-- .*\n", cg.text(y, passes="trace"), flags=re.MULTILINE)
    assert len(texts) > 1 and all(one.strip() != other.strip() for one, other in pairwise(texts))


def test_a_parameter_that_is_not_plain_is_written_even_if_it_is_the_default():
    """Its text does not say whether it is."""

    class Shift(Record):
        by: tuple = ([],)

    assert list(fields_text(Shift())) == ["by=<tuple>"]


@pytest.mark.parametrize("comment", ["-- after fold_constants", "# a remark", "", "   "])
def test_comments_and_empty_lines_are_skipped(comment):
    lines = ["%0 = var x : float32[2]", "%1 = sin(%0) : float32[2]", "return %1"]
    for i in range(4):
        (node,) = cg.graph_from_text("\n".join([*lines[:i], comment, *lines[i:]]))
        assert node.op.name == "sin"


def test_an_array_beside_the_text_has_its_shape_dtype_and_every_bit():
    array = np.arange(20.0)
    written = cg.text(cg.Const(array))
    for other in (array.astype("f4"), array.reshape(4, 5), array.astype("i8")):
        with pytest.raises(
            FormatError, match=re.escape(f"constants['%0'] is {other.dtype}{list(other.shape)}, the line")
        ):
            cg.graph_from_text(written, {"%0": other})
    digits = written.split("sha256:")[1].split()[0]
    changed = written.replace(digits, digits[:-1] + ("0" if digits[-1] != "0" else "1"))
    with pytest.raises(FormatError, match="Pass that array"):
        cg.graph_from_text(changed, {"%0": array})


@pytest.mark.parametrize("engine", ["cpu", "reference"])
def test_a_var_that_only_an_update_writes_has_a_line(engine):
    x, first = cg.Var((2,), name="x"), cg.Var((2,), name="first")
    shown = cg.text(cg.compile(x * 2.0, [x], {first: -x}, engine=engine)).splitlines()
    lines = {line.partition(" = ")[2]: line.partition(" = ")[0] for line in shown}
    assert shown[-1] == f"update {lines['var first : float32[2]']} = {lines['negative(%0) : float32[2]']}"
