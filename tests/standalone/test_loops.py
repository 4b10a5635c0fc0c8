"""Loops and choices are exported as loops of the entry, with the bits of Python on this machine and on others."""

import numpy as np
import pytest

import cgraph as cg
from cgraph.kernels.target import host_target
from tests.support.exported import require, run_export


def nested():
    """A scan over rows whose body has a loop of its own, a while loop, and a choice."""
    xs, n = cg.Var((5, 4), "float32", "xs"), cg.Var((), "int32", "n")

    def inner(h, row):
        return h * 0.5 + row, h[0]

    def body(h, row):
        h, firsts = cg.scan(inner, h, cg.stack([row, row + 1, row * 2]))
        return h, cg.sum(firsts) + h

    last, rows = cg.scan(body, cg.zeros((4,), "float32"), xs)
    grown = cg.while_loop(lambda v: cg.sum(v) < 100, lambda v: v * 1.5 + 1, xs[0])
    counted = cg.fori(0, n, lambda i, v: v + xs[1], xs[2])
    either = cg.cond(cg.sum(xs) > 2, lambda: xs[3] * 2, lambda: xs[3] - 1)
    return [last, rows, grown, counted, either], [xs, n]


@pytest.mark.parametrize("form", ["whole", "shared", "c"])
def test_loops_have_the_bits_of_python(form, tmp_path):
    require("cc", "gcc")
    outputs, inputs = nested()
    rng = np.random.default_rng(0)
    values = [rng.random((5, 4), np.float32), np.int32(3)]
    cg.export(outputs, inputs, tmp_path / "m", target=host_target().name, form=form, check=values)
    expected = cg.compile(outputs, inputs)(*values)
    out = (tmp_path / "m/check/out.bin").read_bytes()
    assert out == b"".join(np.ascontiguousarray(x).tobytes() for x in expected)
    assert run_export(tmp_path / "m", runs=2).outputs == out


@pytest.mark.parametrize("machine", ["neon", "cortex-m7", "cortex-m55", "wasm32", "riscv64"])
def test_loops_have_the_bits_of_their_twin_on_emulated_machines(machine, tmp_path):
    if machine == "wasm32":
        require("wasm-ld", "lld")
    outputs, inputs = nested()
    values = [np.random.default_rng(1).random((5, 4), np.float32), np.int32(0)]
    cg.export(outputs, inputs, tmp_path / "m", target=machine, check=values)
    assert run_export(tmp_path / "m", runs=2).outputs == (tmp_path / "m/check/out.bin").read_bytes()
