#!/usr/bin/env bash
# bench_peers.sh [llama.cpp] [openvino]: builds or installs the runtimes that `headrace bench --vs` measures beside, each
# with its driver (bench/peers/), in the cache folder. Without names: all. What is there already only gets its driver anew.
#
# ik_llama.cpp, the third peer of the project's goals, is in no package registry; it is left out.
set -euo pipefail
source "$(dirname "$0")/common.sh"
cd "$repo"

version="0.3.36"  # of llama-cpp-python; the pin is in fetch_llama_cpp_source.sh
openvino="openvino-genai==2026.4.1.0"

# clang 19: on machines with AMX what GCC 12 makes of llama.cpp crashes (GCC drops the stores of its tile configuration).
llama_cpp() {
  local folder source build
  folder="$(cache_folder)/peers/llama.cpp"
  source="$folder/source-$version"
  build="$folder/build-$version"
  scripts/fetch_llama_cpp_source.sh "$source"
  if [[ ! -x "$build/bin/llama-bench" ]]; then
    say "building llama.cpp of llama-cpp-python $version with clang 19 (some minutes)"
    cmake -S "$source" -B "$build" -G Ninja -DCMAKE_BUILD_TYPE=Release \
      -DCMAKE_C_COMPILER=clang-19 -DCMAKE_CXX_COMPILER=clang++-19 \
      -DCMAKE_C_COMPILER_LAUNCHER=ccache -DCMAKE_CXX_COMPILER_LAUNCHER=ccache \
      -DGGML_NATIVE=ON -DGGML_OPENMP=OFF -DLLAMA_CURL=OFF -DLLAMA_BUILD_SERVER=OFF -DLLAMA_BUILD_TESTS=OFF \
      -DLLAMA_BUILD_EXAMPLES=OFF -DLLAMA_BUILD_UI=OFF >"$folder/configure.log" 2>&1 ||
      die "llama.cpp cannot be configured; see $folder/configure.log"
    cmake --build "$build" --target llama-bench >"$folder/build.log" 2>&1 ||
      die "llama.cpp cannot be built; see $folder/build.log"
  fi
  say "building the driver $folder/peer"
  clang++-19 -std=c++20 -O2 -Wall -Wextra -Werror "-DHEADRACE_PEER_VERSION=\"llama-cpp-python $version, clang 19\"" \
    -I"$source/include" -I"$source/ggml/include" bench/peers/llama_cpp_peer.cpp -o "$folder/peer.new" \
    -L"$build/bin" -lllama -lggml -lggml-cpu -lggml-base "-Wl,-rpath,$build/bin"
  mv "$folder/peer.new" "$folder/peer"
  ln -sfn "build-$version/bin/llama-bench" "$folder/llama-bench"
}

openvino() {
  local folder
  folder="$(cache_folder)/peers/openvino"
  if [[ "$(cat "$folder/version" 2>/dev/null)" != "$openvino" ]]; then
    say "installing $openvino"
    rm -rf "$folder/venv"
    mkdir -p "$folder"
    python3 -m venv "$folder/venv"
    "$folder/venv/bin/python" -m pip install -qq --disable-pip-version-check "$openvino"
    printf '%s\n' "$openvino" >"$folder/version"
  fi
  say "installing the driver $folder/peer"
  { printf '#!%s\n' "$folder/venv/bin/python"; cat bench/peers/openvino_peer.py; } >"$folder/peer.new"
  chmod +x "$folder/peer.new"
  mv "$folder/peer.new" "$folder/peer"
}

scripts/install_packages.sh test
[[ $# -gt 0 ]] || set -- llama.cpp openvino
for name in "$@"; do
  case "$name" in
    llama.cpp) llama_cpp ;;
    openvino) openvino ;;
    *) die "usage: $0 [llama.cpp] [openvino]" ;;
  esac
done
