"""Shape operators of TFLite beside NumPy: order of operands, axes of images that are turned, masks, blocks."""

import numpy as np
import pytest

from cgraph.engine.reference import evaluate
from cgraph.errors import FormatError
from cgraph.formats.tflite import load
from tests.support.tflite_models import Network

SHAPE = (2, 4, 6, 3)
X = np.arange(144, dtype="f4").reshape(SHAPE)


def computed(kind, *operands, results=1, first=False, shape=SHAPE, at=0, bytes_of=None, **options):
    """Results for `X` as operand `at` among constants; `first`: as an image that is n, c, h, w within."""
    net = Network()
    scale = {} if bytes_of is None else {"scale": bytes_of[0], "zero": bytes_of[1]}
    dtype = "float32" if bytes_of is None else "uint8"
    x = net.input(shape, dtype, **scale)
    if first:
        eye = np.eye(3, dtype="f4").reshape(3, 1, 1, 3)
        x = net.op("CONV_2D", [x, net.constant(eye), net.constant(np.zeros(3, "f4"))], stride_w=1, stride_h=1)
    given = [net.constant(np.asarray(v)) for v in operands]
    given.insert(at, x)
    kinds = [dtype if bytes_of is None else {"dtype": dtype, **scale}] * results
    made = net.op(kind, given, *kinds, **options)
    model = load(net.bytes(*(made if results > 1 else [made])))
    value = X.reshape(shape) if bytes_of is None else X.reshape(shape).astype("u1")
    got = evaluate(list(model.outputs), {model.inputs[0]: value})
    return got if results > 1 else got[0]


def ints(*values, shape=None):
    return np.array(values, "i4").reshape(shape or (len(values),))


TURNED = pytest.mark.parametrize("first", [False, True])


@TURNED
def test_elements_stay_in_the_order_of_the_file(first):
    np.testing.assert_array_equal(computed("RESHAPE", ints(8, -1), first=first), X.reshape(8, -1))
    np.testing.assert_array_equal(computed("TRANSPOSE", ints(3, 0, 2, 1), first=first), X.transpose(3, 0, 2, 1))
    np.testing.assert_array_equal(computed("EXPAND_DIMS", ints(-2), first=first)[:, :, :, 0], X)
    np.testing.assert_array_equal(computed("TILE", ints(1, 2, 1, 3), first=first), np.tile(X, (1, 2, 1, 3)))
    np.testing.assert_array_equal(computed("REVERSE_V2", ints(2), first=first), X[:, :, ::-1])


@TURNED
@pytest.mark.parametrize("axis", [0, 1, 2, 3, -1, -2])
def test_joins_and_parts_have_the_axes_of_the_file(first, axis):
    other = -X
    got = computed("CONCATENATION", other, first=first, axis=axis)
    np.testing.assert_array_equal(got, np.concatenate([X, other], axis))
    n = X.shape[axis]
    got = computed("SPLIT", ints(axis), at=1, results=n, first=first, count=n)
    for i, part in enumerate(got):
        np.testing.assert_array_equal(part, X.take([i], axis))
    first_part, rest = computed("SPLIT_V", ints(1, -1), ints(axis), results=2, first=first, count=2)
    np.testing.assert_array_equal(rest, X.take(range(1, n), axis))
    np.testing.assert_array_equal(first_part, X.take([0], axis))
    for i, part in enumerate(computed("UNPACK", results=n, first=first, axis=axis, count=n)):
        np.testing.assert_array_equal(part, X.take(i, axis))
    np.testing.assert_array_equal(computed("PACK", other, first=first, axis=axis, count=2), np.stack([X, other], axis))


@TURNED
def test_slices_begin_and_have_a_size(first):
    got = computed("SLICE", ints(0, 1, 2, 0), ints(-1, 2, -1, 1), first=first)
    np.testing.assert_array_equal(got, X[:, 1:3, 2:, :1])
    got = computed("STRIDED_SLICE", ints(0, 3, 1, 0), ints(2, 0, 9, 3), ints(1, -2, 3, 1), first=first)
    np.testing.assert_array_equal(got, X[0:2, 3:0:-2, 1:9:3])


@TURNED
@pytest.mark.parametrize(
    ("masks", "index"),
    [
        ({"begin": 2}, np.s_[0:1, :3, 2:5]),
        ({"end": 4}, np.s_[0:1, 1:3, 2:]),
        ({"shrink": 2}, np.s_[0:1, 1, 2:5]),
        ({"ellipsis": 2}, np.s_[0:1, ..., 2:5]),
        ({"new_axis": 1}, np.s_[None, 1:3, 2:5]),
        ({"offset": True}, np.s_[0:1, 1:4, 2:7]),
    ],
    ids=str,
)
def test_each_mask_has_its_bit_of_each_axis(first, masks, index):
    operands = ints(0, 1, 2), ints(1, 3, 5), ints(1, 1, 1)
    if "ellipsis" in masks:
        operands = ints(0, 9, 2), ints(1, 9, 3), ints(1, 1, 1)
        index = np.s_[0:1, ..., 2:3]
    np.testing.assert_array_equal(computed("STRIDED_SLICE", *operands, first=first, **masks), X[index])


@TURNED
def test_frames_have_the_widths_of_the_files_axes(first):
    widths = ints(0, 1, 2, 0, 0, 3, 1, 1, shape=(4, 2))
    pairs = [(0, 1), (2, 0), (0, 3), (1, 1)]
    np.testing.assert_array_equal(computed("PAD", widths, first=first), np.pad(X, pairs))
    got = computed("PADV2", widths, np.array([7.5], "f4"), first=first)
    np.testing.assert_array_equal(got, np.pad(X, pairs, constant_values=7.5))
    inner = ints(0, 0, 1, 2, 3, 0, 0, 0, shape=(4, 2))
    want = np.pad(X, [(0, 0), (1, 2), (3, 0), (0, 0)], mode="reflect")
    np.testing.assert_array_equal(computed("MIRROR_PAD", inner, first=first, mode=0), want)


def test_bytes_are_padded_with_their_zero_point():
    got = computed("PAD", ints(0, 0, 1, 0, 0, 0, 0, 0, shape=(4, 2)), bytes_of=(0.5, 7))
    np.testing.assert_array_equal(got, np.pad(X.astype("u1"), [(0, 0), (1, 0), (0, 0), (0, 0)], constant_values=7))
    blocks = computed("SPACE_TO_BATCH_ND", ints(3, 2), ints(2, 0, 0, 0, shape=(2, 2)), bytes_of=(0.5, 7))
    assert (blocks[0, 0] == 7).all() and blocks.shape == (12, 2, 3, 3)


@TURNED
def test_pixels_become_channels_and_samples(first):
    got = computed("SPACE_TO_DEPTH", first=first, block=2)
    want = X.reshape(2, 2, 2, 3, 2, 3).transpose(0, 1, 3, 2, 4, 5).reshape(2, 2, 3, 12)
    np.testing.assert_array_equal(got, want)
    wide = X.reshape(2, 2, 3, 12)
    got = computed("DEPTH_TO_SPACE", shape=(2, 2, 3, 12), block=2)
    want = wide.reshape(2, 2, 3, 2, 2, 3).transpose(0, 1, 3, 2, 4, 5).reshape(2, 4, 6, 3)
    np.testing.assert_array_equal(got, want)
    got = computed("SPACE_TO_BATCH_ND", ints(2, 3), ints(0, 2, 1, 2, shape=(2, 2)), first=first)
    wide = np.pad(X, [(0, 0), (0, 2), (1, 2), (0, 0)])
    np.testing.assert_array_equal(got, np.concatenate([wide[:, i::2, j::3] for i in range(2) for j in range(3)]))
    back = computed("BATCH_TO_SPACE_ND", ints(2, 1), ints(1, 0, 2, 1, shape=(2, 2)), first=first)
    want = np.stack([X[:1], X[1:]], 2).reshape(1, 8, 6, 3)
    np.testing.assert_array_equal(back, want[:, 1:, 2:-1])


REFUSED = {
    "parts": (lambda: computed("SPLIT", ints(1), at=1, results=3, count=3), "an axis of 4 is not cut into 3"),
    "sizes": (
        lambda: computed("SPLIT_V", ints(3, 2), ints(1), results=2, count=2),
        r"an axis of 4 is not cut into \[3, 2\]",
    ),
    "two axes": (lambda: computed("EXPAND_DIMS", ints(0, 1)), "2 numbers, one is expected"),
    "an axis": (lambda: computed("CONCATENATION", X, axis=4), "axis 4 is outside a tensor of 4 axes"),
    "a slice": (lambda: computed("SLICE", ints(0, 3, 0, 0), ints(2, 2, 6, 3)), "exceed the shape"),
    "a step of 0": (lambda: computed("STRIDED_SLICE", ints(0), ints(1), ints(0)), r"steps \[0\] do not fit"),
    "widths": (lambda: computed("PAD", ints(0, 0, 0, 0, 0, -1, 0, 0, shape=(4, 2))), "widths .* for 4 axes"),
    "a mode": (lambda: computed("MIRROR_PAD", np.zeros((4, 2), "i4"), mode=2), "mirror padding of mode 2"),
    "more than is repeated": (
        lambda: computed("MIRROR_PAD", ints(0, 0, 5, 4, 0, 0, 0, 0, shape=(4, 2)), mode=1),
        "widths .5, 4. are larger than the 4 elements",
    ),
    "lengths": (lambda: computed("REVERSE_SEQUENCE", ints(1, 2, 3), time=1, batch=0), "do not fit"),
    "one axis twice": (lambda: computed("REVERSE_SEQUENCE", ints(1, 2), time=0, batch=0), "do not fit"),
    "an axis beyond": (
        lambda: computed("REVERSE_SEQUENCE", ints(1, 2), time=4, batch=0),
        "axis 4 is outside a tensor of 4 axes",
    ),
    "diagonals": (lambda: computed("MATRIX_SET_DIAG", np.ones((2, 4, 4), "f4")), "do not fit matrices"),
    "steps": (lambda: computed("DILATE", ints(1, 2, 3), np.float32(0)), "steps .1, 2, 3. and 1 numbers"),
    "steps of 0": (lambda: computed("DILATE", ints(1, 2, 0, 1), np.float32(0)), "do not fit"),
    "two numbers between": (lambda: computed("DILATE", ints(1, 2, 1, 1), np.float32([0, 1])), "2 numbers between"),
    "blocks": (lambda: computed("SPACE_TO_DEPTH", block=4), "has no blocks of 4"),
    "no shape": (lambda: computed("RESHAPE"), "it has no shape"),
    "a count": (lambda: computed("PACK", X, axis=0, count=3), "2 operands, 3 are expected"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_does_not_fit_is_named(name):
    act, match = REFUSED[name]
    with pytest.raises(FormatError, match=f"^model: in [A-Z_0-9]* 0: .*{match}"):
        act()


@pytest.mark.parametrize("fill", [-128, -3, 0, 127])
def test_bytes_are_padded_with_a_byte_of_the_file(fill):
    """Also with one that the file has as int8, which is another one here."""
    x, widths = np.arange(-3, 3, dtype="i1").reshape(2, 3), [(0, 1), (2, 0)]
    for dtype in ("int8", "uint8"):
        net, how = Network(), {"scale": 0.5, "zero": 3}
        value = fill if dtype == "int8" else fill + 128
        given = [net.input((2, 3), dtype, **how), net.constant(np.array(widths, "i4"))]
        y = net.op("PADV2", [*given, net.constant(np.array([value], dtype), **how)], {"dtype": dtype, **how})
        model = load(net.bytes(y))
        (got,) = evaluate(list(model.outputs), {model.inputs[0]: x.astype(dtype)})
        np.testing.assert_array_equal(got, np.pad(x.astype(dtype), widths, constant_values=value), strict=True)


@pytest.mark.parametrize("shape", [(2, 6, 5), (2, 6, 5, 3), (2, 6)])
@pytest.mark.parametrize("block", [1, 2, 3])
def test_blocks_of_one_axis_leave_those_behind_it(shape, block):
    x = np.arange(np.prod(shape), dtype="f4").reshape(shape)
    net = Network()
    given = [
        net.input(shape),
        net.constant(np.array([block], "i4")),
        net.constant(np.array([[1, 2 * block - 1]], "i4")),
    ]
    apart = net.op("SPACE_TO_BATCH_ND", given)
    crops = net.constant(np.array([[1, 2 * block - 1]], "i4"))
    model = load(net.bytes(apart, net.op("BATCH_TO_SPACE_ND", [apart, given[1], crops])))
    wide = np.pad(x, [(0, 0), (1, 2 * block - 1), *[(0, 0)] * (x.ndim - 2)])
    cut, back = evaluate(list(model.outputs), {model.inputs[0]: x})
    np.testing.assert_array_equal(cut, np.concatenate([wide[:, i::block] for i in range(block)]), strict=True)
    np.testing.assert_array_equal(back, x, strict=True)


@TURNED
@pytest.mark.parametrize(("activation", "low", "high"), [(0, -99, 99), (1, 0, 99), (2, -1, 1), (3, 0, 6)])
def test_joined_numbers_have_an_activation(first, activation, low, high):
    other = X / 8 - 9
    got = computed("CONCATENATION", other, first=first, axis=1, activation=activation)
    np.testing.assert_array_equal(got, np.clip(np.concatenate([X, other], 1), low, max(high, 143 if high == 99 else 0)))
    if first:
        return
    got = computed("CONCATENATION", axis=0, activation=activation, bytes_of=(0.5, 100))
    units = np.clip(X, *(100 + 2 * max(low, -50), 100 + 2 * min(high, 78)))
    np.testing.assert_array_equal(got, np.clip(units, 0, 255).astype("u1"))


@TURNED
def test_shapes_and_ranks_are_those_of_the_file_in_the_dtype_that_it_declares(first):
    for dtype in ("int32", "int64"):
        net = Network()
        x = net.input(SHAPE)
        if first:
            eye = np.eye(3, dtype="f4").reshape(3, 1, 1, 3)
            x = net.op("CONV_2D", [x, net.constant(eye), net.constant(np.zeros(3, "f4"))], stride_w=1, stride_h=1)
        sizes, rank = net.op("SHAPE", [x], dtype), net.op("RANK", [x], "int32")
        one = net.input((1,), dtype)
        model = load(net.bytes(net.op("ADD", [sizes, one], dtype), net.op("ADD", [rank, rank], "int32")))
        got = evaluate(list(model.outputs), dict(zip(model.inputs, (X, np.ones(1, dtype)))))
        assert got[0].tolist() == [n + 1 for n in SHAPE] and got[0].dtype == dtype and got[1] == 8


@pytest.mark.parametrize(
    ("axes", "shape"), [(None, (2, 3)), ((0,), (2, 1, 3)), ((2,), (1, 2, 3)), ((-2, 0), (2, 3)), ((), (2, 3))]
)
def test_axes_of_one_are_dropped_where_told_or_all(axes, shape):
    net = Network()
    y = net.op("SQUEEZE", [net.input((1, 2, 1, 3))], **({} if axes is None else {"axes": axes}))
    model = load(net.bytes(y))
    assert model.outputs[0].shape == shape


@pytest.mark.parametrize("first", [False, True])
def test_a_frame_may_have_a_number_that_is_computed_of_constants(first):
    net = Network()
    x = net.input(SHAPE)
    if first:
        eye = np.eye(3, dtype="f4").reshape(3, 1, 1, 3)
        x = net.op("CONV_2D", [x, net.constant(eye), net.constant(np.zeros(3, "f4"))], stride_w=1, stride_h=1)
    widths = ints(0, 0, 1, 2, 0, 3, 1, 0, shape=(4, 2))
    fill = net.op("NEG", [net.constant(np.float32([2.5]))])
    model = load(net.bytes(net.op("PADV2", [x, net.constant(widths), fill])))
    found = evaluate(list(model.outputs), {model.inputs[0]: X})[0]
    np.testing.assert_array_equal(found, np.pad(X, widths, constant_values=-2.5), strict=True)


@pytest.mark.parametrize(("kind", "blocks", "rows"), [
    ("SPACE_TO_BATCH_ND", (), 0), ("SPACE_TO_BATCH_ND", (1, 1, 1, 1), 4), ("SPACE_TO_BATCH_ND", (2, -2), 2),
    ("SPACE_TO_BATCH_ND", (2, 2), 3), ("BATCH_TO_SPACE_ND", (), 0), ("BATCH_TO_SPACE_ND", (0, 2), 2),
    ("BATCH_TO_SPACE_ND", (2, 0), 2), ("BATCH_TO_SPACE_ND", (-1, -2), 2), ("BATCH_TO_SPACE_ND", (1, 1), 1),
    ("BATCH_TO_SPACE_ND", (1, 1, 1, 1, 1), 5),
])  # fmt: skip
def test_blocks_are_of_one_axis_at_least_and_leave_one(kind, blocks, rows):
    pairs = ints(*[0] * (2 * rows), shape=(rows, 2))
    with pytest.raises(FormatError, match=rf"in {kind} 0: blocks \[.*\] and (padding|crops) .* do not fit"):
        computed(kind, ints(*blocks), pairs)


@pytest.mark.parametrize("blocks", [(2,), (2, 3), (1, 3, 3), (4, 2, 3), (1, 1, 1)])
def test_blocks_of_some_axes_become_samples_and_come_back(blocks):
    """Each axis has its own size of blocks, padding and crops."""
    m = len(blocks)
    widths = [(0, -n % b + b * (i == 0)) for i, (n, b) in enumerate(zip(SHAPE[1:], blocks))]
    got = computed("SPACE_TO_BATCH_ND", ints(*blocks), np.array(widths, "i4"))
    padded = np.pad(X, [(0, 0), *widths, *[(0, 0)] * (3 - m)])
    parts = []
    for at in np.ndindex(*blocks):
        parts.append(padded[(slice(None), *(slice(i, None, b) for i, b in zip(at, blocks)))])
    np.testing.assert_array_equal(got, np.concatenate(parts), strict=True)
    net = Network()
    y = net.op("BATCH_TO_SPACE_ND", [net.input(got.shape), *map(net.constant, (ints(*blocks), np.array(widths, "i4")))])
    model = load(net.bytes(y))
    np.testing.assert_array_equal(evaluate(list(model.outputs), {model.inputs[0]: got})[0], X, strict=True)
