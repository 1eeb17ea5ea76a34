# Every target does its own set-up from nothing; a second call starts at once.
#   make demo     the main job on real tasks, to a verdict page     (FULL=1: more seeds, longer)
#   make check    format, lint, types, layout
#   make test     the tests, the slim install among them
#   make lab      every finding of the laboratory with its smallest settings: that they run, not what they say
#   make oldest   the trainers' tests on the oldest TRL and transformers of the declared range
#   make slow     the tests that take minutes
#   make mutants  mutation testing: 120 changed tokens, and how many of them the tests notice (half an hour)
#   make tree     write the tree of docs/architecture.md anew

.DEFAULT_GOAL := demo
.PHONY: demo announce check test lab oldest slow mutants tree clean
.NOTPARALLEL:
SHELL := /bin/bash
unexport PYTHONDONTWRITEBYTECODE  # without bytecode each of hundreds of processes would compile torch and TRL anew: twice the time

VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install --quiet --no-compile  # bytecode is made when first imported: half the installation time
READY := $(VENV)/.ready
PACKAGE := pyproject.toml constraints.txt
OLDEST := $(VENV)/oldest
SAME := tests/test_trainers_example.py tests/test_trainers_packed.py  # no version of TRL changes these
CONTRACT := $(filter-out $(SAME),$(wildcard tests/test_trainers_*.py tests/test_[dgs]*_settings*.py))

demo: announce $(READY)-lab
	@$(BIN)/python -m mixwright_lab.demo $(if $(FULL),--full)

announce:
	@echo "the demo takes about 15 minutes on two CPU cores, installation included$(if $(FULL), (FULL=1: longer))"

check: $(READY)-dev
	@$(BIN)/ruff format --check .
	@$(BIN)/ruff check .
	@$(BIN)/pyright
	@$(BIN)/python -m pytest tests/test_layout.py

test: $(READY)-dev
	@OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n 2 -m "not slow"

lab: $(READY)-lab
	@$(BIN)/python -m mixwright_lab all --scale smoke

oldest: $(OLDEST)/.ready
	@OMP_NUM_THREADS=1 $(OLDEST)/bin/python -m pytest -n 2 -m "not slow" $(CONTRACT)

slow: $(READY)-dev
	@OMP_NUM_THREADS=1 $(BIN)/python -m pytest -m slow

mutants: $(READY)-mutants
	@$(BIN)/python -m benchmarks.mutants

tree: $(READY)-dev
	@$(BIN)/python tests/source_tree.py

$(READY)-lab: $(PACKAGE) | $(BIN)/python
	@echo "installing Mixwright into $(VENV) (a few minutes, once)"
	@$(PIP) torch==2.13.0
	@$(PIP) -e '.[lab]' -c constraints.txt
	@touch $@

$(READY)-dev: $(PACKAGE) $(READY)-lab
	@$(PIP) -e '.[dev]' -c constraints.txt
	@touch $@

$(READY)-mutants: $(PACKAGE) $(READY)-dev
	@$(PIP) -e '.[mutants]' -c constraints.txt
	@touch $@

# Stands on the main environment, torch included, and puts the older packages in front of it.
$(OLDEST)/.ready: constraints-oldest.txt $(READY)-dev
	@rm -rf $(OLDEST)
	@$(BIN)/python -m venv --without-pip $(OLDEST)
	@main=$$($(BIN)/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))'); \
	older=$$($(OLDEST)/bin/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))'); \
	echo "import site; site.addsitedir('$$main')" > "$$older/main.pth"
	@$(OLDEST)/bin/python -m pip install --quiet --no-compile -r constraints-oldest.txt
	@touch $@

$(BIN)/python:
	@python=""; for name in python3.11 python3.12 python3.13 python3; do \
	  if command -v $$name >/dev/null && $$name -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; \
	  then python=$$name; break; fi; done; \
	if [ -z "$$python" ]; then \
	  echo "Mixwright needs Python 3.11 or newer with venv; found: $$(python3 --version 2>&1 || echo none)." >&2; \
	  echo "Install it (Debian, Ubuntu: apt-get install python3.11-venv), then run make again." >&2; exit 1; fi; \
	$$python -m venv $(VENV) || { rm -rf $(VENV); exit 1; }

clean:
	@rm -rf $(VENV) build dist *.egg-info
