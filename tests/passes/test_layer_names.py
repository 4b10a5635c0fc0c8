"""Names of layers are those of their weights, made distinct."""

import numpy as np

import cgraph as cg
from cgraph.passes.layer_names import layer_name


def test_a_layer_has_the_name_of_its_weights_however_they_are_read():
    w = cg.Const(np.ones((2, 3)), name="w")
    for right in (w, cg.transpose(w), cg.reshape(w, (3, 2)), cg.broadcast_to(w, (4, 2, 3))):
        assert layer_name(right, "matmul", ()) == "w"


def test_weights_without_a_name_have_another_and_numbers_make_it_distinct():
    w = cg.Const(np.ones((2, 3)))
    assert layer_name(w, "matmul", ()) == "matmul"
    assert layer_name(w, "matmul", {"matmul", "matmul.2"}) == "matmul.3"
    assert layer_name(cg.Var((2, 3), name="v"), "conv2d", {"v"}) == "conv2d"
