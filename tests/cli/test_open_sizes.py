"""Open sizes of an ONNX file from its inputs: named axes, whole shapes, pictures, sounds, and what was said already."""

from argparse import Namespace

import numpy as np
import pytest

from cgraph.cli.open_sizes import shape_of_file, sizes_from_inputs, sizes_given
from tests.cli.test_sounds import write_sound


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    np.save("a.npy", np.zeros((2, 3), "f4"))
    np.save("b.npy", np.zeros((5, 7), "f4"))
    np.savez("both.npz", y=np.zeros((5, 7), "f4"), x=np.zeros((2, 3), "f4"), other=np.zeros(9))
    return tmp_path


def args_of(*files, shape=(), constant=(), model="net.onnx"):
    return Namespace(model=model, input=list(files), shape=list(shape), constant=list(constant))


@pytest.fixture
def model(folder):
    """Writes a network whose inputs have these shapes, with names and None for open axes."""
    onnx = pytest.importorskip("onnx")

    def write(**shapes):
        real = onnx.TensorProto.FLOAT
        inputs = [onnx.helper.make_tensor_value_info(name, real, shape) for name, shape in shapes.items()]
        nodes = [onnx.helper.make_node("Abs", [name], [f"{name}_out"]) for name in shapes]
        outputs = [onnx.helper.make_tensor_value_info(f"{name}_out", real, None) for name in shapes]
        onnx.save(onnx.helper.make_model(onnx.helper.make_graph(nodes, "g", inputs, outputs)), "net.onnx")

    return write


def test_axes_with_names_are_sizes_and_axes_without_names_a_whole_shape(model):
    model(x=("N", "M"), y=(None, 7))
    assert sizes_from_inputs(args_of("a.npy", "b.npy")) == [("N", 2), ("M", 3), ("y", (5, 7))]


def test_the_first_array_decides_an_axis_that_two_share(model):
    model(x=("N", 3), y=("N", 7))
    assert sizes_from_inputs(args_of("a.npy", "b.npy")) == [("N", 2)]
    assert sizes_from_inputs(args_of("y=b.npy")) == [("N", 5)]


def test_what_was_said_already_is_not_read_again(model):
    model(x=("N", "M"), y=(None, 7))
    assert sizes_from_inputs(args_of("a.npy", "b.npy", shape=[("M", 9)])) == [("N", 2), ("y", (5, 7))]
    assert sizes_from_inputs(args_of("a.npy", "b.npy", shape=[("y", (1, 7))])) == [("N", 2), ("M", 3)]


def test_arrays_of_another_number_of_axes_decide_nothing(model):
    model(x=("N", "M", 1))
    assert sizes_from_inputs(args_of("a.npy")) == []


def test_other_models_have_no_open_sizes(folder):
    assert sizes_from_inputs(args_of("a.npy", model="net.cfg")) == []
    assert sizes_from_inputs(args_of("a.npy", model="package:function")) == []


SHAPES = {"x": ("N", "M"), "y": ("K", 7)}


def given(*files, **options):
    return list(sizes_given(args_of(*files, **options), SHAPES))


def test_files_are_inputs_in_the_order_of_the_model_or_by_name(folder):
    assert given("a.npy", "b.npy") == [("x", (2, 3)), ("y", (5, 7))]
    assert given("y=b.npy", "a.npy") == [("y", (5, 7)), ("x", (2, 3))]
    assert given("b.npy", constant=[("x", 1)]) == [("y", (5, 7))]
    assert given("both.npz") == [("y", (5, 7)), ("x", (2, 3))]


def test_files_beyond_the_inputs_and_inputs_given_twice_are_reported_elsewhere(folder):
    assert given("a.npy", "b.npy", "b.npy") == [("x", (2, 3)), ("y", (5, 7))]
    assert given("x=a.npy", "x=b.npy") == [("x", (2, 3))]


def test_a_name_with_an_equals_sign_may_be_a_file(folder):
    np.save("k=1.npy", np.zeros((4, 6), "f4"))
    assert given("./k=1.npy") == [("x", (4, 6))]


def test_a_picture_is_a_batch_of_one_where_only_the_batch_is_open(folder):
    for shape, want in ((("N", 3, 8, 9), (1, 3, 8, 9)), ((2, 3, 8, 9), (1, 3, 8, 9)), (("N", 3, "h", 9), ())):
        assert shape_of_file(folder / "a.PNG", shape) == want


def test_a_sound_or_an_array_has_its_own_shape(folder):
    write_sound(folder / "a.wav", np.zeros((30, 1), int), 2)
    assert shape_of_file(folder / "a.wav", (1, "n")) == (1, 30)
    assert shape_of_file(folder / "a.npy", ("N", "M")) == (2, 3)
