"""Fixtures of the live oracles."""

import os
import sys
from pathlib import Path

import pytest
import torch

# The helpers that the light tests share, such as the reader of the stored values.
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "python"))


def folder_or_file(variable: str) -> Path:
    """What scripts/test_environment.sh names; missing is an error, not a skip."""
    path = Path(os.environ[variable])
    assert path.exists(), f"{variable}: {path} does not exist"
    return path


@pytest.fixture(scope="session")
def bin_dir() -> Path:
    """The release build: `headrace` and, in tools/, what tests/tools builds."""
    return folder_or_file("HEADRACE_BIN_DIR")


@pytest.fixture(scope="session")
def model_path() -> Path:
    """The default model's GGUF file."""
    return folder_or_file("HEADRACE_MODEL")


@pytest.fixture(scope="session")
def reference(model_path):
    """The default model in transformers, f32."""
    from reference_model import ReferenceModel

    return ReferenceModel(model_path)


@pytest.fixture(autouse=True)
def fixed_seed():
    """Random models and texts differ between tests, not between runs."""
    torch.manual_seed(20240517)
