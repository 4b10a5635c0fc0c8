"""Names from outside: read from each kind of object file, with the calls that LLVM adds."""

import json

import numpy as np
import pytest

import cgraph as cg
from cgraph.standalone import undefined
from cgraph.standalone.undefined import builtins_of, imported_functions, number_at
from tests.support.exported import require, run_export


def doubles():
    x, n = cg.Var((9,), "float64", "x"), cg.Var((4,), "uint64", "n")
    return [cg.exp(x) * 3 + x / 2, cg.astype(n, "float64"), cg.sin(x * 1e300)], [x, n]


@pytest.mark.parametrize("target", ["cortex-m4", "cortex-m7", "cortex-m55", "wasm32"])
def test_arithmetic_that_a_processor_lacks_is_listed_and_gives_the_bits_of_the_twin(target, tmp_path):
    if target == "wasm32":
        require("wasm-ld", "lld")
    outputs, inputs = doubles()
    result = cg.export(outputs, inputs, tmp_path / "m", target=target)
    expected = {
        "cortex-m4": {"__aeabi_dadd", "__aeabi_dmul", "__aeabi_ddiv"},
        "wasm32": {"__multi3"},
    }.get(target, {"__aeabi_ul2d"})
    assert expected <= set(result.externals)
    manifest = json.loads((tmp_path / "m/manifest.json").read_text())
    assert manifest["externals"] == list(result.externals)
    assert expected <= set(manifest["builtins"]) <= set(result.externals)
    header = (tmp_path / "m/m.h").read_text()
    assert f"the arithmetic that this processor lacks: {', '.join(manifest['builtins'])}. */" in header
    assert run_export(tmp_path / "m").outputs == (tmp_path / "m/check/out.bin").read_bytes()


@pytest.mark.parametrize("target", ["portable", "portable-windows", "portable-macos"])
def test_names_are_read_from_every_format(target, tmp_path):
    x = cg.Var((9,), "float64", "x")
    result = cg.export(cg.sin(x), x, tmp_path / "m", target=target, check=False)
    assert "sin" in result.externals and not builtins_of(result.externals)
    assert not any(name.startswith("m_") for name in result.externals), "its own names are not from outside"


READERS = {
    b"\x7fELF": "elf_names", b"\0asm": "wasm_names", b"\xcf\xfa\xed\xfe": "macho_names", b"\x64\x86\0\0": "coff_names",
}  # fmt: skip


@pytest.mark.parametrize("magic", READERS)
def test_names_are_sorted_once_each_and_without_those_of_the_linker_itself(magic, monkeypatch):
    for name in READERS.values():
        names = ["sin", "_GLOBAL_OFFSET_TABLE_", "cos", "sin"] if name == READERS[magic] else ["of another format"]
        monkeypatch.setattr(undefined, name, lambda raw, names=names: iter(names))
    assert undefined.undefined_names(magic + bytes(8)) == ("cos", "sin")


def test_builtins_are_arithmetic_and_no_other_names():
    names = ("__adddf3", "__aeabi_dadd", "__aeabi_memcpy", "__chkstk", "__multi3", "_fltused", "fma", "__gnu_h2f_ieee")
    assert builtins_of(names) == ("__adddf3", "__aeabi_dadd", "__multi3", "__gnu_h2f_ieee")


def test_an_import_section_has_functions_among_other_things():
    def named(name: bytes, rest: bytes) -> bytes:
        return b"\x03env" + bytes([len(name)]) + name + rest

    parts = [
        named(b"memory", b"\x02\x01\x01\x80\x02"),
        named(b"f", b"\x00\x05"),
        named(b"stack", b"\x03\x7f\x01"),
        named(b"table", b"\x01\x70\x00\x01"),
        named(b"g", b"\x00\x81\x01"),
    ]
    assert [*imported_functions(bytes([len(parts)]) + b"".join(parts), 0)] == ["f", "g"]
    assert number_at(b"\xe5\x8e\x26", 0) == (624485, 3)


@pytest.mark.parametrize("memory", ["static", "caller"])
def test_a_short_state_starts_with_its_value_behind_large_constants(memory, tmp_path):
    """The code generator read the marker of large constants where it copied a few bytes."""
    require("cc", "gcc")
    x, v = cg.Var((1500,), "float32", "x"), cg.Var((), "float32", "v").assign(np.float32(3))
    outputs = [x * cg.Const(np.arange(1500, dtype="f4")) + v]
    options = {"form": "shared", "memory": memory, "reset": True}
    cg.export(outputs, x, tmp_path / "m", target="portable", updates={v: v + 1}, **options)
    assert run_export(tmp_path / "m").outputs == (tmp_path / "m/check/out.bin").read_bytes()
