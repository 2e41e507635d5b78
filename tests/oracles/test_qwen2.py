"""The family qwen2 against transformers in f32, live."""

import pytest
from tiny_models import ATTENTION, SMALL, SWIGLU, Writer, expect_logits, random_weights
from transformers import Qwen2Config, Qwen2ForCausalLM

SHAPES = {
    "tied": {"num_attention_heads": 4, "num_key_value_heads": 2, "tie_word_embeddings": True},
    "untied": {"num_attention_heads": 6, "num_key_value_heads": 1, "hidden_size": 96, "tie_word_embeddings": False},
    "yarn": {"num_attention_heads": 4, "num_key_value_heads": 2,
             "rope_parameters": {"rope_type": "yarn", "rope_theta": 10000.0, "factor": 4.0,
                                 "original_max_position_embeddings": 64}},
    "yarn_with_all_keys": {"num_attention_heads": 2, "num_key_value_heads": 2,
                           "rope_parameters": {"rope_type": "yarn", "rope_theta": 500000.0, "factor": 8.0,
                                               "original_max_position_embeddings": 50, "beta_fast": 16.0,
                                               "beta_slow": 2.0, "attention_factor": 1.5}},
}


@pytest.mark.parametrize("name", SHAPES)
def test_tiny_models(name, tmp_path):
    model = Qwen2ForCausalLM(Qwen2Config(**(SMALL | SHAPES[name]))).eval()
    random_weights(model)
    path = tmp_path / "tiny.gguf"
    writer = Writer(path, "qwen2", model.config)
    state = model.state_dict()
    writer.ends(state, model.config.tie_word_embeddings)
    for layer in range(model.config.num_hidden_layers):
        writer.layer(state, layer, ATTENTION | SWIGLU)
    writer.close()
    expect_logits(path, model)
