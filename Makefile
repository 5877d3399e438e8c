# The front door: every command of the repository. Needs Python 3.11 or later, Rust stable and make.

PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
# The oldest scikit-learn that dpci.sklearn supports, in an environment of its own.
OLDEST_SKLEARN := 1.6
OLDEST := .venv-oldest
# What maturin installs besides the package itself; see pyproject.toml.
EXTRAS ?= dev
# What builds and checks distributions, apart from the environment of the package.
TOOLS := .venv-dist
# What `make mutants` reads Rust with, apart from the environment of the package.
PARSERS := .venv-mutants
# Interpreters in which distributions are tested, the oldest first; and commands that run a Python of another kind of Linux.
PYTHONS ?= $(PYTHON)
ELSEWHERE ?=

# Commands that tests start load compiled modules.
unexport PYTHONDONTWRITEBYTECODE

SHELL := bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help
.PHONY: help build demo check-fast test test-rust test-rust-build test-oldest test-python test-level prove mutants fuzz lint lint-rust lint-python format bench docs dist wheels advisories clean

help: ## List the commands.
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-10s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

$(BIN)/maturin:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
		|| { echo "dpci needs Python 3.11 or later; name one with make PYTHON=..."; exit 1; }
	$(PYTHON) -m venv $(VENV)
	@# Some Pythons bring a setuptools with a known fault, which nothing here uses.
	$(BIN)/python -m pip install --quiet --upgrade pip setuptools 'maturin>=1.9,<2'

# The core has functions that tests alone call; a wheel (`make dist`, `pip install .`) has none of them.
build: $(BIN)/maturin ## Build the package and install it into .venv with its tools.
	MATURIN_PEP517_ARGS='--features testing' $(BIN)/python -m pip install --quiet --no-build-isolation --editable '.[$(EXTRAS)]'

demo: EXTRAS = cli,plot
demo: build ## Publish odds ratios of the packaged census sample, with a forest plot.
	$(BIN)/dpci demo

# Made once; the package and its compiled core are those of the checkout.
$(OLDEST)/scikit-learn-$(OLDEST_SKLEARN): | $(BIN)/maturin
	$(BIN)/python -m venv --clear $(OLDEST)
	$(OLDEST)/bin/python -m pip install --quiet 'scikit-learn==$(OLDEST_SKLEARN).*' 'scipy<1.16' 'numpy<2.3' 'pandas<3' 'narwhals>=1.30' 'pytest>=8,<9'
	touch $@

# Two at a time, each with a half of the tests, of which it takes over what the other has not begun when its own are done.
PYTEST = OPENBLAS_NUM_THREADS=1 $(BIN)/python -m pytest -n 2 --dist worksteal

check-fast: build ## Run contracts and units: all tests but those of tests/slow.txt.
	$(PYTEST) -m "not prove and not lint and not slow"

test: build ## Run all tests: Rust, then Python.
	$(MAKE) --no-print-directory -o build -j2 -Otarget test-rust test-oldest
	$(MAKE) --no-print-directory -o build test-python

# One build for all tests of the core: no mistake is on but in those of the mistakes, and the extension has none.
# Without the jobs of a make -j, which cargo would look for in vain.
CARGO_TEST = MAKEFLAGS= cargo test --quiet -p dpci-core --features seeded-bugs

test-rust:
	$(CARGO_TEST) -- --skip every_mistake

test-rust-build:
	$(CARGO_TEST) --no-run

test-oldest: build $(OLDEST)/scikit-learn-$(OLDEST_SKLEARN)
	PYTHONPATH=python $(OLDEST)/bin/python -m pytest --quiet tests/scikit_learn

test-python: build
	$(PYTEST)

# The last bits of another processor: instruction sets of the core (rust/dpci-core/src/linalg/arch.rs), of OpenBLAS, NumPy and glibc.
LEVEL ?= scalar
KERNEL ?= Prescott
NUMERICAL := $(addprefix tests/,core inference regression multinomial)

test-level: build ## Run fast tests of numerics as another processor would (LEVEL=scalar or v3, KERNEL of OpenBLAS).
	DPCI_SIMD=$(LEVEL) OPENBLAS_CORETYPE=$(KERNEL) GLIBC_TUNABLES=glibc.cpu.hwcaps=-AVX2,-FMA,-AVX512F \
		NPY_DISABLE_CPU_FEATURES="$$($(BIN)/python -c 'from numpy._core._multiarray_umath import __cpu_dispatch__ as d; print(*d)')" \
		$(PYTEST) -m "not prove and not lint and not slow" $(NUMERICAL)

prove: build ## Run audits and long tables; write the logs to docs/evidence (tables on real data need DPCI_DATA).
	@mkdir -p docs/evidence
	{ echo "# Seeded mistakes"; echo; echo "\`make prove\`, commit $$(git rev-parse HEAD), $$(date -u +%F): what each detector says."; echo; \
		cargo test --quiet -p dpci-core --features seeded-bugs --test seeded_bugs -- --nocapture | grep '^|'; } \
		| tee docs/evidence/seeded_bugs.md
	$(BIN)/python benches/small_curvature.py | tee docs/evidence/small_curvature.md
	$(BIN)/python benches/random_cells.py | tee docs/evidence/random_cells.md
	$(BIN)/python benches/random_newton.py | tee docs/evidence/random_newton.md
	$(BIN)/python benches/refined_regression.py --runs 400 | tee docs/evidence/refined_regression.md
	{ echo "commit $$(git rev-parse HEAD)"; date -u; DPCI_EVIDENCE=1 $(BIN)/python -m pytest -m prove -s -rA; } 2>&1 \
		| tee docs/evidence/prove.log
	@test -n "$${DPCI_DATA:-}" || echo "DPCI_DATA is not set: the tables of interval quality are left out"
	@test -z "$${DPCI_DATA:-}" || $(BIN)/python benches/interval_quality.py --figure docs/evidence/interval_quality.svg \
		| tee docs/evidence/interval_quality.md
	@test -z "$${DPCI_DATA:-}" || $(BIN)/python benches/approx_quality.py | tee docs/evidence/approx_quality.md
	@test -z "$${DPCI_DATA:-}" || $(BIN)/python benches/number_of_records.py | tee docs/evidence/number_of_records.md
	@test -z "$${DPCI_DATA:-}" || $(BIN)/python benches/unregularised.py 100 | tee docs/evidence/unregularised.md
	@test -z "$${DPCI_DATA:-}" || $(BIN)/python benches/flat_losses.py | tee docs/evidence/flat_losses.md
	@test -z "$${DPCI_DATA:-}" || $(BIN)/python benches/published_tables.py
	@test -z "$${DPCI_DATA:-}" || $(BIN)/python benches/statsmodels_limit.py | tee docs/evidence/statsmodels.md
	$(BIN)/python benches/radius_rule.py | tee docs/evidence/radius_rule.md
	# The crate as other crates get it: it builds from what is packaged, and keeps the interface of the last version.
	cargo package --quiet --package dpci-core
	@if ! cargo semver-checks --version > /dev/null 2>&1; then echo "cargo-semver-checks is not installed: the crate's interface is not compared"; \
		elif ! git describe --tags --abbrev=0 > /dev/null 2>&1; then echo "no version has been tagged: the crate's interface is not compared"; \
		else cargo semver-checks --package dpci-core --default-features --baseline-rev "$$(git describe --tags --abbrev=0)"; fi
	$(MAKE) dist
	$(BIN)/python benches/check_dist.py dist --python $(PYTHONS) --elsewhere $(ELSEWHERE) | tee docs/evidence/dist.md

$(PARSERS)/bin/python:
	$(PYTHON) -m venv $(PARSERS)
	$(PARSERS)/bin/python -m pip install --quiet 'tree-sitter>=0.25,<1' 'tree-sitter-rust>=0.24,<1'

# Another seed chooses other mutants; AREAS='privacy ledger' names some of the areas.
SEED ?= 1
NUMBER ?= 60
AREAS ?=

mutants: build $(PARSERS)/bin/python ## Change the code in random places, one at a time, and see that a test fails (about an hour).
	$(PARSERS)/bin/python benches/mutants/run.py --seed $(SEED) --number $(NUMBER) $(if $(AREAS),--areas $(AREAS))

# Seconds for each target of the core.
FUZZ_SECONDS ?= 300

fuzz: ## Fuzz the core, guided by coverage (needs nightly Rust and cargo-fuzz; see docs/fuzzing.md).
	@cargo fuzz --version > /dev/null || { echo "needs cargo-fuzz: cargo install cargo-fuzz --locked"; exit 1; }
	@for target in $$(cargo +nightly fuzz list); do \
		mkdir -p fuzz/corpus/$$target; \
		cargo +nightly fuzz run --sanitizer none $$target fuzz/corpus/$$target $$(find fuzz/seeds/$$target -maxdepth 0 2> /dev/null) \
			-- -max_total_time=$(FUZZ_SECONDS) -timeout=20 -rss_limit_mb=4096 -max_len=4096 -print_final_stats=1; \
	done
	@if cargo deny --version > /dev/null 2>&1; then cargo deny --offline check licenses bans sources; \
		else echo "cargo-deny is not installed: tests/house/test_dependencies.py checks the same licences and bans"; fi

lint: lint-rust lint-python ## Check format, lints, types and the site; a warning is an error (with -j2 both languages at the same time).

lint-rust:
	cargo fmt --all --check
	cargo clippy --workspace --all-targets --features dpci-core/seeded-bugs,dpci-py/testing --quiet -- -D warnings
	# As a release has it.
	cargo clippy -p dpci-py --quiet -- -D warnings
	# As other crates see it, with private modules and without the switch of the mistakes.
	cargo clippy -p dpci-core --quiet --lib --examples -- -D warnings

lint-python: build
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/python -m mypy.stubtest dpci._core --allowlist tests/stubtest_allowlist.txt
	# Builds the site of the documentation in strict mode.
	$(BIN)/python -m pytest --quiet -m lint tests/house/test_site.py

format: build ## Format Rust and Python.
	cargo fmt --all
	$(BIN)/ruff check --fix
	$(BIN)/ruff format

bench: build ## Run the benchmarks, Rust then Python (use an idle machine).
	cargo bench --package dpci-benches
	@for script in benches/bench_*.py; do if [ -e "$$script" ]; then $(BIN)/python "$$script"; fi; done

docs: build ## Build the site of the documentation (site/) and the reference of the Rust core; a broken link is an error.
	$(BIN)/mkdocs build --strict
	# Once with all modules, for maintainers, and once as other crates see it.
	RUSTDOCFLAGS="-D warnings" cargo doc --no-deps --package dpci-core --features internals
	RUSTDOCFLAGS="-D warnings" cargo doc --no-deps --package dpci-core

$(TOOLS)/bin/auditwheel:
	$(PYTHON) -m venv $(TOOLS)
	$(TOOLS)/bin/python -m pip install --quiet 'maturin>=1.9,<2' ziglang auditwheel

# Zig links against the old glibc that manylinux2014 promises; the wheel is built from the source distribution.
dist: $(TOOLS)/bin/auditwheel ## Build the wheel for every Python from 3.11 and the source distribution, into dist.
	rm -rf dist
	# The sources in a source distribution have one fixed date, by which Cargo would take an older build for theirs.
	cargo clean --quiet --release --target x86_64-unknown-linux-gnu --package dpci-core --package dpci-py
	PATH="$(CURDIR)/$(TOOLS)/bin:$$PATH" maturin build --release --sdist --zig --compatibility manylinux_2_17 \
		--interpreter $(TOOLS)/bin/python --out dist
	$(TOOLS)/bin/auditwheel show dist/*.whl

# Kinds of Linux beside x86-64 with glibc, as Rust calls them: their standard libraries must be there (rustup target add).
TARGETS ?= aarch64-unknown-linux-gnu x86_64-unknown-linux-musl aarch64-unknown-linux-musl

wheels: $(TOOLS)/bin/auditwheel ## Build wheels for other kinds of Linux (TARGETS) into dist, after make dist.
	for target in $(TARGETS); do \
		case $$target in *-musl) policy=musllinux_1_2;; *) policy=manylinux_2_17;; esac; \
		PATH="$(CURDIR)/$(TOOLS)/bin:$$PATH" maturin build --release --locked --zig --target $$target --compatibility $$policy \
			--interpreter python3.11 --out dist; \
	done

# Clones of the databases, for a machine without a network: ADVISORIES='--rustsec DIR --pypa DIR'.
ADVISORIES ?=
advisories: build ## Compare all dependencies with published advisories (needs cargo-deny, and a network or clones).
	$(BIN)/python -m pip install --quiet pip-audit
	$(BIN)/python benches/check_advisories.py $(ADVISORIES)

clean: ## Remove what was built, but not .venv.
	cargo clean
	rm -rf dist .mypy_cache .pytest_cache .ruff_cache demo_output site
