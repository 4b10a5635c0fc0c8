"""The code that pages show runs, block after block, each page in a folder of its own.

What a page takes for granted (arrays, nodes, files) stands in `PAGES`. Two pages are not here: `docs/add_a_kernel.md`
shows excerpts of the code itself (`test_add_a_kernel.py`), and `docs/cuda.md` needs a GPU.
"""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
BLOCK = re.compile(r"^```python\n(.*?)^```", re.DOTALL | re.MULTILINE)
ELSEWHERE = {"add_a_kernel", "cuda"}
SLOW = {"dist", "nn", "sequences"}
# each block of these pages runs in an empty file
STAND_ALONE = (
    "first_ten_minutes from_numpy deploy debugging jit loops errors strategies numpy array_api standalone".split()
)

IMPORTS = """
from pathlib import Path
import numpy as np
import onnx
import safetensors.numpy
import cgraph, nn
import cgraph as cg
from onnx import helper, TensorProto
rng = np.random.default_rng(0)

def onnx_file(path, inputs, outputs):  # as many outputs as inputs, each the root of one
    values = [[helper.make_tensor_value_info(n, TensorProto.FLOAT, s) for n, s in x.items()] for x in (inputs, outputs)]
    graph = helper.make_graph([helper.make_node("Sqrt", [x], [y]) for x, y in zip(inputs, outputs)], "roots", *values)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10), path)
"""
IMAGES = """
image = cg.Var((1, 4, 32, 32), name="image")
picture = np.ones(image.shape, "f4")
filters = cg.Const(rng.normal(size=(4, 4, 3, 3)).astype("f4"))
"""
TRAINING = """
batch = np.ones((16, 32), "f4")
x, w = cg.Var(batch.shape, name="x"), cg.Var((32, 32), name="w").assign(np.ones((32, 32), "f4"))
loss = cg.mean(cg.square(cg.tanh(cg.tanh(x @ w) @ w)))
updates = {w: w - 0.1 * cg.gradient(loss, w)}
step = cg.compile(loss, [x], updates=updates)
"""
DARKNET = (
    "[net]\\nheight=32\\nwidth=32\\nchannels=3\\n[convolutional]\\nfilters=14\\nsize=1\\n"
    "[yolo]\\nclasses=2\\nanchors=4,4,8,8\\nnum=2\\n"
)
PAGES = {
    "README": "",
    **dict.fromkeys(STAND_ALONE, ""),
    "dist": """
model = nn.models.resnet20(0)
images, classes = rng.normal(size=(64, 3, 32, 32)).astype("f4"), np.zeros(64, "i4")
np.save("pictures.npy", images)
""",
    "formats": f"""
onnx_file("net.onnx", {{"x": ["N", 4]}}, {{"y": ["N", 4]}})
for name in ("yolov3", "yolov4"):
    Path(f"{{name}}.cfg").write_text("{DARKNET}")
    Path(f"{{name}}.weights").write_bytes(np.int32([0, 2, 0, 0, 0]).tobytes() + np.zeros(14 + 14 * 3, "<f4").tobytes())
x = cg.Var((2, 2), name="x")
inputs, outputs = [x], [cg.sin(x)]
from tests.support.tflite_models import Network
net = Network()
Path("net.tflite").write_bytes(net.bytes(net.op("RELU", [net.input((1, 4))])))
Path("weights.safetensors").write_bytes(safetensors.numpy.save({{"w": np.ones(3, "f4")}}))
""",
    "half": """
model, decoder = nn.models.resnet20(0), nn.models.gpt(0, 8, 16, 8, 2, 1)
""",
    "lengths": """
value = helper.make_tensor_value_info
def saved(path, nodes, inputs, outputs):
    graph = helper.make_graph(nodes, "g", inputs, [helper.make_empty_tensor_value_info(name) for name in outputs])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10), path)
places = helper.make_node("NonZero", ["picture"], ["boxes"]), helper.make_node("Shape", ["boxes"], ["classes"])
saved("detector.onnx", places, [value("picture", TensorProto.FLOAT, (4, 4))], ["boxes", "classes"])
picture = np.eye(4, dtype="f4")
room = helper.make_node("ConstantOfShape", ["n"], ["r"])
saved("range.onnx", [room], [value("n", TensorProto.INT64, (1,))], ["r"])
""",
    "memory": IMAGES
    + """
x = image
y = cg.relu(cg.conv2d(x, filters, pad=1))
result = np.empty(y.shape, "f4")
rows = lambda: (picture[:, :, i] for i in range(32))
write = lambda band: None
""",
    "nn": """
for name in ("test_batch", *(f"data_batch_{i}" for i in range(1, 6))):
    records = rng.integers(0, 256, (26, 3073), np.uint8)
    records[:, 0] %= 10
    records.tofile(f"{name}.bin")
picture = np.zeros((96, 128, 3), np.uint8)
names = {"norm.weight": (64,), "norm.bias": (64,), "fc.weight": (10, 64), "fc.bias": (10,)}
arrays = {f"module.{name}": rng.normal(size=shape).astype("f4") for name, shape in names.items()}
Path("head.safetensors").write_bytes(safetensors.numpy.save(arrays))
""",
    "own_kernels": 'x = cg.Var((4, 6), "float64", name="x")',
    "quantised": """
model = nn.initialise(nn.Sequential(nn.Input((8,)), nn.Linear(8, 4)), 0)
samples, classes = rng.normal(size=(40, 8)).astype("f4"), np.zeros(40, int)
""",
    "recompute": TRAINING,
    "saved": IMAGES
    + TRAINING
    + """
from cgraph.engine.cpu.engine import CpuEngine
from cgraph.formats import onnx
scores = cg.sum(cg.relu(cg.conv2d(image, filters)), axis=(2, 3))
""",
    "sequences": """
kept = {f"past_{name}": [1, 1, 8, 4] for name in ("key", "value")}
later = {f"present_{name}": [1, 1, 8, 4] for name in ("key", "value")}
onnx_file("decoder.onnx", kept, later)
""",
    "weights": IMAGES
    + """
from types import SimpleNamespace
y = cg.conv2d(cg.relu(cg.conv2d(image, filters, pad=1)), filters, pad=1)
model = SimpleNamespace(outputs=[y], inputs=[image])
""",
}


def test_every_page_with_code_is_run():
    pages = [ROOT / "README.md", *(ROOT / "docs").glob("*.md")]
    assert {page.stem for page in pages if BLOCK.search(page.read_text())} == {*PAGES, *ELSEWHERE}


@pytest.mark.parametrize("page", [pytest.param(x, marks=[pytest.mark.slow] * (x in SLOW)) for x in PAGES])
def test_the_code_of_a_page_runs(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "out").mkdir()
    path = ROOT / f"{page}.md" if page == "README" else ROOT / "docs" / f"{page}.md"
    text = path.read_text()
    names: dict = {"__name__": "__main__"}
    exec(compile(IMPORTS + PAGES[page], f"what {page} takes for granted", "exec"), names)
    for block in BLOCK.finditer(text.replace("head.pt", "head.safetensors")):
        line = text[: block.start(1)].count("\n")
        exec(compile("\n" * line + block[1], path, "exec"), names)


@pytest.mark.parametrize("page", STAND_ALONE)
def test_each_block_of_a_tutorial_runs_on_its_own(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    path = ROOT / "docs" / f"{page}.md"
    for block in BLOCK.finditer(path.read_text()):
        exec(compile(block[1], path, "exec"), {"__name__": "__main__"})
