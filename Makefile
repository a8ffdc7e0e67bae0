# One door to everything. Each target sets up what it needs and does nothing twice.
#   make run      open the application with the starter model ready
#   make test     run all tests
#   make check    lint, types, import rules, then all tests
#   make frozen   the application as one folder without Python, in dist/, tried without a network
# PYTHON=... chooses the Python to set up with, VENV=... another folder for the environment,
# ARGS=... goes to the application, PYTEST=... to pytest.
VENV ?= .venv
export VENV
# ONNX Runtime and the peers gather and send usage figures unless this is set.
export ORT_DISABLE_TELEMETRY := 1
BIN := $(VENV)/bin
SETUP = python=$$(sh packaging/setup/python.sh $(PYTHON)) && "$$python" packaging/setup/prepare.py

.PHONY: run test check lint fix bench frozen lock upgrade clean

run:
	@$(SETUP) run
	@$(BIN)/python packaging/setup/first_model.py $(ARGS)
	@$(BIN)/python -m app $(ARGS)

test: prepared
	@$(BIN)/python -m pytest $(PYTEST)

check: lint test

lint: prepared
	@$(BIN)/ruff check app packaging tests
	@$(BIN)/mypy
	@$(BIN)/lint-imports

fix: prepared
	@$(BIN)/ruff check --fix app packaging tests

bench: prepared
	@$(BIN)/python packaging/setup/first_model.py --data build/bench
	@PYTHONPATH=. $(BIN)/python tests/bench/generator.py build/bench/models/SmolLM2-135M-Instruct
	@PYTHONPATH=. $(BIN)/python tests/bench/outside_runs.py tests/data/tiny-llama
	@PYTHONPATH=. $(BIN)/python tests/bench/decode_vs_llamacpp.py
	@PYTHONPATH=. $(BIN)/python tests/bench/transcript.py

frozen:
	@$(SETUP) package
	@$(BIN)/python packaging/freeze.py

lock upgrade: prepared
	@$(BIN)/python -m pip install --quiet "uv>=0.9,<1"
	@sh packaging/setup/lock.sh $(BIN)/python $(if $(filter upgrade,$@),--upgrade)

clean:
	rm -rf build dist .venv .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis

.PHONY: prepared
prepared:
	@$(SETUP) test
