"""Writes the corpus of fuzz_tokenizer_json: tiny tokenizers of both kinds, each with a text.

Usage: python fuzz/make_corpus_tokenizer_json.py fuzz/corpus/fuzz_tokenizer_json
"""
import json
import sys
from pathlib import Path

SPACE = "\u2581"
GPT2 = r"""'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"""


def added(token, content, special, **flags):
    return {"id": token, "content": content, "special": special, "normalized": False} | flags


def template(single, ids):
    parts = [{"Sequence": {"id": "A"}} if part == "$A" else {"SpecialToken": {"id": part}} for part in single.split()]
    return {"type": "TemplateProcessing", "single": parts, "special_tokens": {name: {"ids": [i]} for name, i in ids.items()}}


BYTE_LEVEL = {
    "added_tokens": [added(4, "<s>", True), added(5, "<x>", False, lstrip=True, rstrip=True, normalized=True)],
    "normalizer": {"type": "NFC"},
    "pre_tokenizer": {
        "type": "Sequence",
        "pretokenizers": [
            {"type": "Split", "pattern": {"Regex": GPT2}, "behavior": "Isolated", "invert": False},
            {"type": "Digits", "individual_digits": True},
            {"type": "ByteLevel", "add_prefix_space": False, "use_regex": False},
        ],
    },
    "decoder": {"type": "ByteLevel"},
    "post_processor": {"type": "Sequence", "processors": [{"type": "ByteLevel"}, template("<s> $A", {"<s>": 4})]},
    "model": {"type": "BPE", "ignore_merges": True, "vocab": {"a": 0, "b": 1, "ab": 2, "\u0120": 3}, "merges": ["a b"]},
}
LLAMA = {
    "added_tokens": [added(0, "<unk>", True), added(1, "</s>", True), added(8, "<x>", False, normalized=True)],
    "normalizer": {
        "type": "Sequence",
        "normalizers": [
            {"type": "Prepend", "prepend": SPACE},
            {"type": "Replace", "pattern": {"String": " "}, "content": SPACE},
        ],
    },
    "decoder": {
        "type": "Sequence",
        "decoders": [
            {"type": "Replace", "pattern": {"String": SPACE}, "content": " "},
            {"type": "ByteFallback"},
            {"type": "Fuse"},
            {"type": "Strip", "content": " ", "start": 1, "stop": 0},
        ],
    },
    "post_processor": template("$A </s>", {"</s>": 1}),
    "model": {
        "type": "BPE",
        "unk_token": "<unk>",
        "fuse_unk": True,
        "byte_fallback": True,
        "vocab": {"<unk>": 0, "</s>": 1, "<0xC3>": 2, "<0xA4>": 3, "a": 4, SPACE: 5, SPACE + "a": 6, "b": 7},
        "merges": [[SPACE, "a"]],
    },
}
METASPACE = LLAMA | {
    "normalizer": None,
    "pre_tokenizer": {"type": "Metaspace", "replacement": SPACE, "prepend_scheme": "first", "split": False},
}
FILES = {
    "byte_level": (BYTE_LEVEL, "ab <x> 12a<s>"),
    "llama": (LLAMA, "a b\u00e4<x> </s>a xyz"),
    "metaspace": (METASPACE, " a<x>a"),
    "holes": ({"model": {"vocab": {"a": 60000}, "merges": []}, "pre_tokenizer": {"type": "ByteLevel"}}, "a"),
    "not_known": (BYTE_LEVEL | {"pre_tokenizer": {"type": "Whitespace"}}, ""),
}


def main():
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    for name, (root, text) in FILES.items():
        (folder / name).write_bytes(json.dumps(root).encode() + b"\xfe" + text.encode())


if __name__ == "__main__":
    main()
