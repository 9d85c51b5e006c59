# `make run` shows what kubesched does, `make check` is for while you work, `make test` proves all of it.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
RUNTIME := $(VENV)/.runs
STAMP  := $(VENV)/.installed
SCENARIO ?= shop
SHELL  := bash
.SHELLFLAGS := -o pipefail -c

.PHONY: run check test unit lint format coverage explore bench mega bench-peer record e2e soak mutants lock clean

# What runs kubesched, and what its tests need besides; each package is named as it comes, since it takes a while.
NAMED := sed -u -n 's/^Collecting \([A-Za-z0-9._-]*\).*/  \1/p'
INSTALL := $(BIN)/pip install --disable-pip-version-check --progress-bar off

# The versions in requirements/dev.txt: a tool that has new opinions tomorrow does not fail what passes today.
VERSIONS := $(VENV)/versions.txt

$(RUNTIME): pyproject.toml sandbox/pyproject.toml requirements/dev.txt
	@$(PYTHON) -c 'import sys; sys.exit("kubesched needs Python 3.11 or newer" if sys.version_info < (3, 11) else 0)'
	@echo "Installing kubesched into $(VENV), once; half a minute with a good connection:"
	@$(PYTHON) -m venv $(VENV)
ifdef LOCKED
	@$(INSTALL) --require-hashes -r requirements/dev.txt | $(NAMED)
	@$(INSTALL) --no-deps --no-build-isolation -e . -e ./sandbox | $(NAMED)
else
	@sed -n 's/^\([A-Za-z0-9][^\\]*\) \\$$/\1/p' requirements/dev.txt > $(VERSIONS)
	@$(INSTALL) -c $(VERSIONS) -e . -e ./sandbox | $(NAMED)
endif
	@touch $(RUNTIME)

$(STAMP): $(RUNTIME)
ifndef LOCKED
	@echo "Installing what its tests need:"
	@$(INSTALL) -c $(VERSIONS) -e '.[dev]' | $(NAMED)
endif
	@touch $(STAMP)

# Exact versions; the image and CI (make LOCKED=1 ...) ask for their hashes too. Needs uv; make lock UPGRADE=1 takes newer ones.
LOCK := uv pip compile --quiet --no-config --default-index https://pypi.org/simple --universal --python-version 3.11 \
	--generate-hashes --custom-compile-command "make lock" $(if $(UPGRADE),--upgrade)
lock:
	$(LOCK) requirements/build.in -o requirements/build.txt
	$(LOCK) pyproject.toml -o requirements/run.txt
	$(LOCK) pyproject.toml requirements/build.in --extra dev -c requirements/run.txt -c requirements/build.txt -o requirements/dev.txt

run: $(RUNTIME)
	$(BIN)/kubesched sandbox --scenario $(SCENARIO)

# The quick half: lint, types, and the tests that are not marked slow.
check: lint unit

unit: $(STAMP)
	$(BIN)/pytest -n auto -m "not slow"

# Everything.
test: $(STAMP)
	@echo "Lint, types and all tests: about 6 minutes on two idle cores, longer on busy ones. The quick half: make check."
	@$(MAKE) --no-print-directory lint
	$(BIN)/pytest -n auto --durations=10

lint: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

format: $(STAMP)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

# The report is in htmlcov/; PYTEST="-m 'not slow'" is for the quick half. Processes that tests start do not count.
coverage: $(STAMP)
	$(BIN)/pytest -n auto --cov --cov-report=html --cov-report=term:skip-covered $(PYTEST)

# Properties with other examples than last time: what it finds is worth a test of its own.
explore: $(STAMP)
	$(BIN)/pytest -n auto --hypothesis-profile=explore tests/unit

# `make bench mega` is for 130,000 nodes alone, and takes ten minutes and 4 GB.
bench: $(STAMP)
	$(BIN)/python -m bench $(filter mega,$(MAKECMDGOALS))
mega:
	@:

# Both schedulers on a real control plane, in turns: CONTRIBUTING.md says what it needs.
# make bench-peer KUBEBUILDER_ASSETS=bin KUBERNETES=source PEER="--rounds 1 Waiting/basic"
bench-peer: $(STAMP)
	$(BIN)/python -m bench.peer $(if $(KUBERNETES),--source $(KUBERNETES)) $(or $(PEER),--rounds 3)

# What kube-scheduler itself does with the cases of tests/parity/golden, or with others: docs/following-kubernetes.md.
# make record KUBERNETES=kubernetes/.git TAG=v1.36.4 OUT=recorded [CASES="folder/queue/*.jsonl"]
record: $(STAMP)
	@test -n "$(KUBERNETES)" || { echo "record: KUBERNETES is missing: a source tree or a git directory of kubernetes/kubernetes" >&2; exit 2; }
	@test -n "$(OUT)" || { echo "record: OUT is missing: the folder to write recordings to" >&2; exit 2; }
	$(BIN)/python -m tools.recorder --kubernetes $(KUBERNETES) $(if $(TAG),--tag $(TAG)) --out $(OUT) $(CASES)

# Kubernetes' own end-to-end suite: CONTRIBUTING.md says what it needs. make e2e SCHEDULER=kube-scheduler SET=conformance
e2e: $(STAMP)
	$(BIN)/python -m e2e --scheduler $(or $(SCHEDULER),kubesched) --set $(or $(SET),scheduling) $(E2E)

# Takes away one guard of tests/guards.toml at a time: some test must notice. make mutants ONLY=lease
mutants: $(STAMP)
	$(BIN)/python tools/mutants.py $(ONLY)

# An hour of churn and kills, one of chaos, and histories after which no pod may wait in vain, unless told otherwise:
# make soak SECONDS=300 SEED=7 HISTORIES=50000
# make soak REAL=1 does the first on a real API server, and kills that too: CONTRIBUTING.md says what it needs.
SOAKING = --seconds $(or $(SECONDS),3600) $(if $(SEED),--seed $(SEED))
soak: $(STAMP)
	$(BIN)/python -m soak $(SOAKING) $(if $(REAL),--real)
	$(if $(REAL),,$(BIN)/python -m soak.chaos $(SOAKING))
	$(if $(REAL),,$(BIN)/python -m soak.waiting --histories $(or $(HISTORIES),1000) $(if $(SEED),--seed $(SEED)))

clean:
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache htmlcov .coverage
