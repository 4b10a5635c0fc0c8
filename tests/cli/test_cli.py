"""The command ``cgraph``: which modules it loads, the status of each ending, and errors in one visible line."""

import os
from argparse import Namespace
from importlib import import_module

import pytest

from cgraph import cli
from cgraph.cli import COMMANDS, forget_output, main, names_for, parse, parser_of, status_of, text_of, whole_parser
from cgraph.errors import FormatError, GraphError
from cgraph.version import __version__


def test_an_interrupt_while_a_command_is_loaded_is_one_line(monkeypatch, capsys):
    def interrupted(names):
        raise KeyboardInterrupt

    monkeypatch.setattr("cgraph.cli.parser_of", interrupted)
    assert main(["info"]) == 130
    assert capsys.readouterr() == ("", "cgraph: interrupted\n")


@pytest.mark.parametrize(
    ("words", "names"),
    [
        (["run", "plan"], ["run"]),
        (["--traceback", "plan", "x"], ["plan"]),
        (["x", "run"], list(COMMANDS)),
        (["--version"], list(COMMANDS)),
        ([], list(COMMANDS)),
        (["run_model"], list(COMMANDS)),
    ],
)
def test_one_command_is_loaded_where_it_is_clear_which(words, names):
    assert names_for(words) == names
    assert set(parser_of(names)._subparsers._group_actions[0].choices) == set(names)


def test_every_command_has_a_module_and_a_parser_of_its_name():
    for name, module in COMMANDS.items():
        assert callable(import_module(f"cgraph.cli.{module}").add_parser), name
    choices = whole_parser()._subparsers._group_actions[0].choices
    assert list(choices) == list(COMMANDS) and all(x.prog == f"cgraph {name}" for name, x in choices.items())


def raising(error, traceback=False):
    def run(args):
        raise error

    return Namespace(run=run, traceback=traceback)


@pytest.mark.parametrize("status", [0, 1])
def test_the_status_is_that_of_the_command(status):
    assert status_of(Namespace(run=lambda args: status, traceback=False)) == status


@pytest.mark.parametrize(
    ("error", "line"),
    [
        (GraphError("two\n  lines\tof text"), "cgraph: two lines of text\n"),
        (FormatError("a\x1b[31m"), "cgraph: a?[31m\n"),
        (OSError(13, "Permission denied", "a b.onnx"), "cgraph: a b.onnx: Permission denied\n"),
        (OSError("no file"), "cgraph: no file\n"),
    ],
)
def test_an_error_is_one_visible_line_and_status_2(error, line, capsys):
    assert status_of(raising(error)) == 2
    assert capsys.readouterr() == ("", line)


@pytest.mark.parametrize("error", [GraphError("x"), FormatError("x"), FileNotFoundError(2, "none", "x"), OSError("x")])
def test_with_traceback_an_error_is_raised(error, capsys):
    with pytest.raises(type(error)):
        status_of(raising(error, traceback=True))
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("error", [BrokenPipeError(32, "Broken pipe"), ValueError("a fault"), KeyboardInterrupt()])
def test_faults_interrupts_and_closed_pipes_are_no_errors_of_the_user(error):
    with pytest.raises(type(error)):
        status_of(raising(error))


def test_the_text_of_a_system_error_is_file_and_reason():
    assert text_of(FileNotFoundError(2, "No such file or directory", "x.npy")) == "x.npy: No such file or directory"
    assert text_of(FileNotFoundError(2, "No such file or directory")) == "[Errno 2] No such file or directory"
    assert text_of(OSError(5, "Input/output error", "")) == ": Input/output error"
    assert text_of(OSError(9, "Bad file descriptor", 0)) == "0: Bad file descriptor"
    assert text_of(GraphError("said")) == "said"


def test_words_that_nobody_knows_are_refused_visibly(capsys):
    for words in (["info", "--no\x1bsuch", "x"], ["nothing\x1b"], []):
        with pytest.raises(SystemExit) as stopped:
            parse(words)
        err = capsys.readouterr().err
        assert stopped.value.code == 2 and "\x1b" not in err and err.startswith("usage: cgraph")
    with pytest.raises(SystemExit):
        parse(["info", "--such", "x"])
    assert capsys.readouterr().err.endswith("cgraph info: error: unrecognized arguments: --such x\n")


def test_the_version_is_printed(capsys):
    with pytest.raises(SystemExit) as stopped:
        main(["--version"])
    assert stopped.value.code == 0 and capsys.readouterr().out == f"cgraph {__version__}\n"


def test_a_reader_that_closes_the_pipe_ends_the_command_with_the_status_of_shells(monkeypatch, capsys):
    calls = []
    monkeypatch.setattr(cli, "parse", lambda words: raising(BrokenPipeError(32, "Broken pipe")))
    monkeypatch.setattr(cli, "forget_output", lambda: calls.append(0))
    assert main(["info"]) == 141 and calls == [0]
    assert capsys.readouterr() == ("", "")


def test_a_command_may_run_where_the_shell_has_closed_the_output(monkeypatch):
    monkeypatch.setattr("sys.stdout", None)
    assert status_of(Namespace(run=lambda args: 1, traceback=False)) == 1


def test_output_that_is_forgotten_leaves_no_descriptor_open(monkeypatch, tmp_path):
    with open(tmp_path / "out", "w") as out:
        monkeypatch.setattr("sys.stdout", out)
        before = len(os.listdir("/dev/fd"))
        forget_output()
        assert len(os.listdir("/dev/fd")) == before
        out.write("lost")
    assert (tmp_path / "out").read_text() == ""
