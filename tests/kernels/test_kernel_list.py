"""Lists of kernels: a line gives the kernel back, and each listed kernel compiles for its target."""

import pytest

from cgraph.kernels.isa.x86 import ARCHITECTURE, AVX2, AVX512, detect
from cgraph.kernels.kernel import Kernel
from cgraph.kernels.llvm.compile import emit_kernel
from cgraph.kernels.prebuilt.kernel_list import FOLDER, kernel_of, line_of, listed
from cgraph.kernels.target import on_tiles
from cgraph.record import Record


class Axis(Record):
    length: int


@pytest.mark.parametrize(
    "params",
    [(), ("f4",), ("f4", -1, True, 0.5, (1, ("a", ())), "quote ' and (bracket)")],
    ids=["none", "one", "all kinds"],
)
def test_a_line_is_read_back(params):
    kernel = Kernel("gemm.tile", params)
    line = line_of(kernel)
    assert "\n" not in line and kernel_of(line) == kernel
    assert [type(x) for x in kernel_of(line).params] == [type(x) for x in params]


@pytest.mark.parametrize("value", [Axis(3), float("inf"), float("nan")])
def test_other_values_have_no_line(value):
    assert line_of(Kernel("index.take", (value,))) is None


@pytest.mark.parametrize("line", ["", "gemm.tile", "gemm.tile(", "gemm.tile(f())", "gemm.tile(x)"])
def test_a_line_of_another_form_is_refused(line):
    with pytest.raises((ValueError, SyntaxError)):
        kernel_of(line)


def test_a_target_with_tiles_has_the_kernels_of_both_lists():
    assert set(listed(on_tiles(AVX512))) > set(listed(AVX512)) > {Kernel("blocked_copy.fill_halo", ("f4", 16))}
    assert not set(listed(AVX2)) & {Kernel("blocked_copy.fill_halo", ("f4", 16))}


def test_lists_are_sorted_and_have_no_line_twice():
    for path in FOLDER.iterdir():
        lines = path.read_text().splitlines()
        assert lines == sorted(set(lines)), path.name


@pytest.mark.slow
@pytest.mark.parametrize("target", [on_tiles(detect(ARCHITECTURE.common[5])), *map(detect, ARCHITECTURE.common)])
def test_every_listed_kernel_has_an_emitter_that_accepts_its_params(target):
    for kernel in listed(target):
        assert emit_kernel(kernel, "symbol", target).text, kernel
