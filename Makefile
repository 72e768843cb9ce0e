# What a fresh clone needs: Python 3.11 or newer with venv, bash, git, make. Each target installs the rest into .venv.
#   make demo    an agent at work, with real processes
#   make test    the tests
#   make check   format, lint, types, layers, tests: the one door for a change
#   make format  lay the code out and sort its imports
#   make bench   what a command costs

PYTHON ?= python3
PY := .venv/bin/python

.PHONY: demo test check static format bench clean
.DELETE_ON_ERROR:

demo: .venv/installed
	@.venv/bin/handrail demo

test: .venv/installed-dev
	@$(PY) -m pytest

check: static test

static: .venv/installed-dev
	@$(PY) -m ruff format --check
	@$(PY) -m ruff check
	@$(PY) -m mypy
	@$(PY) -m pyright
	@$(PY) -m pytest tests/architecture

format: .venv/installed-dev
	@$(PY) -m ruff check --select I --fix
	@$(PY) -m ruff format

bench: .venv/installed
	@$(PY) benchmarks/engine.py

clean:
	rm -rf .venv build dist .mypy_cache .pytest_cache .ruff_cache .hypothesis

# Editable, so that an edit needs no new installation; a changed pyproject.toml does.
.venv/installed: pyproject.toml | .venv/bin/pip
	@echo 'Installing handrail into .venv'
	@$(PY) -m pip install --quiet --disable-pip-version-check --editable .
	@touch $@

.venv/installed-dev: pyproject.toml | .venv/bin/pip
	@echo 'Installing handrail and its development tools into .venv'
	@$(PY) -m pip install --quiet --disable-pip-version-check --editable '.[dev]'
	@touch .venv/installed $@

# pip comes last into a new environment: where it is, the environment is whole.
.venv/bin/pip:
	@command -v '$(PYTHON)' >/dev/null || { \
	  echo "handrail needs Python 3.11 or newer, and there is no '$(PYTHON)' here: install it, or name one with make PYTHON=/path/to/python3." >&2; exit 1; }
	@'$(PYTHON)' -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	  echo "handrail needs Python 3.11 or newer, and '$(PYTHON)' is older: name a newer one with make PYTHON=/path/to/python3." >&2; exit 1; }
	@'$(PYTHON)' -c 'import ensurepip, venv' 2>/dev/null || { \
	  echo "handrail needs Python's venv module, and '$(PYTHON)' lacks it: install it (Debian and Ubuntu: apt install python3-venv)." >&2; exit 1; }
	@'$(PYTHON)' -m venv --clear .venv
