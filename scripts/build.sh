#!/usr/bin/env bash
# Builds the release binary, build/release/headrace, and nothing else; needs no test libraries.
set -euo pipefail
source "$(dirname "$0")/common.sh"
cd "$repo"

# A folder that is configured already keeps its settings: `make test` turns the tests on in the same one.
if [[ ! -f build/release/build.ninja ]]; then
  say "configuring build/release"
  cmake --preset release -DHEADRACE_TESTS=OFF -DHEADRACE_BENCH=OFF >/dev/null
fi
say "building build/release/headrace"
cmake --build build/release --target headrace
