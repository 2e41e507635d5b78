"""Numbers on which encoders are compared: made ones of several distributions, and tensors of the real model."""
import gguf
import numpy as np
from gguf import GGMLQuantizationType as T

SEARCHED = {
    "q2_k": T.Q2_K,
    "q3_k": T.Q3_K,
    "q4_k": T.Q4_K,
    "q5_k": T.Q5_K,
    "q6_k": T.Q6_K,
    "iq4_nl": T.IQ4_NL,
    "iq4_xs": T.IQ4_XS,
}
ROWS = 400


def samples(model):
    """Name -> [ROWS, 256] f32."""
    random = np.random.default_rng(7)
    shape = (ROWS, 256)
    scale = np.float32(0.02)
    made = {
        "gaussian": random.standard_normal(shape),
        "student 2": random.standard_t(2, shape),
        "student 4": random.standard_t(4, shape),
        "laplace": random.laplace(size=shape),
        "uniform": random.uniform(-1, 1, shape),
        "exponential": random.exponential(size=shape),
        "far from 0": random.standard_normal(shape) + 3,
        "groups of many sizes": random.standard_normal(shape)
        * 2.0 ** random.uniform(-4, 4, (ROWS, 16)).repeat(16, axis=1),
        "sparse": random.standard_normal(shape) * (random.uniform(size=shape) < 0.03),
    }
    found = {name: (values * scale).astype(np.float32) for name, values in made.items()}
    for tensor in gguf.GGUFReader(model).tensors:
        if tensor.name in ("blk.3.ffn_down.weight", "blk.20.attn_q.weight", "blk.29.ffn_up.weight"):
            values = gguf.dequantize(tensor.data, tensor.tensor_type).reshape(-1)[: ROWS * 256].reshape(shape)
            found[tensor.name] = np.ascontiguousarray(values, np.float32)
            # The model's own Format has left few distinct numbers to a group; real weights have more.
            noise = random.standard_normal(shape) * values.std() * 0.04
            found[tensor.name + " with noise"] = (values + noise).astype(np.float32)
    return found


def relative_error(blocks, kind, numbers):
    """RMS of what the blocks decode to, less the numbers, over the RMS of the numbers."""
    decoded = gguf.dequantize(blocks.reshape(numbers.shape[0], -1), kind).astype(np.float64)
    error = decoded.reshape(numbers.shape) - numbers
    return float(np.sqrt((error**2).sum() / (numbers.astype(np.float64) ** 2).sum()))
