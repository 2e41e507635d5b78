"""Fails when a file of src/ includes a folder that comes after its own in HEADRACE_FOLDERS of CMakeLists.txt.

Usage: include_direction.py [ROOT], with ROOT the project's folder.
"""

import re
import sys
from pathlib import Path

INCLUDE = re.compile(r'^\s*#\s*include\s*(["<])([^">]+)[">]', re.MULTILINE)


def folder_order(cmake_lists: str) -> list[str]:
    """The folders in the order in which data passes through them."""
    match = re.search(r"set\(\s*HEADRACE_FOLDERS\s+([^)]*)\)", cmake_lists)
    if not match:
        raise SystemExit("CMakeLists.txt: no set(HEADRACE_FOLDERS ...)")
    return match.group(1).split()


def violations(root: Path) -> list[str]:
    """One line for each include in src/ that points upward or is not written as "folder/file.hpp"."""
    order = folder_order((root / "CMakeLists.txt").read_text())
    source = root / "src"
    found = []
    for path in sorted(source.rglob("*")):
        if path.suffix not in {".cpp", ".hpp", ".h", ".inc"}:
            continue
        name = path.relative_to(root)
        own = path.relative_to(source).parts[0]
        if own not in order:
            found.append(f"{name}: folder {own} is not in HEADRACE_FOLDERS")
            continue
        text = path.read_text()
        for match in INCLUDE.finditer(text):
            quote, include = match.groups()
            folder = include.split("/")[0]
            line = text.count("\n", 0, match.start(2)) + 1
            if folder in order and "/" in include:
                if order.index(folder) > order.index(own):
                    found.append(f"{name}:{line}: {own} may not include {include}: {folder} comes after it")
            elif quote == '"':
                found.append(f'{name}:{line}: write the include as "folder/file.hpp", got "{include}"')
    return found


def main() -> int:
    root = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).resolve().parents[2]
    found = violations(root)
    for line in found:
        print(line)
    print(f"include direction: {len(found)} violations")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
