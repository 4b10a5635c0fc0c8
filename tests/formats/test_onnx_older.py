"""Operators of older opsets, and with operands that ONNX Runtime does not take: beside NumPy in plain formulas."""

import numpy as np
import pytest
from onnx import helper

from cgraph.formats.allowance import Allowance
from cgraph.formats.onnx import load
from cgraph.formats.onnx.graph import NAMES
from tests.support.onnx_models import FLOAT, INT64, model_of, one
from tests.support.tolerance import assert_near

RNG = np.random.default_rng(0)
OLD = {"Add": np.add, "Sub": np.subtract, "Mul": np.multiply, "Div": np.true_divide, "Pow": np.power}


def run(raw: bytes, *values: np.ndarray) -> np.ndarray:
    return load(raw).compile(engine="reference")(*values)[0]


@pytest.mark.parametrize("kind", OLD)
@pytest.mark.parametrize("shape", [(2, 3, 4, 5), (3, 4), (5,), (4,), (3,), (2, 3), (4, 5)])
def test_axes_of_the_second_operand_begin_where_it_is_said(kind, shape):
    """By default they are the last."""
    x, whole = RNG.uniform(0.5, 2, (2, 3, 4, 5)).astype("f4"), (2, 3, 4, 5)
    y = RNG.uniform(0.5, 2, shape).astype("f4")
    for axis in range(4 - len(shape) + 1):
        if whole[axis : axis + len(shape)] != shape:
            continue
        wide = y.reshape(*shape, *[1] * (4 - axis - len(shape)))
        for given in ({"axis": axis}, {"axis": axis - 4}, {}):
            if given or axis == 4 - len(shape):
                raw = one(kind, [("x", FLOAT, x.shape), ("y", FLOAT, y.shape)], opset=6, broadcast=1, **given)
                assert_near(run(raw, x, y), OLD[kind](x, wide), "float32 formulas")


@pytest.mark.parametrize("mode", ["linear", "circular"])
@pytest.mark.parametrize("axis", [None, 1, -1, 2])
@pytest.mark.parametrize("placed", [False, True])
def test_values_are_written_from_a_position_of_each_sample_on(mode, axis, placed):
    x, along = RNG.standard_normal((2, 5, 4)).astype("f4"), range(3)[-2 if axis is None else axis]
    shape = list(x.shape)
    shape[along] = 2
    y, start = RNG.standard_normal(shape).astype("f4"), np.array([2, 1] if placed else [0, 0])
    start = start + (2 if placed and mode == "circular" else 0)
    want = np.moveaxis(x.copy(), along, 1)
    for sample, first in enumerate(start):
        for i in range(2):
            want[sample, (first + i) % x.shape[along]] = np.moveaxis(y, along, 1)[sample, i]
    more = {"mode": mode} | ({} if axis is None else {"axis": axis})
    inputs = [("x", FLOAT, x.shape), ("y", FLOAT, y.shape)] + [("start", INT64, (2,))] * placed
    got = run(one("TensorScatter", inputs, opset=24, **more), x, y, *[start] * placed)
    np.testing.assert_array_equal(got, np.moveaxis(want, 1, along))


@pytest.mark.parametrize("rows", [(), (3,)])
@pytest.mark.parametrize("columns", [(), (4,)])
@pytest.mark.parametrize("held", [False, True])
def test_rows_and_columns_may_have_scales_of_their_own(rows, columns, held):
    """``[m]`` of the first matrix, ``[n]`` of the second."""
    x, y = (RNG.integers(0, 256, s).astype("u1") for s in ((3, 5), (5, 4)))
    sx, sy = RNG.uniform(0.01, 0.03, rows).astype("f4"), RNG.uniform(0.01, 0.03, columns).astype("f4")
    zx, zy = RNG.integers(90, 150, rows).astype("u1"), RNG.integers(90, 150, columns).astype("u1")
    below = x.astype("i4") - (zx[:, None] if rows else zx), y.astype("i4") - zy
    total = below[0] @ below[1]
    inputs = [("x", 2, x.shape)] + ([] if held else [("y", 2, y.shape)])
    given = {"y": y} if held else {}
    held_ones = given | {"sx": sx, "zx": zx, "sy": sy, "zy": zy, "s": np.float32(0.07), "z": np.uint8(120)}
    sums = model_of([helper.make_node("MatMulInteger", ["x", "y", "zx", "zy"], ["y0"])], inputs, held_ones, ["y0"])
    values = (x,) if held else (x, y)
    np.testing.assert_array_equal(run(sums, *values), total)
    operands = ["x", "sx", "zx", "y", "sy", "zy", "s", "z"]
    whole = model_of([helper.make_node("QLinearMatMul", operands, ["y0"])], inputs, held_ones, ["y0"])
    floats = total * (sx.astype("f8")[:, None] if rows else sx.astype("f8")) * sy.astype("f8") / np.float32(0.07)
    if not held or not rows:
        want = np.clip(np.rint(floats) + 120, 0, 255)
        assert np.abs(run(whole, *values).astype("i4") - want).max() <= held  # constants: one ulp of float32 at a half


def test_names_inside_of_branches_are_charged_by_node(monkeypatch):
    said = []
    real = Allowance.spend

    def spend(self, what, nbytes=0, work=0, nodes=0):
        said.append(work)
        real(self, what, nbytes, work, nodes)

    monkeypatch.setattr(Allowance, "spend", spend)
    end = [helper.make_tensor_value_info("r", FLOAT, None)]
    steps = [helper.make_node("Relu", ["x"], [f"r{i}" if i else "r"]) for i in range(50)]
    branch = helper.make_graph(steps, "b", [], end)
    load(
        model_of(
            [helper.make_node("If", ["go"], ["y"], then_branch=branch, else_branch=branch)],
            [("x", FLOAT, (2,))], {"go": np.array(True)},
        )
    )  # fmt: skip
    assert sum(said) >= 2 * 50 * NAMES


@pytest.mark.parametrize("opset", [1, 6, 7, 16])
@pytest.mark.parametrize("shape", [(3,), (1,), (3, 1, 1), (5,)])
def test_slopes_are_of_channels_before_version_7_and_broadcast_since(opset, shape):
    x, slope = RNG.standard_normal((2, 3, 4, 5)).astype("f4"), RNG.uniform(0.1, 0.9, shape).astype("f4")
    if shape == (5,) and opset < 7 or shape == (3,) and opset >= 7:
        return
    wide = slope.reshape(3, 1, 1) if shape == (3,) else slope
    raw = one("PRelu", [("x", FLOAT, x.shape)], {"s": slope}, opset)
    assert_near(run(raw, x), np.where(x < 0, x * wide, x), "float32 formulas")


@pytest.mark.parametrize("opset", [6, 7, 10, 11, 12, 13])
def test_a_dropout_that_does_not_train_is_the_identity_in_every_version(opset):
    x = RNG.standard_normal((2, 3)).astype("f4")
    if opset < 12:
        raw = one("Dropout", [("x", FLOAT, x.shape)], opset=opset, ratio=0.75)
    else:
        raw = one("Dropout", [("x", FLOAT, x.shape)], {"ratio": np.float32(0.75)}, opset)
    np.testing.assert_array_equal(run(raw, x), x)
    if opset >= 12:
        train = {"ratio": np.float32(0.75), "training": np.array(True)}
        got = run(one("Dropout", [("x", FLOAT, x.shape)], train, opset), x)
        assert set(np.unique(got / x).round().tolist()) <= {0, 4}


def test_an_aligned_operand_may_be_a_number_or_meet_one():
    """An operand without axes is added to all; axes are those of the first operand."""
    x, number = RNG.standard_normal((2, 3)).astype("f4"), np.array(2.5, "f4")
    for given in ({}, {"axis": 0}, {"axis": -1}):
        raw = one("Add", [("x", FLOAT, x.shape), ("n", FLOAT, ())], opset=6, broadcast=1, **given)
        np.testing.assert_array_equal(run(raw, x, number), x + number)
        raw = one("Mul", [("n", FLOAT, ()), ("m", FLOAT, ())], opset=6, broadcast=1, **given)
        np.testing.assert_array_equal(run(raw, number, number), number * number)
