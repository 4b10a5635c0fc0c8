import sys
import xml.etree.ElementTree as xml
from shutil import which
from types import SimpleNamespace

import numpy as np
import pytest

import cgraph as cg
from cgraph.cli import main, view
from cgraph.cli.model import READERS, CliModel, load_model
from cgraph.errors import FormatError, GraphError
from cgraph.memory.strategies.one_each import one_each
from cgraph.view.dot import function_dot
from cgraph.view.page import page_html
from cgraph.view.planned import function_svg

MODULE = """
import numpy as np
import cgraph as cg

x = cg.Var((8, 8), name="x")
total = np.sin(x) + np.cos(x).T

def function():
    return cg.compile(total, [x], memory="one_each")

def step():
    state = cg.Var((8, 8), name="state").assign(np.zeros((8, 8), "f4"))
    return cg.compile(total, [x], updates={state: np.exp(total)})

def nodes():
    return [total, np.exp(total)]

def number():
    return 3

def broken():
    raise OSError("no such thing\\nat all")
"""


@pytest.fixture
def module(tmp_path, monkeypatch):
    """The name of a module with models, in the folder one is in."""
    name = f"models_{abs(hash(tmp_path))}"
    (tmp_path / f"{name}.py").write_text(MODULE)
    monkeypatch.chdir(tmp_path)
    yield name
    sys.modules.pop(name, None)


def test_each_ending_gets_its_picture(module, tmp_path, capsys):
    for ending, draw in ((".svg", function_svg), (".html", page_html)):
        path = tmp_path / f"out{ending}"
        assert main(["view", f"{module}:function", "-o", str(path)]) == 0
        function = load_model(f"{module}:function").compiled()
        assert path.read_text() == draw(function, f"{module}:function")
        assert f"by {function.plan.strategy}" in capsys.readouterr().out
    assert main(["view", f"{module}:function", "-o", str(tmp_path / "out.dot")]) == 0
    assert (tmp_path / "out.dot").read_text() == function_dot(load_model(f"{module}:function").compiled())


def test_a_page_within_a_budget_has_the_frames_of_regions(module, tmp_path):
    source = (
        "import cgraph as cg, numpy as np\n"
        "x = cg.Var((1, 4, 40, 40), name='x')\n"
        "f = np.ones((16, 4, 3, 3), 'float32')\n"
        "y = cg.max_pool2d(cg.relu(cg.conv2d(x, f, pad=1)), 4)\n"
    )
    (tmp_path / f"{module}_images.py").write_text(source)
    path = tmp_path / "out.html"
    assert main(["view", f"{module}_images:y", "-o", str(path), "--budget", "40KiB"]) == 0
    assert "data:image/svg+xml" in path.read_text()
    assert main(["view", f"{module}_images:y", "-o", str(path)]) == 0
    assert "data:image/svg+xml" not in path.read_text()


@pytest.mark.skipif(which("dot") is None, reason="the program dot is not installed")
def test_graphs_are_drawn_by_dot(module, tmp_path):
    svg, png = tmp_path / "out.svg", tmp_path / "out.png"
    assert main(["view", f"{module}:total", "-o", str(svg), "--graph"]) == 0
    assert any(x.get("class") == "node" for x in xml.parse(svg).iter())
    assert main(["view", f"{module}:total", "-o", str(png)]) == 0
    assert png.read_bytes().startswith(b"\x89PNG")


def test_without_dot_a_png_is_an_error_that_says_what_to_install(module, tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("PATH", str(tmp_path))
    assert main(["view", f"{module}:total", "-o", str(tmp_path / "out.png")]) == 2
    assert "apt install graphviz" in capsys.readouterr().err
    assert not (tmp_path / "out.png").exists()


def test_a_strategy_can_be_chosen(module, tmp_path, capsys):
    assert main(["view", f"{module}:nodes", "-o", str(tmp_path / "out.svg"), "--memory", "one_each"]) == 0
    assert "by one_each" in capsys.readouterr().out
    assert main(["view", f"{module}:nodes", "-o", str(tmp_path / "out.svg"), "--memory", "none"]) == 2
    assert "no memory strategy 'none'" in capsys.readouterr().err


def test_a_graph_as_it_was_written_has_every_node_and_no_plan(module, tmp_path, capsys):
    path = tmp_path / "out.dot"
    assert main(["view", f"{module}:total", "-o", str(path), "--as-written"]) == 0
    text = path.read_text()
    assert text.count("label=") == 5  # x, sin, cos, transpose, add
    assert "step" not in text
    assert main(["view", f"{module}:step", "-o", str(path), "--as-written"]) == 0
    assert path.read_text().count("label=") >= 7 and "state" in path.read_text() and "exp" in path.read_text()
    assert main(["view", f"{module}:total", "-o", str(tmp_path / "out.svg"), "--as-written"]) == 2


@pytest.mark.parametrize(
    ("reference", "message"),
    [
        ("model.xyz", "model.xyz is not a model"),
        ("a:b:c", "is not a model"),
        ("os.path:__dict__; import os", "is not a model"),
        ("absent_module:f", "ModuleNotFoundError"),
        ("{}:absent", "AttributeError"),
        ("{}:number", "gives 3, expected a Function"),
        ("{}:broken", "OSError: no such thing at all"),
    ],
)
def test_what_is_no_model_is_an_error_in_one_line(module, tmp_path, capsys, reference, message):
    assert main(["view", reference.format(module), "-o", str(tmp_path / "out.svg")]) == 2
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1


@pytest.mark.parametrize("name", ["out.xyz", "out"])
def test_an_unknown_ending_names_the_known_ones(module, tmp_path, capsys, name):
    assert main(["view", f"{module}:total", "-o", str(tmp_path / name)]) == 2
    assert "Use one of .svg, .html, .png, .dot" in capsys.readouterr().err


def test_what_the_user_compiled_is_shown_unless_options_ask_for_another():
    function = cg.compile(np.sin(cg.Var((4,))), memory=one_each)
    model = CliModel(function.outputs, function.inputs, function.updates, function)
    assert model.compiled() is function
    assert model.compiled(memory="greedy_by_size").plan.strategy == "greedy_by_size"


def test_a_file_is_read_by_its_ending(monkeypatch):
    x = cg.Var((4,))
    monkeypatch.setitem(READERS, ".net", lambda path, options: CliModel((np.sin(x),), (x,)))
    assert load_model("some.NET").inputs == (x,)
    with pytest.raises(FormatError, match=r"a file \(.*\.net\) or a Python reference"):
        load_model("some.other")


def test_an_error_of_the_user_s_module_keeps_its_cause(module):
    with pytest.raises(FormatError) as caught:
        load_model(f"{module}:broken")
    assert isinstance(caught.value.__cause__, OSError)


def test_a_graph_that_cannot_be_read_in_one_picture_is_refused(module, tmp_path, capsys):
    (tmp_path / "long.py").write_text(
        "import numpy as np, cgraph as cg\nx = y = cg.Var((4, 4))\nfor _ in range(200):\n    y = np.cumsum(y, 0)\n"
    )
    for ending in ("svg", "png"):
        assert main(["view", "long:y", "--graph", "-o", str(tmp_path / f"long.{ending}")]) == 2
        assert "of a readable picture. Use -o page.html" in capsys.readouterr().err
    assert main(["view", "long:y", "-o", str(tmp_path / "long.html")]) == 0
    assert main(["view", "long:y", "-o", str(tmp_path / "long.dot")]) == 0


@pytest.mark.parametrize(("count", "is_drawn"), [(150, True), (151, False)])
def test_a_picture_of_a_graph_has_at_most_150_nodes(count, is_drawn, monkeypatch):
    monkeypatch.setattr(view, "diagram_of", lambda function: SimpleNamespace(items=range(count)))
    monkeypatch.setattr(view, "function_dot", lambda function: f"text of {function}")
    monkeypatch.setattr(view, "render", lambda dot, kind: f"{kind} of {dot}".encode())
    if is_drawn:
        assert view.graph_picture("f", "png") == b"png of text of f"
    else:
        with pytest.raises(GraphError, match="151 nodes are more than the 150 of a readable picture"):
            view.graph_picture("f", "png")


@pytest.mark.parametrize("ending", [".svg", ".dot", ".DOT"])
def test_times_go_into_a_page_alone(ending, module, tmp_path, capsys):
    path = tmp_path / f"out{ending}"
    assert main(["view", f"{module}:total", "-o", str(path), "--times"]) == 2
    assert capsys.readouterr().err == f"cgraph: {path}: --times go into a page. Use -o OUT.html\n"
    assert not path.exists()


@pytest.mark.parametrize(
    ("name", "words", "message"),
    [
        ("out", [], "cannot draw a nameless file. Use one of .svg, .html, .png, .dot"),
        ("out.pdf", [], "cannot draw a .pdf file. Use one of .svg, .html, .png, .dot"),
        ("out.PDF", ["--graph"], "cannot draw a .pdf file. Use one of .svg, .html, .png, .dot"),
        ("out.svg", ["--as-written"], "a graph as it was written is drawn as .dot only. Use -o OUT.dot"),
        ("out.svg", ["--times"], "--times go into a page. Use -o OUT.html"),
        ("out.dot", ["--times"], "--times go into a page. Use -o OUT.html"),
    ],
)
def test_what_cannot_be_drawn_is_refused_with_what_can(name, words, message, module, tmp_path, capsys):
    assert main(["view", f"{module}:function", "-o", name, *words]) == 2
    assert capsys.readouterr() == ("", f"cgraph: {name}: {message}\n") and not (tmp_path / name).exists()
