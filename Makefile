# Two commands matter: `make run` shows what kubesched does, `make test` proves it.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
STAMP  := $(VENV)/.installed
SCENARIO ?= shop

.PHONY: run test lint bench soak clean

$(STAMP): pyproject.toml
	$(PYTHON) -c 'import sys; sys.exit("kubesched needs Python 3.11 or newer" if sys.version_info < (3, 11) else 0)'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --disable-pip-version-check -e '.[dev]'
	@touch $(STAMP)

run: $(STAMP)
	$(BIN)/kubesched sandbox --scenario $(SCENARIO)

test: $(STAMP) lint
	$(BIN)/pytest -n auto

lint: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

bench: $(STAMP)
	$(BIN)/python -m bench

# An hour, unless told otherwise: make soak SECONDS=300 SEED=7
soak: $(STAMP)
	$(BIN)/python -m soak --seconds $(or $(SECONDS),3600) $(if $(SEED),--seed $(SEED))

clean:
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis
