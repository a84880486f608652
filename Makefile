# Each target sets up what it needs in .venv, so that a fresh clone needs only Python, venv and make.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

.PHONY: demo test lint attack bench overhead cold defaults ablation ties ranges costs mnist tables control
.PHONY: paper reproduction readings runtimes diversity
.PHONY: docs figures gallery study reproduce-wbc clean

# Prints a table and writes a page with a picture, out/demo.html.
demo: $(VENV)/.demo
	$(BIN)/python examples/demo.py

# Two test processes, each with its own files: those of one file share what takes long to make.
test: $(VENV)/.dev
	$(BIN)/python -m pytest -n 2 --dist loadfile
	# The compiled loops once more as plain Python, which checks every index.
	NUMBA_DISABLE_JIT=1 $(BIN)/python -m pytest -n 2 -q -m without_jit tests

lint: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

# Tries for five minutes, and some more to start and compile, to break what docs/reliability.md promises;
# rewrites benchmarks/results/attack.*
attack: $(VENV)/.dev
	PYTHONPATH=benchmarks $(BIN)/python -m attack

bench: $(VENV)/.dev
	$(BIN)/python benchmarks/speed.py

overhead: $(VENV)/.dev
	$(BIN)/python benchmarks/overhead.py

# What starting costs: commands, and first fits with an empty cache of kernels.
cold: $(VENV)/.dev
	$(BIN)/python benchmarks/cold.py

# Ends in site/index.html, which opens without a server.
docs: $(VENV)/.docs
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

# Redraws the committed figures of docs/algorithm.md.
figures: $(VENV)/.demo
	$(BIN)/python docs/figures/draw.py

# Runs the examples and redraws the committed pictures of docs/gallery.md; two minutes.
gallery: $(VENV)/.dev
	for name in demo costs_imbalanced profit sign_activations stream pipeline_to_onnx \
	    noisy_device double_pole; do \
	    $(BIN)/python examples/$$name.py --picture docs/gallery/$$name.svg || exit 1; done

# Minutes; `coevo study run paper` is the whole of it. The report lands in out/.
study: $(VENV)/.demo
	mkdir -p out
	$(BIN)/coevo study run quick --store out/quick.sqlite
	$(BIN)/coevo study report quick --store out/quick.sqlite --output out/quick

# 20 seeds of each variant on WBC at the paper's settings; rewrites benchmarks/results/wbc.*
reproduce-wbc: $(VENV)/.dev
	$(BIN)/python benchmarks/reproduce_wbc.py

# The library's defaults on four data sets, and with one setting changed, which docs/tuning.md reads;
# the paper's settings with ties lost, and with other first weights and further seeds, which
# docs/reproduction.md reads. About an hour each, ranges minutes. What is committed is taken over, and
# only what is missing is run.
defaults ablation ties ranges: %: $(VENV)/.dev
	mkdir -p out
	$(BIN)/coevo study import benchmarks/results/$@.json --store out/$@.sqlite
	$(BIN)/coevo study run benchmarks/plans/$@.toml --store out/$@.sqlite
	$(BIN)/coevo study export benchmarks/plans/$@.toml benchmarks/results/$@.json \
	    --store out/$@.sqlite --points 4
	$(BIN)/coevo study report benchmarks/plans/$@.toml --store out/$@.sqlite --output out/$@
	case $@ in \
	    ablation) $(BIN)/python benchmarks/ablation.py;; \
	    defaults) cp out/$@/tables.md benchmarks/results/$@.md && $(BIN)/python benchmarks/defaults.py;; \
	    *) $(BIN)/python benchmarks/reproduction.py;; \
	esac

# Every table and figure of the paper; days on one core if nothing were committed. Ctrl-C and start it
# again as often as you like: runs that were cut off go on from their checkpoints. What is done is
# exported and reported even if a run has failed.
paper: $(VENV)/.dev
	mkdir -p out
	$(BIN)/coevo study import benchmarks/results/paper.json --store out/paper.sqlite
	$(BIN)/coevo study run paper --store out/paper.sqlite; status=$$?; \
	    $(BIN)/coevo study export paper benchmarks/results/paper.json --store out/paper.sqlite && \
	    $(BIN)/coevo study report paper --store out/paper.sqlite --output out/paper && \
	    $(BIN)/python benchmarks/reproduction.py && exit $$status

# Rewrites docs/reproduction.md and README's table from benchmarks/results; runs nothing.
reproduction: $(VENV)/.dev
	$(BIN)/python benchmarks/reproduction.py

# Other readings of the paper on MNIST (half an hour), what an evaluation costs in each variant (ten
# minutes, on a quiet machine), and how populations lose their diversity (some minutes).
readings runtimes diversity: %: $(VENV)/.dev
	$(BIN)/python benchmarks/$@.py
	$(BIN)/python benchmarks/reproduction.py

# The example with costs over twenty seeds, which README quotes; a minute.
costs: $(VENV)/.dev
	$(BIN)/python examples/costs_imbalanced.py --seeds 20 > out-costs.tmp
	cd benchmarks && ../$(BIN)/python -c \
	    "from machine import describe_machine as d; print('\nMeasured with make costs.', d())" >> ../out-costs.tmp
	mv out-costs.tmp benchmarks/results/costs.txt

# MNIST with nothing set but the seconds, and beside backpropagation. What is committed is taken over, and
# only what is missing is run; all of it takes an hour and a half.
mnist: $(VENV)/.dev
	$(BIN)/python benchmarks/mnist.py

# `coevo train` on 13 real tables beside scikit-learn's models; about ten minutes.
tables: $(VENV)/.dev
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -r benchmarks/requirements-tables.txt
	$(BIN)/python benchmarks/tables.py

# Policies beside CMA-ES and, if EvoTorch is installed, SNES. What is committed is taken over, and
# only what is missing is run; with all environments that takes hours.
control: $(VENV)/.dev
	$(BIN)/python -m pip install --quiet --disable-pip-version-check cma "gymnasium[mujoco,box2d]"
	$(BIN)/python benchmarks/policies.py
	$(BIN)/python benchmarks/control.py

clean:
	rm -rf $(VENV) build dist site out .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

$(VENV)/.venv:
	$(PYTHON) -c "import sys; sys.exit(sys.version_info < (3, 11) and 'coevo needs Python 3.11 or later; set PYTHON=')"
	$(PYTHON) -m venv $(VENV)
	touch $@

$(VENV)/.demo: $(VENV)/.venv pyproject.toml
	@echo "Installing coevo and what it needs into $(VENV), once:"
	$(BIN)/python -m pip install --progress-bar off --disable-pip-version-check -e .
	touch $@

$(VENV)/.dev $(VENV)/.docs: $(VENV)/.%: $(VENV)/.venv pyproject.toml
	@echo "Installing coevo and what it needs for $* into $(VENV), once:"
	$(BIN)/python -m pip install --progress-bar off --disable-pip-version-check -e ".[$*]"
	touch $@
