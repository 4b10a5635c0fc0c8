"""The onnx package's own tests, through the backend: what has passed once must go on passing."""

from pathlib import Path

import numpy as np
import pytest
from onnx import TensorProto, helper

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
