"""The workflow of the public CI: a linter accepts it, and it names every system and every Python that is supported."""

import json
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

yaml = pytest.importorskip("yaml", reason="the package PyYAML is not installed")

ROOT = Path(__file__).parents[2]
WORKFLOW = ROOT / ".github/workflows/tests.yml"
JOBS = yaml.safe_load(WORKFLOW.read_text("utf-8"))["jobs"]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]


def lint(path: Path) -> subprocess.CompletedProcess:
    """Compare a workflow with the public schema of such files, which the linter contains."""
    pytest.importorskip("check_jsonschema", reason="the package check-jsonschema is not installed")
    command = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", "vendor.github-workflows", str(path)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_the_linter_accepts_the_workflow():
    result = lint(WORKFLOW)
    assert result.returncode == 0, result.stdout + result.stderr


def test_the_linter_refuses_a_workflow_with_an_unknown_key(tmp_path):
    wrong = {"on": "push", "jobs": {"a": {"runs-on": "ubuntu-24.04", "step": []}}}
    (tmp_path / "tests.yml").write_text(json.dumps(wrong), "utf-8")
    assert lint(tmp_path / "tests.yml").returncode == 1


def test_tests_run_on_four_systems_and_every_python_from_the_oldest_on():
    matrix = JOBS["tests"]["strategy"]["matrix"]
    assert [x.partition("-")[0] for x in matrix["system"]] == ["ubuntu", "ubuntu", "macos", "windows"]
    assert sum(x.endswith("-arm") for x in matrix["system"]) == 1
    oldest = re.fullmatch(r">=3\.(\d+)", PROJECT["requires-python"])[1]
    assert matrix["python"] == [f"3.{number}" for number in range(int(oldest), 15)]


def test_the_static_job_runs_the_programs_of_make_check():
    """And those of make test. In place of the folder of the environment, they are on the path."""
    text = (ROOT / "Makefile").read_text("utf-8")
    workers = re.search(r"^WORKERS := (.*)$", text, re.MULTILINE)[1]
    recipes = (re.search(rf"^{name}:.*\n((?:\t.*\n)+)", text, re.MULTILINE)[1] for name in ("check", "test"))
    lines = [line.strip() for recipe in recipes for line in recipe.splitlines()]
    assert lines.count("$(MAKE) test") == 1
    programs = [x.removeprefix("$(BIN)/").replace("$(WORKERS)", workers) for x in lines if x != "$(MAKE) test"]
    steps = [step["run"].removeprefix("python -m ") for job in JOBS.values() for step in job["steps"] if "run" in step]
    assert [x for x in programs if x.removeprefix("python -m ") not in steps] == []


def test_commands_are_those_of_the_environment_and_run_on_windows():
    """Nothing that only POSIX has: no make, no path of a program below an environment."""
    for job in ("static", "tests"):
        for step in JOBS[job]["steps"]:
            if "name" not in step and "run" in step:
                assert re.match(r"python -m \w+|lint-imports$", step["run"]), step["run"]
