"""Writes the corpus of fuzz_gguf: tiny GGUF files that together reach every branch of the reader.

Usage: python fuzz/make_corpus_gguf.py fuzz/corpus/fuzz_gguf
"""
import struct
import sys
from pathlib import Path


def text(value):
    data = value.encode()
    return struct.pack("<Q", len(data)) + data


def entry(key, kind, payload):
    return text(key) + struct.pack("<I", kind) + payload


def array(kind, items):
    return struct.pack("<IQ", kind, len(items)) + b"".join(items)


def tensor(name, dimensions, kind, offset):
    return text(name) + struct.pack(f"<I{len(dimensions)}QIQ", len(dimensions), *dimensions, kind, offset)


def file(entries=(), tensors=(), data=b"", version=3, alignment=32):
    header = b"GGUF" + struct.pack("<IQQ", version, len(tensors), len(entries)) + b"".join(entries) + b"".join(tensors)
    return header + (b"\0" * (-len(header) % alignment) + data if data else b"")


SCALARS = [
    entry("u8", 0, b"\xff"),
    entry("i8", 1, b"\xff"),
    entry("u16", 2, struct.pack("<H", 65535)),
    entry("i16", 3, struct.pack("<h", -1)),
    entry("u32", 4, struct.pack("<I", 7)),
    entry("i32", 5, struct.pack("<i", -7)),
    entry("f32", 6, struct.pack("<f", 0.1)),
    entry("bool", 7, b"\1"),
    entry("string", 8, text("llama")),
    entry("u64", 10, struct.pack("<Q", 2**64 - 1)),
    entry("i64", 11, struct.pack("<q", -(2**63))),
    entry("f64", 12, struct.pack("<d", 0.5)),
]
ARRAYS = [
    entry("strings", 9, array(8, [text("a"), text(""), text("bc")])),
    entry("floats", 9, array(6, [struct.pack("<f", value) for value in (1, 2)])),
    entry("doubles", 9, array(12, [struct.pack("<d", 1)])),
    entry("bytes", 9, array(0, [b"\1", b"\2"])),
    entry("bools", 9, array(7, [b"\1", b"\0"])),
    entry("empty", 9, array(5, [])),
    entry("nested", 9, array(9, [array(9, [array(1, [b"\1"])]), array(8, [text("x")])])),
]
FILES = {
    "empty": file(),
    "v2": file(SCALARS[:3], version=2),
    "scalars": file(SCALARS),
    "arrays": file(ARRAYS),
    "tensors": file(
        [entry("general.architecture", 8, text("llama"))],
        [
            tensor("norm", [4], 0, 0),
            tensor("weight", [32, 2], 3, 32),
            tensor("scalar", [], 1, 96),
            tensor("later", [256], 12, 128),
        ],
        bytes(300),
    ),
    "alignment": file(
        [entry("general.alignment", 4, struct.pack("<I", 8))],
        [tensor("a", [2], 30, 0), tensor("b", [32], 8, 8)],
        bytes(42),
        alignment=8,
    ),
    "overlap": file([], [tensor("a", [16], 0, 0), tensor("b", [1], 0, 32)], bytes(64)),
    "truncated": file([], [tensor("a", [16], 0, 0)], bytes(63)),
    "duplicate_key": file([SCALARS[0], SCALARS[0]]),
    "duplicate_tensor": file([], [tensor("a", [1], 0, 0), tensor("a", [1], 0, 32)], bytes(36)),
    "big_endian": b"GGUF" + struct.pack(">IQQ", 3, 0, 0),
    "vast_count": b"GGUF" + struct.pack("<IQQ", 3, 2**61, 2**60),
    "vast_array": file([entry("k", 9, struct.pack("<IQ", 8, 2**61))]),
}


def main():
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    for name, data in FILES.items():
        (folder / f"{name}.gguf").write_bytes(data)


if __name__ == "__main__":
    main()
