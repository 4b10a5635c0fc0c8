"""compile(precision=Tolerance(...)): the measured error of every output is within the tolerance, and reported."""

import itertools
import pickle

import numpy as np
import pytest

import cgraph as cg
from cgraph.engine.cpu.engine import CpuEngine
from cgraph.errors import GraphError, InputError
from cgraph.kernels.target import target_named
from cgraph.lowering.rounded_layers import RoundedLayers
from cgraph.planning.mixed_precision import LayerPrecision, MixedPrecision
from cgraph.precision.choose import ELSEWHERE, Measurement, check_met, computed_of, precision_of
from cgraph.precision.search import RoundingChoice
from cgraph.record import replace
from cgraph.running.difference import output_error
from tests.support.emulated import PairsEngine, TilesEngine

ENGINES = {"pairs": PairsEngine, "tiles": TilesEngine}
every_engine = pytest.mark.parametrize("engine", ENGINES.values(), ids=ENGINES)
RNG = np.random.default_rng(0)
SAMPLES = [RNG.standard_normal((16, 48)).astype("f4") for _ in range(3)]
WEIGHTS = [RNG.standard_normal((48, 48)).astype("f4") / 7 for _ in range(4)]


def network(count=4):
    """A product after another; each is a layer named for its weights."""
    x = cg.Var((16, 48), name="x")
    y = x
    for i, w in enumerate(WEIGHTS[:count]):
        y = cg.tanh(y @ cg.Const(w, name=f"w{i}"))
    return x, y


def compiled(precision, engine=PairsEngine, threads=1, **options):
    x, y = network()
    return cg.compile(y, [x], engine=engine(threads=threads), precision=precision, **options)


def error_of_all(engine):
    """The largest error of the samples with every layer rounded."""
    ((_, error),) = compiled(cg.Tolerance(1.0, SAMPLES), engine).precision.errors
    return error


@every_engine
def test_a_large_tolerance_rounds_every_layer_and_a_small_one_none(engine):
    every, none = (compiled(cg.Tolerance(error, SAMPLES), engine) for error in (1.0, 1e-7))
    assert every.precision.bf16_layers == {"w0", "w1", "w2", "w3"} and not none.precision.bf16_layers
    np.testing.assert_array_equal(every(SAMPLES[0]), compiled("bf16", engine)(SAMPLES[0]))
    np.testing.assert_array_equal(none(SAMPLES[0]), compiled(None, engine)(SAMPLES[0]))
    assert none.precision.errors == (("output0", 0.0),)
    assert {x.reason for x in none.precision.layers} == {"beyond the accepted error"}
    assert all(x.error > 1e-7 for x in none.precision.layers)


@every_engine
def test_the_reported_error_is_that_of_the_function_and_within_the_tolerance(engine):
    accepted = 0.8 * error_of_all(engine)
    function, exact = compiled(cg.Tolerance(accepted, SAMPLES), engine), compiled(None, engine)
    precision = function.precision
    assert 0 < len(precision.bf16_layers) < 4
    measured = max(output_error(function(x), exact(x)) for x in SAMPLES)
    assert precision.errors == (("output0", measured),) and 0 < measured <= accepted
    assert [x.name for x in precision.layers] == ["w0", "w1", "w2", "w3"] and precision.tolerance == accepted
    assert {x.multiply_adds for x in precision.layers} == {16 * 48 * 48}


def test_the_choice_is_the_same_every_time_and_on_any_number_of_threads():
    tolerance = cg.Tolerance(0.8 * error_of_all(PairsEngine), SAMPLES)
    choices = {compiled(tolerance, threads=threads).precision for threads in (1, 1, 2)}
    assert len(choices) == 1


def test_a_choice_is_repeated_without_samples_and_after_pickling():
    function = compiled(cg.Tolerance(0.8 * error_of_all(PairsEngine), SAMPLES))
    again = compiled(pickle.loads(pickle.dumps(function.precision)))
    assert again.precision == function.precision
    np.testing.assert_array_equal(again(SAMPLES[1]), function(SAMPLES[1]))


def test_a_choice_for_another_graph_is_refused_with_the_names_there():
    x, y = network(2)
    with pytest.raises(GraphError, match=r"precision has 'w2', which is not a layer of .* Use names of w0, w1"):
        cg.compile(y, [x], engine=PairsEngine(), precision=compiled("bf16").precision)
    with pytest.raises(GraphError, match="none, since it has no products of float32"):
        cg.compile(x + 1, [x], engine=PairsEngine(), precision=compiled("bf16").precision)


def test_layers_in_skip_stay_float32_and_unknown_ones_are_refused():
    precision = compiled(cg.Tolerance(1.0, SAMPLES, skip=["w1"])).precision
    assert precision.bf16_layers == {"w0", "w2", "w3"} and precision.layers[1].reason == "named in skip"
    with pytest.raises(GraphError, match=r"skip has 'w9', which is not a layer .* Use names of w0, w1, w2, w3"):
        compiled(cg.Tolerance(1.0, SAMPLES, skip=["w9"]))


def test_a_processor_that_gains_nothing_computes_in_float32_and_says_why(monkeypatch):
    plain = replace(target_named("portable"), bf16="", tiles="")
    monkeypatch.setattr(CpuEngine, "kernel_target", property(lambda _: plain))
    function = compiled(cg.Tolerance(1.0, SAMPLES), CpuEngine)
    assert not function.precision.bf16_layers and not function.precision.errors
    assert "portable has no instruction that multiplies bfloat16 numbers" in str(function.precision)
    np.testing.assert_array_equal(function(SAMPLES[0]), compiled(None, CpuEngine)(SAMPLES[0]))
    assert not compiled(cg.Tolerance(1.0, SAMPLES, skip=["w1"]), CpuEngine).precision.bf16_layers, "w1 is a layer"
    with pytest.raises(GraphError, match=r"skip has 'w9', which is not a layer .* Use names of w0, w1, w2, w3"):
        compiled(cg.Tolerance(1.0, SAMPLES, skip=["w9"]), CpuEngine)
    elsewhere = compiled(compiled(cg.Tolerance(1.0, SAMPLES)).precision, CpuEngine).precision
    assert not elsewhere.bf16_layers and not elsewhere.errors, "errors of another choice are not this one's"


def test_updates_are_measured_as_outputs_and_nothing_is_assigned_meanwhile():
    x, state = cg.Var((16, 48), name="x"), cg.Var((16, 48), name="state").assign(SAMPLES[2])
    after = cg.tanh(state @ WEIGHTS[0])
    function = cg.compile(
        {"y": x @ WEIGHTS[1]}, [x], {state: after}, engine=PairsEngine(), precision=cg.Tolerance(1.0, SAMPLES)
    )
    np.testing.assert_array_equal(state.value, SAMPLES[2])
    assert [name for name, error in function.precision.errors if error > 0] == ["y", "state"]
    assert len(function.precision.bf16_layers) == 2


def test_indices_count_by_the_share_that_changes():
    x = cg.Var((16, 48), name="x")
    y = x @ WEIGHTS[0]
    function = cg.compile([y, cg.argmax(y, 1)], [x], engine=PairsEngine(), precision=cg.Tolerance(1.0, SAMPLES))
    (_, floats), (_, indices) = function.precision.errors
    assert floats > 0 and indices in np.arange(17) / 16


def test_random_callbacks_are_refused_with_the_least_that_can_be_met():
    values, x = itertools.count(1), cg.Var((16, 48), name="x")
    noise = cg.delay_array((16, 48), "float32", lambda a: a + np.float32(next(values)), x)
    with pytest.raises(GraphError, match=r"no choice of layers meets an error of 0.001: two runs .* differ by \d"):
        cg.compile(noise @ WEIGHTS[0], [x], engine=PairsEngine(), precision=cg.Tolerance(1e-3, SAMPLES))


def test_wrong_samples_are_refused():
    with pytest.raises(InputError, match="precision=Tolerance.* needs at least one sample"):
        compiled(cg.Tolerance(1e-2, []))
    with pytest.raises(InputError, match="a sample has 2 arrays for 1 inputs"):
        compiled(cg.Tolerance(1e-2, [(SAMPLES[0], SAMPLES[0])]))
    with pytest.raises(InputError, match=r"x .*float32\[16,48\]"):
        compiled(cg.Tolerance(1e-2, [SAMPLES[0][:3]]))


@pytest.mark.parametrize("engine", ["reference", "cuda-sim"])
def test_engines_without_the_option_refuse_a_tolerance(engine):
    x, y = network()
    with pytest.raises(GraphError, match="does not support precision="):
        cg.compile(y, [x], engine=engine, precision=cg.Tolerance(1e-2, SAMPLES))


def images():
    """A network of convolutions, of which the first and the depthwise one cannot round."""
    rng = np.random.default_rng(1)
    x = cg.Var((1, 3, 16, 16), name="x")
    shapes = {"first": (16, 3, 3, 3), "deep": (16, 1, 3, 3), "mixed": (16, 16, 3, 3), "last": (8, 16, 1, 1)}
    y = x
    for name, shape in shapes.items():
        f = cg.Const(rng.standard_normal(shape).astype("f4") / 4, name=name)
        y = cg.relu(cg.conv2d(y, f, 1, shape[2] // 2, 1, 16 if name == "deep" else 1))
    return x, y, [rng.standard_normal(x.shape).astype("f4")]


def test_other_options_keep_the_choice_and_its_bits():
    x, y, samples = images()
    options = [{}, {"budget": "1MiB"}, {"bands": 8}, {"rows": [x]}, {"memory": "one_each"}]
    functions = [
        cg.compile(y, [x], engine=PairsEngine(), precision=cg.Tolerance(1.0, samples), **more) for more in options
    ]
    first, *others = functions
    assert first.precision.bf16_layers == {"mixed", "last"}
    assert {x.reason for x in first.precision.layers[:2]} == {"not computed in bfloat16 on this processor"}
    for other in others:
        assert other.precision == first.precision
        np.testing.assert_array_equal(other(samples[0]), first(samples[0]))
    narrow = cg.compile(y, [x], engine=PairsEngine(), precision=cg.Tolerance(1.0, samples), weights_dtype="bfloat16")
    assert narrow.precision.bf16_layers == {"mixed", "last"}


def test_frozen_vars_are_layers():
    x, w = cg.Var((16, 48), name="x"), cg.Var((48, 48), name="weights").assign(WEIGHTS[0])
    options = {"engine": PairsEngine(), "precision": cg.Tolerance(1.0, SAMPLES)}
    assert cg.compile(x @ w, [x], freeze=[w], **options).precision.bf16_layers == {"weights"}
    (changing,) = cg.compile(x @ w, [x], **options).precision.layers  # few rows of computed values
    assert (changing.name, changing.computed) == ("weights", "float32")


@every_engine
def test_convolutions_and_attention_follow_the_choice(engine):
    """With only some layers chosen, the images between others stay float32, and so does attention."""
    x = cg.Var((1, 32, 8, 8), name="x")
    y = x
    for i in range(3):
        f = (RNG.standard_normal((32, 32, 3, 3)) / 17).astype("f4")
        y = cg.relu(cg.conv2d(y, cg.Const(f, name=f"f{i}"), 1, 1))
    tokens = cg.reshape(y, (1, 1, 32, 64))
    outputs = [y, cg.scaled_dot_product_attention(tokens, tokens, tokens)]
    samples = [RNG.standard_normal(x.shape).astype("f4") for _ in range(2)]
    compiled_for = lambda precision: cg.compile(outputs, [x], engine=engine(threads=1), precision=precision)  # noqa: E731
    all_of_them = compiled_for(cg.Tolerance(1.0, samples))
    assert all_of_them.precision.bf16_layers == {"f0", "f1", "f2"}
    accepted = 0.8 * max(error for _, error in all_of_them.precision.errors)
    function, exact = compiled_for(cg.Tolerance(accepted, samples)), compiled_for(None)
    assert 0 < len(function.precision.bf16_layers) < 3
    for i, (_, error) in enumerate(function.precision.errors):
        assert error == max(output_error(function(s)[i], exact(s)[i]) for s in samples) <= accepted


def test_an_error_that_equals_the_tolerance_is_met():
    for error in (1e-3, 0.5):
        check_met(cg.Tolerance(error, SAMPLES), (error / 2, error))
        with pytest.raises(GraphError, match="no choice of layers meets"):
            check_met(cg.Tolerance(error, SAMPLES), (error, np.nextafter(error, 1)))
    with pytest.raises(GraphError, match=r"meets an error of 0.25: .* in float32 differ by 0.75, which is the least"):
        check_met(cg.Tolerance(0.25, SAMPLES), (0.5, 0.75, 0.125))


def test_errors_are_the_largest_of_the_first_runs_for_each_output_by_itself():
    runs = [(np.full(2, n, "f4"), np.full(3, -n, "f4")) for n in (1.0, 2.0, 4.0)]
    built = []

    def build(layers):
        built.append(layers and layers.names)
        gaps = (0.0, 0.0) if layers is None else (0.25, 0.125)

        def run(x, y):
            return [x + np.float32(gaps[0]), y - np.float32(gaps[1]) * abs(y)]

        return run

    measurement = Measurement(build, runs)
    assert [[x.tolist() for x in outputs] for outputs in measurement.references] == [
        [[n] * 2, [-n] * 3] for n in (1.0, 2.0, 4.0)
    ]
    for count in (1, 2, None):
        assert measurement.errors(frozenset("a"), count) == (0.25, 0.125)
    measurement.runs = runs[::-1]
    measurement.references = measurement.references[::-1]
    assert [measurement.errors(frozenset("b"), n)[0] for n in (1, 2, 3)] == [0.0625, 0.125, 0.25]
    assert built == [None, *3 * [frozenset("a")], *3 * [frozenset("b")]]


LISTED = {"first": 10, "second": 20, "third": 30}


def listing(names=None, able=("first", "second"), reason=""):
    found = RoundedLayers(names)
    found.multiply_adds, found.able, found.reason = dict(LISTED), set(able), reason
    return found


def computed(precision):
    return [(x.name, x.computed, x.multiply_adds, x.reason, x.error) for x in precision.layers]


def test_the_precision_of_a_graph_has_each_layers_reason_and_the_error_that_was_measured():
    assert computed(precision_of(listing(), None)) == [
        ("first", "bf16", 10, "", None),
        ("second", "bf16", 20, "", None),
        ("third", "float32", 30, ELSEWHERE, None),
    ]
    before = MixedPrecision(
        (LayerPrecision("second", "bf16", 7, "", 0.5), LayerPrecision("first", "float32", 9, "named in skip", 0.25)),
        0.75, (("y", 0.625),),
    )  # fmt: skip
    found = precision_of(listing(before.bf16_layers), before)
    assert computed(found) == [
        ("first", "float32", 10, "named in skip", 0.25),
        ("second", "bf16", 20, "", 0.5),
        ("third", "float32", 30, ELSEWHERE, None),
    ]
    assert (found.tolerance, found.errors, found.reason) == (0.75, (("y", 0.625),), "")
    assert computed(precision_of(listing(frozenset(["second"])), None))[0][3] == "not selected"


def test_errors_of_another_choice_are_left_out_and_the_processor_has_the_reason():
    before = MixedPrecision((LayerPrecision("second", "bf16", 7, "", 0.5),), 0.75, (("y", 0.625),))
    found = precision_of(listing(before.bf16_layers, (), "no instruction"), before)
    assert {x.computed for x in found.layers} == {"float32"}
    assert {x.reason for x in found.layers} == {"no instruction"}
    assert (found.tolerance, found.errors, found.reason) == (0.75, (), "no instruction")


@pytest.mark.parametrize("reason", ["", "this processor has no bfloat16"])
@pytest.mark.parametrize("skip", [(), ("first",), ("third",)])
@pytest.mark.parametrize("chosen", [(), ("second",)])
def test_a_layer_has_one_reason_the_first_that_holds(chosen, skip, reason):
    tolerance = cg.Tolerance(0.5, SAMPLES, skip=skip)
    choice = RoundingChoice(frozenset(chosen), (), {})
    for name, count in LISTED.items():
        able = name != "third"
        if name in chosen:
            want = "bf16", count, ""
        elif reason or not able:
            want = "float32", count, reason or ELSEWHERE
        else:
            want = "float32", count, "named in skip" if name in skip else "beyond the accepted error"
        assert computed_of(name, choice, listing(reason=reason), tolerance) == want
