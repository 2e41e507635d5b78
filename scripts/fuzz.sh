#!/usr/bin/env bash
# fuzz.sh SECONDS [SEED]: each fuzz target over its corpus in fuzz/corpus/<target>; new inputs stay in build/fuzz/corpus.
set -euo pipefail
source "$(dirname "$0")/common.sh"
cd "$repo"

seconds="$1"
seed="${2:-0}"  # 0: another one each time
say "building the fuzz targets"
cmake --preset fuzz >/dev/null
cmake --build build/fuzz --target fuzz_targets

# One target, its output in build/fuzz/<target>.log. A slow input, too much memory or a crash fails it.
fuzz_one() {
  local name="$1" seconds="$2" seed="$3" log="build/fuzz/$1.log"
  mkdir -p "build/fuzz/corpus/$name" build/fuzz/artifacts
  if "build/fuzz/fuzz/$name" -max_total_time="$seconds" -seed="$seed" -rss_limit_mb=2048 -malloc_limit_mb=256 -timeout=10 \
    -print_final_stats=1 -artifact_prefix="build/fuzz/artifacts/$name-" \
    "build/fuzz/corpus/$name" "fuzz/corpus/$name" >"$log" 2>&1; then
    printf '%s: %s inputs run\n' "$name" "$(sed -n 's/^stat::number_of_executed_units: *//p' "$log")"
  else
    tail -n 60 "$log"
    printf 'FAILED: %s; the input is in build/fuzz/artifacts\n' "$name"
    return 1
  fi
}
export -f fuzz_one

targets=()
for source in fuzz/fuzz_*.cpp; do
  [[ -e "$source" ]] || die "fuzz/ has no target"
  name="$(basename "$source" .cpp)"
  [[ -d "fuzz/corpus/$name" ]] || die "fuzz/$name.cpp has no corpus; put small inputs into fuzz/corpus/$name"
  targets+=("$name")
done
say "fuzzing for $seconds s each: ${targets[*]}"
printf '%s\n' "${targets[@]}" | xargs -P "$(nproc)" -I NAME bash -c 'fuzz_one NAME '"$seconds $seed"
