#!/usr/bin/env bash
# sanitize.sh asan|tsan [FOLDER...]: builds and runs the C++ tests of these folders (all without any) under sanitizers.
set -euo pipefail
source "$(dirname "$0")/common.sh"
cd "$repo"

preset="$1"
shift
cmake --preset "$preset" -DHEADRACE_TESTS=ON -DHEADRACE_BENCH=OFF >/dev/null
if [[ $# -eq 0 ]]; then
  targets=(all)
  labels='.*'
else
  targets=()
  for folder in "$@"; do
    if [[ -f "tests/$folder/CMakeLists.txt" ]]; then targets+=("tests_$folder"); fi
  done
  labels="^($(IFS='|'; printf '%s' "$*"))\$"
fi
cmake --build "build/$preset" --target "${targets[@]}"
export ASAN_OPTIONS="${ASAN_OPTIONS:-detect_stack_use_after_return=1}"
export UBSAN_OPTIONS="${UBSAN_OPTIONS:-print_stacktrace=1}"
scripts/ctest.sh "build/$preset" -L "$labels"
