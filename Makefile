# `make demo` and `make test` need only python3 and make; both make the environment first.
PYTHON ?= python3
BIN := .venv/bin

.PHONY: demo test slow check bench docs clean
# Tests start hundreds of processes, which would all parse the same 500 modules where byte code is not kept. Each worker
# takes neighbours, which share fixtures and kernels.
export PYTHONDONTWRITEBYTECODE :=
WORKERS := -n 2 --dist worksteal

.venv/ready: pyproject.toml
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[dev]'
	touch $@

demo: .venv/ready
	$(BIN)/python examples/demo.py

check: .venv/ready
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/lint-imports
	$(BIN)/mypy
	$(MAKE) test

test: .venv/ready
	$(BIN)/python -m pytest $(WORKERS) -m "not slow"

slow: .venv/ready
	$(BIN)/python -m pytest $(WORKERS) -m slow

bench: .venv/ready
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[bench]'
	$(BIN)/python -m benchmarks

docs: .venv/ready
	$(BIN)/python -m docs.generate
	$(BIN)/python -m docs.site

clean:
	rm -rf .venv out build dist
