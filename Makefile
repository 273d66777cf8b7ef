# Every target makes its own environment in .venv from nothing but Python >= 3.11 and uses it again
# as long as pyproject.toml stays the same.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin

.NOTPARALLEL:
.PHONY: help demo test test-all soak fuzz lint format bench history docs figures clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-10s %s\n", $$1, $$2 }' Makefile

demo: $(VENV)/.demo ## repeat the paper's experiments on digits, in some minutes (build/demo)
	$(BIN)/python -m reproduction --quick --out build/demo

test: $(VENV)/.test ## run the tests of the default tier on all cores, in some minutes
	$(BIN)/python -m pytest -q -n auto

test-all: $(VENV)/.test ## run the default tier and the rest, in some 15 minutes
	$(BIN)/python -m pytest -q -n auto -m "not soak"

soak: $(VENV)/.test ## run the tests that take minutes each: a training that is killed 50 times
	$(BIN)/python -m pytest -q -n auto -m soak

fuzz: $(VENV)/.test ## read 100,000 broken files of every kind, in some 15 minutes
	$(BIN)/python tests/fuzz/run.py

lint: $(VENV)/.lint ## check style (ruff) and types (mypy)
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy

format: $(VENV)/.lint ## format the code
	$(BIN)/ruff check --fix
	$(BIN)/ruff format

bench: $(VENV)/.bench ## measure ours against others and the machine (build/bench)
	mkdir -p build/bench
	for name in speed scaling roofline start chain weak cluster; do \
		$(BIN)/python benchmarks/$$name.py --out build/bench/$$name.json || exit 1; \
	done

history: $(VENV)/.bench ## measure our programs, and compare with the last time (.benchmarks)
	$(BIN)/python -m pytest benchmarks/history.py

docs: $(VENV)/.docs ## build the documentation (docs/_build)
	$(BIN)/python -m sphinx -E -W --keep-going -q -b html docs docs/_build
	@echo "open docs/_build/index.html"

figures: $(VENV)/.demo ## draw the figures of the documentation again
	$(BIN)/python -m reproduction.diagrams docs/figures --format svg

clean: ## remove the environment and everything built
	rm -rf $(VENV) build dist docs/_build .hypothesis .mypy_cache .pytest_cache .ruff_cache

$(VENV)/.%: pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "mporbm needs Python 3.11 or newer, this is " + sys.version.split()[0] + "; try make PYTHON=python3.12")'
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable ".[$*]"
	@touch $@
