# make book   the environment, every chapter executed, the site       make test   everything checked
# make serve  the same site, opened in a browser                       make bench  speed goals beside what is measured
PYTHON ?=
VENV := .venv
BIN := $(VENV)/bin
SITE := book/_build/html
PORT ?= 8000

# Chapters see this environment and nothing of the reader's own configuration.
export PYTHONNOUSERSITE := 1
export JUPYTER_PREFER_ENV_PATH := 1
export JUPYTER_PLATFORM_DIRS := 1
export IPYTHONDIR := $(CURDIR)/$(VENV)/ipython
export PIP_DISABLE_PIP_VERSION_CHECK := 1
unexport PYTHONPATH PYTHONHOME

.PHONY: book serve test lint bench notebooks lock clean distclean
.DELETE_ON_ERROR:

# A build that failed keeps nothing: a page that was read with a warning would otherwise count as read.
book: $(VENV)/installed $(VENV)/node/installed
	@SCALEBOOK_STYLES=page $(BIN)/jupyter-book build . --path-output book -W -n --keep-going -q >/dev/null || { rm -rf book/_build/.doctrees; exit 1; }
	@echo "The site: $(SITE)/index.html   (make serve opens it)"

serve: book
	@echo "http://127.0.0.1:$(PORT)/ until you press Ctrl-C"
	@(sleep 1; $(BIN)/python -m webbrowser -t "http://127.0.0.1:$(PORT)/" >/dev/null 2>&1 || true) &
	@$(BIN)/python -m http.server $(PORT) --bind 127.0.0.1 --directory $(SITE)

test: book lint
	@$(BIN)/python -m pytest -n 2 --dist loadfile -q

lint: $(VENV)/installed
	@$(BIN)/ruff check
	@$(BIN)/ruff format --check
	@$(BIN)/mypy
	@$(BIN)/python book/_ext/prose_lint.py book/*.md

bench: $(VENV)/installed
	@$(BIN)/python tests/bench.py

# The chapters and their exercises as notebooks; a test fails where one that is committed is stale.
notebooks: $(VENV)/installed
	@$(BIN)/python book/_ext/notebooks.py

# The environment: made once, from exact versions with their hashes, and again when those change.
$(VENV)/installed: constraints.txt pyproject.toml
	@set -e; \
	python=''; seen=''; \
	for p in $(or $(PYTHON),python3.13 python3.12 python3.11 python3 python); do \
	  v=$$("$$p" -c 'import sys; print("%d.%d" % sys.version_info[:2])' 2>/dev/null) || continue; \
	  seen="$$seen $$p=$$v"; \
	  case $$v in 3.11|3.12|3.13) python=$$p; break;; esac; \
	done; \
	if [ -z "$$python" ]; then \
	  echo "scalebook is built with Python 3.11, 3.12 or 3.13; found:$${seen:- none}. Install one of these, or name it: make book PYTHON=/path/to/python3.13" >&2; exit 1; \
	fi; \
	"$$python" -c 'import ensurepip, venv' 2>/dev/null || { \
	  echo "$$python cannot create an environment: its module ensurepip is missing (on Debian and Ubuntu: the package $$(basename $$python)-venv)." >&2; exit 1; }; \
	have=$$($(BIN)/python -c 'import sys; print("%d.%d" % sys.version_info[:2])' 2>/dev/null || true); \
	if [ "$$have" != "$$("$$python" -c 'import sys; print("%d.%d" % sys.version_info[:2])')" ]; then \
	  rm -rf $(VENV); "$$python" -m venv $(VENV); \
	fi; \
	echo "Installing the packages of constraints.txt into $(VENV) ($$($(BIN)/python -V), a minute or two) …"; \
	if ! { $(BIN)/python -m pip install --require-hashes --no-deps -r constraints.txt \
	    && $(BIN)/python -m pip install --no-deps --no-build-isolation -e .; } > $(VENV)/install.log 2>&1; then \
	  tail -n 30 $(VENV)/install.log >&2; echo "The installation failed; its whole log: $(VENV)/install.log" >&2; exit 1; \
	fi; \
	mkdir -p $(VENV)/etc/ipython; \
	echo 'c.IPKernelApp.log_level = 40  # not a word about TCP on every page: the kernels are local' > $(VENV)/etc/ipython/ipython_kernel_config.py; \
	touch $@

# Pyodide, which runs the library in the page; by the machine's npm, else by that of a package of PyPI.
$(VENV)/node/installed: book/live/package-lock.json book/live/node.txt book/live/install.py | $(VENV)/installed
	@$(BIN)/python book/live/install.py $(VENV)/node
	@touch $@

# New versions: the constraints again, universal and with hashes. Needs uv (https://docs.astral.sh/uv/).
lock:
	uv pip compile pyproject.toml --group book --group test --extra plots --extra fast --extra yaml --extra lab --extra widgets \
	  --universal --python-version 3.11 --generate-hashes --no-emit-index-url -o constraints.txt

clean:
	rm -rf book/_build

distclean: clean
	rm -rf $(VENV) .hypothesis .pytest_cache .mypy_cache .ruff_cache
