"""Exported functions give the bits of the same graph on this machine, in every form, on every machine there is."""

import json
import re
import subprocess
from types import SimpleNamespace

import numpy as np
import pytest

import cgraph as cg
from benchmarks.micro_networks import Writer
from cgraph.engine.cpu.engine import CpuEngine
from cgraph.engine.cpu.twin import TwinEngine
from cgraph.errors import BudgetError, FormatError, GraphError
from cgraph.formats import tflite
from cgraph.kernels.machines import machine_named, machines
from cgraph.kernels.target import host_target
from cgraph.quantiser import quantise
from cgraph.standalone.export import Exported, compile_options, names_of
from tests.support.exported import call, require, run_export

EMULATED = ("neon", "neon-i8mm", "cortex-m4", "cortex-m7", "cortex-m55", "wasm32", "riscv64")
FORMS = [(form, memory) for form in ("whole", "small", "shared") for memory in ("static", "caller")] + [("c", "static")]


def script():
    """An exponential mean with a counter: two Vars of state, a weight, and an index that may leave its axis."""
    rng = np.random.default_rng(0)
    x, at = cg.Var((37,), "float32", "x"), cg.Var((3,), "int32", "at")
    mean, count, w = cg.Var((37,), "float32", "mean"), cg.Var((), "float32", "count"), cg.Var((37,), "float32", "w")
    mean.assign(rng.random(37, np.float32))
    count.assign(np.float32(2))
    w.assign(rng.random(37, np.float32))
    new = mean + 0.1 * (x * w - mean)
    outputs = [cg.exp(-((x - mean) ** 2)), cg.sum(new), cg.take(x * 2, at, axis=0), mean, count + 1]
    return outputs, [x, at], {mean: new, count: count + 1}


def bytes_of(values) -> bytes:
    return b"".join(np.ascontiguousarray(x).tobytes() for x in values)


def inputs_of(folder, inputs) -> list[np.ndarray]:
    raw, values = (folder / "check" / "in.bin").read_bytes(), []
    for x in inputs:
        values.append(np.frombuffer(raw[: x.nbytes], x.dtype).reshape(x.shape))
        raw = raw[x.nbytes :]
    return values


@pytest.mark.parametrize(("form", "memory"), FORMS)
def test_every_form_gives_the_bits_of_python_for_three_runs_with_state(form, memory, tmp_path):
    require("cc", "gcc")
    outputs, inputs, updates = script()
    before = [x.value.copy() for x in updates]
    target = host_target().name
    cg.export(outputs, inputs, tmp_path / "m", target=target, updates=updates, form=form, memory=memory)
    assert all((x.value == y).all() for x, y in zip(updates, before)), "an export changes no Var"
    assert run_export(tmp_path / "m").outputs == (tmp_path / "m/check/out.bin").read_bytes()
    f = cg.compile(outputs, inputs, updates, engine=CpuEngine(target))
    values = inputs_of(tmp_path / "m", inputs)
    for _ in range(2):
        f(*values)
    assert run_export(tmp_path / "m", runs=3).outputs == bytes_of(f(*values))


@pytest.mark.parametrize("name", EMULATED)
def test_an_emulated_machine_gives_the_bits_of_its_twin_and_keeps_its_state(name, tmp_path):
    if name == "wasm32":
        require("wasm-ld", "lld")
    outputs, inputs, updates = script()
    cg.export(outputs, inputs, tmp_path / "m", target=name, updates=updates)
    run = run_export(tmp_path / "m", runs=3)
    f = cg.compile(outputs, inputs, updates, engine=TwinEngine(threads=1, of=machine_named(name).target))
    values = inputs_of(tmp_path / "m", inputs)
    for _ in range(2):
        f(*values)
    assert run.outputs == bytes_of(f(*values))


@pytest.mark.parametrize("name", EMULATED)
def test_rounded_numbers_are_numpys_on_every_machine(name, tmp_path):
    """Some processors have no instruction for it, and the C library's function is not part of an export."""
    if name == "wasm32":
        require("wasm-ld", "lld")
    x = cg.Var((64,), "float32", "x")
    outputs = [f(x) for f in (cg.rint, cg.floor, cg.ceil, cg.trunc)]
    export = cg.export(outputs, [x], tmp_path / "m", target=name)
    assert set(export.externals) <= {"memcpy"}
    run = run_export(tmp_path / "m")
    (value,) = inputs_of(tmp_path / "m", [x])
    assert run.outputs == bytes_of([np.rint(value), np.floor(value), np.ceil(value), np.trunc(value)])


@pytest.mark.parametrize("name", [pytest.param("cortex-m7", marks=pytest.mark.slow), "cortex-m55"])
def test_spectra_of_frames_have_the_bits_of_the_twin(name, tmp_path):
    """Of even and odd counts, by factors and by a chirp."""
    sound = cg.Var((1, 240), "float32", "sound")
    frames = [cg.reshape(sound[:, : 6 * n], (6, n)) for n in (40, 15, 37)]
    outputs = [y for x in frames for z in [np.fft.rfft(x)] for y in (cg.real(z), cg.imag(z))]
    outputs.append(np.fft.irfft(np.fft.rfft(frames[0])))
    cg.export(outputs, [sound], tmp_path / "m", target=name)
    assert run_export(tmp_path / "m").outputs == (tmp_path / "m/check/out.bin").read_bytes()


def byte_network():
    """An 8-bit network whose first image has one channel: a wide window, depthwise and pointwise convolutions."""
    rng = np.random.default_rng(1)
    x = cg.Var((1, 1, 21, 10), "float32", "x")

    def filters(*shape):
        return cg.Const((rng.standard_normal(shape) / np.sqrt(np.prod(shape[1:]))).astype("float32"))

    y = cg.relu(cg.conv2d(x, filters(10, 1, 5, 4), stride=2, pad=(2, 1, 2, 1)))
    for stride in (1, 2):
        y = cg.relu(cg.conv2d(y, filters(10, 1, 3, 3), stride=stride, pad=1, groups=10))
        y = cg.relu(cg.conv2d(y, filters(10, 10, 1, 1)))
    calibration = [(rng.standard_normal(x.shape).astype("float32"),) for _ in range(3)]
    return quantise([cg.mean(y, (2, 3))], [x], calibration)


@pytest.mark.parametrize("name", ["cortex-m7", "cortex-m55"])
def test_a_network_of_bytes_has_the_bits_of_its_twin(name, tmp_path):
    network = byte_network()
    cg.export(network.outputs, network.inputs, tmp_path / "m", target=name)
    assert run_export(tmp_path / "m").outputs == (tmp_path / "m/check/out.bin").read_bytes()


@pytest.mark.parametrize("name", ["cortex-m7", "cortex-m55"])
@pytest.mark.parametrize("form", ["whole", "shared"])
def test_the_stack_that_a_run_touches_is_within_the_headers_bound(name, form, tmp_path):
    outputs, inputs, updates = script()
    exported = cg.export(outputs, inputs, tmp_path / "m", target=name, updates=updates, form=form)
    assert exported.stack_nbytes is not None
    unpainted, own_frame = 256, 64  # of main, which calls the function
    assert run_export(tmp_path / "m").stack <= max(exported.stack_nbytes + own_frame, unpainted)


@pytest.mark.parametrize("name", list(machines()))
def test_every_machine_has_an_object_with_the_plans_arena_and_few_needs(name, tmp_path):
    if name == "wasm32":
        require("wasm-ld", "lld")
    outputs, inputs, updates = script()
    exported = cg.export(outputs, inputs, tmp_path / "m", target=name, updates=updates, check=False)
    f = cg.compile(outputs, inputs, updates, engine=cg.ExportEngine(name))
    assert exported.arena_nbytes == f.nbytes == f.plan.nbytes
    marker = {"_fltused"} if name.endswith("-windows") else set()  # of objects that compute with floats
    assert set(exported.externals) <= {"memcpy", "memmove", "memset"} | marker
    raw = next((tmp_path / "m").glob("m.o*")).read_bytes()
    assert b"malloc" not in raw


@pytest.mark.parametrize("name", ["avx2", "portable", "riscv64", "neon", "cortex-m7"])
def test_the_arena_in_an_elf_file_is_the_plan_to_the_byte(name, tmp_path):
    require("nm", "binutils")
    outputs, inputs, updates = script()
    exported = cg.export(outputs, inputs, tmp_path / "m", target=name, updates=updates, check=False, form="shared")
    text = subprocess.run(["nm", "-S", tmp_path / "m/m.o"], capture_output=True, text=True).stdout
    line = next(x for x in text.splitlines() if x.endswith(" m_arena"))
    assert int(line.split()[1], 16) == exported.arena_nbytes


@pytest.mark.parametrize(("compiler", "standard"), [("cc", "-std=c99"), ("c++", "-std=c++17")])
@pytest.mark.parametrize(("form", "memory"), [("whole", "static"), ("whole", "caller"), ("c", "static")])
def test_header_example_and_entry_compile_without_a_warning(compiler, standard, form, memory, tmp_path):
    require(compiler, "g++")
    outputs, inputs, updates = script()
    folder = tmp_path / "m"
    cg.export(outputs, inputs, folder, target="portable", updates=updates, form=form, memory=memory, reset=True)
    strict = [standard, "-Wall", "-Wextra", "-pedantic", "-Werror"]
    language = ["-x", "c++"] if compiler == "c++" else []
    (tmp_path / "only.c").write_text('#include "m.h"\n')
    call(tmp_path, compiler, *strict, *language, "-I", str(folder), "-c", "only.c", "-o", "only.o")
    if compiler == "cc":
        sources = ["main.c", *(["m.c"] if form == "c" else [])]
        call(folder, compiler, *strict, *sources, "m.o", "-lm", "-o", "run")
        done = subprocess.run([folder / "run"], capture_output=True, text=True)
        assert done.returncode == 0 and "[0] = " in done.stdout


MAIN = """#include "a.h"
#include "b.h"
#include <stdio.h>
#include <string.h>
static float x[37] = {3}, one[37], sum[1], taken[3], mean[37], count[1];
static int run_a(const int32_t *at) { return a_run(x, at, one, sum, taken, mean, count); }
int main(void) {
  int32_t good[3] = {0, 1, 36}, bad[3] = {0, 1, 37};
  float first[37], second[37];
  if (run_a(good)) return 1;
  memcpy(first, a_mean, sizeof first);
  int error = run_a(bad);
  if (!error || memcmp(first, a_mean, sizeof first)) return 2;
  if (run_a(good)) return 3;
  memcpy(second, a_mean, sizeof second);
  if (!memcmp(first, second, sizeof first)) return 4;
  if (b_run(x, good, one, sum, taken, mean, count)) return 5;
  if (memcmp(b_mean, first, sizeof first)) return 6;
  a_reset();
  if (run_a(good) || memcmp(first, a_mean, sizeof first)) return 7;
  printf("%d", error);
  return 0;
}
"""


@pytest.mark.parametrize("form", ["whole", "c"])
def test_two_models_live_in_one_program_and_a_bad_index_changes_no_state(form, tmp_path):
    require("cc", "gcc")
    outputs, inputs, updates = script()
    named = ["one", "sum", "taken", "mean_now", "count_now"]
    for name in "ab":
        folder = tmp_path / name
        cg.export(
            *(outputs, inputs, folder),
            target="portable",
            updates=updates,
            names=named,
            form=form,
            reset=True,
            check=False,
        )
    (tmp_path / "main.c").write_text(MAIN)
    sources = [f"{n}/{n}.o" for n in "ab"] + ([f"{n}/{n}.c" for n in "ab"] if form == "c" else [])
    text = MAIN.replace("count)", "count, 0)") if form == "c" else MAIN
    (tmp_path / "main.c").write_text(text)
    call(tmp_path, "cc", "-Wall", "-Werror", "-Ia", "-Ib", "main.c", *sources, "-lm", "-o", "run")
    done = subprocess.run([tmp_path / "run"], capture_output=True, text=True)
    assert done.returncode == 0, done.returncode
    errors = json.loads((tmp_path / "a/manifest.json").read_text())["errors"]
    assert "take" in errors[done.stdout]


def test_outputs_of_all_kinds_are_copied_as_python_returns_them(tmp_path):
    """Views with strides, flipped and broadcast; a constant; an input; a Var before its update; one value twice."""
    require("cc", "gcc")
    rng = np.random.default_rng(3)
    x, v, w = cg.Var((4, 6), "float32", "x"), cg.Var((4, 6), "float32", "v"), cg.Var((4, 6), "float32", "w")
    v.assign(rng.random((4, 6), np.float32))
    w.assign(rng.random((4, 6), np.float32))
    y = cg.exp(x)
    still = cg.Const(rng.random((2, 3), np.float32))
    outputs = [y.T, y[::-1, ::2], x.T, x, still.T, still, v.T, v, w, y, y, cg.broadcast_to(y[:1], (3, 6)), y.T[1:, 1:]]
    outputs += [cg.astype(y, "float16"), x > 0, cg.astype(x, "int8"), y + 1j]
    cg.export(outputs, x, tmp_path / "m", target=host_target().name, updates={v: v + y})
    values = inputs_of(tmp_path / "m", [x])
    expected = bytes_of(cg.compile(outputs, x)(*values))
    assert (tmp_path / "m/check/out.bin").read_bytes() == expected
    assert run_export(tmp_path / "m").outputs == expected


def test_a_budget_holds_in_the_object_file_with_the_same_bits(tmp_path):
    require("cc", "gcc")
    rng = np.random.default_rng(4)
    x = cg.Var((1, 3, 64, 64), "float32", "x")
    y = x
    for channels in (8, 8, 4):
        y = cg.relu(cg.conv2d(y, rng.random((channels, y.shape[1], 3, 3), np.float32) - 0.5, pad=1))
    free = cg.export(y, x, tmp_path / "free", target=host_target().name, winograd=False)
    budget = free.arena_nbytes * 2 // 3
    small = cg.export(y, x, tmp_path / "small", target=host_target().name, winograd=False, budget=budget)
    assert small.arena_nbytes <= budget
    assert run_export(tmp_path / "free").outputs == run_export(tmp_path / "small").outputs
    with pytest.raises(BudgetError):
        cg.export(y, x, tmp_path / "none", target="cortex-m7", budget=1000)
    assert not (tmp_path / "none").exists()


def test_the_least_budget_of_a_refusal_is_that_of_the_machine_and_not_of_its_twin(tmp_path):
    writer = Writer(24)
    writer.conv(8, 3, 2)
    writer.block(1, 8, 1, 3)
    writer.block(3, 8, 1, 3)
    model = tflite.load(writer.net.bytes(writer.scores(5, False)))
    graph, options = (model.outputs, model.inputs), {"target": "cortex-m7", "winograd": False}
    with pytest.raises(BudgetError) as refused:
        cg.export(*graph, tmp_path / "none", budget=1, **options)
    least = int(re.search(r"least budget of this graph is (\d+) bytes", str(refused.value))[1])
    twin = TwinEngine(threads=1, of=machine_named("cortex-m7").bytes_target)
    assert cg.compile(*graph, engine=twin, winograd=False, budget=least).nbytes > least, "the twin needs more"
    assert cg.export(*graph, tmp_path / "m", budget=least, **options).arena_nbytes == least
    small = run_export(tmp_path / "m").outputs
    assert small == (tmp_path / "m/check/out.bin").read_bytes()
    whole = cg.compile(*graph, engine=twin, winograd=False)
    assert small == bytes_of([whole(*inputs_of(tmp_path / "m", model.inputs))])


def test_what_cannot_be_exported_is_refused_before_anything_is_written(tmp_path):
    x, w = cg.Var((4,), "float32", "x"), cg.Var((4,), "float32", "w")
    folder = tmp_path / "m"

    def refused(outputs, match, inputs=x, error=FormatError, **options):
        with pytest.raises(error, match=match):
            cg.export(outputs, inputs, folder, **{"target": "cortex-m7"} | options)
        assert list(tmp_path.iterdir()) == []

    refused(x * 2, r"there is no target 'z80'\. Use one of portable, ", target="z80")
    refused(x * 2, "form is 'fast'. Use one of whole", form="fast")
    refused(x * 2, "memory is 'heap'. Use one of static, caller", memory="heap")
    refused(x * 2, "the form 'c' has static memory", form="c", memory="caller")
    refused(x * 2, "linked module with static memory", target="wasm32", form="c")
    refused(x * 2, "'a-b' cannot begin the names of a C header", name="a-b")
    refused(x * 2, "'int' cannot begin", name="int")
    refused(x * w, r"w float32\[4\] has no value to export. Assign one first")
    refused(x * 2, r"x float32\[4\] is an input and the target of an update", updates={x: x + 1})
    refused(x * 2, "2 names for 1 outputs", names=["a", "b"])
    refused(cg.lazy_print(x), "a Python function cannot be exported")
    refused(x * 2, "budget", error=GraphError, budgett=3)
    (tmp_path / "m").mkdir()
    with pytest.raises(FormatError, match="exists already"):
        cg.export(x * 2, x, folder, target="cortex-m7")


def test_a_function_for_another_machine_shows_its_plan_exports_itself_and_is_not_called(tmp_path):
    x = cg.Var((8,), "float32", "x")
    f = cg.compile(cg.exp(x) * 2, x, engine=cg.ExportEngine("cortex-m7"))
    assert f.plan.nbytes == f.export(tmp_path / "m").arena_nbytes
    with pytest.raises(GraphError, match="compiled for cortex-m7 and cannot be called here"):
        f(np.zeros(8, np.float32))
    with pytest.raises(GraphError, match=r"no machine 'z80'\. Use one of"):
        cg.ExportEngine("z80")
    with pytest.raises(FormatError, match="only code for a named machine can be exported"):
        cg.compile(x * 2, x).export(tmp_path / "n")


def test_names_that_c_cannot_use_are_changed_and_stay_distinct(tmp_path):
    require("cc", "gcc")
    a, b, run = cg.Var((2,), "float32", "int"), cg.Var((2,), "float32", "in/put"), cg.Var((2,), "float32", "run")
    run.assign(np.ones(2, np.float32))
    names = ["a b", "a_b", "int", "0"]
    cg.export(
        [a + b, a - b, a * b, a + run], [a, b], tmp_path / "m", target="portable", updates={run: run + 1}, names=names
    )
    manifest = json.loads((tmp_path / "m/manifest.json").read_text())
    every = [x["name"] for kind in ("inputs", "outputs") for x in manifest[kind]]
    assert len(set(every)) == 6 and "int" not in every
    assert run_export(tmp_path / "m").status == 0


def test_the_inputs_of_a_check_are_different_numbers(tmp_path):
    inputs = [cg.Var((20,), "float32", name) for name in "xyz"]
    cg.export([inputs[0] - inputs[1] * inputs[2]], inputs, tmp_path / "m", target="neon")
    assert len({x.tobytes() for x in inputs_of(tmp_path / "m", inputs)}) == 3


def test_zero_sized_inputs_and_outputs_are_parameters_that_nothing_reads(tmp_path):
    require("cc", "gcc")
    x, y = cg.Var((0, 3), "float32", "x"), cg.Var((2,), "float32", "y")
    cg.export([x * 2, y + 1], [x, y], tmp_path / "m", target="portable")
    assert run_export(tmp_path / "m").outputs == (tmp_path / "m/check/out.bin").read_bytes()


def test_a_folder_that_cannot_be_finished_is_not_there(tmp_path, monkeypatch):
    from cgraph.system import files

    x = cg.Var((2,), "float32", "x")
    monkeypatch.setattr(files, "flush_folder", lambda path: (_ for _ in ()).throw(OSError("full")))
    with pytest.raises(OSError, match="full"):
        cg.export(x + 1, x, tmp_path / "m", target="portable")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(("stack", "stack_text"), [(None, "unknown"), (0, "0 B"), (96, "96 B")])
@pytest.mark.parametrize(("externals", "needs"), [((), "nothing from outside"), (("expf", "sinf"), "expf, sinf")])
def test_an_export_is_shown_with_each_figure_at_its_name(stack, stack_text, externals, needs):
    found = Exported(
        folder="net", target="cortex-m7", arena_nbytes=1, state_nbytes=2, constant_nbytes=3, table_nbytes=4,
        stack_nbytes=stack, externals=externals,
    )  # fmt: skip
    assert str(found).splitlines() == [
        "net for cortex-m7",
        f"RAM    arena 1 B, state 2 B, stack {stack_text}",
        "flash  constants 3 B, tables at most 4 B",
        f"needs  {needs}",
    ]


def test_names_of_outputs_and_options_are_the_users():
    x, y = cg.Var((2,), name="x"), cg.Var((2,), name="y")
    one, two = SimpleNamespace(outputs=[0]), SimpleNamespace(outputs=[0, 0])
    assert names_of(x, one) == names_of([cg.exp(x)], one) == ["out"] and names_of((y, cg.exp(x)), two) == ["y", "exp"]
    options = {"budget": 3, "order": "depth_first"}
    assert compile_options(options) is options
    assert compile_options(options | {"strategy": "one_each"}) == options | {"memory": "one_each"}


@pytest.mark.parametrize(("target", "second"), [("cortex-m7", 72), ("portable", 128)])
def test_large_constants_are_aligned_as_the_machine_reads_them(target, second, tmp_path):
    x, one, other = cg.Var((17,), name="x"), np.arange(17, dtype="f4"), np.arange(17, dtype="f4") + 3
    y = cg.cumsum(cg.cumsum(x * one, 0) * other, 0)
    assert cg.export(y, x, tmp_path / "m", target=target, check=False).constant_nbytes == second + 68
    assert not (tmp_path / "m/check").exists()


def nothing_to_do():
    """An input is returned; no kernel, constant, arena or state."""
    x = cg.Var((3,), "float32", "x")
    return [x], [x], None


def a_state_of_nothing():
    """Beside inputs and outputs of no elements, of which one is the state."""
    e = cg.Var((0, 3), "float32", "e").assign(np.zeros((0, 3), "f4"))
    x, y = cg.Var((0, 3), "float32", "x"), cg.Var((2,), "float32", "y")
    return [x * 2, y + 1, e], [x, y], {e: e + x}


def parts_of_a_constant():
    """A column and rows of one constant, which calls read at their places and which are returned."""
    c, x = cg.Const(np.arange(600, dtype="f4").reshape(20, 30)), cg.Var((5,), "float32", "x")
    return [cg.cumsum(x + c[7:12, 3], 0), c[3, 4:9] * x, c[2:]], [x], None


@pytest.mark.parametrize(("form", "memory"), [("whole", "static"), ("shared", "caller"), ("c", "static")])
@pytest.mark.parametrize(("build", "sizes"), [
    (nothing_to_do, (0, 0, 0)), (a_state_of_nothing, (64, 8, 0)), (parts_of_a_constant, (128, 2224, 0)),
])  # fmt: skip
def test_exports_without_state_constants_or_steps_and_of_parts_of_constants_have_the_bits_of_the_twin(
    build, sizes, form, memory, tmp_path
):
    require("cc", "gcc")
    outputs, inputs, updates = build()
    reset = updates is not None
    result = cg.export(outputs, inputs, tmp_path / "m", target=host_target().name, updates=updates, form=form,
                       memory=memory, reset=reset)  # fmt: skip
    assert run_export(tmp_path / "m").outputs == (tmp_path / "m/check/out.bin").read_bytes()
    assert (result.arena_nbytes, result.constant_nbytes >= sizes[1], result.state_nbytes) == (sizes[0], True, sizes[2])
    assert str(result).splitlines()[1].startswith(f"RAM    arena {sizes[0]} B, state 0 B, stack ")


@pytest.mark.parametrize("options", [{"weights_dtype": "bfloat16"}, {"passes": False}, {"budget": 1 << 20}], ids=str)
def test_check_vectors_are_those_of_the_options(options, tmp_path):
    """Weights of bfloat16 give other numbers; the vectors are those that the file computes."""
    x, w = cg.Var((5, 400), name="x"), cg.Const(np.random.default_rng(0).standard_normal((400, 300)).astype("f4"))
    y, target = cg.tanh(x @ w), host_target().name
    cg.export(y, x, tmp_path / "m", target=target, **options)
    (values,) = inputs_of(tmp_path / "m", [x])
    want = cg.compile(y, x, engine=CpuEngine(target), **options)(values)
    assert (tmp_path / "m/check/out.bin").read_bytes() == want.tobytes()
    assert (want == cg.compile(y, x, engine=CpuEngine(target))(values)).all() == ("weights_dtype" not in options)
