"""Tiny random models in transformers, the GGUF files that stand for them (written by PyPI gguf), and the comparison of
the Engine's logits with transformers' in f32, live, over every way of feeding a sequence."""

import numpy as np
import torch
from engine_logits import engine_logits
from gguf import GGMLQuantizationType, GGUFWriter
from gguf.quants import dequantize, quantize
from transformers import DynamicCache

SMALL = {"vocab_size": 131, "hidden_size": 64, "intermediate_size": 96, "num_hidden_layers": 3,
         "max_position_embeddings": 512, "rms_norm_eps": 1e-5, "bos_token_id": None, "eos_token_id": None,
         "pad_token_id": None}

# GGUF's names of a layer's tensors, and transformers' below model.layers.N.
ATTENTION = {"attn_norm": "input_layernorm", "attn_q": "self_attn.q_proj", "attn_k": "self_attn.k_proj",
             "attn_v": "self_attn.v_proj", "attn_output": "self_attn.o_proj"}
HEAD_NORMS = {"attn_q_norm": "self_attn.q_norm", "attn_k_norm": "self_attn.k_norm"}
SWIGLU = {"ffn_norm": "post_attention_layernorm", "ffn_gate": "mlp.gate_proj", "ffn_up": "mlp.up_proj",
          "ffn_down": "mlp.down_proj"}


def random_weights(model) -> None:
    """Unit-variance outputs everywhere; norms around 1, biases around 0."""
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if parameter.ndim >= 2 and not name.endswith("bias"):
                parameter.normal_(0, 1 / parameter.shape[-1] ** 0.5)
            elif "norm" in name:
                parameter.normal_(1, 0.2)
            else:
                parameter.normal_(0, 0.5)


class Writer:
    """A GGUF file of one architecture, with the keys that all decoders have."""

    def __init__(self, path, architecture: str, config):
        self.architecture = architecture
        self.writer = GGUFWriter(path, architecture)
        self.writer.add_block_count(config.num_hidden_layers)
        self.writer.add_context_length(config.max_position_embeddings)
        self.writer.add_embedding_length(config.hidden_size)
        self.writer.add_feed_forward_length(config.intermediate_size)
        self.writer.add_head_count(config.num_attention_heads)
        self.writer.add_head_count_kv(config.num_key_value_heads)
        self.writer.add_layer_norm_rms_eps(config.rms_norm_eps)
        if getattr(config, "head_dim", None):
            self.writer.add_key_length(config.head_dim)
            self.writer.add_value_length(config.head_dim)
        rope = config.rope_parameters
        self.writer.add_rope_freq_base(rope["rope_theta"])
        if rope["rope_type"] == "linear":
            self.key("rope.scaling.type", "linear")
            self.key("rope.scaling.factor", float(rope["factor"]))
        if rope["rope_type"] == "yarn":
            self.key("rope.scaling.type", "yarn")
            self.key("rope.scaling.factor", float(rope["factor"]))
            self.key("rope.scaling.original_context_length", rope["original_max_position_embeddings"])
            for theirs, ours in (("beta_fast", "beta_fast"), ("beta_slow", "beta_slow"), ("attention_factor", "attn_factor")):
                if theirs in rope:
                    self.key(f"rope.scaling.yarn_{ours}", float(rope[theirs]))

    def key(self, name: str, value) -> None:
        add = {str: self.writer.add_string, float: self.writer.add_float32, int: self.writer.add_uint32}[type(value)]
        add(f"{self.architecture}.{name}", value)

    def add(self, name: str, tensor: torch.Tensor) -> None:
        self.writer.add_tensor(name, tensor.contiguous().float().numpy(), raw_dtype=GGMLQuantizationType.F32)

    def raw(self, name: str, data: np.ndarray, kind: GGMLQuantizationType) -> None:
        self.writer.add_tensor(name, data, raw_dtype=kind)

    def ends(self, state, tied: bool) -> None:
        """Embedding, last norm and logits."""
        self.add("token_embd.weight", state["model.embed_tokens.weight"])
        self.add("output_norm.weight", state["model.norm.weight"])
        if not tied:
            self.add("output.weight", state["lm_head.weight"])

    def layer(self, state, layer: int, names: dict[str, str], reorder=lambda name, tensor: tensor) -> None:
        """The tensors of a layer, weights and biases, as far as the model has them."""
        for ours, theirs in names.items():
            for kind in ("weight", "bias"):
                tensor = state.get(f"model.layers.{layer}.{theirs}.{kind}")
                if tensor is not None:
                    self.add(f"blk.{layer}.{ours}.{kind}", reorder(ours, tensor))

    def experts(self, state, layer: int, kind: GGMLQuantizationType, router: str = "mlp.gate") -> None:
        """The router, and stacked experts whose gate and up transformers keeps as one, gate first. Of another kind than
        F32 the model's values become what the file's stand for."""
        prefix = f"model.layers.{layer}"
        self.add(f"blk.{layer}.ffn_gate_inp.weight", state[f"{prefix}.{router}.weight"])
        gate, up = state[f"{prefix}.mlp.experts.gate_up_proj"].chunk(2, dim=1)
        for name, tensor in (("gate", gate), ("up", up), ("down", state[f"{prefix}.mlp.experts.down_proj"])):
            self.raw(f"blk.{layer}.ffn_{name}_exps.weight", quantized(tensor, kind), kind)

    def close(self) -> None:
        self.writer.write_header_to_file()
        self.writer.write_kv_data_to_file()
        self.writer.write_tensors_to_file()
        self.writer.close()


def rope_order(heads: dict[str, int]):
    """Rows of these tensors from transformers' order to the one that GGUF files of llamas have, where the two numbers
    that rope turns together are neighbours. `heads`: of each."""

    def reorder(name: str, tensor: torch.Tensor) -> torch.Tensor:
        if name not in heads:
            return tensor
        pairs = tensor.reshape(heads[name], 2, tensor.shape[0] // heads[name] // 2, *tensor.shape[1:])
        return pairs.swapaxes(1, 2).reshape(tensor.shape)

    return reorder


class HalfCache(DynamicCache):
    """Keys and values as the Engine keeps them, rounded to f16. What is left between the two sides is the order of f32
    sums, so that no expert is chosen on one side only, but for a tie within it."""

    def update(self, key_states, value_states, *arguments, **options):
        return super().update(key_states.half().float(), value_states.half().float(), *arguments, **options)


def reference_logits(model, tokens) -> np.ndarray:
    with torch.no_grad():
        return model(torch.tensor([tokens]), past_key_values=HalfCache(), use_cache=True).logits[0].numpy()


def quantized(tensor: torch.Tensor, kind: GGMLQuantizationType) -> np.ndarray:
    """The file's bytes of a tensor, whose values become what they stand for."""
    data = quantize(tensor.contiguous().numpy(), kind)
    with torch.no_grad():
        tensor.copy_(torch.from_numpy(dequantize(data, kind)).reshape(tensor.shape))
    return data


def expect_logits(path, model, tolerance: float = 2e-3) -> None:
    """`tolerance`: largest difference, in deviations of the logits. Sums of some 100 f32 terms over three layers are off
    by some 1e-6; where such a difference tips a key or value over to the next f16, 2^-11 of it; and an expert's weight
    may follow."""
    vocabulary = model.config.vocab_size
    sequences = [torch.randint(vocabulary, (length,)).tolist() for length in (200, 1, 65, 128)]
    expected = [reference_logits(model, tokens) for tokens in sequences]
    runs = {"prefill": (256, 1), "token by token": (1, 1), "chunks": (7, 1), "batch": (16, 4)}
    for what, (chunk, batch) in runs.items():
        logits = engine_logits(path, sequences, vocabulary, token_class="generated", chunk=chunk, batch=batch)
        for ours, theirs in zip(logits, expected, strict=True):
            error = np.abs(ours - theirs).max() / np.abs(theirs).std()
            assert error < tolerance, f"{what}: {error}"
