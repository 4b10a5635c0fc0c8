"""Completion: the script is one that the shell takes, and knows every command and its options."""

import shutil
import subprocess
import sys
from types import SimpleNamespace

import pytest

from cgraph.cli import COMMANDS, main
from cgraph.cli.completion import SHELLS

pytest.importorskip("shtab", reason="shtab is not installed")


def test_bash_completes_commands_and_options(capsys, tmp_path):
    assert main(["completion", "bash"]) == 0
    script = tmp_path / "completion"
    script.write_text(capsys.readouterr().out)
    if not shutil.which("bash"):
        pytest.skip("no bash")

    def completed(*words):
        ask = f"source {script}; COMP_WORDS=({' '.join(words)}); COMP_CWORD={len(words) - 1}; _shtab_cgraph; "
        found = subprocess.run(["bash", "-c", ask + 'printf "%s\\n" "${COMPREPLY[@]}"'], capture_output=True, text=True)
        assert found.returncode == 0, found.stderr
        return set(found.stdout.split())

    assert completed("cgraph", "''") >= {*COMMANDS}
    assert completed("cgraph", "plan", "model.onnx", "--bud") == {"--budget"}


@pytest.mark.parametrize("shell", SHELLS)
def test_the_script_is_of_the_shell_that_is_named(shell, capsys, monkeypatch):
    written = SimpleNamespace(complete=lambda parser, shell: f"{parser.prog} for {shell}")
    monkeypatch.setitem(sys.modules, "shtab", written)
    assert main(["completion", shell]) == 0
    assert capsys.readouterr().out == f"cgraph for {shell}\n"


def test_without_the_library_it_says_what_to_install(capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "shtab", None)
    assert main(["completion", "zsh"]) == 2
    error = capsys.readouterr().err
    assert "completions need the package shtab: pip install " in error
