"""Reading, compiling and running a model takes the memory of its weights once: they are packed as they are read."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import external_data_helper, helper, numpy_helper

import cgraph as cg
from tests.support.patience import PATIENCE

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform != "linux", reason="reads /proc"),
]

CHANNELS, SIZE, CLASSES = (64, 256, 512, 512), 6, 640
MARGIN = 1.1  # of the file
KINDS = ("inline", "external", "safetensors")

CHILD = """
import hashlib, json, sys
import numpy as np, cgraph as cg, onnx
from tests.formats.test_loading_memory import FROM, peak

def compiled(path, channels):
    outputs, inputs = FROM[kind](path, channels)
    return cg.compile(outputs, inputs, threads=1, winograd=winograd)

kind, tiny, path, channels, winograd = sys.argv[1], sys.argv[2], sys.argv[3], *json.loads(sys.argv[4])
image = np.random.default_rng(1).standard_normal((2, channels[0], 6, 6), np.float32)
compiled(tiny, (16, 16))(image[:, :16])  # what any model takes
before = peak()
function = compiled(path, channels)
(found,) = function(image)
grown = peak() - before
print(json.dumps([grown, function.nbytes, function.report().const_nbytes, hashlib.sha256(found).hexdigest()]))
"""


def peak() -> int:
    """The largest resident size of this process, in bytes."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM"))


def weights_of(channels) -> dict[str, np.ndarray]:
    """Filters, statistics and matrices by name; sizes that fill panels, so that packing adds nothing to them."""
    rng = np.random.default_rng(0)
    found = {}
    for i, (c, k) in enumerate(zip(channels, channels[1:])):
        found[f"f{i}"] = rng.standard_normal((k, c, 3, 3), np.float32)
        for name in ("scale", "shift", "mean", "variance"):
            found[f"{name}{i}"] = rng.random(k, np.float32) + np.float32(0.5)
    found["w"] = rng.standard_normal((CLASSES, channels[-1] * SIZE * SIZE), np.float32)
    found["v"] = rng.standard_normal((CLASSES, 10), np.float32)
    return found


def save_onnx(path: Path, channels, external: bool) -> None:
    names, nodes = "scale shift mean variance".split(), []
    for i in range(len(channels) - 1):
        nodes.append(helper.make_node("Conv", [f"x{i}", f"f{i}"], [f"c{i}"], pads=[1, 1, 1, 1]))
        nodes.append(helper.make_node("BatchNormalization", [f"c{i}", *(f"{n}{i}" for n in names)], [f"b{i}"]))
        nodes.append(helper.make_node("Relu", [f"b{i}"], [f"x{i + 1}"]))
    nodes.append(helper.make_node("Flatten", [f"x{len(channels) - 1}"], ["flat"]))
    nodes.append(helper.make_node("Gemm", ["flat", "w"], ["h"], transB=1))
    nodes.append(helper.make_node("MatMul", ["h", "v"], ["y"]))
    image = helper.make_tensor_value_info("x0", onnx.TensorProto.FLOAT, (2, channels[0], SIZE, SIZE))
    result = helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, None)
    tensors = [numpy_helper.from_array(x, name) for name, x in weights_of(channels).items()]
    model = helper.make_model(helper.make_graph(nodes, "g", [image], [result], tensors))
    if external:
        external_data_helper.convert_model_to_external_data(model, location=f"{path.name}.data")
    onnx.save(model, path)


def from_onnx(path, channels):
    model = cg.formats.onnx.load(path)
    return list(model.outputs), model.inputs


def from_safetensors(path, channels):
    """The same network, written with this library's functions."""
    w = {name: cg.Const(x, copy=False) for name, x in cg.formats.safetensors.read_safetensors(path).items()}
    image = found = cg.Var((2, channels[0], SIZE, SIZE))
    for i in range(len(channels) - 1):
        found = cg.conv2d(found, w[f"f{i}"], pad=1)
        found = cg.relu(cg.batch_norm(found, w[f"scale{i}"], w[f"shift{i}"], w[f"mean{i}"], w[f"variance{i}"], 1e-5))
    return [cg.reshape(found, (2, -1)) @ w["w"].T @ w["v"]], [image]


FROM = {"inline": from_onnx, "external": from_onnx, "safetensors": from_safetensors}


def saved(folder: Path, name: str, kind: str, channels) -> tuple[str, int]:
    """The path of a file, and the bytes of it with the files beside it."""
    path = folder / f"{name}.{kind}"
    if kind == "safetensors":
        cg.formats.safetensors.write_safetensors(path, weights_of(channels))
    else:
        save_onnx(path, channels, kind == "external")
    return str(path), sum(x.stat().st_size for x in folder.glob(f"{path.name}*"))


@pytest.fixture(scope="module")
def measured(tmp_path_factory):
    """By kind and whether Winograd is allowed: bytes of growth, arena and constants, the result's hash; file sizes."""
    folder, found, sizes = tmp_path_factory.mktemp("models"), {}, {}
    for kind in KINDS:
        tiny, _ = saved(folder, "tiny", kind, (16, 16))
        path, sizes[kind] = saved(folder, "large", kind, CHANNELS)
        for winograd in (False, True):
            command = [sys.executable, "-c", CHILD, kind, tiny, path, json.dumps([CHANNELS, winograd])]
            for _ in range(2):  # the first run fills the kernel cache
                done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, cwd=os.getcwd())
                assert done.returncode == 0, done.stderr[-2000:]
            found[kind, winograd] = json.loads(done.stdout)
    return found, sizes


@pytest.mark.parametrize("winograd", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_a_model_takes_its_file_and_its_plan(measured, kind, winograd):
    grown, arena, constants, _ = measured[0][kind, winograd]
    nbytes = measured[1][kind]
    assert nbytes > 30 << 20 and constants > 0.99 * nbytes
    expanded = max(constants - nbytes, 0) if winograd else 0
    assert grown <= MARGIN * nbytes + arena + expanded


@pytest.mark.parametrize("winograd", [False, True])
def test_the_result_is_the_same_wherever_the_weights_lie(measured, winograd):
    assert len({measured[0][kind, winograd][-1] for kind in KINDS}) == 1
