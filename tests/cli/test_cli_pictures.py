"""Pictures of another aspect ratio, of 16 bits and turned by their camera."""

import json

import numpy as np
import pytest

import cgraph as cg
from cgraph.cli import main, pictures
from cgraph.cli.arrays import read_inputs
from cgraph.cli.pictures import Look, scale_pixels
from cgraph.errors import FormatError
from cgraph.formats.onnx import save
from tests.support.tolerance import assert_near

Image = pytest.importorskip("PIL.Image")
BYTES = Look("bytes")


def read(path, shape, look=BYTES, dtype="float32"):
    x = cg.Var(shape, dtype, name="x")
    return read_inputs([str(path)], [x], look, {})["x"]


@pytest.fixture
def wide(tmp_path):
    """A picture of 8 rows and 24 columns, its thirds red, green and blue."""
    colours = np.repeat(np.eye(3, dtype="uint8") * 255, 8, axis=0)
    Image.fromarray(np.broadcast_to(colours, (8, 24, 3)).copy()).save(tmp_path / "wide.png")
    return tmp_path / "wide.png"


def test_a_stretched_picture_is_there_whole(wide):
    found = read(wide, (1, 3, 12, 12))[0]
    assert (found[0, :, 0] == 255).all() and (found[2, :, 11] == 255).all()


def test_a_letterbox_keeps_the_ratio_between_grey_bars(wide):
    found = read(wide, (1, 3, 24, 24), Look("bytes", fit="letterbox"))[0]
    assert (found[:, :8] == 114).all() and (found[:, 16:] == 114).all()
    assert (found[0, 8:16, 0] == 255).all() and (found[2, 8:16, 23] == 255).all()


def test_a_crop_is_the_middle(wide):
    found = read(wide, (1, 3, 8, 8), Look("bytes", fit="crop"))[0]
    assert (found[1] == 255).all() and not found[0].any() and not found[2].any()


def test_a_grey_letterbox_is_grey(wide):
    found = read(wide, (1, 24, 24, 1), Look("bytes", fit="letterbox"))[0, :, :, 0]
    assert (found[:8] == 114).all() and (found[16:] == 114).all()


@pytest.mark.parametrize("channels", [1, 3])
@pytest.mark.parametrize("fit", ["stretch", "letterbox", "crop"])
def test_all_16_bits_of_a_picture_count(tmp_path, channels, fit):
    values = np.linspace(0, 65535, 64).astype("uint16").reshape(8, 8)
    Image.fromarray(values).save(tmp_path / "deep.png")
    found = read(tmp_path / "deep.png", (1, channels, 8, 8), Look("unit", fit=fit))[0]
    assert_near(found, np.broadcast_to(values / 65535, found.shape), "float32 shares")


@pytest.mark.parametrize("orientation", range(1, 9))
def test_a_picture_is_turned_as_the_camera_was(tmp_path, orientation):
    upright = np.zeros((8, 8), "uint8")
    upright[:4, :4], upright[:4, 4:] = 200, 100
    turned = {1: upright, 2: upright[:, ::-1], 3: upright[::-1, ::-1], 4: upright[::-1], 5: upright.T}
    turned |= {6: np.rot90(upright), 7: upright[::-1, ::-1].T, 8: np.rot90(upright, -1)}
    picture = Image.fromarray(np.ascontiguousarray(turned[orientation]))
    exif = picture.getexif()
    exif[0x0112] = orientation
    picture.save(tmp_path / "turned.png", exif=exif)
    np.testing.assert_array_equal(read(tmp_path / "turned.png", (1, 1, 8, 8))[0, 0], upright)


def test_run_takes_the_option(wide, tmp_path, capsys):
    x = cg.Var((1, 3, 8, 8), name="image")
    save(tmp_path / "net.onnx", cg.mean(x, axis=(2, 3)), [x], ["y"])
    given = ["run", str(tmp_path / "net.onnx"), "-i", str(wide), "--json"]
    assert main([*given, "--fit", "crop"]) == 0
    assert json.loads(capsys.readouterr().out)["outputs"][0]["top"][0]["class"] == 1
    with pytest.raises(SystemExit):
        main([*given, "--fit", "squash"])


def test_colours_are_normalised_one_by_one_and_grey_pictures_only_scaled():
    values = np.arange(24, dtype="f4").reshape(2, 4, 3) * 10
    want = (values / 255 - np.array([0.485, 0.456, 0.406])) / np.array([0.229, 0.224, 0.225])
    assert_near(scale_pixels(values, "imagenet"), want, "float32")
    for channels in (1, 4):
        grey = np.full((2, 2, channels), 51, "f4")
        assert_near(scale_pixels(grey, "imagenet"), grey / 255, "float32")


PIXELS = {"unit": lambda x: x / 255, "bytes": lambda x: x, "signed": lambda x: x / 127.5 - 1}


@pytest.mark.parametrize("pixels", PIXELS)
@pytest.mark.parametrize("bgr", [False, True])
@pytest.mark.parametrize("channels", [1, 3])
@pytest.mark.parametrize("is_last", [False, True])
def test_a_picture_of_the_models_size_is_its_numbers_in_the_models_layout(tmp_path, pixels, bgr, channels, is_last):
    values = np.random.default_rng(0).integers(0, 256, (5, 7, channels)).astype("uint8")
    Image.fromarray(values.squeeze(2) if channels == 1 else values).save(tmp_path / "p.png")
    want = PIXELS[pixels](values.astype("float64"))[None, :, :, :: -1 if bgr else 1]
    want = want if is_last else want.transpose(0, 3, 1, 2)
    found = read(tmp_path / "p.png", want.shape, Look(pixels, bgr))
    assert found.flags.c_contiguous and found.dtype == np.float32
    assert_near(found, want, "float32 shares" if pixels != "bytes" else "float32")


@pytest.mark.parametrize("dtype", ["uint8", "int32", "float16", "float64"])
def test_a_picture_has_the_dtype_of_its_input(wide, dtype):
    found = read(wide, (1, 3, 8, 24), BYTES, dtype)
    assert found.dtype == dtype and found[0, :, 0, [0, 8, 16]].tolist() == (np.eye(3) * 255).tolist()


@pytest.mark.parametrize("shape", [(3, 8, 8), (2, 3, 8, 8), (1, 2, 8, 4), (1, 3, 8, 8, 1), ()])
def test_an_input_of_another_shape_is_no_picture(wide, shape):
    with pytest.raises(FormatError) as error:
        read(wide, shape)
    assert str(error.value) == f"{wide}: x {cg.Var(shape).spec} is not a picture; give an array"


@pytest.mark.parametrize(("fit", "size"), [("stretch", (8, 12)), ("letterbox", (12, 12)), ("crop", (8, 6))])
@pytest.mark.parametrize("orientation", range(1, 9))
def test_a_turned_picture_of_unequal_sides_is_fitted_as_it_stands_upright(tmp_path, orientation, fit, size):
    """Its size needs no scaling, so each pixel is one of the file."""
    upright = np.random.default_rng(1).integers(0, 256, (8, 12), dtype="uint8")
    turned = {1: upright, 2: upright[:, ::-1], 3: upright[::-1, ::-1], 4: upright[::-1], 5: upright.T}
    turned |= {6: np.rot90(upright), 7: upright[::-1, ::-1].T, 8: np.rot90(upright, -1)}
    for name, values, number in (("a.png", upright, 1), ("b.png", turned[orientation], orientation)):
        picture = Image.fromarray(np.ascontiguousarray(values))
        exif = picture.getexif()
        exif[0x0112] = number
        picture.save(tmp_path / name, exif=exif)
    one, other = (read(tmp_path / name, (1, 1, *size), Look("bytes", fit=fit)) for name in ("a.png", "b.png"))
    np.testing.assert_array_equal(one, other)
    rows, columns = {"stretch": (0, 0), "letterbox": (2, 0), "crop": (0, 3)}[fit]
    inside = one[0, 0, rows : rows + 8] if fit == "letterbox" else one[0, 0]
    np.testing.assert_array_equal(inside, upright[:, columns : columns + size[1]])


@pytest.mark.parametrize("pixels", [1, 7, 8, 20, 63, 64, 65])
def test_16_bits_are_converted_in_strips_of_any_height(tmp_path, monkeypatch, pixels):
    monkeypatch.setattr(pictures, "STRIP", pixels)
    values = np.linspace(0, 65535, 64).astype("uint16").reshape(8, 8)
    Image.fromarray(values).save(tmp_path / "deep.png")
    assert_near(read(tmp_path / "deep.png", (1, 1, 8, 8), Look("unit"))[0, 0], values / 65535, "float32 shares")


@pytest.mark.parametrize("channels", [1, 3])
@pytest.mark.parametrize("mode", ["1", "L", "P", "LA", "RGB", "RGBA"])
def test_pictures_of_any_mode_are_colours_or_greys(tmp_path, mode, channels):
    colours = np.random.default_rng(2).integers(0, 256, (5, 7, 3)).astype("uint8")
    Image.fromarray(colours).convert(mode).save(tmp_path / "p.png")
    with Image.open(tmp_path / "p.png") as image:
        assert image.mode == mode
        want = np.asarray(image.convert("RGB" if channels == 3 else "L")).reshape(5, 7, channels)
    np.testing.assert_array_equal(read(tmp_path / "p.png", (1, 5, 7, channels))[0], want)
