"""Runs tests/tools/engine_logits: teacher-forced logits of token sequences by the Engine."""

import os
import subprocess
from pathlib import Path

import numpy as np


def engine_logits(model, sequences, vocabulary, isa="best", token_class="prompt", chunk=128, batch=1, kv="f16"):
    """A list of f32 [T, V], one a sequence; `chunk` rows of a sequence and `batch` sequences in a step."""
    tool = Path(os.environ["HEADRACE_BIN_DIR"]) / "tools" / "engine_logits"
    lines = "".join(" ".join(map(str, tokens)) + "\n" for tokens in sequences)
    command = [tool, str(model), isa, token_class, str(chunk), str(batch), kv]
    done = subprocess.run(command, input=lines.encode(), capture_output=True, timeout=600)
    assert done.returncode == 0, done.stderr.decode()
    rows = np.frombuffer(done.stdout, dtype=np.float32).reshape(-1, vocabulary)
    ends = np.cumsum([len(tokens) for tokens in sequences])
    assert ends[-1] == len(rows)
    return np.split(rows, ends[:-1])
