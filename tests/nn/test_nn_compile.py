"""nn.compile: batches of any size, several inputs and outputs, frozen weights, and what a Predictor refuses."""

import numpy as np
import pytest

import cgraph as cg
import nn
from cgraph.errors import InputError, UnassignedError
from nn.compile import fitting, samples_of
from tests.nn.support import assert_close, draw, run


def test_compiled_inference_does_not_drop_out():
    model = nn.Sequential(nn.Input((1000,)), nn.Dropout(0.5), nn.GaussianNoise(1.0), nn.AlphaDropout(0.5))
    x = np.ones((3, 1000), np.float32)
    np.testing.assert_array_equal(nn.compile(model, batch=2)(x), x)


def test_a_model_without_weights_says_so():
    with pytest.raises(UnassignedError, match=r"such as parts\.1\.weight\. Call nn\.initialise"):
        nn.compile(nn.models.mlp(None, (6, 4, 2)))


@pytest.mark.parametrize("count", [0, 1, 3, 8, 9, 21])
def test_compiled_inference_takes_any_number_of_samples(count):
    model = nn.models.mlp(0, (6, 4, 2))
    x = draw(count, 6)
    got = nn.compile(model, batch=8)(x)
    assert got.shape == (count, 2)
    if count:
        assert_close(got, run(model, x))


def test_compiled_inference_of_several_inputs_and_outputs():
    model = nn.Branches((nn.Add(), nn.Mul()))
    predict = nn.compile(model, batch=4, samples=[nn.Sample((3,)), nn.Sample((3,))])
    x, y = draw(7, 3), draw(7, 3, seed=1)
    total, product = predict(x, y)
    assert_close(total, x + y)
    assert_close(product, x * y)
    with pytest.raises(cg.InputError, match="7, 6 samples"):
        predict(x, y[:6])
    with pytest.raises(cg.InputError, match="takes 2 inputs"):
        predict(x)
    with pytest.raises(cg.InputError, match=r"float32\[7, 2\], the model takes float32\[any,3\]"):
        predict(x, y[:, :2].copy())


def test_frozen_inference_keeps_its_weights_and_live_inference_follows():
    model = nn.models.mlp(0, (6, 2))
    x = draw(2, 6)
    frozen, live = nn.compile(model), nn.compile(model, frozen=False)
    before = frozen(x)
    model.parameters()["parts.1.bias"].assign([1.0, 1.0])
    np.testing.assert_array_equal(frozen(x), before)
    assert_close(live(x), before + 1)


def test_freezing_keeps_shared_layers_shared():
    shared = nn.initialise(nn.Linear(4, 4), 0)
    frozen = nn.freeze(nn.Sequential(shared, shared))
    assert frozen.parts[0] is frozen.parts[1]
    assert not frozen.variables()


DOUBLE = nn.Lambda(lambda x: x * 2)


def test_rows_of_padding_do_not_come_back():
    """A mean over the batch sees them, which shows that the last batch is padded with zeros."""
    mean = nn.Lambda(lambda x: x + cg.mean(x, axis=0, keepdims=True))
    predict = nn.compile(mean, batch=2, samples=[nn.Sample((1,))])
    np.testing.assert_array_equal(predict([[2], [4], [8]]), [[5], [7], [12]])
    assert predict.batch == 2 and predict.function.inputs[0].shape == (2, 1)


def test_one_sample_at_a_time_is_the_default():
    predict = nn.compile(DOUBLE, samples=[nn.Sample((3,))])
    assert predict.batch == 1 and predict.samples == (nn.Sample((3,)),)


def test_a_tuple_of_one_result_stays_a_list_and_names_of_a_dictionary_are_found():
    samples = [nn.Sample((2,))]
    (only,) = nn.compile(nn.Lambda(lambda x: (x * 2,)), samples=samples)([[1, 2]])
    np.testing.assert_array_equal(only, [[2, 4]])
    results = nn.compile(nn.Lambda(lambda x: {"less": x - 1, "more": x + 1}), samples=samples)([[1, 2]])
    np.testing.assert_array_equal(results["less"], [[0, 1]])
    np.testing.assert_array_equal(results["more"], [[2, 3]])


def test_samples_of_the_call_replace_those_of_the_model():
    model = nn.Input((3,))
    assert samples_of(model, None) == (nn.Sample((3,)),)
    assert samples_of(model, [nn.Sample((4,))]) == [nn.Sample((4,))]
    with pytest.raises(InputError) as error:
        samples_of(model, [])
    assert str(error.value) == "samples is empty. Pass one nn.Sample for each input of the model."
    with pytest.raises(InputError) as error:
        samples_of(DOUBLE, None)
    assert str(error.value) == "the model does not say what a sample is. Pass samples=[nn.Sample(shape)]."


def test_arrays_take_the_dtype_of_the_sample_where_that_loses_no_number():
    sample = nn.Sample((2,))
    assert fitting([[1, 2]], sample, 0).dtype == np.float32
    assert fitting(np.ones((3, 2)), sample, 0).dtype == np.float32
    whole = nn.Sample((2,), "int32")
    assert fitting([[1, 2]], whole, 0).dtype == np.int32
    with pytest.raises(InputError, match="input 1 expects"):
        fitting(np.ones((3, 2), np.float32), whole, 1)


@pytest.mark.parametrize(("array", "shape"), [(1.0, "[]"), ([1, 2], "[2]"), ([[1, 2, 3]], "[1, 3]")])
def test_an_array_of_another_shape_is_named_with_the_shape_of_a_sample(array, shape):
    with pytest.raises(InputError) as error:
        fitting(array, nn.Sample((2,)), 3)
    assert str(error.value) == f"input 3 is float32{shape}, the model takes float32[any,2]. Reshape or cast it."


def test_a_sample_without_axes_takes_a_row_of_numbers():
    np.testing.assert_array_equal(nn.compile(DOUBLE, 2, [nn.Sample(())])([1, 2, 3]), [2, 4, 6])
    with pytest.raises(InputError, match=r"input 0 is float32\[\]"):
        fitting(1.0, nn.Sample(()), 0)


def test_results_of_dask_come_one_or_several_as_those_of_a_call():
    array = pytest.importorskip("dask.array", reason="dask is not installed")
    x = draw(6, 2)
    blocks = array.from_array(x, chunks=(3, 2))
    one = nn.compile(DOUBLE, 3, [nn.Sample((2,))]).map_batches(blocks)
    np.testing.assert_array_equal(one.compute(), x * 2)
    first, second = nn.compile(nn.Lambda(lambda x: (x, x * 2)), 3, [nn.Sample((2,))]).map_batches(blocks)
    np.testing.assert_array_equal(second.compute(), x * 2)
    np.testing.assert_array_equal(first.compute(), x)


def test_a_name_of_the_function_is_named_on_its_predictor():
    predictor = nn.compile(nn.initialise(nn.Sequential(nn.Input((2,)), nn.Linear(2, 1))))
    with pytest.raises(AttributeError, match="Predictor has no attribute 'save'; use .function.save"):
        predictor.save("folder")
    assert not hasattr(predictor, "zzz")


@pytest.mark.parametrize(("options", "threads"), [({}, 1), ({"threads": 3}, 3)])
def test_blocks_are_computed_by_the_function_with_as_many_threads_as_it_is_told(options, threads, monkeypatch):
    calls = []
    monkeypatch.setattr(
        cg.dist, "map_batches", lambda *args, **named: calls.append((args, named)) or ["first", "second"]
    )
    predict = nn.compile(nn.Add(), samples=[nn.Sample((2,))] * 2, engine="reference")
    assert predict.map_batches("a", "b", **options) == "first"
    assert calls == [((predict.function, "a", "b"), {"threads": threads})]


def test_constants_stay_when_a_parameter_is_assigned_anew_and_all_parameters_need_values():
    model = nn.initialise(nn.Sequential(nn.Linear(2, 2), nn.BatchNorm(2)), 0)
    before = [x.value for x in model.variables().values()]
    frozen = nn.freeze(model)
    for x in model.variables().values():
        x.assign(x.value + 1)
    constants = [frozen.parts[0].weight, frozen.parts[0].bias]
    constants += [getattr(frozen.parts[1], name) for name in ("scale", "shift", "mean", "variance")]
    for constant, array in zip(constants, before, strict=True):
        np.testing.assert_array_equal(constant.op.array, array)
    with pytest.raises(UnassignedError, match="no value"):
        nn.freeze(nn.Sequential(nn.Linear(2, 2)))


@pytest.mark.parametrize("longer", range(3))
def test_any_of_three_inputs_may_be_the_one_of_another_length(longer):
    predict = nn.compile(nn.Add(), 2, [nn.Sample((1,))] * 3, engine="reference")
    counts = [4 + (i == longer) for i in range(3)]
    with pytest.raises(InputError, match=f"the inputs have {', '.join(map(str, counts))} samples. Pass as many"):
        predict(*(np.zeros((n, 1), "f4") for n in counts))
    assert predict(*[np.ones((4, 1), "f4")] * 3).tolist() == [[3]] * 4


def test_constants_share_the_bytes_of_the_parameters():
    model = nn.initialise(nn.Linear(8, 8), 0)
    frozen = nn.freeze(model)
    for name in ("weight", "bias"):
        assert np.shares_memory(getattr(frozen, name).op.array, getattr(model, name).cell.array)
