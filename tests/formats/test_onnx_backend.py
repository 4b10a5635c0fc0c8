"""The onnx package's own tests, through the backend: what has passed once must go on passing."""

from pathlib import Path

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper

from cgraph.errors import FormatError
from cgraph.formats.onnx import backend
from tests.support.onnx_cases import KINDS, cases

LIST = Path(__file__).with_name("onnx_node_tests.txt")


def listed(kind):
    return {name.split("/")[1] for name in LIST.read_text().split() if name.startswith(f"{kind}/")}


def failures(kind, names, **options):
    found = {}
    for case in cases(kind):
        if case.name not in names:
            continue
        model = case.model()
        try:
            case.check(backend.prepare(model, "CPU", **options), model)
        except Exception as error:  # any exception is this case's failure
            found[case.name] = f"{type(error).__name__}: {error}"
    return found


@pytest.mark.parametrize("kind", KINDS[1:])
def test_listed_cases_of_whole_models_pass(kind):
    assert failures(kind, listed(kind)) == {}


def test_listed_node_cases_mean_what_onnx_says():
    assert failures("node", listed("node"), engine="reference") == {}


@pytest.mark.slow
def test_listed_node_cases_pass():
    assert failures("node", listed("node")) == {}


def test_every_listed_case_exists():
    known = {case.key for kind in KINDS for case in cases(kind)}
    assert set(LIST.read_text().split()) <= known


def test_docs_count_what_is_listed():
    text = (Path(__file__).parents[2] / "docs" / "onnx.md").read_text()
    for kind in KINDS:
        assert f"| {kind} | {len(listed(kind))} |" in text


def test_a_changed_value_that_decides_a_shape_builds_anew():
    graph = helper.make_graph(
        [helper.make_node("Reshape", ["x", "shape"], ["y"])],
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [6]),
         helper.make_tensor_value_info("shape", TensorProto.INT64, [2])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
    )  # fmt: skip
    prepared = backend.prepare(helper.make_model(graph))
    x = np.arange(6, dtype="float32")
    assert prepared.run([x, np.array([2, 3])])[0].shape == (2, 3)
    assert prepared.run([x, np.array([3, 2])])[0].shape == (3, 2)
    assert prepared.run({"x": x + 1, "shape": np.array([3, 2])})[0][0, 0] == 1


def test_only_the_cpu_is_a_device():
    assert backend.supports_device("CPU") and not backend.supports_device("CUDA:0")
    with pytest.raises(FormatError, match="CUDA"):
        backend.prepare(None, "CUDA")


def prepared_sum():
    """x reshaped to two sizes, plus a stored row that is also an input."""
    shaped = [helper.make_node("Reshape", ["x", "shape"], ["t"]), helper.make_node("Slice", ["t", "from", "to"], ["s"])]
    graph = helper.make_graph(
        [*shaped, helper.make_node("Add", ["s", "row"], ["y"])],
        "g",
        [
            helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n"]),
            helper.make_tensor_value_info("row", TensorProto.FLOAT, [2]),
            helper.make_tensor_value_info("shape", TensorProto.INT64, [2]),
            helper.make_tensor_value_info("from", TensorProto.INT64, [1]),
            helper.make_tensor_value_info("to", TensorProto.INT64, [1]),
        ],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
        [numpy_helper.from_array(np.array([10, 20], "f4"), "row")],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)])


def test_inputs_are_a_list_without_stored_ones_a_dictionary_or_one_array():
    prepared, x = backend.prepare(prepared_sum()), np.arange(6, dtype="f4")
    shape, start, stop = np.array([3, 2]), np.array([1]), np.array([3])
    want = x.reshape(3, 2)[1:3] + np.array([10, 20], "f4")
    np.testing.assert_array_equal(prepared.run([x, shape, start, stop])[0], want)
    np.testing.assert_array_equal(prepared.run((x, shape, start, stop))[0], want)
    np.testing.assert_array_equal(prepared.run({"shape": shape, "to": stop, "from": start, "x": x})[0], want)
    with pytest.raises(FormatError, match="6 inputs are given. Pass 5: x, row, shape, from, to"):
        prepared.run([x, shape, start, stop, x, x])
    negative = helper.make_graph(
        [helper.make_node("Neg", ["x"], ["y"])], "g", [helper.make_tensor_value_info("x", TensorProto.FLOAT, [6])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
    )  # fmt: skip
    np.testing.assert_array_equal(backend.run_model(helper.make_model(negative), x)[0], -x)
    np.testing.assert_array_equal(backend.run_model(helper.make_model(negative), [x], "CPU:0")[0], -x)
    with pytest.raises(FormatError, match="device 'CUDA' is not supported. Use CPU"):
        backend.run_model(helper.make_model(negative), [x], "CUDA")


def test_a_graph_is_built_anew_for_another_size_or_any_other_fixed_value(monkeypatch):
    built = []
    build = backend.build_model
    monkeypatch.setattr(backend, "build_model", lambda *args: built.append(args) or build(*args))
    prepared, row = backend.prepare(prepared_sum()), np.array([10, 20], "f4")
    calls = [(6, [3, 2], 1, 3), (6, [3, 2], 1, 3), (8, [4, 2], 1, 3), (8, [4, 2], 1, 2), (8, [4, 2], 0, 2)]
    for i, (n, shape, start, stop) in enumerate(calls):
        x = np.arange(n, dtype="f4") * (i + 1)
        (got,) = prepared.run([x, np.array(shape), np.array([start]), np.array([stop])])
        np.testing.assert_array_equal(got, x.reshape(shape)[start:stop] + row)
    assert len(built) == 4
