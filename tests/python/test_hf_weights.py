"""What the store gives of a Hugging Face directory: experts one after the other, and gpt-oss's, which lie interleaved,
transposed or packed, against numpy and PyPI gguf."""

import json
import os
import subprocess
from pathlib import Path

import gguf
import numpy as np
import pytest
from gguf.quants import dequantize
from safetensors.numpy import save_file

TOOL = Path(os.environ["HEADRACE_BIN_DIR"]) / "tools" / "dump_weight"


def dump(folder, name, chunk=1 << 20):
    done = subprocess.run([TOOL, folder, name, str(chunk)], capture_output=True, timeout=60)
    assert done.returncode == 0, done.stderr.decode()
    kind, *shape = done.stderr.decode().split()
    return kind, [int(size) for size in shape], done.stdout


def error_of(folder, name="x"):
    done = subprocess.run([TOOL, folder, name, "1"], capture_output=True, timeout=60)
    assert done.returncode == 3
    return done.stderr.decode()


def write(folder, tensors, shards=1, **config):
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text(json.dumps(config))
    names = sorted(tensors, reverse=True)
    weight_map = {name: f"m{i % shards}.safetensors" for i, name in enumerate(names)}
    for shard in set(weight_map.values()):
        save_file({name: tensors[name] for name in names if weight_map[name] == shard}, folder / shard)
    (folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": weight_map}))
    return folder


def random(*shape, kind=np.float32):
    return np.random.default_rng(len(shape)).standard_normal(shape).astype(kind)


@pytest.mark.parametrize("chunk", [3, 100, 1 << 20])
def test_experts_are_stacked(tmp_path, chunk):
    experts = random(12, 5, 7, kind=np.float16)
    tensors = {f"model.layers.4.mlp.experts.{i}.up_proj.weight": experts[i] for i in range(12)}
    folder = write(tmp_path, tensors, shards=3, model_type="olmoe")
    kind, shape, data = dump(folder, "blk.4.ffn_up_exps.weight", chunk)
    assert (kind, shape) == ("f16", [12, 5, 7])
    assert data == experts.tobytes()


def test_experts_that_do_not_stack(tmp_path):
    name = "model.layers.0.mlp.experts.{}.up_proj.weight"
    good = {name.format(i): random(3, 4) for i in range(3)}
    missing = {key: value for key, value in good.items() if key != name.format(1)}
    assert "expected experts 0 to 2, found none of number 1" in error_of(write(tmp_path / "a", missing))
    shape = good | {name.format(2): random(4, 3)}
    assert "expected dtype and shape of expert 0, which is F32, found others" in error_of(write(tmp_path / "b", shape))
    dtype = good | {name.format(2): random(3, 4, kind=np.float16)}
    assert "expected dtype and shape of expert 0" in error_of(write(tmp_path / "c", dtype))


PREFIX = "model.layers.7.mlp.experts."


@pytest.mark.parametrize("chunk", [10, 1000, 1 << 22])
@pytest.mark.parametrize("kind", [np.float32, np.float16])
def test_gpt_oss_floats(tmp_path, kind, chunk):
    x, d, f = 3, 8, 6
    gate_up, down = random(x, d, 2 * f, kind=kind), random(x, f, d, kind=kind)
    gate_up_bias, down_bias = random(x, 2 * f, kind=kind), random(x, d, kind=kind)
    tensors = {PREFIX + "gate_up_proj": gate_up, PREFIX + "down_proj": down, PREFIX + "gate_up_proj_bias": gate_up_bias,
               PREFIX + "down_proj_bias": down_bias}  # fmt: skip
    folder = write(tmp_path, tensors, model_type="gpt_oss")
    wanted = {
        "gate_exps.weight": gate_up[..., ::2].swapaxes(1, 2),
        "up_exps.weight": gate_up[..., 1::2].swapaxes(1, 2),
        "down_exps.weight": down.swapaxes(1, 2),
        "gate_exps.bias": gate_up_bias[:, ::2],
        "up_exps.bias": gate_up_bias[:, 1::2],
        "down_exps.bias": down_bias,
    }
    for name, values in wanted.items():
        _, shape, data = dump(folder, "blk.7.ffn_" + name, chunk)
        assert shape == list(values.shape)
        assert data == values.tobytes(), name


def unpack(blocks, scales):
    """gpt-oss's MXFP4 to f32, as its README says: e2m1 codes, the low half of each byte first, and e8m0 scales."""
    codes = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6, -0.0, -0.5, -1, -1.5, -2, -3, -4, -6], np.float32)
    values = np.stack([codes[blocks & 15], codes[blocks >> 4]], axis=-1).reshape(*blocks.shape[:-1], 32)
    return np.ldexp(values, scales.astype(np.int32)[..., None] - 127).reshape(*blocks.shape[:-2], -1)


@pytest.mark.parametrize("chunk", [17, 1000, 1 << 22])
def test_gpt_oss_blocks(tmp_path, chunk):
    x, d, f = 3, 64, 32
    source = np.random.default_rng(1)
    parts = {}
    for name, rows, columns in (("gate_up_proj", 2 * f, d), ("down_proj", d, f)):
        parts[PREFIX + name + "_blocks"] = source.integers(0, 256, (x, rows, columns // 32, 16), dtype=np.uint8)
        parts[PREFIX + name + "_scales"] = source.integers(100, 140, (x, rows, columns // 32), dtype=np.uint8)
    folder = write(tmp_path, parts, model_type="gpt_oss", quantization_config={"quant_method": "mxfp4"})
    gate_up = unpack(*(parts[PREFIX + "gate_up_proj_" + kind] for kind in ("blocks", "scales")))
    down = unpack(*(parts[PREFIX + "down_proj_" + kind] for kind in ("blocks", "scales")))
    wanted = {"gate": gate_up[:, ::2], "up": gate_up[:, 1::2], "down": down}
    for name, values in wanted.items():
        kind, shape, data = dump(folder, f"blk.7.ffn_{name}_exps.weight", chunk)
        assert (kind, shape) == ("mxfp4", list(values.shape))
        rows = np.frombuffer(data, np.uint8).reshape(*shape[:2], -1)
        assert np.array_equal(dequantize(rows, gguf.GGMLQuantizationType.MXFP4), values), name


def test_gpt_oss_tensors_that_are_refused(tmp_path):
    blocks, scales = np.zeros((2, 4, 1, 16), np.uint8), np.zeros((2, 4, 1), np.uint8)

    def message(**parts):
        return error_of(write(tmp_path, {PREFIX + name: part for name, part in parts.items()}, model_type="gpt_oss"))

    assert "no tensor x" in message(down_proj_blocks=blocks, down_proj_scales=scales)
    assert "expected the tensor 'model.layers.7.mlp.experts.down_proj_scales' with it" in message(down_proj_blocks=blocks)
    assert "expected U8 [2, 4, 1], found U8 [2, 3, 1]" in message(down_proj_blocks=blocks, down_proj_scales=scales[:, :3].copy())
    assert "expected U8 [experts, outputs, groups, 16]" in message(down_proj_blocks=scales)
    assert "expected an even number of outputs" in message(gate_up_proj=random(2, 4, 3))
    assert "expected floats of 3 dimensions, found U8 [2, 4, 1]" in message(down_proj=scales)
    assert "expected floats of 2 dimensions, found F32 [2]" in message(down_proj_bias=random(2))
