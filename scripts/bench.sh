#!/usr/bin/env bash
# Builds the benchmarks and the peers and runs bench/bench.py, which rewrites bench/RESULTS.md; options go to it.
set -euo pipefail
source "$(dirname "$0")/common.sh"
cd "$repo"

scripts/install_packages.sh test
scripts/fetch_model.sh
scripts/bench_peers.sh
cmake --preset release -DHEADRACE_BENCH=ON >/dev/null
cmake --build build/release --target headrace kernel_bench attention_bench random_model
python3 bench/bench.py "$@"
