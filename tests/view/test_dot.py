import re
import sys
import xml.etree.ElementTree as xml
from shutil import which

import numpy as np
import pytest

import cgraph as cg
from cgraph.errors import GraphError, UnavailableError
from cgraph.memory.strategies.greedy_by_size_blocks import greedy_by_size_blocks
from cgraph.memory.strategies.one_each import one_each
from cgraph.view.diagram import CONST, OP, VAR, VIEW, Diagram, DiagramItem, diagram_of
from cgraph.view.dot import NO_BLOCK, diagram_dot, function_dot, graph_dot, quote, render
from cgraph.view.planned import memory_of
from cgraph.view.text import colour_of
from tests.support.planned import planned

needs_dot = pytest.mark.skipif(which("dot") is None, reason="the program dot is not installed")
HOSTILE = 'a"b\\n\\" -> n0 ]; evil [label="x"] // <table>&lt;\x00\u202e'


def chain(length, strategy=greedy_by_size_blocks):
    """sin, cos, sin … of a Var, planned as it is written."""
    node = cg.Var((8, 8), name="x")
    for i in range(length):
        node = np.sin(node) if i % 2 else np.cos(node)
    return planned(node, strategy=strategy)


def compiled_example():
    x, state = cg.Var((8, 8), name="x"), cg.Var((8, 8), name="state")
    turned = (np.sin(x) + 2.0).T
    joined = cg.concat([np.tanh(turned), np.cos(x)], 0)
    return planned(joined, updates={state: state + turned}, strategy=one_each)


def statements(dot):
    """Attributes by node, and edges as pairs with their attributes; every line of the text is one or the other."""
    nodes, edges = {}, []
    for line in dot.splitlines()[4:-1]:
        found = re.fullmatch(r'  (n\d+)(?: -> (n\d+))?(?: \[((?:[^"\]]|"(?:[^"\\]|\\.)*")*)\])?', line)
        assert found, line
        if found[2]:
            edges.append((found[1], found[2], found[3] or ""))
        else:
            nodes[found[1]] = found[3]
    return nodes, edges


def colour(attributes):
    return re.search(r'fillcolor="([^"]*)"', attributes)[1]


def test_every_node_and_every_operand_is_drawn():
    compiled = compiled_example()
    nodes, edges = statements(function_dot(compiled))
    order = list(compiled.layout.views)
    assert len(nodes) == len(order)
    assert len(edges) == sum(len(n.operands) for n in order) + 1
    (update,) = [e for e in edges if "dashed" in e[2]]
    assert "state" in nodes[update[1]] and "add" in nodes[update[0]]


def test_nodes_tell_bytes_shape_step_and_line():
    nodes, _ = statements(function_dot(chain(2)))
    assert r"node (cos)\nfloat32[8,8]\n256 B, step 0\ntest_dot.py:" in nodes["n1"]


def test_one_colour_is_one_block():
    compiled = chain(12)
    nodes, _ = statements(function_dot(compiled))
    colours = [colour(nodes[f"n{i + 1}"]) for i in range(12)]
    offsets = [box.offset for box in memory_of(compiled).boxes]
    assert len(set(colours)) == len(set(offsets)) < 12
    assert len(set(zip(colours, offsets))) == len(set(colours))


def test_views_have_the_colour_of_the_bytes_they_show():
    compiled = compiled_example()
    diagram = diagram_of(compiled)
    nodes, _ = statements(function_dot(compiled))
    (turned,) = [i for i, x in enumerate(diagram.items) if x.kind == VIEW and x.name.endswith("(transpose)")]
    (owner,) = diagram.items[turned].operands
    assert colour(nodes[f"n{turned}"]) == colour(nodes[f"n{owner}"])
    assert "dashed" in nodes[f"n{turned}"] and "view" in nodes[f"n{turned}"]
    assert "dashed" not in nodes[f"n{owner}"]


def test_vars_consts_and_outputs_look_different():
    compiled = compiled_example()
    nodes, _ = statements(function_dot(compiled))
    for i, item in enumerate(diagram_of(compiled).items):
        assert ("shape=ellipse" in nodes[f"n{i}"]) == (item.kind == VAR)
        assert ("shape=note" in nodes[f"n{i}"]) == (item.kind == CONST)
        assert ("peripheries=2" in nodes[f"n{i}"]) == item.output
    assert any("const = 2" in text for text in nodes.values())


def test_a_graph_that_is_not_compiled_has_no_colours_and_its_update_edges():
    x = cg.Var((4,), name="x")
    nodes, edges = statements(graph_dot(np.sin(x), {x: np.cos(x)}))
    assert len(nodes) == 3
    assert {colour(nodes[f"n{i}"]) for i in range(3)} <= {"#ffffff", "#e0ecff"}
    assert [(a, b) for a, b, style in edges if "dashed" in style] == [("n2", "n0")]


@needs_dot
def test_names_cannot_break_the_text():
    text = graph_dot(np.sin(cg.Var((4,), name=HOSTILE)))
    nodes, edges = statements(text)
    assert len(nodes) == 2 and len(edges) == 1
    picture = xml.fromstring(render(text, "svg"))
    shown = [x.text for x in picture.iter("{http://www.w3.org/2000/svg}text")]
    assert HOSTILE[:-2] + "??" in shown


@needs_dot
def test_the_picture_has_every_node():
    picture = xml.fromstring(render(function_dot(compiled_example()), "svg"))
    drawn = [x for x in picture.iter() if x.get("class") == "node"]
    assert len(drawn) == len(compiled_example().layout.views)
    assert render(function_dot(chain(3)), "png").startswith(b"\x89PNG")


def test_without_the_program_the_error_says_what_to_install(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(UnavailableError, match="apt install graphviz"):
        render(graph_dot(np.sin(cg.Var((4,)))), "svg")


def test_other_formats_are_refused():
    with pytest.raises(GraphError, match="svg and png"):
        render("digraph {}", "exe")


def test_deep_and_wide_graphs_are_written():
    x = node = cg.Var((2,), name="x")
    for _ in range(10_000):
        node = np.sin(node)
    nodes, edges = statements(graph_dot([node, *(x + float(i) for i in range(1_000))]))
    assert len(nodes) == 1 + 10_000 + 3 * 1_000
    assert len(edges) == 10_000 + 3 * 1_000


def test_a_long_name_is_cut_and_the_rest_of_the_label_stays():
    nodes, _ = statements(graph_dot(cg.Var((4,), name="x" * 1000)))
    assert "x" * 100 in nodes["n0"] and "x" * 300 not in nodes["n0"]
    assert r"…\nfloat32[4]\n16 B\ntest_dot.py:" in nodes["n0"]


@pytest.mark.parametrize("kind", ["svg", "png"])
def test_the_program_gets_the_text_and_its_complaint_is_told_visibly(kind, monkeypatch):
    graphviz = pytest.importorskip("graphviz", reason="the package graphviz is not installed")
    calls = []

    def pipe(*args, **options):
        calls.append((args, options))
        if len(calls) > 1:
            raise graphviz.CalledProcessError(3, ["dot"], b"", b"")
        return b"picture"

    monkeypatch.setattr(graphviz, "pipe", pipe)
    assert render("digraph {ü}", kind) == b"picture"
    assert calls == [(("dot", kind, "digraph {ü}".encode()), {"quiet": True})]
    with pytest.raises(GraphError, match="^Graphviz fails: .*3"):
        render("digraph {", kind)


def test_without_the_package_the_error_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "graphviz", None)
    with pytest.raises(UnavailableError, match="the Python package graphviz is not installed: pip install graphviz"):
        render("digraph {}", "svg")


@pytest.mark.parametrize(
    ("text", "quoted"),
    [
        ("a\\b", r'"a\\b"'), ('a"b', r'"a\"b"'), ("a&lt;b", '"a&amp;lt;b"'), ("a\nb", r'"a\nb"'), ("\\n", r'"\\n"'),
        ("a\tb", '"a?b"'), ("", '""'),
    ],
)  # fmt: skip
def test_a_quoted_text_is_shown_as_it_is(text, quoted):
    assert quote(text) == quoted


@pytest.mark.parametrize("block", [-1, 0, 1])
@pytest.mark.parametrize("kind", [OP, VIEW, VAR, CONST])
def test_a_node_has_the_colour_of_its_block_from_the_first_on(block, kind):
    item = DiagramItem("x", kind, "float32[2]", "", "", 8, block, block, block, (), False)
    nodes, _ = statements(diagram_dot(Diagram((item,), ())))
    assert colour(nodes["n0"]) == (colour_of(block) if block >= 0 else NO_BLOCK[kind])
    assert (f", step {block}" in nodes["n0"]) == (block >= 0)


def test_chains_of_values_run_straight_and_edges_of_leaves_may_bend():
    x, table = cg.Var((2, 2), name="x"), cg.Const(np.ones((2, 2), "f4"), name="table")
    nodes, edges = statements(graph_dot(np.sin(x + table)))
    name_of = {
        node: re.match(r'label="([^\\]*)', attributes)[1].partition(" ")[0] for node, attributes in nodes.items()
    }
    kinds = {(name_of[a], name_of[b]): attributes for a, b, attributes in edges}
    assert kinds == {("x", "add"): "", ("table", "add"): "", ("add", "sin"): "weight=8"}
