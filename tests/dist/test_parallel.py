"""Training in shards on workers that are threads of this process: the bits of one machine, and what is refused."""

import json
import shutil
import subprocess
import warnings

import numpy as np
import pytest

pytest.importorskip("distributed", reason="distributed is not installed")

from distributed import Security, get_worker

import cgraph as cg
import nn
from cgraph.engine.cpu.engine import CpuEngine
from cgraph.errors import DTypeError, FormatError, InputError, MemberError, PositionError
from nn.parallel import sharded_step, targets
from nn.parallel.sharded_step import halves
from nn.parallel.worker import NAME
from nn.settings import StepSettings
from tests.dist.clusters import alone, cluster, digest, loader, network, optimiser, trained
from tests.support.patience import PATIENCE
from tests.support.stores import STORES
from tests.support.tolerance import assert_near

STEPS = 12
STEP = StepSettings(nn.losses.cross_entropy, optimiser())


@pytest.fixture(scope="module")
def three():
    with cluster(3, processes=False) as client:
        yield client


@pytest.fixture(scope="module")
def known():
    """Losses and digest of the training by hand."""
    model = network()
    return alone(model, loader(), STEPS, 8), digest(model)


def test_members_have_the_bits_of_one_machine(three, known):
    model = network()
    history = trained(three, model, epochs=3)
    np.testing.assert_array_equal(history.loss, np.float32(known[0]))
    assert digest(model) == known[1]
    assert NAME not in three.run(lambda dask_worker: list(dask_worker.plugins))


@pytest.mark.slow
@pytest.mark.parametrize("workers", [1, 2, 4, 5, 9])
def test_any_number_of_members_has_the_same_bits(workers, known):
    with cluster(workers, processes=False) as client:
        model = network()
        assert trained(client, model, epochs=3).loss.tolist() == np.float32(known[0]).tolist()
        assert digest(model) == known[1]


@pytest.mark.slow
def test_code_is_for_the_least_of_the_workers(three, monkeypatch):
    """One of three says that it runs less than the others; a factory makes the same as what travels as a folder."""
    narrow, own = min(three.scheduler_info(n_workers=-1)["workers"]), targets.own_kind()

    def said():
        try:
            is_narrow = get_worker().address == narrow
        except ValueError:  # the client
            is_narrow = False
        return own[0], "portable" if is_narrow else own[1]

    monkeypatch.setattr(targets, "own_kind", said)
    model, by_hand = network(), network()
    want = alone(by_hand, loader(), STEPS, 8, engine=CpuEngine("portable"))
    assert trained(three, model, epochs=3).loss.tolist() == np.float32(want).tolist()
    assert digest(model) == digest(by_hand)
    assert trained(three, network, loader, epochs=3).loss.tolist() == np.float32(want).tolist()


def test_who_is_of_another_architecture_or_does_not_answer_does_not_count(three):
    assert targets.least_of(("x86", "avx512"), [("x86", "avx2"), ("arm", "neon")]) == "avx2"
    assert targets.least_of(("x86", "avx2"), [("x86", "avx512")]) == "avx2"
    assert targets.kinds_of(three, 60.0) == [targets.own_kind()] * 3
    assert targets.kinds_of(three, 0.0) == []


@pytest.mark.slow
def test_callbacks_and_the_weights_of_the_best_epoch_are_those_of_nn_train(three):
    model, epochs, digests = network(), [], []
    figures = iter([2.0, 1.0, 3.0])

    def callback(epoch):
        epochs.append(epoch.epoch)
        digests.append(digest(epoch.model))
        return epoch.epoch == 3

    trained(
        three, model, epochs=9, validation=lambda: next(figures), stopping=nn.Early(9, restore=True),
        callbacks=[callback],
    )  # fmt: skip
    assert epochs == [1, 2, 3] and digest(model) == digests[1] != digests[2]


def test_one_shard_without_dropout_is_nn_train(three):
    def plain():
        return nn.initialise(nn.Sequential(nn.Input((8,)), nn.Linear(8, 16), nn.BatchNorm(16), nn.Linear(16, 3)), 1)

    one, two = plain(), plain()
    data = loader(change=jittered)
    validation = loader(64, 64).arrays
    given = {"epochs": 2, "metrics": [nn.metrics.accuracy(), nn.metrics.confusion(3)], "validation": validation}
    want = nn.train(one, data, optimiser=optimiser(), progress=False, **given)
    found = trained(three, two, data, shards=1, **given)
    assert digest(one) == digest(two)
    for name in ("loss", "rate", "checked_at", "validation"):
        np.testing.assert_array_equal(getattr(found, name), getattr(want, name))
    for name in want.metrics:
        np.testing.assert_array_equal(found.metrics[name], want.metrics[name])
        np.testing.assert_array_equal(found.validation_metrics[name], want.validation_metrics[name])


@pytest.mark.parametrize("shards", [1, 4])
def test_a_rate_that_falls_between_epochs_is_that_of_nn_train(three, shards):
    """The client changes the rate, and every worker uses it from the next epoch on."""
    rate, figures = nn.optim.Plateau(0.25, factor=0.5, patience=1), [3.0, 4.0, 2.0, 2.0, 1.0]
    plain = nn.Optimiser(nn.optim.GradientDescent(), rate)
    one, two = (nn.initialise(nn.Sequential(nn.Input((8,)), nn.Linear(8, 3)), 1) for _ in range(2))
    left, right = iter(figures), iter(figures)
    want = nn.train(one, loader(), optimiser=plain, progress=False, epochs=5, validation=lambda: next(left))
    got = trained(three, two, loader(), optimiser=plain, shards=shards, epochs=5, validation=lambda: next(right))
    np.testing.assert_array_equal(got.rate, want.rate)
    assert sorted({*got.rate.tolist()}) == [0.0625, 0.125, 0.25]
    assert_near(got.loss, want.loss, "float32 sums")
    if shards == 1:
        assert digest(one) == digest(two)


def jittered(arrays, rng):
    return arrays[0] + rng.standard_normal(arrays[0].shape).astype(np.float32) / 8, *arrays[1:]


def test_shards_together_are_close_to_the_batch():
    """Without batch norm a sum over shards differs from the batch by rounding alone."""

    def plain():
        return nn.initialise(
            nn.Sequential(nn.Input((8,)), nn.Linear(8, 16), nn.Activation("tanh"), nn.Linear(16, 3)), 1
        )

    one, two = plain(), plain()
    whole, cut = (alone(x, loader(), 4, shards) for x, shards in ((one, 1), (two, 8)))
    assert_near(whole, cut, "float32 sums")


def test_parts_of_a_loss_and_metrics_are_sums_over_shards(three):
    def loss(scores, wanted):
        return {"entropy": nn.losses.cross_entropy(scores, wanted), "size": cg.mean(cg.square(scores))}

    one_step = loader(128)
    history = trained(three, network(), one_step, loss=loss, epochs=1, metrics=[nn.metrics.accuracy()])
    assert_near(history.parts["entropy"] + history.parts["size"] + penalty_of(network()), history.loss, "float32 sums")
    assert 0 <= history.metrics["accuracy"][0] <= 1


def penalty_of(model):
    return 1e-3 * sum(float((x.value**2).sum()) for x in model.parameters().values() if x.ndim >= 2)


def test_a_training_goes_on_from_its_checkpoint_with_the_same_bits(three, known, tmp_path):
    path = tmp_path / "at.json"
    first = trained(three, network(), epochs=1.5, checkpoint=nn.Checkpoint(path, steps=3))
    assert json.loads(path.read_text())["step"] == 6 and len(first.loss) == 6
    model = network(seed=9)  # whose weights the checkpoint replaces
    history = trained(three, model, epochs=3, checkpoint=nn.Checkpoint(path, when=lambda step, loss: step == 11))
    assert json.loads(path.read_text())["step"] == 11
    np.testing.assert_array_equal(history.loss, np.float32(known[0]))
    assert digest(model) == known[1]


@pytest.mark.slow
def test_a_factory_is_called_by_each_worker(three, known):
    history = trained(three, network, loader, epochs=3)
    np.testing.assert_array_equal(history.loss, np.float32(known[0]))


@pytest.mark.parametrize("store", STORES)
def test_workers_read_samples_from_their_own_disk(three, known, tmp_path, store):
    """The order of each epoch is that of all samples, by the loader's seed, whoever reads which."""
    arrays = enumerate(loader().arrays)
    sources = [nn.DaskSamples(STORES[store](array, tmp_path / str(i), 10)) for i, array in arrays]
    history = trained(three, network(), nn.Loader(sources, 32), epochs=3)
    np.testing.assert_array_equal(history.loss, np.float32(known[0]))


def test_pieces_change_no_bit(three, known, monkeypatch):
    monkeypatch.setattr(sharded_step, "LEAST_ELEMENTS", 1)
    model = network()
    assert len(halves(model, STEP, loader().shard_at(0, 0, 8), 8).gradient.outputs) == 4
    history = trained(three, model, epochs=3)
    np.testing.assert_array_equal(history.loss, np.float32(known[0]))
    assert digest(model) == known[1]


@pytest.mark.slow
def test_what_cannot_be_saved_says_that_a_factory_can(three):
    with pytest.raises(FormatError, match="saved"):
        trained(three, network(), epochs=1, engine="reference")
    assert len(trained(three, network, epochs=1, engine="reference").loss) == 4


@pytest.mark.slow
def test_frozen_parameters_stay(three):
    model = network()
    last = dict(list(model.parameters().items())[-2:])
    before = {path: x.value for path, x in model.parameters().items()}
    trained(three, model, epochs=1, trained=last)
    for path, x in model.parameters().items():
        assert (x.value != before[path]).any() == (path in last), path


@pytest.mark.parametrize(
    ("options", "error", "text"),
    [
        ({"shards": 6}, InputError, "power of two"),
        ({"shards": 64}, InputError, "32 samples cannot be cut into 64"),
        ({"data": loader(32, 100, partial=True)}, InputError, "4 samples"),
        (
            {"loss": lambda x, y: cg.astype(nn.losses.cross_entropy(x, y), "float64"), "engine": "cpu"},
            DTypeError,
            "needs float32",
        ),
    ],
)
def test_what_does_not_fit_is_refused_before_anybody_is_asked(options, error, text):
    with pytest.raises(error, match=text):
        trained(None, network(), **options)


def test_a_class_without_a_score_is_refused():
    data = loader()
    data.arrays[1][70] = 3
    with pytest.raises(PositionError, match="class 3 has no score"):
        trained(None, network(), data, engine="cpu")


def test_an_error_of_the_users_is_raised_here_and_the_workers_are_free(three, known):
    def wrong(arrays, rng):
        raise ZeroDivisionError("mine")

    with pytest.raises(ZeroDivisionError, match="mine"):
        trained(three, network, lambda: loader(change=late(wrong)))
    model = network()
    trained(three, model, epochs=3)
    assert digest(model) == known[1]


def late(change):
    """A change that is wrong from the third step on of a process, and not when the client looks at a sample."""
    seen = []

    def changed(arrays, rng):
        seen.append(None)
        return arrays if len(seen) < 8 else change(arrays, rng)

    return changed


def test_a_loss_that_is_not_finite_stops(three):
    data = loader()
    data.arrays[0][:] = np.inf
    with pytest.raises(nn.LossError, match="step 1"):
        trained(three, network(), data)
    assert len(trained(three, network(), data, finite=False, epochs=1).loss) == 4


@pytest.mark.slow
def test_a_second_training_takes_the_cluster(three):
    """The first one says so, and does not hang."""

    def steal(step, loss):
        if step == 2:
            trained(three, network(), epochs=0.25)
        return False

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with pytest.raises(MemberError, match="another training"):
            trained(three, network(), checkpoint=nn.Checkpoint("/nowhere", when=steal), resume=False)


@pytest.mark.slow
def test_members_use_the_tls_of_the_cluster(known, tmp_path):
    program = shutil.which("openssl")
    if program is None:
        pytest.skip("openssl is not installed")
    pair = [str(tmp_path / name) for name in ("key.pem", "certificate.pem")]
    command = [program, "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost"]
    subprocess.run([*command, "-keyout", pair[0], "-out", pair[1]], check=True, capture_output=True, timeout=PATIENCE)
    roles = {
        f"tls_{role}_{kind}": x for role in ("scheduler", "worker", "client") for kind, x in zip(("key", "cert"), pair)
    }
    security = Security(tls_ca_file=pair[1], require_encryption=True, **roles)
    with cluster(4, processes=False, security=security, protocol="tls://") as client:
        assert all(x.startswith("tls://") for x in client.scheduler_info(n_workers=-1)["workers"])
        model = network()
        trained(client, model, epochs=3)
    assert digest(model) == known[1]


def test_names_that_clash_are_refused():
    class Odd(nn.Layer):
        step: nn.Linear = None

        def __post_init__(self):
            self.hold(step=nn.Parameter((8, 3)))

        def build(self, *xs, mode):
            return xs[0] @ self.step

    model = nn.initialise(Odd(), 0)
    with pytest.raises(InputError, match="'step'"):
        halves(model, StepSettings(nn.losses.cross_entropy, optimiser()), loader().at(0), 1)
