#!/usr/bin/env bash
# Builds and runs every benchmark of bench/; each prints the share of its limit, measured in the same process.
set -euo pipefail
source "$(dirname "$0")/common.sh"
cd "$repo"

scripts/install_packages.sh test
cmake --preset release -DHEADRACE_BENCH=ON >/dev/null
cmake --build build/release
mapfile -t benchmarks < <(find build/release/bench -maxdepth 1 -type f -executable | sort)
[[ ${#benchmarks[@]} -gt 0 ]] || die "bench/ has no benchmark"
for benchmark in "${benchmarks[@]}"; do
  say "$benchmark"
  "$benchmark"
done
