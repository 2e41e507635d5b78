"""The family qwen3moe against transformers in f32, live."""

import pytest
from gguf import GGMLQuantizationType as Kind
from tiny_models import ATTENTION, HEAD_NORMS, SMALL, Writer, expect_logits, random_weights
from transformers import Qwen3MoeConfig, Qwen3MoeForCausalLM

SHAPES = {
    "f32": ({"num_experts": 8, "num_experts_per_tok": 2, "moe_intermediate_size": 40}, Kind.F32),
    "many_experts": ({"num_experts": 33, "num_experts_per_tok": 8, "moe_intermediate_size": 16}, Kind.F32),
    "q8_0": ({"num_experts": 8, "num_experts_per_tok": 3, "moe_intermediate_size": 32}, Kind.Q8_0),
    "q4_0": ({"num_experts": 4, "num_experts_per_tok": 4, "moe_intermediate_size": 64}, Kind.Q4_0),
}


@pytest.mark.parametrize("name", SHAPES)
def test_tiny_models(name, tmp_path):
    options, kind = SHAPES[name]
    model = Qwen3MoeForCausalLM(Qwen3MoeConfig(**(SMALL | options), num_attention_heads=4, num_key_value_heads=2,
                                               head_dim=32, norm_topk_prob=True)).eval()
    random_weights(model)
    path = tmp_path / "tiny.gguf"
    writer = Writer(path, "qwen3moe", model.config)
    writer.key("expert_count", model.config.num_experts)
    writer.key("expert_used_count", model.config.num_experts_per_tok)
    writer.key("expert_feed_forward_length", model.config.moe_intermediate_size)
    state = model.state_dict()
    writer.ends(state, model.config.tie_word_embeddings)
    for layer in range(model.config.num_hidden_layers):
        writer.layer(state, layer, ATTENTION | HEAD_NORMS | {"ffn_norm": "post_attention_layernorm"})
        writer.experts(state, layer, kind)
    writer.close()
    expect_logits(path, model)
