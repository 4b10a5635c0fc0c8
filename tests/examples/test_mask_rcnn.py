"""The examples of Mask R-CNN on files of their users."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from nn.models.mask_rcnn.tools.synthetic import TEST, TRAINING, film, synthetic_images
from tests.nn.coco_files import write_data_set
from tests.support.patience import PATIENCE

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


def run(folder: Path, name: str, *arguments: str) -> str:
    command = [sys.executable, EXAMPLES / name, *arguments]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=PATIENCE)
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout


@pytest.mark.slow
def test_a_folder_of_a_picture_and_a_film_is_drawn(tmp_path):
    folder = tmp_path / "given"
    folder.mkdir()
    picture = synthetic_images(TEST, 0, 1).pictures[0].transpose(1, 2, 0)
    Image.fromarray(picture).save(folder / "one.png")
    first, *rest = (Image.fromarray(x) for x in film(3))
    first.save(folder / "three.gif", save_all=True, append_images=rest)
    (folder / "notes.txt").write_text("no picture")
    found = json.loads(run(tmp_path, "mask_rcnn.py", str(folder), "--json"))
    assert {one["name"] for one in found["one"]} <= {"disc", "square", "triangle"} and found["one"]
    drawn = np.asarray(Image.open(tmp_path / "out" / "one_found.png").convert("RGB"))
    assert drawn.shape == (512, 512, 3)
    assert Image.open(tmp_path / "out" / "three_found.gif").n_frames == 3


@pytest.mark.slow
def test_training_on_pictures_of_ones_own(tmp_path):
    pytest.importorskip("pycocotools")
    annotations = write_data_set(tmp_path, synthetic_images(TRAINING, 0, 4))
    given = ["--annotations", annotations, "--validation", annotations, "--pictures", str(tmp_path)]
    text = run(tmp_path, "mask_rcnn_train.py", *given, "--side", "128", "--epochs", "1", "--objects", "8")
    assert "masks:" in text and "mean average precision" in text and "nan" not in text
    assert (tmp_path / "out" / "mask_rcnn.safetensors").exists()
