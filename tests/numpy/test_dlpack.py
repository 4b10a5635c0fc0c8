"""Arrays of other libraries: read where they lie, never converted without a word."""

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
    for given in (np.zeros((2, 3)), Tensor(np.zeros((2, 3)))):
        with pytest.raises(InputError, match="float64.*convert it first"):
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
