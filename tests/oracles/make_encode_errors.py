"""make_encode_errors.py LIBGGML_BASE MODEL: writes tests/data/encode_errors.json anew, the errors of ggml's quantizers.

LIBGGML_BASE is the shared library of a llama.cpp build (of the PyPI source package llama-cpp-python).
"""
import ctypes
import json
import sys
from pathlib import Path

import gguf
import numpy as np

TESTS = Path(__file__).parent.parent
sys.path.insert(0, str(TESTS / "python"))
from encode_samples import SEARCHED, relative_error, samples  # noqa: E402


def main(library, model):
    ggml = ctypes.CDLL(library)
    quantize = ggml.ggml_quantize_chunk
    quantize.restype = ctypes.c_size_t
    quantize.argtypes = [ctypes.c_int, *[ctypes.c_void_p] * 2, *[ctypes.c_int64] * 3, ctypes.c_void_p]
    errors = {}
    for label, numbers in samples(model).items():
        for name, kind in SEARCHED.items():
            elements, size = gguf.GGML_QUANT_SIZES[kind]
            blocks = np.zeros(numbers.size // elements * size, np.uint8)
            quantize(int(kind), numbers.ctypes.data, blocks.ctypes.data, 0, *numbers.shape, None)
            errors.setdefault(name, {})[label] = round(relative_error(blocks, kind, numbers), 8)
    (TESTS / "data" / "encode_errors.json").write_text(json.dumps(errors, indent=1) + "\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
