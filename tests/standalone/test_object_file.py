"""Object files: large constants are filled in at one place, kernels are own or shared, and calls are listed."""

import llvmlite.binding as llvm
import pytest

import cgraph as cg
from cgraph.kernels.machines import machine_named
from cgraph.kernels.target import new_target_machine
from cgraph.standalone.entry import EntryWriter
from cgraph.standalone.memory import static_layout
from cgraph.standalone.object_file import SMALL, Blob, blobs_of, calls_of, object_file
from cgraph.standalone.settings import FORMS
from cgraph.standalone.word_tables import word_tables
from tests.support.exports import counter, exported


@pytest.mark.parametrize("nbytes", [1, SMALL - 1, SMALL, SMALL + 1, 3 * SMALL])
@pytest.mark.parametrize("kind", ["constant", "global"])
def test_bytes_are_written_as_text_or_filled_into_their_place(nbytes, kind):
    raw = bytes(i * 7 % 251 for i in range(nbytes))
    blob = Blob("m_constants", raw, kind)
    module = llvm.parse_assembly(blob.definition)
    module.verify()
    (variable,) = module.global_variables
    assert variable.name == "m_constants" and f" {kind} " in blob.definition and "align 64" in blob.definition
    if nbytes < SMALL:
        assert blob.fill(b"any file") == b"any file" and blob.definition.count("\\") == nbytes
        return
    assert "externally_initialized" in blob.definition and len(blob.definition) < SMALL
    hole = blob.marker + bytes(nbytes - len(blob.marker) - 1) + b"\1"
    assert blob.fill(b"head" + hole + b"tail") == b"head" + raw + b"tail"


def test_a_place_that_is_missing_repeated_or_cut_is_an_error():
    blob = Blob("m_constants", bytes(SMALL))
    hole = blob.marker + bytes(SMALL - len(blob.marker) - 1) + b"\1"
    for file in (hole + hole, hole[:-1] + b"\0"):
        with pytest.raises(RuntimeError, match="m_constants is not in one piece"):
            blob.fill(file)
    with pytest.raises(ValueError, match="not found"):
        blob.fill(b"nothing")
    assert blob.marker != Blob("m_mean", bytes(SMALL)).marker


def test_state_is_in_the_file_where_it_is_static():
    program = counter()
    assert [blob.symbol for blob in blobs_of(program, False)] == ["m_constants"]
    constants, state = blobs_of(program, True)
    assert (constants.raw, constants.kind) == (program.constants, "constant")
    assert (state.symbol, state.raw, state.kind) == ("m_mean", program.state["mean"], "global")


def test_calls_of_a_function_are_those_in_its_body():
    module = llvm.parse_assembly("""
        declare float @expf(float)
        declare void @"m.k"(ptr)
        define float @f(float %x, ptr %p) {
            %y = call float @expf(float %x)
            call void @"m.k"(ptr %p)
            ret float %y
        }
        define float @g(float %x, ptr %p) {
            %y = tail call float @f(float %x, ptr %p)
            ret float %y
        }
    """)
    calls = calls_of(module)
    assert calls["f"] == {"expf", "m.k"} and calls["g"] == {"f"} and calls["expf"] == frozenset()


def test_each_form_has_its_code_and_no_form_shows_its_kernels():
    """Optimised as a whole, for size, or with each kernel as a function of the entry."""
    row = machine_named("cortex-m7")
    machine = new_target_machine(row.target, row.generation)
    x = y = cg.Var((40,), "float32", "x")
    for i in range(6):
        y = cg.cumsum(y[::-1] * (i + 1.5), 0)
    program = exported([y], [x], names=["y"])
    tables = word_tables([program], row.bits)
    entry = EntryWriter(program, static_layout(), row.bits, word_tables=tables).text()
    made = {form: object_file(program, entry, machine, row.target, form, True, tables) for form in FORMS[:3]}
    nbytes = {form: len(x.raw) for form, x in made.items()}
    assert nbytes["small"] < nbytes["whole"] and len(set(nbytes.values())) == 3, nbytes
    assert "m_k0" in made["shared"].calls["m_run"]
    for form, x in made.items():
        assert "m_run" in x.calls and not any(name.startswith("m_k") for name in x.externals), form
        assert ".globl\tm_k0" not in x.assembly and ".globl\tm_run" in x.assembly, form
    alone = object_file(program, "", machine, row.target, "c", True, ())
    assert ".globl\tm_k0" in alone.assembly and "m_run" not in alone.calls, "C code calls the kernels"
