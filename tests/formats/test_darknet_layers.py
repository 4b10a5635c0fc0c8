"""Every kind of Darknet's layers is what plain NumPy computes of the same numbers; old files turned round, too."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

from cgraph.formats import darknet
from cgraph.formats.darknet.layers import ACTIVATIONS, LAYERS
from cgraph.record import Record
from tests.support.tolerance import assert_near

N, C, H, W = 2, 4, 6, 4  # samples; of the image
NET = f"[net]\nheight={H}\nwidth={W}\nchannels={C}\n"
HEADER, OLD_HEADER = np.array([0, 2, 0, 0, 0], "<i4"), np.array([0, 1001, 0, 0], "<i4")
Array = np.ndarray[Any, Any]


class Row(Record):
    """Layers behind an image.

    Fields
        text: their description
        meaning: the image and what the file holds → the result
        shapes: of what the file holds
    """

    text: str
    meaning: Callable[..., Array]
    shapes: Sequence[tuple[int, ...]] = ()


def sigmoid(x: Array) -> Array:
    return 1 / (1 + np.exp(-x))


def softmax(x: Array, axis: int = -1) -> Array:
    found = np.exp(x - x.max(axis, keepdims=True))
    return found / found.sum(axis, keepdims=True)


def windows(x: Array, size: int, stride: int = 1, pad: int = 0, dilation: int = 1) -> Array:
    """``[n, c, rows, columns, size, size]``"""
    x, reach = np.pad(x, [(0, 0), (0, 0), (pad, pad), (pad, pad)]), (size - 1) * dilation + 1
    found = np.lib.stride_tricks.sliding_window_view(x, (reach, reach), (2, 3))
    return found[:, :, ::stride, ::stride, ::dilation, ::dilation]


def grouped(x: Array, bias: Array, filters: Array) -> Array:
    """A convolution of two groups, with everything that it may have."""
    seen = windows(x, 3, stride=2, pad=3, dilation=2)
    halves = zip(np.split(seen, 2, 1), np.split(filters, 2))
    return np.concatenate([np.einsum("nchwij,kcij->nkhw", v, f) for v, f in halves], 1) + bias[:, None, None]


def local(size: int, stride: int, pad: int) -> Callable[..., Array]:
    def meaning(x: Array, bias: Array, filters: Array) -> Array:
        seen = windows(x, size, stride, pad)
        rows, columns = seen.shape[2:4]
        own = filters.reshape(rows, columns, len(bias), C, size, size)
        return np.einsum("nchwij,hwkcij->nkhw", seen, own) + bias

    return meaning


def normalised(x: Array, shift: Array, scale: Array, mean: Array, variance: Array) -> Array:
    columns = (-1, *[1] * (x.ndim - 2))
    shift, scale, mean, variance = (v.reshape(columns) for v in (shift, scale, mean, variance))
    return (x - mean) / (np.sqrt(variance) + 1e-6) * scale + shift


def connected(x: Array, bias: Array, matrix: Array) -> Array:
    return x.reshape(len(x), -1) @ matrix.T + bias


def upsampled(x: Array) -> Array:
    return x.repeat(3, 2).repeat(3, 3) * 0.5


def added(x: Array, y: Array) -> Array:
    """`y` on the channels that both have."""
    c = min(x.shape[1], y.shape[1])
    return np.concatenate([x[:, :c] + y[:, :c], x[:, c:]], 1)


def enlarged(x: Array, y: Array) -> Array:
    """`y` on every second pixel."""
    found = x.copy()
    found[:, :, ::2, ::2] += y
    return found


def small(x: Array) -> Array:
    return x.reshape(N, C, H // 2, 2, W // 2, 2).max((3, 5))


POOL = "[maxpool]\nsize=2\nstride=2\n"
ROWS = {
    "convolutional": Row(
        "[convolutional]\nfilters=6\nsize=3\nstride=2\npadding=3\ndilation=2\ngroups=2\nactivation=linear\n",
        grouped, [(6,), (6, C // 2, 3, 3)],
    ),
    "convolutional without options": Row(
        "[convolutional]\n", lambda x, bias, filters: sigmoid(np.einsum("nchw,kcij->nkhw", x, filters) + bias[0]),
        [(1,), (1, C, 1, 1)],
    ),
    "convolutional with pad, which precedes padding": Row(
        "[convolutional]\nfilters=2\nsize=2\npad=1\npadding=5\nactivation=linear\n",
        lambda x, bias, filters: np.einsum("nchwij,kcij->nkhw", windows(x, 2, pad=1), filters) + bias[:, None, None],
        [(2,), (2, C, 2, 2)],
    ),
    "convolutional with statistics": Row(
        "[convolutional]\nfilters=2\nbatch_normalize=1\nactivation=linear\n",
        lambda x, shift, scale, mean, variance, filters: normalised(
            np.einsum("nchw,kcij->nkhw", x, filters), shift, scale, mean, variance
        ),
        [(2,), (2,), (2,), (2,), (2, C, 1, 1)],
    ),
    "local without options": Row("[local]\n", lambda *xs: sigmoid(local(1, 1, 0)(*xs)), [(1, H, W), (H * W, 1, C)]),
    "connected without options": Row("[connected]\n", lambda *xs: sigmoid(connected(*xs)), [(1,), (1, C * H * W)]),
    "upsample without options": Row("[upsample]\n", lambda x: x.repeat(2, 2).repeat(2, 3)),
    "reorg without options": Row("[reorg]\n", lambda x: x),
    "maxpool without options": Row("[maxpool]\n", lambda x: x),
    "maxpool with a stride alone": Row("[maxpool]\nstride=2\n", small),
    "crop without options": Row("[crop]\n", lambda x: x[:, :, 2:3, 1:2] * 2 - 1),
    "softmax of a tree": Row("[softmax]\ntree=t\ngroups=2\n", lambda x: x.reshape(N, -1)),
    "local 3": Row(
        "[local]\nfilters=5\nsize=3\nstride=2\npad=1\nactivation=linear\n",
        local(3, 2, 1), [(5, 3, 2), (6, 5, C * 9)],
    ),
    "local 2": Row(
        "[local]\nfilters=3\nsize=2\nactivation=linear\n", local(2, 1, 0), [(3, 5, 3), (15, 3, C * 4)],
    ),
    "local 5": Row(
        "[local]\nfilters=2\nsize=5\nstride=3\npad=1\nactivation=linear\n",
        local(5, 3, 2), [(2, 2, 2), (4, 2, C * 25)],
    ),
    "convolutional 5": Row(
        "[convolutional]\nfilters=2\nsize=5\nstride=3\npad=1\nactivation=linear\n",
        lambda x, bias, filters: np.einsum("nchwij,kcij->nkhw", windows(x, 5, 3, 2), filters) + bias[:, None, None],
        [(2,), (2, C, 5, 5)],
    ),
    "convolutional with padding": Row(
        "[convolutional]\nfilters=2\nsize=2\npadding=2\nactivation=linear\n",
        lambda x, bias, filters: np.einsum("nchwij,kcij->nkhw", windows(x, 2, 1, 2), filters) + bias[:, None, None],
        [(2,), (2, C, 2, 2)],
    ),
    "local of every pixel": Row("[local]\nactivation=linear\n", local(1, 1, 0), [(1, H, W), (H * W, 1, C)]),
    "connected": Row("[connected]\noutput=3\nactivation=linear\n", connected, [(3,), (3, C * H * W)]),
    "connected with statistics": Row(
        "[connected]\noutput=3\nbatch_normalize=1\nactivation=linear\n",
        lambda x, shift, matrix, *rest: normalised(connected(x, np.zeros(3), matrix), shift, *rest),
        [(3,), (3, C * H * W), (3,), (3,), (3,)],
    ),
    "batchnorm": Row("[batchnorm]\n", lambda x, *rest: normalised(x, np.zeros(C), *rest), [(C,)] * 3),
    "avgpool": Row("[avgpool]\n", lambda x: x.mean((2, 3), keepdims=True)),
    "upsample": Row("[upsample]\nstride=3\nscale=0.5\n", upsampled),
    "reorg into rows": Row("[reorg]\nextra=2\n", lambda x: np.pad(x.reshape(N, -1), [(0, 0), (0, 2)])),
    "crop": Row("[crop]\ncrop_height=3\ncrop_width=2\n", lambda x: x[:, :, 1:4, 1:3] * 2 - 1),
    "crop alone": Row("[crop]\ncrop_height=1\ncrop_width=2\nnoadjust=1\n", lambda x: x[:, :, 2:3, 1:3]),
    "softmax": Row("[softmax]\n", lambda x: softmax(x.reshape(N, -1))),
    "softmax in groups": Row(
        "[softmax]\ngroups=3\ntemperature=1.5\n",
        lambda x: softmax(x.reshape(N, 3, -1) / 1.5).reshape(N, -1),
    ),
    "dropout and cost": Row("[dropout]\n[cost]\n", lambda x: x),
    "route": Row(f"{POOL}[upsample]\n[route]\nlayers=0\n", small),
    "route of groups": Row(
        f"{POOL}[route]\nlayers=-1\n[route]\nlayers=0,-1\ngroups=2\ngroup_id=1\n",
        lambda x: np.concatenate([small(x)[:, C // 2 :]] * 2, 1),
    ),
    "shortcut to a larger image": Row(
        f"[dropout]\n{POOL}[shortcut]\nfrom=-2\n", lambda x: small(x) + x[:, :, ::2, ::2]
    ),
    "shortcut to a smaller image": Row(
        f"{POOL}[upsample]\nstride=2\n[shortcut]\nfrom=0\n",
        lambda x: enlarged(small(x).repeat(2, 2).repeat(2, 3), small(x)),
    ),
    "shortcut to fewer channels": Row(
        "[dropout]\n[route]\nlayers=-1\ngroups=2\n[route]\nlayers=0\n[shortcut]\nfrom=1\n",
        lambda x: added(x, x[:, : C // 2]),
    ),
    "shortcut to more channels": Row(
        "[dropout]\n[route]\nlayers=-1\ngroups=2\n[shortcut]\nfrom=0\nactivation=relu\n",
        lambda x: np.maximum(2 * x[:, : C // 2], 0),
    ),
    "two shortcuts": Row("[dropout]\n[dropout]\n[shortcut]\nfrom=-1,-2\n", lambda x: 3 * x),
}  # fmt: skip


def weights_of(shapes: Sequence[tuple[int, ...]]) -> list[Array]:
    rng = np.random.default_rng(1)
    return [rng.uniform(0.5, 1.5, shape).astype("float32") for shape in shapes]


def model_of(folder: Any, text: str, weights: Sequence[Array], header: Array = HEADER) -> Any:
    (folder / "net.cfg").write_text(text)
    parts = [header.tobytes(), *(w.astype("<f4").tobytes() for w in weights)]
    (folder / "net.weights").write_bytes(b"".join(parts))
    return darknet.load(folder / "net.cfg", folder / "net.weights", batch=N)


def image() -> Array:
    return np.random.default_rng(0).standard_normal((N, C, H, W)).astype("float32")


@pytest.mark.parametrize("name", ROWS)
def test_a_layer_is_what_numpy_computes(name, tmp_path):
    row, weights = ROWS[name], weights_of(ROWS[name].shapes)
    (got,) = model_of(tmp_path, NET + row.text, weights).compile(engine="reference")(image())
    want = row.meaning(image(), *weights)
    assert got.shape == want.shape
    assert_near(got, want, "float32 networks")


@pytest.mark.parametrize(
    ("short", "kind", "options"),
    [
        ("conv", "convolutional", "filters=3\nsize=3\n"), ("conn", "connected", "output=3\n"), ("avg", "avgpool", ""),
        ("max", "maxpool", "size=2\n"), ("soft", "softmax", "groups=2\n"), ("cost", "dropout", ""),
    ],
)  # fmt: skip
def test_a_short_name_stands_for_the_long_one(short, kind, options, tmp_path):
    found = []
    for name in (short, kind):
        (tmp_path / "net.cfg").write_text(f"{NET}[{name}]\n{options}")
        model = darknet.load(tmp_path / "net.cfg", batch=N, seed=0)
        found.append(model.compile(engine="reference")(image())[0])
    np.testing.assert_array_equal(*found, strict=True)


MEANINGS: dict[str, Callable[[Array], Array]] = {
    "linear": lambda x: x,
    "leaky": lambda x: np.where(x > 0, x, 0.1 * x),
    "relu": lambda x: np.maximum(x, 0),
    "relu6": lambda x: np.clip(x, 0, 6),
    "logistic": sigmoid,
    "ramp": lambda x: np.maximum(x, 0) + 0.1 * x,
    "relie": lambda x: np.where(x > 0, x, 0.01 * x),
    "tanh": np.tanh,
    "elu": lambda x: np.where(x > 0, x, np.expm1(x)),
    "selu": lambda x: np.where(x > 0, 1.0507 * x, 1.0507 * 1.67326 * np.expm1(x)),
    "swish": lambda x: x * sigmoid(x),
    "mish": lambda x: x * np.tanh(np.log1p(np.exp(x))),
    "loggy": lambda x: 2 * sigmoid(x) - 1,
    "hardtan": lambda x: np.clip(x, -1, 1),
}


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_an_activation_is_what_numpy_computes(name, tmp_path):
    model = model_of(tmp_path, f"{NET}[activation]\nactivation={name}\n", [])
    x = 3 * image()
    (got,) = model.compile(engine="reference")(x)
    assert_near(got, MEANINGS[name](x), "float32 networks")


STEPS, INPUTS = 3, 5
TIMED = f"[net]\ninputs={INPUTS}\ntime_steps={STEPS}\n"


@pytest.mark.parametrize("text", ["[connected]\noutput=3\nactivation=tanh\n", "[rnn]\nhidden=3\noutput=2\n"])
def test_very_old_files_have_matrices_the_other_way_round(tmp_path, text):
    """Every matrix, told by its two axes."""
    free = darknet_parameters(tmp_path, TIMED + text)
    weights = weights_of(free)
    turned = [w.T if w.ndim == 2 else w for w in weights]
    x = np.random.default_rng(0).standard_normal((STEPS * N, INPUTS)).astype("float32")
    got, want = (
        model_of(tmp_path, TIMED + text, *given).compile(engine="reference")(x)[0]
        for given in ((turned, OLD_HEADER), (weights, HEADER))
    )
    np.testing.assert_array_equal(got, want)


def darknet_parameters(folder: Any, text: str) -> list[tuple[int, ...]]:
    """The shapes of a network's parameters in the file's order."""
    (folder / "net.cfg").write_text(text)
    taken: list[tuple[int, ...]] = []
    with pytest.MonkeyPatch.context() as patched:
        real = darknet.reader.FreeParameters.take
        patched.setattr(
            darknet.reader.FreeParameters,
            "take",
            lambda self, shape, *rest: taken.append(shape) or real(self, shape, *rest),
        )
        darknet.load(folder / "net.cfg")
    return taken


def test_every_kind_of_layer_is_tried():
    """Here, or where boxes and recurrent layers are."""
    elsewhere = {"yolo", "region", "detection", "rnn", "gru", "maxpool", "activation"}
    names = {name.split()[0] for name in ROWS} | {"dropout", "cost"}
    short = {"conv": "convolutional", "conn": "connected", "max": "maxpool", "avg": "avgpool", "soft": "softmax"}
    assert {short.get(kind, kind) for kind in LAYERS} <= names | elsewhere
    assert ACTIVATIONS.keys() == MEANINGS.keys()
