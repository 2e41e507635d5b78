"""The include-direction check finds planted faults, and nothing in a tree that keeps the order."""

from pathlib import Path

import include_direction


def tree(root: Path, files: dict[str, str]) -> Path:
    files = {"CMakeLists.txt": "set(HEADRACE_FOLDERS\n    base ir run cli)\n", **files}
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root


def test_downward_and_own_folder_are_fine(tmp_path):
    tree(tmp_path, {"src/run/engine.cpp": '#include "run/engine.hpp"\n#include "base/error.hpp"\n#include <vector>\n'})
    assert include_direction.violations(tmp_path) == []


def test_upward_include_is_found(tmp_path):
    tree(tmp_path, {"src/ir/op.cpp": '#include "base/error.hpp"\n\n#include "run/engine.hpp"\n'})
    assert include_direction.violations(tmp_path) == [
        "src/ir/op.cpp:3: ir may not include run/engine.hpp: run comes after it"]


def test_upward_include_in_angle_brackets_and_subfolders_is_found(tmp_path):
    tree(tmp_path, {"src/ir/ops/add.hpp": "  #  include <cli/verb.hpp>\n"})
    assert include_direction.violations(tmp_path) == [
        "src/ir/ops/add.hpp:1: ir may not include cli/verb.hpp: cli comes after it"]


def test_relative_include_is_found(tmp_path):
    tree(tmp_path, {"src/base/a.cpp": '#include "../run/engine.hpp"\n#include "a.hpp"\n'})
    assert len(include_direction.violations(tmp_path)) == 2


def test_unlisted_folder_is_found(tmp_path):
    tree(tmp_path, {"src/extra/a.cpp": ""})
    assert include_direction.violations(tmp_path) == ["src/extra/a.cpp: folder extra is not in HEADRACE_FOLDERS"]
