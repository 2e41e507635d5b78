"""The family llama against transformers in f32, live: tiny random models, and the default model on fresh texts."""

import numpy as np
import pytest
import torch
from engine_logits import engine_logits
from tiny_models import ATTENTION, SMALL, SWIGLU, Writer, expect_logits, random_weights, rope_order
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


@pytest.mark.parametrize("name", SHAPES)
def test_tiny_models(name, tmp_path):
    model = LlamaForCausalLM(LlamaConfig(**(SMALL | {"tie_word_embeddings": True} | SHAPES[name]))).eval()
    random_weights(model)
    config = model.config
    path = tmp_path / "tiny.gguf"
    writer = Writer(path, "llama", config)
    writer.key("rope.dimension_count", config.head_dim)
    rope = config.rope_parameters
    if rope["rope_type"] == "llama3":
        plain = rope["rope_theta"] ** -(torch.arange(0, config.head_dim, 2, dtype=torch.float64) / config.head_dim)
        scaled = model.model.rotary_emb.inv_freq.double()
        writer.add("rope_freqs.weight", plain / scaled)
    state = model.state_dict()
    writer.ends(state, config.tie_word_embeddings)
    heads = {"attn_q": config.num_attention_heads, "attn_k": config.num_key_value_heads}
    for layer in range(config.num_hidden_layers):
        writer.layer(state, layer, ATTENTION | SWIGLU, rope_order(heads))
    writer.close()
    expect_logits(path, model)


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
