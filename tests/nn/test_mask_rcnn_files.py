"""Weights from outside for Mask R-CNN, by files that are made here; packed masks; films."""

import io
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from PIL import Image

import nn
from cgraph import FormatError
from cgraph.record import replace
from nn.models.mask_rcnn import (
    mask_rcnn,
    mask_rcnn_matterport,
    matterport_arrays,
    matterport_config,
    torchvision_arrays,
    torchvision_config,
)
from nn.models.mask_rcnn.tools.frames import Film, count_frames, is_film, read_film, write_film
from nn.models.mask_rcnn.tools.masks import mask_of, unpack_runs
from nn.models.mask_rcnn.tools.synthetic import film
from tests.support.tolerance import assert_near, near

CLASSES = 5


def network(version: int):
    return mask_rcnn(50, None, torchvision_config((64, 64), CLASSES), version)


def torch_names(version: int) -> dict[str, tuple[int, ...]]:
    """Names and shapes as torchvision writes them, from its documentation of the state dict."""
    found = conv_norm("backbone.body.conv1", "backbone.body.bn1", 3, 64, 7)
    before = 64
    for g, depth in enumerate((3, 4, 6, 3)):
        width = 64 << g
        for i in range(depth):
            here = f"backbone.body.layer{g + 1}.{i}"
            for n, (c, k, size) in enumerate([(before, width, 1), (width, width, 3), (width, 4 * width, 1)], 1):
                found |= conv_norm(f"{here}.conv{n}", f"{here}.bn{n}", c, k, size)
            if i == 0:
                found |= conv_norm(f"{here}.downsample.0", f"{here}.downsample.1", before, 4 * width, 1)
            before = 4 * width
    block = conv_pair if version == 2 else conv_bias
    for i in range(4):
        found |= block(f"backbone.fpn.inner_blocks.{i}", 256 << i, 256, 1)
        found |= block(f"backbone.fpn.layer_blocks.{i}", 256, 256, 3)
    for i in range(version):
        found |= conv_bias(f"rpn.head.conv.{i}", 256, 256, 3)
    found |= affine("rpn.head.cls_logits", (3, 256, 1, 1)) | affine("rpn.head.bbox_pred", (12, 256, 1, 1))
    if version == 2:
        for i in range(4):
            found |= conv_pair(f"roi_heads.box_head.{i}", 256, 256, 3)
        found |= affine("roi_heads.box_head.5", (1024, 12544))
    else:
        found |= affine("roi_heads.box_head.fc6", (1024, 12544)) | affine("roi_heads.box_head.fc7", (1024, 1024))
    found |= affine("roi_heads.box_predictor.cls_score", (CLASSES, 1024))
    found |= affine("roi_heads.box_predictor.bbox_pred", (4 * CLASSES, 1024))
    for i in range(4):
        found |= block(f"roi_heads.mask_head.{i}", 256, 256, 3)
    found |= affine("roi_heads.mask_predictor.conv5_mask", (256, 256, 2, 2), 256)
    return found | affine("roi_heads.mask_predictor.mask_fcn_logits", (CLASSES, 256, 1, 1))


def affine(name, shape, bias=None):
    return {f"{name}.weight": shape, f"{name}.bias": (bias or shape[0],)}


def conv_bias(name, inputs, outputs, size):
    return affine(f"{name}.0", (outputs, inputs, size, size))


def conv_pair(name, inputs, outputs, size):
    return conv_norm(f"{name}.0", f"{name}.1", inputs, outputs, size)


def conv_norm(conv, norm, inputs, outputs, size):
    found = {f"{norm}.{kind}": (outputs,) for kind in ("weight", "bias", "running_mean", "running_var")}
    return found | {f"{conv}.weight": (outputs, inputs, size, size), f"{norm}.num_batches_tracked": ()}


def filled(shapes):
    return {name: np.full(shape, i, np.float32) for i, (name, shape) in enumerate(shapes.items())}


def older(name: str) -> str:
    """The name in files from before torchvision 0.14."""
    for part in ("inner_blocks", "layer_blocks", "rpn.head.conv", "mask_head"):
        if part in name:
            head, _, kind = name.rpartition(".0.")
            if part == "mask_head":
                number = int(head.rpartition(".")[2])
                return f"roi_heads.mask_head.mask_fcn{number + 1}.{kind}"
            return f"rpn.head.conv.{kind}" if part == "rpn.head.conv" else f"{head}.{kind}"
    return name


@pytest.mark.parametrize(("version", "old"), [(1, False), (1, True), (2, False)])
def test_every_array_of_a_torchvision_file_finds_its_place(version, old):
    arrays = filled(torch_names(version))
    arrays = {older(name) if old else name: x for name, x in arrays.items()}
    model = network(version)
    found = torchvision_arrays(arrays, model)
    nn.set_values(model, found)
    values = sorted(value for x in found.values() for value in np.unique(x))
    assert values == sorted(float(x.flat[0]) for name, x in arrays.items() if not name.endswith("tracked"))
    weight = model.rpn.numbers.weight.value
    assert (weight[:3] == arrays["rpn.head.cls_logits.weight"]).all()
    assert (weight[3:] == arrays["rpn.head.bbox_pred.weight"]).all()


def test_a_file_that_lacks_an_array_or_has_another_network_s_is_refused():
    arrays = filled(torch_names(1))
    with pytest.raises(FormatError, match=r"has no roi_heads\.box_head\.fc6\.weight"):
        torchvision_arrays({k: v for k, v in arrays.items() if "fc6" not in k}, network(1))
    with pytest.raises(FormatError, match=r"which torchvision's network of this version and depth has not"):
        torchvision_arrays(arrays | {"backbone.body.layer3.6.conv1.weight": np.zeros(1)}, network(1))
    with pytest.raises(FormatError):
        torchvision_arrays(arrays, network(2))


def matterport_file(path, depths=(3, 4, 6, 3)):
    """A file with matterport's layers and paths; every array is filled with a number of its own."""
    h5py = pytest.importorskip("h5py")
    rng = np.random.default_rng(0)
    with h5py.File(path, "w") as file:

        def put(layer, name, *shape, inside=None):
            file[f"{inside or layer}/{layer}/{name}:0"] = rng.normal(size=shape).astype("f4")

        def conv(layer, size, inputs, outputs, inside=None):
            put(layer, "kernel", size, size, inputs, outputs, inside=inside)
            put(layer, "bias", outputs, inside=inside)

        def norm(layer, width):
            for name in ("gamma", "beta", "moving_mean", "moving_variance"):
                put(layer, name, width)

        conv("conv1", 7, 3, 64), norm("bn_conv1", 64)
        before = 64
        for g, depth in enumerate(depths):
            width = 64 << g
            for b in range(depth):
                name = f"{g + 2}{chr(97 + b)}_branch"
                sizes = [("2a", 1, before, width), ("2b", 3, width, width), ("2c", 1, width, 4 * width)]
                for branch, *size in sizes + ([("1", 1, before, 4 * width)] if b == 0 else []):
                    conv(f"res{name}{branch}", *size), norm(f"bn{name}{branch}", size[2])
                before = 4 * width
        for i in range(2, 6):
            conv(f"fpn_c{i}p{i}", 1, 64 << i, 256), conv(f"fpn_p{i}", 3, 256, 256)
        for name, size, inputs, outputs in (
            ("conv_shared", 3, 256, 512),
            ("class_raw", 1, 512, 6),
            ("bbox_pred", 1, 512, 12),
        ):
            conv(f"rpn_{name}", size, inputs, outputs, inside="rpn_model")
        conv("mrcnn_class_conv1", 7, 256, 1024), conv("mrcnn_class_conv2", 1, 1024, 1024)
        for i in (1, 2):
            norm(f"mrcnn_class_bn{i}", 1024)
        for name, width in (("class_logits", CLASSES), ("bbox_fc", 4 * CLASSES)):
            put(f"mrcnn_{name}", "kernel", 1024, width), put(f"mrcnn_{name}", "bias", width)
        for i in range(1, 5):
            conv(f"mrcnn_mask_conv{i}", 3, 256, 256), norm(f"mrcnn_mask_bn{i}", 256)
        put("mrcnn_mask_deconv", "kernel", 2, 2, 256, 256), put("mrcnn_mask_deconv", "bias", 256)
        conv("mrcnn_mask", 1, 256, CLASSES)
    return path


def test_a_matterport_file_is_read_and_each_number_means_what_it_did(tmp_path):
    from cgraph.formats.keras_h5 import read_keras

    layers = read_keras(matterport_file(tmp_path / "mask_rcnn.h5")).weights
    model = mask_rcnn_matterport(50, None, replace(matterport_config(64), classes=CLASSES))
    nn.set_values(model, matterport_arrays(layers, model))
    values = {path: x.value for path, x in model.variables().items()}
    norm, conv = layers["bn3a_branch2b"], layers["res3a_branch2b"]
    assert_near(
        values["trunk.groups.1.0.second.norm.mean"], norm["moving_mean"] - conv["bias"], "float64 through float32"
    )
    np.testing.assert_array_equal(values["trunk.groups.1.0.second.conv.weight"], conv["kernel"].transpose(3, 2, 0, 1))
    two = layers["rpn_model"]["rpn_class_raw/kernel"][0, 0]
    assert_near(values["rpn.numbers.weight"][1, :, 0, 0], two[:, 3] - two[:, 2], "float64 through float32")
    deltas = layers["rpn_model"]["rpn_bbox_pred/bias"]
    np.testing.assert_array_equal(values["rpn.numbers.bias"][3:7], deltas[[1, 0, 3, 2]])
    whole = layers["mrcnn_class_conv1"]["kernel"]
    cells = np.random.default_rng(1).normal(size=(256, 7, 7)).astype("f4")
    want = np.einsum("chw,hwck->k", cells, whole)
    assert_near(cells.ravel() @ values["box.full.0.linear.weight"], want, "float32 sums of ten thousand products")
    del layers["mrcnn_mask"]
    with pytest.raises(FormatError, match="has no mrcnn_mask/kernel"):
        matterport_arrays(layers, model)


# -- masks of COCO's format --------------------------------------------------------------------------------------------


def test_packed_runs_are_those_of_pycocotools():
    runs = pytest.importorskip("pycocotools.mask")
    rng = np.random.default_rng(2)
    for rows, columns, share in ((1, 1, 1.0), (30, 41, 0.5), (200, 100, 0.01)):
        mask = rng.random((rows, columns)) < share
        packed = runs.encode(np.asfortranarray(mask.astype(np.uint8)))
        np.testing.assert_array_equal(mask_of({"counts": packed["counts"].decode()}, rows, columns), mask)


@pytest.mark.parametrize("text", ["~", "é", "a", "o" * 40])
def test_text_that_is_no_runs_is_refused(text):
    with pytest.raises(FormatError):
        unpack_runs(text)


@pytest.mark.parametrize("counts", [[10], [10, -5, 2395], [[1]], [1 << 62, 1 << 62]])
def test_runs_that_do_not_fill_the_picture_are_refused(counts):
    with pytest.raises(FormatError):
        mask_of({"counts": counts}, 40, 60)


# -- films -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("suffix", [".gif", ".png", ".webp", ".mp4"])
def test_a_film_is_written_and_read(tmp_path, suffix):
    if suffix == ".mp4":
        pytest.importorskip("imageio_ffmpeg")
    path, frames = tmp_path / f"film{suffix}", [x[:96] for x in film(5)]  # wider than high
    write_film(path, 10, (Image.fromarray(x) for x in frames))
    found = read_film(path)
    pictures = list(found.frames)
    assert is_film(path) and len(pictures) == 5 and found.rate == near(10, "float64 through float32")
    for got, want in zip(pictures, frames):
        assert got.shape == want.shape == (96, len(want[0]), 3) and len(want[0]) > 96
        assert np.abs(got.astype(int) - want).mean() < 12
    assert (frames[0] != frames[4]).any()


def test_what_ffmpeg_reads_has_its_rows_columns_rate_and_length(monkeypatch):
    """By a module in the place of imageio-ffmpeg, which says its facts first, then gives bytes."""
    frames = np.random.default_rng(0).integers(0, 256, (3, 4, 6, 3), np.uint8)

    def read_frames(name, input_params):
        assert name == "file:a.mp4" and "file,pipe" in input_params
        yield {"size": (6, 4), "fps": 24.0, "duration": 0.125}
        yield from (x.tobytes() for x in frames)

    monkeypatch.setitem(sys.modules, "imageio_ffmpeg", SimpleNamespace(read_frames=read_frames))
    found = read_film(Path("a.mp4"))
    assert (found.length, found.rate) == (3, 24.0)
    np.testing.assert_array_equal(list(found.frames), frames)


@pytest.mark.parametrize("is_terminal", [True, False])
def test_frames_are_counted_on_a_terminal_one_by_one_and_elsewhere_at_the_end(monkeypatch, is_terminal):
    stream = io.StringIO()
    stream.isatty = lambda: is_terminal
    monkeypatch.setattr("sys.stderr", stream)
    assert list(count_frames(Film(9, 25.0, iter("ab")), "film.mp4")) == ["a", "b"]
    *shown, last = stream.getvalue().split("\r")[1:]
    assert shown == (["film.mp4: frame 1 of 9", "film.mp4: frame 2 of 9"] if is_terminal else [])
    assert last.startswith("film.mp4: 2 frames, ") and last.endswith(" a second\n")


def test_a_picture_is_no_film(tmp_path):
    Image.fromarray(next(film(1))).save(tmp_path / "one.png")
    assert not is_film(tmp_path / "one.png") and not is_film(tmp_path / "one.jpg")


@pytest.mark.parametrize("suffix", [".gif", ".png", ".webp"])
def test_a_film_in_a_picture_file_goes_on_for_ever_at_its_rate(tmp_path, suffix):
    image = pytest.importorskip("PIL.Image")
    pictures = [image.new("RGB", (6, 4), (60 * i, 0, 255 - 60 * i)) for i in range(3)]
    write_film(tmp_path / f"x{suffix}", 12.5, iter(pictures))
    with image.open(tmp_path / f"x{suffix}") as film:
        assert film.n_frames == 3 and film.size == (6, 4) and film.info["loop"] == 0
        film.seek(1)
        film.load()
        assert film.info["duration"] == 80
    assert read_film(tmp_path / f"x{suffix}").rate == 12.5


class Writer:
    """What imageio-ffmpeg writes with. Changes: it notes what it is sent."""

    def __init__(self):
        self.sent, self.closed = [], 0

    def send(self, x):
        self.sent.append(x)

    def close(self):
        self.closed += 1


@pytest.mark.parametrize("count", [0, 1, 3])
def test_ffmpeg_gets_size_and_rate_once_and_every_picture_in_its_order(count, monkeypatch, tmp_path):
    calls, writer = [], Writer()
    module = SimpleNamespace(write_frames=lambda *args, **options: calls.append((args, options)) or writer)
    monkeypatch.setitem(sys.modules, "imageio_ffmpeg", module)
    pictures = [np.full((4, 6, 3), i, np.uint8) for i in range(count)]
    write_film(tmp_path / "a.mp4", 12.5, (Image.fromarray(x) for x in pictures))
    if not count:
        assert not calls
        return
    assert calls == [((str(tmp_path / "a.mp4"), (6, 4)), {"fps": 12.5, "macro_block_size": 2})]
    first, *sent = writer.sent
    assert first is None and writer.closed == 1
    np.testing.assert_array_equal(sent, pictures)
    assert all(x.flags.c_contiguous for x in sent)


@pytest.mark.parametrize("error", [OSError("gone"), RuntimeError("no film"), None])
def test_what_ffmpeg_does_not_read_is_named_with_all_endings(error, monkeypatch):
    def read_frames(*args, **options):
        if error is not None:
            raise error
        return iter(())

    monkeypatch.setitem(sys.modules, "imageio_ffmpeg", SimpleNamespace(read_frames=read_frames))
    with pytest.raises(FormatError, match="^a.MOV is not a film that ffmpeg reads: .*Convert it to one of .gif, .png"):
        read_film(Path("a.MOV"))


def test_a_film_in_a_picture_file_without_times_has_ten_frames_a_second(tmp_path):
    first, *rest = (Image.new("RGB", (6, 4), (60 * i, 0, 0)) for i in range(3))
    first.save(tmp_path / "a.gif", save_all=True, append_images=rest)
    found = read_film(tmp_path / "a.gif")
    assert (found.length, found.rate) == (3, 10.0)


@pytest.mark.parametrize("ending", [".mp4", ".mov", ".mkv", ".avi", ".webm", ".MP4"])
def test_endings_of_films_are_films_without_being_read(ending):
    assert is_film(Path(f"nowhere{ending}")) and not is_film(Path(f"nowhere{ending}x"))


@pytest.mark.parametrize("before", [0, 2])
def test_ffmpeg_ends_when_a_picture_cannot_be_made(before, monkeypatch, tmp_path):
    writer = Writer()
    monkeypatch.setitem(sys.modules, "imageio_ffmpeg", SimpleNamespace(write_frames=lambda *args, **options: writer))

    def pictures():
        yield from [Image.new("RGB", (6, 4))] * before
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_film(tmp_path / "a.mp4", 10, pictures())
    assert writer.closed == (before > 0)
