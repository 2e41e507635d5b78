"""Mixtral against transformers in f32, live: a llama with experts, as GGUF files have it."""

import pytest
from gguf import GGMLQuantizationType as Kind
from tiny_models import ATTENTION, SMALL, Writer, expect_logits, random_weights, rope_order
from transformers import MixtralConfig, MixtralForCausalLM

SHAPES = {
    "f32": ({"num_attention_heads": 4, "num_key_value_heads": 2, "num_local_experts": 8}, Kind.F32),
    "f16": ({"num_attention_heads": 2, "num_key_value_heads": 2, "num_local_experts": 3}, Kind.F16),
    "q8_0": ({"num_attention_heads": 4, "num_key_value_heads": 1, "num_local_experts": 8}, Kind.Q8_0),
}


@pytest.mark.parametrize("name", SHAPES)
def test_tiny_models(name, tmp_path):
    options, kind = SHAPES[name]
    model = MixtralForCausalLM(MixtralConfig(**(SMALL | options))).eval()
    random_weights(model)
    config = model.config
    path = tmp_path / "tiny.gguf"
    writer = Writer(path, "llama", config)
    writer.key("expert_count", config.num_local_experts)
    writer.key("expert_used_count", config.num_experts_per_tok)
    state = model.state_dict()
    writer.ends(state, config.tie_word_embeddings)
    heads = {"attn_q": config.num_attention_heads, "attn_k": config.num_key_value_heads}
    for layer in range(config.num_hidden_layers):
        writer.layer(state, layer, ATTENTION | {"ffn_norm": "post_attention_layernorm"}, rope_order(heads))
        writer.experts(state, layer, kind)
    writer.close()
    expect_logits(path, model)
