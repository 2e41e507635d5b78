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
    "q2_k": T.Q2_K,
    "q3_k": T.Q3_K,
    "q4_k": T.Q4_K,
    "q5_k": T.Q5_K,
    "q6_k": T.Q6_K,
    "iq4_nl": T.IQ4_NL,
    "iq4_xs": T.IQ4_XS,
    "mxfp4": T.MXFP4,
}
GROUPED = [name for name in FORMATS if name not in ("f32", "f16", "bf16")]
SCALE_AT = {"q2_k": 80, "q3_k": 108, "q6_k": 208}  # of the others: 0
MINIMUM_AT = {"q4_1": 2, "q5_1": 2, "q2_k": 82, "q4_k": 2, "q5_k": 2}


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


def with_every_half(name, offset):
    blocks = np.frombuffer(np.random.default_rng(2).bytes((1 << 16) * block_bytes(name)), np.uint8)
    blocks = blocks.reshape(1 << 16, -1).copy()
    blocks[:, offset : offset + 2] = np.arange(1 << 16, dtype="<u2").reshape(-1, 1).view(np.uint8)
    return blocks.tobytes()


@pytest.mark.parametrize("name", GROUPED)
def test_every_scale(name):
    """All 65536 scales (zeros, subnormals, infinities, NaNs; of mxfp4 all 256), with random minimums and codes."""
    data = with_every_half(name, SCALE_AT.get(name, 0))
    assert_same_bits(decoded(name, data), expected(name, data))


@pytest.mark.parametrize("name", MINIMUM_AT)
def test_every_minimum(name):
    data = with_every_half(name, MINIMUM_AT[name])
    assert_same_bits(decoded(name, data), expected(name, data))


@pytest.mark.parametrize("name", GROUPED)
@pytest.mark.parametrize("fill", [0x00, 0xFF, 0x80, 0x7F])
def test_extreme_codes(name, fill):
    """The smallest and largest codes and factors, under a scale and a minimum of 1."""
    block = np.full(block_bytes(name), fill, np.uint8)
    for offset in (SCALE_AT.get(name, 0), MINIMUM_AT.get(name, SCALE_AT.get(name, 0))):
        block[offset : offset + 2] = np.array([1], "<f2").view(np.uint8) if name != "mxfp4" else (fill, fill)
    assert_same_bits(decoded(name, block.tobytes()), expected(name, block.tobytes()))


@pytest.mark.parametrize("name", GROUPED)
def test_codes_and_scales_say_the_same(name):
    """decode_codes, which kernels and the packer use, gives the same numbers by the formula of the Format record.

    The product of an f16 scale, its factor and a code is exact in f32 wherever a minimum is added to it, so one
    rounding and two give the same bits.
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
