# The face of the build; the work is done by scripts/ and meson. `make help` lists the targets.
#
# BUILD  build folder, `build`; with CC set in the environment or on the command line, build-$(CC)
# VENV   where the result is installed, `.venv`
# PYTHON the interpreter that VENV is made from

ifeq ($(origin CC),default)
BUILD ?= build
else
BUILD ?= build-$(notdir $(firstword $(CC)))
export CC
endif
VENV ?= .venv
PYTHON ?= /usr/bin/python3
MINUTES ?= 10
export BUILD VENV PYTHON

MAKEFLAGS += --no-print-directory
.DEFAULT_GOAL := all
.PHONY: all run check soak fuzz bench fresh format tidy clean help

all: ## build, and install into .venv (what is missing comes through apt-get)
	@scripts/install-deps build
	@scripts/build

run: all ## all of `make`, then the quick start
	$(VENV)/bin/python examples/quickstart.py

check: ## all of `make`, then every test
	@scripts/install-deps build check
	@scripts/build --check
	@scripts/check

soak: all ## long runs: minutes of kills, calls and computing; new random programs
	@scripts/install-deps check
	$(VENV)/bin/python -m pytest -q tests/soak
	scripts/model long
	PYPTO_PROPERTY=soak $(VENV)/bin/python -m pytest -q tests/property

fuzz: ## fuzz the compiler for MINUTES (10) with new random inputs
	@scripts/install-deps build check
	@scripts/fuzz minutes $(MINUTES)

bench: all ## all of `make`, then the benchmarks
	@scripts/install-deps bench || echo 'Going on: what needs them is skipped.'
	$(VENV)/bin/python bench/run.py

fresh: ## run and check the last commit inside a minimal Debian (as root; takes minutes)
	@scripts/install-deps fresh
	@scripts/fresh

format: ## format every C file
	@scripts/format

tidy: ## clang-tidy over every C file (slow)
	@scripts/check tidy

clean: ## remove what the build made
	rm -rf build build-* .venv $(BUILD) $(VENV)

help: ## this list
	@sed -n 's/^\([a-z]*\):.*## \(.*\)/  make \1\t\2/p' Makefile | expand -t 16
