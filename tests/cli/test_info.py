import json
import re
import subprocess
import sys

import numpy as np
import pytest

from cgraph.cli import info, main
from cgraph.cli.info import gather, kernel_files
from cgraph.engine.cpu.cores import cores
from cgraph.engine.cuda import driver, gpu
from cgraph.engine.cuda.driver import open_driver
from cgraph.kernels.cache import cache_folder
from cgraph.kernels.prebuilt.table import KernelTable
from cgraph.kernels.store import store
from cgraph.kernels.target import host_target
from cgraph.record import replace
from tests.support.libcuda import StandIn


def test_facts_are_those_of_this_process():
    facts = gather()
    assert facts["threads"] == cores() <= facts["affinity"]
    assert facts["target"] == host_target().name
    assert facts["cache"] == str(store().folder)
    assert facts["numpy"] == np.__version__


@pytest.fixture
def folder(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return cache_folder()


def test_json_holds_the_same_facts(capsys, monkeypatch, folder):
    monkeypatch.setattr(store(), "folder", folder)
    assert main(["info", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == gather()


def test_text_names_processor_threads_and_kernels(capsys):
    assert main(["info"]) == 0
    lines = dict(line.split(maxsplit=1) for line in capsys.readouterr().out.splitlines())
    assert lines.keys() == {"cgraph", "processor", "bf16", "tiles", "threads", "kernels", "cuda", "versions"}
    assert host_target().name in lines["processor"]
    assert lines["threads"].startswith(f"{cores()}:")
    assert re.match(r"(\d+ built with the package; )?\d+ on disk, ", lines["kernels"])


@pytest.mark.parametrize(
    ("bf16", "features", "words"),
    [
        ("", "+avx2", "in float32: the target .* has no instruction"),
        ("", "+avx512bf16", "in float32: vdpbf16ps is slower than float32 on this processor$"),
        ("", "+avx512bf16,+amx-bf16", "in float32: vdpbf16ps is slower .*its tiles are not used: see `cgraph info`"),
        ("dot", "+avx512bf16", "rounds: vdpbf16ps"),
        ("emulated", "", "rounds: one instruction"),
    ],
)
def test_it_says_what_bf16_brings(bf16, features, words, monkeypatch, capsys):
    monkeypatch.setattr(info, "host_target", lambda: replace(host_target(), bf16=bf16, features=features))
    monkeypatch.setattr(info, "tiles_compute", lambda: False)
    assert re.search(words, line_of("bf16", capsys))
    facts = gather()
    assert facts["vdpbf16ps"] == ("+avx512bf16" in features) and bool(facts["no_bf16"]) == (not bf16)


@pytest.mark.parametrize(
    ("state", "fact", "words"),
    [
        ("", None, "has none"),
        ("permitted right", "used", "they multiply bytes, and with precision=bf16 floats$"),
        ("permitted wrong", "wrong", r"a trial of them failed .* CpuEngine\(tiles=True\)"),
        ("refused", "refused", "the system refuses them"),
    ],
)
def test_it_says_whether_tiles_are_used(state, fact, words, monkeypatch, capsys):
    permission, _, answer = state.partition(" ")
    monkeypatch.setattr(info, "tiles_state", lambda: permission)
    monkeypatch.setattr(info, "tiles_compute", lambda: answer == "right")
    assert re.search(words, line_of("tiles", capsys))
    assert gather()["tiles"] == fact
    assert (gather()["bf16"] == "tiles") == (fact == "used")
    assert ("products of tiles are faster" in line_of("bf16", capsys)) == (fact == "used")


NUMBERS = {
    "cores": 96, "affinity": 48, "quota": 6.5, "threads": 6, "built_kernels": 3, "cache_kernels": 17,
    "cache_nbytes": 3 * 2**20,
}  # fmt: skip
TEXTS = {
    "cgraph": "1.2.3", "cpu": "a processor", "target": "a target", "float32_lanes": 24, "bf16": "float32",
    "vdpbf16ps": False, "no_bf16": "a reason", "tiles": None, "cache": "/a/folder", "cuda": ["one", "two"],
    "no_cuda": None, "python": "3.2.1", "numpy": "4.5.6", "llvmlite": "7.8.9",
}  # fmt: skip


def test_each_fact_stands_in_its_own_place_of_the_text(monkeypatch, capsys):
    assert (NUMBERS | TEXTS).keys() == gather().keys()
    monkeypatch.setattr(info, "gather", lambda: NUMBERS | TEXTS)
    assert main(["info"]) == 0
    assert capsys.readouterr().out == (
        "cgraph     1.2.3\n"
        "processor  a processor, kernels for a target (24 float32 at a time)\n"
        "bf16       precision=bf16 computes and trains in float32: a reason\n"
        "tiles      this processor has none\n"
        "threads    6: of 96 cores this process may use 48, its quota is 6.5\n"
        "kernels    3 built with the package; 17 on disk, 3 MiB, in /a/folder\n"
        "cuda       one; two\n"
        "versions   Python 3.2.1, NumPy 4.5.6, llvmlite 7.8.9\n"
    )
    monkeypatch.setattr(info, "gather", lambda: NUMBERS | TEXTS | {"quota": None, "cuda": [], "no_cuda": "why"})
    assert main(["info"]) == 0
    assert {"threads    6: of 96 cores this process may use 48, without a quota", "cuda       why"} <= {
        *capsys.readouterr().out.splitlines()
    }
    monkeypatch.setattr(info, "gather", lambda: NUMBERS | TEXTS | {"built_kernels": 0})
    assert line_of("kernels", capsys) == "kernels    17 on disk, 3 MiB, in /a/folder"


def test_each_fact_comes_from_its_own_source(monkeypatch, folder):
    (folder.path / "a.o").write_bytes(bytes(10))
    monkeypatch.setattr(store(), "folder", folder)
    monkeypatch.setattr(store(), "table", lambda target: KernelTable(None, "", {"a": 1, "b": 2, "c": 3}))
    monkeypatch.setattr(info.os, "cpu_count", lambda: 96)
    monkeypatch.setattr(info, "allowed_processors", lambda: 48)
    monkeypatch.setattr(info, "quota_of", lambda *_: 6.5)
    monkeypatch.setattr(info, "cores", lambda: 6)
    monkeypatch.setattr(info, "cpu_name", lambda: "a processor")
    monkeypatch.setattr(info, "version", "the version of {}".format)
    monkeypatch.setattr(info.platform, "python_version", lambda: "3.2.1")
    facts, target = gather(), host_target()
    want = NUMBERS | {"cache_kernels": 1, "cache_nbytes": 10, "cpu": "a processor", "cache": str(folder)}
    want |= {"target": target.name, "float32_lanes": target.lanes, "python": "3.2.1"}
    want |= {name: f"the version of {name}" for name in ("numpy", "llvmlite")}
    assert {name: facts[name] for name in want} == want


def line_of(name: str, capsys) -> str:
    """The line of one fact in the text."""
    assert main(["info"]) == 0
    (line,) = (x for x in capsys.readouterr().out.splitlines() if x.startswith(f"{name} "))
    return line


def test_a_gpu_is_described(monkeypatch):
    monkeypatch.setattr(gpu, "driver", lambda: open_driver(StandIn()))
    assert gather()["cuda"] == ["stand-in, capability 9.0, 1 GiB, driver of CUDA 12.8"]


def test_without_a_gpu_it_says_why(capsys, monkeypatch):
    monkeypatch.setattr(driver, "NAMES", ("no_such_library",))
    driver.driver.cache_clear()
    assert main(["info"]) == 0
    assert "there is no NVIDIA driver on this machine" in capsys.readouterr().out


def test_kernels_on_disk_are_counted_with_their_bytes(folder):
    (folder.path / "a.o").write_bytes(bytes(10))
    (folder.path / "b.o").write_bytes(bytes(7))
    (folder.path / "of a gpu.ptx").write_bytes(bytes(3))
    (folder.path / "unfinished").write_bytes(bytes(99))
    assert sorted(kernel_files(folder)) == [3, 7, 10]
    assert kernel_files(None) == []


def test_without_a_cache_folder_it_says_so(capsys, monkeypatch):
    monkeypatch.setattr(store(), "folder", None)
    assert main(["info"]) == 0
    assert "not kept" in capsys.readouterr().out


@pytest.mark.parametrize("arguments", [["info", "more"], ["info", "--jsn"]])
def test_wrong_arguments_are_refused(arguments, capsys):
    with pytest.raises(SystemExit) as stopped:
        main(arguments)
    assert stopped.value.code == 2
    assert "usage" in capsys.readouterr().err


def test_the_package_runs_as_a_module():
    found = subprocess.run(
        [sys.executable, "-m", "cgraph", "info", "--json"], capture_output=True, text=True, check=True
    )
    assert json.loads(found.stdout)["cgraph"]
