# Two commands do everything on a machine that has Python 3.11+, make and git:
#   make demo    the main job, end to end
#   make test    the tests
# Everything is installed into .venv; nothing else on the machine is touched.
.DEFAULT_GOAL := help
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
SOURCES := src tests examples benchmarks
export PATH := $(CURDIR)/$(BIN):$(PATH)
# A command starts several times faster when Python may keep what it compiled; set-up compiles everything, for shells
# that forbid it.
export PYTHONDONTWRITEBYTECODE :=

.PHONY: help setup demo test check coverage crash oracle models stress bench serve serving-stress soak policy docs format clean

help:  ## list the targets
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:[^#]*##/\t/' | expand -t 12

setup: $(READY)  ## install everything into .venv

$(READY): pyproject.toml uv.lock
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
	  || { echo "Omnigraph needs Python 3.11 or newer; try: make PYTHON=python3.12 $(MAKECMDGOALS)"; exit 1; }
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@test -x $(BIN)/uv || $(BIN)/python -m pip install --quiet --disable-pip-version-check 'uv>=0.13,<0.14'
	@UV_COMPILE_BYTECODE=1 UV_PROJECT_ENVIRONMENT=$(VENV) $(BIN)/python -m uv sync --frozen --quiet --all-extras --python $(BIN)/python
	@$(BIN)/python -m compileall -q src
	@touch $(READY)

demo: $(READY)  ## run the main job end to end and show it
	@$(BIN)/python examples/demo.py

test: check  ## the checks and the tests (under 25 minutes on 2 cores)
	@$(BIN)/python -m pytest -n 2 --dist loadfile --no-loadscope-reorder -m "not crash and not bench"

check: $(READY)  ## formatting, lint, types, import contracts
	@$(BIN)/ruff format --check $(SOURCES)
	@$(BIN)/ruff check $(SOURCES)
	@$(BIN)/mypy
	@$(BIN)/lint-imports

coverage: $(READY)  ## line coverage of src by the tests, without processes that are killed and Spark executors
	@$(BIN)/coverage erase
	@$(BIN)/coverage run -m pytest -n 2 --dist loadfile --no-loadscope-reorder -m "not crash and not bench"; passed=$$?; \
	  $(BIN)/coverage combine --quiet && $(BIN)/coverage report --sort=cover; exit $$passed

format: $(READY)  ## format the code
	@$(BIN)/ruff format $(SOURCES)
	@$(BIN)/ruff check --fix --quiet $(SOURCES)

crash: $(READY)  ## kill processes at every failpoint and check the promises (about an hour)
	@$(BIN)/python -m pytest tests/crash/test_matrix.py -m crash & matrix=$$!; \
	  $(BIN)/python -m pytest tests/crash tests/spark tests/maintenance/original --ignore tests/crash/test_matrix.py -m crash; rest=$$?; \
	  wait $$matrix && exit $$rest
	@OMNIGRAPH_TEST_STRESS_SECONDS=600 $(BIN)/python -m pytest tests/threads/test_stress.py
	@OMNIGRAPH_TEST_INTERRUPTS=1000 $(BIN)/python -m pytest tests/crash/test_interrupts.py

oracle: $(READY)  ## 20,000 random queries against brute force and DuckDB (about 20 minutes)
	@OMNIGRAPH_ORACLE_QUERIES=20000 $(BIN)/python -m pytest tests/engine/test_oracle.py -n 2

bench: $(READY)  ## measure, and write run records to benchmarks/records
	@UV_PROJECT_ENVIRONMENT=$(VENV) $(BIN)/python -m uv sync --frozen --quiet --all-extras --group bench --python $(BIN)/python
	@$(BIN)/python -m benchmarks; met=$$?; $(BIN)/python -m benchmarks.plot && exit $$met
	@$(BIN)/python -m pytest -m bench

models: $(READY)  ## random histories, evolutions and loads against models, in full numbers
	@OMNIGRAPH_TEST_HISTORIES=20000 $(BIN)/python -m pytest tests/merge/test_three_way.py
	@OMNIGRAPH_TEST_MERGES=500 OMNIGRAPH_EVOLUTION_SEQUENCES=100 $(BIN)/python -m pytest -n 2 \
	  tests/merge/test_merge_model.py tests/evolution/test_evolution_model.py
	@OMNIGRAPH_TEST_MERGES=125 OMNIGRAPH_TEST_AUTHORSHIP=400 $(BIN)/python -m pytest -n 2 \
	  tests/merge/test_merge_conflicts.py tests/history/test_authorship.py
	@OMNIGRAPH_TEST_SPARK_LOADS=200 $(BIN)/python -m pytest tests/spark/test_load_on_spark.py

stress: $(READY)  ## batches, conditions, awkward names, API fuzz, deletions and algorithms, in full numbers (about 2 hours)
	@OMNIGRAPH_TEST_BATCHES=10000 OMNIGRAPH_TEST_PREDICATES=3000 OMNIGRAPH_TEST_EXPRESSIONS=20000 OMNIGRAPH_TEST_DELETIONS=0 $(BIN)/python -m pytest -n 2 \
	  tests/mutation/test_batch_model.py tests/predicates tests/threads/test_concurrent_deletion.py
	@OMNIGRAPH_TEST_FUZZ_CALLS=50000 $(BIN)/python -m pytest -n 2 tests/fuzz
	@OMNIGRAPH_TEST_AWKWARD=full OMNIGRAPH_TEST_ANALYTICS_NODES=200000 $(BIN)/python -m pytest -n 2 \
	  tests/awkward tests/spark/test_awkward_schema.py tests/spark/test_analytics_invariants.py

serve: $(READY)  ## serve the graph of the demo on this machine, with a token that is printed
	@$(BIN)/python examples/serve_demo.py

serving-stress: $(READY)  ## the server under kills, slow clients and generated requests, in full numbers (about an hour)
	@OMNIGRAPH_TEST_SERVER_KILLS=200 OMNIGRAPH_TEST_SERVER_IDLE=1000 OMNIGRAPH_TEST_SERVER_SLOW=100 \
	  OMNIGRAPH_TEST_SERVER_REQUESTS=20000 $(BIN)/python -m pytest tests/server

policy: $(READY)  ## 100,000 random decisions of policies against an independent evaluator, and cluster commands killed at every failpoint
	@OMNIGRAPH_TEST_DECISIONS=100000 $(BIN)/python -m pytest tests/policy/test_differential.py
	@OMNIGRAPH_TEST_CLUSTER=full $(BIN)/python -m pytest tests/cluster

soak: $(READY)  ## 10,000 small commits with upkeep and cleanup (about 10 minutes), with a run record
	@$(BIN)/python -m benchmarks soak

docs: $(READY)  ## regenerate the generated parts of the documentation
	@$(BIN)/python -m tests.docs.generate

clean:  ## remove what make made
	@rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .import_linter_cache
