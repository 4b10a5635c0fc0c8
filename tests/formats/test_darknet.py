"""Darknet networks: true shapes, weights from real files, layers as loops have them, what is refused."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cgraph.errors import FormatError, ShapeError
from cgraph.formats import darknet
from tests.support.data import SHARED, shared
from tests.support.hostile import flipped, harmless, refused
from tests.support.tolerance import near

CONFIGS = sorted(p.name for p in (SHARED / "darknet_cfg").glob("*.cfg"))
OUTPUTS = {  # published shapes
    "alexnet.cfg": [(1, 1000)],
    "darknet53.cfg": [(1, 1000)],
    "go.cfg": [(1, 362)],
    "rnn.cfg": [(1, 256)],
    "yolov1.cfg": [(1, 1715)],
    "yolo9000.cfg": [(1, 28269, 17, 17)],
    "yolov2.cfg": [(1, 425, 19, 19)],
    "yolov3-tiny.cfg": [(1, 255, 13, 13), (1, 255, 26, 26)],
    "yolov3.cfg": [(1, 255, 19, 19), (1, 255, 38, 38), (1, 255, 76, 76)],
}
HEADER = np.array([0, 2, 0, 0, 0], "<i4").tobytes()


def network(folder, text, weights=None, **options):
    """A model from a description's text."""
    (folder / "net.cfg").write_text(text)
    if weights is None:
        return darknet.load(folder / "net.cfg", **options)
    (folder / "net.weights").write_bytes(
        HEADER + np.concatenate([np.ravel(w) for w in weights]).astype("<f4").tobytes()
    )
    return darknet.load(folder / "net.cfg", folder / "net.weights", **options)


def run(model, *values):
    return model.compile(engine="reference")(*values)[0]


@pytest.mark.skipif(not CONFIGS, reason="shared data darknet_cfg is not here")
def test_every_description_builds_with_its_true_shapes():
    assert len(CONFIGS) == 45
    for name in CONFIGS:
        found = darknet.load(SHARED / "darknet_cfg" / name)
        assert [x.shape for x in found.outputs] == OUTPUTS.get(name, [x.shape for x in found.outputs])
        assert all(x.size for x in found.outputs)


def test_a_detector_with_its_real_weights_finds_the_dog_and_the_car():
    image_module = pytest.importorskip("PIL.Image")
    config = shared("yolo_fastest/yolo-fastest-1.1.cfg")
    model = darknet.load(config, config.with_suffix(".weights"))
    image = image_module.open(shared("pictures/darknet_dog.jpg")).convert("RGB").resize((320, 320))
    pixels = np.ascontiguousarray(np.asarray(image, "float32").transpose(2, 0, 1)[None] / 255)
    coarse = model.compile()(pixels)[0].reshape(3, 85, 10, 10)
    scores = (coarse[:, 4:5] * coarse[:, 5:]).max((0, 2, 3))
    assert set(np.flatnonzero(scores > 0.5)) >= {2, 16}  # COCO's car and dog


def test_a_convolution_with_statistics_is_what_loops_compute(tmp_path):
    rng = np.random.default_rng(0)
    bias, scale, mean = (rng.standard_normal(2) for _ in range(3))
    variance, filters = rng.random(2), rng.standard_normal((2, 3, 3, 3))
    text = "[net]\nheight=4\nwidth=5\nchannels=3\n[convolutional]\nfilters=2\nsize=3\npad=1\nstride=2\n"
    text += "batch_normalize=1\nactivation=leaky\n"
    x = rng.standard_normal((1, 3, 4, 5)).astype("float32")
    got = run(network(tmp_path, text, [bias, scale, mean, variance, filters]), x)
    padded = np.pad(x[0], ((0, 0), (1, 1), (1, 1)))
    for k in range(2):
        for i in range(2):
            for j in range(3):
                total = (padded[:, 2 * i : 2 * i + 3, 2 * j : 2 * j + 3] * filters[k]).sum()
                want = (total - mean[k]) / (np.sqrt(variance[k]) + 1e-6) * scale[k] + bias[k]
                assert got[0, k, i, j] == near(want if want > 0 else 0.1 * want, "float32 networks")


def reorg_loop(x, stride):
    """darknet's own loop over flat arrays."""
    c, h, w = x.shape
    out, flat = np.zeros(x.size, x.dtype), x.reshape(-1)
    group = c // stride**2
    for k in range(c):
        for j in range(h):
            for i in range(w):
                place = (
                    i * stride
                    + (k // group) % stride
                    + w * stride * (j * stride + (k // group) // stride + h * stride * (k % group))
                )
                out[i + w * (j + h * k)] = flat[place]
    return out.reshape(c * stride**2, h // stride, w // stride)


def test_reorg_is_darknets_own_loop(tmp_path):
    x = np.arange(4 * 4 * 6, dtype="float32").reshape(1, 4, 4, 6)
    found = run(network(tmp_path, "[net]\nheight=4\nwidth=6\nchannels=4\n[reorg]\nstride=2\n"), x)
    np.testing.assert_array_equal(found[0], reorg_loop(x[0], 2))


@pytest.mark.parametrize("padding", [None, 0, 1, 2])
@pytest.mark.parametrize(("size", "stride"), [(2, 2), (2, 1), (3, 2), (5, 1), (3, 3)])
def test_max_pooling_has_darknets_padding(tmp_path, size, stride, padding):
    """One less than the window unless told otherwise; half of it, rounded down, comes before the image."""
    x = np.random.default_rng(0).standard_normal((1, 1, 7, 8)).astype("float32")
    text = f"[net]\nheight=7\nwidth=8\nchannels=1\n[maxpool]\nsize={size}\nstride={stride}\n"
    text += "" if padding is None else f"padding={padding}\n"
    found = run(network(tmp_path, text), x)
    whole = size - 1 if padding is None else padding
    before = whole // 2
    rows, columns = ((n + whole - size) // stride + 1 for n in (7, 8))
    assert found.shape == (1, 1, rows, columns)
    for i in range(rows):
        for j in range(columns):
            top, left = i * stride - before, j * stride - before
            window = x[0, 0, max(top, 0) : top + size, max(left, 0) : left + size]
            assert found[0, 0, i, j] == window.max()


def test_a_shortcut_between_sizes_adds_what_both_have(tmp_path):
    text = "[net]\nheight=4\nwidth=4\nchannels=2\n[activation]\n[maxpool]\nsize=2\nstride=2\n[shortcut]\nfrom=-2\n"
    x = np.arange(32, dtype="float32").reshape(1, 2, 4, 4)
    pooled = x.reshape(1, 2, 2, 2, 2, 2).max((3, 5))
    np.testing.assert_array_equal(run(network(tmp_path, text), x), pooled + x[:, :, ::2, ::2])


def test_without_weights_parameters_are_vars_and_with_a_seed_constants(tmp_path):
    text = "[net]\ninputs=2\n[connected]\noutput=3\n"
    with pytest.raises(ValueError, match="no value"):
        run(network(tmp_path, text), np.zeros((1, 2), "float32"))
    assert run(network(tmp_path, text, seed=1), np.ones((1, 2), "float32")).shape == (1, 3)


CONNECTED = "[net]\ninputs=2\n[connected]\noutput=3\nactivation=linear\n"
MALFORMED = {
    "no section": "width=3\n",
    "another first section": "[convolutional]\nfilters=1\n",
    "no option": "[net]\nnonsense\n",
    "no layers": "[net]\ninputs=3\n",
    "no input": "[net]\n[softmax]\n",
    "no number": "[net]\ninputs=many\n[softmax]\n",
    "an infinite number": "[net]\ninputs=inf\n[softmax]\n",
    "no size": "[net]\ninputs=0\n[softmax]\n",
    "more than there are bytes": "[net]\nheight=2000000000\nwidth=2000000000\nchannels=2000000000\n[softmax]\n",
    "unknown layers": "[net]\ninputs=2\n[what]\n[what]\n[else]\n",
    "an unknown activation": "[net]\ninputs=2\n[connected]\noutput=2\nactivation=eval\n",
    "a layer that comes later": "[net]\nheight=2\nwidth=2\n[route]\nlayers=5\n",
    "a layer before the first": "[net]\nheight=2\nwidth=2\n[route]\nlayers=-3\n",
    "groups that do not divide": "[net]\nheight=2\nwidth=2\n[convolutional]\ngroups=2\nfilters=2\n",
    "an image that is none": "[net]\ninputs=2\n[convolutional]\nfilters=1\n",
    "a filter of terabytes": "[net]\nheight=2\nwidth=2\n[convolutional]\nfilters=2000000000\nsize=9000\npad=1\n",
    "a matrix of terabytes": "[net]\ninputs=2000000000\n[connected]\noutput=2000000000\n",
}


@pytest.mark.parametrize("name", MALFORMED)
def test_a_malformed_description_is_refused(name, tmp_path):
    path = tmp_path / "net.cfg"
    path.write_text(MALFORMED[name])
    refused(darknet.load, path)


def test_every_unknown_layer_is_named_with_its_count(tmp_path):
    with pytest.raises(FormatError, match=r"2 kinds of layers are not supported: \[else\], \[what\] \(2 times\)"):
        network(tmp_path, MALFORMED["unknown layers"])


@pytest.mark.parametrize("count", [0, 8, 10])
def test_weights_of_another_network_are_refused(tmp_path, count):
    with pytest.raises(FormatError, match="are left"):
        network(tmp_path, CONNECTED, [np.zeros(count)])
    network(tmp_path, CONNECTED, [np.zeros(9)])


def test_weights_that_are_cut_off_are_refused(tmp_path):
    (tmp_path / "net.cfg").write_text(CONNECTED)
    for body in (b"", HEADER[:8], HEADER + bytes(9 * 4 - 1)):
        (tmp_path / "w").write_bytes(body)
        refused(lambda path: darknet.load(tmp_path / "net.cfg", path), tmp_path / "w")


def test_a_binary_file_is_no_description(tmp_path):
    (tmp_path / "x.cfg").write_bytes(b"\xff\xfe\x00")
    refused(darknet.load, tmp_path / "x.cfg", "not text")


EXAMPLE = (
    b"[net]\nheight=8\nwidth=8\nchannels=3\n[convolutional]\nfilters=8\nsize=3\npad=1\nactivation=leaky\n[maxpool]\nsize=2\n"
    b"stride=2\n[route]\nlayers=-1,-1\n[shortcut]\nfrom=-1\n[connected]\noutput=5\n[softmax]\n"
)


@given(st.lists(st.tuples(st.floats(0, 1), st.integers(1, 255)), min_size=1, max_size=3))
def test_flipped_bytes_give_a_network_or_a_typed_error(tmp_path_factory, flips):
    path = tmp_path_factory.mktemp("flips") / "net.cfg"
    path.write_bytes(flipped(EXAMPLE, flips))
    harmless(darknet.load, path)


def test_a_route_takes_one_group_of_the_channels(tmp_path):
    text = "[net]\nheight=2\nwidth=2\nchannels=6\n[dropout]\n[route]\nlayers=-1\ngroups=3\ngroup_id=1\n"
    x = np.arange(24, dtype="float32").reshape(1, 6, 2, 2)
    np.testing.assert_array_equal(run(network(tmp_path, text), x), x[:, 2:4])
    with pytest.raises(FormatError, match="4 groups do not divide 6 channels"):
        network(tmp_path, text.replace("groups=3", "groups=4"))
    with pytest.raises(FormatError, match="group 3 of 3"):
        network(tmp_path, text.replace("group_id=1", "group_id=3"))


def test_parameters_are_drawn_up_to_a_limit(tmp_path):
    text = "[net]\nheight=4\nwidth=4\nchannels=2\n[convolutional]\nfilters=8\nsize=3\n"
    assert network(tmp_path, text, seed=0, drawn=4 * (8 + 8 * 2 * 9)).outputs[0].shape == (1, 8, 2, 2)
    with pytest.raises(FormatError, match="would draw 576 B, 575 B are left; raise drawn="):
        network(tmp_path, text, seed=0, drawn=4 * (8 + 8 * 2 * 9) - 1)


@pytest.mark.parametrize("path", ["a\0b", "missing.cfg", "."])
def test_a_path_that_is_no_file_is_refused(path):
    with pytest.raises(FormatError):
        darknet.load(path)


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_lines_may_end_as_on_any_system(tmp_path, end):
    text = "[net]\nheight=2\nwidth=2\nchannels=6\n# comment\n[dropout]\n"
    (tmp_path / "net.cfg").write_bytes(text.replace("\n", end).encode())
    assert darknet.load(tmp_path / "net.cfg").outputs[0].shape == (1, 6, 2, 2)


@pytest.mark.parametrize("options", [{}, {"seed": 0}], ids=["open", "drawn"])
@pytest.mark.parametrize("kind", ["convolutional", "local", "maxpool\npadding=0"])
@pytest.mark.parametrize(("height", "width"), [(6, 9), (9, 6), (6, 6)])
def test_a_window_larger_than_its_image_is_refused(tmp_path, kind, height, width, options):
    """Whether parameters are open or drawn; one that is as large is none."""
    kind, _, more = kind.partition("\n")
    text = "[net]\nheight={}\nwidth={}\nchannels=2\n[{}]\nsize=7\n{}\n"
    assert all(network(tmp_path, text.format(7, 7, kind, more), **options).outputs[0].shape[2:])
    with pytest.raises((FormatError, ShapeError)):
        network(tmp_path, text.format(height, width, kind, more), **options)
