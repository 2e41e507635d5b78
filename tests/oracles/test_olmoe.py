"""The family olmoe against transformers in f32, live."""

import pytest
from gguf import GGMLQuantizationType as Kind
from tiny_models import ATTENTION, HEAD_NORMS, SMALL, Writer, expect_logits, random_weights
from transformers import OlmoeConfig, OlmoeForCausalLM

SHAPES = {
    "f32": ({"num_attention_heads": 4, "num_key_value_heads": 4, "num_experts": 8, "num_experts_per_tok": 2}, Kind.F32),
    "grouped": ({"num_attention_heads": 4, "num_key_value_heads": 2, "num_experts": 16, "num_experts_per_tok": 5},
                Kind.F32),
    "q5_1": ({"num_attention_heads": 4, "num_key_value_heads": 4, "num_experts": 8, "num_experts_per_tok": 3},
             Kind.Q5_1),
}


@pytest.mark.parametrize("name", SHAPES)
def test_tiny_models(name, tmp_path):
    options, kind = SHAPES[name]
    model = OlmoeForCausalLM(OlmoeConfig(**(SMALL | options))).eval()
    random_weights(model)
    path = tmp_path / "tiny.gguf"
    writer = Writer(path, "olmoe", model.config)
    writer.key("expert_count", model.config.num_experts)
    writer.key("expert_used_count", model.config.num_experts_per_tok)
    state = model.state_dict()
    writer.ends(state, model.config.tie_word_embeddings)
    for layer in range(model.config.num_hidden_layers):
        writer.layer(state, layer, ATTENTION | HEAD_NORMS | {"ffn_norm": "post_attention_layernorm"})
        writer.experts(state, layer, kind)
    writer.close()
    expect_logits(path, model)
