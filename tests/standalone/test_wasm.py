"""WebAssembly: the loader's tables have the function's own names, and the linker's refusals are told."""

import json
import re
import shutil

import numpy as np
import pytest

import cgraph as cg
from cgraph.errors import FormatError
from cgraph.standalone import wasm
from cgraph.standalone.interface import CValue
from cgraph.standalone.wasm import entries, linked_module, loader
from tests.support.exports import counter, exported


def table(text: str, name: str):
    return json.loads(re.search(rf"^const {name} = (.*);$", text, re.MULTILINE)[1])


def test_entries_have_kind_count_bytes_and_shape():
    values = [CValue("z", cg.Var((2, 3), "complex64").spec, None), CValue("n", cg.Var((0,), "int64").spec, None)]
    assert json.loads(entries(values)) == [
        {"name": "z", "array": "Float32Array", "count": 12, "bytes": 48, "shape": [2, 3]},
        {"name": "n", "array": "BigInt64Array", "count": 1, "bytes": 0, "shape": [0]},
    ]


def test_the_loader_has_the_tables_of_its_function():
    program = counter(machine="wasm32")
    text = loader(program)
    for name, values in (("inputs", ["x", "at"]), ("outputs", ["total", "some"]), ("state", ["mean"])):
        assert [x["name"] for x in table(text, name)] == values
    stops = {str(1 + row.label): program.labels[row.label] for row in program.rows if row.can_stop}
    assert table(text, "errors") == stops != {}
    assert "const kinds = { Float32Array, Int32Array };" in text
    assert "own.m_run(" in text and "own[`m_${x.name}`]" in text and "own.m_reset" in text
    assert not re.search(r"\b(INPUTS|OUTPUTS|STATE|ERRORS|KINDS|NAME)\b", text)


@pytest.mark.parametrize("names", [("NAME", "STATE"), ("INPUTS", "KINDS"), ("OUTPUTS", "ERRORS")])
def test_names_of_users_may_be_the_words_that_tables_replace(names):
    text = loader(counter(names, "NAME_STATE", machine="wasm32"))
    assert [x["name"] for x in table(text, "inputs")] == list(names)
    assert [x["name"] for x in table(text, "state")] == ["NAME_STATE"] and "own.m_run(" in text


def test_without_the_linker_it_is_said_what_to_install(monkeypatch):
    monkeypatch.setattr(wasm.shutil, "which", lambda name: None)
    x = cg.Var((3,), name="x")
    with pytest.raises(FormatError, match="Install LLVM's linker"):
        linked_module(b"", exported([x + 1], [x], machine="wasm32", names=["y"]))


def test_a_linker_that_fails_is_quoted():
    if shutil.which("wasm-ld") is None:
        pytest.skip("wasm-ld is not installed")
    x = cg.Var((3,), name="x")
    with pytest.raises(FormatError, match="wasm-ld failed: .*Check its version"):
        linked_module(b"no object file", exported([x + np.float32(1)], [x], machine="wasm32", names=["y"]))


@pytest.mark.parametrize("keeps_start", [False, True])
def test_the_linker_exports_run_state_and_reset(monkeypatch, keeps_start):
    """The command is looked at before it runs; a plain copy stands in for the linker."""
    commands = []

    def run(command):
        commands.append(command)
        shutil.copyfile(command[-1], command[command.index("-o") + 1])
        return 0, ""

    monkeypatch.setattr(wasm.shutil, "which", lambda name: f"/{name}")
    monkeypatch.setattr(wasm, "run_program", run)
    program = counter(machine="wasm32", keeps_start=keeps_start)
    assert linked_module(b"object", program) == b"object"
    names = {x.removeprefix("--export=") for x in commands[0] if x.startswith("--export=")}
    assert names == {"m_run", "__heap_base", "m_mean", *(["m_reset"] if keeps_start else [])}
    assert f"stack-size={wasm.STACK_BYTES}" in commands[0] and commands[0][0] == "/wasm-ld"
