"""Inputs from array files: which file is which input, dtypes, values that need no file, and what is refused."""

import numpy as np
import pytest

import cgraph as cg
from cgraph.cli.arrays import check_name, read_array, read_inputs
from cgraph.cli.pictures import Look
from cgraph.errors import FormatError
from tests.cli.test_sounds import write_sound

X, Y, N = cg.Var((2,), name="x"), cg.Var((3,), "float64", "y"), cg.Var((2,), "int32", "n")
INPUTS = (X, Y, N)
ARRAYS = {"a.npy": np.array([1.0, 2.0]), "b.npy": np.array([3, 4, 5]), "c.npy": np.array([6, 7], "int64")}


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name, array in ARRAYS.items():
        np.save(name, array)
    np.savez("xy.npz", y=ARRAYS["b.npy"], x=ARRAYS["a.npy"])
    np.save("k=1.npy", ARRAYS["a.npy"])
    np.save("y=1.npy", ARRAYS["b.npy"])
    return tmp_path


def read(*texts, inputs=INPUTS, **values):
    return {name: x.tolist() for name, x in read_inputs(texts, inputs, Look(), values).items()}


WHOLE = {"x": [1, 2], "y": [3, 4, 5], "n": [6, 7]}


@pytest.mark.parametrize(
    "texts",
    [
        ("a.npy", "b.npy", "c.npy"),
        ("y=b.npy", "a.npy", "c.npy"),
        ("n=c.npy", "a.npy", "b.npy"),
        ("n=c.npy", "y=b.npy", "x=a.npy"),
        ("xy.npz", "c.npy"),
        ("k=1.npy", "b.npy", "c.npy"),
        ("a.npy", "y=y=1.npy", "c.npy"),
    ],
    ids=" ".join,
)
def test_files_are_inputs_by_name_or_in_the_order_of_those_without_a_value(texts, folder):
    assert read(*texts) == WHOLE


def test_values_need_no_file_and_the_next_file_is_the_next_input(folder):
    assert read("b.npy", x=np.zeros(2), n=np.ones(2)) == {"x": [0, 0], "y": [3, 4, 5], "n": [1, 1]}
    assert read(inputs=()) == {}
    given = {"x": np.zeros(2)}
    read_inputs(["b.npy", "c.npy"], INPUTS, Look(), given)
    assert list(given) == ["x"]


@pytest.mark.parametrize(
    ("texts", "said"),
    [
        (("a.npy", "x=a.npy"), "input 'x' is given twice. Leave out one --input"),
        (("xy.npz", "y=b.npy"), "input 'y' is given twice. Leave out one --input"),
        (("b.npy",), "no value for y float64[3], n int32[2]. Add --input NAME=FILE"),
        (("z=b.npy",), "the model has no input 'z'. Use one of x, y, n"),
        (
            ("a.npy", "b.npy", "c.npy", "a.npy"),
            "a.npy: the model takes 3 inputs, more are given. Leave out some --input",
        ),
    ],
)
def test_each_input_has_one_value(texts, said, folder):
    with pytest.raises(FormatError) as error:
        read(*texts)
    assert str(error.value) == said


def test_a_value_and_a_file_of_one_input_are_two(folder):
    with pytest.raises(FormatError, match="^input 'x' is given twice"):
        read("x=a.npy", x=np.zeros(2))


def test_an_archive_has_arrays_of_inputs_alone(folder):
    np.savez("more.npz", x=ARRAYS["a.npy"], other=np.ones(1), z=np.ones(1))
    with pytest.raises(FormatError) as error:
        read("more.npz")
    assert str(error.value) == "more.npz: 'other' is not an input; the inputs are x, y, n. Rename the array"


@pytest.mark.parametrize(
    ("written", "wanted", "got"),
    [
        ("float64", "float32", "float32"), ("float32", "float64", "float64"), ("int64", "int32", "int32"),
        ("int32", "float32", "float32"), ("bool", "int8", "int8"), ("float32", "int32", "float32"),
        ("complex64", "float32", "complex64"), ("int8", "uint8", "int8"), (">f4", "float32", "float32"),
        ("float32", "float16", "float16"),
    ],
)  # fmt: skip
def test_an_array_is_converted_within_its_kind_or_to_a_wider_one(written, wanted, got, folder):
    """What is left as it is, the Function refuses by name."""
    np.save("v.npy", np.ones((2, 3), written))
    array = read_array(folder / "v.npy", cg.Var((2, 3), wanted, "v"))
    assert array.dtype == np.dtype(got) and array.shape == (2, 3) and (array == 1).all()


def test_a_name_is_checked_unless_the_whole_text_is_a_file(folder):
    for text in ("a.npy", "nothing.npy", "x=nothing.npy", "k=1.npy", "y=1.npy", "z", ""):
        check_name(text, ("x", "y"))
    for text in ("z=a.npy", "=a.npy", "X=a.npy"):
        with pytest.raises(FormatError, match="Use one of x, y"):
            check_name(text, ("x", "y"))


@pytest.mark.parametrize("name", ["v.NPZ", "v.Npz", "v.npz"])
def test_an_archive_is_known_by_its_ending_in_any_letters(name, folder):
    with open(name, "wb") as file:
        np.savez(file, y=ARRAYS["b.npy"], x=ARRAYS["a.npy"], n=ARRAYS["c.npy"])
    assert read(name) == WHOLE


@pytest.mark.parametrize("name", ["s.WAV", "s.Wav", "s.wav"])
def test_a_sound_is_known_by_its_ending_in_any_letters(name, folder):
    write_sound(folder / name, np.array([[0], [1 << 14]]), 2)
    assert read(name, inputs=[X]) == {"x": [0, 0.5]}
