"""Programs of exported functions: constants once and aligned, numbers that several programs share, refusals."""

from types import SimpleNamespace

import numpy as np
import pytest

import cgraph as cg
from cgraph.errors import FormatError
from cgraph.kernels.kernel import Callback, Kernel
from cgraph.standalone.program import ExportRow, check_code, joined, labels_of, placed_constants, shared_rows
from tests.support.exports import exported


@pytest.mark.parametrize(("first", "second", "alignment", "start"), [
    (1, 63, 64, 8), (1, 64, 64, 64), (1, 65, 64, 64), (1, 64, 8, 8), (8, 8, 64, 8), (9, 63, 64, 16), (64, 64, 64, 64),
    (65, 64, 8, 72), (65, 63, 64, 72), (0, 5, 64, 0),
])  # fmt: skip
def test_constants_begin_at_a_word_and_those_of_64_bytes_at_the_alignment(first, second, alignment, start):
    arrays = np.full(first, 1, "u1"), np.full(second, 2, "u1")
    raw, starts = joined([*zip("ab", arrays)], alignment)
    assert starts == {"a": 0, "b": start}
    assert raw == arrays[0].tobytes() + bytes(start - first) + arrays[1].tobytes()


def test_equal_bytes_are_stored_once_and_each_array_has_its_place():
    x = np.arange(20, dtype="f4")
    arrays = [x, x + 1, x[::-1][::-1], np.asfortranarray(x.reshape(4, 5)), x.reshape(4, 5).T, x.view("i4"), x[:19]]
    raw, starts = joined([*enumerate(arrays)])
    assert [starts[i] for i in range(7)] == [0, 128, 0, 0, 256, 0, 384] and len(raw) == 384 + 76
    for i, array in enumerate(arrays):
        assert raw[starts[i] : starts[i] + array.nbytes] == np.ascontiguousarray(array).tobytes()


def test_constants_lie_as_rows_first_read_them_before_vars_and_the_start_of_the_state():
    late, early, weight, start = (np.random.default_rng(i).random(40, np.float32) for i in range(4))
    last = cg.Const(late)
    x, w, v = (cg.Var((40,), "float32", name) for name in "xwv")
    w.assign(weight), v.assign(start)
    y = cg.cumsum(cg.cumsum(x * early, 0) * last, 0) * w
    program = exported([y], [x], {v: v + y}, keeps_start=True, names=["y"])
    places = [program.constants.index(array.tobytes()) for array in (early, late, weight, start)]
    assert places == sorted(places) and program.start_state == {"v": places[3]}
    assert program.state == {"v": start.tobytes()}
    without = exported([y], [x], {v: v + y}, names=["y"])
    assert start.tobytes() not in without.constants and without.start_state == {}


def test_constants_of_several_functions_come_in_the_order_of_their_first_addresses():
    arrays = [np.full(3, i, "u1") for i in range(5)]

    def code(constants, reads):
        symbols = [SimpleNamespace(kind="constant", number=i) for i in range(len(constants))]
        relocations = [SimpleNamespace(symbol=s, positions=np.array(reads[s.number])) for s in symbols]
        other = SimpleNamespace(symbol=SimpleNamespace(kind="arena", number=0), positions=np.array([0]))
        return SimpleNamespace(constants=constants, relocations=[other, *relocations], views={})

    codes = [code(arrays[:3], [[9, 5], [7, 2], [4]]), code(arrays[2:4], [[8], [1]])]
    nothing = SimpleNamespace(state=())
    raw, starts = placed_constants([SimpleNamespace(cells=())] * 2, codes, [nothing] * 2, [b"\7" * 9], 64)
    assert [raw[i] for i in range(0, 40, 8)] == [1, 2, 0, 3, 7]
    assert [starts[id(x)] for x in arrays[:4]] == [16, 0, 8, 24]


PLAIN, LAPACK, PYTHON = Kernel("conv.direct"), Kernel("lapack.eigh"), Callback(print, False, (), 0)


def code_of(*kernels, ring=None, again=None):
    """A code with one row for each kernel; the first row calls the last one."""
    n = len(kernels)
    return SimpleNamespace(
        kernels=kernels, table=np.array([[n - 1 - i, 0, 1, 1] for i in range(n)]), label_of=np.arange(n),
        labels=tuple(f"row {i}" for i in range(n)), ring=ring, again=again,
    )  # fmt: skip


@pytest.mark.parametrize(("code", "says"), [
    (code_of(PLAIN, PYTHON, PLAIN), "row 1: a Python function cannot be exported. Write the step with ops of cgraph"),
    (code_of(PLAIN, PLAIN, LAPACK), "row 0: LAPACK cannot be exported. Use inv, solve, det or cholesky"),
    (code_of(PYTHON, LAPACK, PYTHON), "row 0, row 2: a Python function cannot be exported"),
    (code_of(PLAIN, ring=0), "weights from a file and streamed rows cannot be exported"),
    (code_of(PLAIN, again=0), "Compile without weights= and rows="),
])  # fmt: skip
def test_steps_without_machine_code_are_named(code, says):
    with pytest.raises(FormatError) as refused:
        check_code(code)
    assert says in str(refused.value)


def test_kernels_alone_are_accepted_and_at_most_five_labels_are_named_each_once():
    check_code(code_of(PLAIN, PLAIN))
    code = code_of(*[PYTHON] * 7)
    assert labels_of(code, [*range(7)]) == "row 0, row 1, row 2, row 3, row 4"
    assert labels_of(code, [6, 4]) == "row 0, row 2"
    code.label_of = np.array([3, 3, 3, 3, 1, 1, 1])
    assert labels_of(code, [*range(7)]) == "row 1, row 3"


def test_rows_of_several_programs_have_the_numbers_that_all_share_and_those_of_one_stay():
    a, b, c = (Kernel(f"kernel.{name}") for name in "abc")
    code = SimpleNamespace(compiled_kernels=[c, a], labels=("y", "x", "y"))
    rows = [ExportRow(k, (), 1, 1, i, False) for i, k in enumerate((0, 1, -1))]

    def numbers(kernels, labels):
        return [(row.kernel, row.label) for row in shared_rows(rows, code, kernels, labels)]

    assert numbers([a, b, c], ("x", "z", "y")) == [(2, 2), (0, 0), (-1, 2)]
    assert numbers([c, a], code.labels) == [(0, 0), (1, 1), (-1, 2)]
    assert numbers([c, a], ["y", "x", "y"]) == [(0, 0), (1, 1), (-1, 0)], "the first of equal labels"
