"""A llama-architecture GGUF file, dequantized by PyPI `gguf`, in transformers' LlamaForCausalLM in f32.

The oracle of everything that computes logits. Shapes: T tokens, V vocabulary.
"""

from functools import cached_property
from pathlib import Path

import gguf
import numpy as np
import tokenizers
import torch
from gguf.quants import dequantize
from transformers import LlamaConfig, LlamaForCausalLM

# GGUF name of a layer's weight -> transformers' name.
LAYER_NAMES = {
    "attn_norm": "input_layernorm",
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj",
    "ffn_norm": "post_attention_layernorm",
    "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
}


def undo_rope_order(weight: np.ndarray, heads: int) -> np.ndarray:
    """Rows of a q or k projection from GGUF's order, where the two numbers that rope turns together are neighbours, to
    transformers' order, where they lie half a head apart."""
    rows, width = weight.shape
    return weight.reshape(heads, rows // heads // 2, 2, width).swapaxes(1, 2).reshape(rows, width)


class ReferenceModel:
    """The model of one GGUF file: metadata, tokenizer and teacher-forced logits."""

    def __init__(self, path: str | Path):
        self.reader = gguf.GGUFReader(str(path))
        if self.field("general.architecture") != "llama":
            raise ValueError(f"{path}: expected architecture llama, got {self.field('general.architecture')}")

    def field(self, key: str):
        """The value of a metadata field; KeyError when it is missing."""
        return self.reader.fields[key].contents()

    def has(self, key: str) -> bool:
        return key in self.reader.fields

    @cached_property
    def config(self) -> LlamaConfig:
        if self.has("llama.rope.scaling.type") and self.field("llama.rope.scaling.type") != "none":
            raise ValueError("rope scaling is not supported by this loader")
        heads = self.field("llama.attention.head_count")
        width = self.field("llama.embedding_length")
        tensors = {tensor.name for tensor in self.reader.tensors}
        return LlamaConfig(
            vocab_size=len(self.field("tokenizer.ggml.tokens")),
            hidden_size=width,
            intermediate_size=self.field("llama.feed_forward_length"),
            num_hidden_layers=self.field("llama.block_count"),
            num_attention_heads=heads,
            num_key_value_heads=self.field("llama.attention.head_count_kv"),
            head_dim=width // heads,
            max_position_embeddings=self.field("llama.context_length"),
            rms_norm_eps=self.field("llama.attention.layer_norm_rms_epsilon"),
            rope_parameters={"rope_type": "default", "rope_theta": self.field("llama.rope.freq_base")},
            tie_word_embeddings="output.weight" not in tensors,
            bos_token_id=None, eos_token_id=None, pad_token_id=None,
        )

    def weights(self) -> dict[str, torch.Tensor]:
        """transformers' names -> f32 values; fails on a tensor that has no place in the model."""
        names = {"token_embd": "model.embed_tokens", "output_norm": "model.norm", "output": "lm_head"}
        state = {}
        for tensor in self.reader.tensors:
            values = dequantize(tensor.data, tensor.tensor_type).astype(np.float32)
            stem, kind = tensor.name.rsplit(".", 1)
            if stem.startswith("blk."):
                _, layer, part = stem.split(".")
                if part in ("attn_q", "attn_k"):
                    key = "llama.attention.head_count" + ("_kv" if part == "attn_k" else "")
                    values = undo_rope_order(values, self.field(key))
                name = f"model.layers.{layer}.{LAYER_NAMES[part]}.{kind}"
            else:
                name = f"{names[stem]}.{kind}"
            state[name] = torch.from_numpy(np.ascontiguousarray(values))
        return state

    @cached_property
    def model(self) -> LlamaForCausalLM:
        state = self.weights()
        model = LlamaForCausalLM._from_config(self.config, dtype=torch.float32, attn_implementation="eager")
        missing, unexpected = model.load_state_dict(state, strict=False)
        allowed = {"lm_head.weight"} if self.config.tie_word_embeddings else set()
        if unexpected or set(missing) - allowed:
            raise ValueError(f"weights that do not fit: missing {missing}, unexpected {unexpected}")
        model.tie_weights()
        return model.eval()

    def teacher_forced_logits(self, token_ids: list[int]) -> np.ndarray:
        """f32 [T, V]: row i holds the logits of the token after token_ids[0..i]."""
        with torch.no_grad():
            return self.model(torch.tensor([token_ids])).logits[0].numpy()

    @cached_property
    def tokenizer(self) -> tokenizers.Tokenizer:
        """PyPI `tokenizers` on the file's own vocabulary and merges, for the pre-tokenizers smollm and gpt-2."""
        from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers

        tokens = self.field("tokenizer.ggml.tokens")
        merges = [tuple(merge.split(" ")) for merge in self.field("tokenizer.ggml.merges")]
        tokenizer = Tokenizer(models.BPE(vocab={token: i for i, token in enumerate(tokens)}, merges=merges))
        byte_level = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True)
        kind = self.field("tokenizer.ggml.pre")
        if kind == "smollm":
            tokenizer.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.Digits(individual_digits=True), byte_level])
        elif kind == "gpt-2":
            tokenizer.pre_tokenizer = byte_level
        else:
            raise ValueError(f"pre-tokenizer {kind} is not supported by this loader")
        tokenizer.decoder = decoders.ByteLevel()
        control = [token for token, kind in zip(tokens, self.field("tokenizer.ggml.token_type"), strict=True)
                   if kind == gguf.TokenType.CONTROL]
        tokenizer.add_special_tokens([AddedToken(token, normalized=False, special=True) for token in control])
        return tokenizer

    def encode(self, text: str) -> list[int]:
        """Token ids of the text, special tokens in it recognized, none added."""
        return self.tokenizer.encode(text, add_special_tokens=False).ids


def log_softmax(logits: np.ndarray) -> np.ndarray:
    """f64 log-probabilities along the last axis."""
    wide = logits.astype(np.float64)
    wide -= wide.max(axis=-1, keepdims=True)
    return wide - np.log(np.exp(wide).sum(axis=-1, keepdims=True))


def perplexity(logits: np.ndarray, token_ids: list[int]) -> float:
    """exp of the mean negative log-probability of tokens 1..T-1, each given those before it."""
    chosen = log_softmax(logits[:-1])[np.arange(len(token_ids) - 1), token_ids[1:]]
    return float(np.exp(-chosen.mean()))
