"""The physical graph under construction: values are converted once, and constants are packed once for each key."""

import numpy as np

import cgraph as cg
from cgraph.ir.graph import apply
from cgraph.kernels.target import target_named
from cgraph.lowering.image_builder import ImageBuilder
from cgraph.lowering.options import LoweringOptions
from cgraph.ops.leaf import ConstOp
from cgraph.ops.physical.form import NO_HALO, Form
from cgraph.ops.physical.lanes import ToBlocked, ToPlain

SHAPE, HALO = (2, 5, 3, 4), (1, 2, 3, 4)
TARGET = target_named("avx2")
FORM = Form(*SHAPE, 8, "f4", HALO)
X = cg.Var(SHAPE, name="x")
LOGICAL = cg.exp(X)  # stands for an op on blocks


def builder(keep=lambda x: x) -> ImageBuilder:
    b = ImageBuilder({LOGICAL: FORM}, TARGET, LoweringOptions(keep=keep))
    b.add(X, X)
    b.add(LOGICAL, apply(ToBlocked(FORM), X))
    return b


def test_a_blocked_value_is_read_as_it_is_in_its_own_form_and_plain_through_a_conversion():
    b = builder()
    laned = b.laned(LOGICAL)
    assert laned.shape == FORM.shape and b.in_form(LOGICAL, FORM) is laned
    plain = b.plain(LOGICAL)
    assert plain.op == ToPlain(FORM) and plain.operands == (laned,) and plain.shape == SHAPE
    assert b.plain(LOGICAL) is plain and b.plain(X) is X


def test_another_form_goes_through_the_plain_value():
    b, other = builder(), Form(*SHAPE, 8, "f4", NO_HALO)
    node = b.in_form(LOGICAL, other)
    assert node.op == ToBlocked(other) and node.operands == (b.plain(LOGICAL),)
    node = b.in_form(X, other)
    assert node.op == ToBlocked(other) and node.operands == (X,)


def test_a_constant_is_converted_while_the_graph_is_lowered():
    b, array = builder(), np.arange(120, dtype="float32").reshape(SHAPE)
    constant = cg.Const(array)
    b.add(constant, constant)
    node = b.in_form(constant, FORM)
    assert isinstance(node.op, ConstOp) and np.array_equal(node.op.array, FORM.to_blocked(array))


def test_a_constant_is_packed_once_for_each_key_and_stored_as_the_options_say():
    stored, packed = [], []

    def keep(x):
        stored.append(x)
        return x + 1

    def pack():
        packed.append(1)
        return np.full(3, 10.0 * len(packed))

    b = builder(keep)
    first = b.packed(("filters", 1), pack)
    assert b.packed(("filters", 1), pack) is first and len(packed) == len(stored) == 1
    assert first.op.array.tolist() == [11.0, 11.0, 11.0]
    assert b.packed(("filters", 2), pack).op.array.tolist() == [21.0, 21.0, 21.0]


def test_an_image_is_read_in_its_own_form_or_in_one_with_the_halo_that_is_asked_for():
    b = builder()
    assert b.form_of(LOGICAL, NO_HALO) == FORM
    assert b.form_of(X, HALO) == Form(*SHAPE, TARGET.channels_of("f4"), "f4", HALO)
    wide = cg.Var(SHAPE, "float64", "wide")
    assert b.form_of(wide, NO_HALO) == Form(*SHAPE, TARGET.channels_of("f8"), "f8")
