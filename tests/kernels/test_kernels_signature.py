"""Signatures: what does not fit is refused by name, lists have as many words as their items, calls are read back."""

from types import NoneType, SimpleNamespace

import numpy as np
import pytest

from cgraph.kernels.activation.calls import RELU
from cgraph.kernels.expression import Trace
from cgraph.kernels.families import signature_of
from cgraph.kernels.gemm.matmul_calls import matmul_calls, matmul_nbytes
from cgraph.kernels.gemm.signature import TILE
from cgraph.kernels.kernel import Call, Kernel, Pointer, View
from cgraph.kernels.move.calls import copy_calls
from cgraph.kernels.move.signature import FILLS
from cgraph.kernels.pointwise.calls import pointwise_calls
from cgraph.kernels.reduce.calls import reduce_calls, reduce_nbytes
from cgraph.kernels.signature import Signature, Words, types_of
from cgraph.kernels.softmax.signature import ROWS
from cgraph.kernels.sort.calls import sort_calls, sort_nbytes
from cgraph.kernels.stencil.calls import stencil_calls, sweep_of
from cgraph.kernels.target import host_target
from tests.support.images import workspace
from tests.support.kernels import view_of

HOST = host_target()


def fill_args():
    out = np.zeros(8)
    (call,) = copy_calls(HOST, view_of(out), View(Pointer(np.ones(1)), (8,), (0,), "f8"))
    return FILLS.named(call.kernel.params, call.args)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"block": None}, "argument block is None, it needs the kind i8"),
        ({"block": 1.0}, "argument block is 1.0, it needs the kind i8"),
        ({"block": np.int64(1)}, "argument block is .*, it needs the kind i8"),
        ({"block": Pointer("arena")}, "argument block is Pointer.*, it needs the kind i8"),
        ({"out": 0}, r"argument out is 0, it needs the kind u1\*"),
        ({"out": None}, r"argument out is None, it needs the kind u1\*"),
        ({"colums": 5}, r"^move.fills\(out, x, .*\) does not take colums"),
        ({"axes": (1,)}, "argument axes has 1 words, it needs 3"),
        ({"axes": (1, 2.0, 3)}, r"argument axes\[1\] is 2.0, it needs the kind i8"),
    ],
)
def test_an_argument_that_does_not_fit_is_refused_by_name(changes, message):
    with pytest.raises(TypeError, match=f"move.fills.*{message}" if message[0] != "^" else message):
        FILLS.call((8, False), 1, **(fill_args() | changes))


def test_a_missing_argument_and_a_wrong_number_of_params_are_refused():
    args = fill_args()
    del args["rows"]
    with pytest.raises(TypeError, match=r"move.fills\(.*\) needs rows"):
        FILLS.call((8, False), 1, **args)
    with pytest.raises(TypeError, match=r"move.fills takes the params \(itemsize, stream\), the call has \(8,\)"):
        FILLS.call((8,), 1, **fill_args())


def test_an_integer_is_not_a_float_and_an_address_may_be_absent_only_where_it_says_so():
    a, b, out = np.ones((40, 40)), np.ones((40, 40)), np.zeros((40, 40))
    calls = matmul_calls(HOST, view_of(out), view_of(a), view_of(b), activation=RELU, workspace=workspace(1 << 19))
    params = calls[-1].kernel.params
    args = TILE.named(params, calls[-1].args)
    assert args["bias"] is None
    with pytest.raises(TypeError, match="gemm.tile: argument low is 0, it needs the kind f8"):
        TILE.call(params, 1, **(args | {"low": 0}))
    with pytest.raises(TypeError, match=r"gemm.tile: argument a is None, it needs the kind dtype\*"):
        TILE.call(params, 1, **(args | {"a": None}))
    with pytest.raises(TypeError, match="softmax.rows: argument x is None, it needs the kind address"):
        ROWS.call(
            ("softmax", "f4", "vv"), 1,
            rows=1, each=1, columns=1, rank=1, x=None, x_step=4, out=Pointer(out), out_step=4, axes=(1, 4, 4),
        )  # fmt: skip


def some_calls():
    """Calls with lists of every kind."""
    m = Trace()
    double = m.program(m.mul(m.load(0, "f4"), m.const(2.0, "f4")))
    m = Trace()
    same = m.program(m.load(0, "f4"))
    x = np.ones((12, 300, 40), "f4")
    out = np.zeros_like(x)
    yield from copy_calls(HOST, view_of(np.zeros((48, 300, 40), "f4")), view_of(np.ones((40, 300, 48), "f4").T))
    yield from copy_calls(HOST, view_of(out[:, :, ::2]), view_of(x[:, :, 1::2]))
    yield from pointwise_calls(HOST, double, view_of(out[:, ::3]), view_of(x[:, ::3]))
    for axes in ((0,), (1,), (2,), (0, 1, 2)):
        kept = np.zeros([n for a, n in enumerate(x.shape) if a not in axes], "f4")
        room = workspace(reduce_nbytes("sum", "f4", x.shape, axes))
        yield from reduce_calls(HOST, "sum", same, view_of(kept), view_of(x), axes=axes, workspace=room)
    room = workspace(sort_nbytes(host_target(), x.shape, 1, "f4", "i8"))
    yield from sort_calls(host_target(), view_of(out), view_of(np.zeros(x.shape, "i8")), view_of(x), 1, room)
    sweep = sweep_of((10, 300, 40), 4, [(1, 0, 0)])
    yield from stencil_calls(double, sweep, view_of(x[1:-1]), [view_of(x[2:])], workspace(sweep.nbytes))
    a, c = view_of(np.ones((64, 32), "f4")), view_of(np.zeros((64, 64), "f4"))
    b = view_of(np.ones((64, 32), "f4").T)
    yield from matmul_calls(HOST, c, a, b, workspace=workspace(matmul_nbytes(HOST, c, a, b)))


def test_the_arguments_of_a_call_have_the_names_under_which_they_were_given():
    families = set()
    for call in some_calls():
        family = signature_of(call.kernel.family)
        again = family.call(call.kernel.params, call.tasks, call.chunk, **family.named(call.kernel.params, call.args))
        assert again == call
        families.add(call.kernel.family)
    assert families >= {"move.tiles", "move.strided", "pointwise.pointwise", "reduce.along", "reduce.across"}
    assert families >= {"sort.rows", "stencil.sweep", "stencil.finish", "gemm.tile"}


OWN = Signature(
    "tests.own",
    ("dtype", "count"),
    {
        "n": "i8",
        "pairs": Words(("f4*", "f8"), lambda a: a.n * a.count),
        "scale": "f8",
        "more": Words(("i8",), lambda a: a.n),
        "last": "address?",
    },
)
AT = Pointer("arena", 8)


def own_args(**changes):
    return {"n": 2, "pairs": [AT, 1.0] * 6, "scale": 0.5, "more": (7, 8), "last": None} | changes


def test_lists_are_flattened_in_their_place_and_counted_by_params_and_arguments():
    call = OWN.call(("f4", 3), 10, 4, **own_args())
    assert call == Call(Kernel("tests.own", ("f4", 3)), (2, *[AT, 1.0] * 6, 0.5, 7, 8, 0), 10, 4)
    assert OWN.named(("f4", 3), call.args) == own_args(pairs=(AT, 1.0) * 6)
    assert OWN.call(("f4", 3), 1, **own_args(last=AT)).args[-1] == AT
    assert OWN.call(("f4", 3), 1, **own_args(n=0, pairs=[], more=())).args == (0, 0.5, 0)
    assert OWN.call(("f4", 3), 5, **own_args()).chunk == 1
    assert OWN.lists == ("pairs", "more")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"pairs": [AT, 1.0] * 5}, "argument pairs has 10 words, it needs 12"),
        ({"pairs": [AT, 1.0] * 5 + [1.0, AT]}, r"argument pairs\[10\] is 1.0, it needs the kind f4\*"),
        ({"more": (7, 8, 9)}, "argument more has 3 words, it needs 2"),
        ({"more": 7}, "argument more is 7, it needs the kind list"),
        ({"scale": 1}, "argument scale is 1, it needs the kind f8"),
        ({"last": 0}, r"argument last is 0, it needs the kind address\?"),
    ],
)
def test_a_list_that_does_not_fit_is_refused_with_its_word(changes, message):
    with pytest.raises(TypeError, match=f"^tests.own: {message}$"):
        OWN.call(("f4", 3), 1, **own_args(**changes))


def test_missing_and_unknown_arguments_are_told_together():
    args = own_args(other=1)
    del args["scale"]
    with pytest.raises(TypeError, match=r"^tests.own\(n, pairs, scale, more, last\) needs scale, does not take other$"):
        OWN.call(("f4", 3), 1, **args)


def test_an_absent_address_is_none_when_read_back_and_a_zero_of_another_kind_is_not():
    named = OWN.named(("f4", 1), (0, 0.0, 0))
    assert named == {"n": 0, "pairs": (), "scale": 0.0, "more": (), "last": None}
    assert OWN.scope(("f4", 1), {"n": 3}) == SimpleNamespace(dtype="f4", count=1, n=3)


@pytest.mark.parametrize(
    ("kind", "types"),
    [("i8", int), ("f8", float), ("f4*", Pointer), ("dtype*", Pointer), ("address", Pointer)]
    + [("address?", (Pointer, NoneType)), (Words(("i8",), lambda _: 1), (list, tuple))],
)
def test_a_kind_has_its_python_types(kind, types):
    assert types_of(kind) == types


def test_all_that_is_missing_and_all_that_is_unknown_is_told_in_order():
    args = own_args(zero=1, other=1)
    del args["scale"], args["last"]
    text = r"needs last, needs scale, does not take other, does not take zero$"
    with pytest.raises(TypeError, match=text):
        OWN.call(("f4", 3), 1, **args)
