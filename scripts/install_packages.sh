#!/usr/bin/env bash
# Installs the Debian packages that are missing: `build` for the binary and the default model, `test` for all tests.
set -euo pipefail
source "$(dirname "$0")/common.sh"

build_packages=(g++ cmake ninja-build ccache pkg-config libfmt-dev libspdlog-dev nlohmann-json3-dev libcli11-dev
  libpcre2-dev libutf8proc-dev python3 python3-pip)
# libclang-rt-19-dev carries the sanitizers and libFuzzer; clang-19 does not depend on it.
test_packages=(git libgtest-dev libgmock-dev libbenchmark-dev clang-19 libclang-rt-19-dev llvm-19 clang-format-19
  clang-tidy-19 python3-venv valgrind)

case "${1:-}" in
  build) wanted=("${build_packages[@]}") ;;
  test) wanted=("${build_packages[@]}" "${test_packages[@]}") ;;
  *) die "usage: $0 build|test" ;;
esac

command -v dpkg-query >/dev/null ||
  die "this script installs Debian packages only; here, install what provides: ${wanted[*]}"

missing=()
for package in "${wanted[@]}"; do
  status="$(dpkg-query --show --showformat='${db:Status-Status}' "$package" 2>/dev/null || true)"
  [[ "$status" == installed ]] || missing+=("$package")
done
[[ ${#missing[@]} -gt 0 ]] || exit 0

as_root=()
if [[ "$(id -u)" -ne 0 ]]; then
  command -v sudo >/dev/null ||
    die "missing Debian packages, and neither root nor sudo to install them; as root: apt-get install ${missing[*]}"
  as_root=(sudo)
fi
say "installing Debian packages: ${missing[*]}"
"${as_root[@]}" apt-get update -qq
"${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends \
  -o Dpkg::Use-Pty=0 "${missing[@]}" >/dev/null
