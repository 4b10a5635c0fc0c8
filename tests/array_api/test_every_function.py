"""Every function of the namespace gives what NumPy's gives, with its defaults and with each of its options."""

import inspect

import numpy as np
import pytest

from cgraph import array_api as xp
from cgraph.array_api import values
from cgraph.function import compile
from cgraph.storage.function_cache import FunctionCache
from tests.numpy.test_other_operands import with_other_numbers
from tests.support.tolerance import assert_close

OPERANDS = {
    "x": np.array([[3, -1, 2], [0, 3, -2]]),
    "y": np.array([[1, 2, 2], [3, 1, 2]]),
    "z": np.array([[2, 0, 1], [1, 1, 2], [0, 3, 1]]),
    "row": np.array([1, 2, 4]),
    "indices": np.array([1, 0, 1]),
    "places": np.array([[1, 0, 2], [0, 0, 1]]),
    "mask": np.array([[True, False, True], [False, False, True]]),
}
# calls of the functions that take more than operands
CALLS = """
all(mask) all(mask,axis=1) all(mask,keepdims=True) any(mask) any(mask,axis=0) any(mask,keepdims=True) argmax(x)
argmax(x,axis=1) argmax(x,keepdims=True) argmin(x) argmin(x,axis=0) argmin(x,axis=1,keepdims=True) count_nonzero(x)
count_nonzero(x,axis=0) count_nonzero(x,axis=1,keepdims=True) max(x) max(x,axis=0) max(x,keepdims=True) min(x)
min(x,axis=1) min(x,keepdims=True) mean(f) mean(f,axis=0) mean(f,axis=1,keepdims=True) prod(x) prod(x,axis=1)
prod(x,dtype=xp.float64) prod(x,keepdims=True) sum(x) sum(x,axis=1) sum(x,dtype=xp.float64) sum(x,keepdims=True)
std(f) std(f,axis=1) std(f,correction=1) std(f,keepdims=True) var(f) var(f,axis=0) var(f,correction=1.5)
var(f,keepdims=True) cumulative_prod(row) cumulative_prod(y,axis=1,include_initial=True)
cumulative_prod(row,dtype=xp.float32) cumulative_sum(row) cumulative_sum(x,axis=0,include_initial=True)
cumulative_sum(row,dtype=xp.float32) diff(x) diff(x,axis=0) diff(x,n=2) diff(x,prepend=y) diff(x,append=y) tril(z)
tril(z,k=-1) triu(z) triu(z,k=1) broadcast_to(row,(2,3)) concat([x,y]) concat([x,y],axis=1) concat([x,y],axis=None)
stack([x,y]) stack([x,y],axis=2) expand_dims(x,axis=0) expand_dims(x,axis=1) flip(x) flip(x,axis=1) moveaxis(x,0,1)
permute_dims(x,(1,0)) repeat(x,2) repeat(x,2,axis=0) reshape(x,(3,2)) reshape(x,(6,),copy=True) roll(x,1)
roll(x,1,axis=0) squeeze(x[:1],0) tile(x,(1,2)) unstack(x) unstack(x,axis=1) take(row,indices) take(x,indices,axis=0)
take_along_axis(x,places) take_along_axis(x,places[1:],axis=0) searchsorted(row,y) searchsorted(row,y,side="right")
isin(x,row) isin(x,row,invert=True) tensordot(z,z) tensordot(x,z,axes=1) tensordot(x,y,axes=([0],[0])) vecdot(x,y)
vecdot(x,y,axis=0) matmul(x,z) arange(4) arange(2,5) arange(0,6,2) arange(3,dtype=xp.float32) argsort(x)
argsort(x,axis=0) sort(x) sort(x,axis=0) asarray(x) asarray([1,2]) asarray(x,dtype=xp.float32) asarray(x,copy=True)
astype(x,xp.float32) astype(x,xp.int64,copy=False) broadcast_arrays(x,row) clip(x,min=0) clip(x,0,2) clip(x,max=1)
eye(2) eye(2,3) eye(2,3,k=1) eye(2,dtype=xp.int32) from_dlpack(x) full((2,),3) full((2,),3.0) full((2,),True)
full((2,),3,dtype=xp.int8) full_like(x,2) full_like(x,2,dtype=xp.int8) linspace(0,1,3) linspace(0,1,4,endpoint=False)
linspace(1,4,4,dtype=xp.float32) linspace(1,3,1) meshgrid(row,indices) meshgrid(row,indices,indexing="ij") nonzero(x)
ones((2,)) ones((2,),dtype=xp.int8) ones_like(x) ones_like(x,dtype=xp.int8) zeros((2,)) zeros((2,),dtype=xp.int8)
zeros_like(x) zeros_like(x,dtype=xp.int8) where(mask,x,y) where(mask,x,7) where(mask,7,y) can_cast(xp.int8,xp.int16)
can_cast(xp.int16,xp.int8) can_cast(x,xp.int8) result_type(xp.int8,xp.int16) result_type(x,xp.float32)
isdtype(xp.int8,"integral") isdtype(xp.int8,"bool") isdtype(xp.int8,("bool","integral")) unique_all(x)
unique_counts(x) unique_inverse(x) unique_values(x) matrix_transpose(x) empty((2,)).shape
empty((2,),dtype=xp.int8).dtype empty_like(x).shape empty_like(x,dtype=xp.int8).dtype float(finfo(xp.float32).eps)
float(finfo(xp.float64).max) finfo(xp.complex64).bits iinfo(xp.int8).max iinfo(xp.int16).min iinfo(xp.uint16).bits
""".split()
KINDS = ("int64", "float64", "complex128")
ORDERED = {"greater", "greater_equal", "less", "less_equal", "maximum", "minimum"}  # of real numbers


def functions(*operands: str) -> list[str]:
    """The functions of the namespace whose parameters are these operands and no others."""
    namespace = {name: getattr(xp, name) for name in xp.__all__}
    plain = {name: f for name, f in namespace.items() if callable(f) and not isinstance(f, type)}
    return [name for name, f in plain.items() if tuple(inspect.signature(f).parameters) == operands]


def same(got: object, want: object) -> None:
    if isinstance(want, tuple | list):
        assert len(got) == len(want)
        for x, y in zip(got, want):
            same(x, y)
    elif isinstance(want, np.ndarray | np.generic):
        assert got.shape == want.shape and got.dtype == want.dtype
        assert_close(np.asarray(got), want)
    else:
        assert got == want


def evaluated(namespace: object, call: str) -> object:
    operands = OPERANDS | {"f": OPERANDS["x"] / 4}
    return eval(
        call,
        {**vars(namespace), "xp": namespace, "float": float, **{k: namespace.asarray(v) for k, v in operands.items()}},
    )


@pytest.mark.parametrize("call", CALLS)
def test_a_call_gives_what_numpys_gives(call):
    same(evaluated(xp, call), evaluated(np, call))


def test_other_numbers_give_what_numpys_give(monkeypatch):
    """Each number and bool of the calls replaced in turn; values by the reference engine, for the sake of time."""
    monkeypatch.setattr(
        values, "compile", lambda outputs, inputs, threads: compile(outputs, inputs, engine="reference")
    )
    monkeypatch.setattr(values, "FUNCTIONS", FunctionCache(1000, 1 << 20))
    monkeypatch.setattr(values, "nbytes_of", lambda function: 1)
    others = dict.fromkeys(other for call in CALLS for other in with_other_numbers(call))
    assert len(others) > 200
    for call in others:
        try:
            want = evaluated(np, call)
        except (TypeError, ValueError, IndexError):
            with pytest.raises((TypeError, ValueError, IndexError)):
                force(evaluated(xp, call))
            continue
        same(evaluated(xp, call), want)


def force(found: object) -> None:
    for x in found if isinstance(found, tuple | list) else [found]:
        np.asarray(x)


def test_every_function_is_called():
    called = {name for call in CALLS for name in call.split("(") if name.isidentifier()} | {
        *functions("x"),
        *functions("x1", "x2"),
    }
    names = {name for name in xp.__all__ if callable(getattr(xp, name)) and not isinstance(getattr(xp, name), type)}
    assert names <= called


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", [*functions("x"), *functions("x1", "x2")])
def test_operands_of_each_kind_give_what_numpys_function_gives(name, kind):
    count = len(inspect.signature(getattr(xp, name)).parameters)
    if kind == "complex128" and name in ORDERED or kind == "int64" and name == "reciprocal":
        pytest.skip(f"the standard has no {name} of {kind}")
    operands = [(OPERANDS["z" if name == "matmul" else k] % 3).astype(kind) for k in ("x", "y")[:count]]
    with np.errstate(all="ignore"):
        try:
            want = getattr(np, name)(*operands)
        except TypeError:
            pytest.skip(f"NumPy's {name} has no {kind}")
        same(getattr(xp, name)(*map(xp.asarray, operands)), want)


PAIRS = {
    "second": (np.array([1.5, 2.0]), np.array([2 + 1j, 3 - 1j])),
    "first": (np.array([2 + 1j, 3 - 1j]), np.array([1.5, 2.0])),
    "number": (np.array([1.5, 2.0]), 2 + 1j),
}


@pytest.mark.parametrize("name", functions("x1", "x2"))
@pytest.mark.parametrize("which", PAIRS)
def test_one_of_two_operands_may_be_complex_except_where_they_are_ordered(name, which):
    operands = [xp.asarray(x) if isinstance(x, np.ndarray) else x for x in PAIRS[which]]
    if name in ORDERED:
        with pytest.raises(TypeError, match="have no order"):
            getattr(xp, name)(*operands)
        return
    try:
        want = getattr(np, name)(*PAIRS[which])
    except (TypeError, ValueError):
        pytest.skip(f"NumPy's {name} has no such operands")
    same(getattr(xp, name)(*operands), want)
