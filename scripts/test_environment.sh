# Sourced after common.sh: where the Python tests find what they test. A missing variable fails a test.
# shellcheck shell=bash
# shellcheck disable=SC2154  # repo: common.sh
HEADRACE_BIN_DIR="$repo/build/release"
HEADRACE_MODEL="$(model_path)"
HEADRACE_LLAMA_CPP="$(llama_cpp_path)"
export HEADRACE_BIN_DIR HEADRACE_MODEL HEADRACE_LLAMA_CPP
# No test may reach for a model hub: what it needs is here or it fails.
export HF_HUB_OFFLINE=1 TRANSFORMERS_OFFLINE=1 PYTHONDONTWRITEBYTECODE=1
