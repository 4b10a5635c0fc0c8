"""Arguments that name a model: sizes, values, maxima and states as pairs, and what they refuse."""

import argparse

import numpy as np
import pytest

import cgraph as cg
from cgraph.cli.model_arguments import add_model, constant, constants_of, is_saved, maximum, size, state
from cgraph.errors import FormatError, InputError


@pytest.mark.parametrize(
    ("text", "pair"),
    [
        ("N=1", ("N", 1)),
        ("x=1x3", ("x", (1, 3))),
        ("x=2x0x5", ("x", (2, 0, 5))),
        ("a=b=7", ("a=b", 7)),
        ("x=007", ("x", 7)),
    ],
)
def test_a_size_is_a_number_or_a_shape(text, pair):
    assert size(text) == pair


@pytest.mark.parametrize(
    "text", ["N", "N=", "=1", "N=-1", "N=1x", "N=x1", "N=1xx2", "N=1.5", "N=²", "N= 1", "N=1X2", ""]
)
def test_what_is_no_size_is_named(text):
    with pytest.raises(argparse.ArgumentTypeError) as error:
        size(text)
    assert str(error.value) == f"{text!r} is not a size, such as N=1 or x=1x3"


@pytest.mark.parametrize(
    ("text", "pair"),
    [
        ("sr=16000", ("sr", 16000)),
        ("s=-1.5", ("s", -1.5)),
        ("s=[1, [2]]", ("s", [1, [2]])),
        ("s=[]", ("s", [])),
        ("s=1e3", ("s", 1000.0)),
    ],
)
def test_a_constant_is_a_number_or_a_list(text, pair):
    assert constant(text) == pair


@pytest.mark.parametrize("name", ["s.NPY", "s.Npy"])
def test_the_ending_of_a_file_of_a_constant_has_any_case(tmp_path, name):
    with (tmp_path / name).open("wb") as file:
        np.save(file, np.arange(3))
    found, values = constant(f"s={tmp_path / name}")
    assert found == "s" and values.tolist() == [0, 1, 2]


def test_a_constant_may_be_a_file(tmp_path):
    np.save(tmp_path / "a=b.npy", np.arange(3))
    name, array = constant(f"s={tmp_path / 'a=b.npy'}")
    assert name == "s" and array.tolist() == [0, 1, 2]
    with pytest.raises(argparse.ArgumentTypeError, match="missing.npy: No such file or directory$"):
        constant(f"s={tmp_path / 'missing.npy'}")


@pytest.mark.parametrize("text", ["s", "s=", "=1", "s=no", 's="text"', "s={}", "s=null", "s=1,2", "s=" + "[" * 100_000])
def test_what_is_no_value_is_named(text):
    with pytest.raises(argparse.ArgumentTypeError) as error:
        constant(text)
    assert str(error.value) == f"{text!r} is not a value, such as sr=16000, s=[1,2] or s=FILE.npy"


def test_a_maximum_is_a_number_and_a_state_two_names():
    assert maximum("boxes=100") == ("boxes", 100) and maximum("a=b=0") == ("a=b", 0)
    assert state("past=present") == ("past", "present") and state("a=b=c") == ("a", "b=c")


@pytest.mark.parametrize("text", ["boxes", "boxes=", "=3", "boxes=-1", "boxes=1x2", "boxes=²"])
def test_what_is_no_maximum_is_named(text):
    with pytest.raises(argparse.ArgumentTypeError) as error:
        maximum(text)
    assert str(error.value) == f"{text!r} is not a maximum, such as boxes=100"


@pytest.mark.parametrize("text", ["past", "past=", "=present", "="])
def test_what_is_no_state_is_named(text):
    with pytest.raises(argparse.ArgumentTypeError) as error:
        state(text)
    assert str(error.value) == f"{text!r} is not a state, such as past=present"


def test_pairs_may_be_repeated_and_default_to_none():
    parser = argparse.ArgumentParser()
    add_model(parser)
    args = parser.parse_args(["m.onnx", "--shape", "N=1", "--shape", "x=1x3", "--state", "a=b", "--weights", "w"])
    assert args.model == "m.onnx" and args.shape == [("N", 1), ("x", (1, 3))] and args.state == [("a", "b")]
    assert (args.constant, args.maximum, args.weights.name) == ([], [], "w")
    assert parser.parse_args(["m"]).weights is None and parser.parse_args(["m"]).shape == []


def test_values_take_the_dtype_and_shape_of_their_inputs():
    inputs = cg.Var((2,), name="x"), cg.Var((), "int64", "n")
    values = constants_of(argparse.Namespace(constant=[("n", 3), ("x", [1, 2])]), inputs)
    assert values["n"].dtype == np.int64 and values["n"].shape == () and values["x"].dtype == np.float32
    with pytest.raises(InputError, match="x"):
        constants_of(argparse.Namespace(constant=[("x", [1, 2, 3])]), inputs)
    with pytest.raises(FormatError) as error:
        constants_of(argparse.Namespace(constant=[("x", [1, 2]), ("z", 1)]), inputs)
    assert str(error.value) == "--constant z: the model has no such input. Use one of x, n"


def test_a_folder_is_a_saved_function(tmp_path):
    (tmp_path / "m.onnx").write_bytes(b"")
    assert is_saved(str(tmp_path)) and not is_saved(str(tmp_path / "m.onnx")) and not is_saved(str(tmp_path / "no"))
