"""Several sizes in one object file: the bits of each size's twin, constants once, one arena, one state."""

import json
import subprocess
from pathlib import Path

import numpy as np
import pytest

import cgraph as cg
from cgraph.engine.cpu.twin import TwinEngine
from cgraph.errors import BudgetError, FormatError, InputError
from cgraph.kernels.machines import machine_named
from cgraph.kernels.target import host_target
from cgraph.standalone import export, files
from cgraph.standalone.several import graph_of, suffixes_of
from tests.support.exported import call, require, run_in_order

SIZES = [{"n": 4}, {"n": 19}, {"n": 7}]
ORDER = (1, 0, 2, 1)  # the runs of a test, which pass the state on
FORMS = [(form, memory) for form in ("whole", "small", "shared") for memory in ("static", "caller")] + [("c", "static")]
HOST = host_target().name


def script():
    """Return a builder: a layer whose constants are Vars and arrays, a sum over all rows so far, and an index."""
    rng = np.random.default_rng(0)
    weights = cg.Var((24, 40), "float32", "w").assign(rng.random((24, 40), np.float32) - 0.5)
    filters = rng.random((8, 5, 3, 3), np.float32) - 0.5
    total = cg.Var((40,), "float32", "total").assign(rng.random(40, np.float32))
    count = cg.Var((), "float32", "count").assign(np.float32(2))

    def build(sizes):
        x, at = cg.Var((sizes["n"], 24), "float32", "x"), cg.Var((3,), "int32", "at")
        y = cg.relu(x @ weights)
        image = cg.conv2d(cg.reshape(y, (sizes["n"], 5, 2, 4)), filters, pad=1)
        new = total + cg.sum(y, axis=0)
        outputs = [cg.exp(-image), cg.take(x, at % 4, axis=0), new * count, total]
        return outputs, [x, at], {total: new, count: count + 1}

    return build


NAMES = ["image", "rows", "scaled", "before"]


def expected_bytes(build, folder, engine) -> bytes:
    """Return the outputs of the runs in order on this machine, which changes the Vars as the exported state."""
    raw = b""
    for i in ORDER:
        graph = build(SIZES[i])
        function, rest = cg.compile(*graph, engine=engine), (folder / f"check/in_{SIZES[i]['n']}.bin").read_bytes()
        values = []
        for x in function.inputs:
            values.append(np.frombuffer(rest[: x.spec.nbytes], x.spec.dtype).reshape(x.spec.shape))
            rest = rest[x.spec.nbytes :]
        raw += b"".join(np.ascontiguousarray(y).tobytes() for y in function(*values))
    return raw


def outputs_of(folder: Path, order=ORDER) -> bytes:
    """Return the outputs of an export's runs in an order; skip the test where a program is not installed."""
    run = run_in_order(folder, order)
    assert run.status == 0, run.text
    return run.outputs


@pytest.mark.parametrize(("form", "memory"), FORMS)
def test_runs_of_all_sizes_pass_the_state_on_with_the_bits_of_python(form, memory, tmp_path):
    build, folder = script(), tmp_path / "m"
    cg.export_sizes(build, SIZES, folder, target=HOST, names=NAMES, form=form, memory=memory)
    for i, sizes in enumerate(SIZES):
        assert outputs_of(folder, [i]) == (folder / f"check/out_{sizes['n']}.bin").read_bytes()
    raw = outputs_of(folder)
    assert raw == expected_bytes(build, folder, TwinEngine(threads=1, of=machine_named(HOST).target))


@pytest.mark.parametrize("target", ["cortex-m4", "cortex-m7", "cortex-m55", "neon", "riscv64", "wasm32"])
def test_another_machine_gives_the_bits_of_its_twin_at_every_size(target, tmp_path):
    if target == "wasm32":
        require("wasm-ld", "lld")
    build, folder = script(), tmp_path / "m"
    cg.export_sizes(build, SIZES, folder, target=target, names=NAMES)
    raw = outputs_of(folder)
    assert raw == expected_bytes(build, folder, TwinEngine(threads=1, of=machine_named(target).target))


def symbols(folder: Path) -> dict[str, int]:
    """Return the bytes of each symbol of the object file."""
    require("nm", "binutils")
    text = subprocess.run(["nm", "-S", folder / "m.o"], capture_output=True, text=True, check=True).stdout
    rows = [line.split() for line in text.splitlines()]
    return {row[3]: int(row[1], 16) for row in rows if len(row) == 4}


def test_constants_arena_and_state_are_in_the_file_once(tmp_path):
    build = script()
    options = {"target": HOST, "names": NAMES, "form": "shared", "check": False}
    alone = []
    for x in SIZES:
        outputs, inputs, updates = build(x)
        alone.append(cg.export(outputs, inputs, tmp_path / f"a{x['n']}", updates=updates, **options))
    every = cg.export_sizes(build, SIZES, tmp_path / "m", **options)
    assert every.arena_nbytes == max(x.arena_nbytes for x in alone) > min(x.arena_nbytes for x in alone)
    assert every.constant_nbytes < max(x.constant_nbytes for x in alone) + 2048 < sum(x.constant_nbytes for x in alone)
    assert every.state_nbytes == 164
    sizes = symbols(tmp_path / "m")
    assert (sizes["m_arena"], sizes["m_constants"]) == (every.arena_nbytes, every.constant_nbytes)
    assert (sizes["m_total"], sizes["m_count"]) == (160, 4)
    manifest = json.loads((tmp_path / "m/manifest.json").read_text())
    assert [x["bytes"]["arena"] for x in manifest["runs"]] == [x.arena_nbytes for x in alone]
    assert [x["run"] for x in manifest["runs"]] == ["m_run_4", "m_run_19", "m_run_7"]


@pytest.mark.parametrize(("compiler", "standard"), [("cc", "-std=c99"), ("c++", "-std=c++17")])
@pytest.mark.parametrize(("form", "memory"), [("whole", "static"), ("whole", "caller"), ("c", "static")])
def test_header_example_and_entry_compile_without_a_warning(compiler, standard, form, memory, tmp_path):
    require(compiler, "g++")
    folder = tmp_path / "m"
    cg.export_sizes(script(), SIZES, folder, target="portable", form=form, memory=memory, reset=True, check=False)
    strict = [standard, "-Wall", "-Wextra", "-pedantic", "-Werror"]
    language = ["-x", "c++"] if compiler == "c++" else []
    (tmp_path / "only.c").write_text('#include "m.h"\n')
    call(tmp_path, compiler, *strict, *language, "-I", str(folder), "-c", "only.c", "-o", "only.o")
    if compiler == "cc":
        sources = ["main.c", *(["m.c"] if form == "c" else [])]
        call(folder, compiler, *strict, *sources, "m.o", "-lm", "-o", "run")
        done = subprocess.run([folder / "run"], capture_output=True, text=True)
        assert done.returncode == 0 and done.stdout.count("[0] = ") == 4 * len(SIZES)


def test_reset_restores_the_state_for_all_sizes(tmp_path):
    require("cc", "gcc")
    v = cg.Var((), "float32", "v").assign(np.float32(3))

    def build(sizes):
        x = cg.Var((sizes["n"],), "float32", "x")
        return v + cg.sum(x), x, {v: v + 1}

    cg.export_sizes(build, [{"n": 1}, {"n": 2}], tmp_path / "m", target=HOST, reset=True, names=["y"])
    (tmp_path / "main.c").write_text("""#include "m/m.h"
int main(void) {
  float x[2] = {0, 0}, y[1];
  if (m_run_1(x, y) || y[0] != 3 || m_run_2(x, y) || y[0] != 4 || m_v[0] != 5) return 1;
  m_reset();
  return m_run_2(x, y) || y[0] != 3;
}
""")
    call(tmp_path, "cc", "main.c", "m/m.o", "-lm", "-o", "run")
    assert subprocess.run([tmp_path / "run"]).returncode == 0


def test_a_size_that_only_reads_a_state_reads_what_another_one_wrote(tmp_path):
    require("cc", "gcc")
    v = cg.Var((), "float32", "v").assign(np.float32(3))

    def build(sizes):
        x = cg.Var((sizes["n"],), "float32", "x")
        return (v + cg.sum(x), x) if sizes["n"] == 1 else (cg.sum(x), x, {v: v * 2})

    cg.export_sizes(build, [{"n": 1}, {"n": 2}], tmp_path / "m", target=HOST, names=["y"])
    (tmp_path / "main.c").write_text("""#include "m/m.h"
int main(void) {
  float x[2] = {0, 0}, y[1];
  return m_run_2(x, y) || m_run_1(x, y) || y[0] != 6;
}
""")
    call(tmp_path, "cc", "main.c", "m/m.o", "-lm", "-o", "run")
    assert subprocess.run([tmp_path / "run"]).returncode == 0


def test_a_function_of_several_sizes_exports_itself(tmp_path):
    w = cg.Var((3,), "float32", "w").assign([1, 2, 3])

    def build(sizes):
        x = cg.Var((sizes["a"], sizes["b"], 3), "float32", "x")
        return x * w, x

    f = cg.compile_sizes(build, {"x": ("a", "b", 3)}, engine=cg.ExportEngine("cortex-m7"))
    result = f.export(tmp_path / "m", [{"b": 5, "a": 1}, {"a": 2, "b": 5}], names=["y"])
    assert result.arena_nbytes == max(f.at(a=a, b=5).plan.nbytes for a in (1, 2))
    header = (tmp_path / "m/m.h").read_text()
    assert "int m_run_5_1(const float x[15], float y[15]);" in header
    assert "int m_run_5_2(const float x[30], float y[30]);" in header
    with pytest.raises(InputError, match="sizes are a, b, not a"):
        f.export(tmp_path / "n", [{"a": 1}])
    with pytest.raises(FormatError, match="only code for a named machine"):
        cg.compile_sizes(build, {"x": ("a", "b", 3)}).export(tmp_path / "n", [{"a": 1, "b": 5}])
    assert not (tmp_path / "n").exists()


def test_what_cannot_be_exported_is_refused_before_anything_is_written(tmp_path):
    def build(sizes):
        x = cg.Var((sizes["n"],), "float32", "x")
        return x * 2, x

    def refused(match, sizes=SIZES, build=build, error=FormatError, **options):
        with pytest.raises(error, match=match):
            cg.export_sizes(build, sizes, tmp_path / "m", **{"target": "cortex-m7"} | options)
        assert list(tmp_path.iterdir()) == []

    def state_of(shape, value=None):
        def other(sizes):
            x = cg.Var((sizes["n"],), "float32", "x")
            v = cg.Var(shape(sizes["n"]), "float32", "v")
            v.assign(np.full(v.spec.shape, 1 if value is None else value(sizes["n"]), np.float32))
            return x * 2, x, {v: v + 1}

        return other

    refused("Give a list with a dict for each size", sizes=[])
    refused("Give a list with a dict for each size", sizes=[4, 9])
    refused("sizes have n and m. Give each one the same names", sizes=[{"n": 1}, {"m": 2}])
    refused("sizes has {'n': 1} twice", sizes=[{"n": 1}, {"n": 1}])
    refused("a size is -1. Give integers", sizes=[{"n": -1}])
    refused("a size is True. Give integers", sizes=[{"n": True}])
    refused("linked module with static memory", target="wasm32", memory="caller")
    refused(r"the state v is float32\[4\] at one size and float32\[19\] at another", build=state_of(lambda n: (n,)))
    refused("the state v has other values at another size", build=state_of(lambda n: (2,), lambda n: n))
    refused("build gives outputs, inputs and, perhaps, update edges", build=lambda sizes: None)
    for runs in (0, 1, 2, 4):
        refused(f"check= has inputs of {runs} runs; there are 3 sizes", check=[[np.zeros(4)]] * runs)
    refused("2 names for 1 outputs", names=["a", "b"])
    refused("no plan|budget|bytes", error=BudgetError, build=script(), budget=100)


def test_a_folder_that_cannot_be_finished_is_not_there(tmp_path, monkeypatch):
    from cgraph.system import files

    monkeypatch.setattr(files, "flush_folder", lambda path: (_ for _ in ()).throw(OSError("full")))
    with pytest.raises(OSError, match="full"):
        cg.export_sizes(script(), SIZES, tmp_path / "m", target="portable", check=False)
    assert list(tmp_path.iterdir()) == []


def test_state_vars_of_one_name_shape_and_value_are_one_state(tmp_path):
    def build(sizes):
        x = cg.Var((sizes["n"],), "float32", "x")
        v = cg.Var((2,), "float32", "v").assign([1, 2])
        return cg.sum(x) + v, x, {v: v + 1}

    assert cg.export_sizes(build, [{"n": 1}, {"n": 2}], tmp_path / "m", target="cortex-m7").state_nbytes == 8


def test_the_command_writes_a_run_for_each_size_of_a_file(tmp_path, capsys):
    onnx = pytest.importorskip("onnx")
    from cgraph.cli import main

    text = '<ir_version: 10, opset_import: ["" : 21]> g (float[batch, 3] x) => (float[batch, 3] y) { y = Exp(x) }'
    onnx.save(onnx.parser.parse_model(text), tmp_path / "m.onnx")
    command = ["export", str(tmp_path / "m.onnx"), "--target", "cortex-m7", "-o", str(tmp_path / "m")]
    assert main([*command, "--sizes", "batch=1", "--sizes", "batch=8"]) == 0
    assert "arena" in capsys.readouterr().out
    header = (tmp_path / "m/m.h").read_text()
    assert "int m_run_1(const float x[3], float y[3]);" in header
    assert "int m_run_8(const float x[24], float y[24]);" in header


@pytest.mark.parametrize(("bounds", "together"), [((64, 256, 128), 256), ((64, None, 128), None), ((None,) * 3, None)])
def test_the_stack_is_that_of_the_deepest_run_and_unknown_where_one_is(bounds, together, tmp_path, monkeypatch):
    """In the record of the export, the header and the manifest."""
    left = list(bounds)
    monkeypatch.setattr(files, "stack_bound", lambda *_: left.pop(0))

    def build(sizes):
        x = cg.Var((sizes["n"],), "float32", "x")
        return cg.exp(x), x

    found = cg.export_sizes(build, SIZES, tmp_path / "m", target=HOST, check=False)
    manifest, header = json.loads((tmp_path / "m/manifest.json").read_text()), (tmp_path / "m/m.h").read_text()
    assert found.stack_nbytes == manifest["bytes"]["stack"] == together
    assert [run["bytes"]["stack"] for run in manifest["runs"]] == list(bounds)
    lines = {line.split()[1]: int(line.split()[2]) for line in header.splitlines() if "STACK_BYTES" in line}
    known = {f"M_RUN_{x['n']}_STACK_BYTES": n for x, n in zip(SIZES, bounds) if n is not None}
    if together is not None:
        known["M_STACK_BYTES"] = together
    assert {name.replace("M_RUN_", "M_").replace("M_", "M_") for name in lines} == {
        name.replace("M_RUN_", "M_") for name in known
    }
    assert sorted(lines.values()) == sorted(known.values())
    assert ("stack unknown" in str(found)) == (together is None)


def test_a_run_ends_in_its_sizes_in_the_order_of_the_first_and_0_is_a_size():
    assert suffixes_of([{"n": 0}, {"n": 3}]) == ["_0", "_3"]
    assert suffixes_of([{"a": 1, "b": 2}, {"b": 3, "a": 4}]) == ["_1_2", "_4_3"]
    for sizes, match in (
        ([{"n": 1}, {"n": 2}, {"n": 2}], "sizes has {'n': 2} twice"),
        ([{"n": 1, "m": 1}, {"n": 1}], "sizes have n, m and n"),
        ([{"n": 1}, {"n": 1.0}], "a size is 1.0. Give integers from 0"),
        ([{"n": 1}, {}], "Give a list with a dict for each size"),
        ({"n": 1}, "Give a list with a dict for each size"),
    ):
        with pytest.raises(FormatError, match=match):
            suffixes_of(sizes)


@pytest.mark.parametrize("count", [0, 1, 4])
def test_a_builder_returns_two_or_three_values(count):
    assert graph_of(lambda sizes: (sizes["n"], 2), {"n": 5}).updates is None
    graph = graph_of(lambda sizes: (1, 2, 3), {})
    assert (graph.outputs, graph.inputs, graph.updates) == (1, 2, 3)
    for kind in (tuple, list):
        with pytest.raises(FormatError, match="build gives outputs, inputs and, perhaps, update edges"):
            graph_of(lambda sizes, kind=kind: kind(range(count)), {})


def test_sizes_of_which_some_have_kernels_of_bytes_need_a_folder_each(monkeypatch):
    monkeypatch.setattr(export, "target_of", lambda function: function)
    with pytest.raises(FormatError, match="some sizes have 8-bit kernels .* Export a folder for each"):
        export.files_of_functions({"_1": 1, "_2": 1, "_3": 2}, None)


def test_inputs_of_a_check_belong_to_the_size_in_their_place(tmp_path):
    def build(sizes):
        x = cg.Var((sizes["n"],), "float32", "x")
        return x * 2, x

    values = [np.arange(3, dtype="f4") + 5, np.arange(2, dtype="f4")]
    sizes = [{"n": x.size} for x in values]
    cg.export_sizes(build, sizes, tmp_path / "m", target="cortex-m7", check=[[x] for x in values])
    for x in values:
        files = [(tmp_path / f"m/check/{side}_{x.size}.bin").read_bytes() for side in ("in", "out")]
        assert files == [x.tobytes(), (x * 2).tobytes()]


SETTINGS = {"name": "net", "names": ["total"], "form": "shared", "memory": "caller", "reset": True}


@pytest.mark.parametrize("way", ["a graph", "a function", "sizes", "a function of sizes"])
def test_every_setting_reaches_the_files_on_each_way(way, tmp_path, monkeypatch):
    found = []

    def files_of(functions, how):
        found.append((list(functions), how))
        return {}, "done"

    def build(sizes):
        x = cg.Var((sizes["n"],), "float32", "x")
        return x * 2, x

    monkeypatch.setattr(export, "files_of_functions", files_of)
    (y, x), folder, engine = build({"n": 3}), tmp_path / "m", cg.ExportEngine("neon")
    act = {
        "a graph": lambda: cg.export(y, x, folder, target="neon", check=False, **SETTINGS),
        "a function": lambda: cg.compile(y, x, engine=engine).export(folder, **SETTINGS),
        "sizes": lambda: cg.export_sizes(build, [{"n": 3}], folder, target="neon", check=False, **SETTINGS),
        "a function of sizes": lambda: cg.compile_sizes(build, {"x": ("n",)}, engine=engine).export(
            folder, [{"n": 3}], **SETTINGS
        ),
    }[way]
    assert act() == "done" and folder.is_dir()
    ((suffixes, how),) = found
    assert suffixes == (["_3"] if "sizes" in way else [""]) and (how.folder, how.machine) == (folder, "neon")
    settings = {
        "name": how.prefix,
        "names": list(how.names),
        "form": how.form,
        "memory": how.memory,
        "reset": how.reset,
    }
    assert settings == SETTINGS


@pytest.mark.parametrize("names", [(), ("first", "second")])
def test_a_function_of_a_file_exports_the_names_of_the_file_unless_others_are_given(names, tmp_path):
    onnx = pytest.importorskip("onnx")
    text = """<ir_version: 10, opset_import: ["" : 21]>
        g (float[batch, 3] x) => (float[batch, 3] scores, float[batch, 3] rest) { scores = Exp(x) rest = Neg(x) }"""
    onnx.save(onnx.parser.parse_model(text), tmp_path / "m.onnx")
    f = cg.load(tmp_path / "m.onnx", engine=cg.ExportEngine("cortex-m7"))
    f.export(tmp_path / "m", [{"batch": 1}, {"batch": 4}], **({"names": names} if names else {}))
    header, (a, b) = (tmp_path / "m/m.h").read_text(), names or ("scores", "rest")
    for n in (1, 4):
        assert f"int m_run_{n}(const float x[{3 * n}], float {a}[{3 * n}], float {b}[{3 * n}]);" in header
