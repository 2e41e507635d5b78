#!/usr/bin/env bash
# Everything that guards the project, in stages; stops at the first that fails. --quick: the stages of the inner loop.
set -euo pipefail
source "$(dirname "$0")/common.sh"
cd "$repo"

fuzz_seconds="${FUZZ_SECONDS:-10}"
pytest_options=()

packages() {
  scripts/install_packages.sh test
  scripts/fetch_model.sh
  scripts/fetch_llama_cpp_source.sh
  scripts/python_venv.sh .venv tests/python/requirements.txt
}

source_checks() {
  scripts/format.sh --check
  python3 tests/checks/include_direction.py
}

cpp_tests() {
  cmake --preset release -DHEADRACE_TESTS=ON -DHEADRACE_BENCH=ON >/dev/null
  cmake --build build/release
  scripts/ctest.sh build/release
}

python_tests() {
  source scripts/test_environment.sh
  .venv/bin/python -m pytest -n "$(nproc)" --dist worksteal "${pytest_options[@]}" tests/python tests/checks
}

readme_snippets() { python3 tests/checks/readme_snippets.py README.md; }

# The code that reads what arrives from outside, and the interpreter.
sanitizers() { scripts/sanitize.sh asan base ir formats text; }

# A fixed seed: a commit is judged by what it changed. `make fuzz` looks for new inputs.
fuzzing() { scripts/fuzz.sh "$fuzz_seconds" 1; }

tidy() { python3 scripts/tidy.py; }

stages=(packages source_checks cpp_tests python_tests readme_snippets sanitizers fuzzing tidy)
if [[ "${1:-}" == --quick ]]; then
  stages=(packages source_checks cpp_tests python_tests)
  pytest_options=(-m "not slow")
fi

logs=build/test-logs
mkdir -p "$logs"
rm -f "$logs"/*.log
failed=""
times=()
for stage in "${stages[@]}"; do
  say "stage $stage"
  start=$SECONDS
  # A subshell outside any condition, since `set -e` is off inside one.
  set +e
  (set -euo pipefail; "$stage") 2>&1 | tee "$logs/$stage.log"
  status=${PIPESTATUS[0]}
  set -e
  times+=("$(printf '%-16s %4d s' "$stage" $((SECONDS - start)))")
  if [[ "$status" -ne 0 ]]; then
    failed="$stage"
    break
  fi
done

printf '\n'
printf '%s\n' "${times[@]}"
# The test runners' own closing lines, last.
for stage in "${stages[@]}"; do
  [[ -f "$logs/$stage.log" ]] || continue
  grep -E '^[0-9]+% tests passed|^=*[ ]?[0-9]+ (passed|failed|skipped|error)' "$logs/$stage.log" || true
done
[[ -z "$failed" ]] || die "stage $failed failed; its output: $logs/$failed.log"
