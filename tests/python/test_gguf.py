"""The GGUF reader gives what PyPI gguf's reader gives, on the real model, on llama.cpp's vocabularies, and on files that
PyPI gguf writes from random metadata and tensors."""
import json
import math
import os
import subprocess
from pathlib import Path

import gguf
import numpy as np
import pytest
from gguf import GGUFValueType as V
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

TOOL = Path(os.environ["HEADRACE_BIN_DIR"]) / "tools" / "gguf_dump"
MODEL = Path(os.environ["HEADRACE_MODEL"])
VOCABULARIES = Path(os.environ["HEADRACE_LLAMA_CPP"]) / "models"

TYPE_NAMES = {
    V.UINT8: "u8",
    V.INT8: "i8",
    V.UINT16: "u16",
    V.INT16: "i16",
    V.UINT32: "u32",
    V.INT32: "i32",
    V.FLOAT32: "f32",
    V.BOOL: "boolean",
    V.STRING: "string",
    V.ARRAY: "array",
    V.UINT64: "u64",
    V.INT64: "i64",
    V.FLOAT64: "f64",
}


def dump(path):
    run = subprocess.run([TOOL, path], capture_output=True)
    assert run.returncode == 0, run.stderr.decode()
    return json.loads(run.stdout)


def as_dumped(value):
    """A value of PyPI gguf as gguf_dump prints it."""
    if isinstance(value, list):
        return [as_dumped(item) for item in value]
    if isinstance(value, float):
        if math.isnan(value):
            return "nan"
        if math.isinf(value):
            return "inf" if value > 0 else "-inf"
    return value


def assert_same(path):
    found = dump(path)
    reader = gguf.GGUFReader(path)
    fields = [field for name, field in reader.fields.items() if not name.startswith("GGUF.")]
    assert [entry["key"] for entry in found["metadata"]] == [field.name for field in fields]
    for entry, field in zip(found["metadata"], fields):
        assert entry["offset"] == field.offset
        assert entry["type"] == TYPE_NAMES[field.types[0]], field.name
        if len(field.types) > 1:
            assert entry["element"] == TYPE_NAMES[field.types[1]], field.name
        wanted = as_dumped(field.contents())
        # A bool is an int to Python, and 1 == 1.0: the dumps must be equal, not only the values.
        assert json.dumps(entry["value"]) == json.dumps(wanted), field.name
    assert found["version"] == reader.get_field("GGUF.version").contents()
    assert found["alignment"] == reader.alignment
    assert found["data_offset"] == reader.data_offset
    assert len(found["tensors"]) == len(reader.tensors)
    for tensor, wanted in zip(found["tensors"], reader.tensors):
        assert tensor["name"] == wanted.name
        assert tensor["dimensions"] == wanted.shape.tolist(), wanted.name
        assert tensor["elements"] == wanted.n_elements, wanted.name
        assert tensor["type"] == wanted.tensor_type, wanted.name
        assert tensor["offset"] == wanted.data_offset, wanted.name
        if tensor["format"] is not None:
            assert tensor["format"] == wanted.tensor_type.name.lower()
            assert tensor["bytes"] == wanted.n_bytes, wanted.name
    return found


def test_real_model():
    found = assert_same(MODEL)
    assert len(found["tensors"]) == 272
    assert all(tensor["bytes"] for tensor in found["tensors"])


# The smaller ones of each kind: PyPI gguf takes 20 s for a vocabulary of 150 thousand.
@pytest.mark.parametrize("name", ["gpt-2", "llama-spm", "bert-bge", "phi-3", "deepseek-coder"])
def test_vocabulary(name):
    assert_same(VOCABULARIES / f"ggml-vocab-{name}.gguf")


def test_every_vocabulary_is_read():
    paths = sorted(VOCABULARIES.glob("ggml-vocab-*.gguf"))
    assert len(paths) >= 10
    for path in paths:
        metadata = {entry["key"]: entry["value"] for entry in dump(path)["metadata"]}
        assert len(metadata["tokenizer.ggml.tokens"]) == len(metadata["tokenizer.ggml.token_type"]), path.name


def integers(bits, signed):
    return st.integers(-(1 << bits - 1), (1 << bits - 1) - 1) if signed else st.integers(0, (1 << bits) - 1)


SCALARS = {
    V.UINT8: integers(8, False),
    V.INT8: integers(8, True),
    V.UINT16: integers(16, False),
    V.INT16: integers(16, True),
    V.UINT32: integers(32, False),
    V.INT32: integers(32, True),
    V.UINT64: integers(64, False),
    V.INT64: integers(64, True),
    V.FLOAT32: st.floats(width=32),
    V.FLOAT64: st.floats(),
    V.BOOL: st.booleans(),
    V.STRING: st.text(max_size=20),
}
SCALAR_VALUES = st.sampled_from(list(SCALARS)).flatmap(lambda kind: st.tuples(st.just(kind), SCALARS[kind]))
# The writer refuses empty arrays, and picks an array's type by its first item: these are the types it can pick.
ARRAY_VALUES = st.one_of(
    st.lists(SCALARS[V.INT32], min_size=1, max_size=9),
    st.lists(SCALARS[V.FLOAT32], min_size=1, max_size=9),
    st.lists(SCALARS[V.BOOL], min_size=1, max_size=9),
    st.lists(SCALARS[V.STRING], min_size=1, max_size=9),
)
METADATA = st.dictionaries(
    st.text(min_size=1, max_size=30).filter(lambda key: not key.startswith(("general.", "GGUF."))),
    st.one_of(SCALAR_VALUES, ARRAY_VALUES),
    max_size=8,
)


@st.composite
def arrays(draw):
    """A tensor as the writer takes it: (numpy array, GGUF type or None for the array's own)."""
    shape = draw(st.lists(st.integers(1, 5), min_size=1, max_size=4))
    kind = draw(st.sampled_from(["f32", "f16", "bf16", "q8_0", "q4_1", "q5_0", "q6_k", "mxfp4", "i32", "iq2_xxs"]))
    if kind in ("f32", "f16", "i32"):
        return np.ones(shape, {"f32": np.float32, "f16": np.float16, "i32": np.int32}[kind]), None
    raw_type = gguf.GGMLQuantizationType[kind.upper()]
    block_bytes = gguf.GGML_QUANT_SIZES[raw_type][1]
    return np.zeros([*shape[:-1], shape[-1] * block_bytes], np.uint8), raw_type


TENSORS = st.dictionaries(st.text(min_size=1, max_size=30), arrays(), max_size=5)


@settings(max_examples=80, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(metadata=METADATA, tensors=TENSORS, alignment=st.sampled_from([None, 8, 32, 64, 256]))
def test_written_by_gguf(tmp_path_factory, metadata, tensors, alignment):
    path = tmp_path_factory.mktemp("gguf") / "written.gguf"
    writer = gguf.GGUFWriter(path, "llama")
    if alignment is not None:
        writer.add_custom_alignment(alignment)
    for key, value in metadata.items():
        if isinstance(value, list):
            writer.add_array(key, value)
        else:
            kind, scalar = value
            writer.add_key_value(key, scalar, kind)
    for name, (data, raw_type) in tensors.items():
        writer.add_tensor(name, data, raw_dtype=raw_type)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    found = assert_same(path)
    assert {entry["key"] for entry in found["metadata"]} >= set(metadata)
    assert {tensor["name"] for tensor in found["tensors"]} == set(tensors)
    path.unlink()


def test_errors_are_one_line_with_the_exit_code_of_input(tmp_path):
    path = tmp_path / "cut.gguf"
    path.write_bytes(MODEL.read_bytes()[:1_000_000])
    run = subprocess.run([TOOL, path], capture_output=True, text=True)
    assert run.returncode == 3
    assert run.stdout == ""
    assert run.stderr.count("\n") == 1
    assert "the file ends at offset 1000000" in run.stderr and "bytes are missing" in run.stderr
