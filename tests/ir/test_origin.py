"""Nodes know the line that made them, and a line of a file only as long as the file is read."""

import linecache
import sys

import pytest

import cgraph as cg
from cgraph.ir.origin import MOST_LETTERS, ORIGIN, Origin, keeps_origin, named, origin_at, user_line, variable_at


def here() -> tuple[str, int]:
    """File and line of the caller."""
    frame = sys._getframe(1)
    return frame.f_code.co_filename, frame.f_lineno


def test_a_node_comes_from_the_line_of_the_user():
    x = cg.Var((2,), name="x")
    (y, place) = (cg.sin(x), here())
    assert y.origin[:2] == place


def test_the_line_of_a_file_holds_inside_its_block_alone():
    with origin_at("net.onnx", 3):
        assert user_line() == ("net.onnx", 3, "")
        with origin_at("net.onnx", 4, "conv"):
            assert user_line() == ("net.onnx", 4, "conv")
        assert user_line() == ("net.onnx", 3, "")
    assert user_line()[0] != "net.onnx"


@pytest.mark.parametrize("letters", [MOST_LETTERS - 1, MOST_LETTERS, MOST_LETTERS + 1, 10 * MOST_LETTERS])
def test_a_name_of_a_file_is_cut_at_the_most_letters(letters):
    name = ("abc" * letters)[:letters]
    with origin_at("net.onnx", 3, name):
        assert user_line().name == name[:MOST_LETTERS] == cg.exp(cg.Var((2,))).origin.name


def test_a_failure_inside_the_block_ends_it():
    with pytest.raises(ZeroDivisionError), origin_at("net.onnx", 3):
        raise ZeroDivisionError
    assert user_line()[0] != "net.onnx"


def test_a_function_that_keeps_its_place_leaves_no_line_behind():
    @keeps_origin
    def read() -> Origin:
        block = origin_at("net.onnx", 7)
        block.__enter__()
        return user_line()

    assert read() == ("net.onnx", 7, "")
    assert user_line()[0] != "net.onnx"


@pytest.mark.parametrize("kind", [ValueError, KeyboardInterrupt, GeneratorExit])
def test_a_function_that_fails_leaves_no_line_behind_either(kind):
    @keeps_origin
    def read() -> None:
        ORIGIN.set(Origin("net.onnx", 7))
        raise kind

    with origin_at("other.onnx", 2):
        with pytest.raises(kind):
            read()
        assert user_line() == ("other.onnx", 2, "")
    with pytest.raises(kind):
        read()
    assert ORIGIN.get() is None


def test_an_origin_is_shown_with_its_name():
    assert str(Origin("/home/a/train.py", 41)) == "train.py:41"
    assert str(Origin("/home/a/train.py", 41, "blocks.0")) == "train.py:41 in blocks.0"


def test_the_variable_of_a_line_is_the_one_that_it_assigns(tmp_path):
    path = tmp_path / "script.py"
    path.write_text("y = f(x)\n    hidden: Node = f(x)\na, b = f(x)\nreturn f(x)\ny == f(x)\nx[0] = 1\nf(y=x)\n")
    names = [variable_at(str(path), line) for line in range(1, 9)]
    assert names == ["y", "hidden", "", "", "", "", "", ""]
    path.with_name("other.py").write_text(
        "f = cg.compile(cg.sin(x), x)\nhistory = nn.train(model, data)\ntrained = f(x)\n"
    )
    assert [variable_at(str(path.with_name("other.py")), line) for line in (1, 2, 3)] == ["", "", "trained"]
    model = tmp_path / "net.onnx"
    model.write_text("y = 1\n")
    assert variable_at(str(model), 1) == ""  # not a file of Python


def test_lines_of_a_notebook_and_of_an_interpreter_have_variables(monkeypatch):
    source = "hidden = f(x)\nf(x)\n"
    for file in ("<ipython-input-3>", "<stdin>"):
        monkeypatch.setitem(linecache.cache, file, (len(source), None, source.splitlines(True), file))
        assert [variable_at(file, line) for line in (1, 2, 3)] == ["hidden", "", ""]


def test_titles_have_the_users_name_first():
    x = cg.Var((2,), name="x")
    wave = cg.sin(x)
    assert (wave.label, wave.title, wave.name) == ("wave", "wave (sin)", "sin")
    assert (x.label, x.title) == ("x", "x")
    assert [cg.exp(wave)][0].title == "exp"
    with origin_at("net.onnx", 4, "conv"):
        tangent = cg.tan(x)
    assert (tangent.title, tangent.where, tangent.place) == ("conv (tan)", "net.onnx:4 in conv", "net.onnx:4")
    sin = cg.sin(x * 3)
    assert sin.title == "sin"


def test_a_name_holds_inside_its_block_alone_also_after_a_failure():
    with named("loss"):
        assert user_line().name == "loss"
        with pytest.raises(ZeroDivisionError), named("update of w"):
            raise ZeroDivisionError
        assert user_line().name == "loss"
    assert user_line().name == ""


@pytest.mark.parametrize(("line", "name"), [
    ("f = cg.compile_sizes(build, sizes)", ""), ("g = jit(f)", ""), ("r = cg.export(y, x, folder)", ""),
    ("q = quantise(y, x)", ""), ("t = nn.train_step(x)", ""), ("y = x.jitter(1)", "y"), ("exported = g(x)", "exported"),
    ("compiled: cg.Node = g(x)", "compiled"), ("größe = g(x)", "größe"), ("_y1 = g(x)", "_y1"), ("1y = g(x)", ""),
    ("y += g(x)", ""), ("if (y := g(x)) is not None:", ""), ("y.z = g(x)", ""), ("y = z = g(x)", "y"), ("", ""),
])  # fmt: skip
def test_only_a_plain_assignment_of_a_value_has_a_variable(line, name, monkeypatch):
    file = f"<input of {line}>"
    monkeypatch.setitem(linecache.cache, file, (len(line), None, [line], file))
    assert variable_at(file, 1) == name
