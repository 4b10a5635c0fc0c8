"""Names from outside: read from each kind of object file, with the calls that LLVM adds."""

import json
import struct

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


def elf(is_wide: bool, names: list[tuple[str, int]]) -> bytes:
    """An ELF file with symbols of these names and sections, between tables of other texts."""
    texts = b"\0" + b"".join(name.encode() + b"\0" for name, _ in names)
    layout, head, size = ("<IIQQQQIIQQ", 64, 64) if is_wide else ("<10I", 52, 40)
    symbols = b""
    for name, section in [("", 0), *names]:
        at = texts.index(b"\0" + name.encode() + b"\0") + 1 if name else 0
        symbols += (
            struct.pack("<IBBHQQ", at, 16, 0, section, 0, 0)
            if is_wide
            else struct.pack("<IIIBBH", at, 0, 0, 16, 0, section)
        )
    other = b"\0other\0" * 9
    parts = [(0, b"", 0), (3, other, 0), (2, symbols, 3), (3, texts, 0)]
    body, rows = b"", b""
    for kind, raw, link in parts:
        rows += struct.pack(layout, 0, kind, 0, 0, head + len(body), len(raw), link, 0, 1, 0)
        body += raw
    header = bytearray(b"\x7fELF" + bytes([2 if is_wide else 1]) + bytes(head - 5))
    struct.pack_into("<Q" if is_wide else "<I", header, 40 if is_wide else 32, head + len(body))
    struct.pack_into("<HH", header, 58 if is_wide else 46, size, len(parts))
    return bytes(header) + body + rows


@pytest.mark.parametrize("is_wide", [False, True])
def test_elf_files_of_both_widths_need_the_symbols_without_a_section(is_wide):
    raw = elf(is_wide, [("sinf", 0), ("m_run", 1), ("memcpy", 0), ("m_arena", 0xFFF2), ("acos", 0)])
    assert undefined.undefined_names(raw) == ("acos", "memcpy", "sinf")
    assert undefined.undefined_names(elf(is_wide, [])) == ()


def test_coff_files_need_external_symbols_without_a_section_and_a_size():
    """Names of up to 8 bytes are in the symbol, longer ones in a table; some symbols have further entries."""
    texts = struct.pack("<I", 40) + b"__truncsfhf2\0_long_and_own\0"

    def symbol(name, value=0, section=0, storage=2, more=b""):
        return struct.pack("<8sIhHBB", name, value, section, 0, storage, len(more) // 18) + more

    symbols = [
        symbol(b"sin"), symbol(b"truncate"), symbol(struct.pack("<II", 0, 4)), symbol(b"m_run", section=1),
        symbol(b"common", value=8), symbol(b"static", storage=3), symbol(b".text", more=symbol(b"no name"), section=1),
        symbol(struct.pack("<II", 0, 17), section=2), symbol(b"last"),
    ]  # fmt: skip
    table = b"".join(symbols)
    raw = struct.pack("<HHIIIHH", 0x8664, 0, 0, 20, len(table) // 18, 0, 0) + table + texts
    assert undefined.undefined_names(raw) == ("__truncsfhf2", "last", "sin", "truncate")


def test_macho_files_need_external_symbols_without_a_section():
    """Without the one underscore that C's names have there."""
    names = {b"_sin": 1, b"__chk": 1, b"plain": 1, b"_m_run": 0xF, b"_local": 0, b"_debug": 0x21, b"_private": 0x11}
    texts, symbols = b"\0", b""
    for name, kind in names.items():
        symbols += struct.pack("<IBBHQ", len(texts), kind, 0, 0, 0)
        texts += name + b"\0"
    start = 32 + 40 + 24
    commands = struct.pack("<II", 0x19, 40) + bytes([5] * 32)
    commands += struct.pack("<6I", 2, 24, start, len(names), start + len(symbols), len(texts))
    raw = struct.pack("<8I", 0xFEEDFACF, 0, 0, 1, 2, len(commands), 0, 0) + commands + symbols + texts
    assert undefined.undefined_names(raw) == ("_chk", "plain", "sin")


def test_wasm_files_need_the_functions_of_their_import_section_and_perhaps_none():
    def section(kind: int, body: bytes) -> bytes:
        return bytes([kind, len(body) & 127 | 128, len(body) >> 7]) + body

    before, own = section(1, b"\x02" * 300), section(3, b"\x02\x00")
    imports = section(2, b"\x02\x03env\x04expf\x00\x01\x03env\x03cos\x00\x01")
    start = b"\0asm\1\0\0\0"
    assert undefined.undefined_names(start + before + imports + own) == ("cos", "expf")
    assert undefined.undefined_names(start + before + own) == ()


def test_a_coff_file_may_end_with_further_entries_of_its_last_symbol():
    def symbol(name, value=0, section=0, storage=2, others=0):
        return struct.pack("<8sIhHBB", name, value, section, 0, storage, others)

    for others in (0, 1, 2):
        table = symbol(b"sin") + symbol(b".text", section=1, others=others) + symbol(b"no name") * others
        raw = struct.pack("<HHIIIHH", 0x8664, 0, 0, 20, len(table) // 18, 0, 0) + table + struct.pack("<I", 4)
        assert undefined.undefined_names(raw) == ("sin",)


def test_tables_of_any_limits_stand_before_functions():
    """A table and a memory have one limit or two, and a global its type and whether it changes."""

    def named(name: bytes, rest: bytes) -> bytes:
        return b"\x03env" + bytes([len(name)]) + name + rest

    for limits in (b"\x00\x01", b"\x01\x01\x02", b"\x00\x81\x01", b"\x01\x81\x01\x82\x03"):
        parts = [
            named(b"t", b"\x01\x70" + limits), named(b"f", b"\x00\x05"), named(b"m", b"\x02" + limits),
            named(b"g", b"\x00\x81\x01"), named(b"s", b"\x03\x7f\x01"), named(b"h", b"\x00\x00"),
        ]  # fmt: skip
        assert [*imported_functions(bytes([len(parts)]) + b"".join(parts), 0)] == ["f", "g", "h"]
    assert [*imported_functions(b"\0", 0)] == []
    assert [number_at(raw, 0) for raw in (b"\0", b"\x7f", b"\x80\x01", b"\xff\xff\x03")] == [
        (0, 1), (127, 1), (128, 2), (65535, 3),
    ]  # fmt: skip
