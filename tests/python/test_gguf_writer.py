"""What GgufWriter writes, PyPI gguf reads: metadata of all types, tensors of all shapes, and the real model."""
import os
import subprocess
from pathlib import Path

import gguf
import numpy as np
import pytest
from gguf import GGUFValueType as V

TOOL = Path(os.environ["HEADRACE_BIN_DIR"]) / "tools" / "gguf_copy"
MODEL = os.environ["HEADRACE_MODEL"]


def contents(path):
    """All that PyPI gguf sees in a file: keys with types and values, and tensors with types, shapes and bytes."""
    reader = gguf.GGUFReader(path)
    fields = {
        name: (field.types, [part.tobytes() for part in field.parts])
        for name, field in reader.fields.items()
        if not name.startswith("GGUF.")
    }
    tensors = [(t.name, t.tensor_type, t.shape.tolist(), t.data.tobytes()) for t in reader.tensors]
    assert all(t.data_offset % reader.alignment == 0 for t in reader.tensors)
    return fields, tensors


def write_original(path, alignment):
    writer = gguf.GGUFWriter(path, "made")
    if alignment:
        writer.add_custom_alignment(alignment)
    numbers = [V.UINT8, V.INT8, V.UINT16, V.INT16, V.UINT32, V.INT32, V.UINT64, V.INT64]
    for i, kind in enumerate(numbers):
        bits = 8 << i // 2
        value = (1 << bits) - 1 if i % 2 == 0 else -(1 << bits - 1)
        writer.add_key_value(f"made.{kind.name}", value, kind)
        writer.add_key_value(f"made.array.{kind.name}", [value, 0, 1], V.ARRAY, kind)
    writer.add_float32("made.f32", 0.1)
    writer.add_float64("made.f64", 0.1)
    writer.add_bool("made.bool", True)
    writer.add_string("made.string", "é\n")
    writer.add_array("made.strings", ["a", "b" * 300, "日本"])
    writer.add_array("made.floats", [0.1, float("inf")])
    writer.add_array("made.bools", [True, False])
    random = np.random.default_rng(1)
    for shape in [(1,), (3,), (5, 7), (2, 3, 4), (2, 1, 3, 5)]:
        writer.add_tensor("t" + "x".join(map(str, shape)), random.standard_normal(shape, np.float32))
    writer.add_tensor("half", random.standard_normal((3, 5)).astype(np.float16))
    rows = random.standard_normal((4, 64), np.float32)
    for kind in [gguf.GGMLQuantizationType.Q8_0, gguf.GGMLQuantizationType.Q4_1]:
        writer.add_tensor(f"rows.{kind.name}", gguf.quantize(rows, kind), raw_dtype=kind)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


@pytest.mark.parametrize("alignment", [0, 64, 1024])
def test_everything_is_kept(tmp_path, alignment):
    write_original(tmp_path / "in.gguf", alignment)
    expected = contents(tmp_path / "in.gguf")
    assert len(expected[0]) > 20 and len(expected[1]) == 8
    for piece in [1, 7, 1 << 20]:
        subprocess.run([TOOL, tmp_path / "in.gguf", tmp_path / "out.gguf", str(piece)], check=True)
        assert contents(tmp_path / "out.gguf") == expected
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in.gguf", "out.gguf"]


def test_real_model_is_kept(tmp_path):
    """Byte for byte: its writer laid it out as ggml's tools all do."""
    subprocess.run([TOOL, MODEL, tmp_path / "out.gguf"], check=True)
    assert contents(tmp_path / "out.gguf") == contents(MODEL)
    assert (tmp_path / "out.gguf").read_bytes() == Path(MODEL).read_bytes()


def test_a_full_disk_leaves_nothing(tmp_path):
    """A limit on the size of files stands for it; the program itself ignores SIGXFSZ as the shell here does."""
    limited = ["bash", "-c", 'trap "" XFSZ; ulimit -f 1000; exec "$@"', "-", TOOL, MODEL, tmp_path / "out.gguf"]
    run = subprocess.run(limited, capture_output=True, text=True)
    assert run.returncode == 4
    assert run.stderr == f"{tmp_path}/out.gguf: cannot be written: File too large\n"
    assert list(tmp_path.iterdir()) == []
