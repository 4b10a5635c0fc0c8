# `make demo` and `make test` need only python3 and make; both make the environment first.
PYTHON ?= python3
BIN := .venv/bin

.PHONY: demo test slow check bench docs clean

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
	$(BIN)/python -m pytest -n 2 -m "not slow"

slow: .venv/ready
	$(BIN)/python -m pytest -n 2 -m slow

test: .venv/ready
	$(BIN)/python -m pytest -n 2

bench: .venv/ready
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[bench]'
	$(BIN)/python -m benchmarks

docs: .venv/ready
	$(BIN)/python -m docs.generate
	$(BIN)/python -m docs.site

clean:
	rm -rf .venv out build dist
