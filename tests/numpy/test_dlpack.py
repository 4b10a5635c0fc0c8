"""Arrays of other libraries: read where they lie, never converted without a word, and given back."""

import sys
from types import ModuleType

import numpy as np
import pytest

import cgraph as cg
from cgraph.errors import InputError


class Tensor:
    """Another library's array. Changes nothing; counts how often its bytes were asked for."""

    def __init__(self, array: np.ndarray, device: tuple[int, int] = (1, 0), error: Exception | None = None) -> None:
        self.array, self.device, self.error, self.exports = array, device, error, 0

    def __array__(self, dtype=None, copy=None):
        return np.array(self.array, dtype=dtype)

    def __dlpack_device__(self):
        return self.device

    def __dlpack__(self, **options):
        self.exports += 1
        if self.error:
            raise self.error
        return self.array.__dlpack__(**options)


def doubled() -> cg.Function:
    x = cg.Var((2, 3), "float32", name="x")
    return cg.compile(x * 2, [x])


def test_a_foreign_array_is_read_where_it_lies():
    tensor = Tensor(np.arange(12, dtype="float32").reshape(2, 6)[:, ::2])
    np.testing.assert_array_equal(doubled()(tensor), tensor.array * 2)
    assert tensor.exports == 1


def test_a_foreign_dtype_is_refused_as_an_ndarray_is():
    for given in (np.zeros((2, 3), "int64"), Tensor(np.zeros((2, 3), "int64"))):
        with pytest.raises(InputError, match="int64.*Convert it with"):
            doubled()(given)


def test_a_device_is_refused_with_the_way_out():
    with pytest.raises(InputError, match=r"\.cpu\(\)"):
        doubled()(Tensor(np.zeros((2, 3), "float32"), device=(2, 0)))


def test_what_the_exporter_refuses_is_said():
    tensor = Tensor(np.zeros((2, 3), "float32"), error=BufferError("it needs a gradient; use tensor.detach()"))
    with pytest.raises(InputError, match="detach"):
        doubled()(tensor)


def test_a_var_takes_foreign_arrays_too():
    x = cg.Var((3,), "float64")
    assert x.assign(Tensor(np.arange(3.0))).value.tolist() == [0, 1, 2]
    with pytest.raises(InputError):
        x.assign(Tensor(np.arange(3, dtype="int64")))


# -- results in the arrays of another library -------------------------------------------------------------------------


@pytest.fixture
def library(monkeypatch):
    """A stand-in for torch that takes what it is given by DLPack and keeps it."""
    module = ModuleType("torch")
    module.taken = []

    def from_dlpack(x):
        module.taken.append(np.from_dlpack(x))
        return module.taken[-1]

    module.from_dlpack = from_dlpack
    monkeypatch.setitem(sys.modules, "torch", module)
    return module


def test_results_are_what_the_library_made_of_them_without_a_copy(library):
    function = doubled()
    returning = function.returning("torch")
    found = returning(np.ones((2, 3), "float32"))
    assert found is library.taken[0] and found.flags.writeable and found.tolist() == [[2, 2, 2], [2, 2, 2]]
    assert type(function(np.ones((2, 3), "float32"))) is np.ndarray and len(library.taken) == 1
    assert type(returning.returning("numpy")(np.ones((2, 3), "float32"))) is np.ndarray and len(library.taken) == 1


def test_both_run_in_the_same_memory_and_count_as_one(library):
    total = cg.Var((3,), "float64", name="total")
    total.assign(np.zeros(3))
    x = cg.Var((3,), "float64", name="x")
    function = cg.compile([total + x], [x], {total: total + x})
    returning = function.returning("torch")
    returning(np.ones(3))
    function(np.ones(3))
    assert returning(np.ones(3))[0].tolist() == [3, 3, 3]
    assert returning._idle is function._idle and len(function._idle) == 1


def test_views_that_the_next_run_overwrites_are_not_given_away(library):
    with pytest.raises(InputError, match="memory that later calls overwrite"):
        doubled().returning("torch")(np.ones((2, 3), "float32"), copy=False)
    assert not library.taken


def test_what_may_not_be_written_or_runs_backwards_is_given_as_a_copy(library):
    x = cg.Var((3,), "float64", name="x")
    function = cg.compile([x, cg.flip(x), cg.Const(np.arange(3.0))], [x]).returning("torch")
    given = np.arange(3.0)
    given.flags.writeable = False
    for found, want in zip(function(given), ([0, 1, 2], [2, 1, 0], [0, 1, 2])):
        assert found.flags.writeable and all(step >= 0 for step in found.strides) and found.tolist() == want
        found[:] = 9
    assert given.tolist() == [0, 1, 2]
    assert [found.tolist() for found in function(given)] == [[0, 1, 2], [2, 1, 0], [0, 1, 2]]
    backwards = np.zeros(3)[::-1]
    assert all(step >= 0 for step in doubled_vector().returning("torch")(given, out=backwards).strides)


def doubled_vector() -> cg.Function:
    x = cg.Var((3,), "float64", name="x")
    return cg.compile(x * 2, [x])


def test_an_unaligned_array_is_read_as_it_lies():
    raw = np.zeros(3 * 8 + 1, "uint8")
    unaligned = raw[1:].view("float64")
    unaligned[:] = 1, 2, 3
    assert doubled_vector()(Tensor(unaligned)).tolist() == [2, 4, 6]


def test_libraries_that_there_are_not_are_refused(monkeypatch):
    with pytest.raises(InputError, match="'tensorflow' is not a library.* numpy, torch, jax, cupy"):
        doubled().returning("tensorflow")
    monkeypatch.setitem(sys.modules, "cupy", None)
    with pytest.raises(InputError, match="arrays of cupy cannot be returned"):
        doubled().returning("cupy")


def test_torch_gives_and_takes():
    torch = pytest.importorskip("torch")
    x = cg.Var((2, 3), "float32", name="x")
    function = cg.compile([x * 2, cg.flip(x, 0), x > 1], [x]).returning("torch")
    given = torch.arange(6, dtype=torch.float32).reshape(2, 3)
    twice, turned, larger = function(given)
    assert torch.equal(twice, given * 2) and torch.equal(turned, given.flip(0)) and torch.equal(larger, given > 1)
    twice += 1
    assert torch.equal(function(given.T.contiguous().T)[0], given * 2)
    z = cg.Var((3,), "complex64", name="z")
    numbers = torch.tensor([1 + 2j, 3, 4j])
    times = cg.compile(z * 1j, [z]).returning("torch")
    assert torch.equal(times(numbers), numbers * 1j)
    for refused, why in ((given.long(), "Convert it with"), (given.clone().requires_grad_(), "detach")):
        with pytest.raises(InputError, match=why):
            function(refused)
    with pytest.raises(InputError, match="conjugate"):
        times(numbers.conj())
    assert torch.equal(times(numbers.conj().resolve_conj()), numbers.conj() * 1j)


def test_jax_gives_and_takes():
    jnp = pytest.importorskip("jax.numpy")
    x = cg.Var((2, 3), "float32", name="x")
    function = cg.compile([x * 2, cg.flip(x, 0), x > 1], [x]).returning("jax")
    given = jnp.arange(6, dtype="float32").reshape(2, 3)
    for found, want in zip(function(given), (given * 2, given[::-1], given > 1)):
        assert isinstance(found, type(given)) and (found == want).all()
