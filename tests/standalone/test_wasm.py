"""WebAssembly: the loader's tables have the function's own names, and the linker's refusals are told."""

import json
import re
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

import cgraph as cg
from cgraph.errors import FormatError
from cgraph.standalone import wasm
from cgraph.standalone.interface import CValue
from cgraph.standalone.wasm import entries, linked_module, loader
from tests.support.exported import require
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
    text = loader([program])
    runs = table(text, "runs")
    assert list(runs) == ["run"] and "model.run({" in text
    values = (runs["run"]["inputs"], runs["run"]["outputs"], table(text, "state"))
    assert [[x["name"] for x in own] for own in values] == [["x", "at"], ["total", "some"], ["mean"]]
    stops = {str(1 + row.label): program.labels[row.label] for row in program.rows if row.can_stop}
    assert table(text, "errors") == stops != {}
    assert "const kinds = { Float32Array, Int32Array };" in text
    assert "own[`m_${name}`](" in text and "own[`m_${x.name}`]" in text and "own.m_reset" in text
    assert not re.search(r"\b(RUNS|STATE|ERRORS|KINDS|FIRST|NAME)\b", text)


@pytest.mark.parametrize("names", [("NAME", "STATE"), ("RUNS", "KINDS"), ("FIRST", "ERRORS")])
def test_names_of_users_may_be_the_words_that_tables_replace(names):
    text = loader([counter(names, "NAME_STATE", machine="wasm32")])
    assert [x["name"] for x in table(text, "runs")["run"]["inputs"]] == list(names)
    assert [x["name"] for x in table(text, "state")] == ["NAME_STATE"] and "own[`m_${name}`](" in text


def test_without_the_linker_it_is_said_what_to_install(monkeypatch):
    monkeypatch.setattr(wasm.shutil, "which", lambda name: None)
    x = cg.Var((3,), name="x")
    with pytest.raises(FormatError, match="Install LLVM's linker"):
        linked_module(b"", [exported([x + 1], [x], machine="wasm32", names=["y"])])


def test_a_linker_that_fails_is_quoted():
    if shutil.which("wasm-ld") is None:
        pytest.skip("wasm-ld is not installed")
    x = cg.Var((3,), name="x")
    with pytest.raises(FormatError, match="wasm-ld failed: .*Check its version"):
        linked_module(b"no object file", [exported([x + np.float32(1)], [x], machine="wasm32", names=["y"])])


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
    assert linked_module(b"object", [program]) == b"object"
    names = {x.removeprefix("--export=") for x in commands[0] if x.startswith("--export=")}
    assert names == {"m_run", "__heap_base", "m_mean", *(["m_reset"] if keeps_start else [])}
    assert f"stack-size={wasm.STACK_BYTES}" in commands[0] and commands[0][0] == "/wasm-ld"


NODE = """
import { readFileSync } from "fs";
import { load } from "./m/m.mjs";
const model = await load(readFileSync("m/m.wasm"));
const says = (work) => { try { work(); return "nothing"; } catch (error) { return error.message; } };
const texts = [
  Object.keys(model).filter((x) => x.startsWith("run")).join(),
  [model.inputs === undefined, model.run_3.inputs[0].shape, model.run_70000.outputs[0].count].join(),
  [...model.run_3({ x: [1, 2, 3], at: [2] }).picked].join(),
  says(() => model.run_3({ x: [1, 2, 3], at: [3] })),
  [...model.run_70000({ x: new Float32Array(70000).fill(2), at: [69999] }).total].join(),
  says(() => model.run_70000({ x: [1], at: [0] })),
  says(() => model.run_3({ y: [1] })),
  says(() => model.run_3({ x: [1, 2, 3] })),
  [...model.state.total()].join(),
];
model.reset();
console.log(JSON.stringify([...texts, [...model.state.total()].join()]));
"""


def test_the_loader_of_several_sizes_has_a_function_for_each(tmp_path):
    """Inputs of the larger size lie past the memory that the module begins with."""
    require("wasm-ld", "lld")
    require("node", "nodejs")
    total = cg.Var((), "float32", "total").assign(1)

    def build(sizes):
        x, at = cg.Var((sizes["n"],), "float32", "x"), cg.Var((1,), "int32", "at")
        new = total + cg.sum(x)
        return [new, cg.take(x, at, axis=0)], [x, at], {total: new}

    sizes = [{"n": 3}, {"n": 70000}]
    cg.export_sizes(build, sizes, tmp_path / "m", target="wasm32", names=["total", "picked"], reset=True)
    (tmp_path / "test.mjs").write_text(NODE)
    done = subprocess.run(["node", "test.mjs"], cwd=tmp_path, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    runs, facts, picked, index, total_text, more, unknown, missing, state, start = json.loads(done.stdout)
    assert (runs, facts, picked, total_text) == ("run_3,run_70000", "true,3,1", "3", "140007")
    assert "take" in index and "test_wasm.py" in index and index.endswith("an index is outside its axis")
    assert more == "input x has 4 bytes, it needs 280000"
    assert (unknown, missing) == ("there is no input y", "input at is missing")
    assert (state, start) == ("140007", "1")


@pytest.mark.parametrize(("says", "text"), [(" no such file\n", "no such file"), ("x" * 600, "x" * 500), ("", "")])
def test_what_the_linker_says_is_quoted_and_cut_and_its_files_are_removed(says, text, monkeypatch):
    folders = []

    def run(command):
        folders.append(Path(command[-1]).parent)
        assert folders[0].is_dir() and Path(command[-1]).read_bytes() == b"object"
        return 1, says

    monkeypatch.setattr(wasm.shutil, "which", lambda name: f"/{name}")
    monkeypatch.setattr(wasm, "run_program", run)
    with pytest.raises(FormatError) as refused:
        linked_module(b"object", [counter(machine="wasm32")])
    assert str(refused.value) == f"wasm-ld failed: {text}. Check its version"
    assert not folders[0].exists()
