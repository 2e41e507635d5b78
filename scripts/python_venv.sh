#!/usr/bin/env bash
# python_venv.sh FOLDER REQUIREMENTS: a virtual environment with exactly those packages, made anew when they change.
set -euo pipefail
source "$(dirname "$0")/common.sh"
cd "$repo"

folder="$1"
requirements="$2"
if cmp -s "$requirements" "$folder/requirements.txt"; then exit 0; fi

say "making the Python environment $folder from $requirements"
rm -rf "$folder"
python3 -m venv "$folder"
# One line after the other: an early pin (torch) decides what later packages find installed.
grep -Ev '^[[:space:]]*(#|$)' "$requirements" | while read -r requirement; do
  "$folder/bin/python" -m pip install -qq --disable-pip-version-check "$requirement"
done
cp "$requirements" "$folder/requirements.txt"
