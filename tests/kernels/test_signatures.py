"""Signatures: both sides of a call name the same arguments, and what does not fit is refused by name."""

import inspect
import re
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest

import cgraph as cg
import cgraph.kernels as kernels
from cgraph.kernels.activation.calls import RELU
from cgraph.kernels.expression import Trace
from cgraph.kernels.families import place_of, signature_of, text_of
from cgraph.kernels.gemm.matmul_calls import matmul_calls, matmul_nbytes
from cgraph.kernels.gemm.signature import TILE
from cgraph.kernels.kernel import Kernel, Pointer, View
from cgraph.kernels.move.calls import copy_calls
from cgraph.kernels.move.signature import FILLS
from cgraph.kernels.pointwise.calls import pointwise_calls
from cgraph.kernels.reduce.calls import reduce_calls, reduce_nbytes
from cgraph.kernels.signature import Signature, Words
from cgraph.kernels.softmax.signature import ROWS
from cgraph.kernels.sort.calls import sort_calls, sort_nbytes
from cgraph.kernels.stencil.calls import stencil_calls, sweep_of
from cgraph.kernels.target import host_target
from tests.support.images import workspace
from tests.support.kernels import view_of

FOLDER = Path(kernels.__path__[0])
MODULES = sorted(f"cgraph.kernels.{p.parent.name}.{p.stem}" for p in FOLDER.glob("*/*signature.py"))
FAMILIES = [found for name in MODULES for found in vars(import_module(name)).values() if isinstance(found, Signature)]
HOST = host_target()
every_family = pytest.mark.parametrize("family", FAMILIES, ids=lambda x: x.family)


def emitter_of(family: Signature):
    module, name = place_of(family.family, "emit")
    return getattr(import_module(module), name)


@every_family
def test_a_signature_stands_where_its_family_says_and_names_the_emitters_params(family):
    assert signature_of(family.family) is family
    _, *params = inspect.signature(emitter_of(family)).parameters.values()
    if [x.kind for x in params] == [inspect.Parameter.VAR_POSITIONAL]:
        module = import_module(place_of(family.family, "emit")[0])
        assert module.Tile._fields == family.params
    else:
        assert tuple(x.name for x in params) == family.params
    assert not set(family.params) & set(family.args)


@every_family
def test_the_kinds_of_arguments_are_known_ones(family):
    kinds = [k for kind in family.args.values() for k in (kind.kinds if isinstance(kind, Words) else (kind,))]
    for kind in kinds:
        is_pointer = kind.endswith("*") and (kind[:-1] in family.params or np.dtype(kind[:-1]))
        assert is_pointer or kind in ("i8", "f8", "address", "address?"), kind


def test_every_emitter_that_reads_arguments_has_a_signature():
    """Emitters take a Builder and the params of a kernel; the interpreter and the reader have types of their own."""
    emitters = [path for path in FOLDER.rglob("*.py") if path.name != "compile.py"]  # whose docstring says k.args()
    reading = [path for path in emitters if "k.args()" in path.read_text()]
    assert reading
    assert all(path.with_name(path.name.replace("emit", "signature")).exists() for path in reading)
    by_hand = {path.parent.name for path in emitters if "function.args[0]" in path.read_text()}
    assert by_hand <= {"llvm", "interpret", "ring"}


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


def test_a_call_is_shown_with_the_names_of_its_params_and_arguments():
    call = FILLS.call((4, False), 3, **fill_args())
    text = text_of(call.kernel, ["arena+64", "constant0+0", *call.args[2:]])
    assert text.startswith("move.fills(itemsize=4 stream=False) out=arena+64 x=constant0+0 columns=8 ")
    assert text.endswith(" rank=1 axes=[1 0 0]")
    words = [*(f"x{i}" for i in range(6)), 5, 3, 0.5, int(np.array(-1.0).view(np.int64))]
    assert " share=0.5 least=-1.0" in text_of(Kernel("boxes.suppress", ("f4", False)), words)


def test_the_code_of_a_function_is_shown_with_the_names_of_its_arguments():
    x = cg.Var((40, 30), name="x")
    text = cg.compile(cg.sum(x @ np.ones((30, 20), "f4"), axis=0), [x]).program.code.text()
    for line in text.splitlines():
        family = signature_of(re.search(r": (\w+\.\w+)\(", line)[1])
        assert all(f" {name}=" in line for name in family.args)
