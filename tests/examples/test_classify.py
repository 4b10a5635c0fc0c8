"""The example that names what is in pictures, with a torch file."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import nn
from tests.formats.test_torch_file import tensor, tree, zipped
from tests.support.patience import PATIENCE

SCRIPT = Path(__file__).resolve().parents[2] / "examples" / "classify.py"
LABELS = ("cat", "dog", "horse")


@pytest.mark.slow
def test_a_picture_is_named_by_a_network_with_weights_of_a_torch_file(tmp_path):
    model = nn.models.squeezenet1_1(3, classes=len(LABELS))
    arrays = {str(i): x.value for i, x in enumerate(model.variables().values())}
    tensors = {f"{key}.weight": tensor(key, x.size, 0, x.shape, steps(x)) for key, x in arrays.items()}
    (tmp_path / "network.pth").write_bytes(zipped(tree(**tensors), arrays))
    (tmp_path / "labels.txt").write_text("\n".join(LABELS))
    pixels = np.random.default_rng(0).integers(0, 256, (224, 224, 3), np.uint8)
    Image.fromarray(pixels).save(tmp_path / "picture.png")
    given = ["--network", "squeezenet1_1", "--weights", "network.pth", "--labels", "labels.txt", "picture.png"]
    done = subprocess.run(
        [sys.executable, SCRIPT, *given], cwd=tmp_path, capture_output=True, text=True, timeout=PATIENCE
    )
    assert done.returncode == 0, done.stderr[-2000:]
    seen = (pixels.astype("float32") - np.float32((123.675, 116.28, 103.53))) / np.float32((58.395, 57.12, 57.375))
    scores = nn.compile(model)(np.ascontiguousarray(seen.transpose(2, 0, 1)[None]))[0]
    best = " ".join(LABELS[i] for i in np.argsort(-scores))
    assert " ".join(word for word in done.stdout.replace(":", "").split() if word in LABELS) == best


def steps(x: np.ndarray) -> tuple[int, ...]:
    """Elements from one to the next along each axis."""
    return tuple(n // x.itemsize for n in x.strides)
