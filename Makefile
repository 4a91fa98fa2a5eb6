# Everything runs in a private virtual environment in .venv, made on first use.
#
#   make sweep                   the main job: build, sweep seeds over the core on local Spark
#   make test                    build and run all tests
#   make stress SUITE=...        real threads; SANITIZE=thread|address|undefined for a sanitizer
#   make cluster                 a Spark master and two workers here; make cluster-stop ends them
#   make mutants                 known bugs against the true core: what the sweep finds
#   make kill-table              what each technique finds of each known bug, as docs/kill-table.md
#   make bench                   speed and memory, one table
#   make docs                    the documentation as a site, build/docs/index.html
#   make wheel                   dist/*.whl
#   make clean                   everything that was built; results under runs/ stay

PYTHON ?= python3
SEEDS ?= 200
SUITE ?= all
ARGS ?=
VENV := .venv
BIN := $(VENV)/bin
# pytest-xdist: one process a core.
WORKERS ?= auto

.PHONY: help sweep cluster cluster-stop test stress mutants kill-table bench docs wheel build clean java
.DEFAULT_GOAL := help

help:
	@sed -n '3,12s/^# *//p' Makefile

$(VENV)/installed: pyproject.toml
	@tools/prerequisites.sh $(PYTHON)
	@echo "making the virtual environment $(VENV) (PySpark alone is a download of several hundred MB)"
	@$(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install --quiet --upgrade pip "setuptools>=77" "cython>=3.3,<3.4" wheel
	@$(BIN)/python tools/requirements.py | $(BIN)/python -m pip install --quiet --requirement /dev/stdin
	@# An editable install by a path file: the checkout is what runs, from any directory.
	@$(BIN)/python -c 'import pathlib, sysconfig; pathlib.Path(sysconfig.get_paths()["purelib"], "pulsar_ml.pth").write_text(str(pathlib.Path.cwd()))'
	@# The console command, which an installed wheel brings by itself.
	@printf '#!/bin/sh\nexec "%s" -m pulsar_ml "$$@"\n' "$(abspath $(BIN)/python)" > $(BIN)/pulsar-ml
	@chmod +x $(BIN)/pulsar-ml
	@touch $@

build: $(VENV)/installed
	@tools/prerequisites.sh $(PYTHON)
	@echo "building the extensions"
	@mkdir -p build && $(BIN)/python setup.py -q build_ext --inplace > build/build.log 2>&1 || \
		{ cat build/build.log >&2; echo "the build failed; its output is above and in build/build.log" >&2; exit 4; }

java:
	@tools/prerequisites.sh $(PYTHON) java

sweep: java build
	@$(BIN)/python -m spark.sweep --seeds $(SEEDS) $(ARGS)

cluster: java build
	@$(BIN)/python -m spark.cluster start $(ARGS)

cluster-stop: $(VENV)/installed
	@$(BIN)/python -m spark.cluster stop $(ARGS)

test: java build
	@$(BIN)/python -m pytest -n $(WORKERS) $(ARGS)

ifeq ($(SANITIZE),)
stress: build
	@$(BIN)/python -m stress run $(SUITE) $(ARGS)
else
stress: $(VENV)/installed
	@$(BIN)/python tools/sanitized.py $(SANITIZE) run $(SUITE) $(ARGS)
endif

mutants: java build
	@$(BIN)/python -m spark.mutants $(ARGS)

kill-table: build
	@$(BIN)/python -m stress.mutants --faults || test $$? = 1
	@$(BIN)/python -m stress.mutants.kill_table $(ARGS)

bench: build
	@$(BIN)/python -m benchmarks $(ARGS)

docs: build
	@$(BIN)/python -m sphinx -b html -q -W --keep-going -d build/doctrees docs build/docs
	@echo "built build/docs/index.html"

wheel: build
	@$(BIN)/python -m build --no-isolation --wheel

clean:
	rm -rf build dist $(VENV) *.egg-info .pytest_cache .hypothesis .mypy_cache
	find pulsar_ml benchmarks tests stress spark \( -name '*.so' -o -name '*.c' \( -not -path '*/engine/*' -o -name '_engine.c' \) -o -name __pycache__ \) -prune -exec rm -rf {} +
