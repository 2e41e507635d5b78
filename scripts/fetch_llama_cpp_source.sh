#!/usr/bin/env bash
# Unpacks the vocabularies and chat templates that the PyPI source package llama-cpp-python carries, for the tests;
# with a FOLDER, all of the llama.cpp in it into that folder, for the benchmarks' peer.
set -euo pipefail
source "$(dirname "$0")/common.sh"

sdist=llama-cpp-python==0.3.36
sha256=832db0699007f1be95a7e41ef12e88926b02ba836461e36a36372db2760c1a2e
whole="${1:-}"
target="${whole:-$(llama_cpp_path)}"
package="${target%/vendor/llama.cpp}"
[[ ! -d "$package" ]] || exit 0

what="test vocabularies and templates"
[[ -z "$whole" ]] || what="source"
say "fetching llama.cpp's $what (PyPI source package $sdist, 77 MB) into $target"
scratch="$(cache_scratch)"
trap 'rm -rf "$scratch"' EXIT
# pip asks the package's build backend for metadata, so it fetches that backend too; nothing is built.
python3 -m pip download -qq --disable-pip-version-check --no-deps --no-binary llama-cpp-python \
  --dest "$scratch" "$sdist"
archive=("$scratch"/*.tar.gz)
check_sha256 "${archive[0]}" "$sha256"
mkdir "$scratch/package"
mkdir -p "$(dirname "$package")"
if [[ -n "$whole" ]]; then
  tar -xzf "${archive[0]}" -C "$scratch/package" --strip-components=3 --wildcards '*/vendor/llama.cpp/*'
else
  tar -xzf "${archive[0]}" -C "$scratch/package" --strip-components=1 --wildcards '*/vendor/llama.cpp/models/*'
fi
mv -T "$scratch/package" "$package"
