#!/usr/bin/env bash
# The comparisons of tests/oracles, live against PyTorch (CPU) and transformers. --stored-logits: writes the stored
# values of the light tests anew instead.
set -euo pipefail
source "$(dirname "$0")/common.sh"
cd "$repo"

scripts/install_packages.sh test
scripts/fetch_model.sh
scripts/fetch_llama_cpp_source.sh
scripts/python_venv.sh .venv-oracles tests/oracles/requirements.txt
source scripts/test_environment.sh

if [[ "${1:-}" == --stored-logits ]]; then
  .venv-oracles/bin/python tests/oracles/make_stored_logits.py "$HEADRACE_MODEL"
  exit
fi

say "building build/release with its test tools"
cmake --preset release -DHEADRACE_TESTS=ON >/dev/null
cmake --build build/release
.venv-oracles/bin/python -m pytest tests/oracles
