"""Darknet's recurrent layers beside loops in NumPy: order of parameters, time steps, batches, the state of a run."""

import numpy as np
import pytest

from cgraph.errors import FormatError
from cgraph.formats import darknet
from cgraph.formats.darknet.parameters import random_array
from cgraph.ir.traverse import post_order
from tests.support.tolerance import assert_near

STEPS, BATCH, INPUTS, HIDDEN, OUTPUTS = 3, 2, 5, 4, 3
NET = f"[net]\ninputs={INPUTS}\ntime_steps={STEPS}\n"
HEADER = np.array([0, 2, 0, 0, 0], "<i4").tobytes()


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def layer_of(folder, text, sizes):
    """A model, and a function of each product: rows to rows. `sizes` are outputs and inputs in the file's order."""
    rng = np.random.default_rng(1)
    pairs = [(rng.normal(0, 0.5, n).astype("f4"), rng.normal(0, 0.5, (n, k)).astype("f4")) for n, k in sizes]
    (folder / "net.cfg").write_text(NET + text)
    (folder / "net.weights").write_bytes(HEADER + b"".join(a.tobytes() for pair in pairs for a in pair))
    model = darknet.load(folder / "net.cfg", folder / "net.weights", batch=BATCH)
    return model, [lambda x, b=b, m=m: x @ m.T + b for b, m in pairs]


def check(model, step, size):
    """Two runs equal `step` (input, state -> result, state) on each time step; the state goes on from run to run."""
    function, state = model.compile(engine="reference"), np.zeros((BATCH, size))
    for seed in range(2):
        x = np.random.default_rng(seed).standard_normal((STEPS * BATCH, INPUTS)).astype("f4")
        want = []
        for rows in x.reshape(STEPS, BATCH, INPUTS):
            result, state = step(rows, state)
            want.append(result)
        assert_near(function(x)[0], np.concatenate(want), "float32 networks")


@pytest.mark.parametrize(("option", "f"), [("activation=tanh\n", np.tanh), ("", sigmoid)])
def test_an_rnn_adds_what_comes_in_and_what_was(tmp_path, option, f):
    sizes = [(HIDDEN, INPUTS), (HIDDEN, HIDDEN), (OUTPUTS, HIDDEN)]
    model, (inner, past, outer) = layer_of(tmp_path, f"[rnn]\nhidden={HIDDEN}\noutput={OUTPUTS}\n{option}", sizes)

    def step(x, state):
        state = f(inner(x)) + f(past(state))
        return f(outer(state)), state

    check(model, step, HIDDEN)


@pytest.mark.parametrize(("option", "f"), [("", sigmoid), ("tanh=1\n", np.tanh), ("tanh=0\n", sigmoid)])
def test_a_gru_keeps_a_share_of_its_state(tmp_path, option, f):
    sizes = [(HIDDEN, HIDDEN)] * 3 + [(HIDDEN, INPUTS)] * 3
    model, (wz, wr, wh, uz, ur, uh) = layer_of(tmp_path, f"[gru]\noutput={HIDDEN}\n{option}", sizes)

    def step(x, state):
        z, r = sigmoid(uz(x) + wz(state)), sigmoid(ur(x) + wr(state))
        state = z * state + (1 - z) * f(uh(x) + wh(r * state))
        return state, state

    check(model, step, HIDDEN)


def test_each_layer_has_a_state_of_its_own_that_starts_at_zero(tmp_path):
    (tmp_path / "net.cfg").write_text(f"{NET}[gru]\noutput=4\n[rnn]\nhidden=6\noutput=2\n")
    model = darknet.load(tmp_path / "net.cfg", batch=BATCH, seed=0)
    states = {x.name: x for x in model.updates}
    assert {name: x.shape for name, x in states.items()} == {"0.gru.state": (2, 4), "1.rnn.state": (2, 6)}
    assert all(not np.any(x.value) for x in states.values())
    assert model.outputs[0].shape == (STEPS * BATCH, 2)
    taken = [x.name for x in post_order(model.outputs) if x.name.startswith("0.gru.") and "weights" in x.name]
    assert sorted(taken) == [f"0.gru.{part}.weights" for part in ("uh", "ur", "uz", "wh", "wr", "wz")]
    wz = next(x for x in post_order(model.outputs) if x.name == "0.gru.wz.weights")
    np.testing.assert_array_equal(wz.op.array, random_array(np.random.default_rng(0), (4, 4), None))


def test_more_steps_than_a_small_file_may_cost_are_refused(tmp_path):
    (tmp_path / "net.cfg").write_text("[net]\ninputs=1\ntime_steps=100000\n[gru]\noutput=1\n")
    with pytest.raises(FormatError, match=r"net.cfg: 100000 steps of \[gru\] would take 2,500,060 nodes"):
        darknet.load(tmp_path / "net.cfg")
    (tmp_path / "net.cfg").write_text("[net]\ninputs=1\n[gru]\noutput=3\n")
    with pytest.raises(FormatError, match=r"the state of \[gru\] would take 120,000,000 bytes"):
        darknet.load(tmp_path / "net.cfg", batch=5_000_000)


@pytest.mark.parametrize("kind", ["rnn", "gru"])
def test_a_layer_without_options_has_a_state_and_a_result_of_one_number_and_one_step(tmp_path, kind):
    (tmp_path / "net.cfg").write_text(f"[net]\ninputs=3\n[{kind}]\n")
    model = darknet.load(tmp_path / "net.cfg", batch=2)
    assert [x.shape for x in model.updates] == [(2, 1)] and model.outputs[0].shape == (2, 1)
