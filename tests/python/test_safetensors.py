"""The safetensors reader takes what PyPI safetensors writes, gives what it gives, and refuses what it refuses."""
import json
import math
import os
import struct
import subprocess
from pathlib import Path

import numpy as np
import pytest
import safetensors
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from safetensors.numpy import save_file

TOOL = Path(os.environ["HEADRACE_BIN_DIR"]) / "tools" / "safetensors_dump"
DTYPES = {
    "F64": np.float64, "F32": np.float32, "F16": np.float16, "I64": np.int64, "I32": np.int32, "I16": np.int16,
    "I8": np.int8, "U64": np.uint64, "U32": np.uint32, "U16": np.uint16, "U8": np.uint8, "BOOL": np.bool_,
}  # fmt: skip


class Dump:
    def __init__(self):
        self.process = subprocess.Popen([TOOL], stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def __call__(self, path):
        self.process.stdin.write(str(path).encode() + b"\n")
        self.process.stdin.flush()
        answer = self.process.stdout.readline()
        assert answer, "safetensors_dump ended"
        return json.loads(answer)

    def close(self):
        self.process.stdin.close()
        assert self.process.wait(timeout=60) == 0
        self.process.stdout.close()


@pytest.fixture(scope="module")
def dump():
    made = Dump()
    yield made
    made.close()


def oracle(path):
    """name -> (dtype, shape, bytes), or None if the reference refuses the file."""
    try:
        with safetensors.safe_open(path, framework="np") as file:
            slices = {name: file.get_slice(name) for name in file.keys()}
            return {name: (part.get_dtype(), part.get_shape()) for name, part in slices.items()}
    except (safetensors.SafetensorError, OSError):
        return None


tensors = st.dictionaries(
    st.text(max_size=12).filter(lambda name: name != "__metadata__"),
    st.tuples(st.sampled_from(sorted(DTYPES)), st.lists(st.integers(0, 4), max_size=4)),
    max_size=8,
)


@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(tensors=tensors, metadata=st.dictionaries(st.text(max_size=8), st.text(max_size=8), max_size=3), seed=st.integers(0, 99))
def test_what_the_reference_writes(dump, tmp_path, tensors, metadata, seed):
    random = np.random.default_rng(seed)
    arrays = {
        name: np.frombuffer(random.bytes(int(np.prod(shape)) * np.dtype(DTYPES[dtype]).itemsize), np.uint8)
        .view(DTYPES[dtype]).reshape(shape)
        for name, (dtype, shape) in tensors.items()
    }  # fmt: skip
    path = tmp_path / "m.safetensors"
    # With an empty metadata and no tensors the reference writes what is no JSON.
    save_file(arrays, path, metadata=metadata or None)
    found = dump(path)
    assert found["metadata"] == metadata
    assert set(found["tensors"]) == set(arrays)
    data = path.read_bytes()
    for name, tensor in found["tensors"].items():
        assert tensor["shape"] == list(arrays[name].shape)
        assert DTYPES[tensor["dtype"]] == arrays[name].dtype
        assert data[tensor["offset"] : tensor["offset"] + tensor["bytes"]] == arrays[name].tobytes()
        assert tensor["format"] == {"F32": "f32", "F16": "f16"}.get(tensor["dtype"])


BITS = {"F32": 32, "BF16": 16, "F16": 16, "U8": 8, "I64": 64, "F8_E4M3": 8, "F8_E5M2": 8, "F8_E8M0": 8, "F4": 4, "F6_E2M3": 6,
        "C64": 64, "X9": 9}  # fmt: skip


@st.composite
def headers(draw):
    """Headers that are nearly right: each tensor behind the one before it, with a few changes."""
    header, end = {}, 0
    for i in range(draw(st.integers(0, 4))):
        dtype = draw(st.sampled_from(sorted(BITS)))
        shape = draw(st.lists(st.sampled_from([0, 1, 2, 3, 8, 8, 8, 2**31, 2**62, 2**63, 2**64 - 1]), max_size=3))
        size = int(np.prod([int(n) for n in shape], dtype=object)) * BITS[dtype] // 8 if shape else BITS[dtype] // 8
        size = min(size, 1000) + draw(st.sampled_from([0] * 9 + [1]))
        begin = end + draw(st.sampled_from([0] * 12 + [1, -1]))
        header[f"t{i}"] = {"dtype": dtype, "shape": shape, "data_offsets": [begin, begin + size]}
        end += size
    return header, max(0, end + draw(st.sampled_from([0] * 9 + [1, -1])))


@settings(max_examples=400, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(made=headers(), padding=st.integers(0, 8))
def test_takes_and_refuses_what_the_reference_does(dump, tmp_path, made, padding):
    header, data_bytes = made
    text = json.dumps(header).encode() + b" " * padding
    path = tmp_path / "m.safetensors"
    path.write_bytes(struct.pack("<Q", len(text)) + text + bytes(data_bytes))
    wanted, found = oracle(path), dump(path)
    # Ours counts in 63 bits, the reference in 64: only shapes with a zero in them tell.
    shapes = [tensor["shape"] for tensor in header.values()]
    counted = [math.prod(shape[:i]) for shape in shapes for i in range(4)] + [n for shape in shapes for n in shape]
    if wanted is not None and max(counted, default=0) >= 2**63:
        assert "error" in found
        return
    assert ("error" in found) == (wanted is None), (found, wanted)
    if wanted is not None:
        assert {name: (tensor["dtype"], tensor["shape"]) for name, tensor in found["tensors"].items()} == wanted


def test_broken_files_are_refused_by_both(dump, tmp_path):
    path = tmp_path / "m.safetensors"
    good = {"a": {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}}

    def check(data):
        path.write_bytes(data)
        assert oracle(path) is None
        assert "error" in dump(path)

    for text in [b"", b"[]", b"{", b'{"a":1}', b'{"a":{"dtype":"F32"}}', b'{"__metadata__":{"a":1}}', b"\xff{}"]:
        check(struct.pack("<Q", len(text)) + text)
    text = json.dumps(good).encode()
    for length in [len(text) - 1, len(text) + 1, 2**40, 2**63, 2**64 - 1]:
        check(struct.pack("<Q", length) + text + bytes(8))
    for cut in range(8):
        check((struct.pack("<Q", len(text)) + text + bytes(8))[: -1 - cut])
