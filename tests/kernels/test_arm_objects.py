"""Objects for AArch64 linked without LLVM: an emulator runs the image far from the program's own code."""

import shutil
import struct
import subprocess

import llvmlite.binding as llvm
import numpy as np
import pytest

from cgraph.engine.cpu.threads import interpreter
from cgraph.kernels import target as target_module
from cgraph.kernels.code_image import Image, UnknownCode
from cgraph.kernels.expression import Trace
from cgraph.kernels.isa.arm import ARCHITECTURE, NEON
from cgraph.kernels.isa.records import Host
from cgraph.kernels.kernel import Pointer, contiguous
from cgraph.kernels.llvm.compile import compile_kernel
from cgraph.kernels.objects import RELOCATION, RELOCATIONS, ObjectFile, link_objects, write_field
from cgraph.kernels.pointwise.calls import pointwise_calls
from tests.kernels.test_arm import SOME, kernels_of
from tests.support.tolerance import assert_near

COMPILER, EMULATOR = "aarch64-linux-gnu-gcc", "qemu-aarch64"
CODE, DATA = 0x7000_0000_0000, 0x6000_0000_0000  # where the program maps the image, and what it works on
MAIN = f"""
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <sys/mman.h>
static int64_t head[6];
static void *map(int64_t at, int64_t nbytes) {{
    return mmap((void *)at, nbytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
}}
int main(void) {{ /* bytes of code and data, addresses inside and outside, entry, tasks */
    fread(head, 8, 6, stdin);
    char *code = map({CODE}, head[0]), *data = map({DATA}, head[1]);
    fread(code, 1, head[0], stdin);
    fread(data, 1, head[1], stdin);
    for (int64_t i = 0, row[3]; i < head[2] + head[3]; i++) {{
        fread(row, 8, 3, stdin);
        int64_t outer[] = {{(int64_t)getppid, (int64_t)memcpy, (int64_t)sin}};
        int64_t address = (i < head[2] ? (int64_t)code : outer[row[2]]) + row[1];
        memcpy(code + row[0], &address, 8);
    }}
    __builtin___clear_cache(code, code + head[0]);
    mprotect(code, head[0], PROT_READ | PROT_EXEC);
    ((void (*)(void *, int64_t, int64_t))(code + head[4]))(data, 0, head[5]);
    return fwrite(data, 1, head[1], stdout) != head[1];
}}
"""
OUTER = ("getppid", "memcpy", "sin")
BEFORE = """
    .globl before
before: ret
    .space 5000
"""
TEXT = """
    .text
    .globl f
f:  stp x29, x30, [sp, -32]!
    str x19, [sp, 16]
    mov x19, x0
    bl g                                    // CALL26 of another section
    str x0, [x19]
    bl getppid                              // CALL26 of the C library
    str x0, [x19, 8]
    adrp x1, table                          // ADR_PREL_PG_HI21
    add x2, x1, :lo12:table                 // ADD_ABS_LO12_NC
    ldr x3, [x2, 8]
    str x3, [x19, 16]
    ldrb w3, [x1, :lo12:table+1]            // LDST8_ABS_LO12_NC
    ldrh w4, [x1, :lo12:table+2]            // LDST16_ABS_LO12_NC
    ldr w5, [x1, :lo12:table+4]             // LDST32_ABS_LO12_NC
    ldr x6, [x1, :lo12:table+8]             // LDST64_ABS_LO12_NC
    ldr q7, [x1, :lo12:table+16]            // LDST128_ABS_LO12_NC
    stp x3, x4, [x19, 24]
    stp x5, x6, [x19, 40]
    str q7, [x19, 64]
    ldr x3, [x2, 32]                        // ABS64: the address of last
    ldr x3, [x3]
    ldrsw x4, [x2, 40]                      // PREL32: the distance of last
    add x5, x2, 40
    ldr x4, [x5, x4]
    stp x3, x4, [x19, 80]
    ldr x19, [sp, 16]
    ldp x29, x30, [sp], 32
    ret
    .section .rodata
    .balign 16
table: .byte 1, 2
    .hword 0x0403
    .word 0x08070605
    .quad 0x100f0e0d0c0b0a09
    .quad 11, 22
    .quad last
    .word last - .
    .section .rodata.far, "a"
    .space 5000
    .balign 8
last: .quad 33
    .section .text.g, "ax"
    .space 5000
g:  b h                                     // JUMP26
    .section .text.h, "ax"
    .space 5000
h:  mov x0, 77
    ret
"""


@pytest.fixture
def arm_host(monkeypatch):
    """Code is generated as in a process on AArch64."""
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    triple = ARCHITECTURE.objects.triple
    layout = str(llvm.Target.from_triple(triple).create_target_machine().target_data)
    monkeypatch.setattr(target_module, "host", lambda: Host("generic", "+neon", triple, layout, ""))
    target_module.target_machine.cache_clear()
    yield
    target_module.target_machine.cache_clear()


def need_tools():
    if not (shutil.which(COMPILER) and shutil.which(EMULATOR)):
        pytest.skip(f"there is no {COMPILER} or {EMULATOR}. Install gcc-aarch64-linux-gnu and qemu-user")


def assembled(folder, name: str, text: str) -> bytes:
    (folder / f"{name}.s").write_text(text)
    subprocess.run([COMPILER, "-c", f"{name}.s"], cwd=folder, check=True)
    return (folder / f"{name}.o").read_bytes()


def run_image(folder, image: Image, entry: str, data: bytes, tasks: int = 1) -> bytes:
    """Return the data after a call of a function of an image."""
    (folder / "main.c").write_text(MAIN)
    subprocess.run([COMPILER, "-O1", "-static", "main.c", "-lm", "-o", "main"], cwd=folder, check=True)
    head = (len(image.code), len(data), len(image.inner), len(image.outer), image.symbols[entry], tasks)
    rows = [(at, to, 0) for at, to in image.inner.tolist()]
    rows += [(at, plus, OUTER.index(name)) for name, at, plus in image.outer]
    given = struct.pack("<6q", *head) + image.code.tobytes() + data + np.array(rows, np.int64).tobytes()
    return subprocess.run([EMULATOR, folder / "main"], input=given, check=True, capture_output=True).stdout


def kinds_of(code: bytes) -> set[int]:
    """The numbers of the relocations of everything that is placed."""
    file = ObjectFile(code, 0, ARCHITECTURE)
    tables = [s for s in file.sections if s.kind == RELOCATIONS and s.info in file.places]
    return {row[1] for s in tables for row in file.rows(s, RELOCATION)}


def test_each_relocation_leads_where_it_says(tmp_path):
    need_tools()
    code = {name: assembled(tmp_path, name, text) for name, text in (("before", BEFORE), ("f", TEXT))}
    assert kinds_of(code["f"]) == ARCHITECTURE.relocations.keys()
    image = link_objects(code, ARCHITECTURE)
    result = struct.unpack("<12q", run_image(tmp_path, image, "f", bytes(96)))
    eight = 0x100F0E0D0C0B0A09
    assert result[1] > 0
    assert (result[0], *result[2:7], *result[8:]) == (77, eight, 2, 0x0403, 0x08070605, eight, 11, 22, 33, 33)


def test_kernels_and_the_interpreter_are_linked_without_llvm(arm_host):
    kernels = [*set().union(*(kernels_of(case, NEON) for case in SOME)), *interpreter()]
    code = {f"f{i}": compile_kernel(kernel, f"f{i}", NEON)[0] for i, kernel in enumerate(kernels)}
    image = link_objects(code, ARCHITECTURE)
    assert image.symbols.keys() == code.keys()
    assert set().union(*map(kinds_of, code.values())) >= {275, 283}


def test_a_kernel_with_constants_and_a_c_function_has_the_sums_of_numpy(arm_host, tmp_path):
    """Its constants are read by pages, and its sine is the C library's."""
    need_tools()
    m = Trace()
    program = m.program(m.exp(m.load(0, "f4")) + m.sin(m.load(0, "f4")))
    n = 1000
    x, sizes = np.linspace(-20, 20, n).astype("f4"), 4 * n
    out = np.zeros(n, "f4")
    (call,) = pointwise_calls(NEON, program, *(contiguous(Pointer(a), (n,), "f4") for a in (out, x)))
    places = {id(out): 256, id(x): 256 + sizes}
    words = [DATA + places[id(a.base)] + a.offset if isinstance(a, Pointer) else a for a in call.args]
    image = link_objects({"f": compile_kernel(call.kernel, "f", NEON)[0]}, ARCHITECTURE)
    data = np.array(words, np.int64).tobytes().ljust(256, b"\0") + out.tobytes() + x.tobytes()
    result = run_image(tmp_path, image, "f", data, call.tasks)
    assert_near(np.frombuffer(result, "f4", n, 256), np.exp(x) + np.sin(x), "float32")


def test_an_unknown_relocation_and_an_address_outside_of_the_image_are_refused(tmp_path):
    need_tools()
    for text, message in (
        ("ldr x0, [x0, :got_lo12:getppid]", "a relocation of kind 312"),
        ("adrp x0, getppid", "an address of getppid, which is not in memory"),
        ("bl getppid + 8", "an address of getppid, which is not in memory"),
        ("ldr x0, [x0, :lo12:odd]", "offset of"),
    ):
        code = assembled(tmp_path, "f", f".globl f\nf: {text}\n.section .rodata\n.byte 0\nodd: .byte 0\n")
        with pytest.raises(UnknownCode, match=message):
            link_objects({"f": code}, ARCHITECTURE)


@pytest.mark.parametrize("way", [-1, 1])
def test_a_call_reaches_128_mebibytes_and_no_further(way):
    patch, far = ARCHITECTURE.relocations[283], way * (1 << 27)
    word = np.frombuffer(bytes.fromhex("00000094"), np.uint8).copy()  # bl
    last = far - 4 if way > 0 else far
    write_field(word, patch, 0, last)
    assert int.from_bytes(word.tobytes(), "little") == 0x94000000 | last // 4 & (1 << 26) - 1
    with pytest.raises(UnknownCode, match="distance of"):
        write_field(word, patch, 0, last + 4 * way)
    with pytest.raises(UnknownCode, match="distance of 2 "):
        write_field(word, patch, 0, 2)
