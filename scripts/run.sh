#!/usr/bin/env bash
# From a fresh Debian 12 to an answer: packages, release binary, default model, one prompt. A second run only answers.
set -euo pipefail
source "$(dirname "$0")/common.sh"
cd "$repo"

prompt="${PROMPT:-Explain in two sentences why the sky is blue.}"
scripts/install_packages.sh build
scripts/build.sh
scripts/fetch_model.sh
say "build/release/headrace run smollm2 -p \"$prompt\""
exec build/release/headrace run smollm2 -p "$prompt"
