"""Arrays as users have them: a Var of an array, float64 for float32 by one rule, scalars, and words for what fails."""

import re

import numpy as np
import pytest
import scipy.special

import cgraph as cg
import nn
from cgraph.errors import InputError, NoMeaningError, ShapeError
from cgraph.storage.cell import assign_all

WIDE = np.array([0.1, -1 / 3, 1e-60, np.inf, np.nan])
NARROW = WIDE.astype("f4")


# -- a Var of an array -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("array", [
    np.ones(3), np.arange(6).reshape(2, 3), np.zeros((2, 0), "f4"), np.array(2.5), np.float64(1.5), np.array([True]),
    np.array([1 + 2j]),
])  # fmt: skip
def test_a_var_of_an_array_has_its_shape_dtype_and_value(array):
    x = cg.Var(array, name="x")
    assert (x.shape, x.dtype, x.name) == (np.shape(array), array.dtype, "x")
    np.testing.assert_array_equal(x.value, array)


def test_a_var_of_an_array_keeps_its_own_copy_and_takes_another_dtype():
    array = np.ones(3)
    x, y = cg.Var(array), cg.Var(array, "float32")
    array[:] = 2
    assert x.value.tolist() == y.value.tolist() == [1, 1, 1] and y.dtype == "float32"


def test_arrays_of_other_libraries_are_values_too():
    torch = pytest.importorskip("torch")
    x = cg.Var(torch.arange(3))
    assert x.value.tolist() == [0, 1, 2] and x.dtype == "int64"


@pytest.mark.parametrize("shape", [3, (3,), [3], np.int64(3), (np.int64(3),), [np.int32(3)]])
def test_integers_are_a_shape(shape):
    assert cg.Var(shape).shape == (3,) and not cg.Var(shape).is_assigned


@pytest.mark.parametrize("values", [[1.5, 2.5], [1.0, 2.0], (0.5,), [[1, 2], [3, 4]]])
def test_a_list_of_values_is_not_a_shape(values):
    with pytest.raises(
        ShapeError, match=r"is not a shape of integers. For a Var of these values pass np.array\(values\)"
    ):
        cg.Var(values)


@pytest.mark.parametrize("shape", [1.5, (2, 1.5), "ab", None, {}])
def test_a_fraction_is_nowhere_a_length(shape):
    with pytest.raises(ShapeError):
        cg.Var(shape)
    if shape:
        with pytest.raises(cg.CgraphError):
            cg.zeros(shape)


# -- float64 for float32 -----------------------------------------------------------------------------------------------


def ways() -> dict:
    """Every way in which an array becomes the value of a float32 input ``[5]``, and what then holds it."""
    x, v = cg.Var((5,), name="x"), cg.Var((5,), name="v")
    f = cg.compile(x * 1, [x])
    sized = cg.compile_sizes(lambda sizes: (x * 1, [x]), {"x": ("n",)})

    def assigned(a):
        return v.assign(a).value

    def together(a):
        assign_all({v: a})
        return v.value

    class Same(nn.Layer):
        def build(self, x, mode):
            return x * 1

    predict = nn.compile(Same(), samples=[nn.Sample((5,))])
    return {
        "call": f, "dictionary": lambda a: f({"x": a}), "run": lambda a: f.run(None, {"x": a})[0], "sizes": sized,
        "assign": assigned, "assign_all": together, "nn": lambda a: predict(a[None])[0],
    }  # fmt: skip


@pytest.mark.parametrize("name", ways())
def test_float64_is_rounded_to_float32_everywhere_and_what_does_not_fit_is_refused(name):
    take = ways()[name]
    result = take(WIDE)
    assert result.dtype == "float32"
    np.testing.assert_array_equal(result, NARROW)
    with pytest.raises(InputError, match=r"numbers beyond 3.403e\+38, the largest float32"):
        take(np.array([0, 0, 0, 0, 1e39]))
    for other in (np.arange(5), np.ones(5, "f2"), np.ones(5, "c16"), np.ones(5, "i4")):
        with pytest.raises(InputError, match=r"Convert it with .astype\('float32'\)"):
            take(other)


def test_training_on_float64_samples_is_training_on_them_in_float32():
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(16, 3)), rng.normal(size=(16, 2))
    losses = []
    for dtype in ("f8", "f4"):
        model = nn.initialise(nn.Linear(3, 2), 0)
        data = nn.Loader((x.astype(dtype), y.astype(dtype)), batch=4)
        arrays = (x.astype(dtype), y.astype(dtype))
        history = nn.train(model, data, nn.losses.l2, epochs=2, validation=arrays, progress=False)
        losses.append((history.loss.tolist(), history.validation.tolist()))
    assert losses[0] == losses[1]


def test_complex128_is_rounded_to_complex64_and_other_dtypes_stay():
    z, d = cg.Var((1,), "complex64", "z"), cg.Var((1,), "float64", "d")
    assert z.assign(np.array([1 / 3 + 1j])).value.dtype == "complex64"
    with pytest.raises(InputError, match="Convert it with"):
        d.assign(np.ones(1, "f4"))
    with pytest.raises(InputError, match="Convert it with"):
        cg.Var((5,)).assign(WIDE, copy=False)


def test_a_wrong_shape_is_named_whatever_the_dtype():
    x = cg.Var((3,), name="x")
    with pytest.raises(InputError, match=r"x expects float32\[3\], got float64\[4\]. Reshape it"):
        cg.compile(x + 1, [x])(np.ones(4))


def test_a_refused_array_changes_nothing():
    x, v = cg.Var((2,), name="x"), cg.Var((2,), name="v").assign([1, 1])
    f = cg.compile(x + v, [x], {v: v + x})
    with pytest.raises(InputError):
        f(np.array([1.0, 1e300]))
    assert v.value.tolist() == [1, 1]


# -- scalars -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("engine", ["cpu", "reference"])
def test_results_of_rank_0_are_numpys_scalars_alone_and_among_others(engine):
    x = cg.Var((3,), name="x")
    total, count = cg.sum(x), cg.sum(x > 1)
    alone = cg.compile(total, [x], engine=engine)([1, 2, 3])
    first, row, second = cg.compile([total, x + 1, count], [x], engine=engine)([1, 2, 3])
    assert type(alone) is type(first) is np.float32 and alone == first == 6
    assert type(second) is np.int64 and second == 2 and row.shape == (3,)
    room = np.zeros((), "f4")
    assert cg.compile(total, [x], engine=engine)([1, 2, 3], out=room) is room and room == 6


# -- words -------------------------------------------------------------------------------------------------------------

X = cg.Var((2, 3), name="x")
Y = X + 1
WORDS = {
    "has no value: a node holds no data; x.eval() computes it": lambda: Y.value,
    "has no numpy: a node holds no data; x.eval() computes it": lambda: Y.numpy(),
    "use cg.stop_gradient(x)": lambda: Y.detach(),
    "use cg.Const(values) for a constant, cg.Var(array) for a variable": lambda: cg.array,
    "use np.concatenate or cg.numpy.concatenate, which take nodes": lambda: cg.concatenate,
    "the nearest is cg.softmax": lambda: cg.sofmax,
    "use cg.random_normal(key, shape)": lambda: cg.random,
    "see dir(cgraph)": lambda: cg.qqqqqq,
    "erf at": lambda: scipy.special.erf(Y),
    "use cg.erf, which takes nodes": lambda: scipy.special.erf(Y),
    "join nodes with np.stack": lambda: np.array([Y, Y]),
    "cg.where to select inside the graph, cg.while_loop for a loop, or .eval()": lambda: bool(Y),
    "is a node, not a function; f = cg.compile(node, inputs) makes one of it": lambda: Y(np.ones((2, 3))),
    "call .item() to compute the number, or use NumPy's function, np.sin for math.sin": lambda: float(Y),
}


@pytest.mark.parametrize("words", WORDS)
def test_what_nodes_do_not_do_names_what_does(words):
    with pytest.raises((cg.CgraphError, AttributeError), match=re.escape(words)):
        WORDS[words]()


def test_round_takes_nodes():
    x = cg.Var((2,), "float64", "x")
    assert cg.compile([round(x, 1), round(x)], [x])(np.array([1.26, -2.74]))[0].tolist() == [1.3, -2.7]


def test_a_node_is_no_memory_strategy():
    with pytest.raises(cg.GraphError, match="memory takes a strategy"):
        cg.compile(Y, [X], memory=Y)
    with pytest.raises(NoMeaningError):
        Y()
