"""``cgraph warmup``: which graphs are built, their names as they begin, and the line at the end."""

import re
import sys
from types import SimpleNamespace

import numpy as np
import pytest

import cgraph as cg
from cgraph.cli import main, warmup
from cgraph.cli.warmup import COMMON, convolution, filters, models, of_one, of_two, progress, unary
from cgraph.engine.cpu.threads import interpreter
from cgraph.errors import FormatError
from cgraph.ir.traverse import post_order
from cgraph.kernels.target import host_target
from cgraph.view.graph_text import lines_of
from tests.support.tolerance import assert_near


def test_a_warmup_says_what_was_compiled_and_what_was_there(monkeypatch, capsys):
    loaded = []
    store = SimpleNamespace(misses=100, loaded=200, folder="kernels", load=lambda *args: loaded.append(args))

    def build():
        store.misses += 3
        store.loaded += 5

    monkeypatch.setattr(warmup, "store", lambda: store)
    monkeypatch.setattr(warmup, "COMMON", {"a": build, "b": build})
    assert main(["warmup"]) == 0
    assert re.search(r"2 graphs in .* s: 6 kernels compiled, 10 were there, in kernels", capsys.readouterr().out)
    assert loaded == [(interpreter(), host_target())]


@pytest.mark.parametrize(
    ("size", "stride", "groups", "side"), [(3, 1, 1, 28), (3, 2, 4, 14), (1, 1, 1, 28), (7, 2, 1, 14)]
)
def test_a_convolution_has_its_window_stride_groups_shift_and_relu(size, stride, groups, side):
    function = convolution(4, 8, size, stride, groups)()
    (x,) = function.inputs
    assert x.shape == (1, 4, 28, 28) and function.outputs[0].shape == (1, 8, side, side)
    value = np.random.default_rng(1).normal(size=x.shape).astype("float32")
    want = cg.conv2d(x, filters(8, 4 // groups, size, size), stride, size // 2, 1, groups) + cg.reshape(
        filters(8), (-1, 1, 1)
    )
    expected = np.maximum(cg.compile(want, x, engine="reference")(value), 0)
    assert_near(function(value), expected, "float32 products and a residual")


def test_functions_of_one_and_of_two_operands():
    x, y = np.arange(6, dtype="f4").reshape(2, 3), np.ones((3, 2), "f4")
    np.testing.assert_array_equal(of_one(unary("sum", 1), 2, 3)()(x), [3, 12])
    np.testing.assert_array_equal(of_two(lambda a, b: a @ b, (2, 3), (3, 2))()(x, y), x @ y)


def test_filters_are_the_same_every_time():
    np.testing.assert_array_equal(filters(3, 2).op.array, filters(3, 2).op.array)
    assert filters(3, 2).dtype == np.float32


@pytest.mark.parametrize(
    "name", ["softmax", "sum", "exp", "relu", "sum of images", "joined images", "mean of channels"]
)
def test_common_graphs_are_of_float32_and_can_be_run(name):
    function = COMMON[name]()
    operands = [np.zeros(x.shape, x.dtype) for x in function.inputs]
    assert {str(x.dtype) for x in function.inputs} == {"float32"} and np.isfinite(np.asarray(function(*operands))).all()


def test_references_are_loaded_when_it_is_their_turn():
    todo = models(["tests.cli.test_curve:images", "nothing.onnx"])
    assert list(todo) == ["tests.cli.test_curve:images", "nothing.onnx"]
    assert isinstance(todo["tests.cli.test_curve:images"](), cg.Function)
    with pytest.raises((FormatError, OSError), match="nothing.onnx"):
        todo["nothing.onnx"]()


def test_models_take_the_place_of_the_common_graphs(monkeypatch, capsys):
    monkeypatch.setattr(warmup, "COMMON", {"common": lambda: pytest.fail("a common graph was built")})
    assert main(["warmup", "tests.cli.test_curve:images"]) == 0
    assert capsys.readouterr().out.startswith("1 graphs in ")


def test_without_rich_each_graph_is_a_line(monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "rich.console", None)
    with progress(12) as begin:
        begin("a")
        begin("b\x1b")
    assert capsys.readouterr().out == "   1 of 12  a\n   2 of 12  b?\n"


@pytest.mark.parametrize("name", [name for name in COMMON if re.search(r"\dx\d", name)])
def test_common_convolutions_have_what_their_names_say(name, monkeypatch):
    monkeypatch.setattr(warmup, "compile", lambda y, inputs: (y, inputs))
    y, (x,) = COMMON[name]()
    convs = [node for node in post_order([y]) if node.op.name == "conv2d"]
    (conv,) = convs
    size = int(re.search(r"(\d)x\1", name)[1])
    groups = x.shape[1] if "depthwise" in name else 1
    stride = 2 if "stride 2" in name or "of a picture" in name else 1
    assert conv.operands[1].shape == (conv.shape[1], x.shape[1] // groups, size, size)
    assert conv.shape[2:] == (28 // stride, 28 // stride) and y.op.name == "relu"
    assert (x.shape[1] == 3) == ("of a picture" in name)


GRAPHS = {
    "max pooling": lambda x: cg.max_pool2d(x, 2), "average pooling": lambda x: cg.avg_pool2d(x, 2),
    "mean of channels": lambda x: cg.mean(x, (2, 3)), "softmax": cg.softmax, "sum": lambda x: cg.sum(x, 1),
    "sum of images": lambda x, y: cg.relu(x + y), "joined images": lambda x, y: cg.concat([x, y], 1),
    "product of matrices": lambda x, y: x @ y,
    **{name: getattr(cg, name) for name in "exp log sqrt tanh sigmoid relu sin cos".split()},
}  # fmt: skip


@pytest.mark.parametrize("name", COMMON)
def test_other_common_graphs_are_what_their_names_say(name, monkeypatch):
    monkeypatch.setattr(warmup, "compile", lambda y, inputs: (y, inputs))
    if name not in GRAPHS:
        assert re.search(r"\dx\d", name)
        return
    y, inputs = COMMON[name]()
    assert lines_of([y]) == lines_of([GRAPHS[name](*inputs)])
