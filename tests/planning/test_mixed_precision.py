"""Tolerances and mixed precision: what is refused, and what is printed."""

import math

import numpy as np
import pytest

import cgraph as cg
from cgraph.errors import GraphError
from cgraph.planning.mixed_precision import LEAST_ERROR, LayerPrecision, MixedPrecision, Tolerance, check_names

LAYERS = (
    LayerPrecision("conv1", "float32", 100, "beyond the accepted error", 0.02),
    LayerPrecision("conv2", "bf16", 300, "", 0.003),
)


@pytest.mark.parametrize("error", [math.nan, math.inf, -math.inf, "1e-2", None, True, 1j])
def test_an_error_is_a_finite_number(error):
    with pytest.raises(GraphError, match="is a finite number"):
        Tolerance(error, [])


@pytest.mark.parametrize("error", [0, 0.0, -1e-2, -5, 1e-9, LEAST_ERROR / 2])
def test_an_error_below_that_of_float32_is_refused_with_the_least(error):
    with pytest.raises(GraphError, match="Pass at least 6e-08"):
        Tolerance(error, [])


def test_numbers_of_numpy_are_numbers():
    sample = np.ones((2, 2), "f4")
    x = cg.Var((2, 2), name="x")
    f = cg.compile(x @ sample, [x], precision=Tolerance(np.float32(0.5), [sample]))
    assert type(f.precision.tolerance) is float and f.precision.tolerance == 0.5


def test_the_least_error_is_that_of_one_rounding():
    assert Tolerance(LEAST_ERROR, []).error == np.finfo("f4").eps / 2 == LEAST_ERROR


@pytest.mark.parametrize("skip", ["conv1", [1], [None]])
def test_skip_takes_names(skip):
    with pytest.raises(GraphError, match="skip takes names of layers"):
        Tolerance(1e-2, [], skip)


@pytest.mark.parametrize("wrong", ["float16", "1e-2", 1e-2, np.float32(1), object(), ["bf16"]])
def test_precision_is_refused_with_what_it_takes(wrong):
    x = cg.Var((2, 2), name="x")
    with pytest.raises(GraphError, match="precision takes bf16, a Tolerance, the precision of a Function, or None"):
        cg.compile(x + 1, [x], precision=wrong)


def test_it_prints_a_line_for_each_layer():
    text = str(MixedPrecision(LAYERS, 0.01, (("scores", 0.0041),)))
    assert text.splitlines() == [
        "1 of 2 layers in bf16, 75.0% of their multiply-adds",
        "measured error of scores 0.0041; accepted 0.01",
        "computed   multiply-adds  error alone  layer",
        "float32              100         0.02  conv1  (beyond the accepted error)",
        "bf16                 300        0.003  conv2",
    ]


def test_it_prints_why_a_processor_rounds_nothing_once():
    layer = LayerPrecision("conv1", "float32", 100, "no instruction")
    lines = str(MixedPrecision((layer,), 0.01, (), "no instruction")).splitlines()
    assert lines[1:3] == ["float32: no instruction", "no error was measured; accepted 0.01"]
    assert lines[-1] == "float32              100               conv1"
    assert str(MixedPrecision(())) == "0 of 0 layers in bf16, 0.0% of their multiply-adds"


def test_an_error_of_zero_is_printed_and_one_that_was_not_measured_is_not():
    layers = LayerPrecision("exact", "bf16", 100, "", 0.0), LayerPrecision("other", "bf16", 300)
    assert MixedPrecision(layers).table()[1:] == [
        "bf16                 100            0  exact",
        "bf16                 300               other",
    ]


def test_facts_are_plain():
    facts = MixedPrecision(LAYERS, 0.01, (("scores", 0.0041),)).facts()
    assert facts["layers"][1] == ["conv2", "bf16", 300, "", 0.003]
    assert (facts["tolerance"], facts["errors"], facts["reason"]) == (0.01, [["scores", 0.0041]], "")
    assert MixedPrecision(LAYERS).bf16_layers == {"conv2"}


def test_unknown_names_are_refused_with_the_names_there():
    check_names(["a"], ["a", "b"], "skip")
    with pytest.raises(GraphError, match="skip has 'c', which is not a layer of this graph. Use names of a, b"):
        check_names(["a", "c"], ["a", "b"], "skip")


@pytest.mark.parametrize("name", ["", "conv", "onv1", "conv1, conv2", ", ", "conv1 ", "CONV1", "conv11"])
def test_a_part_of_a_name_several_names_and_other_letters_are_no_name(name):
    with pytest.raises(GraphError, match="Use names of conv1, conv2"):
        check_names([name], ["conv1", "conv2"], "skip")


def test_of_several_unknown_names_the_first_in_the_alphabet_is_told():
    for names in (["z", "one", "a"], {"z", "a"}, ["a", "z"]):
        with pytest.raises(
            GraphError, match="^skip has 'a', which is not a layer of this graph. Use names of one, two$"
        ):
            check_names(names, iter(["one", "two"]), "skip")
    check_names([], [], "skip")
    check_names(["two", "one"], iter(["one", "two"]), "skip")
    with pytest.raises(GraphError, match="Use names of none, since it has no products of float32$"):
        check_names(["a"], [], "skip")
