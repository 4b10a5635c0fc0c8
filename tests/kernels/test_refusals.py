"""What the makers of kernel calls refuse: values that do not fit together would be read or written out of bounds."""

from functools import partial

import numpy as np
import pytest

from cgraph.kernels.blocked_copy.calls import concat_calls, copy_channels_calls, to_blocked_calls, to_plain_calls
from cgraph.kernels.conv.calls import check_result, conv_calls
from cgraph.kernels.conv.epilogue import NO_EPILOGUE
from cgraph.kernels.conv.transpose_calls import TransposedShape, conv_transpose_calls
from cgraph.kernels.depthwise.calls import depthwise_calls
from cgraph.kernels.filter_grad.calls import FilterGrad, check_shapes
from cgraph.kernels.gemm.matmul_calls import matmul_calls
from cgraph.kernels.index.calls import ScatterRule, scatter_calls
from cgraph.kernels.kernel import Pointer
from cgraph.kernels.move.calls import copy_calls
from cgraph.kernels.random.calls import random_calls
from cgraph.kernels.resize.calls import rounded_positions
from cgraph.kernels.target import target_named
from cgraph.kernels.views.blocked_views import BlockedView
from cgraph.kernels.views.conv_shape import ConvShape
from cgraph.kernels.views.image_views import planes_of
from cgraph.kernels.views.window import Window
from cgraph.kernels.winograd.calls import Winograd, winograd_calls
from cgraph.record import replace
from tests.support.kernels import view_of

TARGET = target_named("avx2")
drawn = partial(random_calls, TARGET)
AT = Pointer(np.zeros(0))
AROUND = Window((3, 3), (1, 1), (1, 1, 1, 1))
SHAPE = ConvShape(8, 6, 6, 8, TARGET, AROUND)
DEPTHWISE = ConvShape(8, 6, 6, 8, TARGET, AROUND, 8)
TRANSPOSED = TransposedShape(8, 6, 6, 8, TARGET, AROUND)


def laned(n: int = 2, c: int = 8, h: int = 6, w: int = 6, halo: int = 1, **more: int) -> BlockedView:
    return BlockedView(
        AT, n, c, h, w, more.pop("lanes", 8), (halo,) * 4, more.pop("first", 0), more.pop("channels", 0), "f4"
    )


def view(*shape: int, dtype: str = "f4"):
    return view_of(np.zeros(shape, dtype))


def convolve(x: BlockedView, out: BlockedView | None = None):
    return conv_calls(SHAPE, out or laned(halo=0), x, AT)


def each_channel(x: BlockedView, shape: ConvShape = DEPTHWISE):
    return depthwise_calls(shape, laned(halo=0), x, AT)


def transpose(x: BlockedView, out: BlockedView | None = None):
    return conv_transpose_calls(TRANSPOSED, out or laned(halo=0), x, AT)


def product(*shapes: tuple[int, ...]):
    return matmul_calls(TARGET, *(view(*shape) for shape in shapes))


def gradient(plan: FilterGrad | None = None, out=None, x=None, g=None):
    return check_shapes(plan or FilterGrad(SHAPE, 2), out or view(8, 8, 3, 3), x or laned(), g or laned(halo=0))


def winograd(x: BlockedView, out: BlockedView | None = None, residual: BlockedView | None = None):
    epilogue = replace(NO_EPILOGUE, residual=residual)
    return winograd_calls(Winograd(SHAPE, 2, 4), out or laned(halo=0), x, AT, epilogue)


INSIDE = laned(c=8, first=4, channels=24)


REFUSED = {
    "a convolution: channels": (lambda: convolve(laned(c=16)), "are not those of"),
    "a convolution: rows": (lambda: convolve(laned(h=5)), "are not those of"),
    "a convolution: lanes": (lambda: convolve(laned(lanes=4)), "are not those of"),
    "a convolution: halo": (lambda: convolve(laned(halo=0)), "a halo of .* is narrower"),
    "a convolution: images": (lambda: convolve(laned(n=3)), "x has 3 images and out has 2"),
    "groups of plain images": (lambda: ConvShape(8, 6, 6, 8, TARGET, AROUND, 2, True), "one group, not 2"),
    "groups of channels": (lambda: ConvShape(8, 6, 6, 9, TARGET, AROUND, 2), "2 groups do not divide 8 and 9"),
    "depthwise: it is not": (lambda: each_channel(laned(), SHAPE), "is not depthwise"),
    "depthwise: columns": (lambda: each_channel(laned(w=5)), "are not those of"),
    "depthwise: images": (lambda: each_channel(laned(n=1)), "are not those of"),
    "depthwise: halo": (lambda: each_channel(laned(halo=0)), "a halo of .* is narrower"),
    "transposed: channels": (lambda: transpose(laned(c=16)), "are not those of"),
    "transposed: results": (lambda: transpose(laned(), laned(h=7, halo=0)), "are not those of"),
    "transposed: images": (lambda: transpose(laned(n=3)), "are not those of"),
    "transposed: halo": (lambda: transpose(laned(halo=0)), "a halo of .* is narrower"),
    "a gradient of no images": (lambda: gradient(plan=FilterGrad(SHAPE, 0)), "for 0 images"),
    "a gradient of groups": (lambda: gradient(plan=FilterGrad(DEPTHWISE, 2)), "no gradient of filters for 2 images"),
    "a gradient of plain images": (lambda: gradient(x=view(2, 8, 6, 6)), "no gradient of filters for 2 images"),
    "a gradient: images": (lambda: gradient(x=laned(n=3)), "are not those of"),
    "a gradient: channels": (lambda: gradient(x=laned(c=16)), "are not those of"),
    "a gradient: filters": (lambda: gradient(out=view(8, 8, 3, 2)), "are not those of"),
    "a gradient: results": (lambda: gradient(g=laned(h=5, halo=0)), "is not that of the result"),
    "a gradient: halo": (lambda: gradient(x=laned(halo=0)), "a halo of .* is narrower"),
    "Winograd: images": (lambda: winograd(laned(n=3)), "do not fit"),
    "Winograd: results of other images": (lambda: winograd(laned(), laned(n=3, halo=0)), "do not fit"),
    "Winograd: channels": (lambda: winograd(laned(c=16)), "do not fit"),
    "Winograd: columns": (lambda: winograd(laned(w=5)), "do not fit"),
    "Winograd: lanes": (lambda: winograd(laned(lanes=4)), "do not fit"),
    "Winograd: results": (lambda: winograd(laned(), laned(h=5, halo=0)), "is not the result of"),
    "Winograd: residual": (lambda: winograd(laned(), residual=laned(c=16, halo=0)), "is not the result of"),
    **{
        f"a convolution: a residual of other {name}": (
            lambda more=more: check_result(SHAPE, laned(halo=0), laned(halo=0, **more)),
            "is not the result of",
        )
        for name, more in (("images", {"n": 3}), ("channels", {"c": 16}), ("rows", {"h": 5}), ("columns", {"w": 5}))
    },
    "Winograd: workspace": (lambda: winograd(laned()), "has 0 bytes"),
    "Winograd: a first channel inside a block": (lambda: winograd(INSIDE), "offset 4 is not a multiple of 8 lanes"),
    "a convolution: a first channel inside a block": (lambda: convolve(INSIDE), "offset 4 is not a multiple of 8"),
    "transposed: a first channel inside a block": (lambda: transpose(INSIDE), "offset 4 is not a multiple of 8"),
    "channels of other images": (lambda: copy_channels_calls(laned(), laned(n=1)), "do not fill"),
    "channels of other rows": (lambda: copy_channels_calls(laned(), laned(h=5)), "do not fill"),
    "too few channels": (lambda: concat_calls(laned(c=16), [laned()]), r"\[8\] channels do not add up to the 16"),
    "a product": (lambda: product((2, 3), (2, 4), (5, 3)), "does not give out"),
    "a product: bias": (lambda: product((2, 3), (2, 4), (4, 3), (1, 3)), "bias has shape"),
    "a product: columns of a bias": (lambda: product((2, 3), (2, 4), (4, 3), (2, 1)), r"bias has shape \(2, 1\)"),
    "a product: axes of a bias": (lambda: product((5, 2, 3), (5, 2, 4), (5, 4, 3), (2, 3)), "bias has shape"),
    "a copy of other items": (
        lambda: copy_calls(TARGET, view(3), view(3, dtype="f8")), "items of 4 and 8 bytes",
    ),
    "positions along two axes": (
        lambda: scatter_calls(TARGET, view(9), view_of(np.zeros((4, 6), "i8")[:, :3]), view(4, 3), ScatterRule(0)),
        "are not one axis",
    ),
    "random numbers of a kind": (lambda: drawn("cauchy", view(3), view(1, dtype="u8")), "no random 'cauchy' values"),
    "random bits of floats": (lambda: drawn("bits", view(3), view(1, dtype="u8")), "no random 'bits' values of f4"),
    "a key of 4 bytes": (lambda: drawn("uniform", view(3), view(1, dtype="u4")), "a key of 8 bytes"),
    "random numbers with steps": (
        lambda: drawn("uniform", view_of(np.zeros(6, "f4")[::2]), view(1, dtype="u8")), "a contiguous view",
    ),
    "a way to round": (lambda: rounded_positions(np.zeros(2), "up"), "rounding 'up'"),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_values_that_do_not_fit_are_refused(name):
    act, match = REFUSED[name]
    with pytest.raises(ValueError, match=match):
        act()


OF_WHOLE_BLOCKS = {
    "to blocks": lambda x: to_blocked_calls(TARGET, x, view(2, 8, 6, 6)),
    "from blocks": lambda x: to_plain_calls(TARGET, view(2, 8, 6, 6), x),
    "planes": planes_of,
    "the result of a convolution": lambda x: check_result(SHAPE, x, None),
    "a residual": lambda x: check_result(SHAPE, laned(halo=0), x),
    "depthwise": each_channel,
    "the result of a depthwise convolution": lambda x: depthwise_calls(DEPTHWISE, x, laned(), AT),
    "the result of a transposed convolution": lambda x: transpose(laned(), x),
    "a gradient": lambda x: check_shapes(FilterGrad(SHAPE, 2), view(8, 8, 3, 3), laned(), x),
    "images of a gradient": lambda x: check_shapes(FilterGrad(SHAPE, 2), view(8, 8, 3, 3), x, laned(halo=0)),
}


@pytest.mark.parametrize(("first", "channels"), [(4, 24), (4, 12), (1, 9), (12, 20)])
@pytest.mark.parametrize("name", OF_WHOLE_BLOCKS)
def test_values_that_share_a_block_with_others_are_refused(name, first, channels):
    """They begin inside a block; the buffer goes on behind them or does not."""
    x = laned(c=8, first=first, channels=channels)
    with pytest.raises(ValueError, match=rf"channels {first} to {first + 8} do not fill whole blocks of 8"):
        OF_WHOLE_BLOCKS[name](x)


@pytest.mark.parametrize("name", OF_WHOLE_BLOCKS)
def test_values_that_begin_and_end_with_a_block_are_taken(name):
    halo = 0 if "result" in name or name in ("a residual", "a gradient") else 1
    OF_WHOLE_BLOCKS[name](laned(c=8, first=8, channels=24, halo=halo))


def test_values_that_fit_are_taken():
    assert convolve(laned()) and each_channel(laned()) and concat_calls(laned(), [laned()])
