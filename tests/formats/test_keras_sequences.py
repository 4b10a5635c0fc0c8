"""Recurrent layers of Keras, step by step in NumPy."""

import numpy as np
import pytest

from tests.support.keras_networks import (
    COUNTS,
    GATES,
    IDS,
    OTHER,
    PLAIN,
    RNG,
    STATES,
    TABLE,
    UNITS,
    WEIGHTS,
    C,
    E,
    F,
    N,
    T,
    X,
    arrays,
    layer,
    masked_rows,
    normal,
    recurrent,
    run,
    start,
    stored,
)
from tests.support.tolerance import assert_near

OPTIONS = [
    {},
    {"return_sequences": True},
    {"return_sequences": True, "go_backwards": True, "use_bias": False},
    {"return_state": True, "reset_after": False},
    {"return_sequences": True, "return_state": True, "go_backwards": True},
    {"return_sequences": True, "activation": "relu", "recurrent_activation": "tanh"},
    {"activation": "sigmoid", "recurrent_activation": "relu", "reset_after": False},
]


@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("options", OPTIONS, ids=str)
@pytest.mark.parametrize("kind", GATES)
def test_a_recurrent_layer_is_its_steps(kind, options, masked):
    w, given = arrays(kind, options), [normal(N, UNITS) for _ in range(STATES[kind])]
    names = [f"s{i}" for i in range(STATES[kind])]
    rows = [start("x", (T, C)), *(start(name, (UNITS,)) for name in names), start("mask", (T,), "bool")]
    named = {"initial_state": [[name, 0, 0] for name in names], **({"mask": ["mask", 0, 0]} if masked else {})}
    outputs = [("l", i) for i in range(1 + len(names) * bool(options.get("return_state")))]
    rows.append(layer(kind, "l", ["x"], PLAIN | options, named))
    found = run(rows, {"l": stored(w, "cell")}, [X, *given, COUNTS], outputs)
    every, last, states = recurrent(kind, w, X, given, COUNTS if masked else None, options)
    wanted = [every if options.get("return_sequences") else last, *states]
    for got, want in zip(found, wanted):
        assert_near(got, want, "float32 sums near zero")


@pytest.mark.parametrize("kind", GATES)
def test_states_may_follow_the_sequence_and_a_zero_replaces_outputs_of_steps_that_do_not_count(kind):
    w, given = arrays(kind), [normal(N, UNITS) for _ in range(STATES[kind])]
    names = [f"s{i}" for i in range(STATES[kind])]
    rows = [start("x", (T, C)), *(start(name, (UNITS,)) for name in names), layer(kind, "l", ["x", *names], PLAIN)]
    (found,) = run(rows, {"l": stored(w, "cell")}, [X, *given], [("l", 0)])
    assert_near(found, recurrent(kind, w, X, given)[1], "float32 sums near zero")
    for options in ({"zero_output_for_mask": True}, {"zero_output_for_mask": True, "return_sequences": True}):
        rows = [start("ids", (T,), "int32"), layer("Embedding", "e", ["ids"], {"mask_zero": True})]
        rows.append(layer(kind, "l", ["e"], PLAIN | options))
        weights = {"e": {"embeddings": TABLE}, "l": stored(w, "cell")}
        (found,) = run(rows, weights, [IDS], [("l", 0)])
        every, last, _ = recurrent(kind, w, TABLE[IDS], None, COUNTS, options)
        assert_near(found, every if "return_sequences" in options else last, "float32 sums near zero")


@pytest.mark.parametrize("mode", ["concat", "sum", "mul", "ave", None])
@pytest.mark.parametrize("every", [False, True])
@pytest.mark.parametrize("kind", ["LSTM", "GRU"])
def test_two_directions_are_merged(kind, every, mode):
    """Also with states, a mask, and under the names of both versions of Keras."""
    one, two = arrays(kind), arrays(kind)
    given = [normal(N, UNITS) for _ in range(2 * STATES[kind])]
    names = [f"s{i}" for i in range(len(given))]
    inner = {"class_name": kind, "config": PLAIN | {"name": "g", "return_sequences": every, "return_state": True}}
    rows = [start("ids", (T,), "int32"), *(start(name, (UNITS,)) for name in names)]
    rows.append(layer("Embedding", "e", ["ids"], {"mask_zero": True}))
    rows.append(layer("Bidirectional", "b", ["e", *names], {"layer": inner, "merge_mode": mode}))
    both = {"b": stored(one, "b/forward_g/cell") | stored(two, "s/b/backward_g/cell"), "e": {"embeddings": TABLE}}
    count = (2 if mode is None else 1) + len(given)
    found = run(rows, both, [IDS, *given], [("b", i) for i in range(count)])
    zero = {"zero_output_for_mask": every}
    half, x = len(given) // 2, TABLE[IDS]
    forward = recurrent(kind, one, x, given[:half], COUNTS, zero)
    backward = recurrent(kind, two, x, given[half:], COUNTS, zero | {"go_backwards": True})
    a, b = (forward[0], backward[0][:, ::-1]) if every else (forward[1], backward[1])
    merged = {
        "concat": [np.concatenate([a, b], -1)],
        "sum": [a + b],
        "mul": [a * b],
        "ave": [(a + b) / 2],
        None: [a, b],
    }
    for got, want in zip(found, [*merged[mode], *forward[2], *backward[2]]):
        assert_near(got, want, "float32 sums near zero")


def test_the_other_direction_may_be_another_layer():
    one, two = arrays("LSTM"), arrays("GRU")
    forward = {"class_name": "LSTM", "config": PLAIN | {"name": "forward_l"}}
    backward = {"class_name": "GRU", "config": PLAIN | {"name": "g", "go_backwards": True}}
    options = {"layer": forward, "backward_layer": backward, "merge_mode": "sum"}
    rows = [start("x", (T, C)), layer("Bidirectional", "b", ["x"], options)]
    weights = {"b": stored(one, "b/forward_l/cell") | stored(two, "b/g/cell")}
    (found,) = run(rows, weights, [X], [("b", 0)])
    want = recurrent("LSTM", one, X)[1] + recurrent("GRU", two, X, None, None, {"go_backwards": True})[1]
    assert_near(found, want, "float32 sums near zero")


def test_a_layer_sees_each_step_as_a_sample():
    images = RNG.normal(size=(N, T, 4, 3, 2)).astype("f4")
    kernel, wide = normal(2, 2, 2, 3), normal(3, 5)
    conv = {
        "class_name": "Conv2D",
        "config": {"name": "c", "kernel_size": [2, 2], "strides": [1, 1], "padding": "valid"},
    }
    inner = {"class_name": "Sequential", "config": {"name": "m", "layers": [
        {"class_name": "InputLayer", "config": {"name": "in", "batch_shape": [None, 3, 2, 3]}},
        {"class_name": "GlobalMaxPooling2D", "config": {"name": "p"}},
        {"class_name": "Dense", "config": {"name": "d", "use_bias": False}},
    ]}}  # fmt: skip
    rows = [
        start("x", (T, 4, 3, 2)),
        layer("TimeDistributed", "t", ["x"], {"layer": conv}),
        layer("TimeDistributed", "u", ["t"], {"layer": inner}),
    ]
    weights = {"t": {"t/c/kernel": kernel}, "u": {"u/m/d/kernel": wide}}
    (found,) = run(rows, weights, [np.moveaxis(images, -1, 1)], [("u", 0)])
    seen = np.lib.stride_tricks.sliding_window_view(images, (2, 2), (2, 3))
    want = np.einsum("ntpqcrs,rsck->ntpqk", seen, kernel).max((2, 3)) @ wide
    assert_near(found, want, "float32 sums near zero")


@pytest.mark.parametrize("zero", [None, False, True])
@pytest.mark.parametrize("every", [False, True])
def test_both_directions_put_zeros_where_told_or_where_all_steps_are_returned(every, zero):
    one, two = arrays("GRU"), arrays("GRU")
    config = PLAIN | {"name": "g", "return_sequences": every}
    config |= {} if zero is None else {"zero_output_for_mask": zero}
    rows = masked_rows(layer("Bidirectional", "b", ["e"], {"layer": {"class_name": "GRU", "config": config}}))
    both = stored(one, "b/forward_g/cell") | stored(two, "b/backward_g/cell")
    (found,) = run(rows, WEIGHTS | {"b": both}, [IDS, OTHER], [("b", 0)])
    options = {"zero_output_for_mask": zero or every}
    a = recurrent("GRU", one, E, None, COUNTS, options)
    b = recurrent("GRU", two, E, None, COUNTS, options | {"go_backwards": True})
    want = np.concatenate([a[0], b[0][:, ::-1]] if every else [a[1], b[1]], -1)
    assert_near(found, want, "float32 sums near zero")


@pytest.mark.parametrize("turned", [False, True])
def test_both_directions_read_states_and_a_mask_that_have_names(turned):
    """Of a layer that goes backwards itself, the other one goes forwards."""
    one, two = arrays("LSTM"), arrays("LSTM")
    given = [normal(N, UNITS) for _ in range(4)]
    names = [f"s{i}" for i in range(4)]
    config = PLAIN | {"name": "g", "go_backwards": turned, "return_state": True}
    named = {"initial_state": [[name, 0, 0] for name in names], "mask": ["m", 0, 0]}
    rows = [start("x", (T, C)), *(start(name, (UNITS,)) for name in names), start("m", (T,), "bool")]
    rows.append(layer("Bidirectional", "b", ["x"], {"layer": {"class_name": "LSTM", "config": config}}, named))
    both = stored(one, "b/forward_g/cell") | stored(two, "b/backward_g/cell")
    found = run(rows, {"b": both}, [X, *given, COUNTS], [("b", i) for i in range(5)])
    a = recurrent("LSTM", one, X, given[:2], COUNTS, {"go_backwards": turned})
    b = recurrent("LSTM", two, X, given[2:], COUNTS, {"go_backwards": not turned})
    for got, want in zip(found, [np.concatenate([a[1], b[1]], -1), *a[2], *b[2]], strict=True):
        assert_near(got, want, "float32 sums near zero")


@pytest.mark.parametrize(("one", "other"), [("LSTM", "GRU"), ("GRU", "LSTM"), ("SimpleRNN", "LSTM")])
def test_each_direction_has_the_states_of_its_kind(one, other):
    a, b = arrays(one), arrays(other)
    forward = {"class_name": one, "config": PLAIN | {"name": "forward_l", "return_state": True}}
    backward = {"class_name": other, "config": PLAIN | {"name": "g", "go_backwards": True, "return_state": True}}
    options = {"layer": forward, "backward_layer": backward, "merge_mode": None}
    rows = [start("x", (T, C)), layer("Bidirectional", "b", ["x"], options)]
    weights = {"b": stored(a, "b/forward_l/cell") | stored(b, "b/g/cell")}
    found = run(rows, weights, [X], [("b", i) for i in range(2 + STATES[one] + STATES[other])])
    first = recurrent(one, a, X)
    second = recurrent(other, b, X, None, None, {"go_backwards": True})
    for got, want in zip(found, [first[1], second[1], *first[2], *second[2]], strict=True):
        assert_near(got, want, "float32 sums near zero")


@pytest.mark.parametrize("kind", GATES)
def test_a_mask_that_has_a_name_comes_before_that_of_the_steps(kind):
    """States that follow the sequence have masks of their own, which nothing reads."""
    w, given = arrays(kind), [normal(N, UNITS) for _ in range(STATES[kind])]
    names = [f"s{i}" for i in range(STATES[kind])]
    mask = RNG.random((N, T)) > 0.4
    rows = [start("k", (T,), "bool"), *(start(name, (UNITS,)) for name in names)]
    rows = masked_rows(*rows, layer(kind, "l", ["e", *names], PLAIN, {"mask": ["k", 0, 0]}))
    rows.append(layer(kind, "m", ["g", *names], PLAIN))
    found = run(
        rows, WEIGHTS | dict.fromkeys("lm", stored(w, "cell")), [IDS, OTHER, mask, *given], [("l", 0), ("m", 0)]
    )
    assert_near(found[0], recurrent(kind, w, E, given, mask)[1], "float32 sums near zero")
    assert_near(found[1], recurrent(kind, w, F, given)[1], "float32 sums near zero")


@pytest.mark.parametrize("steps", [1, 2, 4])
@pytest.mark.parametrize("states", [False, True])
def test_a_sequence_of_any_length_begins_with_its_own_first_step(steps, states):
    """Of one step, forward and backward are the same; so are all steps and the last one."""
    x = X[:, :steps]
    for kind in GATES:
        w, given = arrays(kind), [normal(N, UNITS) for _ in range(STATES[kind])]
        names = [f"s{i}" for i in range(STATES[kind])] if states else []
        rows = [start("x", (steps, C)), *(start(name, (UNITS,)) for name in names)]
        for name, options in (("f", {}), ("b", {"go_backwards": True})):
            rows.append(layer(kind, name, ["x", *names], PLAIN | options | {"return_sequences": True}))
        weights = dict.fromkeys("fb", stored(w, "cell"))
        found = run(rows, weights, [x, *(given if states else [])], [("f", 0), ("b", 0)])
        for got, options in zip(found, ({}, {"go_backwards": True}), strict=True):
            want = recurrent(kind, w, x, given if states else None, None, options)[0]
            assert_near(got, want, "float32 sums near zero")
        assert (steps == 1) == np.array_equal(found[0], found[1])
