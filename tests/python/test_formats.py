"""Formats decode bit for bit as PyPI gguf dequantizes: all scales, random bytes, and the real model's tensors."""
import os
import subprocess
from pathlib import Path

import gguf
import numpy as np
import pytest
from gguf import GGMLQuantizationType as T

TOOL = Path(os.environ["HEADRACE_BIN_DIR"]) / "tools" / "dequantize_tool"
MODEL = os.environ["HEADRACE_MODEL"]
FORMATS = {
    "f32": T.F32,
    "f16": T.F16,
    "bf16": T.BF16,
    "q8_0": T.Q8_0,
    "q4_0": T.Q4_0,
    "q4_1": T.Q4_1,
    "q5_0": T.Q5_0,
    "q5_1": T.Q5_1,
}
GROUPED = [name for name in FORMATS if name.startswith("q")]


def block_bytes(name):
    return gguf.GGML_QUANT_SIZES[FORMATS[name]][1]


def decoded(name, data, *options):
    run = subprocess.run([TOOL, name, *options], input=data, capture_output=True, check=True)
    return np.frombuffer(run.stdout, np.uint32)


def expected(name, data):
    with np.errstate(all="ignore"):
        values = gguf.dequantize(np.frombuffer(data, np.uint8).reshape(-1, block_bytes(name)), FORMATS[name])
    return np.ascontiguousarray(values).reshape(-1).view(np.uint32)


def assert_same_bits(found, wanted):
    """Equal bits, but for the payload and sign of a NaN."""
    assert found.shape == wanted.shape
    found_nan, wanted_nan = (np.isnan(a.view(np.float32)) for a in (found, wanted))
    differing = np.flatnonzero((found_nan != wanted_nan) | (~wanted_nan & (found != wanted)))
    assert differing.size == 0, (
        f"{differing.size} of {wanted.size} differ, the first at {differing[0]}: "
        f"expected {wanted[differing[0]]:08x}, found {found[differing[0]]:08x}"
    )


@pytest.mark.parametrize("name", FORMATS)
def test_random_bytes(name):
    data = np.random.default_rng(1).bytes(5000 * block_bytes(name))
    assert_same_bits(decoded(name, data), expected(name, data))


@pytest.mark.parametrize("name", ["f16", "bf16"])
def test_every_half(name):
    data = np.arange(1 << 16, dtype="<u2").tobytes()
    assert_same_bits(decoded(name, data), expected(name, data))


@pytest.mark.parametrize("name", GROUPED)
def test_every_scale(name):
    """All 65536 scales (zeros, subnormals, infinities, NaNs), with random minimums and codes."""
    blocks = np.frombuffer(np.random.default_rng(2).bytes((1 << 16) * block_bytes(name)), np.uint8)
    blocks = blocks.reshape(1 << 16, -1).copy()
    blocks[:, :2] = np.arange(1 << 16, dtype="<u2").reshape(-1, 1).view(np.uint8)
    assert_same_bits(decoded(name, blocks.tobytes()), expected(name, blocks.tobytes()))


@pytest.mark.parametrize("name", GROUPED)
def test_codes_and_scales_say_the_same(name):
    """decode_codes, which kernels and the packer use, gives the same numbers by the formula of the Format record.

    The product of an f16 scale and a code is exact in f32, so one rounding and two give the same bits.
    """
    data = np.random.default_rng(3).bytes(5000 * block_bytes(name))
    assert_same_bits(decoded(name, data, "--codes"), expected(name, data))


def test_real_model():
    reader = gguf.GGUFReader(MODEL)
    names = {value: name for name, value in FORMATS.items()}
    seen = set()
    for tensor in reader.tensors:
        # All kinds of tensor, three layers: the rest would only repeat them.
        if not tensor.name.startswith("blk.") or tensor.name.split(".")[1] in ("0", "13", "29"):
            name = names[tensor.tensor_type]
            seen.add(name)
            data = np.ascontiguousarray(tensor.data).tobytes()
            assert_same_bits(decoded(name, data), expected(name, data))
    assert {"f32", "q4_1"} <= seen
