"""What the examples compute, beside the same in NumPy and SciPy, on pictures with unequal sides."""

import importlib.util
from argparse import Namespace
from math import log
from pathlib import Path

import numpy as np
import pytest

import cgraph as cg
from tests.support.tolerance import assert_near, near

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
RNG = np.random.default_rng(0)


def example(name):
    spec = importlib.util.spec_from_file_location(f"{name}_example", EXAMPLES / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_heat_flows_to_the_four_neighbours_and_the_border_keeps_its_own():
    x = RNG.random((5, 7)).astype("f4")
    want = x.copy()
    for r in range(1, 4):
        for c in range(1, 6):
            want[r, c] += 0.2 * (x[r - 1, c] + x[r + 1, c] + x[r, c - 1] + x[r, c + 1] - 4 * x[r, c])
    assert_near(example("heat").step_of(cg.Const(x), 0.2).eval(), want, "float32 formulas")


def test_a_plate_begins_hot_above_warm_on_the_left_and_with_a_spot():
    heat = example("heat")
    plate = heat.simulate(12, 0)
    assert (plate[0, 1:] == 1).all() and (plate[:, 0] == 0.5).all() and (plate[4:6, 4:6] == 1).all()
    assert plate.sum() == 11 + 6 + 4
    assert_near(heat.simulate(12, 2), heat.step_of(heat.step_of(cg.Const(plate), 0.2), 0.2).eval(), "float32 formulas")


def test_filters_are_a_gauss_the_length_of_the_slope_and_a_sketch_of_both():
    ndimage = pytest.importorskip("scipy.ndimage")
    x = RNG.random((3, 9, 14)).astype("f4")
    blurred, edges, sketch = (y.eval() for y in example("image_filters").filters(cg.Const(x)))
    for i, channel in enumerate(x.astype("f8")):
        gauss = ndimage.gaussian_filter(channel, 2, mode="nearest", radius=4)
        slope = np.hypot(ndimage.sobel(channel, 0, mode="nearest"), ndimage.sobel(channel, 1, mode="nearest"))
        assert_near(blurred[i], gauss, "float32 sums near zero")
        assert_near(edges[i], np.clip(slope, 0, 1), "float32 sums near zero")
        assert_near(sketch[i], 1 - np.clip(1.5 * slope, 0, 1) * (1 - gauss), "float32 sums near zero")


def test_a_large_picture_is_sharpened_in_whole_numbers_and_comes_in_rows_of_any_side():
    ndimage = pytest.importorskip("scipy.ndimage")
    large = example("large_picture")
    rows = list(large.picture(20))
    assert [x.shape for x in rows] == [(1, 1, 8, 20), (1, 1, 8, 20), (1, 1, 4, 20)] and rows[0].dtype == np.uint8
    x = np.concatenate(rows, 2)[..., :13]
    plain = x[0, 0].astype("f8")
    blurred = ndimage.gaussian_filter(plain, 1, mode="constant", radius=2)
    sharp = large.filters(cg.Const(x)).eval()
    assert sharp.dtype == np.uint8
    assert np.abs(sharp[0, 0].astype("f8") - np.floor(np.clip(plain + 1.5 * (plain - blurred), 0, 255))).max() <= 1
    assert large.network(cg.Var((1, 1, 64, 48), "uint8")).shape == (1, 1, 64, 48)


def test_a_classifier_sees_the_middle_of_a_picture_in_the_units_of_its_network(tmp_path):
    image = pytest.importorskip("PIL.Image")
    picture = RNG.integers(0, 256, (6, 10, 3), np.uint8)
    image.fromarray(picture).save(tmp_path / "x.png")
    classify = example("classify")
    units = Namespace(mean=(1.0, 2.0, 3.0), deviation=(4.0, 5.0, 6.0))
    for shape, part in (((3, 6, 6), picture[:, 2:8]), ((3, 6, 10), picture), ((3, 3, 10), None)):
        found = classify.pixels(tmp_path / "x.png", shape, units)
        assert found.shape == (1, *shape) and found.dtype == np.float32 and found.flags.c_contiguous
        if part is not None:
            assert_near(found[0], ((part - units.mean) / units.deviation).transpose(2, 0, 1), "float32 formulas")


@pytest.mark.parametrize("shift", [0.0, 1000.0, -1000.0])
def test_shares_of_a_classifier_are_a_softmax_of_each_row(shift):
    x = RNG.normal(size=(2, 5))
    powers = np.exp(x)
    assert_near(example("classify").softmax(x + shift), powers / powers.sum(1, keepdims=True), "float64 conditioned")


def test_counts_of_characters_fall_back_to_shorter_ones():
    """Witten and Bell: of "abab", what follows a is b twice, what follows b is a once."""
    found = example("gpt").counted("abab", "xxab", 2)
    alone = (2 + 2 / 256) / (4 + 2)
    after_a = (2 + alone) / (2 + 1)
    first = -(log(alone) + log(alone)) / 2
    assert found[0] == near(first, "float64 formulas")
    assert found[1] == near(-(log(alone) + log(after_a)) / 2, "float64 formulas")


def test_kernels_of_ones_own_are_a_threshold_a_running_maximum_and_a_weighted_mean():
    own, x = example("own_kernels"), RNG.normal(size=(5, 7)).astype("f4")
    v = cg.Var(x.shape, name="x")
    nodes = [own.soft(v, 0.5), own.running_largest(v), own.bilateral(v, 2, np.float32(0.03), np.float32(8))]
    soft, largest, smooth = cg.compile(nodes, v)(x)
    assert_near(soft, np.sign(x) * np.maximum(np.abs(x) - 0.5, 0), "float32 formulas near zero")
    np.testing.assert_array_equal(largest, np.maximum.accumulate(x, 1))
    want = np.zeros(x.shape)
    for i, j in np.ndindex(x.shape):
        rows, columns = np.mgrid[max(i - 2, 0) : min(i + 3, 5), max(j - 2, 0) : min(j + 3, 7)]
        near_ones = x[rows, columns].astype("f8")
        weights = np.exp(-0.03 * ((rows - i) ** 2 + (columns - j) ** 2) - 8 * (near_ones - x[i, j]) ** 2)
        want[i, j] = (weights * near_ones).sum() / weights.sum()
    assert_near(smooth, want, "float32 sums near zero")


def test_a_letterbox_has_the_picture_at_the_upper_left_blue_first_and_grey_beside_it():
    image = pytest.importorskip("PIL.Image")
    yolox = example("yolox")
    for size, shape in (((20, 10), (208, 416)), ((10, 20), (416, 208)), ((832, 416), (208, 416))):
        pixels, scale = yolox.letterbox(image.new("RGB", size, (255, 0, 51)))
        assert pixels.shape == (1, 3, 416, 416) and pixels.dtype == np.float32 and scale == 416 / max(size)
        inside = np.zeros((416, 416), bool)
        inside[: shape[0], : shape[1]] = True
        for channel, colour in zip(pixels[0], (51, 0, 255)):
            assert (channel[inside] == colour).all() and (channel[~inside] == 114).all()


def test_pictures_of_cifars_files_keep_their_classes_and_go_from_minus_one_to_one(tmp_path, monkeypatch):
    pytest.importorskip("distributed", reason="distributed is not installed")
    cluster = example("train_cluster")
    records = RNG.integers(0, 256, (6, 3073), np.uint8)
    records[:, 0] = np.arange(6)
    records[:4].tofile(tmp_path / "data_batch_1.bin")
    records[4:].tofile(tmp_path / "test_batch_0.bin")
    pictures, classes = cluster.pictures(tmp_path)
    assert sorted(classes) == [0, 1, 2, 3, 4, 5] and classes.dtype == np.int32 and pictures.dtype == np.float32
    assert classes.tolist() != [0, 1, 2, 3, 4, 5]
    for picture, number in zip(pictures, classes):
        assert_near(picture.ravel(), records[number, 1:] / 127.5 - 1, "float32 shares")
    listed = sorted(tmp_path.iterdir())
    for files in (listed, listed[::-1]):
        monkeypatch.setattr(Path, "glob", lambda self, pattern, files=files: iter(files))
        np.testing.assert_array_equal(cluster.pictures(tmp_path)[1], classes)


def test_pictures_that_are_drawn_have_stripes_across_their_angle():
    pytest.importorskip("distributed", reason="distributed is not installed")
    pixels, classes = example("train_cluster").made(300)
    assert pixels.shape == (300, 3, 32, 32) and set(classes) == set(range(10))
    assert pixels.min() >= 0 and pixels.max() <= 255
    upright, lying = (pixels[classes == kind].mean(1) for kind in (0, 5))
    for along, across in ((upright.mean(1), upright.mean(2)), (lying.mean(2), lying.mean(1))):
        assert along.std(1).min() > 3 * across.std(1).max()
