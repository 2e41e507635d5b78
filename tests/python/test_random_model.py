"""bench/random_model: files that PyPI gguf reads, with weights of the wanted size, which Headrace runs; and bench.py,
which measures them and writes the page of results."""
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from gguf import GGUFReader
from gguf.quants import dequantize

BIN = Path(os.environ["HEADRACE_BIN_DIR"])
RANDOM_MODEL = str(BIN / "bench" / "random_model")
HEADRACE = str(BIN / "headrace")
FORMATS = ["f32", "f16", "bf16", "q8_0", "q4_0", "q4_1", "q5_0", "q5_1", "q2_k", "q3_k", "q4_k", "q5_k", "q6_k", "iq4_nl",
           "iq4_xs", "mxfp4"]
BENCH = Path(__file__).resolve().parents[2] / "bench" / "bench.py"


def write(path, *arguments):
    return subprocess.run([RANDOM_MODEL, str(path), *map(str, arguments)], capture_output=True, text=True, timeout=120)


def read(path):
    reader = GGUFReader(path)
    return reader, {tensor.name: tensor for tensor in reader.tensors}


@pytest.mark.parametrize("file_format", FORMATS)
def test_weights_are_of_the_format_and_the_size(tmp_path, file_format):
    path = tmp_path / "tiny.gguf"
    done = write(path, "--format", file_format)
    assert done.returncode == 0, done.stderr
    _, tensors = read(path)
    for name in ["token_embd.weight", "blk.0.attn_q.weight", "blk.1.ffn_down.weight"]:
        tensor = tensors[name]
        assert tensor.tensor_type.name.lower() == file_format
        numbers = dequantize(tensor.data, tensor.tensor_type)
        # Normal numbers of deviation 1 / sqrt(inputs), so that activations keep their size; n of them tell it to 4 %,
        # and two bits keep a tenth less of it.
        assert np.std(numbers) * np.sqrt(numbers.shape[-1]) == pytest.approx(1, rel=0.1)
        assert np.unique(numbers[:64], axis=0).shape[0] > 32  # runs from one pool may overlap


@pytest.mark.parametrize("file_format", FORMATS)
def test_runs(tmp_path, file_format):
    path = tmp_path / "tiny.gguf"
    assert write(path, "--format", file_format).returncode == 0
    text = tmp_path / "text.txt"
    text.write_text("Any text has some perplexity, at most that of a wrong guess.\n" * 4)
    done = subprocess.run([HEADRACE, "perplexity", path, text, "--json"], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    # Random logits of variance 1 over 512 tokens: about 512 * e ** 0.5.
    assert 300 < json.loads(done.stdout)["perplexity"] < 3000


def test_tokenizer_and_chat_template_work(tmp_path):
    path = tmp_path / "tiny.gguf"
    assert write(path).returncode == 0
    text = "Hello there,\n\tthe wörld! 你好 ÿ\n"
    ids = subprocess.run([HEADRACE, "tokenize", path], input=text.encode(), capture_output=True, check=True).stdout
    assert len(ids.split()) < len(text.encode())  # some pairs are merged
    back = subprocess.run([HEADRACE, "tokenize", path, "--decode"], input=ids, capture_output=True, check=True).stdout
    assert back.decode() == text
    done = subprocess.run([HEADRACE, "run", path, "-p", "hello", "-n", "3"], capture_output=True, timeout=120)
    assert done.returncode == 0 and done.stderr == b""


def test_same_seed_same_file(tmp_path):
    for name, seed in [("a", 1), ("b", 1), ("c", 2)]:
        assert write(tmp_path / name, "--seed", seed, "--threads", 1).returncode == 0
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()
    assert (tmp_path / "a").read_bytes() != (tmp_path / "c").read_bytes()


def test_mixture_of_experts(tmp_path):
    path = tmp_path / "moe.gguf"
    small = ["--layers", 1, "--width", 128, "--feed-forward", 64, "--vocabulary", 300, "--heads", 4, "--kv-heads", 4]
    assert write(path, "--preset", "moe64", *small).returncode == 0
    reader, tensors = read(path)
    assert reader.fields["olmoe.expert_count"].contents() == 64
    assert reader.fields["olmoe.expert_used_count"].contents() == 8
    assert list(tensors["blk.0.ffn_gate_exps.weight"].shape) == [128, 64, 64]
    assert list(tensors["blk.0.ffn_down_exps.weight"].shape) == [64, 128, 64]
    assert list(tensors["blk.0.ffn_gate_inp.weight"].shape) == [128, 64]
    assert list(tensors["blk.0.attn_q_norm.weight"].shape) == [128]


def test_one_billion_has_the_parameters_of_the_tables(tmp_path):
    path = tmp_path / "part.gguf"
    assert write(path, "--preset", "1b", "--layers", 1).returncode == 0
    _, tensors = read(path)
    layer = sum(int(t.n_elements) for name, t in tensors.items() if name.startswith("blk."))
    rest = sum(int(t.n_elements) for name, t in tensors.items() if not name.startswith("blk."))
    assert round((16 * layer + rest) / 1e9, 2) == 1.17


@pytest.mark.parametrize(
    "arguments, words",
    [
        (["--format", "q9_9"], "--format: expected one of"),
        (["--heads", 3], "expected heads that divide the width"),
        (["--vocabulary", 100], "--vocabulary: expected at least 258, got 100"),
        (["--width", 16, "--heads", 2], "blk.0"),  # half a block
    ],
)
def test_refuses(tmp_path, arguments, words):
    done = write(tmp_path / "no.gguf", *arguments)
    assert done.returncode in (2, 3) and done.stderr.startswith("random_model: ")
    assert not list(tmp_path.iterdir())
    if words != "blk.0":
        assert words in done.stderr


def test_bench_writes_the_page(tmp_path):
    page = tmp_path / "RESULTS.md"
    done = subprocess.run([sys.executable, BENCH, "--quick", "--peers", "", "--no-kernels", "--fresh", "--out", page],
                          capture_output=True, text=True, timeout=300,
                          env={**os.environ, "HEADRACE_CACHE": str(tmp_path / "cache")})
    assert done.returncode == 0, done.stderr
    text = page.read_text()
    for words in ["machine", "commit", "## Decode", "## Prefill", "| tiny q8_0 | 40 | 1 |"]:
        assert words in text
    assert not list((tmp_path / "cache" / "bench-models").iterdir())
    again = subprocess.run([sys.executable, BENCH, "--quick", "--peers", "", "--no-kernels", "--out", page],
                           capture_output=True, text=True, timeout=300)
    assert again.returncode == 0 and "measuring" not in again.stderr
    assert page.read_text() == text
