"""Training runs: they learn, stop, resume with the same bits, and survive being killed."""

import json
import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

import nn
from cgraph.errors import FormatError, PositionError
from nn import optim
from tests.nn.support import draw
from tests.support.patience import PATIENCE
from tests.support.tolerance import assert_near


def data(count: int = 120):
    x = draw(count, 8)
    y = (x[:, 0] > 0).astype(np.int32) + (x[:, 1] > 0)
    return x, y.astype(np.int32)


def model(seed: int = 0):
    """With dropout and batch norm, so that keys and running statistics are part of the state."""
    parts = (
        nn.Linear(8, 16, use_bias=False),
        nn.BatchNorm(16),
        nn.Activation("relu"),
        nn.Dropout(0.2),
        nn.Linear(16, 3),
    )
    return nn.initialise(nn.Sequential(nn.Input((8,)), *parts), seed)


def run(network, epochs, **options):
    options = {"progress": False, "engine": "reference", **options}
    return nn.train(network, nn.Loader(data(), 20), epochs=epochs, optimiser=fast(), **options)


def fast():
    return nn.Optimiser(optim.Adam(), optim.Const(0.02))


def values(network):
    return {path: x.value for path, x in network.variables().items()}


def test_training_learns():
    network = model()
    history = run(network, 30, validation=data())
    assert history.loss[-6:].mean() < history.loss[:6].mean() / 3
    assert len(history.loss) == 180
    assert len(history.validation) == 30
    x, y = data()
    assert (nn.compile(network, 50)(x).argmax(1) == y).mean() > 0.9


def test_a_method_alone_is_an_optimiser():
    one, two = model(), model()
    given = {"epochs": 1, "progress": False, "engine": "reference"}
    first = nn.train(one, nn.Loader(data(), 20), optimiser=optim.RMSprop(), **given)
    second = nn.train(two, nn.Loader(data(), 20), optimiser=nn.Optimiser(optim.RMSprop()), **given)
    np.testing.assert_array_equal(first.loss, second.loss)


@pytest.mark.parametrize("wrong", [3, -1])
def test_a_class_without_a_score_is_refused_and_changes_no_weight(wrong):
    x, y = data()
    with pytest.raises(PositionError, match=f"class {wrong} has no score.*scores of 0 to 2"):
        run(model(), 1, validation=(x, np.full_like(y, wrong)))
    y[70] = wrong
    network = model()
    loader = nn.Loader((x, y), 120)
    before = {path: x.copy() for path, x in values(network).items()}
    with pytest.raises(PositionError):
        nn.train(network, loader, progress=False, engine="reference")
    for path, value in values(network).items():
        np.testing.assert_array_equal(value, before[path])


def test_a_loss_that_is_not_finite_stops_with_the_steps_number(tmp_path):
    x, y = data()
    x[50] = np.nan  # in step 3 of 6
    loader = nn.Loader((x, y), 20, order="given")
    given = {"epochs": 1, "progress": False, "engine": "reference"}
    saved = nn.Checkpoint(tmp_path / "run.json", steps=1)
    with pytest.raises(nn.LossError, match="the loss of step 3 is nan"):
        nn.train(model(), loader, checkpoint=saved, **given)
    assert steps_in(saved.path) == 2
    assert np.isnan(nn.train(model(), loader, finite=False, **given).loss[2:]).all()


@pytest.mark.parametrize("engine", ["reference", "cpu"])
def test_the_last_samples_are_a_smaller_batch_if_asked_for(tmp_path, engine):
    loader = nn.Loader(data(), 50, partial=True)
    assert [len(loader.at(i)[0]) for i in range(4)] == [50, 50, 20, 50]
    given = {"optimiser": fast(), "progress": False, "engine": engine}
    saved = nn.Checkpoint(tmp_path / "run.json", steps=4)
    whole, part = model(), model(seed=9)
    history = nn.train(whole, loader, epochs=2, checkpoint=saved, **given)
    np.testing.assert_array_equal(nn.train(part, loader, epochs=2, checkpoint=saved, **given).loss, history.loss)
    for path, value in values(whole).items():
        np.testing.assert_array_equal(values(part)[path], value)
    assert len(history.loss) == 6
    one, rows = model(), loader.at(2)
    steps = [nn.training_step(one, nn.losses.cross_entropy, fast(), loader.at(0), engine=engine)]
    steps.append(nn.training_step(one, nn.losses.cross_entropy, fast(), rows, state=steps[0].state, engine=engine))
    losses = [steps[i == 2](*loader.at(i))[0] for i in range(3)]
    np.testing.assert_array_equal(np.float32(losses), history.loss[:3])
    assert steps[0].state["step"].value == 3


def test_several_inputs_and_every_option_at_once():
    x, y = data()
    network = nn.initialise(nn.Sequential(nn.Concatenate(), nn.Linear(16, 3)), 0)
    optimiser = nn.Optimiser(
        optim.RMSprop(),
        optim.Cosine(0.02, 60, warmup=5),
        optim.Nesterov(0.5),
        optim.ClipL2(1.0),
        optim.Elastic(1e-4, 1e-4),
    )
    loader = nn.Loader((x, -x, y), 20)
    history = nn.train(network, loader, optimiser=optimiser, epochs=10, validation=(x, -x, y), progress=False)
    assert history.loss[-6:].mean() < history.loss[:6].mean() / 2
    assert history.validation[-1] < history.validation[0]


def parted(scores, digit, sign):
    return {"digit": nn.losses.cross_entropy(scores, digit), "sign": nn.losses.quadratic(scores[:, 0], sign)}


def test_several_targets_and_a_loss_of_parts_that_are_reported(tmp_path):
    x, y = data()
    sign = np.sign(x[:, 0])
    given = {"targets": 2, "progress": False, "engine": "reference"}
    checkpoint = nn.Checkpoint(tmp_path / "run.json", steps=1)
    network, loader = model(), nn.Loader((x, y, sign), 20)
    history = nn.train(
        network, loader, parted, fast(), epochs=3, validation=(x, y, sign), checkpoint=checkpoint, **given
    )
    assert list(history.parts) == ["digit", "sign"]
    assert_near(sum(history.parts.values()), history.loss, "float32 sums")
    assert len(history.validation) == 3 and history.validation[-1] < history.validation[0]
    longer = nn.train(model(), loader, parted, fast(), epochs=4, checkpoint=checkpoint, **given)
    np.testing.assert_array_equal(longer.parts["sign"][:18], history.parts["sign"])
    assert len(longer.parts["sign"]) == 24


def test_validation_may_be_any_function():
    found = iter([3.0, 2.0, 1.0])
    history = run(model(), 3, validation=lambda: next(found))
    assert history.validation.tolist() == [3, 2, 1]


def test_the_loss_of_each_step_is_kept():
    history = run(model(), 2)
    assert len(set(history.loss.tolist())) == 12


def test_the_compiled_step_equals_the_reference():
    one, two = model(), model()
    by_cpu, by_numpy = run(one, 1, engine="cpu"), run(two, 1)
    assert_near(by_cpu.loss, by_numpy.loss, "float32 long sums")
    for path, value in values(one).items():
        assert_near(value, values(two)[path], "float32 weights after training")


def test_two_runs_of_one_seed_have_the_same_bits():
    one, two = model(), model()
    first, second = run(one, 2), run(two, 2)
    np.testing.assert_array_equal(first.loss, second.loss)
    other = run(model(), 2, seed=1)
    assert not np.array_equal(first.loss, other.loss)


@pytest.mark.parametrize("engine", ["reference", "cpu"])
def test_a_resumed_run_has_the_bits_of_an_uninterrupted_one(tmp_path, engine):
    whole, part = model(), model()
    want = run(whole, 3, validation=data(), engine=engine)
    saved = nn.Checkpoint(tmp_path / "run.json", steps=5)
    run(part, 1.5, validation=data(), checkpoint=saved, engine=engine)  # stops after step 9, saved after step 5
    fresh = model(seed=9)
    got = run(fresh, 3, validation=data(), checkpoint=saved, engine=engine)
    np.testing.assert_array_equal(got.loss, want.loss)
    np.testing.assert_array_equal(got.validation, want.validation)
    for path, value in values(whole).items():
        np.testing.assert_array_equal(values(fresh)[path], value)


def test_resume_can_be_refused(tmp_path):
    saved = nn.Checkpoint(tmp_path / "run.json", epochs=1)
    first = run(model(), 1, checkpoint=saved)
    again = run(model(), 1, checkpoint=saved, resume=False)
    np.testing.assert_array_equal(first.loss, again.loss)


def test_checkpoints_by_steps_epochs_and_own_rule():
    assert [i for i in range(1, 13) if nn.Checkpoint("x", steps=5).due(i, 6, 0.0)] == [5, 10]
    assert [i for i in range(1, 13) if nn.Checkpoint("x", epochs=0.5).due(i, 6, 0.0)] == [3, 6, 9, 12]
    assert [i for i in range(1, 13) if nn.Checkpoint("x", when=lambda i, loss: i == 7).due(i, 6, 0.0)] == [7]


def test_training_stops_early():
    history = run(model(), 50, stopping=nn.Below(0.5))
    assert len(history.loss) < 300
    assert history.loss[-6:].mean() < 0.5
    assert nn.Early(2).stops([3, 2, 2.5, 2.1])
    assert not nn.Early(2).stops([3, 2, 2.5, 1.9])
    assert nn.Early(1, least=0.5).stops([3, 2.8])


def test_a_stopped_run_stays_stopped(tmp_path):
    saved = nn.Checkpoint(tmp_path / "run.json", epochs=1)
    first = run(model(), 50, stopping=nn.Below(0.5), checkpoint=saved)
    again = run(model(), 50, stopping=nn.Below(0.5), checkpoint=saved)
    assert len(again.loss) == len(first.loss)


def test_only_the_named_parameters_are_trained():
    network = model()
    before = values(network)
    last = {path: x for path, x in network.parameters().items() if path.startswith("parts.5")}
    run(network, 1, trained=last)
    changed = {path for path, x in values(network).items() if not np.array_equal(x, before[path])}
    assert changed == {*last, "parts.2.mean", "parts.2.variance"}


def test_loader_sees_every_sample_once_an_epoch():
    loader = nn.Loader((np.arange(10), np.arange(10)), batch=5)
    for epoch in (0, 1):
        seen = np.concatenate([loader.at(2 * epoch + i)[0] for i in range(2)])
        np.testing.assert_array_equal(np.sort(seen), np.arange(10))
    assert not np.array_equal(loader.at(0)[0], loader.at(2)[0])
    np.testing.assert_array_equal(loader.at(3)[0], loader.at(3)[1])
    np.testing.assert_array_equal(nn.Loader((np.arange(10),), 4, order="given").at(1)[0], [4, 5, 6, 7])


def test_loader_refuses_what_does_not_fit():
    with pytest.raises(ValueError, match="as many in each"):
        nn.Loader((np.arange(3), np.arange(4)))
    with pytest.raises(ValueError, match="a batch of 4 of 3"):
        nn.Loader((np.arange(3),), 4)


def test_the_history_is_drawn(tmp_path):
    pytest.importorskip("matplotlib")
    run(model(), 2, validation=data()).plot(tmp_path / "loss.png")
    assert (tmp_path / "loss.png").read_bytes()[:4] == b"\x89PNG"


def test_a_checkpoint_of_something_else_is_refused(tmp_path):
    saved = nn.Checkpoint(tmp_path / "run.json", steps=1)
    run(model(), 1, checkpoint=saved)
    arrays = {name: np.array(x) for name, x in nn.read_checkpoint(saved.path)[0].items()}
    own, state = (next(x for x in arrays if x.startswith(part)) for part in ("model/", "state/"))
    wanted = {own: own.removeprefix("model/"), state: "optimiser", "history/loss": "history", "history/rate": "history"}
    for name, message in wanted.items():
        nn.write_checkpoint(saved.path, {k: x for k, x in arrays.items() if k != name}, {"step": 6})
        with pytest.raises(FormatError, match=message):
            run(model(), 2, checkpoint=saved)
    nn.write_checkpoint(saved.path, arrays | {state: np.zeros(7, "f4")}, {"step": 6})
    with pytest.raises(FormatError, match="another optimiser"):
        run(model(), 2, checkpoint=saved)


TRAINER = """
import sys
import numpy as np
import nn
rng = np.random.default_rng(0)
x = rng.normal(size=(100, 64)).astype("float32")
model = nn.models.mlp(0, (64, 256, 256, 4))
saved = nn.Checkpoint(sys.argv[1], steps=1)
nn.train(model, nn.Loader((x, (x[:, 0] > 0).astype("int32")), 10), epochs=1000, checkpoint=saved, progress=False)
"""


@pytest.mark.slow
@pytest.mark.parametrize("pause", [0.02, 0.05, 0.11, 0.17])
def test_a_killed_run_leaves_a_whole_checkpoint(tmp_path, pause):
    path = tmp_path / "run.json"
    count = 0
    for i in range(3):
        child = subprocess.Popen([sys.executable, "-c", TRAINER, str(path)])
        waited = time.monotonic()
        while steps_in(path) <= count and time.monotonic() - waited < PATIENCE:
            assert child.poll() is None, "the run ended by itself"
            time.sleep(0.01)
        time.sleep(pause * (i + 1))
        os.kill(child.pid, signal.SIGKILL)
        child.wait()
        arrays, facts = nn.read_checkpoint(path)
        assert len(arrays["history/loss"]) == facts["step"] > count
        count = facts["step"]


def steps_in(path) -> int:
    return json.loads(path.read_text())["step"] if path.exists() else 0


def test_a_history_and_a_summary_show_themselves_in_a_notebook():
    pytest.importorskip("matplotlib")
    assert run(model(), 1)._repr_png_()[:4] == b"\x89PNG"
    table = nn.summary(model())
    assert table._repr_html_() == f"<pre>{table}</pre>"


@pytest.mark.parametrize("batch", [1, 4, 8])
def test_a_validation_computes_as_many_samples_at_once_as_a_step(batch, monkeypatch):
    calls = []
    module = sys.modules[nn.train.__module__]  # `nn.train` is the function
    monkeypatch.setattr(module, "validation_check", lambda model, settings, count: calls.append(count))
    x = np.ones((8, 3), "f4")
    nn.train(nn.initialise(nn.Linear(3, 3), 0), nn.Loader((x, x), batch), epochs=0, progress=False, engine="reference")
    assert calls == [batch]
