# make run    set up, then run the embedded lab's campaign in runs/lab; a finished one is shown again
# make test   set up, then run all tests
# make check  format, lint, types, import layers, generated docs
# Settings pass through: make run lab.seed=3 OUT=runs/other        PYTHON=... picks the interpreter.

VENV ?= .venv
OUT ?= runs/lab
JOBS ?= 2
BIN := $(VENV)/bin

# Settings given on make's own command line are the variables with a dot in their names.
OVERRIDES = $(foreach name,$(.VARIABLES),$(if $(findstring .,$(name)),$(if $(filter command,$(origin $(name))),'$(name)=$($(name))')))

export OMP_NUM_THREADS ?= 1
export HF_HUB_OFFLINE ?= 1
export TOKENIZERS_PARALLELISM ?= false

.PHONY: help setup run test check format golden bench docs site wheel clean

help:
	@sed -n 's/^# //p' Makefile | head -4

setup:
	@scripts/set_up.sh $(VENV)

run: setup
	@$(BIN)/autosft run --out '$(OUT)' $(OVERRIDES) $(ARGS)

test: setup
	$(BIN)/python -m pytest -n $(JOBS) --dist loadfile $(ARGS)

check: setup
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python scripts/write_docs.py --check

format: setup
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

golden: setup
	$(BIN)/python -m pytest tests/golden $(ARGS)

bench: setup
	@found=0; for script in benchmarks/*.py; do [ -e "$$script" ] || continue; found=1; \
	  echo "== $$script"; $(BIN)/python "$$script" || exit 1; done; \
	  [ $$found = 1 ] || { echo "no benchmarks in benchmarks/"; exit 1; }

docs: setup
	$(BIN)/python scripts/write_docs.py

site: setup
	$(BIN)/python scripts/build_site.py

wheel: setup
	$(BIN)/python -m pip wheel -q --no-deps -w dist .

clean:
	rm -rf build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache *.egg-info
	find . -name __pycache__ -not -path './$(VENV)/*' -prune -exec rm -rf {} +
