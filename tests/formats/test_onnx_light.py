"""The nine light models of the onnx package: expected outputs, and memory at the lower bound."""

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

from cgraph.formats.onnx import load
from tests.support.tolerance import assert_near

FOLDER = Path(onnx.__file__).parent / "backend/test/data/light"
MODELS = sorted(path.stem for path in FOLDER.glob("light_*.onnx"))


def test_there_are_nine():
    assert len(MODELS) == 9


@pytest.mark.slow
@pytest.mark.parametrize("name", MODELS)
def test_outputs_are_the_expected_ones_and_the_plan_is_the_lower_bound(name):
    proto = onnx.TensorProto()
    proto.ParseFromString((FOLDER / f"{name}_output_0.pb").read_bytes())
    model = load(FOLDER / f"{name}.onnx")
    function = model.compile()
    (x,) = model.inputs
    values = np.arange(x.size, dtype="float32").reshape(x.shape) / x.size  # as the onnx package's own runner makes them
    assert_near(function(values)[0], numpy_helper.to_array(proto), "float32 light networks")
    assert function.compiled.nbytes == function.compiled.lower_bound
