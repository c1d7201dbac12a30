# Hubbub: `make` shows what there is. Everything lives in .venv, which the first target that needs
# it creates (with uv where uv is there, else with venv and pip).

VENV := .venv
BIN := $(VENV)/bin
JOBS ?= 2
CONFIG ?= configs/quickstart.yaml
MODEL ?=
PART ?=
SEEDS ?= 1000
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help run test test-fast test-slow test-page test-npm test-bridges test-postgres test-cluster test-frameworks soak test-websocket test-a2a test-model simulate simulate-mutants mutants check bench bench-guard comparison docs docs-site screenshots clean

help: ## show this list
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / {printf "  make %-16s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

run: $(VENV)/.installed ## start a network with three agents (CONFIG=... for another one)
	@exec $(BIN)/hubbub up $(CONFIG)

test: $(VENV)/.installed-dev ## all tests in one run; or one part of them:
	@sh scripts/test.sh $(BIN)/python $(JOBS) all

test-fast: $(VENV)/.installed-dev ## what runs within one process, in a minute
	@sh scripts/test.sh $(BIN)/python $(JOBS) fast

test-slow: $(VENV)/.installed-dev ## processes, and properties at length
	@sh scripts/test.sh $(BIN)/python $(JOBS) slow

test-page: $(VENV)/.installed-dev ## the page in Chromium
	@sh scripts/test.sh $(BIN)/python $(JOBS) page

test-npm: $(VENV)/.installed-dev ## real coding agents and MCP hosts, which npm fetches
	@sh scripts/test.sh $(BIN)/python $(JOBS) npm

test-bridges: $(VENV)/.installed-dev ## bridges with real servers of IRC and Matrix
	@sh scripts/test.sh $(BIN)/python $(JOBS) bridges

test-postgres: $(VENV)/.installed-dev ## the store on a Postgres that the tests start
	@sh scripts/test.sh $(BIN)/python $(JOBS) postgres

test-cluster: $(VENV)/.installed-dev ## the hub's tests through gateways on Postgres, and three nodes under load
	@sh scripts/test.sh $(BIN)/python $(JOBS) gateways cluster

test-frameworks: .venv-frameworks/.installed .venv-crewai/.installed ## agents of other frameworks, with the real packages
	@sh scripts/test.sh .venv-frameworks/bin/python $(JOBS) frameworks
	@sh scripts/test.sh .venv-crewai/bin/python $(JOBS) frameworks

soak: $(VENV)/.installed-dev ## a hub with all mods for an hour, among deaths (MINUTES=60)
	@MINUTES=$(or $(MINUTES),60) $(BIN)/python -m tests.e2e.soak

test-websocket: $(VENV)/.installed-dev ## the WebSocket protocol's own cases, by a suite that needs Python 2.7 (PYTHON2=...)
	@$(BIN)/python -m tests.websocket

test-a2a: $(VENV)/.installed-dev ## the A2A project's own compatibility kit, a checkout of it (A2A_TCK=...)
	@$(BIN)/python -m tests.a2a

test-model: $(VENV)/.installed-model ## real agents with a small model in this process (MODEL=FILE.gguf for another)
	@HUBBUB_TEST_MODEL="$(MODEL)" $(BIN)/python -m pytest -q --timeout 3600 tests/model

simulate: $(VENV)/.installed-dev ## whole networks in virtual time, with all that can go wrong (SEEDS=1000)
	@$(BIN)/python -m tests.simulation $(SEEDS) --jobs $(JOBS)

simulate-mutants: $(VENV)/.installed-dev ## plant the faults of tests/mutants: does the simulation find each?
	@$(BIN)/python -m tests.simulation.planting --jobs $(JOBS)

mutants: $(VENV)/.installed-mutants ## break rules in thousands of places: do tests notice? (PART='hubbub.network.wakes*')
	@$(BIN)/python scripts/mutants.py $(JOBS) $(PART)

check: $(VENV)/.installed-dev ## style, types, layers, dependencies
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy
	@$(BIN)/lint-imports
	@$(BIN)/deptry .
	@$(BIN)/python -m tests.e2e.support.page_types

bench: $(VENV)/.installed-dev ## measure against a minimal relay, side by side in one run
	@$(BIN)/python -m benchmarks

bench-guard: $(VENV)/.installed-dev ## in under a minute: has anything become dearer than it was?
	@$(BIN)/python -m benchmarks.guard

comparison: $(VENV)/.installed-dev ## run the same tasks in other agent frameworks, which pip fetches
	@$(BIN)/python -m benchmarks.frameworks

docs: $(VENV)/.installed-dev ## write the reference pages anew from the code
	@$(BIN)/python docs/generate.py

docs-site: $(VENV)/.installed-site ## build the pages of docs as a web site in build/site
	@$(BIN)/zensical build --clean --strict

screenshots: $(VENV)/.installed-dev ## take the pictures of the page in docs/screenshots anew
	@$(BIN)/python -m tests.browser.support.chromium
	@$(BIN)/python scripts/screenshots.py

clean: ## remove .venv, caches and build results
	@rm -rf $(VENV) .venv-frameworks .venv-crewai mutants build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +

# A stamp is newer than what it was made from, so a second run starts at once.
$(VENV)/.installed: pyproject.toml constraints.txt scripts/install.sh
	@sh scripts/install.sh $(VENV) .
	@touch $@

$(VENV)/.installed-dev: pyproject.toml constraints.txt scripts/install.sh
	@sh scripts/install.sh $(VENV) '.[dev]'
	@touch $(VENV)/.installed $@

$(VENV)/.installed-mutants: pyproject.toml constraints.txt scripts/install.sh
	@sh scripts/install.sh $(VENV) '.[dev,mutants]'
	@touch $(VENV)/.installed $(VENV)/.installed-dev $@

$(VENV)/.installed-site: pyproject.toml constraints.txt scripts/install.sh
	@sh scripts/install.sh $(VENV) '.[site]'
	@touch $@

# Some of them want other versions than constraints.txt has: an environment of their own.
.venv-frameworks/.installed: pyproject.toml scripts/install.sh
	@CONSTRAINTS=/dev/null sh scripts/install.sh .venv-frameworks '.[dev,frameworks]'
	@touch $@

# CrewAI goes first, since it and the hub name versions of aiosqlite that exclude each other: pip then
# takes the hub's, as it does for whoever installs both. CrewAI needs its own for checkpoints alone.
.venv-crewai/.installed: pyproject.toml scripts/install.sh
	@CONSTRAINTS=/dev/null FIRST='crewai>=1.15,<2' sh scripts/install.sh .venv-crewai '.[test]'
	@touch $@

$(VENV)/.installed-model: pyproject.toml constraints.txt scripts/install.sh scripts/weights.sh
	@sh scripts/install.sh $(VENV) '.[dev]'
	@sh scripts/weights.sh $(VENV)
	@touch $(VENV)/.installed $(VENV)/.installed-dev $@
