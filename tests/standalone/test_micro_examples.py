"""The examples for micro-controllers, a page and a C program run with one command each, and say what they should."""

import importlib.util
import os
import subprocess
import sys
import threading
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import numpy as np
import pytest

import cgraph as cg
from cgraph.engine.cpu.twin import TwinEngine
from cgraph.kernels.machines import machine_named
from tests.support.browser import chromium
from tests.support.data import shared
from tests.support.exported import require

MICRO = Path(__file__).resolve().parents[2] / "examples" / "micro"
pytestmark = pytest.mark.slow


def run(name: str, *arguments: object) -> str:
    done = subprocess.run(
        [sys.executable, MICRO / name, *map(str, arguments)],
        capture_output=True,
        text=True,
        env=os.environ | {"PYTHONPATH": str(MICRO.parents[1])},
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def example(name: str, monkeypatch):
    monkeypatch.syspath_prepend(str(MICRO))
    spec = importlib.util.spec_from_file_location(f"{name}_example", MICRO / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_a_network_learns_on_a_micro_controller_with_the_bits_of_its_twin(tmp_path, monkeypatch):
    require("arm-none-eabi-gcc", "gcc-arm-none-eabi")
    require("qemu-system-arm", "qemu-system-arm")
    text = run("learning.py", tmp_path)
    assert "steps on the board: 300" in text
    learning = example("learning", monkeypatch)
    loss, inputs, updates = learning.training_step()
    twin = cg.compile(loss, inputs, updates, engine=TwinEngine(threads=1, of=machine_named("cortex-m7").target))
    expected = np.array([twin(p, t) for p, t in zip(*learning.rings(1))], np.float32)
    losses = np.fromfile(tmp_path / "learner/out.bin", np.float32)
    assert (losses.view(np.uint32) == expected.view(np.uint32)).all()
    assert losses[-50:].mean() < 0.6 * losses[:50].mean()


def test_a_classifier_of_bytes_answers_on_a_micro_controller(tmp_path):
    require("arm-none-eabi-gcc", "gcc-arm-none-eabi")
    require("qemu-system-arm", "qemu-system-arm")
    pytest.importorskip("sklearn", reason="the package scikit-learn is not installed")
    text = run("classifier.py", tmp_path)
    right = int(text.rsplit(" of 100 unseen digits", 1)[0].split()[-1])
    assert right >= 85


def test_a_c_program_smooths_numbers_without_python(tmp_path):
    require("cc", "gcc")
    lines = run("host.py", tmp_path).splitlines()[-4:]
    mean, x = np.zeros(8, np.float32), np.arange(32, dtype=np.float32).reshape(4, 8)
    for line, row in zip(lines, x):
        mean = mean + np.float32(0.25) * (row - mean)
        assert line == " ".join(f"{v:.3f}" for v in mean)


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *arguments: object) -> None:
        """Print nothing."""


def test_a_page_names_a_picture_with_the_bits_of_its_twin(tmp_path, monkeypatch):
    require("wasm-ld", "lld")
    weights = shared("squeezenet_v1.0_compressed/compressed_SqueezeNet.net")
    run("browser.py", tmp_path, "--weights", weights, "--labels", shared("imagenet_labels/synset.txt"))
    page = example("browser", monkeypatch)
    image = cg.Var((1, 3, page.SIZE, page.SIZE), "float32", "image")
    scores = cg.softmax(page.squeezenet(image, page.read_deep_compression(weights, page.shapes())))
    twin = cg.compile(scores, image, engine=TwinEngine(threads=1, of=machine_named("wasm32").target))
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(tmp_path / "page")))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        with chromium(tmp_path / "profile") as browser:
            browser.set_script_timeout(300)
            browser.get(f"http://127.0.0.1:{server.server_port}/index.html")
            browser.execute_async_script(WAIT_FOR_PAGE)
            browser.find_element("id", "file").send_keys(str(shared("pictures/darknet_eagle.jpg")))
            label, pixels, bits = browser.execute_async_script(ASK)
    finally:
        server.shutdown()
    rgba = np.array(pixels, np.uint8).reshape(page.SIZE, page.SIZE, 4)
    blue_first = rgba[..., 2::-1].astype(np.float32) - np.array([104, 117, 123], np.float32)
    expected = twin(np.ascontiguousarray(blue_first.transpose(2, 0, 1)[None]))
    assert (np.array(bits, np.uint32) == expected.reshape(-1).view(np.uint32)).all()
    names = shared("imagenet_labels/synset.txt").read_text().splitlines()
    assert label.split(" ")[0] in names[int(expected.argmax())]


WAIT_FOR_PAGE = """
const done = arguments[arguments.length - 1];
const wait = () => window.page ? done(true) : setTimeout(wait, 50);
wait();
"""
ASK = """
const done = arguments[arguments.length - 1];
const answer = document.getElementById("answer");
const wait = () => {
  if (!answer.children.length) return setTimeout(wait, 50);
  const context = document.getElementById("picture").getContext("2d");
  const pixels = context.getImageData(0, 0, context.canvas.width, context.canvas.height).data;
  const scores = window.page.scores(pixels);
  done([answer.children[0].textContent, Array.from(pixels), Array.from(new Uint32Array(scores.buffer))]);
};
wait();
"""
