"""Whatever a JSON file of ours holds, its reader reads it or says in a typed error why not."""

import contextlib
import json
from itertools import islice

import numpy as np
import pytest

import cgraph as cg
import nn
from benchmarks.fuzz import keras_files
from cgraph.cli.run_model import read_labels
from cgraph.errors import CgraphError
from cgraph.formats.keras_graph import load_keras
from cgraph.formats.safetensors import read_safetensors, write_safetensors
from cgraph.kernels.host import Host, host, read_parts
from cgraph.saved.layout import MANIFEST, with_sum
from nn.models.mask_rcnn.config import torchvision_config
from nn.models.mask_rcnn.tools.coco import arrays_of, read_coco
from tests.nn.test_coco import data_set
from tests.support.json_shapes import WHOLE, nearly


@pytest.fixture
def expect_typed(tmp_path):
    """A function that lets a reader have every text at a path; CgraphErrors are expected, others are not."""

    def check(read, path, texts):
        good = path.read_bytes()
        read(path)
        for text in texts:
            path.write_bytes(text)
            with contextlib.suppress(CgraphError):
                read(path)
        path.write_bytes(good)
        read(path)

    return check


def test_checkpoints(tmp_path, expect_typed):
    path = tmp_path / "run.json"
    nn.write_checkpoint(path, {"a": np.zeros(3)}, {"step": 3, "done": False})
    expect_typed(nn.read_checkpoint, path, nearly(json.loads(path.read_text())))


def test_data_sets(tmp_path, expect_typed):
    config = torchvision_config((80, 128), 3)
    path = data_set(tmp_path)
    texts = islice(nearly(json.loads(path.read_text())), 0, None, 5)
    expect_typed(lambda x: arrays_of(read_coco(x, tmp_path), config, 4), path, texts)


def test_names_of_classes(tmp_path, expect_typed):
    path = tmp_path / "names.json"
    path.write_text('["a", "b"]')
    expect_typed(read_labels, path, nearly(["a", {"b": 1}]))


def test_headers_of_safetensors(tmp_path, expect_typed):
    path = tmp_path / "a.safetensors"
    write_safetensors(path, {"a": np.zeros(3), "b": np.ones((2, 2), "f4")}, {"made": "here"})
    raw = path.read_bytes()
    start = 8 + int.from_bytes(raw[:8], "little")
    texts = nearly(json.loads(raw[8:start]))
    expect_typed(read_safetensors, path, (len(text).to_bytes(8, "little") + text + raw[start:] for text in texts))


def test_descriptions_of_keras_networks(tmp_path, expect_typed):
    """Some of the changes: each is a file."""
    path = tmp_path / "a.h5"
    path.write_bytes(keras_files.written(keras_files.description(), {}))
    descriptions = (json.loads(text) for text in islice(nearly(keras_files.description()), WHOLE, None, 61))
    expect_typed(load_keras, path, (keras_files.written(x, {}) for x in descriptions))


def test_what_is_kept_of_the_processor():
    parts = [getattr(host(), name) for name in Host._fields]
    assert read_parts(json.dumps(parts).encode()) == parts
    for text in nearly(parts):
        found = read_parts(text)
        assert found is None or all(isinstance(x, str) for x in found)


def test_manifests_of_saved_functions(tmp_path, expect_typed):
    """Some of the changes, with the sum as it should be: each loads a function."""
    x, w = cg.Var((3,), name="x"), cg.Var((3,), name="w")
    w.assign(np.ones(3, "f4"))
    cg.compile([x * w, cg.sum(w)], [x], updates={w: w + 1}).save(tmp_path / "saved")
    path = tmp_path / "saved" / MANIFEST
    document = json.loads(path.read_bytes())
    del document["crc32"]
    texts = islice(nearly(document), WHOLE, None, 43)
    expect_typed(lambda p: cg.load(p.parent), path, (with_sum(text.decode()) for text in texts))
