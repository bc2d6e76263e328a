# Every verb makes or updates .venv itself; CI calls the same ones.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
CPP := $(shell find cpp -name '*.cc' -o -name '*.h' -o -name CMakeLists.txt) CMakeLists.txt
CPP_FORMATTED := $(shell find cpp -name '*.cc' -o -name '*.h')
SECONDS ?= 60
STUBGEN := $(BIN)/python -m nanobind.stubgen -q -m recordkit._core -p cpp/bindings/stub_patterns.txt

.DEFAULT_GOAL := help
.PHONY: help demo test test-fast soak check fix bench docs fuzz stubs wheel clean

help:  ## list the verbs
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 14

demo: $(VENV)/package  ## the main job from end to end, on a small dataset of pictures
	$(BIN)/recordkit demo build/demo

test: $(VENV)/test  ## every test, TensorFlow's included
	$(BIN)/python -m pytest -n auto --maxprocesses=4 --dist=worksteal --durations=30 $(PYTEST)

test-fast: $(VENV)/test  ## the tests that take seconds
	$(BIN)/python -m pytest -m "not slow and not tensorflow" $(PYTEST)

soak: $(VENV)/test  ## the tests that draw their inputs, with others each round; SECONDS=7200
	$(BIN)/python tests/soak.py --seconds $(SECONDS)

check: $(VENV)/test $(VENV)/check cpp-test wheel docs  ## lint, types, layers, formatting, figures, stub, wheel, site, C++ tests under sanitizers
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/python tests/check_layers.py
	$(BIN)/python benchmarks/plots.py --check
	$(BIN)/clang-format --dry-run --Werror $(CPP_FORMATTED)
	$(STUBGEN) -o build/_core.pyi
	diff -u src/recordkit/_core.pyi build/_core.pyi || (echo "The stub is out of date: make stubs"; exit 1)

fix: $(VENV)/check  ## format, and mend what the linters can
	$(BIN)/ruff check --fix
	$(BIN)/ruff format
	$(BIN)/clang-format -i $(CPP_FORMATTED)

stubs: $(VENV)/package  ## write src/recordkit/_core.pyi anew
	$(STUBGEN) -o src/recordkit/_core.pyi

bench: $(VENV)/package  ## measure beside the peers; BENCH="--only scan,decode --repeats 5"
	$(BIN)/python benchmarks/run.py $(BENCH)
	$(if $(BENCH),,$(BIN)/python benchmarks/plots.py)

docs: $(VENV)/docs  ## the documentation as a site in build/site
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet --strict --config-file website/mkdocs.yml
	@echo "build/site/index.html is there; $(BIN)/mkdocs serve -f website/mkdocs.yml shows it while you write"

fuzz: $(VENV)/build  ## coverage-guided fuzzing, SECONDS=60 a target; needs clang
	sh cpp/tests/fuzz.sh $(BIN) $(SECONDS)

wheel: $(VENV)/build  ## build the wheel, which must stay under 3 MB
	$(BIN)/pip wheel -q --no-deps --no-build-isolation -w dist .
	$(BIN)/python tests/check_wheel.py dist

clean:  ## remove what was built; keeps .venv
	rm -rf build dist

.PHONY: cpp-test
cpp-test: $(VENV)/build
	$(BIN)/cmake -S . -B build/cpp-tests -G Ninja -DCMAKE_MAKE_PROGRAM=$(CURDIR)/$(BIN)/ninja -DRECORDKIT_CPP_TESTS=ON -DCMAKE_BUILD_TYPE=RelWithDebInfo > build/cpp-tests.log || (cat build/cpp-tests.log; exit 1)
	$(BIN)/cmake --build build/cpp-tests
	build/cpp-tests/cpp/tests/unit_tests
	build/cpp-tests/cpp/tests/replay 50000

$(VENV)/build: pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install -q --disable-pip-version-check "pip>=25.1"
	$(BIN)/python -m pip install -q --disable-pip-version-check --group build
	mkdir -p build
	touch $@

$(VENV)/package: $(VENV)/build $(CPP)
	$(BIN)/python -m pip install -q --disable-pip-version-check --no-build-isolation -e '.[images,viewer]'
	touch $@

$(VENV)/check: $(VENV)/build
	$(BIN)/python -m pip install -q --disable-pip-version-check --group check
	touch $@

$(VENV)/docs: $(VENV)/build
	$(BIN)/python -m pip install -q --disable-pip-version-check --group docs
	touch $@

$(VENV)/test: $(VENV)/package
	$(BIN)/python -m pip install -q --disable-pip-version-check --group test
	touch $@
