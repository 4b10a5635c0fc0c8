"""Numbers on the command line, reasons of errors, and the defaults of common arguments."""

import argparse

import numpy as np
import pytest

import cgraph as cg
from cgraph.cli import COMMANDS, main, parse
from cgraph.cli.arguments import add_budget, add_memory, add_threads, byte_count, whole_number, why
from cgraph.cli.model import CliModel
from cgraph.errors import GraphError
from cgraph.formats import onnx


def test_bytes_are_read_in_the_unit_that_they_name():
    assert [byte_count(x) for x in ("7", "3KiB", "5MiB", "2 GiB")] == [7, 3072, 5 * 1024**2, 2 * 1024**3]


@pytest.mark.parametrize(
    ("text", "number"), [("0", 0), ("3", 3), ("007", 7), ("99999999999999999999", 99999999999999999999)]
)
def test_integers_from_0_on_are_read(text, number):
    assert whole_number(text) == number


@pytest.mark.parametrize("text", ["-1", "1.5", "", " 3", "+3", "3 ", "1_000", "²", "٣", "x"])
def test_what_is_no_integer_is_named(text):
    with pytest.raises(argparse.ArgumentTypeError) as error:
        whole_number(text)
    assert str(error.value) == f"{text!r} is not an integer of at least 0. Give one such as 3"


@pytest.mark.parametrize("text", ["", "-1", "4 XB", "KiB", "nan"])
def test_what_is_no_number_of_bytes_is_an_error_of_the_argument(text):
    with pytest.raises(argparse.ArgumentTypeError) as error:
        byte_count(text)
    assert str(error.value)


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (OSError(2, "No such file", "a.npy"), "No such file"),
        (OSError("broken"), "broken"),
        (ValueError("wrong"), "wrong"),
        (EOFError(), "the file is cut off"),
    ],
)
def test_the_reason_of_an_error_is_without_its_file(error, text):
    assert why(error) == text


def test_the_defaults_and_values_of_common_arguments():
    parser = argparse.ArgumentParser()
    for add in (add_threads, add_memory, add_budget):
        add(parser)
    assert vars(parser.parse_args([])) == {"threads": 0, "memory": "auto", "budget": None}
    words = ["--threads", "3", "--memory", "greedy", "--budget", "4KiB"]
    assert vars(parser.parse_args(words)) == {"threads": 3, "memory": "greedy", "budget": 4096}


@pytest.mark.parametrize(
    ("words", "options"),
    [
        (
            "run -i {x} --memory one_each --threads 3 --budget 2KiB",
            {"memory": "one_each", "threads": 3, "budget": 2048},
        ),
        ("run -i {x}", {"memory": "auto", "threads": 0, "budget": None}),
        ("bench --memory one_each --threads 3", {"memory": "one_each", "threads": 3}),
        ("trace -o {out}.json --memory one_each --threads 3", {"memory": "one_each", "threads": 3}),
        ("save -o {out} --memory one_each --budget 2KiB", {"memory": "one_each", "budget": 2048}),
        ("view -o {out}.svg --memory one_each --budget 2KiB", {"memory": "one_each", "budget": 2048}),
        ("view -o {out}.svg", {}),
    ],
)
def test_options_of_a_plan_reach_compile(words, options, tmp_path, monkeypatch):
    x = cg.Var((2, 3), name="x")
    onnx.save(tmp_path / "m.onnx", cg.exp(x) + 1, [x])
    np.save(tmp_path / "x.npy", np.ones((2, 3), "f4"))
    calls = []

    def compiled(model, **options):
        calls.append(options)
        raise GraphError("enough")

    monkeypatch.setattr(CliModel, "compiled", compiled)
    command, *rest = words.format(x=tmp_path / "x.npy", out=tmp_path / "out").split()
    assert main([command, str(tmp_path / "m.onnx"), *rest]) == 2
    (found,) = calls
    found.pop("engine", None)
    assert found == options


LOOK = {"pixels": "unit", "fit": "stretch"}
PLAN = {"threads": 0, "memory": "auto"}
DEFAULTS = {
    "run m": LOOK | PLAN | {"top": 5, "times": 1, "most": 64},
    "save m -o f": LOOK | {"memory": "auto", "most": 64},
    "export m -o f --target neon": {"form": "whole", "memory": "static", "target": "neon"},
    "quantise m --samples s -o f": LOOK | {"most": 200, "method": "minmax", "images": "uint8"},
    "plan m": {},
    "view m -o f": {},
    "show m": {},
    "trace m -o f": PLAN | {"runs": 3},
    "bench m": LOOK | PLAN | {"runs": 20, "most": 64},
    "info": {},
    "warmup": {},
}


@pytest.mark.parametrize("words", DEFAULTS)
def test_options_that_are_not_given_have_these_values_and_all_others_none(words):
    values = vars(parse(words.split()))
    given = ("model", "output", "run", "parser", "whole_parser") + ("samples",) * words.startswith("quantise")
    there = {name: x for name, x in values.items() if name not in given and x is not None and x is not False}
    assert {name: x for name, x in there.items() if x != []} == DEFAULTS[words]


def test_every_command_has_its_defaults_here():
    assert {words.split()[0] for words in DEFAULTS} == set(COMMANDS) - {"completion"}
