#!/usr/bin/env bash
# Unpacks the vocabularies and chat templates that the PyPI source package llama-cpp-python carries, for the tests.
set -euo pipefail
source "$(dirname "$0")/common.sh"

sdist=llama-cpp-python==0.3.36
sha256=832db0699007f1be95a7e41ef12e88926b02ba836461e36a36372db2760c1a2e
target="$(llama_cpp_path)"
package="${target%/vendor/llama.cpp}"
[[ ! -d "$package" ]] || exit 0

say "fetching test vocabularies and templates (PyPI source package $sdist, 77 MB) into $target"
scratch="$(cache_scratch)"
trap 'rm -rf "$scratch"' EXIT
# pip asks the package's build backend for metadata, so it fetches that backend too; nothing is built.
python3 -m pip download -qq --disable-pip-version-check --no-deps --no-binary llama-cpp-python \
  --dest "$scratch" "$sdist"
archive=("$scratch"/*.tar.gz)
check_sha256 "${archive[0]}" "$sha256"
mkdir "$scratch/package"
tar -xzf "${archive[0]}" -C "$scratch/package" --strip-components=1 --wildcards '*/vendor/llama.cpp/models/*'
mkdir -p "$(dirname "$package")"
mv -T "$scratch/package" "$package"
