# Two commands do everything on a machine with python3, pip and make: `make demo` and `make test`.
PYTHON ?= python3
BIN := .venv/bin

.PHONY: demo test check measure clean

demo: .venv/demo
	$(BIN)/bismut figure ballistic-pendulum

test: .venv/test check
	$(BIN)/pytest -n 2 --dist worksteal

check: .venv/test
	$(BIN)/ruff check src tests
	$(BIN)/ruff format --check src tests
	$(BIN)/lint-imports --no-cache
	$(BIN)/basedpyright

measure: .venv/test
	$(BIN)/pytest -m slow

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
	rm -rf .venv output build dist
