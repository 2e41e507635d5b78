#!/usr/bin/env bash
# format.sh [--check]: formats every tracked C++ file, or only says which ones differ.
set -euo pipefail
source "$(dirname "$0")/common.sh"
cd "$repo"

mode=(-i)
[[ "${1:-}" != --check ]] || mode=(--dry-run -Werror)
git ls-files -z --cached --others --exclude-standard -- '*.cpp' '*.hpp' |
  xargs -0 -r -n 20 -P "$(nproc)" clang-format-19 "${mode[@]}"
