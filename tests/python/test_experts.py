"""headrace info on a mixture of experts: how many there are, how many a token uses, and the bytes that it reads."""

import json
import os
import subprocess
from pathlib import Path

import gguf
import numpy as np

EXPERTS, USED, WIDTH, FEED_FORWARD, VOCABULARY, LAYERS = 8, 2, 64, 96, 100, 3


def write_mixture(path: Path) -> dict[str, int]:
    """A llama with experts, all of f32. Returns the bytes of its tensors."""
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_block_count(LAYERS)
    writer.add_context_length(256)
    writer.add_embedding_length(WIDTH)
    writer.add_feed_forward_length(FEED_FORWARD)
    writer.add_head_count(4)
    writer.add_head_count_kv(2)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_expert_count(EXPERTS)
    writer.add_expert_used_count(USED)
    shapes = {"token_embd": (VOCABULARY, WIDTH), "output_norm": (WIDTH,), "output": (VOCABULARY, WIDTH)}
    for layer in range(LAYERS):
        shapes |= {f"blk.{layer}.{name}": shape for name, shape in {
            "attn_norm": (WIDTH,), "attn_q": (WIDTH, WIDTH), "attn_k": (WIDTH // 2, WIDTH), "attn_v": (WIDTH // 2, WIDTH),
            "attn_output": (WIDTH, WIDTH), "ffn_norm": (WIDTH,), "ffn_gate_inp": (EXPERTS, WIDTH),
            "ffn_gate_exps": (EXPERTS, FEED_FORWARD, WIDTH), "ffn_up_exps": (EXPERTS, FEED_FORWARD, WIDTH),
            "ffn_down_exps": (EXPERTS, WIDTH, FEED_FORWARD)}.items()}
    for name, shape in shapes.items():
        writer.add_tensor(f"{name}.weight", np.zeros(shape, np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return {name: 4 * int(np.prod(shape)) for name, shape in shapes.items()}


def info(path: Path, *arguments: str) -> str:
    command = [Path(os.environ["HEADRACE_BIN_DIR"]) / "headrace", "info", path, *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def test_info(tmp_path):
    path = tmp_path / "mixture.gguf"
    sizes = write_mixture(path)
    report = json.loads(info(path, "--json"))
    assert report["shape"]["experts"] == EXPERTS and report["shape"]["experts_used"] == USED
    expected = 0
    for name, size in sizes.items():
        if name == "token_embd":
            expected += size // VOCABULARY  # its row
        elif name.endswith("_exps"):
            expected += size * USED // EXPERTS
        else:
            expected += size
    assert report["memory"]["token_bytes"] == expected
    assert "8, of which each token uses 2" in info(path)
