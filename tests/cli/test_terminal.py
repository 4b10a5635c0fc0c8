"""Whatever a file, its name or an error says, a terminal gets text that can be seen, and its own control characters."""

import ast
import io
import json
import os
import subprocess
import sys
import traceback
import warnings
from pathlib import Path

import numpy as np
import pytest

import cgraph as cg
from cgraph.cli import main
from cgraph.cli.stream import write_progress
from cgraph.cli.unhandled import show_error, show_warning
from cgraph.cli.warmup import progress
from cgraph.errors import CgraphError
from cgraph.formats.onnx import save
from cgraph.system.progress import CLEAR, Bars, bounds_progress
from cgraph.terminal import complain, say, visible, write
from nn.progress import PlainBar, rich_bar
from tests.support.patience import PATIENCE
from tests.support.sources import ROOT, sources_with

BORDER = "cgraph/terminal.py"
BINARY = {"cgraph/formats/keras_apart.py": "sys.stdout.buffer"}  # a child's answer to its parent, which no one sees
EVIL = "\x1b]0;taken\x07\u202e\x9b2J\x00\r[/bold]\ud800"
ENCODABLE = EVIL.replace("\ud800", "")


def is_safe(text: str) -> bool:
    return all(char.isprintable() or char == "\n" for char in text)


PRINTS = ("print", "os.write", "pprint", "pprint.pprint", "warnings.showwarning", "traceback.print_exc")
METHODS = (".write", ".writelines", ".print")
WRITERS = {name.rpartition(".")[2] for name in (*PRINTS, *METHODS)}
STREAMS = ("stdout", "stderr", "stream", "console", "tty")


def last_name(node: ast.AST) -> str:
    """The name of a function or an attribute without what stands before it."""
    return node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")


def prints_in(tree: ast.Module) -> list[str]:
    """Calls of a module that write to the terminal themselves."""
    found = []
    for node in ast.walk(tree):
        text = ast.unparse(node.func) if isinstance(node, ast.Call) and last_name(node.func) in WRITERS else ""
        is_stream = any(x in text.lower() for x in STREAMS)
        if text in PRINTS or (text.endswith(METHODS) and is_stream):
            found.append(text)
        elif last_name(node) == "buffer" and ast.unparse(node).endswith(("sys.stdout.buffer", "sys.stderr.buffer")):
            found.append(ast.unparse(node))
        elif isinstance(node, ast.keyword) and node.arg == "file" and "std" in ast.unparse(node.value):
            found.append("file=")
    return found


def test_whatever_is_printed_goes_through_one_border():
    for name, tree in sources_with({*WRITERS, "buffer", "file="}):
        others = [x for x in prints_in(tree) if x != BINARY.get(name)]
        assert name == BORDER or not others, f"{name}: {others}; use {BORDER}"


@pytest.mark.parametrize(
    "source",
    ["print(x)", "sys.stdout.write(x)", "self.stream.write(x)", "sys.stderr.buffer", "Console().print(x)"],
)
def test_every_way_past_the_border_is_noticed(source):
    assert prints_in(ast.parse(source))


def test_texts_of_rich_are_no_markup():
    for path, tree in sources_with({"TextColumn"}):
        for node in ast.walk(tree):
            if isinstance(node, ast.Call) and ast.unparse(node.func) == "TextColumn":
                assert "markup=False" in ast.unparse(node), f"{path}:{node.lineno}"


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def shown(capsys, *arguments: str) -> tuple[int, str]:
    try:
        status = main(arguments)
    except SystemExit as stopped:
        status = stopped.code
    both = "".join(capsys.readouterr())
    assert both and is_safe(both), ascii(both)
    return status, both


def model(name: str, kind: str = "Exp", output: str = "y", shape: tuple = (1, 4)) -> None:
    helper = pytest.importorskip("onnx.helper")
    given, gives = (
        helper.make_tensor_value_info("x", 1, shape),
        helper.make_tensor_value_info(output, 1, None),
    )
    graph = helper.make_graph([helper.make_node(kind, ["x"], [output])], "g", [given], [gives])
    opset = helper.make_opsetid("", 18)
    Path(name).write_bytes(helper.make_model(graph, opset_imports=[opset], ir_version=9).SerializeToString())


def test_names_of_files_are_shown_visibly(here, capsys):
    """Of outputs, labels, operators, dimensions, layers, operands and members, where a command runs and where not."""
    np.save("x.npy", np.ones((1, 4), "f4"))
    Path("l.txt").write_text((ENCODABLE.replace("\r", "") + "\n") * 4, encoding="utf-8")
    Path("l.json").write_text(json.dumps([EVIL + "\nx"] * 4))
    Path("kind.cfg").write_text("[net]\nwidth=8\nheight=8\nchannels=3\n[" + ENCODABLE + "]\n", encoding="utf-8")
    Path("plan.csv").write_text(f"id,lower,upper,size\n{ENCODABLE.replace(chr(13), '')},0,2,8\n", encoding="utf-8")
    np.savez("n.npz", **{ENCODABLE.replace("/", "").replace("\0", ""): np.ones(1)})
    model("output.onnx", output=ENCODABLE)
    model("plain.onnx")
    model("kind.onnx", kind=ENCODABLE)
    model("dim.onnx", shape=(ENCODABLE, 4))
    given = ("-i", "x.npy")
    assert shown(capsys, "run", "output.onnx", *given)[0] == 0
    assert shown(capsys, "run", "output.onnx", *given, "--json")[0] == 0
    for labels in ("l.txt", "l.json"):
        status, text = shown(capsys, "run", "plain.onnx", *given, "--labels", labels)
        assert status == 0 and len(text.splitlines()) == 6  # a label is no line of its own
    for arguments in (
        ("run", "kind.onnx"),
        ("plan", "dim.onnx"),
        ("plan", "kind.cfg"),
        ("plan", "plan.csv", "--budget", "1"),
        ("plan", "plan.csv", "--json"),
        ("plan", "output.onnx"),
        ("run", "plain.onnx", "-i", "n.npz"),
        ("bench", "output.onnx", "--runs", "1"),
    ):
        shown(capsys, *arguments)


def test_names_on_the_command_line_are_shown_visibly(here, capsys):
    name = ENCODABLE.replace("/", "").replace("\0", "")
    x = cg.Var((1, 4), name="x")
    save(f"{name}.onnx", cg.exp(x), [x])
    for arguments in (
        ("plan", f"{name}.onnx"),
        ("view", f"{name}.onnx", "-o", f"{name}.svg"),
        ("view", f"{name}.onnx", "-o", f"{name}.dot", "--as-written"),
        ("trace", f"{name}.onnx", "-o", f"{name}.json", "--runs", "1"),
        ("save", f"{name}.onnx", "-o", f"{name} saved"),
        ("bench", f"{name}.onnx", "--runs", "1"),
        ("warmup", f"{name}.onnx"),
        ("run", f"{name}.onnx", "--stream", f"{name}.bin"),
    ):
        assert shown(capsys, *arguments)[0] in (0, 2)
    for arguments in (
        ("plan", f"{name}.absent"),
        ("plan", f"{name}.csv"),
        ("run", f"{name}.onnx", "-i", f"{name}.npy"),
        ("run", f"{name}.onnx", "-i", f"{name}=x.npy"),
        ("run", f"{name}.onnx", "--constant", f"{name}=1"),
        ("run", f"{name}.onnx", "--threads", name),
        ("run", f"{name}.onnx", "--constant", f"x={name}.npy"),
        ("run", f"{name}.onnx", f"--{name}"),
        ("run", f"{name} saved", "--labels", name),
        (name,),
    ):
        assert shown(capsys, *arguments)[0] == 2


@pytest.mark.parametrize("raised", ["ValueError(EVIL)", "RuntimeError(EVIL)", "KeyError(EVIL)"])
def test_errors_that_nobody_handles_are_shown_visibly(raised, here):
    """With --traceback, and where they are faults of the program: of a process of its own."""
    Path("evil.py").write_text(f"EVIL = {EVIL!r}\ndef fails(): raise {raised}\n")
    for options in ([], ["--traceback"]):
        command = [sys.executable, "-m", "cgraph", *options, "plan", "evil:fails"]
        environment = os.environ | {"PYTHONPATH": str(ROOT), "PYTHONIOENCODING": "utf-8"}
        run = subprocess.run(command, capture_output=True, env=environment, timeout=PATIENCE)
        text = run.stderr.decode()
        assert run.returncode in (1, 2) and raised.split("(")[0] in text and is_safe(text), ascii(text)
        assert ("Traceback" in text) == bool(options)


def test_errors_say_what_can_be_seen():
    kinds = [x for x in vars(cg.errors).values() if isinstance(x, type) and issubclass(x, CgraphError)]
    assert len(kinds) > 15
    for kind in kinds:
        text = str(kind(f"a {EVIL} b"))
        assert is_safe(text) and text.startswith("a ?") and text.endswith("? b"), kind


def test_texts_of_objects_can_be_seen():
    x = cg.Var((2, 3), name=EVIL)
    function = cg.compile(cg.exp(x) @ np.ones((3, 2), "f4"), x)
    for shown in (repr(x), repr(function), function.program.code.text(), str(cg.report(function))):
        assert is_safe(shown), ascii(shown)
    assert "taken" in repr(x) and "taken" in repr(function)


def test_warnings_are_shown_visibly(capsys):
    show_warning(UserWarning(EVIL), UserWarning, f"{EVIL}.py", 3)
    assert is_safe(capsys.readouterr().err)
    assert warnings.showwarning is not show_warning  # of the library nobody's hook is changed


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize("stream", [io.StringIO, Terminal])
def test_progress_lines_are_visible(stream):
    out, now = stream(), [0.0]
    bars = Bars(out, lambda: now[0])
    for i in range(3):
        bars(EVIL, i, 4)
        now[0] += 100
    with bounds_progress(EVIL, out, lambda: now[0]) as tell:
        now[0] += 100
        tell(1, 2)
    PlainBar(0, 2, out).show(2, more=EVIL)
    text = out.getvalue().replace(CLEAR, "")
    assert "taken" in text and is_safe(text.replace("\r", "", text.count("\rstep"))), ascii(text)


def test_names_in_bars_of_rich_are_visible_and_no_markup(monkeypatch):
    pytest.importorskip("rich")
    from rich.console import Console

    for name in (ENCODABLE, "[/bold]", "[red]x"):
        out = Terminal()
        monkeypatch.setattr(sys, "stderr", out)
        monkeypatch.setenv("FORCE_COLOR", "1")
        with write_progress(Path(name)) as advance:
            advance(1, 2)
        with progress(2) as begin:
            begin(name)
        bar = rich_bar(0, 2, Console(file=out, force_terminal=True, width=200))
        bar.show(1, 0.5, 0.1, name)
        bar.close()
        text = out.getvalue()
        assert name == ENCODABLE or text.count(name) >= 3
        assert "\x1b]" not in text and "\x07" not in text and "\x9b" not in text and "\u202e" not in text


def test_text_that_can_be_seen_stays(capsys):
    text = "µs █ × … 中文 é \t|\n|"
    assert visible(text) == text and visible("a\nb\tc", "") == "a?b?c"
    say(text)
    assert capsys.readouterr().out == text + "\n"
    out = io.StringIO()
    write("\x1bx", out, before="\r\x1b[K")
    assert out.getvalue() == "\r\x1b[K?x"
    write("x", None)


def test_what_is_said_goes_to_the_output_and_a_complaint_to_the_errors(capsys, monkeypatch):
    say("one\x1b\ttwo")
    complain(ValueError("th\x07ree"))
    assert capsys.readouterr() == ("one?\ttwo\n", "th?ree\n")
    for name in ("stdout", "stderr"):
        monkeypatch.setattr(sys, name, None)
    say("nobody reads it")
    complain("nobody reads it")


@pytest.mark.parametrize("char", ["\x00", "\x1b", "\x7f", "\x9b", "\r", "\u202e", "\u200b", "\ud800", "\n", "\t"])
def test_a_character_that_cannot_be_seen_is_a_question_mark_unless_it_is_let_through(char):
    assert visible(f"a{char}b") == (f"a{char}b" if char in "\n\t" else "a?b")
    assert visible(f"a{char}b", "") == "a?b" and visible(f"a{char}b", char) == f"a{char}b"
    stream = io.StringIO()
    write(f"a{char}", stream, before=char)
    assert stream.getvalue() == char + visible(f"a{char}")


def test_an_unhandled_error_is_shown_as_python_shows_it(capsys):
    """With the errors that led to it, each with its own frames and notes."""
    try:
        try:
            {}["first"]
        except KeyError as cause:
            raise ValueError("second") from cause
    except ValueError as error:
        error.add_note("a note")
        show_error(ValueError, error, error.__traceback__)
        wanted = "".join(traceback.format_exception(error))
    shown = capsys.readouterr().err
    assert shown == wanted and shown.endswith("ValueError: second\na note\n")
    show_error(ValueError, ValueError("alone"), None)
    assert capsys.readouterr().err == "ValueError: alone\n"
