"""Child processes start in one place, and none imports a file of the current folder."""

import ast
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from cgraph.system import child_processes
from cgraph.system.child_processes import ending_of, run_module, run_program
from tests.support.patience import PATIENCE
from tests.support.sources import ROOT, sources_with

STARTER = "cgraph/system/child_processes.py"
PROGRAMS = {  # packages that start a program named here, from the system's path
    "cgraph/view/dot.py": "graphviz",
    "nn/models/mask_rcnn/tools/frames.py": "imageio_ffmpeg",
}
STARTING = {"subprocess", "multiprocessing", "pty", "graphviz", "imageio_ffmpeg", "pexpect"}
CALLS = ("system", "popen", "fork", "forkpty", "startfile", "posix_spawn", "posix_spawnp")
CLASSES = {"ProcessPoolExecutor", "LocalCluster", "Nanny", "SubprocessCluster", "SSHCluster", "Popen"}


def starts_in(tree: ast.Module) -> Iterator[str]:
    """What a module names that starts processes."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names = [x.name for x in node.names]
        elif isinstance(node, ast.ImportFrom):
            names = [node.module or "", *(x.name for x in node.names)]
        elif isinstance(node, ast.Attribute):
            is_os = isinstance(node.value, ast.Name) and node.value.id in ("os", "posix")
            is_call = is_os and (node.attr in CALLS or node.attr.startswith(("exec", "spawn")))
            names = ["subprocess"] if is_call or node.attr.startswith("create_subprocess") else [node.attr]
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            names = [node.value] if node.value in STARTING else []  # of import_module
        else:
            continue
        yield from (name for name in names if name.split(".")[0] in STARTING or name in CLASSES)


def test_processes_are_started_in_one_place():
    for name, tree in sources_with({*STARTING, *CALLS, *CLASSES, "exec", "spawn", "create_subprocess"}):
        others = set(starts_in(tree)) - {PROGRAMS.get(name)}
        assert name == STARTER or not others, f"{name} starts processes by {others}: use cgraph.system.child_processes"


@pytest.mark.parametrize(
    "source",
    [
        "import subprocess",
        "from subprocess import run",
        "import multiprocessing.pool",
        "os.system('ls')",
        "os.execvp('ls', [])",
        "from concurrent.futures import ProcessPoolExecutor",
        "import_module('multiprocessing')",
        "distributed.LocalCluster()",
        "from dask.distributed import Nanny",
        "asyncio.create_subprocess_exec('ls')",
    ],
)
def test_every_way_to_start_a_process_is_noticed(source):
    assert list(starts_in(ast.parse(source)))


@pytest.mark.parametrize("name", ["json", "runpy", "numpy", "h5py", "cgraph", "sitecustomize", "usercustomize"])
def test_a_child_imports_nothing_from_the_current_folder_or_the_environment(name, tmp_path):
    mark = tmp_path / "ran"
    (tmp_path / f"{name}.py").write_text(f"open({str(mark)!r}, 'w').close()\nraise SystemExit(3)\n")
    (tmp_path / "x.h5").write_bytes(b"\x89HDF\r\n\x1a\n" + bytes(100))
    script = tmp_path / "elsewhere" / "mine.py"
    script.parent.mkdir()
    script.write_text(
        "import os, sys\n"
        "from cgraph.formats.keras_apart import read_keras_apart\n"
        f"os.environ['PYTHONPATH'] = os.environ['PYTHONSTARTUP'] = {str(tmp_path)!r}\n"
        "try: read_keras_apart('x.h5')\n"
        "except Exception as error: print(type(error).__name__, error)\n"
    )
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    environment.pop("PYTHONSAFEPATH", None)
    command = [sys.executable, str(script)]
    run = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=PATIENCE)
    assert "FormatError x.h5: no readable Keras file" in run.stdout, run.stderr
    assert not mark.exists()


def test_a_child_runs_the_package_of_its_parent(tmp_path, monkeypatch):
    """Another one may be installed, or none. Other modules beside the package are not found."""
    package = tmp_path / "cgraph"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "place.py").write_text("import json, sys\nprint(json.dumps([__file__, *sys.argv[1:]]))")
    (tmp_path / "json.py").write_text("raise SystemExit('a file beside the package ran')")
    assert Path(child_processes.__file__).parents[2] == child_processes.ROOT
    monkeypatch.setattr(child_processes, "ROOT", tmp_path)
    with tempfile.TemporaryFile() as output:
        assert run_module("cgraph.place", ["a", "b"], output, output, PATIENCE) == 0
        output.seek(0)
        assert json.load(output) == [str(package / "place.py"), "a", "b"]


def test_a_child_has_no_input_and_its_output_and_status_come_back():
    with tempfile.TemporaryFile() as output, tempfile.TemporaryFile() as errors:
        assert run_module("cgraph", ["--version"], output, errors, 60) == 0
        assert run_module("cgraph", ["plan", "absent.onnx"], output, errors, 60) == 2
        assert output.seek(0) == errors.seek(0) == 0
        assert output.read().startswith(b"cgraph ") and b"absent.onnx" in errors.read()
        assert run_module("cgraph", ["--version"], output, errors, 1e-3) is None


@pytest.mark.parametrize(
    ("status", "text"),
    [
        *((0, ""), (1, ""), (-9, "SIGKILL"), (-11, "SIGSEGV"), (0xBFFFFFFF, "")),
        *((0xC0000000, "exception 0xc0000000"), (0xC0000005, "exception 0xc0000005")),
    ],
)
def test_the_ending_of_a_process_is_a_signal_or_an_exception_of_windows(status, text):
    assert ending_of(status) == text


@pytest.mark.parametrize(("name", "value"), [("executable", None), ("executable", ""), ("frozen", True)])
def test_a_packed_application_is_not_started_again(name, value, monkeypatch):
    monkeypatch.setattr(sys, name, value, raising=False)
    monkeypatch.setattr(child_processes.subprocess, "run", lambda *args, **named: pytest.fail("a process was started"))
    with open(os.devnull, "wb") as nowhere, pytest.raises(OSError, match="no interpreter that can be started"):
        run_module("cgraph.cli", [], nowhere, nowhere, 1.0)


@pytest.mark.parametrize(("status", "message", "text"), [(0, b"", ""), (3, b"caf\xe9\n", "caf\ufffd\n")])
def test_a_program_gives_its_status_and_its_messages_in_any_encoding(status, message, text, capfd):
    source = (
        f"import sys; print('output'); sys.stderr.buffer.write({message!r}); sys.exit({status} + len(sys.stdin.read()))"
    )
    assert run_program([sys.executable, "-c", source]) == (status, text)
    assert capfd.readouterr() == ("", "")
