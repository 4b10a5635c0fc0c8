"""Names and types as C sees them: pairs for complex numbers, bits for storage dtypes, and no name twice."""

import numpy as np
import pytest

import cgraph as cg
from cgraph.errors import FormatError
from cgraph.ir.spec import Spec
from cgraph.standalone.interface import OWN, CValue, check_vars, interface_of, present_bytes


@pytest.mark.parametrize(("dtype", "kind", "count", "nbytes"), [
    ("float32", "float", 6, 24), ("float64", "double", 6, 48), ("complex64", "float", 12, 48),
    ("complex128", "double", 12, 96), ("bool", "uint8_t", 6, 6), ("int8", "int8_t", 6, 6),
    ("uint16", "uint16_t", 6, 12), ("int64", "int64_t", 6, 48), ("uint64", "uint64_t", 6, 48),
    ("float16", "uint16_t", 6, 12), ("bfloat16", "uint16_t", 6, 12), ("float8_e5m2", "uint8_t", 6, 6),
    ("uint8", "uint8_t", 6, 6), ("int16", "int16_t", 6, 12), ("int32", "int32_t", 6, 24), ("uint32", "uint32_t", 6, 24),
])  # fmt: skip
def test_values_have_the_c_type_and_count_of_their_dtype(dtype, kind, count, nbytes):
    value = CValue("x", cg.Var((2, 3), dtype).spec, None)
    assert (value.type, value.count, value.nbytes) == (kind, count, nbytes)


def test_an_empty_value_has_one_number_in_c_and_no_bytes():
    value = CValue("x", Spec((0, 3), np.dtype("f4")), None)
    assert (value.count, value.nbytes) == (1, 0) and CValue("x", Spec((), np.dtype("f4")), None).count == 1


def test_names_stay_apart():
    x, y = cg.Var((2,), name="x.1"), cg.Var((2,), name="x 1")
    f = cg.compile([x + y, x * y, x - y], [x, y])
    interface = interface_of(f, "m", ["x_1", "sum", "sum"])
    assert [v.name for v in interface.inputs] == ["x_1", "x_1_1"]
    assert [v.name for v in interface.outputs] == ["x_1_out", "sum", "sum_1"]
    assert [v.source for v in interface.inputs] == [x, y] and interface.symbol("run") == "m_run"
    for names in (["a"], ["a", "b", "c", "d"]):
        with pytest.raises(FormatError, match=f"{len(names)} names for 3 outputs"):
            interface_of(f, "m", names)


@pytest.mark.parametrize("name", [*OWN, "k0", "a12", "a0_4", "k3_1_2", "run_4", "run_16_3"])
def test_a_state_has_no_name_of_the_functions_own_parts(name):
    x, v = cg.Var((2,), name="x"), cg.Var((2,), name=name).assign(np.zeros(2))
    (state,) = interface_of(cg.compile([x + v], [x], {v: v + x}), "m").state
    assert state.name == (f"{name}_" if name == "memory" else f"{name}_state")


@pytest.mark.parametrize("name", ["k", "a", "ka0", "k0x", "mean", "run_", "run4", "run_4x", "a_4", "r", "begins"])
def test_other_names_of_a_state_stay(name):
    x, v = cg.Var((2,), name="x"), cg.Var((2,), name=name).assign(np.zeros(2))
    assert interface_of(cg.compile([x + v], [x], {v: v + x}), "m").state[0].name == name


def test_every_var_has_a_value_and_none_is_input_and_state():
    x, w, v = cg.Var((2,), name="x"), cg.Var((2,), name="w"), cg.Var((2,), name="v")
    f = cg.compile([x * w], [x], {v: x + 1})
    with pytest.raises(FormatError, match=r"w float32\[2\] has no value to export"):
        check_vars(f)
    w.assign(np.ones(2))
    with pytest.raises(FormatError, match=r"v float32\[2\] has no value to export"):
        check_vars(f)
    v.assign(np.ones(2))
    check_vars(f)
    with pytest.raises(FormatError, match=r"x float32\[2\] is an input and the target of an update"):
        check_vars(cg.compile([x * w], [x], {x: x + 1}))


def test_a_value_is_written_in_c_order():
    v = cg.Var((2, 3), name="v")
    v.assign(np.arange(6, dtype="f4").reshape(3, 2).T, copy=False)
    assert np.frombuffer(present_bytes(v), "f4").tolist() == [0, 2, 4, 1, 3, 5]


def test_names_of_several_outputs_are_their_own_unless_given():
    x, y = cg.Var((2,), name="x"), cg.Var((3,), name="y")
    f = cg.compile([x, y, x + 1], [x, y])
    own = interface_of(f, "m")
    assert len({v.name for v in (*own.inputs, *own.outputs)}) == 5
    assert [v.name for v in own.outputs[:2]] == ["x_out", "y_out"] and own.outputs[2].name.isidentifier()
    assert [v.spec.shape for v in own.outputs] == [(2,), (3,), (2,)]
    assert [v.name for v in interface_of(f, "m", ["a", "b", "c"]).outputs] == ["a", "b", "c"]


def test_state_of_other_functions_is_part_of_the_interface():
    x, v, w = cg.Var((2,), name="x"), cg.Var((2,), name="v"), cg.Var((3,), name="w")
    for each in (v, w):
        each.assign(np.zeros(each.shape))
    f = cg.compile([x + v], [x], {v: v + x})
    assert [y.source for y in interface_of(f, "m").state] == [v]
    assert [y.source for y in interface_of(f, "m", state=[w, v]).state] == [w, v]
    assert interface_of(f, "m", state=[]).state == ()
    with pytest.raises(FormatError, match=r"x float32\[2\] is an input and the target of an update"):
        check_vars(f, [w, x])
    with pytest.raises(FormatError, match=r"u float32\[1\] has no value to export"):
        check_vars(f, [v, cg.Var((1,), name="u")])
    check_vars(f, [w])
