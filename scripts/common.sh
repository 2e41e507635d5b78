# Sourced by the other scripts: messages, the cache folder, and where the fetched files lie.
# shellcheck shell=bash

# shellcheck disable=SC2034  # the sourcing script uses it
repo="$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)"

# Objects compiled in one clone serve the next one, such as CI's.
export CCACHE_BASEDIR="$repo" CCACHE_NOHASHDIR=1
# Of precompiled headers, which the tests have.
export CCACHE_SLOPPINESS=pch_defines,time_macros

say() { printf '%s\n' "-- $*"; }

die() {
  printf '%s\n' "error: $*" >&2
  exit 1
}

# The same rule as in the binary: HEADRACE_CACHE, or the user's cache folder.
cache_folder() {
  if [[ -n "${HEADRACE_CACHE:-}" ]]; then
    printf '%s\n' "$HEADRACE_CACHE"
  elif [[ -n "${XDG_CACHE_HOME:-}" ]]; then
    printf '%s\n' "$XDG_CACHE_HOME/headrace"
  else
    printf '%s\n' "${HOME:?HOME is not set}/.cache/headrace"
  fi
}

# What the name `smollm2` stands for wherever a MODEL is asked for.
model_path() { printf '%s\n' "$(cache_folder)/models/smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"; }

# vendor/llama.cpp of the source package llama-cpp-python: vocabularies with sample texts, and chat templates.
llama_cpp_path() { printf '%s\n' "$(cache_folder)/sources/llama-cpp-python-0.3.36/vendor/llama.cpp"; }

# Temporary folder inside the cache, so that the final rename stays on one file system.
cache_scratch() {
  mkdir -p "$(cache_folder)"
  mktemp -d "$(cache_folder)/fetching.XXXXXX"
}

# check_sha256 FILE EXPECTED
check_sha256() {
  local found
  found="$(sha256sum "$1" | cut -d' ' -f1)"
  [[ "$found" == "$2" ]] || die "$1: expected sha256 $2, found $found"
}
