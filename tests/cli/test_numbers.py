"""Every number that a command prints is the one that its label names, in the unit that it names."""

import json
import re
from pathlib import Path

import numpy as np
import pytest

import cgraph as cg
from cgraph.cli import main, plan_file, run_model, trace
from cgraph.cli.curve import curve_lines, curve_of
from cgraph.cli.model import load_model
from cgraph.cli.pictures import scale_pixels
from cgraph.engine.cpu.ring import resident_constants
from cgraph.errors import bytes_text
from cgraph.formats.onnx import save
from cgraph.memory.bounds import block_lower_bound, lower_bound
from cgraph.memory.files import read_problem
from cgraph.view.curve import Point
from tests.function.test_streamed_weights import chain, streamed
from tests.support.tolerance import assert_near


@pytest.fixture
def folder(tmp_path, monkeypatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


# -- run and bench -----------------------------------------------------------------------------------------------------


def test_the_times_of_a_run_are_of_loading_compiling_and_one_of_the_runs(folder, monkeypatch, capsys):
    x = cg.Var((1, 4), name="x")
    save("net.onnx", cg.exp(x), [x])
    np.save("x.npy", np.zeros((1, 4), "f4"))
    clock = iter([100.0, 107.0, 120.0, 152.0])
    monkeypatch.setattr(run_model, "perf_counter", lambda: next(clock))
    assert main(["run", "net.onnx", "-i", "x.npy", "--times", "4", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["seconds"] == {"load": 7, "compile": 13, "run": 8}


def test_facts_of_outputs_are_of_their_values():
    found = run_model.output_facts("y", np.array([[0.5, -2.0, 4.0, 1.0]]), ["a", "b"], 3)
    assert (found["least"], found["most"], found["mean"]) == (-2.0, 4.0, 0.875)
    assert [(x["class"], x["label"], x["value"]) for x in found["top"]] == [(2, "", 4.0), (3, "", 1.0), (0, "a", 0.5)]
    facts = {
        "seconds": {"load": 1.25, "compile": 2.5, "run": 0.0375}, "plan_nbytes": 3072, "lower_bound_nbytes": 2048,
        "streamed_nbytes": 7168, "ring_nbytes": 5120, "outputs": [found],
    }  # fmt: skip
    assert run_model.lines_of(facts) == [
        "load 1.250 s, compile 2.500 s, run 37.50 ms; arena 3 KiB, 1.500 x lower bound",
        "7 KiB read through a ring of 5 KiB",
        "y float64[1, 4] from -2 to 4, mean 0.875",
        "      4.000000       2",
        "      1.000000       3",
        "      0.500000       0  a",
    ]


def test_facts_of_weights_from_disk_are_of_the_pieces_and_the_ring(folder):
    function, _, _ = streamed(folder, ring=300 << 10, winograd=False)
    facts, ring = run_model.facts_of(function, {}, {}, [], 0), function.program.code.ring
    assert (facts["streamed_nbytes"], facts["ring_nbytes"]) == (sum(p.nbytes for p in ring.pieces), ring.nbytes)
    assert (facts["plan_nbytes"], facts["lower_bound_nbytes"]) == (function.nbytes, function.compiled.lower_bound)
    assert facts["streamed_nbytes"] != facts["ring_nbytes"]


# -- plan --------------------------------------------------------------------------------------------------------------


def test_a_table_of_strategies_has_the_bytes_ratios_and_milliseconds_of_each(folder, monkeypatch, capsys):
    records = ["0,0,3,100", "1,1,2,300", "2,2,5,200", "3,4,6,250", "4,6,7,700"]
    Path("r.csv").write_text("id,first_op,last_op,size_bytes\n" + "\n".join(records) + "\n")
    problem, real, seconds = read_problem(Path("r.csv")), plan_file._once, iter(np.arange(1, 99) * 10.0)
    monkeypatch.setattr(plan_file, "_once", lambda strategy, given: (real(strategy, given)[0], next(seconds)))
    assert main(["plan", "r.csv"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "5 operands"
    bound, blocks = lower_bound(problem), block_lower_bound(problem)
    assert bound != blocks
    assert lines[2].split()[2:] == [str(bound), "1.0000"]
    assert lines[3].split()[4:] == [str(blocks), f"{blocks / bound:.4f}"]
    for i, (name, line) in enumerate(zip(plan_file.CHOICES, lines[4:], strict=True), 1):
        words = line.split()
        nbytes = plan_file.strategy_named(name)(problem).nbytes
        assert words[:4] == [name, str(nbytes), f"{nbytes / bound:.4f}", f"{10_000 * i:.2f}"]


@pytest.mark.parametrize("short", [0, 1, 7])
def test_what_misses_a_budget_says_how_many_bytes_are_missing(folder, short, capsys):
    Path("r.csv").write_text("id,first_op,last_op,size_bytes\n0,0,3,100\n1,1,2,300\n")
    status = main(["plan", "r.csv", "--strategy", "greedy_by_size", "--budget", str(400 - short)])
    error = capsys.readouterr().err
    assert (status, f"400 B, the budget is {400 - short} B: {short} bytes are missing" in error) == (
        (1, True) if short else (0, False)
    )
    assert not short or "no plan needs less than 400 B (400 bytes)" in error


def test_a_streamed_plan_says_arena_ring_and_constants_in_memory_and_in_all_their_sum(folder, monkeypatch, capsys):
    x, y, _ = chain(4)
    save("net.onnx", y * np.linspace(1, 2, y.shape[-1], dtype="f4"), [x])
    seen, real = [], plan_file.timed_report
    monkeypatch.setattr(plan_file, "timed_report", lambda function, *a: seen.append(function) or real(function, *a))
    assert main(["plan", "net.onnx", "--stream", "w", "--budget", "1MiB"]) == 0
    line = capsys.readouterr().out.splitlines()[0]
    code = seen[0].program.code
    parts = seen[0].nbytes, code.ring.nbytes, sum(x.nbytes for x in resident_constants(code))
    assert len({*parts}) == 3 and min(parts) > 0
    (arena, ring, held), whole = map(bytes_text, parts), sum(parts)
    start = f"arena {arena}, ring {ring}, constants in memory {held}: {bytes_text(whole)} ({whole} bytes) in all"
    assert line.startswith(start)


def test_a_curve_has_savings_of_the_plan_that_changes_nothing():
    points = (Point(400, "free", 0, 0, 0, 0.0, False), Point(100, "bands", 5, 7, 11, 0.0021, True))
    lines = [line.split() for line in curve_lines(points)[1:3]]
    assert lines == [
        ["400", "0.0", "%", "0", "0", "0", "0.000", "free"],
        [">", "100", "75.0", "%", "5", "7", "11", "2.100", "bands"],
    ]


# -- the others --------------------------------------------------------------------------------------------------------


def test_a_saved_function_is_within_its_budget(folder, capsys):
    model = "tests.cli.test_curve:images"
    least = curve_of(load_model(model), None, "auto").points[-1].nbytes
    assert main(["save", model, "-o", "free"]) == main(["save", model, "-o", "small", "--budget", str(least)]) == 0
    assert cg.load("small").nbytes == least < cg.load("free").nbytes
    for line in capsys.readouterr().out.splitlines():
        size, name = line.rsplit("  ", 1)
        assert size.strip() == bytes_text(Path(name).stat().st_size)


def test_a_trace_says_the_time_one_by_one_and_that_of_the_run(folder, monkeypatch, capsys):
    monkeypatch.setattr(trace, "run_nanoseconds", lambda shares: 123_000_000_000)
    assert main(["trace", "tests.cli.test_curve:images", "-o", "t.json", "--threads", "1"]) == 0
    text = capsys.readouterr().out
    assert re.search(r": \d+ steps on 1 threads, [\d.e-]+ (µs|ms) one by one, 123 s in a run\n", text), text


def test_info_has_each_number_at_its_label(monkeypatch, capsys):
    from cgraph.cli import info

    facts = {
        "cgraph": "1.2", "cpu": "a cpu", "target": "avx9", "float32_lanes": 48, "bf16": "pairs", "tiles": None,
        "vdpbf16ps": False, "no_bf16": None, "cores": 31, "affinity": 17, "quota": 2.5,
        "threads": 5, "cache": "folder", "built_kernels": 77, "cache_kernels": 41, "cache_nbytes": 3072,
        "cuda": ["one", "two"],
        "no_cuda": None, "python": "3.x", "numpy": "2.y", "llvmlite": "0.z",
    }  # fmt: skip
    monkeypatch.setattr(info, "gather", lambda: facts)
    assert main(["info"]) == 0
    assert [line[11:] for line in capsys.readouterr().out.splitlines()] == [
        "1.2",
        "a cpu, kernels for avx9 (48 float32 at a time)",
        "precision=bf16 rounds: one instruction adds up two products in the time of a float32 multiply-add, "
        "also in training",
        "this processor has none",
        "5: of 31 cores this process may use 17, its quota is 2.5",
        "77 built with the package; 41 on disk, 3 KiB, in folder",
        "one; two",
        "Python 3.x, NumPy 2.y, llvmlite 0.z",
    ]


@pytest.mark.parametrize(
    ("pixels", "want"),
    [("unit", [0, 1]), ("bytes", [0, 255]), ("signed", [-1, 1])],
)
def test_ends_of_a_pictures_range_become_those_of_the_model(pixels, want):
    assert_near(scale_pixels(np.array([0.0, 255.0], "f4"), pixels), want, "float32 shares")


def test_imagenets_mean_and_deviation_belong_to_red_green_and_blue():
    """torchvision: mean 0.485, 0.456, 0.406 and standard deviation 0.229, 0.224, 0.225."""
    pixels = np.array([[[255, 51, 102]]], "f4")
    want = [(1 - 0.485) / 0.229, (0.2 - 0.456) / 0.224, (0.4 - 0.406) / 0.225]
    assert_near(scale_pixels(pixels, "imagenet")[0, 0], want, "float32 sums")
