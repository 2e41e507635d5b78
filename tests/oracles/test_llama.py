"""The family llama against transformers in f32, live: tiny random models through GGUF files written by PyPI gguf, over
prefill, token-by-token decode and a batch of sequences of unequal lengths; and the default model on fresh texts."""

import numpy as np
import pytest
import torch
from engine_logits import engine_logits
from gguf import GGMLQuantizationType, GGUFWriter
from transformers import LlamaConfig, LlamaForCausalLM

SHAPES = {
    "llama": {"num_attention_heads": 4, "num_key_value_heads": 4},
    "grouped": {"num_attention_heads": 6, "num_key_value_heads": 2, "hidden_size": 96},
    "untied": {"num_attention_heads": 4, "num_key_value_heads": 1, "tie_word_embeddings": False},
    "wide_heads": {"num_attention_heads": 2, "num_key_value_heads": 1, "head_dim": 64},
    "llama31": {
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "rope_parameters": {"rope_type": "llama3", "rope_theta": 500000.0, "factor": 8.0, "low_freq_factor": 1.0,
                            "high_freq_factor": 4.0, "original_max_position_embeddings": 64},
    },
    "linear": {
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "rope_parameters": {"rope_type": "linear", "rope_theta": 10000.0, "factor": 4.0},
    },
    "biased": {"num_attention_heads": 4, "num_key_value_heads": 2, "attention_bias": True},
}


def tiny_model(options) -> LlamaForCausalLM:
    config = LlamaConfig(**{"vocab_size": 131, "hidden_size": 64, "intermediate_size": 96, "num_hidden_layers": 3,
                            "max_position_embeddings": 512, "rms_norm_eps": 1e-5, "tie_word_embeddings": True} | options)
    model = LlamaForCausalLM(config).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.ndim == 2:
                parameter.normal_(0, 1 / parameter.shape[1] ** 0.5)
            else:
                parameter.normal_(1, 0.2)
    return model


def rope_order(weight: torch.Tensor, heads: int) -> torch.Tensor:
    """Rows from transformers' order to GGUF's, where the two numbers that rope turns together are neighbours."""
    return weight.reshape(heads, 2, weight.shape[0] // heads // 2, *weight.shape[1:]).swapaxes(1, 2).reshape(weight.shape)


def write_gguf(path, model: LlamaForCausalLM) -> None:
    config = model.config
    writer = GGUFWriter(path, "llama")
    writer.add_block_count(config.num_hidden_layers)
    writer.add_context_length(config.max_position_embeddings)
    writer.add_embedding_length(config.hidden_size)
    writer.add_feed_forward_length(config.intermediate_size)
    writer.add_head_count(config.num_attention_heads)
    writer.add_head_count_kv(config.num_key_value_heads)
    writer.add_key_length(config.head_dim)
    writer.add_value_length(config.head_dim)
    writer.add_rope_dimension_count(config.head_dim)
    writer.add_layer_norm_rms_eps(config.rms_norm_eps)
    rope = config.rope_parameters
    writer.add_rope_freq_base(rope["rope_theta"])
    if rope["rope_type"] == "linear":
        writer.add_string("llama.rope.scaling.type", "linear")
        writer.add_float32("llama.rope.scaling.factor", rope["factor"])
    if rope["rope_type"] == "llama3":
        plain = rope["rope_theta"] ** -(torch.arange(0, config.head_dim, 2, dtype=torch.float64) / config.head_dim)
        scaled = model.model.rotary_emb.inv_freq.double()
        writer.add_tensor("rope_freqs.weight", (plain / scaled).float().numpy())
    state = model.state_dict()

    def add(name, tensor):
        writer.add_tensor(name, tensor.contiguous().float().numpy(), raw_dtype=GGMLQuantizationType.F32)

    add("token_embd.weight", state["model.embed_tokens.weight"])
    add("output_norm.weight", state["model.norm.weight"])
    if not config.tie_word_embeddings:
        add("output.weight", state["lm_head.weight"])
    names = {"attn_norm": "input_layernorm", "attn_q": "self_attn.q_proj", "attn_k": "self_attn.k_proj",
             "attn_v": "self_attn.v_proj", "attn_output": "self_attn.o_proj", "ffn_norm": "post_attention_layernorm",
             "ffn_gate": "mlp.gate_proj", "ffn_up": "mlp.up_proj", "ffn_down": "mlp.down_proj"}
    heads = {"attn_q": config.num_attention_heads, "attn_k": config.num_key_value_heads}
    for layer in range(config.num_hidden_layers):
        for ours, theirs in names.items():
            for kind in ("weight", "bias"):
                tensor = state.get(f"model.layers.{layer}.{theirs}.{kind}")
                if tensor is not None:
                    add(f"blk.{layer}.{ours}.{kind}", rope_order(tensor, heads[ours]) if ours in heads else tensor)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def reference_logits(model, tokens) -> np.ndarray:
    with torch.no_grad():
        return model(torch.tensor([tokens])).logits[0].numpy()


@pytest.mark.parametrize("name", SHAPES)
def test_tiny_models(name, tmp_path):
    model = tiny_model(SHAPES[name])
    path = tmp_path / "tiny.gguf"
    write_gguf(path, model)
    vocabulary = model.config.vocab_size
    sequences = [torch.randint(vocabulary, (length,)).tolist() for length in (200, 1, 65, 128)]
    expected = [reference_logits(model, tokens) for tokens in sequences]
    # Weights and activations are f32 on both sides. Keys and values are rounded to f16, 2^-11 of each; over three layers
    # the logits, of unit scale, are off by a small multiple of that.
    runs = {"prefill": (256, 1), "token by token": (1, 1), "chunks": (7, 1), "batch": (16, 4)}
    for what, (chunk, batch) in runs.items():
        logits = engine_logits(path, sequences, vocabulary, token_class="generated", chunk=chunk, batch=batch)
        for ours, theirs in zip(logits, expected, strict=True):
            error = np.abs(ours - theirs).max() / np.abs(theirs).std()
            assert error < 0.02, f"{what}: {error}"


def test_default_model_on_fresh_text(reference, model_path):
    text = ("In the valley below the dam the miller kept two ledgers: one for the grain and one for the water. "
            "def turn(wheel):\n    return wheel.angle + 1\n\nQuelle heure est-il ? 1234 + 4321 = 5555.")
    tokens = reference.encode(text)
    expected = reference.teacher_forced_logits(tokens)
    ours = engine_logits(model_path, [list(tokens)], expected.shape[1], chunk=64)[0].astype(np.float64)

    def log_probs(rows):
        rows = rows.astype(np.float64) - rows.max(axis=1, keepdims=True)
        return rows - np.log(np.exp(rows).sum(axis=1, keepdims=True))

    a, b = log_probs(expected), log_probs(ours)
    assert (np.exp(a) * (a - b)).sum(axis=1).mean() < 0.005
    ordered = np.sort(a, axis=1)
    clear = ordered[:, -1] - ordered[:, -2] > 0.5
    assert (a.argmax(axis=1) == b.argmax(axis=1))[clear].all()
