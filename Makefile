# make demo | serve-demo | kernels | test | test-all | test-quick | test-bounds | test-cluster | test-targets | test-image | test-matrix | torture | check | audit | bench | bench-peers | docs | reproduce-sor: each makes its own environment first, from python3 and make alone.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PEERS := .venv-peers

# What a change breaks first, most of it; no test here takes long, so those stay out that measure
# memory.
QUICK := tests/test_*.py tests/cli tests/storage tests/runner \
	tests/engine/test_rings.py tests/engine/test_walk.py \
	tests/graph/test_links.py tests/io/test_readers.py tests/io/test_writers.py \
	tests/index/test_facts.py tests/index/test_files.py \
	tests/kernels/test_text.py \
	tests/measures/test_meeting_weight.py tests/measures/test_settings.py tests/search/test_link_measures.py tests/search/test_lists.py \
	--ignore=tests/cli/test_memory.py

# What make test leaves to make test-all: tests that start processes, draw many samples, or do harm.
CHOSEN := (chosen or not (long or process or statistical or torture)) and not cluster

# Tests start hundreds of processes: where Python shall keep no bytecode beside its modules, it keeps
# it in the environment.
bytecode = [ -z "$$PYTHONDONTWRITEBYTECODE" ] \
	|| export PYTHONDONTWRITEBYTECODE= PYTHONPYCACHEPREFIX="$(CURDIR)/$(VENV)/bytecode"

# Of the contract of measures, what runs every kernel: builds, lists, batches, several nodes, settings.
BOUNDS := test_kernel or sorted or symmetric or aggregate or related_all or decay or meeting or resumes

# Whatever tests leave in the temporary directory goes with them. Where there is room for it this is
# in memory: they write, sync and remove thousands of small stores.
define pytest
	@$(bytecode); \
	free=$$(df -k --output=avail /dev/shm 2>/dev/null | tail -n 1); \
	[ "$${free:-0}" -lt 8000000 ] || export TMPDIR=/dev/shm; \
	folder=$$(mktemp -d) || exit 1; trap 'rm -rf "$$folder"' EXIT INT TERM; export TMPDIR="$$folder"; \
	$(BIN)/python -m pytest -n auto --dist worksteal $(1)
endef

.PHONY: demo serve-demo kernels wheels test test-all test-quick test-bounds test-cluster test-targets test-image test-matrix imports torture check audit bench bench-peers docs docs-versions reproduce-sor lock clean

$(VENV)/.runtime: requirements.lock requirements-build.lock requirements-linker.lock pyproject.toml
	@$(PYTHON) -c 'import sys; v = sys.version_info; sys.exit(None if v >= (3, 11) else f"cocite needs Python 3.11 or later; this is {v.major}.{v.minor}. Name another: make PYTHON=python3.12")'
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install --quiet --no-compile --disable-pip-version-check --require-hashes -r requirements.lock -r requirements-build.lock
	@$(BIN)/python -c 'import hatch_build, sys; sys.exit(not hatch_build.compiler())' \
	|| $(BIN)/python -m pip install --quiet --no-compile --disable-pip-version-check --require-hashes -r requirements-linker.lock
	@echo "compiling kernels, once: about a minute on two cores"
	@$(BIN)/python -m pip install --quiet --no-compile --disable-pip-version-check --no-deps --no-build-isolation --editable .
	@touch $@ $(VENV)/.kernels

# What has changed is compiled again; what is there is kept in build/kernels.
$(VENV)/.kernels: $(VENV)/.runtime hatch_build.py src/cocite/constants.py $(wildcard src/cocite/kernels/*.py)
	@$(BIN)/python hatch_build.py >/dev/null
	@touch $@

kernels: $(VENV)/.kernels

$(VENV)/.dev: $(VENV)/.kernels requirements-dev.lock
	@$(BIN)/python -m pip install --quiet --no-compile --disable-pip-version-check --require-hashes -r requirements-dev.lock
	@touch $@

demo: $(VENV)/.kernels
	@$(BIN)/python examples/stdlib_demo.py

serve-demo: $(VENV)/.dev
	@$(BIN)/python examples/stdlib_serve.py

test: $(VENV)/.dev
	@echo "most tests, and of those that take long a chosen few"
	$(call pytest,-m "$(CHOSEN)")

test-all: $(VENV)/.dev
	@echo "all tests, as before anything lands"
	$(call pytest,)

# What tests import, as bytecode: two workers that begin with none make it twice.
imports: $(VENV)/.dev
	@$(bytecode); $(BIN)/python -m pytest --collect-only -qq >/dev/null

test-quick: $(VENV)/.dev
	@echo "the quick tests: two to three minutes on two cores"
	$(call pytest,$(QUICK))

# Every index that a kernel uses is looked at: one beyond its array is an error, and not a wrong answer.
# Such kernels are a library of their own.
test-bounds: export COCITE_CHECKED = 1
test-bounds: $(VENV)/.dev
	@echo "what all measures promise, by kernels with bounds checks: half a minute on two cores, and one to compile them"
	@$(BIN)/python hatch_build.py --checked >/dev/null
	$(call pytest,tests/measures/test_contract.py tests/kernels/test_kernel.py -k "$(BOUNDS)")

# Kernels for another processor give the same bits, and so do those that Numba compiles when they are called.
test-targets: $(VENV)/.dev
	@echo "stored answers, digests and what measures promise, by kernels for x86-64-v2 and by Numba: five minutes on two cores"
	@[ "$$(uname -m)" != x86_64 ] || { $(BIN)/python hatch_build.py --target x86-64-v2 >/dev/null \
	&& COCITE_TARGET=x86-64-v2 $(BIN)/python -m pytest -q -n auto tests/test_golden.py tests/index/test_digest.py tests/measures/test_contract.py; }
	@COCITE_JIT=1 $(BIN)/python -m pytest -q -n auto tests/test_golden.py tests/measures/test_contract.py

# One test at a time: each has several Ray nodes, which are processes of their own.
test-cluster: $(VENV)/.dev
	@echo "several Ray nodes on this machine, killed in the middle, too: three to four minutes on two cores"
	@$(bytecode); $(BIN)/python -m tests.cluster

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
	&& $(BIN)/uv tool run --input-format cyclonedx-bom cyclonedx-py environment --pyproject pyproject.toml "$$folder/plain/bin/python" -o sbom.json
	@echo "sbom.json: what a plain installation holds"
	$(BIN)/uv tool run pip-audit --strict --disable-pip --require-hashes $(patsubst %,-r %,$(wildcard requirements*.lock))

bench: $(VENV)/.dev
	$(BIN)/python -m benchmarks

docs: $(VENV)/.dev  # the documentation as a site; warnings are errors
	$(BIN)/python -m sphinx -W --keep-going -q -d build/docs/trees docs build/docs/html
	@echo "build/docs/html/index.html"

docs-versions: docs  # every release beside the working tree, with a menu of versions
	$(BIN)/python docs/versions.py

# Other libraries, in an environment of their own, so that ours stays as it is locked. What does not
# install is named and left out.
$(PEERS)/.peers: requirements.lock requirements-build.lock pyproject.toml benchmarks/peers/requirements.txt
	@test -x $(PEERS)/bin/python || $(PYTHON) -m venv $(PEERS)
	@$(PEERS)/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements.lock -r requirements-build.lock
	@$(PEERS)/bin/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
	@$(PEERS)/bin/python -m pip freeze --disable-pip-version-check --exclude-editable > $(PEERS)/constraints.txt
	@sed 's/#.*//' benchmarks/peers/requirements.txt | while read -r name; do \
	[ -z "$$name" ] || $(PEERS)/bin/python -m pip install --quiet --disable-pip-version-check -c $(PEERS)/constraints.txt "$$name" \
	|| echo "$$name does not install here, and is left out" >&2; done
	@touch $@

bench-peers: $(PEERS)/.peers
	$(PEERS)/bin/python -m benchmarks.peers $(ARGS)

reproduce-sor: $(VENV)/.dev
	$(BIN)/python -m benchmarks.sor

# Source and wheel, as a release has them; the wheel is tried where there is neither Numba nor a compiler.
wheels: $(VENV)/.dev
	@rm -rf build/dist && COCITE_TARGETS=all $(BIN)/python -m hatchling build -d build/dist
	$(BIN)/python -m tests.wheel build/dist

lock: $(VENV)/.dev  # pins and hashes for every platform, no registry named
	$(BIN)/uv pip compile --quiet --universal --generate-hashes --no-header --no-annotate --no-emit-index-url --no-emit-find-links pyproject.toml -o requirements.lock
	$(BIN)/uv pip compile --quiet --universal --generate-hashes --no-header --no-annotate --no-emit-index-url --no-emit-find-links --extra dev -c requirements.lock pyproject.toml -o requirements-dev.lock
	$(BIN)/uv pip compile --quiet --universal --generate-hashes --no-header --no-annotate --no-emit-index-url --no-emit-find-links --group build -c requirements-dev.lock -o requirements-build.lock
	$(BIN)/uv pip compile --quiet --universal --generate-hashes --no-header --no-annotate --no-emit-index-url --no-emit-find-links --group linker -o requirements-linker.lock

clean:
	rm -rf $(VENV) $(PEERS) build/kernels src/cocite/kernels/*.so .mypy_cache .ruff_cache .pytest_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
