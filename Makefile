# make demo | serve-demo | test | test-all | test-quick | test-bounds | test-cluster | test-image | test-matrix | torture | check | audit | bench | bench-peers | docs | reproduce-sor: each makes its own environment first, from python3 and make alone.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PEERS := .venv-peers

# What a change breaks first, most of it; no test here takes long, so those stay out that compile
# kernels or measure memory.
QUICK := tests/test_*.py tests/cli tests/compiled tests/storage tests/runner \
	tests/allpairs/test_parts.py tests/engine/test_rings.py tests/engine/test_walk.py \
	tests/graph/test_links.py tests/io/test_readers.py tests/io/test_writers.py \
	tests/index/test_facts.py tests/index/test_files.py \
	tests/kernels/test_external.py tests/kernels/test_text.py \
	tests/measures/test_by.py tests/measures/test_settings.py tests/search/test_common.py tests/search/test_filters.py \
	--ignore=tests/cli/test_cache.py --ignore=tests/cli/test_memory.py

# What make test leaves to make test-all: tests that start processes, draw many samples, or do harm.
CHOSEN := (chosen or not (long or process or statistical or torture)) and not cluster

# Tests start hundreds of processes: where Python shall keep no bytecode beside its modules, it keeps
# it in the environment.
bytecode = [ -z "$$PYTHONDONTWRITEBYTECODE" ] \
	|| export PYTHONDONTWRITEBYTECODE= PYTHONPYCACHEPREFIX="$(CURDIR)/$(VENV)/bytecode"

# Whatever tests leave in the temporary directory goes with them. Where there is room for it this is
# in memory: they write, sync and remove thousands of small stores.
define pytest
	@$(bytecode); \
	free=$$(df -k --output=avail /dev/shm 2>/dev/null | tail -n 1); \
	[ "$${free:-0}" -lt 8000000 ] || export TMPDIR=/dev/shm; \
	folder=$$(mktemp -d) || exit 1; trap 'rm -rf "$$folder"' EXIT INT TERM; export TMPDIR="$$folder"; \
	$(BIN)/python -m pytest -n auto --dist worksteal $(1)
endef

.PHONY: demo serve-demo test test-all test-quick test-bounds test-cluster test-image test-matrix imports torture check audit bench bench-peers docs reproduce-sor lock clean

$(VENV)/.runtime: requirements.lock pyproject.toml
	@$(PYTHON) -c 'import sys; v = sys.version_info; sys.exit(None if v >= (3, 11) else f"cocite needs Python 3.11 or later; this is {v.major}.{v.minor}. Name another: make PYTHON=python3.12")'
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install --quiet --no-compile --disable-pip-version-check --require-hashes -r requirements.lock
	@$(BIN)/python -m pip install --quiet --no-compile --disable-pip-version-check --no-deps --editable .
	@touch $@

$(VENV)/.dev: $(VENV)/.runtime requirements-dev.lock
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements-dev.lock
	@touch $@

demo: $(VENV)/.runtime
	@$(BIN)/python examples/stdlib_demo.py

serve-demo: $(VENV)/.dev
	@$(BIN)/python examples/stdlib_serve.py

test: $(VENV)/.dev
	@echo "most tests, and of those that take long a chosen few: two more minutes where kernels are compiled first"
	$(call pytest,-m "$(CHOSEN)")

test-all: $(VENV)/.dev
	@echo "all tests, as before anything lands: two more minutes where kernels are compiled first"
	$(call pytest,)

# What tests import, as bytecode: two workers that begin with none make it twice.
imports: $(VENV)/.dev
	@$(bytecode); $(BIN)/python -m pytest --collect-only -qq >/dev/null

test-quick: $(VENV)/.dev
	@echo "the quick tests: two to three minutes on two cores; more where kernels are compiled first"
	$(call pytest,$(QUICK))

# Every index that a kernel uses is looked at: one beyond its array is an error, and not a wrong answer.
# Code that does so is kept apart from the other (src/cocite/compiled/cache.py).
test-bounds: export NUMBA_BOUNDSCHECK = 1
test-bounds: $(VENV)/.dev
	@echo "what all measures promise, by kernels with bounds checks: two minutes on two cores; more where they are compiled first"
	$(call pytest,tests/measures/test_contract.py)

# One test at a time: each has several Ray nodes, which are processes of their own.
test-cluster: $(VENV)/.dev
	@echo "several Ray nodes on this machine, killed in the middle, too: five minutes on two cores"
	@$(bytecode); $(BIN)/python -m pytest -m cluster -p no:xdist tests/cluster

torture: $(VENV)/.dev
	@echo "kills, lost power, full disks, flipped bits, hostile content, readers: what thirty minutes allow; docs/reliability.md has what came of it"
	@free=$$(df -k --output=avail /dev/shm 2>/dev/null | tail -n 1); \
	[ "$${free:-0}" -lt 2000000 ] || export TMPDIR=/dev/shm; \
	$(BIN)/python -m tests.torture --minutes 30 --report docs/reliability.md

test-image: $(VENV)/.dev
	COCITE_TEST_IMAGE=1 $(BIN)/python -m pytest -m image tests/server/test_image.py

test-matrix: $(VENV)/.dev
	@echo "the quick tests on every Python with the oldest and the newest dependencies: about 5 minutes each"
	$(BIN)/python -m tests.matrix -- -n auto --dist worksteal $(QUICK)

check: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

# What a plain installation holds (sbom.json, CycloneDX), and known vulnerabilities of all that we pin;
# a package that nobody knows of is a failure, as it was not looked up.
audit: $(VENV)/.dev
	@folder=$$(mktemp -d) || exit 1; trap 'rm -rf "$$folder"' EXIT INT TERM; \
	$(BIN)/uv venv --quiet --python $(BIN)/python "$$folder/plain" \
	&& $(BIN)/uv pip install --quiet --python "$$folder/plain/bin/python" --require-hashes -r requirements.lock \
	&& $(BIN)/uv tool run --from cyclonedx-bom cyclonedx-py environment --pyproject pyproject.toml "$$folder/plain/bin/python" -o sbom.json
	@echo "sbom.json: what a plain installation holds"
	$(BIN)/uv tool run pip-audit --strict --disable-pip --require-hashes -r requirements.lock -r requirements-dev.lock

bench: $(VENV)/.dev
	$(BIN)/python -m benchmarks

docs: $(VENV)/.dev  # the documentation as a site; warnings are errors
	$(BIN)/python -m sphinx -W --keep-going -q -d build/docs/trees docs build/docs/html
	@echo "build/docs/html/index.html"

# Other libraries, in an environment of their own, so that ours stays as it is locked. What does not
# install is named and left out.
$(PEERS)/.peers: requirements.lock pyproject.toml benchmarks/peers/requirements.txt
	@test -x $(PEERS)/bin/python || $(PYTHON) -m venv $(PEERS)
	@$(PEERS)/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements.lock
	@$(PEERS)/bin/python -m pip install --quiet --disable-pip-version-check --no-deps --editable .
	@$(PEERS)/bin/python -m pip freeze --disable-pip-version-check --exclude-editable > $(PEERS)/constraints.txt
	@sed 's/#.*//' benchmarks/peers/requirements.txt | while read -r name; do \
	[ -z "$$name" ] || $(PEERS)/bin/python -m pip install --quiet --disable-pip-version-check -c $(PEERS)/constraints.txt "$$name" \
	|| echo "$$name does not install here, and is left out" >&2; done
	@touch $@

bench-peers: $(PEERS)/.peers
	$(PEERS)/bin/python -m benchmarks.peers $(ARGS)

reproduce-sor: $(VENV)/.dev
	$(BIN)/python -m benchmarks.sor

lock: $(VENV)/.dev  # pins and hashes for every platform, no registry named
	$(BIN)/uv pip compile --quiet --universal --generate-hashes --no-header --no-annotate --no-emit-index-url --no-emit-find-links pyproject.toml -o requirements.lock
	$(BIN)/uv pip compile --quiet --universal --generate-hashes --no-header --no-annotate --no-emit-index-url --no-emit-find-links --extra dev -c requirements.lock pyproject.toml -o requirements-dev.lock

clean:
	rm -rf $(VENV) $(PEERS) .mypy_cache .ruff_cache .pytest_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
