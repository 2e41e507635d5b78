#!/usr/bin/env python3
"""Runs clang-tidy over the C++ files of src/, only over those that changed since they last passed.

A file that passed leaves a stamp named by the hash of all it depends on: its compile commands (one for each instruction
set), .clang-tidy, its own text and that of every header of the project that it includes (from ninja's dependency log).
"""

import hashlib
import itertools
import json
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
BUILD = ROOT / "build" / "release"
STAMPS = ROOT / "build" / "tidy"
TIDY = "clang-tidy-19"
GCC_ONLY = (" -fno-tree-reassoc",)  # options that clang does not know


def dependencies() -> dict[str, list[Path]]:
    """Object file -> the files that it was compiled from, by ninja's log."""
    log = subprocess.run(["ninja", "-C", str(BUILD), "-t", "deps"], capture_output=True, text=True, check=True).stdout
    found: dict[str, list[Path]] = {}
    current: list[Path] = []
    for line in log.splitlines():
        if line.startswith("    "):
            current.append((BUILD / line.strip()).resolve())
        elif ": #deps" in line:
            current = found[str(BUILD / line.split(": #deps")[0])] = []
    return found


def main() -> int:
    commands: dict[str, list[dict]] = {}
    for entry in json.loads((BUILD / "compile_commands.json").read_text()):
        if Path(entry["file"]).is_relative_to(ROOT / "src"):
            commands.setdefault(entry["file"], []).append(entry)
    for entry in itertools.chain(*commands.values()):
        for option in GCC_ONLY:
            entry["command"] = entry["command"].replace(option, "")
    STAMPS.mkdir(parents=True, exist_ok=True)
    (STAMPS / "compile_commands.json").write_text(json.dumps([*itertools.chain(*commands.values())]))
    of_object = dependencies()
    tool = subprocess.run([TIDY, "--version"], capture_output=True, check=True).stdout
    config = (ROOT / ".clang-tidy").read_bytes()

    def stamp(file: str) -> Path:
        digest = hashlib.sha256(tool + config)
        for entry in commands[file]:
            files = of_object.get(str(BUILD / entry["output"]))
            if files is None:
                raise SystemExit(f"{file}: not built yet; run make test or make check first")
            digest.update(entry["command"].encode())
            for path in sorted(files):
                if path.is_relative_to(ROOT):
                    digest.update(path.read_bytes())
        return STAMPS / digest.hexdigest()

    pending = [(file, path) for file in commands if not (path := stamp(file)).exists()]

    def check(item: tuple[str, Path]) -> bool:
        file, path = item
        # The compile commands are GCC's, -Werror included: clang's own warnings are for the fuzz build to refuse.
        result = subprocess.run(
            [TIDY, "--quiet", "-p", str(STAMPS), "--extra-arg=-Wno-unknown-warning-option", "--extra-arg=-Wno-error", file],
            capture_output=True, text=True, check=False)
        if result.returncode == 0:
            path.touch()
            return True
        print(result.stdout, result.stderr, sep="", flush=True)
        return False

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        bad = sum(not fine for fine in pool.map(check, pending))
    print(f"clang-tidy: {len(commands)} files, {len(pending)} checked now, {bad} with findings")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
