"""Tile registers: the emulation against the formula, all bits; the instructions of machine code."""

import numpy as np
import pytest

from cgraph.errors import NoKernelError
from cgraph.kernels.isa.x86 import AVX512
from cgraph.kernels.kernel import Kernel
from cgraph.kernels.llvm.compile import emit_kernel, link_and_optimise
from cgraph.kernels.target import target_machine
from cgraph.kernels.tile_products.registers import EmulatedTiles, TileInstructions, tile_registers
from cgraph.record import replace
from tests.support.emitted import every_target, run_emitted
from tests.support.machine_code import illegal_order, instructions
from tests.support.tiles import tile_product

FEATURES = "+avx512vnni,+avx512bf16,+amx-tile,+amx-int8,+amx-bf16"
AMX = replace(AVX512, cpu="sapphirerapids", features=f"{AVX512.features},{FEATURES}", dot="mixed", tiles="amx")


def config_of(rows=16, nbytes=64):
    """Registers 0 and 1 have these rows, register 1 these bytes in a row; register 2 has a row for four of them."""
    config = np.zeros(64, "u1")
    config[0] = 1
    config[16:32].view("<u2")[:3] = 64, nbytes, 64
    config[48:51] = rows, rows, nbytes // 4
    return config


def run(target, kind, c, a, b, config):
    """c + a . b on emulated registers."""
    out = c.copy()

    def write(k, sums, left, right, setting):
        registers, stride = EmulatedTiles(k), k.const(64, "i8")
        registers.configure(setting)
        for i, x in enumerate((sums, left, right)):
            registers.load(i, x.as_dtype("u1"), stride)
        registers.dot(kind, 0, 1, 2)
        registers.store(0, sums.as_dtype("u1"), stride)
        registers.release()

    write.is_final = True
    run_emitted(write, target, out, a, b, config)
    return out


def numbers(kind, rng, shape, scale=1.0):
    """Bits of float32 numbers of some magnitudes."""
    if kind == "any bits":
        return rng.integers(0, 1 << 32, shape, "u4")
    spread, exponent = {"ordinary": (0, 0), "wide": (40, 0), "tiny": (13, -63 * scale)}[kind]
    powers = rng.integers(-spread, spread + 1, shape) + exponent
    return (rng.standard_normal(shape) * np.exp2(powers)).astype("f4").view("u4")


def pairs_of(b):
    """Rows ``[k, n]`` as a right side: two numbers of a column side by side."""
    return np.ascontiguousarray(b.reshape(-1, 2, 16).transpose(0, 2, 1))


@pytest.mark.parametrize(("rows", "nbytes"), [(16, 64), (13, 64), (1, 64), (16, 12), (3, 4)])
@pytest.mark.parametrize("kind", ["ordinary", "wide", "tiny", "any bits"])
@every_target
def test_products_of_numbers_have_the_measured_bits(target, kind, rows, nbytes):
    rng = np.random.default_rng(rows)
    c = numbers(kind, rng, (16, 16), 2.0).view("f4")
    a, b = ((numbers(kind, rng, shape) >> 16).astype("u2") for shape in ((16, 32), (32, 16)))
    got = run(target, "bf16", c, a, pairs_of(b), config_of(rows, nbytes))
    k = nbytes // 2
    want = tile_product(c[:rows], a[:rows, :k], b[:k])
    if not target.fma and kind in ("tiny", "any bits"):  # products that are not exact in float32 are rounded twice
        assert np.isfinite(got[:rows]).sum() == np.isfinite(want).sum()
    else:
        same = (got[:rows].view("u4") == want.view("u4")) | (np.isnan(got[:rows]) & np.isnan(want))
        assert same.all()
    np.testing.assert_array_equal(got[rows:].view("u4"), c[rows:].view("u4"))


@pytest.mark.parametrize(("rows", "nbytes"), [(16, 64), (7, 64), (16, 20)])
@every_target
def test_products_of_bytes_are_exact_and_wrap(target, rows, nbytes):
    rng = np.random.default_rng(nbytes)
    c = rng.integers(-(1 << 31), 1 << 31, (16, 16)).astype("i4")
    a, b = rng.integers(0, 256, (16, 64)).astype("u1"), rng.integers(-128, 128, (16, 16, 4)).astype("i1")
    got = run(target, "u1", c, a, b, config_of(rows, nbytes))
    columns = b.transpose(0, 2, 1).reshape(64, 16)[:nbytes].astype("i8")
    np.testing.assert_array_equal(got[:rows], (c[:rows] + a[:rows, :nbytes].astype("i8") @ columns).astype("i4"))
    np.testing.assert_array_equal(got[rows:], c[rows:])


@every_target
def test_rows_lie_at_any_stride_and_bytes_beyond_them_are_not_touched(target):
    x, out = np.arange(400, dtype="u1"), np.full(400, 7, "u1")
    config = config_of(5)
    config[16:18].view("<u2")[0] = 12

    def write(k, source, place, setting):
        registers = EmulatedTiles(k)
        registers.configure(setting)
        registers.load(0, source + 3, k.const(17, "i8"))
        registers.store(0, place + 1, k.const(20, "i8"))
        registers.zero(0)
        registers.store(0, place + 200, k.const(12, "i8"))

    run_emitted(write, target, x, out, config)
    want = np.full(400, 7, "u1")
    for row in range(5):
        want[1 + 20 * row :][:12] = x[3 + 17 * row :][:12]
    want[200:260] = 0
    np.testing.assert_array_equal(out, want)


def assembly(kernel, target=AMX):
    """The text of a kernel's machine code."""
    machine = target_machine(AMX)
    return machine.emit_assembly(link_and_optimise("f", emit_kernel(kernel, "f", target), machine))


KERNELS = [
    Kernel("tile_products.of_numbers", (2, 16, 2, "f4")),
    Kernel("tile_conv.of_numbers", (2, 14, 2, "V2", "V2")),
    Kernel("tile_conv.of_numbers", (1, 16, 0, "f4", "V2")),
    Kernel("tile_conv.of_bytes", (2, 14, 2, "u1", 64, 64, "", True)),
    Kernel("tile_attention.bands", ("f4", 4, "added", False, (True, False, False))),
    Kernel("tile_products.of_bytes", (1, 13, 0, "u1", "", True)),
    Kernel("tile_products.of_bytes", (2, 14, 0, "u1", "once", False)),
]


@pytest.mark.parametrize("kernel", KERNELS, ids=str)
def test_machine_code_has_the_instructions_and_no_call(kernel):
    words = {x.word for x in instructions(assembly(kernel))}
    dot = "tdpbusd" if kernel.family.endswith("bytes") else "tdpbf16ps"
    assert {dot, "tileloadd", "tilestored", "tilezero", "ldtilecfg", "tilerelease"} <= words
    assert not {x for x in words if x.startswith("call")}


@pytest.mark.parametrize("kernel", KERNELS, ids=str)
def test_each_way_through_machine_code_configures_once_then_loads_multiplies_stores_and_releases(kernel):
    """Any other order ends the process on a processor with tiles."""
    assert illegal_order(instructions(assembly(kernel))) is None


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("tilezero %tmm0", "tilezero without a configuration"),
        ("ldtilecfg (%rdi)\n tilezero %tmm0\n retq", "retq without tilerelease"),
        ("ldtilecfg (%rdi)\n jne .L1\n tilerelease\n.L1:\n retq", "retq without tilerelease"),
        ("ldtilecfg (%rdi)\n ldtilecfg (%rdi)", "ldtilecfg twice"),
        ("ldtilecfg (%rdi)\n tilestored %tmm1, (%rax,%rcx)", "tilestored of %tmm1, which has no value"),
        ("ldtilecfg (%rdi)\n tilezero %tmm1\n tdpbusd %tmm1, %tmm1, %tmm1", "tdpbusd of equal registers"),
        ("ldtilecfg (%rdi)\n jmp .L2\n.L1:\n retq\n.L2:\n tilerelease\n jmp .L1", None),
    ],
)
def test_the_walk_finds_each_wrong_order(text, message):
    assert illegal_order(instructions(text)) == message


@pytest.mark.parametrize("tiles", ["amx", "emulated"])
def test_only_instructions_are_instructions(tiles):
    text = assembly(KERNELS[0], replace(AMX, tiles=tiles))
    assert ("tdpbf16ps" in text) == ("ldtilecfg" in text) == (tiles == "amx")


def test_a_target_without_tiles_has_no_such_kernels():
    """Nothing emulates them by default: that would be slower than any other kernel."""
    with pytest.raises(NoKernelError, match="avx512 has no tile registers"):
        emit_kernel(KERNELS[0], "f", replace(AMX, tiles=""))


def test_registers_of_a_builder(monkeypatch):
    from types import SimpleNamespace

    made = [
        tile_registers(SimpleNamespace(target=replace(AMX, tiles=x), stack_ptr=lambda dtype, count: count))
        for x in ("amx", "emulated")
    ]
    assert [type(x) for x in made] == [TileInstructions, EmulatedTiles] and made[1].memory == 8 * 1024
