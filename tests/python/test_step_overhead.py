"""What a decode step of the default model costs outside its kernels, in instructions: they are the same on every day and
machine, where times are not. docs/fusion.md tells what they stand for."""

import os
import re
import subprocess
from pathlib import Path

import pytest

STEPS = 100
# Counted with valgrind 3.19, whose machine has AVX2 at most. When a step has become cheaper, set it anew.
INSTRUCTIONS_A_STEP = 23_100
SLACK = 1.15


@pytest.fixture(scope="module")
def instructions(tmp_path_factory):
    tool = Path(os.environ["HEADRACE_BIN_DIR"]) / "tools" / "idle_steps"
    out = tmp_path_factory.mktemp("callgrind") / "out"
    command = ["valgrind", "--tool=callgrind", "--instr-atstart=no", f"--callgrind-out-file={out}", tool,
               os.environ["HEADRACE_MODEL"], str(STEPS)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
    collected = re.search(r"Collected : (\d+)", done.stderr)
    assert collected, done.stderr
    return int(collected.group(1)) / STEPS


def test_a_step_around_idle_kernels_stays_cheap(instructions):
    assert instructions < SLACK * INSTRUCTIONS_A_STEP


def test_the_bound_is_what_is_counted(instructions):
    """A bound far above the count would guard nothing, and so would a count of nothing."""
    assert instructions > INSTRUCTIONS_A_STEP / SLACK
