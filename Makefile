PYTHON ?= python3
VENV ?= .venv
# PyRadiomics, the yardstick of the features, has no wheels: it is compiled where there is a compiler (about half
# a minute; pip keeps the result), and elsewhere the tests that need it are skipped and listed.
HAS_COMPILER := $(shell command -v c++ || command -v g++ || command -v clang++)
TEST_EXTRAS ?= all,docs,dev$(if $(HAS_COMPILER),$(COMMA)radiomics)
COMMA := ,
PYTEST_ARGS ?= -n 2 --dist worksteal
# Whole files, so that what the tests of a file share is made once.
SLOW_ARGS ?= -n 2 --dist loadfile
SEGTRUST_TEST_DATA ?= $(abspath $(wildcard ../shared/data))
export SEGTRUST_TEST_DATA

NEW_NODE := const [a, b] = process.versions.node.split(".").map(Number); process.exit(a > 20 || (a == 20 && b > 18) ? 0 : 1)
HAS_NODE := $(shell node -e '$(NEW_NODE)' 2>/dev/null && command -v npm)
WEB_READY := web/node_modules/.package-lock.json

BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check -qq
CONSTRAINTS := tools/constraints-test.txt
DEMO_READY := $(VENV)/.demo-ready
TEST_READY := $(VENV)/.test-ready
# nnU-Net has an environment of its own: the torchvision that it brings along breaks other packages of the tests.
NNUNET_VENV := .venv-nnunet
NNUNET_READY := $(NNUNET_VENV)/.ready
NNUNET_PYTHON := $(abspath $(NNUNET_VENV))/bin/python
NNUNET_SITE := tools/nnunet_site/torchvision_operators

.DEFAULT_GOAL := help
.PHONY: help demo test test-web test-slow test-pythons lint format bench docs web dist clean

help:  ## list these commands
	@sed -n 's/^\([a-z-]*\):.*## /\1\t/p' $(MAKEFILE_LIST) | expand -t 16

demo: $(DEMO_READY)  ## the whole job on embedded real cases
	@$(BIN)/segtrust demo

# The page of the desk is tested while the environment is installed and the source is linted.
test:  ## lint, types, doctests, tests and the code of the documentation
	@$(MAKE) --no-print-directory -j2 lint test-web
	@$(BIN)/python -m pytest $(PYTEST_ARGS)

# Without Node the page is neither tested nor built, unless everything is required.
ifneq ($(HAS_NODE),)
test-web: $(WEB_READY)  ## types and tests of the page of the review desk
	@cd web && npm test --silent
	@$(PYTHON) tools/hatch_web.py  # what the tests in a browser open
else
test-web:
	@echo "Not tested for lack of Node 20.19 or later: the page of the review desk"
	@[ "$$SEGTRUST_REQUIRE_ALL" != 1 ]
endif

test-slow: $(TEST_READY) $(NNUNET_READY)  ## the tests that take long
	@SEGTRUST_NNUNET_PYTHON="$(NNUNET_PYTHON)" $(BIN)/python -m pytest $(SLOW_ARGS) -m slow || [ $$? -eq 5 ]  # 5: there are none

test-pythons:  ## the tests on the other supported interpreters that are at hand
	@tools/test-pythons

lint: $(TEST_READY)  ## ruff, bandit, mypy and pyright
	@$(BIN)/ruff check --quiet
	@$(BIN)/ruff format --quiet --check
	@$(BIN)/bandit --quiet --configfile pyproject.toml --recursive src tools benchmarks
	@$(BIN)/mypy --no-error-summary
	@$(BIN)/pyright --pythonpath $(BIN)/python --level error > $(VENV)/pyright.log || { cat $(VENV)/pyright.log; exit 1; }

format: $(TEST_READY)  ## put the code into its standard form
	@$(BIN)/ruff check --quiet --fix --select I
	@$(BIN)/ruff format --quiet

bench: $(DEMO_READY)  ## time what users do most against plain NumPy and torch
	@$(BIN)/python -m benchmarks speed

docs: $(TEST_READY)  ## build the documentation into site/
	@NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet --strict

web: $(BIN)/python  ## build the page of the review desk (Node 20.19 or later)
	@$(BIN)/python tools/hatch_web.py

dist:  ## build sdist and wheel, check, try and audit them (UNAUDITED=1 goes on where nobody could be asked)
	@tools/dist $(if $(UNAUDITED),--unaudited)

clean:  ## remove everything that can be made again
	@rm -rf web/node_modules src/segtrust/review/static segtrust-demo segtrust-review-demo
	@rm -rf $(VENV) $(VENV)-* $(NNUNET_VENV) build dist site .hypothesis .mypy_cache .pytest_cache .ruff_cache
	@find src tests tools benchmarks -name __pycache__ -prune -exec rm -rf {} +

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit("segtrust needs Python 3.11 or later." if sys.version_info < (3, 11) else 0)'
	@$(PYTHON) -m venv $(VENV)

$(DEMO_READY): pyproject.toml | $(BIN)/python
	@echo "Installing segtrust into $(VENV)"
	@$(PIP) install -e '.[demo]'
	@touch $@

# torch and JAX come first: the packages that follow then find them in place.
$(TEST_READY): pyproject.toml $(CONSTRAINTS) Makefile | $(BIN)/python
	@echo "Installing the test environment into $(VENV)"
	@$(PIP) install -c $(CONSTRAINTS) torch torchmetrics lightning jax
	@$(PIP) install -c $(CONSTRAINTS) -e '.[$(TEST_EXTRAS)]'
	@$(PIP) install -c $(CONSTRAINTS) --no-deps TotalSegmentator  # its lists of names: its networks would replace torch
	@touch $(DEMO_READY) $@

$(WEB_READY): web/package-lock.json
	@cd web && npm ci --silent --no-audit --no-fund
	@touch $@

$(NNUNET_READY): pyproject.toml $(CONSTRAINTS) Makefile $(NNUNET_SITE).py $(NNUNET_SITE).pth | $(BIN)/python
	@echo "Installing nnU-Net into $(NNUNET_VENV)"
	@$(BIN)/python -m venv $(NNUNET_VENV)
	@"$(NNUNET_PYTHON)" -m pip --disable-pip-version-check -qq install -c $(CONSTRAINTS) torch
	@"$(NNUNET_PYTHON)" -m pip --disable-pip-version-check -qq install -c $(CONSTRAINTS) nnunetv2
	@"$(NNUNET_PYTHON)" -m pip --disable-pip-version-check -qq install -c $(CONSTRAINTS) -e .  # for what runs beside nnU-Net
	@cp $(NNUNET_SITE).py $(NNUNET_SITE).pth "$$("$(NNUNET_PYTHON)" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')"
	@touch $@
