# Every target sets up what it needs: a virtual environment in .venv with the exact versions of
# requirements.lock. It is made once and again only when the lock or pyproject.toml changes.
PYTHON ?= python3
UV_VERSION := 0.13.9
TORCH_VERSION := 2.13.0
# What torch depends on, so that the lock pins it although torch itself stays outside of it.
TORCH_NEEDS := filelock fsspec jinja2 networkx sympy typing-extensions
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/installed-$(shell cat requirements.lock pyproject.toml Makefile | cksum | cut -d' ' -f1)
UV := $(BIN)/uv --quiet
ARGS ?=
ROOT ?= runs

export RAY_USAGE_STATS_ENABLED := 0
export RAY_ENABLE_UV_RUN_RUNTIME_ENV := 0
export MLFLOW_DISABLE_TELEMETRY := true
export VIRTUAL_ENV := $(CURDIR)/$(VENV)

.PHONY: help setup train test test-words test-first test-second check slow bench ui fmt lock clean

help:  ## this list
	@grep -hE '^[a-z]+:.*##' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-8s %s\n", $$1, $$2}'

setup: $(STAMP)  ## the virtual environment (the other targets call it)

$(STAMP): requirements.lock pyproject.toml Makefile
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "Python 3.11 or newer is needed; name one with PYTHON=..., as in: make setup PYTHON=python3.12"; exit 1; }
	@echo "Setting up $(VENV): some minutes the first time, nothing after that."
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check uv==$(UV_VERSION)
	@$(UV) pip install --require-hashes --requirement requirements.lock
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check torch==$(TORCH_VERSION)
	@$(UV) pip install --no-deps --no-build-isolation --editable .
	@rm -f $(VENV)/installed-* && touch $@

train: $(STAMP)  ## train an agent and watch it learn; ARGS="..." takes Hydra overrides
	@$(BIN)/selfplay train root=$(ROOT) $(if $(ARGS),$(ARGS),experiment=catan_short)

test: $(STAMP) test-words check  ## everything that CI runs, on two cores; ARGS="..." goes to pytest
	@$(MAKE) --no-print-directory --jobs=2 --output-sync test-first test-second

test-words:
	@echo "Style, types and import contracts (half a minute), then the tests in two halves side by side: about 8 minutes in all on two cores."

# Two halves of about equal length.
ELSEWHERE := tests/pipeline/m5 tests/pipeline/test_cli.py

test-first: $(STAMP)
	@$(BIN)/python -m pytest tests/games tests/golden tests/oracles $(ELSEWHERE) $(ARGS)

test-second: $(STAMP)
	@$(BIN)/python -m pytest tests/pipeline $(addprefix --ignore=,$(ELSEWHERE)) $(ARGS)

check: $(STAMP)  ## style, types and import contracts
	@$(BIN)/ruff format --quiet --check . || { echo "run: make fmt"; exit 1; }
	@$(BIN)/ruff check --quiet .
	@$(BIN)/mypy --no-error-summary
	@$(BIN)/lint-imports --no-cache

slow: $(STAMP)  ## the tests that take minutes: kill -9 at random moments, learning on three seeds
	@$(BIN)/python -m pytest -m slow --timeout=3600 $(ARGS)

bench: $(STAMP)  ## the figures of the README, peers beside us in one run
	@for script in benchmarks/bench_*.py; do echo "== $$script"; $(BIN)/python $$script $(ARGS) || exit 1; done

ui: $(STAMP)  ## the MLflow dashboard on the runs under ROOT (allow it 10 to 60 seconds)
	@$(BIN)/selfplay ui --root $(ROOT) $(ARGS)

fmt: $(STAMP)  ## format the code
	@$(BIN)/ruff check --quiet --fix .; $(BIN)/ruff format --quiet .

lock:  ## resolve requirements.lock anew after a change of pyproject.toml
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check uv==$(UV_VERSION)
	@printf '%s\n' $(TORCH_NEEDS) | $(UV) pip compile pyproject.toml - --extra dev --universal \
		--python-version 3.11 --generate-hashes --no-annotate --custom-compile-command "make lock" \
		--output-file requirements.lock

clean:  ## remove the virtual environment
	rm -rf $(VENV)
