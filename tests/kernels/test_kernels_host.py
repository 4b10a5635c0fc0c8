"""What is remembered of this machine: read back only whole, and under a name of this processor and this LLVM."""

import json
import os
from functools import cache

import pytest

from cgraph.kernels import host as host_module
from cgraph.kernels.cache import cache_folder
from cgraph.kernels.host import Host, detect_host, host, host_key, read_parts
from cgraph.kernels.isa.architectures import host_architecture


@pytest.mark.parametrize("what", ["size", "time", "version", "processor"])
def test_what_is_remembered_of_this_machine_is_of_this_processor_and_this_llvm(monkeypatch, what):
    before = host_module.host_key()
    if before is None:
        pytest.skip("this system does not describe its processor")
    if what == "version":
        monkeypatch.setattr("llvmlite.__version__", "0.0.1")
    if what == "processor":
        changed = dict.fromkeys(host_module.cpuinfo(), "another")
        monkeypatch.setattr(host_module, "cpuinfo", lambda: changed)
    if what in ("size", "time"):
        known = host_module.Path.stat

        class Status:
            def __init__(self, status) -> None:
                self.st_size = status.st_size + (what == "size")
                self.st_mtime_ns = status.st_mtime_ns + (what == "time")

        monkeypatch.setattr(host_module.Path, "stat", lambda path: Status(known(path)))
    assert host_module.host_key() != before


@pytest.mark.parametrize("text", [b"nonsense", b"[]", b"{}", b"[1, 2, 3, 4, 5, 6]", b"[" * 100_000])
def test_a_whole_file_that_holds_no_host_is_a_miss(text):
    assert read_parts(text) is None


def test_fields_are_read_in_their_order_and_only_if_all_are_text():
    fields = ["cpu", "+a,-b", "triple", "layout", "version", "vendor"]
    assert read_parts(json.dumps(fields).encode()) == fields
    assert len(fields) == len(Host._fields)
    for other in (fields[:-1], [*fields, "more"], [*fields[:-1], 5], [*fields[:-1], None], dict.fromkeys(fields)):
        assert read_parts(json.dumps(other).encode()) is None
    assert read_parts(b"\xff\xfe") is None


@pytest.fixture
def anew(tmp_path, monkeypatch):
    """A cache folder of its own, and a function that asks as a new process would where only LLVM describes machines."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(host_module, "linux_host", lambda: None)
    return host_module.host.__wrapped__


def test_a_second_process_reads_what_the_first_wrote(anew, monkeypatch):
    if host_key() is None:
        pytest.skip("this system does not describe its processor")
    first = anew()
    assert first == detect_host()
    monkeypatch.setattr(host_module, "detect_host", lambda: pytest.fail("it was written"))
    assert anew() == first


def test_a_damaged_description_is_detected_anew_and_replaced(anew, monkeypatch):
    if host_key() is None:
        pytest.skip("this system does not describe its processor")
    name = f"host_{host_key()}"
    cache_folder().write(name, b'["only one"]')
    assert anew() == detect_host()
    assert read_parts(cache_folder().read(name)) == [getattr(detect_host(), field) for field in Host._fields]


@pytest.mark.parametrize("lacks", ["key", "folder"])
def test_without_a_key_or_a_folder_nothing_is_remembered(lacks, anew, monkeypatch, tmp_path):
    monkeypatch.setattr(host_module, "host_key" if lacks == "key" else "cache_folder", lambda: None)
    assert anew() == detect_host()
    assert not list(tmp_path.rglob("host_*"))


def test_linux_and_llvm_report_the_same_features():
    described = host_module.linux_host()
    if described is None:
        pytest.skip("this system does not report its processor's features")
    assert host() == described
    by_llvm, names = detect_host(), host_architecture().feature_names.values()
    assert {x for x in names if described.has(x)} == {x for x in names if by_llvm.has(x)}
    assert (described.triple, described.vendor) == (by_llvm.triple, by_llvm.vendor)
    assert host_architecture().detect(described) == host_architecture().detect(by_llvm)


@pytest.mark.parametrize("lacks", ["system", "features"])
def test_a_machine_that_linux_does_not_describe_is_described_by_llvm(lacks, monkeypatch):
    if lacks == "system":
        monkeypatch.setattr(host_module, "is_linux", lambda: False)
    else:
        monkeypatch.setattr(host_module, "host_features", frozenset)
    assert host_module.linux_host() is None


def test_another_llvm_has_other_names_in_the_cache(monkeypatch):
    before = host_module.linux_host()
    if before is None:
        pytest.skip("this system does not report its processor's features")
    monkeypatch.setattr("llvmlite.__version__", "0.0.1")
    assert host_module.linux_host().version != before.version
    monkeypatch.undo()
    monkeypatch.setattr(host_module, "library_status", lambda: None)
    assert host_module.linux_host().version != before.version


SAPPHIRE = "+avx2,+fma,+avx512f,+avx512bw,+avx512dq,+avx512vl,+avx512bf16,+amx-tile,+amx-int8,+amx-bf16"


@pytest.fixture
def ask(monkeypatch):
    """A function that asks as a new process on such a processor does; it returns the state and the questions."""

    def state_of(features: str, *answers: bool) -> tuple[str, int]:
        described, left = Host("sapphirerapids", features, "x86_64-unknown-linux-gnu", "", ""), list(answers)
        monkeypatch.setattr(host_module, "host", lambda: described)
        monkeypatch.setattr(host_module, "request_tiles", lambda: left.pop(0))
        monkeypatch.setattr(host_module, "tiles_state", cache(host_module.tiles_state.__wrapped__))
        return [host_module.tiles_state() for _ in range(3)][0], len(answers) - len(left)

    return state_of


def test_a_process_asks_for_tiles_once_and_remembers_the_answer(ask):
    assert ask(SAPPHIRE, True, False) == ("permitted", 1)
    assert ask(SAPPHIRE, False, True) == ("refused", 1)


@pytest.mark.parametrize("missing", ["+amx-tile", "+amx-int8", "+amx-bf16"])
def test_a_processor_without_one_of_the_three_features_does_not_ask(missing, ask):
    assert ask(SAPPHIRE.replace(missing, "-other"), True) == ("", 0)


def test_a_description_does_not_ask(anew, monkeypatch):
    monkeypatch.setattr(host_module, "detect_host", lambda: Host("sapphirerapids", SAPPHIRE, "", "", ""))
    monkeypatch.setattr(host_module, "request_tiles", lambda: pytest.fail("no engine requested tiles"))
    assert anew().has(*host_module.TILES)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
def test_a_forked_child_has_the_answer_of_its_parent(ask):
    ask(SAPPHIRE, True)
    child = os.fork()
    if not child:
        os._exit(host_module.tiles_state() != "permitted")  # a second question would find no answer
    assert os.waitpid(child, 0)[1] == 0


def test_a_processor_that_its_system_does_not_describe_has_no_key(monkeypatch):
    monkeypatch.setattr(host_module, "cpuinfo", dict)
    assert host_key() is None


def test_no_library_of_llvms_no_key(monkeypatch):
    monkeypatch.setattr("llvmlite.__file__", "/no/such/place/llvmlite/__init__.py")
    assert host_key() is None
