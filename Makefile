# make demo: set up and run the main job on the demo.   make test: set up and run the tests, long tables in part.
# make test-all: the tests with the long tables whole, and property tests with new examples.
# make site: the documentation as a site, in build/site.
# make smoke: in two minutes, the tests that need no engine, no browser and few processes; of training the losses alone.
# Both are idempotent and take up where they were interrupted.
#
# The lock file is a whole CPU stack (vLLM, DeepSpeed, Prefect), about 4.5 GB installed. Where your package index has
# torch only as a CUDA build, point pip at PyTorch's CPU index first (PIP_EXTRA_INDEX_URL).

PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
# Tests at a time: one more than two cores have, since many wait for a deadline, a browser or a process.
WORKERS ?= 3
READY := $(VENV)/.ready
# Left out of make smoke: they wait for processes and servers, or try thousands of texts.
SLOW := pipeline/test_parts.py pipeline/test_server_pool.py pipeline/test_suspicion_files.py \
  pipeline/test_bad_records.py pipeline/test_shared_report.py pipeline/test_python_api.py \
  verifiers/test_math_grammar_properties.py verifiers/test_math_hostile.py

# The tests start hundreds of processes. Where this is set, as in many containers, each compiles truegold anew.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: demo test test-all smoke check setup site clean

demo: $(READY)
	$(BIN)/truegold run examples/demo.yaml

test: check
	$(BIN)/pytest -n $(WORKERS) --dist loadfile --no-loadscope-reorder

test-all: check
	TRUEGOLD_ALL=1 $(BIN)/pytest -n $(WORKERS) --dist loadfile --no-loadscope-reorder

smoke: $(READY)
	$(BIN)/pytest -n $(WORKERS) --dist loadfile --no-loadscope-reorder $(addprefix --ignore=tests/,$(SLOW)) \
	  tests/test_house.py tests/test_trips.py tests/pipeline tests/synth tests/train/test_losses.py tests/verifiers/test_[!bw]*.py \
	  tests/verifiers/code/test_code_verifier.py

check: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

setup: $(READY)

site: $(READY)
	$(BIN)/python -c 'import mkdocstrings, zensical' 2>/dev/null || $(BIN)/python -m pip install --disable-pip-version-check --no-build-isolation -e '.[docs]'
	$(BIN)/python -P docs/build_site.py

$(READY): requirements/cpu-lock.txt pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo 'truegold needs Python 3.11 or newer: make PYTHON=python3.11 ...'; exit 1; }
	@command -v gcc >/dev/null || { echo 'truegold needs gcc (DeepSpeed builds a small operator with it): install gcc and run again'; exit 1; }
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --disable-pip-version-check --no-deps -r requirements/cpu-lock.txt
	$(BIN)/python -m pip install --disable-pip-version-check --no-deps --no-build-isolation -e .
	# DeepSpeed compiles its operator for CPUs once, which would otherwise be part of the first training.
	$(BIN)/python -P -c 'from truegold.train.model.distributed import init_distributed; init_distributed()'
	touch $@

clean:
	rm -rf $(VENV) build *.egg-info
