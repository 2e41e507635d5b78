"""Formats encode bit for bit as PyPI gguf quantizes, where it does, and elsewhere with errors below those of ggml."""
import json
import os
import subprocess
from pathlib import Path

import gguf
import numpy as np
import pytest
from gguf import GGMLQuantizationType as T

from encode_samples import SEARCHED, relative_error, samples

TOOL = Path(os.environ["HEADRACE_BIN_DIR"]) / "tools" / "encode_tool"
MODEL = os.environ["HEADRACE_MODEL"]
SAME = {
    "f32": T.F32,
    "f16": T.F16,
    "bf16": T.BF16,
    "q8_0": T.Q8_0,
    "q4_0": T.Q4_0,
    "q4_1": T.Q4_1,
    "q5_0": T.Q5_0,
    "q5_1": T.Q5_1,
    "mxfp4": T.MXFP4,
}


def encoded(name, numbers):
    numbers = np.ascontiguousarray(numbers, np.float32)
    run = subprocess.run([TOOL, name], input=numbers.tobytes(), capture_output=True, check=True)
    return np.frombuffer(run.stdout, np.uint8)


def oracle(name, numbers):
    with np.errstate(all="ignore"):
        return np.ascontiguousarray(gguf.quantize(numbers.astype(np.float32), SAME[name])).view(np.uint8).reshape(-1)


def assert_same(name, numbers):
    found, wanted = encoded(name, numbers), oracle(name, numbers)
    assert found.shape == wanted.shape
    size = gguf.GGML_QUANT_SIZES[SAME[name]][1]
    blocks = np.flatnonzero((found.reshape(-1, size) != wanted.reshape(-1, size)).any(axis=1))
    assert blocks.size == 0, (
        f"{blocks.size} of {found.size // size} blocks differ, the first at {blocks[0]}: "
        f"expected {wanted.reshape(-1, size)[blocks[0]].tobytes().hex()}, "
        f"found {found.reshape(-1, size)[blocks[0]].tobytes().hex()}"
    )


@pytest.mark.parametrize("name", SAME)
@pytest.mark.parametrize("scale", [1.0, 1e-3, 1e-6, 1e3])
def test_gaussian(name, scale):
    numbers = np.random.default_rng(1).standard_normal((4000, 32), np.float32)
    assert_same(name, numbers * np.float32(scale))


@pytest.mark.parametrize("name", SAME)
def test_heavy_tails(name):
    """Magnitudes over many orders in one block, within what an f16 scale reaches."""
    random = np.random.default_rng(2)
    numbers = random.standard_normal((4000, 32)) * 2.0 ** random.uniform(-20, 10, (4000, 32))
    assert_same(name, numbers.astype(np.float32))


@pytest.mark.parametrize("name", SAME)
def test_adversarial(name):
    """Zeros, constants, one number among zeros, halves between codes, subnormal scales, equal magnitudes."""
    rows = [np.zeros(32), np.full(32, -0.0), np.full(32, 3.5), np.full(32, -3.5), np.arange(32) - 16, np.arange(32)]
    rows += [np.arange(32) - 15.5, (np.arange(32) - 16) * 0.5, -np.arange(32), np.arange(32) / 31 * 15]
    for i in (0, 15, 16, 31):
        for value in (1.0, -1.0, 65504.0, -65504.0, 2.0**-24, -(2.0**-14), 2.0**-30, 1e-30):
            rows.append(np.where(np.arange(32) == i, value, 0))
    rows += [np.tile([1.0, -1.0], 16), np.tile([-1.0, 1.0], 16), np.tile([7.0, -8.0, 8.0, -7.0], 8)]
    # Halves of q8_0's codes, and just below: the inverse of the scale is exact here.
    rows += [np.concatenate([[127.0], np.arange(31) + 0.5]), np.concatenate([[-127.0], -np.arange(31) - 0.5])]
    rows += [np.concatenate([[127.0], np.nextafter(np.arange(31) + 0.5, 0, dtype=np.float32)])]
    # Steps where a power of two begins.
    edges = np.float32(2.0) ** np.arange(-16, 16, dtype=np.float32)
    rows += [edges, np.nextafter(edges, np.float32(0)), np.nextafter(edges, np.float32(np.inf))]
    rows += [np.where(np.arange(32) == 3, edge, 0) for edge in np.nextafter(edges, np.float32(0))]
    assert_same(name, np.array(rows, np.float32))


@pytest.mark.parametrize("name", ["f16", "bf16"])
def test_every_rounding(name):
    """All signs, exponents and upper bits of an f32, with lower bits on both sides of a tie; no NaNs."""
    upper = np.arange(1 << 16, dtype=np.uint32).reshape(-1, 1) << 16
    lower = np.array([0, 1, 0x0FFF, 0x1000, 0x1001, 0x2FFF, 0x3000, 0x7FFF, 0x8000, 0x8001, 0xFFFF], np.uint32)
    numbers = (upper | lower).view(np.float32).reshape(-1)
    assert_same(name, numbers[~np.isnan(numbers)])


def test_nans_stay():
    nans = np.array([np.nan, -np.nan, np.inf, -np.inf], np.float32)
    assert np.isnan(encoded("f16", nans).view(np.float16)).tolist() == [True, True, False, False]
    assert (encoded("bf16", nans).view(np.uint16) & 0x7FFF).tolist()[2:] == [0x7F80, 0x7F80]
    assert (encoded("f32", nans) == nans.view(np.uint8)).all()


@pytest.mark.parametrize("name", SAME)
def test_not_finite_numbers_only_spoil_their_block(name):
    """They encode to something, without a trap, and leave the other blocks alone. The verb refuses them by name."""
    numbers = np.random.default_rng(3).standard_normal((64, 32), np.float32)
    clean = encoded(name, numbers).reshape(64, -1)
    for i, bad in enumerate([np.nan, -np.nan, np.inf, -np.inf, 3e38, -3e38, 1e-45, -1e-45]):
        numbers[i, i] = bad
    numbers[8] = np.nan
    numbers[9] = np.inf
    numbers[10] = -np.inf
    numbers[11, ::2] = 3.4e38
    numbers[11, 1::2] = -3.4e38
    numbers[12] = 1e-45
    assert (encoded(name, numbers).reshape(64, -1)[13:] == clean[13:]).all()


@pytest.mark.parametrize("name", SAME)
def test_real_model(name):
    reader = gguf.GGUFReader(MODEL)
    for tensor in reader.tensors:
        if tensor.name.startswith("blk.13.") and len(tensor.shape) == 2:
            numbers = gguf.dequantize(tensor.data, tensor.tensor_type)
            # Off the codes that the file has already.
            assert_same(name, numbers * np.float32(0.7) + np.float32(1e-4))


@pytest.mark.parametrize("name", SEARCHED)
def test_errors_are_below_ggml(name):
    """No larger than those of ggml's own quantizer, without an importance matrix, on the same numbers."""
    stored = json.loads((Path(__file__).parent.parent / "data" / "encode_errors.json").read_text())[name]
    found = {
        label: relative_error(encoded(name, numbers), SEARCHED[name], numbers)
        for label, numbers in samples(MODEL).items()
    }
    assert found.keys() == stored.keys() and len(found) == 15
    assert {label: (error, stored[label]) for label, error in found.items() if error > stored[label]} == {}
