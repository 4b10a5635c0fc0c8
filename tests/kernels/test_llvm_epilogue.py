"""The activation that tiles apply before they store: bounds, slope, its short form, a NaN."""

import numpy as np
import pytest

from cgraph.kernels.activation.calls import NONE, RELU, RELU6, BoundedActivation, leaky
from cgraph.kernels.gemm.signature import TILE
from cgraph.kernels.kernel import Kernel
from cgraph.kernels.llvm.epilogue import ActivationEmitter, activation
from tests.support.emitted import every_target, run_family

X = np.array([-10.0, -1, -0.5, 0, 0.5, 5, 6, 7, np.inf, -np.inf, 100, -100, 3, -3, 2, np.nan])
EXAMPLES = [NONE, RELU, RELU6, leaky(0.25), BoundedActivation(-2, 4, 0.5), BoundedActivation(low=-3), leaky(2.0)]


def activated(emit, how, dtype, target):
    """Run ``emit(k, x, out)`` as a kernel whose activation is `how`."""
    x, out, names = X.astype(dtype), np.zeros(16, dtype), list(TILE.args)
    words = np.zeros(len(names), np.int64)
    for name, value in (("a", x.ctypes.data), ("out", out.ctypes.data), *how.args.items()):
        words[names.index(name)] = np.array(value, "f8" if isinstance(value, float) else "i8").view("i8")
    kernel = Kernel("gemm.tile", (dtype, 1, 1, False, dtype, 0))
    run_family(lambda k, *_: emit(k, k.args().a, k.args().out), kernel, target, words)
    return out


def expected(how, dtype):
    x = X.astype(dtype)
    y = np.where(x > 0, x, np.where(np.isnan(x), x, np.array(how.slope, dtype) * x))
    return np.minimum(np.array(how.high, dtype), np.maximum(np.array(how.low, dtype), y))


@every_target
@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("how", EXAMPLES, ids=str)
@pytest.mark.parametrize("lanes", [0, 8])
def test_each_value_is_bounded_and_sloped_and_a_nan_stays_one(lanes, how, dtype, target):
    step = max(lanes, 1)

    def emit(k, x, out):
        values = [x.load(i, lanes) for i in range(0, 16, step)]
        ActivationEmitter(k, dtype, lanes).store(values, lambda i, y: out.store(y, i * step))

    np.testing.assert_array_equal(activated(emit, how, dtype, target), expected(how, dtype))


@every_target
@pytest.mark.parametrize("how", EXAMPLES, ids=str)
def test_the_form_without_a_branch_has_the_same_values(how, target):
    def emit(k, x, out):
        f = activation(k, "f4")
        for i in range(16):
            out.store(f(x.load(i)), i)

    np.testing.assert_array_equal(activated(emit, how, "f4", target), expected(how, "f4"))
