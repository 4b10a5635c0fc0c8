"""Running sums and their like in blocks of threads: along memory and across it, in place, longer than a block."""

import numpy as np
import pytest

from cgraph.kernels.scan import gpu_calls
from cgraph.kernels.scan.calls import scan_calls
from tests.kernels.test_scan import HOW
from tests.support.gpu import BLOCKS, run_on_gpu
from tests.support.kernels import view_of
from tests.support.tolerance import assert_close

every_how = pytest.mark.parametrize("how", HOW)


def scanned(x, axis, how, out=None):
    out = np.full(x.shape, 77, x.dtype) if out is None else out
    (call,) = scan_calls(BLOCKS, view_of(out), view_of(x), axis, how)
    run_on_gpu([call])
    return out, call.kernel.family


@every_how
@pytest.mark.parametrize("dtype", ["f4", "f8", "i2", "i8"])
def test_along_a_line_of_any_length(how, dtype):
    for n in (1, 255, 256, 600):
        x = (np.random.default_rng(n).random((2, n)) * 4 - 2).astype(dtype)
        if dtype[0] == "f" and how in ("min", "max"):
            x[1, n // 2] = np.nan
        got, family = scanned(x, 1, how)
        assert family == "scan.gpu.along"
        assert_close(got, HOW[how].accumulate(x, 1, dtype=dtype), 16)
        assert got.tobytes() == scanned(x, 1, how)[0].tobytes()


@every_how
def test_many_lines_side_by_side_have_a_thread_each(how, monkeypatch):
    monkeypatch.setattr(gpu_calls, "MANY_LINES", 300)
    x = np.random.default_rng(0).random((3, 4, 300)).astype("f4")
    got, family = scanned(x, 1, how)
    assert family == "scan.gpu.across"
    np.testing.assert_array_equal(got, HOW[how].accumulate(x, 1))


@pytest.mark.parametrize("axis", [0, 1])
def test_in_place_and_of_strided_views(axis):
    x = np.random.default_rng(0).integers(-9, 9, (300, 6)).astype("f4")
    want = np.cumsum(x[::-1, ::2], axis)
    scanned(x[::-1, ::2], axis, "add", x[::-1, ::2])
    np.testing.assert_array_equal(x[::-1, ::2], want)


def test_a_thread_for_each_line_where_many_lie_side_by_side():
    def family(lines, is_apart=False, reads_apart=False):
        shape = (3, lines)
        out, x = np.zeros((*shape, 2), "f4"), np.zeros((*shape, 2), "f4")
        out, x = (y[..., 0] if apart else np.zeros(shape, "f4") for y, apart in ((out, is_apart), (x, reads_apart)))
        [call] = scan_calls(BLOCKS, view_of(out), view_of(x), 0)
        assert call.tasks == (-(-lines // 256) if call.kernel.family.endswith("across") else lines)
        return call.kernel.family

    assert [family(n) for n in (4095, 4096, 4097)] == ["scan.gpu.along", "scan.gpu.across", "scan.gpu.across"]
    assert family(4096, is_apart=True) == family(4096, reads_apart=True) == "scan.gpu.along"
