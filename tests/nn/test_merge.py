"""Layers that merge several operands, by NumPy."""

import numpy as np
import pytest

import cgraph as cg
import nn
from tests.support.tolerance import assert_near

A, B, C = (np.random.default_rng(i).standard_normal((2, 3, 3)).astype(np.float32) for i in range(3))


@pytest.mark.parametrize(
    ("layer", "expected"),
    [
        (nn.Max(), np.maximum(np.maximum(A, B), C)),
        (nn.Average(), (A + B + C) / 3),
        (nn.Concatenate(), np.concatenate([A, B, C], axis=1)),
        (nn.Concatenate(axis=2), np.concatenate([A, B, C], axis=2)),
    ],
)
def test_three_operands_are_merged(layer, expected):
    assert_near(layer(*map(cg.Const, (A, B, C))).eval(), expected, "float32 formulas")


def test_a_product_has_two_operands():
    assert_near(nn.Dot()(cg.Const(A), cg.Const(B)).eval(), A @ B, "float32 formulas")
    for operands in ((A,), (A, B, C)):
        with pytest.raises(cg.InputError, match=f"Dot takes two operands, not {len(operands)}"):
            nn.Dot()(*map(cg.Const, operands))
