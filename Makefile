# Two commands: `make demo` and `make test`. Everything they need (python packages, node
# packages, the embedded model, chromium) they bring. `make quick` is what one runs between
# edits: no browser, no notebook, nothing marked slow.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt
# A run that takes longer than LIMIT is ended; the tests that were running are named.
LIMIT := 70m
WATCHDOG := $(if $(shell command -v timeout),timeout --kill-after=2m $(LIMIT))
PYTEST := OMP_NUM_THREADS=1 $(WATCHDOG) $(BIN)/python -m pytest -n auto --dist loadgroup \
	--no-loadscope-reorder
OR_LATE = || { code=$$?; [ $$code -lt 124 ] || \
	echo "The tests were ended after $(LIMIT); see above which were running." >&2; exit $$code; }
JS := $(shell find js -type f -not -path 'js/tests/*' 2>/dev/null)

.PHONY: demo test quick build model lint check-js test-py fuzz-models models bench dist chromium clean

demo: $(VENV)/.demo build model
ifdef HEADLESS
	$(BIN)/python notebooks/headless.py notebooks/01_quickstart.ipynb demo
else
	$(BIN)/jupyter lab $(if $(filter 0,$(shell id -u)),--allow-root) notebooks/01_quickstart.ipynb
endif

test: $(VENV)/.dev build model chromium node_modules/.cdn lint check-js test-py

quick: $(VENV)/.dev build model lint check-js
	$(PYTEST) -m 'not slow' $(OR_LATE)

lint: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-logo

check-js: node_modules/.ready
	npm run --silent check
	npm test --silent

test-py: $(VENV)/.dev build model chromium node_modules/.cdn
	$(PYTEST) $(OR_LATE)

# Random compositions of what users do to their models, held to the definitions of the scores.
# COUNT of them from the seed START on; none begins after MINUTES.
START := 0
COUNT := 2000
MINUTES := 60
fuzz-models: $(VENV)/.dev
	OMP_NUM_THREADS=1 $(BIN)/python -m tests.fuzz --start $(START) --count $(COUNT) --minutes $(MINUTES)

# Every family of the installed transformers, as a table in docs/models.md.
models: $(VENV)/.dev
	OMP_NUM_THREADS=1 $(BIN)/python -m tests.support.make_models

bench: $(VENV)/.dev build model chromium
	$(BIN)/python -m benchmarks

dist: $(VENV)/.dev build
	rm -rf dist && $(BIN)/python -m build --outdir dist

build: headwidget/static/widget.js

model: $(VENV)/.demo
	$(BIN)/python -m headwidget.models.embedded

headwidget/static/widget.js: $(JS) package.json node_modules/.ready
	npm run --silent build

node_modules/.ready: package-lock.json .npmrc
	npm ci --no-fund --no-audit --loglevel=error
	touch $@

# HTML from nbconvert loads html-manager from a CDN. A browser test serves the same file from
# here. `npm pack` fetches it without its 128 dependencies.
CDN := node_modules/@jupyter-widgets/html-manager
CDN_SHA256 := 2b9d65cb7913e1c7d671757a10008b32c9c2448d4429513371e55c07d6107638
node_modules/.cdn: node_modules/.ready
	mkdir -p $(CDN)
	npm pack --silent --pack-destination $(CDN) @jupyter-widgets/html-manager@1.0.15 >/dev/null
	echo "$(CDN_SHA256)  $(CDN)/jupyter-widgets-html-manager-1.0.15.tgz" | sha256sum --check --quiet
	tar -xzf $(CDN)/*.tgz --strip-components=1 -C $(CDN) && rm $(CDN)/*.tgz
	touch $@

$(VENV)/.made:
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 10) and "headwidget needs python >= 3.10; set PYTHON=…")'
	$(PYTHON) -m venv $(VENV)
	touch $@

$(VENV)/.demo: $(VENV)/.made pyproject.toml constraints.txt | headwidget/static/widget.js
	$(PIP) -e '.[demo]'
	touch $@

$(VENV)/.dev: $(VENV)/.demo
	$(PIP) -e '.[dev]'
	touch $@

chromium:
	@command -v chromium >/dev/null || { [ "$$(id -u)" = 0 ] && apt-get update -qq && apt-get install -y -qq chromium >/dev/null; } \
		|| { echo 'the browser tests need chromium: install it with your package manager'; exit 1; }

clean:
	rm -rf $(VENV) node_modules headwidget/static demo dist
