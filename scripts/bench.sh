#!/usr/bin/env bash
# Builds and runs every benchmark of bench/; each prints the share of its limit, measured in the same process.
set -euo pipefail
source "$(dirname "$0")/common.sh"
cd "$repo"

scripts/install_packages.sh test
cmake --preset release -DHEADRACE_BENCH=ON >/dev/null
cmake --build build/release
for source in bench/*.cpp; do
  [[ -e "$source" ]] || die "bench/ has no benchmark"
  say "bench/$(basename "$source" .cpp)"
  "build/release/bench/$(basename "$source" .cpp)"
done
