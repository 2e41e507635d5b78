#!/usr/bin/env bash
# ctest.sh BUILD_FOLDER [ctest options]: runs the C++ tests; shows failures and the closing lines, not every pass.
set -euo pipefail
source "$(dirname "$0")/common.sh"
cd "$repo"

folder="$1"
shift
# No test at all is a failure: a filter that matches nothing must not look like success.
ctest --test-dir "$folder" --parallel "$(nproc)" --timeout 300 --output-on-failure --no-tests=error "$@" |
  { grep -Ev '^ +Start +[0-9]+: |^ *[0-9]+/[0-9]+ Test .* Passed ' || true; }
