"""A directory as MODEL: what the verbs say of a small one that is written here, and of broken ones."""

import json
import os
import subprocess
from pathlib import Path

import numpy as np
import pytest

import hf_directory
from engine_logits import engine_logits

HEADRACE = Path(os.environ["HEADRACE_BIN_DIR"]) / "headrace"


def headrace(*arguments, text=""):
    return subprocess.run([HEADRACE, *map(str, arguments)], input=text, capture_output=True, text=True, timeout=300)


def output(*arguments, text=""):
    done = headrace(*arguments, text=text)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    return hf_directory.write(tmp_path_factory.mktemp("hf") / "tiny", shards=3)


def test_info(model):
    found = json.loads(output("info", model, "--json"))
    assert found["architecture"] == "llama" and found["runnable"] is True
    assert found["parameters"] == sum(array.size for array in hf_directory.tensors().values())
    assert found["formats"] == [{"format": "f32", "tensors": 21, "elements": found["parameters"], "bytes": 4 * found["parameters"]}]
    assert found["shape"]["layers"] == 2 and found["shape"]["vocabulary"] == 264
    assert found["tokenizer"]["tokens"] == 264 and found["tokenizer"]["chat_template"] is True
    assert "Hugging Face directory" in output("info", model)


def test_tokenize(model):
    theirs = hf_directory.tokenizer()
    text = "Hello <s>wörld"
    assert json.loads(output("tokenize", model, "--json", text=text))["token_ids"] == theirs.encode(text).ids
    ids = " ".join(map(str, theirs.encode(text, add_special_tokens=False).ids))
    assert output("tokenize", model, "--decode", text=ids) == text


def test_run_chat_and_perplexity(model, tmp_path):
    raw = json.loads(output("run", model, "--raw", "-p", "Hello", "-n", 3, "--json"))
    assert raw["prompt_tokens"] == 6
    templated = json.loads(output("run", model, "-p", "Hello", "-n", 3, "--json"))
    assert templated["prompt_tokens"] == len("<user>Hello") + 1
    text = tmp_path / "text"
    text.write_text("Some text to look at. " * 4)
    assert "perplexity" in output("perplexity", model, text)
    assert headrace("chat", model, "-n", 2, text="Hello\n/quit\n").returncode == 0


def test_one_file_and_shards_are_one_model(model, tmp_path):
    single = hf_directory.write(tmp_path / "single")
    tokens = [list(range(50))]
    assert np.array_equal(*(engine_logits(path, tokens, 264)[0] for path in (model, single)))


def test_tied_embeddings_and_padding(tmp_path):
    arrays = hf_directory.tensors()
    del arrays["lm_head.weight"]
    tied = hf_directory.write(tmp_path / "tied", hf_directory.CONFIG | {"tie_word_embeddings": True}, arrays)
    arrays["lm_head.weight"] = arrays["model.embed_tokens.weight"]
    untied = hf_directory.write(tmp_path / "untied", arrays=arrays)
    tokens = [list(range(20))]
    assert np.array_equal(*(engine_logits(path, tokens, 264)[0] for path in (tied, untied)))
    # A copy of the embedding is in some files; the config says that it is one.
    both = hf_directory.write(tmp_path / "both", hf_directory.CONFIG | {"tie_word_embeddings": True}, arrays)
    assert json.loads(output("info", both, "--json"))["tensors"] == 20


def error_of(folder, *arguments):
    done = headrace("run", folder, "--raw", "-p", "x", "-n", "1", *arguments)
    assert done.returncode == 3, done.stderr
    assert done.stderr.count("\n") == 1
    return done.stderr


def broken(tmp_path, config=None, change=None, drop=None, shards=1):
    arrays = hf_directory.tensors()
    if change:
        arrays |= change(arrays)
    if drop:
        del arrays[drop]
    return hf_directory.write(tmp_path / "broken", hf_directory.CONFIG | (config or {}), arrays, shards)


def test_directories_that_lack_something(tmp_path):
    empty = tmp_path / "empty"
    empty.mkdir()
    assert f"{empty}/config.json: no such file" in error_of(empty)
    (empty / "config.json").write_text("{}")
    assert "expected model.safetensors or model.safetensors.index.json, found neither" in error_of(empty)
    folder = broken(tmp_path, shards=2)
    (folder / "model-00002-of-00002.safetensors").unlink()
    message = error_of(folder)
    assert "weight_map: expected the file 'model-00002-of-00002.safetensors' beside it" in message
    folder = broken(tmp_path / "a")
    (folder / "tokenizer.json").unlink()
    assert "expected a tokenizer.json, found none" in error_of(folder)
    folder = broken(tmp_path / "b", drop="model.layers.1.mlp.up_proj.weight")
    assert "tensor blk.1.ffn_up.weight: expected it, found none" in error_of(folder)
    folder = broken(tmp_path / "c", drop="lm_head.weight")
    assert "expected the tensor 'lm_head.weight', since tie_word_embeddings is false, found none" in error_of(folder)


CONFIGS = {
    "model_type": ("mamba", "config.json: model_type: expected one of", "found 'mamba'"),
    "num_hidden_layers": (None, "config.json: num_hidden_layers: expected a size, found nothing"),
    "hidden_size": ("32", "config.json: hidden_size: expected an integer of 64 bits, found the string '32'"),
    "intermediate_size": (0, "config.json: intermediate_size: expected a size in [1, 2^24], found 0"),
    "num_attention_heads": (5, "config.json: num_key_value_heads: expected a divisor of 5 heads, found 4"),
    "rms_norm_eps": (-1, "config.json: rms_norm_eps: expected a finite number above 0, found -1"),
    "rope_scaling": ({"type": "dynamic", "factor": 2.0}, "rope_scaling.type: expected", "dynamic"),
    "hidden_act": ("gelu", "config.json: hidden_act: expected \"silu\", found the string 'gelu'"),
    "quantization_config": ({"quant_method": "gptq"}, "config.json: quantization_config: expected null, found an object"),
    "use_sliding_window": (True, "config.json: use_sliding_window: expected false, found true"),
}  # fmt: skip


@pytest.mark.parametrize("key", CONFIGS)
def test_configs_that_are_refused(key, tmp_path):
    value, *parts = CONFIGS[key]
    message = error_of(broken(tmp_path, {key: value}))
    for part in parts:
        assert part in message


def test_shapes_and_dtypes_that_are_refused(tmp_path):
    name = "model.layers.0.self_attn.k_proj.weight"
    folder = broken(tmp_path / "a", change=lambda arrays: {name: np.zeros((31, 32), np.float32)})
    assert "tensor blk.0.attn_k.weight: expected shape [32, 32], found [31, 32]" in error_of(folder)
    folder = broken(tmp_path / "b", change=lambda arrays: {name: np.zeros((32, 32), np.int8)})
    assert "tensor blk.0.attn_k.weight: expected a Format that Headrace knows, found I8" in error_of(folder)
    folder = broken(tmp_path / "c")
    data = (folder / "model.safetensors").read_bytes()
    (folder / "model.safetensors").write_bytes(data[:-1])
    assert "model.safetensors: tensor" in error_of(folder)
    folder = broken(tmp_path / "d", change=lambda arrays: {"layers.0.mlp.up_proj.weight": np.zeros((48, 32), np.float32)})
    assert "expected one tensor for 'blk.0.ffn_up.weight', found two" in error_of(folder)


def test_windows(tmp_path):
    folder = broken(tmp_path / "a", {"model_type": "mistral", "sliding_window": 64})
    assert "window = 64" in output("info", folder, "--program")
    folder = broken(tmp_path / "b", {"model_type": "mistral", "sliding_window": None})
    assert "window = 0" in output("info", folder, "--program")
    # Qwen's configs name a window and switch it off.
    folder = broken(tmp_path / "c", {"model_type": "qwen2", "sliding_window": 64, "use_sliding_window": False})
    assert "window = 0" in output("info", folder, "--program")
