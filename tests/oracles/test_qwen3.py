"""The family qwen3 against transformers in f32, live."""

import pytest
from tiny_models import ATTENTION, HEAD_NORMS, SMALL, SWIGLU, Writer, expect_logits, random_weights
from transformers import Qwen3Config, Qwen3ForCausalLM

SHAPES = {
    "tied": {"num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 16, "tie_word_embeddings": True},
    "wide_heads": {"num_attention_heads": 4, "num_key_value_heads": 1, "head_dim": 32, "tie_word_embeddings": False},
    "biased": {"num_attention_heads": 2, "num_key_value_heads": 2, "head_dim": 48, "attention_bias": True},
}


@pytest.mark.parametrize("name", SHAPES)
def test_tiny_models(name, tmp_path):
    model = Qwen3ForCausalLM(Qwen3Config(**(SMALL | SHAPES[name]))).eval()
    random_weights(model)
    path = tmp_path / "tiny.gguf"
    writer = Writer(path, "qwen3", model.config)
    state = model.state_dict()
    writer.ends(state, model.config.tie_word_embeddings)
    for layer in range(model.config.num_hidden_layers):
        writer.layer(state, layer, ATTENTION | HEAD_NORMS | SWIGLU)
    writer.close()
    expect_logits(path, model)
