"""Writes the corpus of fuzz_safetensors: tiny files and indexes that together reach every branch of the readers.

Usage: python fuzz/make_corpus_safetensors.py fuzz/corpus/fuzz_safetensors
"""
import json
import struct
import sys
from pathlib import Path


def file(header, data=b""):
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + data


def entry(dtype, shape, begin, end):
    return {"dtype": dtype, "shape": shape, "data_offsets": [begin, end]}


FILES = {
    "empty": file({}),
    "tensors": file(
        {
            "__metadata__": {"format": "pt"},
            "a": entry("F32", [], 0, 4),
            "b": entry("BF16", [2, 3], 4, 16),
            "c": entry("F16", [0], 16, 16),
            "d": entry("U8", [3], 16, 19),
            "e": entry("F4", [2], 19, 20),
        },
        bytes(20),
    ),
    "overlap": file({"a": entry("U8", [2], 0, 2), "b": entry("U8", [2], 1, 3)}, bytes(3)),
    "hole": file({"a": entry("U8", [2], 0, 2), "b": entry("U8", [2], 3, 5)}, bytes(5)),
    "beyond": file({"a": entry("I64", [2], 0, 16)}, bytes(8)),
    "vast_shape": file({"a": entry("F64", [2**32, 2**31], 0, 8)}, bytes(8)),
    "duplicate": file(b'{"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},"a":1}', bytes(1)),
    "deep": file(b'{"a":' + b"[" * 40),
    "vast_header": struct.pack("<Q", 2**63) + b"{}",
    "index": json.dumps({"metadata": {}, "weight_map": {"a": "model-1.safetensors", "b": "x"}}).encode(),
    "index_path": json.dumps({"weight_map": {"a": "../x"}}).encode(),
}


def main():
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    for name, data in FILES.items():
        (folder / name).write_bytes(data)


if __name__ == "__main__":
    main()
