"""Models of nn on bytes: as right as their floats, with published weights where they are at hand."""

import numpy as np
import pytest

import cgraph as cg
import nn
from cgraph.errors import GraphError, InputError
from cgraph.formats.onnx import load
from cgraph.formats.torch_file import read_torch
from nn.models.torch_names import resnet_arrays
from tests.nn.test_targets import DEVIATION, MEAN, cifar10
from tests.support.data import shared


def test_a_model_becomes_bytes_and_a_file(tmp_path, capsys):
    model = nn.Sequential(nn.Input((12,)), nn.Linear(12, 20), nn.Activation("relu"), nn.Linear(20, 5))
    nn.initialise(model, 0)
    samples = np.random.default_rng(0).standard_normal((21, 12)).astype("float32")
    small = nn.quantise(model, samples, np.zeros(21, int), batch=4)
    assert capsys.readouterr() == ("", "")
    got, want = small(samples), nn.compile(model)(samples)
    assert got.shape == (21, 5) and (got.argmax(1) == want.argmax(1)).mean() > 0.8
    assert small.report.layers == 2 and small.report.float_right is not None
    small.save(tmp_path / "q.onnx")
    np.testing.assert_array_equal(load(tmp_path / "q.onnx").compile()(samples[:4])[0], got[:4])
    skipped = nn.quantise(model, samples, skip=("parts.1.weight",), progress=False)
    assert skipped.report.skipped == ("parts.1.weight",)


def test_other_samples_are_refused():
    model = nn.initialise(nn.Sequential(nn.Input((12,)), nn.Linear(12, 20)), 0)
    for samples, batch, text in (
        (np.ones((3, 11), "float32"), 1, "input 0"),
        (np.ones((3, 12), "float32"), 4, "at least one sample"),
        ((np.ones((3, 12), "float32"),) * 2, 1, "1 inputs, not 2"),
        (np.ones((3, 12), "float32"), 0, "batch is 0"),
    ):
        with pytest.raises(InputError, match=text):
            nn.quantise(model, samples, batch=batch)


@pytest.mark.slow
@pytest.mark.parametrize("method", ["minmax", "percentile", "entropy"])
def test_resnet20_on_bytes_is_as_right_as_its_floats(method):
    model = nn.models.resnet20(None)
    arrays = read_torch(shared("resnet_cifar10/resnet20-12fca82f.th"))
    nn.set_values(model, resnet_arrays(arrays, model, "state_dict.module."))
    found, wanted = cifar10()
    pictures = ((found / 255 - np.float32(MEAN)) / np.float32(DEVIATION)).transpose(0, 3, 1, 2)
    some = np.random.default_rng(0).permutation(len(pictures))[:200]
    small = nn.quantise(model, pictures[some], wanted[some], batch=20, method=method, progress=False)
    assert (small(pictures).argmax(1) == wanted).mean() >= 0.804 - 0.005
    assert small.report.weights[1] < 0.27 * small.report.weights[0]
    assert small.report.plan[1] < 0.3 * small.report.plan[0]


class Both(nn.Layer):
    """The product of each of two inputs, by name, by position, or the sum."""

    form: type
    first: nn.Linear = None
    second: nn.Linear = None

    def __post_init__(self):
        self.hold(first=nn.Linear(3, 4), second=nn.Linear(5, 2))

    def build(self, *xs, mode):
        results = {"one": self.first(xs[0], mode=mode), "other": self.second(xs[1], mode=mode)}
        return results if self.form is dict else tuple(results.values())


@pytest.mark.parametrize("form", [dict, tuple])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_each_of_several_inputs_and_results_is_that_of_the_float_model(form, dtype):
    """float64 is NumPy's default; the model computes in float32."""
    model = nn.initialise(Both(form), 0)
    x, y = (np.random.default_rng(n).uniform(-1, 1, (9, n)).astype(dtype) for n in (3, 5))
    small = nn.quantise(model, (x, y), batch=2, progress=False, compiled={"engine": "reference"})
    floats = nn.compile(model, 2, [nn.Sample((3,)), nn.Sample((5,))])
    assert [v.shape for v in small.function.inputs] == [(2, 3), (2, 5)] and small.report.layers == 2
    found, want = small(x, y), floats(x, y)
    assert found.names == want.names and [v.shape for v in found] == [(9, 4), (9, 2)]
    for one, other in zip(found, want):
        assert 0 < np.abs(one - other).max() < 0.05 and one.dtype == np.float32
    if form is dict:
        assert found["other"] is found[1]


def test_samples_and_labels_after_the_last_complete_batch_do_not_count():
    model = nn.initialise(nn.Linear(3, 2), 0)
    x = np.random.default_rng(0).uniform(-1, 1, (7, 3)).astype("f4")
    right = nn.compile(model, samples=[nn.Sample((3,))])(x).argmax(1)
    labels = np.where(np.arange(7) < 6, right, 1 - right)
    wild = np.concatenate([x[:6], 1e6 * x[6:]])
    small = nn.quantise(model, wild, labels, batch=3, progress=False)
    assert small.report.float_right == 1.0
    np.testing.assert_array_equal(small(x), nn.quantise(model, x[:6], batch=3, progress=False)(x))


def test_compiled_options_reach_the_function(monkeypatch):
    calls, compiled = [], cg.compile

    def recorded(*args, **options):
        calls.append(options)
        return compiled(*args, **options)

    monkeypatch.setattr(cg, "compile", recorded)
    nn.quantise(nn.initialise(nn.Linear(3, 2)), np.ones((2, 3)), progress=False, compiled={"passes": False})
    assert calls == [{"passes": False}]


@pytest.mark.parametrize(
    ("progress", "is_told"), [({}, True), ({"progress": True}, True), ({"progress": False}, False)]
)
def test_the_quantiser_gets_whole_batches_their_labels_and_its_options(progress, is_told, monkeypatch):
    calls = []

    def noted(*args, **options):
        calls.append((args, options))
        raise GraphError("enough")

    monkeypatch.setattr(cg.quantiser, "quantise", noted)
    model, x = nn.initialise(nn.Linear(3, 2), 0), np.arange(21, dtype="f4").reshape(7, 3)
    with pytest.raises(GraphError, match="enough"):
        nn.quantise(model, x, np.arange(7), batch=3, method="entropy", skip=("a",), **progress)
    (((_, (given,), runs, labels), options),) = calls
    assert given.shape == (3, 3) and labels.tolist() == [0, 1, 2, 3, 4, 5]
    np.testing.assert_array_equal([rows for (rows,) in runs], [x[:3], x[3:6]])
    assert isinstance(options.pop("tell", None), cg.quantiser.Bars) == is_told
    assert options == {"method": "entropy", "skip": ("a",)}


@pytest.mark.parametrize("shorter", [0, 1])
def test_complete_batches_are_those_that_all_inputs_have(shorter, monkeypatch):
    runs = []
    monkeypatch.setattr(cg.quantiser, "quantise", lambda outputs, inputs, given, *rest, **options: runs.extend(given))
    arrays = tuple(np.ones((6 - 3 * (i == shorter), n), "f4") for i, n in enumerate((3, 5)))
    with pytest.raises(AttributeError):  # since quantise returns None
        nn.quantise(nn.initialise(Both(tuple), 0), arrays, batch=2, progress=False)
    assert [[x.shape for x in run] for run in runs] == [[(2, 3), (2, 5)]]


def test_inputs_have_the_dtype_of_the_samples():
    model = nn.initialise(nn.Sequential(nn.Embedding(9, 3), nn.Linear(3, 2)), 0)
    small = nn.quantise(model, np.arange(9), progress=False, compiled={"engine": "reference"})
    assert small.samples == (nn.Sample((), "int64"),) and small(np.arange(9)).shape == (9, 2)
