# You need Python 3.10 or newer, make and git. Everything is installed into .venv.
PYTHON ?= python3
BIN := .venv/bin
INSTALL = $(BIN)/python -m pip install --quiet --disable-pip-version-check -e

.PHONY: help quickstart test test-slow test-gpu lint types format bench bench-gpu clean

help: ## List the targets
	@grep -E '^[a-z-]+:.*##' Makefile | sed -E 's/:.*## /\t/' | expand -t 14

quickstart: .venv/base ## Train your first model (under 2 minutes, no data is downloaded)
	$(BIN)/python -m thincdialog train configs/quickstart.cfg --output output/quickstart --force

test: .venv/test ## Run the quick tests, except those on Ray
	$(BIN)/python -m pytest -q -n auto --dist loadfile -m "not slow and not xdist_group"

test-slow: .venv/test ## Run the slow tests, and those on Ray if it is installed
	$(BIN)/python -m pytest -q -n auto --dist loadgroup -m "slow or xdist_group"

test-gpu: .venv/test ## Run the GPU tests on an emulator of CuPy (needs a C++ compiler)
	PYTHONPATH=tests/stand_in CUPY_STAND_IN=14 $(BIN)/python -m pytest -q -n auto --dist loadgroup -m gpu
	PYTHONPATH=tests/stand_in CUPY_STAND_IN=13 $(BIN)/python -m pytest -q -n auto --dist loadgroup -m gpu tests/ops

lint: .venv/dev ## Check the style
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: .venv/dev ## Check the types
	$(BIN)/mypy

format: .venv/dev ## Format the code
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: .venv/test ## Run the benchmarks
	@set -e; for file in $(filter-out %_gpu.py,$(wildcard tests/benchmarks/bench_*.py)); do echo "== $$file"; $(BIN)/python $$file; done

bench-gpu: .venv/test ## Time training on a GPU (needs CuPy and a GPU)
	$(BIN)/python tests/benchmarks/bench_gpu.py

clean: ## Remove .venv, caches and builds, but keep output/
	rm -rf .venv build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis *.egg-info
	find . -name __pycache__ -not -path './.git/*' -prune -exec rm -rf {} +

.venv/created:
	@$(PYTHON) -c 'import sys; sys.exit("thincdialog needs Python 3.10 or newer; name one: make PYTHON=python3.12" if sys.version_info < (3, 10) else 0)'
	$(PYTHON) -m venv --clear .venv
	@touch $@

.venv/base: pyproject.toml .venv/created
	$(INSTALL) .
	@touch $@

.venv/test: pyproject.toml .venv/created
	$(INSTALL) '.[test]'
	@touch $@

.venv/dev: pyproject.toml .venv/created
	$(INSTALL) '.[test,dev]'
	@touch $@
