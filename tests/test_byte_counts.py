"""Numbers of bytes as text, wherever an option takes one."""

import math
from fractions import Fraction

import numpy as np
import pytest

import cgraph as cg
import nn
from cgraph.errors import ArgumentError, BudgetError, CgraphError, GraphError, bytes_text
from cgraph.formats.darknet.reader import source
from cgraph.formats.npz import read_npz
from cgraph.system.byte_counts import byte_count, is_byte_count


@pytest.mark.parametrize(("text", "nbytes"), [
    ("4096", 4096), ("0", 0), ("1B", 1), ("200 kB", 200_000), ("1KB", 1000), ("1 KiB", 1024), ("1MiB", 2**20),
    ("1.5 MiB", 3 << 19), ("0.1GB", 10**8), ("2gib", 2**31), (" 1TiB ", 2**40), (7, 7), (np.int64(8), 8),
])  # fmt: skip
def test_numbers_and_units_are_bytes(text, nbytes):
    assert byte_count(text) == nbytes and type(byte_count(text)) is int


@pytest.mark.parametrize(
    "wrong", ["", "MiB", "-1", "1 Mb/s", "1e6", "١", "1,000", "1.2.3kB", -1, 1.5, True, None, 2**62, "9999999999TiB"]
)
def test_anything_else_is_refused_with_an_example(wrong):
    with pytest.raises(ArgumentError, match="is not a number of bytes, such as 4096, '200 kB' or '1.5MiB'"):
        byte_count(wrong)


@pytest.mark.parametrize("text", ["1.005", "4.35", "0.000001", "0.29", "123456.789012", "8.1"])
@pytest.mark.parametrize("unit", ["B", "kB", "MB", "GB", "KiB", "MiB", "GiB"])
def test_fractions_are_exact_and_rounded_down(text, unit):
    """Also where a product of floating-point numbers is a byte off."""
    power, name = (1024 if unit.endswith("iB") else 1000), unit[0].upper()
    whole = Fraction(text) * power ** "BKMG".index(name)
    assert byte_count(f"{text} {unit}") == math.floor(whole)


@pytest.mark.parametrize(
    "size", [0, "0", "0.0kB", np.int32(0), 1, "1B", "0.1B", 2**62 - 1, 2**62, -1, "-1", "", True, None]
)
def test_what_is_a_number_of_bytes_is_what_is_taken(size):
    try:
        byte_count(size)
    except ArgumentError:
        assert is_byte_count(size) is False
    else:
        assert is_byte_count(size) is True


def chain() -> tuple[cg.Node, cg.Var]:
    x = cg.Var((1, 8, 64, 64), name="x")
    y: cg.Node = x
    for _ in range(3):
        y = cg.relu(cg.conv2d(y, cg.Const(np.ones((8, 8, 3, 3), "f4")), pad=1))
    return y, x


def test_a_budget_is_text_or_a_number_with_the_same_plan():
    y, x = chain()
    free = cg.compile(y, [x]).nbytes
    text, number = (cg.compile(y, [x], budget=b).nbytes for b in ("240 KiB", 240 << 10))
    assert text == number <= 240 << 10 < free
    with pytest.raises(BudgetError):
        cg.compile(y, [x], budget="10B")
    with pytest.raises(GraphError, match="budget takes a number of bytes, such as 4096, '200 kB' or '1.5MiB', or None"):
        cg.compile(y, [x], budget="much")


def test_recompute_takes_text():
    y, x = chain()
    (g,) = cg.gradient(cg.sum(y), [x])
    text, number = (cg.compile(g, [x], recompute=n).nbytes for n in ("4MB", 4_000_000))
    assert text == number


def test_rings_of_weights_are_text(tmp_path):
    weights = cg.StreamedWeights(str(tmp_path / "w"), ring="64KiB", slice="1 kB")
    assert (weights.ring, weights.slice) == (weights.ring_nbytes, weights.slice_nbytes) == (65536, 1000)
    for wrong in ("0B", 0, "a lot"):
        with pytest.raises(GraphError, match="ring"):
            cg.StreamedWeights("w", ring=wrong)


def test_limits_of_files_are_text(tmp_path):
    np.savez(tmp_path / "x.npz", x=np.zeros(1000))
    assert read_npz(tmp_path / "x.npz", largest="1MB")["x"].shape == (1000,)
    with pytest.raises(CgraphError, match="at most 10 B are read"):
        read_npz(tmp_path / "x.npz", largest="10 B")
    assert source(None, 0, "1MiB")(None).left == 1 << 20


def test_networks_are_compiled_and_trained_within_a_text():
    model = nn.initialise(nn.Sequential(nn.Conv2d(3, 8, 3, pad=1), nn.Flatten(), nn.Linear(8 * 64, 2)), 0)
    sample = [nn.Sample((3, 8, 8))]
    assert nn.compile(model, samples=sample, budget="1MiB").function.nbytes <= 1 << 20
    with pytest.raises(BudgetError):
        nn.compile(model, samples=sample, budget="100 B")
    data = nn.Loader((np.ones((4, 3, 8, 8), "f4"), np.zeros(4, "i4")), batch=2)
    assert len(nn.train(model, data, budget="1MiB", progress=False).loss) == 2


@pytest.mark.parametrize("unit", ["KiB", "MiB", "GiB"])
def test_a_whole_unit_is_one_of_it_and_a_byte_less_is_not(unit):
    nbytes = byte_count(f"1 {unit}")
    assert bytes_text(nbytes) == f"1 {unit}" and byte_count(bytes_text(3 * nbytes)) == 3 * nbytes
    assert not bytes_text(nbytes - 1).endswith(unit)


@pytest.mark.parametrize(("nbytes", "text"), [
    (0, "0 B"), (1, "1 B"), (1023, "1023 B"), (1024, "1 KiB"), (1536, "1.50 KiB"), (1025, "1.00 KiB"),
    (99 * 1024 + 512, "99.50 KiB"), (100 * 1024 + 256, "100.2 KiB"), (1024**2 - 1, "1024.0 KiB"), (5 << 19, "2.50 MiB"),
    (1 << 40, "1024 GiB"), ((1 << 40) + (1 << 29), "1024.5 GiB"),
])  # fmt: skip
def test_a_text_has_two_decimals_below_100_one_above_and_none_of_whole_units(nbytes, text):
    assert bytes_text(nbytes) == text
