"""The verb quantize on the real model and on made ones: PyPI gguf decodes what it wrote, and numpy finds its errors."""
import json
import os
import signal
import subprocess
import time
from pathlib import Path

import gguf
import numpy as np
import pytest
from gguf import GGMLQuantizationType as T

BINARY = str(Path(os.environ["HEADRACE_BIN_DIR"]) / "headrace")
MODEL = os.environ["HEADRACE_MODEL"]
TIMEOUT = 1200


def headrace(*arguments, **options):
    return subprocess.run([BINARY, *map(str, arguments)], capture_output=True, text=True, timeout=TIMEOUT, **options)


def quantize(source, target, name, *options):
    done = headrace("quantize", source, target, "--to", name, "--json", *options)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout), done.stderr


def refuses(status, *arguments):
    done = headrace("quantize", *arguments)
    assert done.returncode == status, (done.returncode, done.stderr)
    lines = [line for line in done.stderr.splitlines() if not line.startswith("warning: ")]
    assert len(lines) == 1 and done.stdout == ""
    return lines[0]


class Read:
    """A file as PyPI gguf reads it, opened once: that takes seconds for a real vocabulary."""

    def __init__(self, path):
        reader = gguf.GGUFReader(path)
        self.tensors = {t.name: t for t in reader.tensors}
        self.kinds = {t.name: t.tensor_type for t in reader.tensors}
        fields = reader.fields.items()
        self.metadata = {k: b"".join(p.tobytes() for p in f.parts) for k, f in fields if not k.startswith("GGUF.")}
        self.integer = {k: int(f.contents()) for k, f in fields if f.types == [gguf.GGUFValueType.UINT32]}

    def numbers(self):
        """Of three layers, decoded: the rest would only repeat them."""
        return {
            name: gguf.dequantize(t.data, t.tensor_type)
            for name, t in self.tensors.items()
            if name.split(".")[1] in ("0", "13", "29") or name == "output_norm.weight"
        }


@pytest.fixture(scope="module")
def original():
    return Read(MODEL)


@pytest.fixture(scope="module")
def f16(tmp_path_factory):
    """The real model with its matrices in f16."""
    path = tmp_path_factory.mktemp("quantize") / "f16.gguf"
    report, warnings = quantize(MODEL, path, "f16")
    assert warnings == ""
    assert report["out_bytes"] == path.stat().st_size
    return path


@pytest.fixture(scope="module")
def f16_read(f16):
    return Read(f16)


def test_f16_is_the_rounded_model(original, f16_read):
    wanted, made = original.numbers(), f16_read.numbers()
    assert original.kinds.keys() == f16_read.kinds.keys() and wanted.keys() == made.keys()
    for name, numbers in made.items():
        kind = np.float32 if "norm" in name else np.float16
        assert f16_read.kinds[name] == (T.F32 if kind is np.float32 else T.F16)
        assert (numbers == wanted[name].astype(kind)).all(), name


# The default model's rows of 576 numbers are no multiple of 256, those of ffn_down are.
@pytest.mark.parametrize(
    "recipe, file_type, kinds",
    [
        ("q8_0", 7, {T.Q8_0}),
        ("q4_0", 2, {T.Q4_0, T.Q8_0}),
        ("q4_k_m", 15, {T.Q4_K, T.Q6_K, T.Q5_0, T.Q8_0}),
        ("q2_k", 10, {T.Q3_K, T.Q4_0, T.Q8_0}),
        ("iq4_xs", 30, {T.IQ4_XS, T.IQ4_NL, T.Q5_K, T.Q8_0}),
    ],
)
def test_errors_are_those_that_numpy_finds(f16, f16_read, tmp_path, recipe, file_type, kinds):
    out = tmp_path / "out.gguf"
    report, warnings = quantize(f16, out, recipe)
    assert warnings == ""
    read = Read(out)
    assert set(read.kinds.values()) == kinds | {T.F32}
    assert [t["name"] for t in report["tensors"]] == list(f16_read.kinds) == list(read.kinds)
    assert [t["to"] for t in report["tensors"]] == [kind.name.lower() for kind in read.kinds.values()]
    before, after = f16_read.numbers(), read.numbers()
    assert len(before) == 3 * 9 + 1
    for tensor in report["tensors"]:
        if tensor["name"] not in after:
            continue
        kind = read.kinds[tensor["name"]]
        x = before[tensor["name"]].astype(np.float64)
        error = after[tensor["name"]].astype(np.float64).reshape(x.shape) - x
        if tensor["relative_rms_error"] is None:
            assert kind == T.F32 and not error.any()
            continue
        # Sums of at most 9e5 doubles in another order.
        relative = np.sqrt((error**2).sum() / (x**2).sum())
        assert tensor["relative_rms_error"] == pytest.approx(relative, rel=1e-9)
        assert tensor["max_error"] == np.abs(error).max()
        bits = gguf.GGML_QUANT_SIZES[kind][1] * 8 / gguf.GGML_QUANT_SIZES[kind][0]
        # Numbers that lie on 16 levels to a group of 32, as the file had them, may lose little.
        assert 0.05 * 2 ** -(bits - 1) < relative < 3 * 2 ** -(bits - 1)
    assert read.integer["general.file_type"] == file_type
    assert read.integer["general.quantization_version"] == 2
    changed = {key for key in f16_read.metadata if read.metadata[key] != f16_read.metadata[key]}
    assert read.metadata.keys() == f16_read.metadata.keys() and changed == {"general.file_type"}
    assert report["out_bytes"] == out.stat().st_size and report["in_bytes"] == f16.stat().st_size
    assert [p.name for p in tmp_path.iterdir()] == ["out.gguf"]


def test_text_report(f16, original, tmp_path):
    done = headrace("quantize", f16, tmp_path / "out.gguf", "--to", "Q6_K", "--threads", "1")
    assert done.returncode == 0
    lines = done.stdout.splitlines()
    assert len(lines) == len(original.tensors) + 1
    assert any("q6_k needs rows of a multiple of 256" in line for line in lines)
    assert "bits a weight" in lines[-1] and str(tmp_path / "out.gguf") in lines[-1]


def test_requantizing_warns(tmp_path):
    report, warnings = quantize(MODEL, tmp_path / "out.gguf", "q8_0")
    assert "warning: " in warnings and "q4_1 already" in warnings
    assert any(t["from"] == "q4_1" and t["to"] == "q8_0" for t in report["tensors"])


def test_pure(f16, tmp_path):
    report, _ = quantize(f16, tmp_path / "out.gguf", "iq4_nl", "--pure")
    assert {t["to"] for t in report["tensors"]} == {"f32", "iq4_nl"}


def test_memory_is_bounded(f16, tmp_path):
    """By a chunk, not by the largest tensor (57 MB in f16, and twice that in f32) or the file."""
    report, _ = quantize(f16, tmp_path / "out.gguf", "q8_0")
    assert 1e6 < report["peak_memory_bytes"] < 64e6


def test_in_and_out_must_differ(tmp_path):
    copy = tmp_path / "model.gguf"
    copy.write_bytes(Path(MODEL).read_bytes())
    (tmp_path / "link.gguf").symlink_to(copy)
    (tmp_path / "hard.gguf").hardlink_to(copy)
    for name in ["model.gguf", "./model.gguf", "link.gguf", "hard.gguf"]:
        assert "expected another file than IN" in refuses(2, copy, tmp_path / name, "--to", "q8_0")
    assert copy.read_bytes() == Path(MODEL).read_bytes()


def test_usage_errors(tmp_path):
    out = tmp_path / "out.gguf"
    assert "--to" in refuses(2, MODEL, out)
    assert "expected one of f32, f16" in refuses(2, MODEL, out, "--to", "q9")
    assert "OUT" in refuses(2, MODEL, "--to", "q8_0")
    assert "no such file" in refuses(3, tmp_path / "missing.gguf", out, "--to", "q8_0")
    assert "No such file" in refuses(4, MODEL, tmp_path / "missing" / "out.gguf", "--to", "q8_0")
    assert "Is a directory" in refuses(4, MODEL, tmp_path, "--to", "q8_0")
    assert list(tmp_path.iterdir()) == []


def test_a_full_disk_leaves_what_was_there(tmp_path):
    out = tmp_path / "out.gguf"
    out.write_text("before")
    limited = ["bash", "-c", 'ulimit -f 20000; exec "$@"', "-", BINARY, "quantize", MODEL, out, "--to", "q8_0"]
    done = subprocess.run(limited, capture_output=True, text=True, timeout=TIMEOUT)
    assert done.returncode == 4
    assert f"{out}: cannot be written: File too large" in done.stderr
    assert "No space left" in refuses(4, MODEL, "/dev/full", "--to", "q8_0")
    assert out.read_text() == "before"
    assert [p.name for p in tmp_path.iterdir()] == ["out.gguf"]


def user_seconds(pid):
    """CPU time that a process has spent outside the kernel so far."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return int(fields[11]) / os.sysconf("SC_CLK_TCK")


def test_an_interrupt_leaves_nothing(tmp_path):
    source = tmp_path / "in.gguf"
    writer = gguf.GGUFWriter(source, "made")
    numbers = np.random.default_rng(1).standard_normal((1 << 16, 1024), np.float32)
    writer.add_tensor("t.weight", numbers)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    for kind, status in [(signal.SIGINT, 130), (signal.SIGTERM, -signal.SIGTERM)]:
        process = subprocess.Popen(
            [BINARY, "quantize", source, tmp_path / "out.gguf", "--to", "q2_k"], stderr=subprocess.PIPE
        )
        # Some way into the work, of which there is over a second of CPU time, on a busy machine too.
        while process.poll() is None and user_seconds(process.pid) < 0.2:
            time.sleep(0.002)
        assert process.poll() is None, "too fast to be interrupted: make the tensor larger"
        process.send_signal(kind)
        assert process.wait(TIMEOUT) == status
        assert process.stderr.read() == b""
        # Only a file system without unnamed files lets a killed process leave its part.
        left = {p.name for p in tmp_path.iterdir()} - {"in.gguf"}
        assert left == set() or (kind != signal.SIGINT and left == {f"out.gguf.{process.pid}.part"})
