"""The kernel cache: whose folder it is, what its names tell apart, and which objects are not run."""

import ast
import os
import shutil
import stat
from collections.abc import Callable
from functools import cache as cached
from pathlib import Path

import llvmlite.binding as llvm
import pytest

import cgraph
from cgraph.kernels import cache, target
from cgraph.kernels import store as store_module
from cgraph.kernels.cache import CacheFolder, cache_folder
from cgraph.kernels.code_image import UnknownCode
from cgraph.kernels.host import Host, host
from cgraph.kernels.isa.architectures import host_architecture
from cgraph.kernels.isa.ptx import gpu_target
from cgraph.kernels.isa.records import CodeGeneration, Target
from cgraph.kernels.isa.systems import has_elf
from cgraph.kernels.kernel import Kernel
from cgraph.kernels.objects import HEADER, RELOCATION, RELOCATIONS, SECTION, ObjectFile, is_for
from cgraph.kernels.store import KernelStore, fits, sources_of, symbol_of
from cgraph.kernels.target import code_generation, host_target, new_target_machine
from cgraph.memory.search.cached import compile_cached
from cgraph.record import replace
from cgraph.system import folders
from cgraph.system.file_ownership import open_folder
from tests.support.exchange import exchanged_before_call

HOST, SOMEBODY = host_target(), 12345
KERNEL, OTHER = Kernel("blocked_copy.fill_halo", ("f4", 4)), Kernel("blocked_copy.fill_halo", ("f8", 4))
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a folder away")
on_linux = pytest.mark.skipif(not host().triple.startswith("x86_64"), reason="relocations of x86-64")
where_we_link = pytest.mark.skipif(
    not has_elf(host().triple) or not host_architecture().relocations, reason="LLVM places the code"
)


@pytest.fixture
def base(tmp_path, monkeypatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "base"))
    return tmp_path / "base"


# -- whose folder it is ------------------------------


def test_a_link_that_is_turned_after_the_folder_was_opened_leads_nowhere(tmp_path, monkeypatch):
    """What is in the other folder is the user's own, so only the folder tells: all can write there."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "link"))
    (tmp_path / "own").mkdir()
    (tmp_path / "link").symlink_to("own")
    folder = cache_folder()
    folder.write("a", b"code")
    shutil.copytree(tmp_path / "own", tmp_path / "all")
    (tmp_path / "all/cgraph/kernels").chmod(0o777)
    (tmp_path / "own/cgraph/kernels/a").unlink()
    (tmp_path / "link").unlink()
    (tmp_path / "link").symlink_to("all")
    assert folder.read("a") is None
    folder.write("b", b"code")
    folder.prune(largest=0)
    assert sorted(os.listdir(tmp_path / "all/cgraph/kernels")) == ["a"]


@pytest.mark.parametrize("part", ["base", "base/cgraph", "base/cgraph/kernels"])
def test_whatever_is_exchanged_while_a_folder_is_opened_leads_nowhere(tmp_path, monkeypatch, part):
    """Before each call to the system, in turn, one part of the path becomes a link to a folder that all can write."""
    steps = ("open", "fstat", "stat", "lstat", "mkdir", "fchmod")
    for at in range(10 * len((tmp_path / "0" / part).parts)):  # each part of the path costs a few calls
        root = tmp_path / f"{at}"
        (root / "base/cgraph/kernels").mkdir(parents=True)
        for evil in (root / "evil", root / "evil/cgraph", root / "evil/cgraph/kernels", root / "evil/kernels"):
            evil.mkdir()
            evil.chmod(0o777)
        monkeypatch.setenv("XDG_CACHE_HOME", str(root / "base"))
        with exchanged_before_call(monkeypatch, steps, at, root, part) as calls:
            folder = cache_folder()
        if folder is not None:
            folder.write("a", b"code")
        assert not list((root / "evil").rglob("a"))
        opened = None if folder is None else os.fstat(folder.handle).st_ino
        assert opened not in {path.stat().st_ino for path in (root / "evil").rglob("*")}
        if len(calls) <= at:
            break
    else:
        pytest.fail("more calls than were tried")


@as_root
@pytest.mark.parametrize("foreign", ["home", "home/.cache", "home/.cache/cgraph"])
def test_nothing_is_made_in_somebody_elses_home(tmp_path, monkeypatch, foreign):
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    (tmp_path / foreign).mkdir(parents=True)
    os.chown(tmp_path / foreign, SOMEBODY, SOMEBODY)
    before = sorted(tmp_path.rglob("*"))
    assert cache_folder() is None and cache_folder("numba") is None
    assert sorted(tmp_path.rglob("*")) == before


@pytest.mark.parametrize("mode", [0o777, 0o775])
def test_nothing_is_made_where_others_can_rename_it(base, mode):
    base.mkdir()
    base.chmod(mode)
    assert cache_folder() is None and not list(base.iterdir())


def test_a_folder_above_need_not_be_readable(base):
    """It is enough to go through it."""
    base.mkdir()
    first = cache_folder()
    first.write("a", b"code")
    base.chmod(0o711)
    again = cache_folder()
    assert again.read("a") == b"code"
    assert not hasattr(os, "O_PATH") or folders.PASSED & os.O_PATH


@pytest.mark.parametrize("make", [False, True])
def test_a_missing_folder_is_made_only_when_that_is_asked_for(tmp_path, make):
    path = os.path.realpath(tmp_path / "a" / "b")
    if not make:
        with pytest.raises(FileNotFoundError):
            open_folder(path)
        assert not (tmp_path / "a").exists()
        return
    handle = open_folder(path, make=True)
    assert os.fstat(handle).st_ino == (tmp_path / "a" / "b").stat().st_ino
    assert stat.S_IMODE((tmp_path / "a").stat().st_mode) == 0o700
    os.close(handle)


def test_no_descriptor_stays_open_however_opening_ends(base, monkeypatch):
    before = len(os.listdir("/proc/self/fd"))
    for spoil in (lambda: None, lambda: base.chmod(0o777), lambda: (base.chmod(0o755), shutil.rmtree(base / "cgraph"))):
        folder = cache_folder()
        del folder
        spoil()
    base.joinpath("cgraph").write_bytes(b"")
    assert cache_folder() is None
    assert len(os.listdir("/proc/self/fd")) == before


def test_a_process_that_closed_all_descriptors_has_no_cache_rather_than_another_folder(base, tmp_path):
    """A daemon does so; the number may be another folder's by now."""
    folder = cache_folder()
    folder.write("a", b"code")
    (tmp_path / "other").mkdir(mode=0o700)
    shutil.copy(folder.path / "a", tmp_path / "other" / "a")
    other = os.open(tmp_path / "other", os.O_RDONLY)
    own = os.dup(folder._handle)
    os.dup2(other, folder._handle)
    assert folder.read("a") is None
    folder.write("b", b"code")
    folder.prune(largest=0)
    assert os.listdir(tmp_path / "other") == ["a"] and folder.entries() == []
    number = folder._handle
    del folder
    assert os.fstat(number).st_ino == (tmp_path / "other").stat().st_ino, "it closed what is not its own"
    for handle in (other, own, number):
        os.close(handle)


def test_a_folder_that_was_opened_and_then_given_away_is_not_used(base):
    folder = cache_folder()
    folder.write("a", b"code")
    for mode in (0o701, 0o704, 0o702, 0o710, 0o740, 0o720):
        folder.path.chmod(mode)
        assert folder.read("a") is None
    folder.path.chmod(0o700)
    assert folder.read("a") == b"code"


@pytest.mark.parametrize("place", ["ours", "nowhere"])
def test_numbas_cache_is_in_a_folder_of_ours_or_nowhere(base, tmp_path, monkeypatch, place):
    """It is a pickle: who writes there runs code in every process that reads it."""
    if place == "nowhere":
        monkeypatch.setattr("cgraph.memory.search.cached.cache_folder", lambda _: None)
    assert compile_cached(function_in(tmp_path))(2) == 3
    assert not list(tmp_path.glob("__pycache__/*.nbc"))
    assert bool(list(base.glob("cgraph/numba/*/*/*.nbc"))) == (place == "ours")


def test_a_change_of_a_module_beside_the_function_is_a_miss(base, tmp_path):
    """Numba's pickles name the classes of such a module, which it does not compare."""
    for text in ("class A: ...", "class B: ..."):
        (tmp_path / "helper.py").write_text(text)
        assert compile_cached(function_in(tmp_path))(2) == 3
    assert len(list(base.glob("cgraph/numba/*"))) == 2


def function_in(folder: Path) -> Callable:
    source, space = folder / "module.py", {"__builtins__": {}}  # where pybind11 puts what no pickle takes
    source.write_text("def f(x):\n    return x + 1\n")
    exec(compile(source.read_text(), str(source), "exec"), space)
    return space["f"]


# -- names ------------------------------


def another(value: object) -> object:
    return not value if isinstance(value, bool) else value + 1 if isinstance(value, int) else f"{value}x"


@pytest.mark.parametrize("field", Target._fields)
def test_another_target_gives_another_name(field):
    value = "generic" if field == "architecture" else another(getattr(HOST, field))
    assert symbol_of(KERNEL, replace(HOST, **{field: value})) != symbol_of(KERNEL, HOST)


@pytest.mark.parametrize("field", CodeGeneration._fields)
def test_another_setting_of_the_code_generator_gives_another_name(monkeypatch, field):
    before, how = symbol_of(KERNEL, HOST), code_generation(HOST)
    changed = replace(how, **{field: another(getattr(how, field))})
    monkeypatch.setattr(store_module, "code_generation", lambda _: changed)
    assert symbol_of(KERNEL, HOST) != before


@pytest.mark.parametrize("field", ["triple", "layout", "version"])
def test_another_system_or_compiler_gives_another_name(monkeypatch, field):
    """Processor, features and what its vendor decides are part of the target."""
    before, changed = symbol_of(KERNEL, HOST), replace(host(), **{field: another(getattr(host(), field))})
    for module in (store_module, target):
        monkeypatch.setattr(module, "host", lambda: changed)
    assert symbol_of(KERNEL, HOST) != before
    assert set(Host._fields) == {"cpu", "features", "triple", "layout", "version", "vendor"}


@pytest.mark.parametrize(
    "kernel", [OTHER, Kernel("blocked_copy.fill_halo", ("f4", 8)), Kernel("blocked_copy.copy", ("f4", 4))]
)
def test_another_kernel_has_another_name(kernel):
    assert symbol_of(kernel, HOST) != symbol_of(KERNEL, HOST)


@pytest.mark.parametrize("setting", ["host", "gpu"])
def test_the_code_generator_is_set_up_as_the_name_says(monkeypatch, setting):
    """Every setting that llvmlite takes is given, from the record that is in the name."""
    given, chosen = [], HOST if setting == "host" else gpu_target(9, 0)

    class Machine:
        def __init__(self, triple: str) -> None:
            self.triple = triple

        def create_target_machine(self, **settings):
            given.append((self.triple, settings))

    monkeypatch.setattr(llvm.Target, "from_triple", Machine)
    how = code_generation(chosen)
    new_target_machine(chosen, how)
    ((triple, settings),) = given
    assert triple == how.triple
    assert settings == {
        "cpu": chosen.cpu,
        "features": chosen.features,
        "opt": how.optimisation,
        "reloc": how.relocation,
        "codemodel": how.code_model,
        "jit": how.jit,
        "abiname": how.abi,
    }


def test_triple_and_layout_are_those_of_the_code_that_is_generated():
    machine = new_target_machine(HOST, code_generation(HOST))
    assert machine.triple == host().triple
    assert host().layout in ("", str(machine.target_data))  # empty: that of the triple


KERNELS = Path(cgraph.__file__).parent / "kernels"
EMITTERS = sorted(KERNELS.glob("*/*emit.py"))


@cached
def modules_named(path: Path) -> set[Path]:
    """The files of ours that a file imports, as Python's own parser sees it."""
    root, names = Path(cgraph.__file__).parent.parent, set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom):
            names |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
    places = {root / f"{name.replace('.', '/')}.py" for name in names if name.startswith("cgraph.")}
    return {place for place in places if place.is_file()}


@pytest.mark.parametrize("emitter", EMITTERS, ids=lambda path: str(path.relative_to(KERNELS)))
def test_every_file_of_ours_that_an_emitter_imports_is_part_of_the_name(emitter):
    variant = emitter.stem.removesuffix("emit").removesuffix("_")
    paths = {Path(x) for x in sources_of(f"{emitter.parent.name}.{variant}" if variant else emitter.parent.name)}
    assert {emitter, KERNELS / "llvm/compile.py", KERNELS / "llvm/build.py"} <= paths
    assert (
        emitter.with_name(emitter.name.replace("emit", "signature")) in paths or "k.args()" not in emitter.read_text()
    )
    for path in paths:
        assert modules_named(path) <= paths, path


# -- objects that are not run ------------------------------


def defining(symbol: str) -> bytes:
    """Object code of a kernel's name that calls a C function, so that it has a relocation."""
    text = f'declare i32 @getpid()\ndefine i32 @"{symbol}"() {{ %x = call i32 @getpid() ret i32 %x }}'
    return new_target_machine(HOST, code_generation(HOST)).emit_object(llvm.parse_assembly(text))


def with_byte(at: int, value: int) -> Callable[[str], bytes]:
    def change(symbol: str) -> bytes:
        code = bytearray(defining(symbol))
        code[at] = value
        return bytes(code)

    return change


def with_relocation(kind: int) -> Callable[[str], bytes]:
    def change(symbol: str) -> bytes:
        code = defining(symbol)
        changed, table = (
            bytearray(code),
            next(s for s in ObjectFile(code, 0, host_architecture()).sections if s.kind == RELOCATIONS),
        )
        at, _, *rest = RELOCATION.unpack_from(code, table.start)
        RELOCATION.pack_into(changed, table.start, at, kind, *rest)
        return bytes(changed)

    return change


def with_section(kind: int | None, field: int, value: int) -> Callable[[str], bytes]:
    """The section of this kind, or the one that is run, with another number in a field."""

    def change(symbol: str) -> bytes:
        code = defining(symbol)
        changed, file = bytearray(code), ObjectFile(code, 0, host_architecture())
        number = next(i for i, s in enumerate(file.sections) if (s.kind == kind if kind else i in file.places))
        fields = list(file.sections[number])
        fields[field] = value
        SECTION.pack_into(changed, HEADER.unpack_from(code)[6] + number * SECTION.size, *fields)
        return bytes(changed)

    return change


UNFIT = {
    "another machine": with_byte(18, 183),
    "32 bits": with_byte(4, 1),
    "highest byte first": with_byte(5, 2),
    "a program, not an object": with_byte(16, 2),
    "a shared library": with_byte(16, 3),
    "Mach-O": lambda symbol: b"\xcf\xfa\xed\xfe" + bytes(200),
    "text": lambda symbol: b"!<arch>\n" + bytes(200),
    "another function": lambda symbol: defining("f"),
    "a C function that is nowhere": lambda symbol: defining(symbol).replace(b"getpid", b"getpix"),
    "written": with_section(None, 2, 7),
    "of threads": with_section(None, 2, 0x406),
    "no bytes in the file": with_section(None, 1, 8),
    "far apart": with_section(None, 8, 4096),
    **{f"relocation {kind}": with_relocation(kind) for kind in (0, 2, 4, 9, 10, 11, 19, 24, 37, 42)},
    **{f"relocations of kind {kind}": with_section(RELOCATIONS, 1, kind) for kind in (9, 19, 0x40000014)},
}


@on_linux
@pytest.mark.parametrize("why", UNFIT)
def test_an_object_that_does_not_fit_is_a_miss_and_never_run(base, monkeypatch, why):
    """It alone: what lies beside it is taken. LLVM, which may end the process, does not see it."""
    folder = cache_folder()
    KernelStore(folder).load([KERNEL, OTHER], HOST)
    name = f"{symbol_of(KERNEL, HOST)}.o"
    good = folder.read(name)
    monkeypatch.setattr(KernelStore, "_place_by_llvm", lambda *_: pytest.fail("LLVM is given what was kept"))
    for use in (KernelStore.load, KernelStore.image):
        folder.write(name, UNFIT[why](symbol_of(KERNEL, HOST)))
        again = KernelStore(folder)
        use(again, [KERNEL, OTHER], HOST)
        assert again.misses == 1 and folder.read(name) == good


@where_we_link
def test_the_object_that_the_others_are_made_of_does_fit(base):
    folder, symbol = cache_folder(), symbol_of(KERNEL, HOST)
    folder.write(f"{symbol}.o", defining(symbol))
    store = KernelStore(folder)
    assert store.address(KERNEL, HOST) and (store.hits, store.misses) == (1, 0)


def test_what_is_for_another_machine_does_not_fit(monkeypatch):
    elf, mach_o = defining("f"), b"\xcf\xfa\xed\xfe" + (0x0100000C).to_bytes(4, "little") + bytes(64)
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    machine = llvm.Target.from_triple("aarch64-unknown-linux-gnu").create_target_machine(codemodel="small")
    arm = machine.emit_object(llvm.parse_assembly("define i32 @f() { ret i32 1 }"))
    for triple, code, expected in (
        ("aarch64-unknown-linux-gnu", arm, True),
        ("aarch64-unknown-linux-gnu", elf, False),
        ("arm64-apple-darwin24", mach_o, True),
        ("x86_64-apple-darwin24", mach_o, False),
        ("riscv64-unknown-linux-gnu", elf, False),
        ("aarch64-unknown-linux-gnu", b"", False),
        ("aarch64-unknown-linux-gnu", arm[:40], False),
    ):
        changed = replace(host(), triple=triple)
        monkeypatch.setattr(store_module, "host", lambda changed=changed: changed)
        assert fits("f", code) is is_for(code, triple) is expected


@where_we_link
def test_new_code_that_only_llvm_can_place_runs_beside_kept_code(base, monkeypatch):
    """Of a user's function, say; kept, it is compiled anew in each process."""
    folder = cache_folder()
    KernelStore(folder).load([OTHER], HOST)
    known = store_module.image_of

    def image_of(code, own=None):
        if symbol_of(KERNEL, HOST) in code:
            raise UnknownCode("by the test")
        return known(code, own)

    monkeypatch.setattr(store_module, "image_of", image_of)
    for _ in range(2):
        store = KernelStore(folder)
        assert all(store.load([KERNEL, OTHER], HOST).values()) and store.misses == 1


def test_a_cache_folder_is_told_by_its_path(base):
    folder = cache_folder()
    assert str(folder) == str(base / "cgraph" / "kernels") and isinstance(folder, CacheFolder)
    assert cache.cache_base() == base
