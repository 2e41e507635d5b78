# The commands of the project; the work is in scripts/.
.PHONY: help run test check oracles build bench fuzz format tidy asan tsan stored-logits clean
.DEFAULT_GOAL := help
export PROMPT
BENCH_OPTIONS ?=

help:
	@echo "make run      build, fetch the default model, answer one prompt (PROMPT=... for your own)"
	@echo "make test     everything that guards the project"
	@echo "make check    the quick part of it, for the inner loop"
	@echo "make oracles  the same comparisons live against PyTorch and transformers"
	@echo "make build    the release binary, build/release/headrace"
	@echo "make bench    the benchmarks, beside other runtimes, into bench/RESULTS.md (BENCH_OPTIONS=--full: hours)"
	@echo "make fuzz     each fuzz target for a minute; asan, tsan: all C++ tests under sanitizers"
	@echo "make format   format the C++ files; tidy: clang-tidy; stored-logits: make the stored oracle values anew"
	@echo "make clean    remove build/ and the Python environments"

run:
	@scripts/run.sh

test:
	@scripts/test.sh

check:
	@scripts/test.sh --quick

oracles:
	@scripts/oracles.sh

build:
	@scripts/install_packages.sh build
	@scripts/build.sh

bench:
	@scripts/bench.sh $(BENCH_OPTIONS)

fuzz:
	@scripts/install_packages.sh test
	@scripts/fuzz.sh 60

format:
	@scripts/install_packages.sh test
	@scripts/format.sh

tidy:
	@scripts/install_packages.sh test
	@cmake --preset release -DHEADRACE_TESTS=ON >/dev/null
	@python3 scripts/tidy.py

asan tsan:
	@scripts/install_packages.sh test
	@scripts/sanitize.sh $@

stored-logits:
	@scripts/oracles.sh --stored-logits

clean:
	@rm -rf build .venv .venv-oracles
